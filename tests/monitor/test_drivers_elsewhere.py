"""Runs whose drivers are on a cluster: whatever dies here, no driver is submitted twice, and none runs on unseen."""

from __future__ import annotations

import os
import signal

import pytest

from tests.launch.spark.masters import Master
from tests.processes import parent_of
from tests.waiting import until
from trigmon.mq.calls import CancelRun


@pytest.fixture
def master():
    one = Master()
    yield one
    one.close()


@pytest.fixture
def driver(stage, master):
    """A monitor, and a driver that it has just had submitted."""

    def began(**process):
        conf = f"spark.master.ui.port={master.address.rpartition(':')[2]}"
        known = {"spark_start": "rest", "spark_master": master.address, "spark_conf": conf, "retry": 0}
        q_name = stage.queue("/jobs/job.py", appl_type="spark", **known | process)
        stage.q_name = q_name
        stage.qm.put(q_name, b"go")
        return until(lambda: next(iter(master.drivers), ""))

    return began


def record(stage):
    (run,) = stage.wait_for(q_name=stage.q_name)
    return run


def ended(stage):
    states = ("exited", "unknown", "cancelled", "failed")
    return until(lambda: run if (run := record(stage))["state"] in states else None)


def started(stage):
    """The run, once its driver is on record: that is noted while it runs."""
    return until(lambda: run if (run := record(stage))["pid"] and run.get("driver_id") else None)


def test_a_run_ends_as_its_driver_does_and_names_it(stage, master, driver):
    stage.watch()
    submitted = driver()
    master.end(submitted, "FINISHED")
    run = ended(stage)
    assert (run["state"], run["exit_status"], run["driver_id"]) == ("exited", 0, submitted)


def test_the_time_limit_of_a_run_kills_its_driver(stage, master, driver):
    stage.watch(grace_s=10)
    submitted = driver(time_limit_s=1)
    run = ended(stage)
    assert "its time limit of 1 s" in run["why"]
    assert master.drivers[submitted]["state"] == "KILLED"


def test_a_driver_whose_supervisor_is_killed_again_and_again_is_found_again_and_submitted_once(stage, master, driver):
    stage.watch()
    submitted = driver()
    pids = [started(stage)["pid"]]
    for _ in range(3):
        os.kill(pids[-1], signal.SIGKILL)
        pids.append(until(lambda: pid if (pid := record(stage)["pid"]) not in pids else 0))
    master.end(submitted, "FINISHED")
    run = ended(stage)
    assert (run["state"], run["exit_status"]) == ("exited", 0)
    assert list(master.drivers) == [submitted]


def test_a_supervisor_that_cannot_be_kept_alive_is_given_up_and_its_driver_named(stage, master, driver):
    stage.watch()
    submitted = driver()
    pids = [started(stage)["pid"]]
    for _ in range(4):
        os.kill(pids[-1], signal.SIGKILL)
        pids.append(until(lambda: run["pid"] if (run := record(stage))["pid"] not in pids or run["end_ms"] else 0))
    run = ended(stage)
    assert run["state"] == "unknown"
    assert f"{submitted} may run on" in run["why"]


def test_with_keeper_and_supervisor_killed_together_the_driver_is_found_again(stage, master, driver):
    stage.watch()
    submitted = driver()
    pid = started(stage)["pid"]
    os.kill(parent_of(pid), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    until(lambda: record(stage)["pid"] != pid)
    master.end(submitted, "FINISHED")
    run = ended(stage)
    assert (run["state"], run["exit_status"], list(master.drivers)) == ("exited", 0, [submitted])


def test_how_a_driver_ended_is_known_though_nobody_saw_its_supervisor_end(stage, master, driver):
    stage.watch()
    submitted = driver()
    pid = started(stage)["pid"]
    os.kill(parent_of(pid), signal.SIGKILL)
    master.end(submitted, "FAILED")
    run = ended(stage)
    assert (run["state"], run["exit_status"]) == ("exited", 1)


def test_a_driver_that_cannot_be_killed_in_time_leaves_the_run_unknown_and_is_named(stage, master, driver, monkeypatch):
    monkeypatch.setattr("trigmon.launch.spark.cluster.rest_start.KILL_S", 1)
    stage.watch(grace_s=0.5)
    submitted = driver()
    until(lambda: started(stage))
    until(lambda: master.count("status"))
    master.is_silent = True
    stage.qm.call(CancelRun(run_id=record(stage)["run_id"], reason="no more"))
    run = ended(stage)
    assert run["state"] == "cancelled"
    assert f"{submitted} was not killed in 1 s" in run["why"]


def test_what_was_asked_for_without_an_answer_is_found_by_the_next_supervisor(stage, master, driver):
    master.lose["create"] = 1
    stage.watch()
    submitted = driver()
    pid = until(lambda: record(stage)["pid"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: record(stage)["pid"] != pid)
    master.end(submitted, "FINISHED")
    assert ended(stage)["exit_status"] == 0
    assert list(master.drivers) == [submitted]


def test_a_run_that_was_seen_to_again_keeps_to_its_time_limit_and_names_it(stage, master, driver):
    stage.watch(grace_s=10)
    submitted = driver(time_limit_s=6)
    pid = started(stage)["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: record(stage)["pid"] != pid)
    run = ended(stage)
    assert "its time limit of 6 s" in run["why"]
    assert master.drivers[submitted]["state"] == "KILLED"


def test_a_monitor_that_stops_its_runs_has_their_drivers_killed(stage, master, driver):
    stop = stage.watch(grace_s=10)
    submitted = driver()
    started(stage)
    stop()
    run = ended(stage)
    assert "its monitor's stop" in run["why"]
    assert master.drivers[submitted]["state"] == "KILLED"
