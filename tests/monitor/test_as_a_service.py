"""What a trigger monitor tells the service manager that started it: ready, alive, stopping."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trigmon.keeper import systemd_bus


@pytest.fixture
def manager(tmp_path):
    """A service manager's ear."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(20)
        yield ear


@pytest.fixture
def start(daemon, tmp_path):
    """Starts monitors as a service manager does, and ends them."""
    started = []

    def start(one, **environment):
        env = one.env | {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"} | environment
        argv = [sys.executable, "-m", "trigmon", "--qmgr", "QM1", "monitor"]
        started.append(subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def hear(manager, what):
    """Reads notices until one holds ``what``, and returns them all."""
    collected = []
    while not collected or what not in collected[-1]:
        collected.append(manager.recv(4096).decode())
    return collected


def test_it_is_ready_when_the_initiation_queue_is_open_and_not_before(daemon, start, manager):
    one = daemon(start=False)
    start(one)
    assert hear(manager, "STATUS=") == ["STATUS=waits for its queue manager"]
    manager.settimeout(1.0)
    with pytest.raises(TimeoutError):
        manager.recv(4096)
    manager.settimeout(20)
    one.start()
    hear(manager, "READY=1")
    assert hear(manager, "STATUS=")[-1] == "STATUS=serves SYSTEM.DEFAULT.INITIATION.QUEUE"


def test_its_loop_feeds_the_watchdog_also_while_the_queue_manager_is_away(daemon, start, manager):
    one = daemon()
    process = start(one)
    hear(manager, "READY=1")
    hear(manager, "WATCHDOG=1")
    one.kill()
    for _ in range(5):
        hear(manager, "WATCHDOG=1")
    process.terminate()
    hear(manager, "STOPPING=1")
    assert process.wait(20) == 0


@pytest.mark.skipif(
    systemd_bus.socket_path() == Path("/run/systemd/private") and systemd_bus.why_not() == "", reason="one runs"
)
def test_where_no_systemd_runs_it_says_so_and_does_not_start(daemon, start, tmp_path):
    one = daemon()
    process = start(one, TRIGMON_MONITOR_LAUNCHER="systemd", XDG_RUNTIME_DIR=str(tmp_path))
    _, message = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "monitor.launcher is systemd, and no systemd" in message
