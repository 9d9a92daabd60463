"""No password, private key or token is in a log, a command line, the status, an error or a core dump."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

CORE_DUMPED = 0x80


def ended_with(pid):
    """Returns the status of waitpid(2) behind SIGABRT, by which a process has its core dumped."""
    resource.prlimit(pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.kill(pid, signal.SIGABRT)
    return os.waitpid(pid, 0)[1]


@pytest.fixture
def cores(tmp_path, monkeypatch):
    """Returns a directory in which core dumps are written, as a process without secrets shows."""
    monkeypatch.chdir(tmp_path)
    argv = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as plain:
        plain.stdout.readline()
        status = ended_with(plain.pid)
        plain.returncode = -signal.SIGABRT
    if not status & CORE_DUMPED:
        pytest.skip("no core dumps are written here")
    for core in tmp_path.iterdir():
        core.unlink()
    return tmp_path


def test_of_the_daemon_and_the_monitor_no_core_dump_is_written(daemon, cores):
    one = daemon()
    monitor = subprocess.Popen([sys.executable, "-m", "trigmon", "monitor"], env=one.env, stderr=subprocess.PIPE)
    while b"monitor serves" not in monitor.stderr.readline():
        assert monitor.poll() is None
    with monitor.stderr:
        statuses = [ended_with(process.pid) for process in (monitor, one.process)]
    monitor.returncode = one.process.returncode = -signal.SIGABRT
    assert statuses == [int(signal.SIGABRT)] * 2
    assert list(cores.iterdir()) == []
