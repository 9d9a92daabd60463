"""How a monitor keeps its servers: real processes of a real keeper, which are no Spark, so that it takes no time."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.launch.conftest import make_order
from tests.launch.keeper_machine import KeeperMachine
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.launch.launch_plan import LaunchPlan, Session
from trigmon.launch.spark.warm import attendant
from trigmon.launch.spark.warm.connect_server import Serving, Shelf
from trigmon.monitor.spark_servers import external_servers, server_checks, server_manager, server_start
from trigmon.monitor.spark_servers.server_manager import Servers
from trigmon.monitor.spark_servers.session_admission import SessionAdmission, Waiting

ROOT = Path(__file__).parents[2]
ENDS_WELL = "#!/bin/sh\nexec sleep 600\n"


class Monitor:
    """As much of a monitor as keeps servers; ``settings`` are those of connect."""

    def __init__(self, directory, **settings):
        self.directory = directory
        self.settings = Serving(**{"runs": 3, "master": "local", "deadline_s": 20.0, **settings})
        self.machine = KeeperMachine(directory)
        self.come()

    def come(self, *, forks=False, **settings):
        """Another monitor of the same name, with other settings."""
        self.settings = replace(self.settings, **settings)
        self.warm = SessionAdmission(Shelf(self.directory), "me", self.settings, "QM1")
        self.servers = Servers(self.warm, self.directory, "QM1", self.keeper, self.environment, forks=forks)

    def keeper(self, what):
        what(self.machine.keeper)

    def environment(self, more):
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TRIGMON_TEST_ANSWERS": str(self.directory),
            **more,
        }

    def run(self, run_id, remote=""):
        """Asks for a run's start; whether it may."""
        session = Session(remote=remote, master="" if remote else "local")
        plan = LaunchPlan(argv=["x"], environment={}, session=session)
        return self.warm.admit(Waiting(replace(make_order(), run_id=run_id), plan)) is not None

    def begin(self, run_id):
        """A run that works in the server there is; which that is."""
        if not self.run(run_id):
            (ready,) = until(self.warm.ready)
            self.warm.admit(ready)
        return self.warm.shelf.session(run_id).server_id

    def pid(self, server_id):
        return until(lambda: (run_directory.read(self.warm.shelf.directory(server_id)) or {}).get("pid"))

    def asked(self, do):
        lines = (self.directory / "asked").read_text().splitlines() if (self.directory / "asked").exists() else []
        return [line for line in map(json.loads, lines) if line["do"] == do]

    def there(self):
        return {each.server_id for each in self.warm.shelf.all_servers()}

    def end(self):
        self.servers.stop(0)
        for server_id in self.there():
            (self.warm.shelf.servers / f"{server_id}.json").unlink()
        self.machine.keepers.close()


@pytest.fixture
def monitor(tmp_path, monkeypatch):
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(ENDS_WELL)
    submit.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(attendant, "ATTENDING", "tests.monitor.answering")
    monkeypatch.setattr(server_checks, "_LEAST_AGE_S", 0.0)
    monkeypatch.setattr(server_checks, "_CHECK_S", 0.1)
    monkeypatch.setattr(server_checks, "_CHECK_S_WHEN_IDLE", 0.1)
    monkeypatch.setattr(external_servers, "_CHECK_S", 0.1)
    monkeypatch.setattr(external_servers, "_CHECK_S_WHEN_IDLE", 0.1)
    made = []

    def make(**settings):
        made.append(Monitor(tmp_path, **settings))
        made[0].submit = submit
        return made[0]

    yield make
    for each in made:
        each.end()


def is_gone(pid):
    return run_directory.start_ticks(pid) == 0


def test_a_server_is_started_for_the_run_that_waits_and_heated_and_asked_how_it_is(monitor):
    machine = monitor()
    assert not machine.run("1")
    assert until(machine.warm.ready)
    assert until(lambda: machine.asked("heat"))[0]["queue"] == "SYSTEM.DEFAULT.LOCAL.QUEUE"
    until(lambda: len(machine.asked("check")) >= 2)
    assert len(machine.there()) == 1


def test_none_is_there_where_nobody_needs_one(monitor):
    machine = monitor()
    machine.warm.expect([])
    assert machine.there() == set()
    assert machine.servers._thread is None


