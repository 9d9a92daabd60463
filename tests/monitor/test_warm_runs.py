"""Warm runs on a real Spark Connect server: how they start, what is left of them, and what becomes of the server.

One server for all tests of the file, in the order they stand: the last ones do away with it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.console.metrics.exported import Scrape
from tests.daemons import queue_managers
from tests.monitor.warm_chaos import Chaos
from tests.monitor.warm_machine import ENDLESS, WarmMachine, begin_endless, ended, is_left_alone
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.mq.calls import CancelRun

pytestmark = [pytest.mark.spark]

WORKS = """\
def found(batches):
    import os, sys
    import pandas
    with open(f"/proc/{os.getppid()}/cmdline") as file:
        seen = {"daemon": [file.read()], "imported": ["trigmon.spark.source" in sys.modules]}
    for _ in batches:
        yield pandas.DataFrame(seen)

row = spark.range(1, numPartitions=1).mapInPandas(found, "daemon string, imported boolean").first()
note(daemon=row.daemon, imported=row.imported)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    settings = {"connect.runs": 2, "monitor.grace_s": 2, "connect.deadline_s": 60}
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = WarmMachine(make, tmp_path_factory.mktemp("warm"), **settings)
        made.job()
        made.job(ENDLESS, "endless")
        yield made
        made.end()


@pytest.fixture(autouse=True)
def nothing_goes_on(request):
    """A test that failed leaves no run to the next."""
    yield
    machine = request.getfixturevalue("machine")
    if machine.daemon.process.poll() is None:
        for run in machine.runs():
            if not run["end_ms"]:
                machine.qm.call(CancelRun(run_id=run["run_id"]))


@pytest.mark.slow
def test_a_run_that_comes_before_its_server_is_warm_waits_and_says_so_and_runs(machine):
    machine.qm.put("JOB.Q", b"go")
    (waits,) = until(lambda: [run for run in machine.runs() if run["why"]])
    assert (waits["state"], waits["why"]) == ("due", "its Spark Connect server does not answer yet")
    server = machine.wait_until_there()
    (run,) = machine.wait_for_runs(state="exited")
    assert run["exit_status"] == 0, run["stderr_tail"]
    line = machine.wait_for_line(run["run_id"], "rows")
    assert (line["rows"], line["tags"]) == (10, [run["run_id"]])
    assert not machine.daemon.events("not all of a Spark Connect server is warm")
    assert is_left_alone(machine, server, run["run_id"])


def test_each_run_is_a_fork_and_has_a_session_of_its_own_in_the_one_server(machine):
    server = machine.wait_until_there()
    before = len(machine.runs(state="exited"))
    for _ in range(3):
        machine.qm.put("JOB.Q", b"go")
    runs = machine.wait_for_runs(before + 3, state="exited")[-3:]
    sessions = {machine.wait_for_line(run["run_id"], "session")["session"] for run in runs}
    assert len(sessions) == 3
    assert [each.server_id for each in machine.shelf.all_servers()] == [server.server_id]


def test_python_workers_in_the_session_of_each_run_are_forks_of_one_process(machine):
    machine.wait_until_there()
    queue = machine.job(WORKS, "works")
    before = len(machine.runs(state="exited"))
    for _ in range(2):
        machine.qm.put(queue, b"go")
    runs = machine.wait_for_runs(before + 2, state="exited")[-2:]
    for run in runs:
        seen = machine.wait_for_line(run["run_id"], "daemon")
        assert "trigmon.spark.warm.worker_fork_server" in seen["daemon"]
        assert seen["imported"]


def test_its_metrics_are_whether_it_listens_and_its_memory(machine):
    server = machine.wait_until_there()
    found = Scrape(machine.daemon.trigmon("metrics").stdout)
    labels = {"qmgr": "QM1", "server": server.server_id, "master": server.master}
    assert found.value("trigmon_spark_server_up", **labels) == 1
    assert found.value("trigmon_spark_server_resident_bytes", **labels) > 100 << 20


def test_a_cancelled_run_leaves_no_query_and_no_session(machine):
    server = machine.wait_until_there()
    run = begin_endless(machine)
    assert b"trigmon.spark.warm.job_fork_server" in Path(f"/proc/{run['pid']}/cmdline").read_bytes()
    machine.qm.call(CancelRun(run_id=run["run_id"], reason="the wrong day"))
    assert ended(machine, run["run_id"])["state"] == "cancelled"
    assert is_left_alone(machine, server, run["run_id"])


