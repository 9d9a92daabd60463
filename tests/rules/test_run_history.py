"""The history of runs: counted by hour, process and outcome, the same on every store."""

from collections import Counter

import pytest

from tests.rules.launching_ledger import INITQ, TRIGGER
from tests.worlds import STORES, World
from trigmon.mq.calls import RecordRun, RunHistory
from trigmon.mq.reasons import Reason
from trigmon.rules.runs import run_history

HOUR = 3_600_000
T = 400_000 * HOUR


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("P", "PROCESS", appl_id="/bin/true")
    made.define("Q", process_name="P", initiation_q_name=INITQ)
    made.ids = iter(range(1, 10_000))
    yield made
    made.end()


def ended(world, end_ms, state="exited", exit_status=0, **fields):
    record = {**TRIGGER, "state": state, "exit_status": exit_status, "end_ms": end_ms, **fields}
    world.did(RecordRun(run_id=f"{next(world.ids):016x}", record=record), "monitor")


def rows(world, *by, **span):
    """Returns the rows of all answers, and how many answers there were."""
    found, call, answers = [], RunHistory(by=list(by), **span), 0
    while True:
        values = world.did(call).values
        found, answers = found + values["rows"], answers + 1
        if not values["more"]:
            return found, answers
        call = RunHistory(by=list(by), **{**span, "since_ms": values["next_ms"]})


def test_runs_are_counted_by_hour_process_and_outcome(world):
    ended(world, T + 5, start_ms=T + 1)
    ended(world, T + 9, start_ms=T + 2)
    ended(world, T + HOUR, exit_status=3, process_name="OTHER", q_name="Q2")
    ended(world, T + 7, state="failed", exit_status=None)
    found, _ = rows(world, "hour", "process", "outcome")
    assert found == [
        {"since_ms": T, "process_name": "P", "outcome": "could_not_start", "runs": 1, "took_ms": 0, "last_ms": T + 7},
        {"since_ms": T, "process_name": "P", "outcome": "ok", "runs": 2, "took_ms": 11, "last_ms": T + 9},
        {
            "since_ms": T + HOUR,
            "process_name": "OTHER",
            "outcome": "failed",
            "runs": 1,
            "took_ms": 0,
            "last_ms": T + HOUR,
        },
    ]
    by_queue = {row["q_name"]: row["runs"] for row in rows(world, "queue")[0]}
    assert by_queue == {"Q": 3, "Q2": 1}
    assert [row["since_ms"] % (24 * HOUR) for row in rows(world, "day")[0]] == [0]


def test_without_fields_there_is_one_count_and_of_an_empty_ledger_none(world):
    assert rows(world)[0] == []
    ended(world, T)
    ended(world, T + HOUR, exit_status=1)
    assert rows(world)[0] == [{"runs": 2, "took_ms": 0, "last_ms": T + HOUR}]


@pytest.mark.parametrize(
    ("state", "exit_status", "outcome"),
    [
        ("exited", 0, "ok"),
        ("exited", 2, "failed"),
        ("exited", None, "failed"),
        ("of a later release", None, "unknown"),
        ("failed", None, "could_not_start"),
        ("unknown", None, "unknown"),
        ("cancelled", None, "cancelled"),
        ("joined", None, "joined"),
    ],
)
def test_each_end_has_one_outcome(world, state, exit_status, outcome):
    ended(world, T, state=state, exit_status=exit_status)
    assert [row["outcome"] for row in rows(world, "outcome")[0]] == [outcome]


def test_only_runs_that_ended_from_since_to_before_until_are_counted(world):
    for at in (T - 1, T, T + 1, T + 2):
        ended(world, at)
    ended(world, 0, state="due", exit_status=None)
    assert rows(world, since_ms=T, until_ms=T + 2)[0][0]["runs"] == 2
    assert rows(world)[0][0]["runs"] == 4


def test_many_are_counted_slice_by_slice_each_once(world, monkeypatch):
    monkeypatch.setattr("trigmon.rules.runs.run_history.COUNTED_AT_ONCE", 4)
    for at in (1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 4, 4, 4, 4, 9):
        ended(world, T + at * HOUR)
    found, answers = rows(world, "hour")
    counts = Counter()
    for row in found:
        counts[(row["since_ms"] - T) // HOUR] += row["runs"]
    assert counts == {1: 6, 2: 1, 3: 3, 4: 4, 9: 1}
    assert answers > 2


def test_a_record_that_no_run_has_is_counted_all_the_same(world):
    ended(world, T, exit_status="zero", start_ms="then", process_name=["P", "\0"])
    ended(world, T, process_name="\0 \ud7ff")
    assert [row["runs"] for row in rows(world)[0]] == [2]
    assert {row["outcome"] for row in rows(world, "outcome", "process")[0]} == {"failed", "ok"}


@pytest.mark.parametrize("by", [["week"], ["hour", "day"], [""]])
def test_an_unknown_field_is_refused(world, by):
    assert world.do(RunHistory(by=by)).reason == Reason.OPTIONS_ERROR


@pytest.mark.parametrize("span", [{"since_ms": -1}, {"until_ms": 2**63}, {"since_ms": 2**70}])
def test_what_is_no_time_is_refused(world, span):
    assert world.do(RunHistory(**span)).reason == Reason.OPTIONS_ERROR
    assert run_history.span_of(RunHistory()) == (0, run_history.EVER)


def test_sqlite_finds_them_by_the_index_of_their_ends(tmp_path):
    from trigmon.store.sql import statements as sql

    world = World("sqlite", tmp_path)
    plan = world.qm._store.rows(f"EXPLAIN QUERY PLAN {sql.HISTORY}", (1, 2, 3))
    assert "run_ended" in str(plan) and "TEMP B-TREE" not in str(plan)
    world.end()