def test_one_that_ends_is_replaced_and_its_runs_are_to_end(monitor):
    machine = monitor()
    machine.warm.expect([""])
    first = machine.begin("1")
    os.kill(machine.pid(first), signal.SIGKILL)
    until(lambda: machine.warm.server_loss("1"))
    machine.warm.ended("1")
    assert machine.begin("2") != first
    until(lambda: machine.warm.shelf.session("1") is None)
    assert machine.warm.shelf.server(first) is None


def test_one_that_does_not_answer_in_time_is_killed_and_replaced(monitor):
    machine = monitor(deadline_s=1.0)
    machine.warm.expect([""])
    first = machine.begin("1")
    pid = machine.pid(first)
    (machine.directory / "silent").write_text("check")
    until(lambda: machine.warm.server_loss("1"))
    until(lambda: is_gone(pid))
    (machine.directory / "silent").unlink()
    machine.warm.ended("1")
    assert machine.begin("2") != first


@pytest.mark.parametrize("changed", [{"rss_limit": 1}, {"max_age_s": 0.001}, {"memory": "2g"}])
def test_one_that_is_too_large_or_old_or_made_otherwise_ends_when_its_last_run_has_and_takes_no_other(monitor, changed):
    machine = monitor()
    machine.warm.expect([""])
    old = machine.begin("1")
    machine.servers.stop(0)
    machine.come(**changed)
    machine.warm.take_up("1")
    machine.warm.expect([""])
    pid = machine.pid(old)

    def another():
        return machine.begin("2") != old or machine.warm.ended("2")

    until(another)
    assert not is_gone(pid)
    machine.warm.ended("1")
    until(lambda: is_gone(pid))


def test_one_that_does_not_start_is_tried_again_and_what_hinders_it_is_reported(monitor, monkeypatch):
    monkeypatch.setattr(server_start, "_FIRST_PAUSE_S", 0.1)
    machine = monitor()
    machine.submit.write_text("#!/bin/sh\nexit 1\n")
    assert not machine.run("1")
    until(lambda: [why for _, why in machine.warm.reasons() if why.endswith("the last one: it did not start")])
    machine.submit.write_text(ENDS_WELL)
    assert until(machine.warm.ready)


def test_one_that_nobody_needs_any_more_ends(monitor, monkeypatch):
    monkeypatch.setattr(server_manager, "_UNWANTED_S", 0.5)
    machine = monitor()
    pid = machine.pid(machine.begin("1"))
    machine.warm.ended("1")
    until(lambda: is_gone(pid))
    until(lambda: machine.there() == set())


def test_the_next_monitor_goes_on_with_the_server_it_finds_and_heats_it_no_second_time(monitor):
    machine = monitor()
    machine.warm.expect([""])
    first = machine.begin("1")
    until(lambda: machine.asked("heat"))
    machine.servers.stop(0)
    machine.machine.monitor_is_killed()
    machine.come()
    assert machine.begin("2") == first
    assert len(machine.asked("heat")) == 1


def test_the_next_monitor_clears_away_a_server_that_ended_meanwhile_with_its_sessions(monitor):
    machine = monitor()
    machine.warm.expect([""])
    first = machine.begin("1")
    pid = machine.pid(first)
    machine.servers.stop(0)
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid))
    machine.come()
    machine.warm.sweep("me")
    until(lambda: first not in machine.there())
    until(lambda: list(machine.warm.shelf.all_sessions()) == [])


def test_a_session_is_released_once_at_once_and_once_more_behind_it(monitor, monkeypatch):
    monkeypatch.setattr("trigmon.monitor.spark_servers.session_admission._AGAIN_S", 0.2)
    machine = monitor()
    machine.warm.expect([""])
    machine.begin("1")
    given = machine.warm.shelf.session("1")
    machine.warm.ended("1")
    until(lambda: machine.warm.shelf.session("1") is None)
    reported = [(each["user_id"], each["session_id"]) for each in machine.asked("release")]
    assert reported == [(given.user_id, given.session_id)] * 2


