"""What the queue manager counts for metrics: turns, triggers, refusals, and runs as they start and end."""

from __future__ import annotations

import pytest

from tests.rules.launching_ledger import INITQ, Ledger
from trigmon.mq.calls import CancelRun, ChangeRun, GetMany, NewRuns, Pause, Put, Statistics
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.qmgr import counters
from trigmon.qmgr.counters import Histogram


@pytest.fixture
def ledger(tmp_path):
    made = Ledger("memory", tmp_path)
    yield made
    made.end()


def figures(ledger):
    return ledger.did(Statistics(), "reader").values


def ends(ledger, run_id, **fields):
    ledger.did(ChangeRun(run_id=run_id, fields={"state": "exited", "end_ms": ledger.clock.now(), **fields}), "monitor")


def starts(ledger, run_id):
    fields = {"state": "started", "start_ms": ledger.clock.now()}
    ledger.did(ChangeRun(run_id=run_id, fields=fields), "monitor")


def outcomes(ledger):
    return {(process, outcome): count for process, outcome, count in figures(ledger)["runs_ended"]}


def test_a_histogram_counts_a_value_at_its_bound_and_one_above_all():
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    assert histogram.figures() == {"bounds": (0.1, 1.0), "counts": [2, 1, 1], "sum": 7.65}


def test_a_turn_counts_with_its_calls_its_time_and_its_commit(ledger):
    times = iter(range(1000))
    before = figures(ledger)
    ledger.qm.counters.timer = lambda: next(times) / 2  # read at the begin, before the commit, and at the end
    ledger.put("Q")
    ledger.qm.counters.timer = lambda: 0.0
    after = figures(ledger)
    turns, commits = (after[name]["sum"] - before[name]["sum"] for name in ("turns", "commits"))
    assert (turns, commits) == (1.0, 0.5)
    assert after["calls"] - before["calls"] == 2  # the put, and the first of the two looks


def test_a_trigger_counts_by_its_occasion_and_as_an_event(ledger):
    ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    ledger.put("Q2")
    ledger.put("Q2")
    assert figures(ledger)["triggers"] == {"1": 2}
    assert figures(ledger)["events"]["trigger_fired"] == 2


def test_a_refused_call_counts_by_its_reason(ledger):
    ledger.do(Put(q_name="NONE", data=b""))
    assert figures(ledger)["refused_calls"] == {"MQRC_UNKNOWN_OBJECT_NAME": 1}
    assert ledger.do(Put(q_name="NONE", data=b"")).reason == Reason.UNKNOWN_OBJECT_NAME
    assert figures(ledger)["refused_calls"] == {"MQRC_UNKNOWN_OBJECT_NAME": 2}


ENDS = {
    "ok": {"exit_status": 0},
    "failed": {"exit_status": 3},
    "stopped": {"signal": 15, "was_stopped": True},
    "could_not_start": {"state": "failed", "why": "no program"},
    "unknown": {"state": "unknown"},
}


@pytest.mark.parametrize("outcome", ENDS)
def test_a_run_counts_once_by_how_it_ended(ledger, outcome):
    ledger.process(retry=0)
    run_id, _ = ledger.come()
    starts(ledger, run_id)
    ends(ledger, run_id, **ENDS[outcome])
    ends(ledger, run_id, **ENDS[outcome])
    assert outcomes(ledger) == {("P", outcome): 1}


def test_a_cancelled_run_and_one_killed_outright_count_likewise(ledger):
    ledger.did(Pause(what="queue", name="Q"), "operator")
    run_id, stands = ledger.come()
    assert stands.state == "held"
    ledger.did(CancelRun(run_id=run_id), "operator")
    run_id, _ = ledger.come(q_name="Q2")
    starts(ledger, run_id)
    ends(ledger, run_id, signal=9)
    assert outcomes(ledger) == {("P", "cancelled"): 1, ("P", "failed"): 1}


def test_a_run_in_progress_counts_by_its_process_and_its_length_when_it_has_ended(ledger):
    run_id, _ = ledger.come()
    assert figures(ledger)["runs_in_progress"] == {"P": 1}
    starts(ledger, run_id)
    ledger.clock.advance(2000)
    ends(ledger, run_id, exit_status=0)
    found = figures(ledger)
    assert (found["runs_in_progress"], found["run_durations"]["P"]["sum"]) == ({}, 2.0)


def test_the_time_from_the_put_to_the_start_counts_for_first_tries_alone(ledger):
    handle = ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    ledger.put("Q2")
    ledger.clock.advance(70)  # the monitor was busy
    new = NewRuns("m:1", "host", "0", [6])
    call = GetMany(handle=handle, count=1, options=int(GetOption.SYNCPOINT), unit=1, runs=new)
    (run,) = ledger.did(call, "monitor").runs
    ledger.clock.advance(30)
    starts(ledger, run["run_id"])
    assert figures(ledger)["put_to_start"]["P"] == {
        "bounds": counters.START_S,
        "counts": [0, 0, 0, 0, 1, *[0] * 10],
        "sum": 0.1,
    }
    again, _ = ledger.come(triggered_ms=1, retries=run["run_id"])
    starts(ledger, again)
    assert sum(figures(ledger)["put_to_start"]["P"]["counts"]) == 1


def test_runs_of_processes_beyond_the_limit_count_together(ledger, monkeypatch):
    monkeypatch.setattr(counters, "MOST_PROCESSES", 2)
    for number in range(4):
        ledger.come(process_name=f"P{number}", state="exited", exit_status=0)
    assert outcomes(ledger) == {("P0", "ok"): 1, ("P1", "ok"): 1, ("", "ok"): 2}


def test_counting_begins_with_the_process(ledger):
    ledger.come(state="exited", exit_status=0)
    ledger.restart()
    assert (figures(ledger)["runs_ended"], figures(ledger)["refused_calls"]) == ([], {})
