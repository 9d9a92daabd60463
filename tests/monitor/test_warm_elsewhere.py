"""Warm runs on a real Spark Connect server that somebody else keeps.

One server for all tests of the file, in the order they stand: the last one does away with it, and has it come again.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.daemons import queue_managers
from tests.monitor.warm_machine import ENDLESS, WarmMachine, begin_endless, ended, is_left_alone
from tests.spark.connect_server import ConnectServer
from tests.waiting import until
from trigmon.mq.calls import CancelRun

pytestmark = [pytest.mark.spark]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = ConnectServer(tmp_path_factory.mktemp("server"))
    try:
        yield one.start()
    finally:
        one.kill()


@pytest.fixture(scope="module")
def machine(server, tmp_path_factory):
    settings = {"connect.runs": 2, "monitor.grace_s": 2, "connect.deadline_s": 30}
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = WarmMachine(make, tmp_path_factory.mktemp("warm"), **settings)
        made.job(spark_master=server.url)
        made.job(ENDLESS, "endless", spark_master=server.url)
        try:
            yield made
        finally:
            made.end()


def test_a_run_works_there_and_its_session_is_released_and_no_server_is_kept_for_it(machine, server):
    machine.qm.put("JOB.Q", b"go")
    (run,) = machine.wait_for_runs(state="exited")
    assert run["exit_status"] == 0, run["stderr_tail"]
    line = machine.wait_for_line(run["run_id"], "rows")
    assert (line["rows"], line["tags"]) == (10, [run["run_id"]])
    assert is_left_alone(machine, server, run["run_id"])
    assert list(machine.shelf.all_servers()) == []
    assert server.server.token not in machine.daemon.log.read_text()


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_one_that_is_cancelled_or_killed_leaves_no_query_and_no_session_there(machine, server, how):
    run = begin_endless(machine, server)
    if how == "killed":
        os.kill(run["pid"], signal.SIGKILL)
    else:
        machine.qm.call(CancelRun(run_id=run["run_id"]))
    assert ended(machine, run["run_id"])["state"] == {"killed": "exited"}.get(how, how)
    assert is_left_alone(machine, server, run["run_id"])


@pytest.mark.slow
def test_one_that_dies_ends_its_runs_and_is_reported_and_others_wait_until_it_is_there_again(machine, server):
    run = begin_endless(machine, server)
    server.kill()
    machine.daemon.wait_for_event("external Spark Connect server does not answer", 30)
    machine.qm.put("JOB.Q", b"go")
    waits = until(lambda: next((run for run in machine.runs(state="due") if run["why"]), None))
    reported = server.url.partition("/;")[0]
    assert waits["why"].startswith(f"{reported} does not answer: ")
    lost = ended(machine, run["run_id"])
    assert lost["exit_status"] != 0
    assert (
        f"the loss of its Spark Connect server: {reported} does not answer" in lost["why"]
        or "refused" in lost["stderr_tail"]
    )
    server.start()
    assert ended(machine, waits["run_id"])["exit_status"] == 0
    assert is_left_alone(machine, server, waits["run_id"])
    assert not machine.shelf.session(run["run_id"])


def test_the_monitor_leaves_no_session_there(machine, server):
    machine.daemon.stop()
    assert until(lambda: machine.sessions(server) == -1)