def test_an_attendant_that_dies_is_no_fault_of_the_server(monitor):
    machine = monitor()
    machine.warm.expect([""])
    first = machine.begin("1")
    before = len(machine.asked("check"))
    os.kill(machine.servers._attendant._process.pid, signal.SIGKILL)
    until(lambda: len(machine.asked("check")) >= before + 2)
    assert machine.begin("2") == first


def test_what_hinders_for_a_while_hinders_no_longer(monitor, monkeypatch):
    machine, made, troubles = (
        monitor(),
        server_start.connect_server.made,
        [OSError(24, "Too many open files"), ValueError("no JSON")],
    )

    def refused(*given):
        if troubles:
            raise troubles.pop()
        return made(*given)

    monkeypatch.setattr(server_start, "_FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(server_manager, "_AFTER_ERROR_S", 0.05)
    monkeypatch.setattr(server_start.connect_server, "made", refused)
    assert machine.begin("1") in machine.there()
    assert not troubles


class TestElsewhere:
    def test_it_is_asked_at_once_and_then_more_often_where_runs_are_at_work_or_it_was_silent(self):
        other = external_servers._ExternalServer("sc://far", 50.0)
        assert other.due_at(0) == 0.0
        other.answered_at = 100.0
        assert (other.due_at(0), other.due_at(1)) == (110.0, 102.0)
        other.silent_since = 99.0
        assert other.due_at(0) == 102.0

    FAR = "sc://far/;token=secret"

    def test_it_is_asked_in_a_session_of_its_own_which_is_released_when_nobody_needs_it(self, monitor, monkeypatch):
        monkeypatch.setattr(external_servers, "_UNWANTED_S", 0.2)
        machine = monitor()
        machine.warm.expect([self.FAR])
        first = until(lambda: machine.asked("check"))[0]
        session_id = first["remote"].partition("session_id=")[2]
        assert first["remote"].startswith(f"{self.FAR};user_id=trigmon-attendant;session_id=")
        machine.warm.expect([])
        released = until(lambda: machine.asked("release"))
        assert [(it["url"], it["session_id"]) for it in released] == [(self.FAR, session_id)]
        assert until(lambda: machine.asked("forget"))[0]["remote"] == first["remote"]
        assert {each["remote"] for each in machine.asked("check")} == {first["remote"]}
        assert machine.there() == set()

    def test_the_end_of_its_monitor_leaves_no_session_there(self, monitor):
        machine = monitor()
        machine.warm.expect([self.FAR])
        until(lambda: machine.warm.admit(waiting("1", self.FAR)))
        machine.warm.ended("1")
        until(lambda: machine.warm.shelf.session("1") is None)
        machine.servers.stop(20)
        machine.come()
        assert len({each["session_id"] for each in machine.asked("release")}) == 2

    @pytest.mark.parametrize("how", ["silent", "refused"])
    def test_one_that_does_not_answer_gets_no_run_and_its_runs_are_to_end(self, monitor, how):
        machine = monitor(deadline_s=1.0)
        until(lambda: machine.run("1", self.FAR))
        (machine.directory / how).write_text("check release")
        why = until(lambda: machine.warm.server_loss("1"))
        assert why.startswith("sc://far does not answer: ")
        machine.warm.ended("1")
        assert not machine.run("2", self.FAR)
        released = len(machine.asked("release"))
        until(lambda: len(machine.asked("check")) >= 4)
        assert len(machine.asked("release")) <= released + 1  # what was under way
        (machine.directory / how).unlink()
        until(machine.warm.ready)
        until(lambda: machine.warm.shelf.session("1") is None)


def waiting(run_id, remote):
    return Waiting(
        replace(make_order(), run_id=run_id), LaunchPlan(argv=["x"], environment={}, session=Session(remote=remote))
    )


class TestForks:
    """The keeper's fork server, which is a real one."""

    def test_it_goes_with_the_last_server_that_its_copies_could_be_clients_of(self, monitor, monkeypatch):
        monkeypatch.setattr(server_manager, "_UNWANTED_S", 0.5)
        machine = monitor()
        machine.come(forks=True)
        machine.begin("1")
        pid = machine.machine.wait_for("warm", None)["pid"]
        machine.warm.ended("1")
        until(lambda: is_gone(pid))
        machine.machine.heard.clear()
        machine.begin("2")
        assert machine.machine.wait_for("warm", None)["pid"] != pid
