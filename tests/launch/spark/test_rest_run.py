"""The supervisor of a driver on a cluster, as a process, against a master that fails in every way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.launch.spark.masters import Master
from tests.waiting import until
from trigmon.launch.spark.cluster import driver_journal
from trigmon.launch.spark.cluster.driver_journal import DriverRecord

RUN = "0123456789abcdef"


@pytest.fixture
def master():
    one = Master()
    yield one
    one.close()


class Supervisors:
    """Starts supervisors of one run, their output in files as a keeper does."""

    def __init__(self, directory, until_end):
        self.directory = directory
        self._until_end = until_end
        self.number = 0

    def start(self, master, *options, arguments=("app.py", "1"), env=None, page=True, **more):
        self.number += 1
        out = self._until_end.enter_context((self.directory / f"stdout{self.number}").open("wb"))
        err = self._until_end.enter_context((self.directory / f"stderr{self.number}").open("wb"))
        pages = ["--page", master.address] if page else []
        argv = [
            sys.executable,
            "-m",
            "trigmon.launch.spark.cluster.rest_supervisor",
            "--run",
            RUN,
            "--rest",
            master.address,
            *pages,
        ]
        argv += [*options, "--", *arguments]
        process = subprocess.Popen(argv, stdout=out, stderr=err, env=os.environ | (env or {}), **more)
        self._until_end.callback(process.wait)
        self._until_end.callback(process.kill)
        return process

    def record(self):
        """Returns the record of the newest supervisor; one that takes over lacks the first line, which is added."""
        text = (self.directory / f"stdout{self.number}").read_text()
        return DriverRecord(
            text if " asking " in text[:40] else f"2026-11-21T20:01:02.123Z asking http://h:1 1\n{text}"
        )

    def errors(self):
        return (self.directory / f"stderr{self.number}").read_text()


@pytest.fixture
def supervisors(tmp_path):
    with ExitStack() as until_end:
        yield Supervisors(tmp_path, until_end)


def test_it_submits_with_what_it_was_given_writes_the_id_at_once_and_ends_with_the_driver(master, supervisors):
    options = ["--property", "spark.app.name=A=B", "--variable", "GIVEN", "--variable", "MISSING"]
    one = supervisors.start(master, *options, arguments=("--master", "spark://h:1", "app.py"), env={"GIVEN": "é x"})
    driver = until(lambda: supervisors.record().driver)
    body = master.drivers[driver]["body"]
    assert body["mainClass"] == "org.apache.spark.deploy.SparkSubmit"
    assert body["appArgs"] == ["--master", "spark://h:1", "app.py"]
    assert body["sparkProperties"] == {"spark.app.name": "A=B", "spark.trigmon.run": RUN}
    assert body["environmentVariables"] == {"GIVEN": "é x"}
    until(lambda: supervisors.record().state == "RUNNING h:1")
    master.end(driver, "FINISHED")
    assert one.wait(20) == 0
    assert supervisors.record().over == "FINISHED"


@pytest.mark.parametrize("state", ["FAILED", "ERROR", "KILLED"])
def test_a_driver_that_did_not_finish_is_a_failure_with_the_last_lines_of_its_log(master, supervisors, state):
    one = supervisors.start(master)
    master.end(until(lambda: supervisors.record().driver), state)
    assert one.wait(20) == 1
    assert supervisors.record().over == state
    assert "a last word" in supervisors.errors()


def test_ended_it_has_the_driver_killed(master, supervisors):
    one = supervisors.start(master)
    driver = until(lambda: supervisors.record().driver)
    one.send_signal(signal.SIGTERM)
    assert one.wait(20) == 143
    assert master.drivers[driver]["state"] == "KILLED"
    assert supervisors.record().over == "KILLED"


def test_ended_while_the_driver_waits_for_a_worker_it_has_it_killed(master, supervisors):
    master.waits = True
    one = supervisors.start(master)
    until(lambda: supervisors.record().state == "SUBMITTED")
    one.send_signal(signal.SIGTERM)
    assert one.wait(20) == 143
    assert [each["state"] for each in master.drivers.values()] == ["KILLED"]


def test_killed_and_started_again_it_attaches_to_the_driver_it_wrote_down(master, supervisors):
    first = supervisors.start(master)
    driver = until(lambda: supervisors.record().driver)
    first.kill()
    first.wait()
    second = supervisors.start(master, "--driver", driver)
    until(lambda: supervisors.record().state)
    master.end(driver, "FINISHED")
    assert second.wait(20) == 0
    assert master.count("create") == 1


def test_an_answer_that_was_lost_submits_no_second_driver(master, supervisors):
    master.add("another run")
    master.lose["create"] = 1
    one = supervisors.start(master)
    driver = until(lambda: supervisors.record().driver)
    assert master.drivers[driver]["run"] == RUN
    master.end(driver, "FINISHED")
    assert one.wait(20) == 0
    assert master.count("create") == 1


def test_killed_before_the_answer_it_finds_the_driver_by_the_runs_id_and_no_other(master, supervisors):
    other, ours = master.add("another run"), master.add(RUN)
    one = supervisors.start(master, "--asked", "1")
    until(lambda: supervisors.record().driver == ours)
    one.send_signal(signal.SIGTERM)
    assert one.wait(20) == 143
    assert (master.drivers[other]["state"], master.drivers[ours]["state"]) == ("RUNNING", "KILLED")
    assert master.count("create") == 0


def test_asked_and_never_submitted_it_submits(master, supervisors):
    master.add("another run")
    one = supervisors.start(master, "--asked", "1")
    driver = until(lambda: supervisors.record().driver)
    assert master.drivers[driver]["run"] == RUN
    master.end(driver, "FINISHED")
    assert one.wait(20) == 0


def test_what_cannot_be_distinguished_from_a_driver_of_ours_keeps_it_from_submitting_a_second(master, supervisors):
    master.end(master.add("another run"), "SUBMITTED")  # no worker, so no log tells whose it is
    one = supervisors.start(master, "--asked", "1", "--patience", "1")
    assert one.wait(20) == 75
    assert supervisors.record().over.startswith("UNKNOWN whether a driver was submitted")
    assert master.count("create") == 0


def test_a_master_that_is_not_there_is_waited_for_and_then_it_is_a_failure(supervisors, master):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        argv = ["--patience", "1", "--rest", address]
        master.is_standby = True
        one = supervisors.start(master, *argv)
        assert one.wait(20) == 1
    assert not supervisors.record().may_run
    assert master.drivers == {}


def test_of_several_masters_the_one_in_office_is_asked(supervisors, master):
    standby = Master()
    try:
        standby.is_standby = True
        one = supervisors.start(standby, "--rest", master.address, "--page", master.address)
        driver = until(lambda: supervisors.record().driver)
        master.end(driver, "FINISHED")
        assert one.wait(20) == 0
        assert standby.drivers == {}
    finally:
        standby.close()


def test_a_master_that_is_lost_for_good_leaves_it_unknown(supervisors, master):
    one = supervisors.start(master, "--patience", "1")
    until(lambda: supervisors.record().state)
    master.is_silent = True
    assert one.wait(30) == 75
    assert supervisors.record().over.startswith(f"{driver_journal.UNKNOWN} the master has not answered for 1 s")
    assert "may run on" in supervisors.errors()


def test_a_master_that_is_lost_for_a_while_is_waited_for(supervisors, master):
    one = supervisors.start(master)
    driver = until(lambda: supervisors.record().driver)
    before = master.count("status")
    master.lose["status"] = 3
    until(lambda: not master.lose["status"])
    until(lambda: master.count("status") > before + 4)
    master.end(driver, "FINISHED")
    assert one.wait(20) == 0


def test_a_driver_that_the_master_forgot_is_unknown(supervisors, master):
    one = supervisors.start(master, "--patience", "1")
    driver = until(lambda: supervisors.record().driver)
    del master.drivers[driver]
    assert one.wait(20) == 75
    assert f"does not know {driver}" in supervisors.record().over


def test_only_to_kill_it_kills_what_was_asked_for_and_says_when_it_could_not(supervisors, master):
    driver = master.add(RUN)
    assert supervisors.start(master, "--kill", "--driver", driver).wait(20) == 143
    assert supervisors.record().over == "KILLED"
    assert supervisors.start(master, "--kill", "--asked", "1").wait(20) == 143  # found by the run's id, and over
    gone = supervisors.start(master, "--kill", "--driver", "driver-1-1")
    assert gone.wait(20) == 75


def test_a_refusal_is_a_failure_with_the_masters_words(supervisors, master):
    master.token = "secret"
    one = supervisors.start(master)
    assert one.wait(20) == 1
    assert "refused" in (supervisors.directory / "stdout1").read_text()
    assert "403" in (supervisors.directory / "stdout1").read_text()


def test_the_secret_of_its_name_opens_a_protected_master(supervisors, master, tmp_path):
    master.token = "a.b.c"
    (tmp_path / "spark-rest-token").write_text("a.b.c\n")
    one = supervisors.start(master, env={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    master.end(until(lambda: supervisors.record().driver), "FINISHED")
    assert one.wait(20) == 0
    assert "a.b.c" not in (tmp_path / "stdout1").read_text() + supervisors.errors()
