"""``trigmon run`` with the monitor as its child."""

import os
import signal
from pathlib import Path

import pytest

from tests.daemons import define
from tests.processes import is_there
from tests.waiting import until
from trigmon.mq.calls import Display, Runs


def monitors(one):
    """How many programs have the default initiation queue open for input."""
    with one.connect() as qm:
        rows = qm.call(Display(object_type="QLOCAL", name="SYSTEM.DEFAULT.INITIATION.QUEUE")).rows
    return rows[0]["open_input_count"]


@pytest.fixture
def with_monitor(daemon):
    one = daemon(with_monitor=True)
    until(lambda: monitors(one) == 1)
    return one


def test_the_monitor_serves_beside_the_queue_manager_and_ends_with_it_in_order(with_monitor):
    pid = with_monitor.wait_for_event("monitor started")["pid"]
    assert is_there(pid)
    assert with_monitor.stop() == 0
    assert not is_there(pid)


def test_a_monitor_that_dies_is_started_again(with_monitor):
    pid = with_monitor.wait_for_event("monitor started")["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: len(with_monitor.events("monitor started")) == 2)
    until(lambda: monitors(with_monitor) == 1)
    (row,) = with_monitor.events("the monitor ended")
    assert row["exit_status"] == -signal.SIGKILL


def test_a_killed_daemon_leaves_no_monitor_behind(with_monitor):
    pid = with_monitor.wait_for_event("monitor started")["pid"]
    with_monitor.kill()
    until(lambda: not is_there(pid))


def test_a_daemon_with_stop_runs_waits_for_its_monitor_to_end_the_programs(daemon):
    one = daemon(with_monitor=True, settings={"monitor.stop_runs": "true", "monitor.grace_s": "0.5"})
    until(lambda: monitors(one) == 1)
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="sh -c \"trap '' TERM; while :; do sleep 0.1; done\"")
        trigger = {"trigger_control": "on", "trigger_type": "every"}
        define(qm, "Q", process_name="P", initiation_q_name="SYSTEM.DEFAULT.INITIATION.QUEUE", **trigger)
        qm.put("Q", b"one")
        until(lambda: qm.call(Runs(where={"state": "started"})).rows)
        (run,) = qm.call(Runs()).rows
        until(lambda: Path(f"/proc/{run['pid']}/task/{run['pid']}/children").read_text())  # so it is deaf by now
    assert one.stop() == 0
    assert not is_there(run["pid"])
    one.start()
    with one.connect() as qm:
        (run,) = qm.call(Runs()).rows
    assert run["why"] == "ended by its monitor's stop: killed by SIGKILL"
