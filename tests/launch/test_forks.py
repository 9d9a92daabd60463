"""A real keeper and a real fork server: what runs as a copy of it, and what becomes of runs when it fails."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.launch.keeper_machine import KeeperMachine, is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory

ROOT = Path(__file__).parents[2]
SERVER = [sys.executable, "-m", "trigmon.spark.warm.job_fork_server"]
# A session of Spark Connect asks nothing of its server before it is used: no test here has one.
REMOTE = "sc://localhost:1"


def environment(**more):
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SPARK_REMOTE": REMOTE} | more


class Warm:
    """A machine whose keeper has a fork server, ready."""

    def __init__(self, machine):
        self.machine = machine
        self.warm_up()

    def warm_up(self):
        self.machine.keeper.warm(SERVER, environment())
        self.server = self.machine.wait_for("warm", None)["pid"]

    def start(self, run_id, text, *words, asks=None, **more):
        """Runs a script; ``asks`` is what else the plan says."""
        script = self.machine.directory / f"{run_id}.py"
        script.write_text(text)
        plain = [sys.executable, "-m", "trigmon.spark.warm.job_process", script, *words]
        fork = {"fork": [str(word) for word in (script, *words)]}
        self.machine.start(run_id, *plain, asks=fork | (asks or {}), **environment() | more)

    def is_forked(self, run_id):
        pid = self.machine.wait_for("started", run_id)["pid"]
        return b"trigmon.spark.warm.job_fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()

    def ended(self, run_id):
        return self.machine.wait_for("ended", run_id)


@pytest.fixture(scope="module")
def kept_warm(tmp_path_factory):
    """One fork server for all tests that leave it alone."""
    machine = KeeperMachine(tmp_path_factory.mktemp("machine"))
    yield Warm(machine)
    machine.end()


@pytest.fixture
def warm(kept_warm):
    """The same, and nothing has been heard."""
    kept_warm.machine.heard = [frame for frame in kept_warm.machine.heard if frame["say"] == "hello"]
    kept_warm.machine.directory = Path(tempfile.mkdtemp(dir=kept_warm.machine.directory))
    return kept_warm


@pytest.fixture
def own(machine):
    """One of the test's own, to be killed."""
    return Warm(machine)


def test_a_forked_script_is_a_program_like_any_other(warm, tmp_path):
    text = """
        import os, sys
        print(sys.argv[1:], __name__, os.getcwd(), os.environ["OWN"], os.getsid(0) == os.getpid(), sys.path[0])
        print(sys.stdin.read() == "", os.umask(0) == 0o077, file=sys.stderr)
        sys.exit(7)
    """.replace("\n        ", "\n")
    warm.start("r", text, "a 'b'", working_directory=tmp_path, OWN="é")
    assert warm.ended("r")["status"] == 7
    directory = warm.machine.directory
    assert warm.machine.output("r") == f"[\"a 'b'\"] __main__ {tmp_path} é True {directory}\n"
    assert warm.machine.output("r", "stderr") == "True True\n"


def test_it_is_the_fork_servers_copy_and_the_keepers_child_and_its_claim_names_it(warm):
    warm.start("r", "import time; print('up', flush=True); time.sleep(60)")
    warm.machine.wait_for_output("r")
    pid = warm.machine.wait_for("started", "r")["pid"]
    assert warm.is_forked("r")
    assert warm.machine.children() == {pid, warm.server}
    assert run_directory.read(warm.machine.run("r"))["pid"] == pid


def test_its_session_is_the_one_it_was_given_and_its_queries_are_tagged(warm):
    text = "from pyspark.sql import SparkSession\ns = SparkSession.builder.getOrCreate()\n"
    text += "print(s.session_id, s.getTags())\n"
    session = "2a9c4f18-06c5-5d0c-8f52-1d7d2a40c3c9"
    warm.start("r", text, SPARK_REMOTE=f"{REMOTE}/;session_id={session}")
    assert warm.ended("r")["status"] == 0, warm.machine.output("r", "stderr")
    assert warm.machine.output("r") == f"{session} {{'r'}}\n"


def test_a_failing_script_shows_its_own_traceback_alone(warm):
    warm.start("r", "def go():\n    raise KeyError('here')\ngo()\n")
    assert warm.ended("r")["status"] == 1
    lines = warm.machine.output("r", "stderr").splitlines()
    assert lines[-1] == "KeyError: 'here'"
    assert not [line for line in lines if "trigmon/spark" in line]


def test_each_has_chances_and_an_environment_of_its_own(warm):
    text = "import os, random, numpy\nprint(random.random(), numpy.random.rand(), os.environ.get('ONLY'))"
    warm.start("r1", text, ONLY="first")
    warm.start("r2", text)
    for run_id in ("r1", "r2"):
        assert warm.ended(run_id)["status"] == 0
    first, second = (warm.machine.output(run_id).split() for run_id in ("r1", "r2"))
    assert first[2:] + second[2:] == ["first", "None"]
    assert not set(first) & set(second)


def test_what_it_leaves_at_its_end_is_done_as_by_any_python(warm):
    text = "import atexit, threading, time\natexit.register(print, 'last')\n"
    text += "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
    warm.start("r", text)
    assert warm.ended("r")["status"] == 0
    assert warm.machine.output("r").split() == ["thread", "last"]


