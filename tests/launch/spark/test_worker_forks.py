"""Daemons of Python workers as forks: what Spark sees of them, played without a Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.waiting import until
from trigmon.launch.spark.warm import worker_python

# A module of workers as Spark has them: the process gives the two ends of its socket to main.
PROBE = """\
import json, os, random, struct, sys

def main(infile, outfile):
    import numpy
    is_there = "pandas" in sys.modules
    seen = {"pid": os.getpid(), "parent": os.getppid(), "pandas": is_there, "directory": os.getcwd()}
    seen |= {"of": os.environ["SPARK_JOB_ARTIFACT_UUID"], "random": [random.random(), numpy.random.rand()]}
    text = json.dumps(seen).encode()
    outfile.write(struct.pack("!i", len(text)) + text)
    outfile.flush()
    infile.read(1)
    sys.exit(1)
"""
# Two daemons at once, as when a server has just started.
STARTS = """\
import json, struct, subprocess, sys
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
daemons = [subprocess.Popen(sys.argv[1:], **pipes) for _ in range(2)]
said = [daemon.stdout.read(struct.unpack("!i", daemon.stdout.read(4))[0]).decode() for daemon in daemons]
print(json.dumps(said), flush=True)
sys.stdin.read()
"""
PATHS = os.environ.get("PYTHONPATH", "/nowhere")
NAME, MODULE = "connect-1", "pyspark_probe"
SERVE = """\
import sys
from trigmon.spark.warm import worker_fork_server as it
it.IDLE_S, it._TICK_S = float(sys.argv[3]), 0.05
sys.exit(it.main(sys.argv[1], int(sys.argv[2])))
"""


class Played:
    """What Spark's Java does: it starts Python for each kind of worker and connects for each worker."""

    def __init__(self, directory):
        self.directory = directory
        # The path of a test is too long for the sockets of Spark's daemons.
        self._short = tempfile.TemporaryDirectory(prefix="trigmon-")
        self.sockets = Path(self._short.name)
        self.path = self.sockets / f".{NAME}.sock"
        self.program = worker_python.written(directory / "servers" / "python", NAME, sys.executable, "local[2]")
        self.spark = subprocess.Popen(["sleep", "600"])
        self.server = None
        self.daemons = []
        self.workers = []

    def serve(self, idle_s=600.0):
        """Starts the fork server by hand, and waits until it takes orders."""
        argv = [sys.executable, "-P", "-c", SERVE, str(self.path), str(self.spark.pid), str(idle_s)]
        self.server = subprocess.Popen(argv, env=self.env("none"))
        until(self.path.exists)

    def env(self, session, **more):
        own = {"SPARK_JOB_ARTIFACT_UUID": session, "SPARK_REUSE_WORKER": "1", "PYTHON_UNIX_DOMAIN_ENABLED": "True"}
        own |= {"PYTHON_WORKER_FACTORY_SOCK_DIR": str(self.sockets), "PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1"}
        return {name: value for name, value in (dict(os.environ) | own | more).items() if value is not None}

    def daemon(self, session="one", **more):
        """Starts a daemon in a session's directory; its process and the address at which it forks workers."""
        directory = self.directory / session
        directory.mkdir(exist_ok=True)
        (directory / f"{MODULE}.py").write_text(PROBE)
        process = subprocess.Popen(
            [self.program, "-m", "pyspark.daemon", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=directory,
            env=self.env(session, **more),
        )
        self.daemons.append(process)
        (length,) = struct.unpack("!i", process.stdout.read(4))
        return process, process.stdout.read(length).decode()

    def worker(self, address):
        """Has a worker forked."""
        self.workers.append(Worker(address))
        return self.workers[-1]

    def end(self):
        for worker in self.workers:
            worker.link.close()
        for process in self.daemons:
            process.stdin.close()
            process.wait(20)
            process.stdout.close()
        self.spark.kill()
        self.spark.wait()
        if self.server:
            assert self.server.wait(20) == 0
        self._short.cleanup()


class Worker:
    """A connection to a worker, and what it has seen."""

    def __init__(self, address):
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(address)
        with self.link.makefile("rb") as file:
            (self.pid,) = struct.unpack("!i", file.read(4))
            (length,) = struct.unpack("!i", file.read(4))
            self.seen = json.loads(file.read(length))
        assert self.seen["pid"] == self.pid


@pytest.fixture
def played(tmp_path):
    made = Played(tmp_path)
    yield made
    made.end()


def test_workers_of_each_session_are_forks_with_all_imports_and_their_sessions_directory_and_environment(played):
    played.serve()
    _, one = played.daemon("one")
    # As Spark starts workers that plan: directories twice, and no number of threads.
    twice = os.pathsep.join([PATHS, PATHS])
    _, two = played.daemon("two", PYTHONPATH=twice, OMP_NUM_THREADS=None)
    workers = [played.worker(one), played.worker(one), played.worker(two)]
    assert [worker.seen["pandas"] for worker in workers] == [True, True, True]
    assert [worker.seen["of"] for worker in workers] == ["one", "one", "two"]
    assert [Path(worker.seen["directory"]).name for worker in workers] == ["one", "one", "two"]
    assert len({number for worker in workers for number in worker.seen["random"]}) == 6
    daemons = {worker.seen["parent"] for worker in workers}
    assert len(daemons) == 2
    for daemon in daemons:
        assert f"PPid:\t{played.server.pid}\n" in Path(f"/proc/{daemon}/status").read_text()


def test_a_worker_ends_when_spark_asks_its_daemon_to_kill_it(played):
    played.serve()
    process, address = played.daemon()
    worker = played.worker(address)
    process.stdin.write(struct.pack("!i", worker.pid))
    process.stdin.flush()
    assert worker.link.recv(1) == b""


@pytest.mark.parametrize("ends", ["input", "terminated"])
def test_a_daemon_ends_with_its_input_or_its_starter_and_its_workers_with_it(played, ends):
    played.serve()
    process, address = played.daemon()
    worker = played.worker(address)
    if ends == "terminated":  # as Java destroys it, which then closes what it had open to it
        process.terminate()
        process.wait(20)
    process.stdin.close()
    assert worker.link.recv(1) == b""
    until(lambda: not Path(f"/proc/{worker.seen['parent']}").exists())
    process.wait(20)


def test_a_daemon_without_workers_ends_and_spark_can_start_another_one(played):
    played.serve(idle_s=0.2)
    process, address = played.daemon()
    worker = played.worker(address)
    worker.link.close()
    process.wait(20)
    with pytest.raises(OSError), socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
    assert played.worker(played.daemon()[1]).seen["pandas"]


@pytest.mark.parametrize("other", [{"PYTHONHASHSEED": "7"}, {"PYTHONPATH": "/elsewhere"}, {"OMP_NUM_THREADS": "2"}])
def test_python_is_executed_where_it_would_start_otherwise_than_the_fork_server_did(played, other):
    played.serve()
    _, address = played.daemon(**other)
    assert not played.worker(address).seen["pandas"]


def test_the_first_daemons_start_one_fork_server_for_both_which_ends_with_spark(played, tmp_path):
    script = tmp_path / "spark.py"
    script.write_text(STARTS)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / f"{MODULE}.py").write_text(PROBE)
    argv = [sys.executable, str(script), played.program, "-m", "pyspark.daemon", MODULE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    spark = subprocess.Popen(argv, cwd=tmp_path / "one", env=played.env("one"), **pipes)
    addresses = json.loads(spark.stdout.readline())
    assert [played.worker(address).seen["pandas"] for address in addresses] == [True, True]
    assert played.worker(played.daemon("two")[1]).seen["pandas"]
    spark.send_signal(signal.SIGKILL)
    spark.communicate()
    until(lambda: not played.path.exists())


def test_python_is_executed_where_no_fork_server_can_start(played, tmp_path):
    broken = tmp_path / "broken" / "trigmon"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise SystemExit(3)\n")
    _, address = played.daemon(PYTHONPATH=str(broken.parent))
    assert not played.worker(address).seen["pandas"]


def test_all_but_daemons_is_executed_as_ever(played):
    done = subprocess.run(
        [played.program, "-c", "import sys; print(sys.argv[1:])", "a b"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['a b']\n"


def test_the_program_is_its_owners_alone_and_python_itself_where_it_would_not_help(played, tmp_path):
    assert stat.S_IMODE(Path(played.program).stat().st_mode) == 0o700
    for python, master in ((sys.executable, "spark://host:7077"), ("/usr/bin/another", "local[2]")):
        assert worker_python.written(tmp_path / "none", NAME, python, master) == python
    assert not (tmp_path / "none").exists()