def test_a_killed_run_leaves_no_query_and_no_session(machine):
    server = machine.wait_until_there()
    run = begin_endless(machine)
    os.kill(run["pid"], signal.SIGKILL)
    assert ended(machine, run["run_id"])["signal"] == signal.SIGKILL
    assert is_left_alone(machine, server, run["run_id"])


def test_runs_above_the_cap_wait_for_their_turn_and_one_that_is_cancelled_then_never_starts(machine):
    server = machine.wait_until_there()
    first, second = begin_endless(machine), begin_endless(machine)
    machine.qm.put("JOB.Q", b"go")
    machine.qm.put("JOB.Q", b"go")
    waiting = until(lambda: two if len(two := machine.runs(state="due")) == 2 and all(r["why"] for r in two) else None)
    assert {run["why"] for run in waiting} == {"2 warm runs are under way, as many as connect.runs allows"}
    machine.qm.call(CancelRun(run_id=waiting[0]["run_id"], reason="not wanted"))
    assert ended(machine, waiting[0]["run_id"])["state"] == "cancelled"
    machine.qm.call(CancelRun(run_id=first["run_id"]))
    assert ended(machine, waiting[1]["run_id"])["exit_status"] == 0
    assert not machine.lines(waiting[0]["run_id"])
    machine.qm.call(CancelRun(run_id=second["run_id"]))
    ended(machine, second["run_id"])
    assert is_left_alone(machine, server, second["run_id"])


@pytest.mark.slow
def test_a_dozen_runs_cancelled_and_killed_by_chance_leave_nothing(machine):
    machine.wait_until_there()
    chaos = Chaos(machine, 12, seed=1, jobs=["JOB.Q"], endless=["ENDLESS.Q"])
    chaos.go(timeout_s=300)
    chaos.check(most_rss=4 << 30)
    chaos.trigger_again()


def test_a_monitor_that_is_killed_leaves_runs_and_server_to_the_next_which_releases_what_ended_meanwhile(machine):
    server = machine.wait_until_there()
    lives, dies = begin_endless(machine), begin_endless(machine)
    monitor = machine.daemon.events("monitor started")[-1]["pid"]
    os.kill(monitor, signal.SIGSTOP)
    os.kill(dies["pid"], signal.SIGKILL)
    until(lambda: run_directory.read_exit(Path(dies["directory"])))
    os.kill(monitor, signal.SIGKILL)
    until(lambda: machine.daemon.events("Spark Connect server found"))
    assert ended(machine, dies["run_id"])["signal"] == signal.SIGKILL
    until(lambda: not machine.works(server, dies["run_id"]))
    assert machine.works(server, lives["run_id"])
    machine.qm.call(CancelRun(run_id=lives["run_id"]))
    assert ended(machine, lives["run_id"])["state"] == "cancelled"
    assert is_left_alone(machine, server, lives["run_id"])
    before = len(machine.runs(state="exited"))
    machine.qm.put("JOB.Q", b"go")
    machine.wait_for_runs(before + 1, state="exited")
    assert [each.server_id for each in machine.shelf.all_servers()] == [server.server_id]


def test_the_end_of_the_server_ends_its_runs_and_another_one_comes_for_those_that_wait(machine):
    server = machine.wait_until_there()
    run = begin_endless(machine)
    began = time.monotonic()
    os.kill(machine.pid(server), signal.SIGKILL)
    lost = ended(machine, run["run_id"])
    assert time.monotonic() - began < 60
    assert lost["state"] == "exited" and lost["exit_status"] != 0
    machine.qm.put("JOB.Q", b"go")
    other = machine.wait_until_there(besides={server.server_id})
    assert other.server_id != server.server_id
    last = until(lambda: machine.runs()[-1] if machine.runs()[-1]["end_ms"] else None)
    assert last["exit_status"] == 0, last
    assert [each.server_id for each in machine.shelf.all_servers()] == [other.server_id]
    assert is_left_alone(machine, other, last["run_id"])


def test_with_the_monitor_its_server_goes_too(machine):
    (server,) = machine.shelf.all_servers()
    pid = machine.pid(server)
    machine.daemon.stop()
    until(lambda: run_directory.start_ticks(pid) == 0)