def test_limits_and_time_limits_bind_it(warm):
    text = "from resource import *\nprint(getrlimit(RLIMIT_DATA)[0], getrlimit(RLIMIT_NOFILE))"
    warm.start("r1", text, asks={"memory_limit_mib": 4096, "open_files_limit": 99})
    warm.start("r2", "import time; time.sleep(60)", time_limit_s=0.5)
    warm.ended("r1")
    assert warm.machine.output("r1") == f"{4096 << 20} (99, 99)\n"
    ended = warm.ended("r2")
    assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.TIME_LIMIT)


def test_processor_time_that_is_used_up_ends_it_and_is_reported(warm):
    warm.start("r", "while True: pass", asks={"cpu_limit_s": 1})
    assert warm.ended("r")["why"] == protocol.cpu_limit(1)


def test_one_that_is_to_end_before_it_has_begun_ends(own):
    os.kill(own.server, signal.SIGSTOP)
    own.start("r", "import time; time.sleep(60)")
    until((own.machine.run("r") / "claim").exists)
    own.machine.keeper.stop("r", protocol.CANCELLED, 20)
    os.kill(own.server, signal.SIGCONT)
    ended = own.ended("r")
    assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.CANCELLED)


def test_what_waits_for_a_fork_server_that_dies_is_started_plainly_and_once(own):
    os.kill(own.server, signal.SIGSTOP)
    for number in range(3):
        own.start(f"r{number}", "import sys; print(sys.orig_argv[2])")
    until((own.machine.run("r2") / "claim").exists)
    os.kill(own.server, signal.SIGKILL)
    for number in range(3):
        assert own.ended(f"r{number}")["status"] == 0
        assert own.machine.output(f"r{number}") == "trigmon.spark.warm.job_process\n"


def test_what_was_to_end_while_it_waited_ends_where_it_is_started_plainly(own):
    os.kill(own.server, signal.SIGSTOP)
    own.start("r", "import time; time.sleep(60)")
    until((own.machine.run("r") / "claim").exists)
    own.machine.keeper.stop("r", protocol.CANCELLED, 60)
    own.machine.start("s", "/bin/true")  # behind it the stop has been heard
    own.ended("s")
    os.kill(own.server, signal.SIGKILL)
    ended = own.ended("r")
    assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.CANCELLED)


def test_another_fork_server_comes_when_one_has_died(own):
    os.kill(own.server, signal.SIGKILL)
    own.machine.heard.clear()
    assert own.machine.wait_for("warm", None)["pid"] != own.server
    own.start("r", "import time; time.sleep(60)")
    assert own.is_forked("r")


def test_one_whose_keeper_dies_before_it_begins_runs_nothing_and_its_server_goes(own):
    os.kill(own.server, signal.SIGSTOP)
    own.start("r", "print('never')")
    until((own.machine.run("r") / "claim").exists)
    own.machine.keeper_is_killed()
    os.kill(own.server, signal.SIGCONT)
    until(lambda: is_gone(own.server))
    output = own.machine.run("r") / "stdout"
    assert not output.exists() or output.read_text() == ""  # the keeper may have died before it made the file


def test_one_that_runs_when_its_keeper_dies_runs_on_and_is_found(own):
    own.start("r", "import time; print('up', flush=True); time.sleep(60)")
    own.machine.wait_for_output("r")
    pid = own.machine.wait_for("started", "r")["pid"]
    own.machine.keeper_is_killed()
    found, descriptor = run_directory.open_program(run_directory.read(own.machine.run("r")), "r")
    os.close(descriptor)
    assert found == pid
    os.killpg(pid, signal.SIGKILL)


class TestHelpers:
    def test_a_helper_whose_lease_is_over_is_ended(self, machine):
        machine.start("h", "/bin/sleep", "60", lease_s=0.5)
        ended = machine.wait_for("ended", "h")
        assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.KEEPER_ENDED)

    def test_it_is_kept_as_long_as_that_is_repeated(self, machine):
        machine.start("h", "/bin/sleep", "60", lease_s=2)
        machine.wait_for("started", "h")
        machine.keeper.keep("h", 60)
        machine.start("r", "/bin/sleep", "3")
        machine.wait_for("ended", "r")
        assert not [frame for frame in machine.heard if frame["say"] == "ended" and frame["run"] == "h"]
        machine.keeper.stop("h", protocol.STOPPED, 0)

    def test_it_is_not_ended_under_the_hands_of_a_program(self, machine):
        machine.start("r", "/bin/sleep", "2")
        machine.start("h", "/bin/sleep", "60", lease_s=0.5)
        assert machine.wait_for("ended", "h")["end_ms"] >= machine.wait_for("ended", "r")["end_ms"]

    def test_it_ends_with_its_keeper_when_the_last_monitor_goes_in_order(self, machine):
        machine.start("h", "/bin/sleep", "60", lease_s=600)
        pid, keeper = machine.wait_for("started", "h")["pid"], machine.parent
        machine.keepers.close()
        until(lambda: is_gone(pid))
        os.waitpid(keeper, 0)
