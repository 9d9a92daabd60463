"""What is started for moments that passed: each moment once, over restarts, clocks that are set and lost monitors."""

from __future__ import annotations

import pytest

from tests.rules.schedules import (
    DAY,
    HOUR,
    MINUTE,
    OBJECTS,
    away_from,
    needs_attention,
    row,
    set_wall_clock,
    started,
    with_schedule,
)
from trigmon.rules.model.stored_messages import SLICE
from trigmon.schedules import moments
from trigmon.testing import INITIATION_Q, InMemory


@pytest.mark.parametrize("end", [InMemory.restart, InMemory.crash])
def test_no_restart_starts_a_moment_again(end):
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        mq.advance(HOUR)
        assert started(mq) == 1
        end(mq)
        mq.advance(MINUTE)
        assert started(mq) == 0
        mq.advance(HOUR)
        assert started(mq) == 1


@pytest.mark.parametrize(("missed", "count"), [("once", 1), ("skip", 0), ("all", 5)])
@pytest.mark.parametrize("how", ["stopped", "no monitor", "the clock is set"])
def test_moments_that_were_missed_are_started_for_as_missed_says(missed, count, how):
    with InMemory(monitor="") as mq:
        with_schedule(mq, every=3600, queue="Q", missed=missed)
        if how != "no monitor":
            mq.monitor(INITIATION_Q)
        away = 5 * HOUR + 10 * MINUTE
        if how == "stopped":
            away_from(mq, away)
        elif how == "no monitor":
            mq.advance(away)
            assert started(mq) == 0
            mq.monitor(INITIATION_Q)
        else:
            mq.advance(1000)
            set_wall_clock(mq, away)
        mq.advance(2000)
        assert started(mq) == count
        assert row(mq)["why_not"] == ("" if count else "missed, and MISSED(SKIP) starts nothing for it")
        mq.advance(50 * MINUTE)
        assert started(mq) == 1


@pytest.mark.parametrize("how", ["stopped", "no monitor"])
def test_a_message_that_came_while_no_monitor_listened_is_started_for(how):
    with InMemory(monitor="") as mq:
        with_schedule(mq, every=3600, queue="Q", only_if="messages")
        if how == "stopped":
            mq.monitor(INITIATION_Q)
            mq.put("Q", "1")
            away_from(mq, 70 * MINUTE)
        else:
            mq.advance(70 * MINUTE)
            assert needs_attention(mq) == []
            mq.put("Q", "1")
            mq.monitor(INITIATION_Q)
        mq.advance(2000)
        assert started(mq) == 1


@pytest.mark.parametrize(
    "alterations", [{}, {"inhibit_get": "disabled"}, {"process_name": ""}, {"initiation_q_name": "NO.SUCH.Q"}]
)
def test_a_moment_of_an_empty_queue_needs_no_attention(alterations):
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q", only_if="messages")
        mq.alter("Q", description="", **alterations)
        mq.advance(HOUR)
        assert row(mq)["why_not"]
        assert needs_attention(mq) == []
        assert not row(mq)["not_started"]


@pytest.mark.parametrize("missed", ["once", "skip", "all"])
def test_a_moment_that_is_a_minute_late_at_most_is_on_time(missed):
    with InMemory(monitor="") as mq:
        with_schedule(mq, every=3600, queue="Q", missed=missed)
        mq.advance(HOUR + MINUTE - 1000)
        mq.monitor(INITIATION_Q)
        mq.advance(1000)
        assert started(mq) == 1


def test_the_clock_set_a_year_ahead_starts_for_the_last_thousand_moments_at_most():
    with InMemory() as mq:
        with_schedule(mq, every=60, queue="Q", missed="all")
        mq.advance(1000)
        set_wall_clock(mq, 365 * DAY)
        mq.advance(1000)
        assert started(mq) == 1000 + 1  # the missed ones, and the one of the last minute
        mq.advance(MINUTE)
        assert started(mq) == 1


@pytest.mark.parametrize("missed", ["once", "skip"])
def test_a_moment_that_waits_for_a_monitor_costs_little_however_many_were_missed(missed, monkeypatch):
    found: list[int] = []
    next_moment = moments.next_moment
    monkeypatch.setattr(moments, "next_moment", lambda *asked: found.append(0) or next_moment(*asked))
    with InMemory(monitor="") as mq:
        with_schedule(mq, cron="* * * * *", queue="Q", missed=missed)
        mq.advance(1000)
        set_wall_clock(mq, 30 * DAY)
        mq.advance(1000)
        found.clear()
        mq.advance(1000)
        assert 0 < len(found) < 200


@pytest.mark.parametrize("back_ms", [HOUR, 365 * DAY])
def test_the_clock_set_back_starts_no_moment_twice(back_ms):
    with InMemory() as mq:
        with_schedule(mq, every=600, queue="Q")
        mq.advance(2 * HOUR)
        assert started(mq) == 12
        set_wall_clock(mq, -back_ms)
        mq.advance(HOUR)
        assert started(mq) == 0
        mq.restart()
        if back_ms == HOUR:
            mq.advance(2 * HOUR)
            assert started(mq) == 12
        mq.alter("S", "SCHEDULE", every=600)  # a schedule that is timed anew begins anew
        mq.advance(HOUR)
        assert started(mq) == 6


def test_a_schedule_that_is_altered_has_no_moments_before_that():
    with InMemory() as mq:
        with_schedule(mq, cron="0 2 * * *", queue="Q")
        mq.advance(12 * HOUR)
        assert started(mq) == 1
        mq.alter("S", "SCHEDULE", cron="0 10 * * *")
        mq.advance(12 * HOUR)
        assert started(mq) == 0
        mq.advance(10 * HOUR)
        assert started(mq) == 1
        mq.alter("S", "SCHEDULE", description="nothing else")
        assert row(mq)["last_start_ms"] > 0


def calls_of_looks(mq: InMemory, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that receives the number of calls in each turn that judges moments."""
    times = mq._stage._q_mgrs["QM1"].manager.housekeeping.schedules
    counts: list[int] = []
    reached = times._reached
    monkeypatch.setattr(times, "_reached", lambda calls, now: counts.append(len(calls)) or reached(calls, now))
    return counts


def test_missed_moments_that_wait_for_a_monitor_are_asked_for_with_one_call(monkeypatch):
    with InMemory(monitor="") as mq:
        with_schedule(mq, cron="* * * * *", queue="Q", missed="all")
        mq.advance(1000)
        set_wall_clock(mq, 30 * DAY)
        mq.advance(1000)
        counts = calls_of_looks(mq, monkeypatch)
        found: list[int] = []
        next_moment = moments.next_moment
        monkeypatch.setattr(moments, "next_moment", lambda *asked: found.append(0) or next_moment(*asked))
        mq.advance(10_000)
        assert set(counts) == {1}
        assert len(found) < 50
        mq.monitor(INITIATION_Q)
        mq.advance(1000)
        assert started(mq) == 1000 + 1


def test_a_look_at_moments_is_bounded_and_schedules_take_turns(monkeypatch):
    with InMemory() as mq:
        mq.mqsc(OBJECTS)
        for number in range(3):
            mq.define(f"S{number}", "SCHEDULE", every=60, process="P", missed="all")
        mq.define("ONCE", "SCHEDULE", every=60, queue="Q")
        mq.advance(1000)
        set_wall_clock(mq, 2 * DAY)
        counts = calls_of_looks(mq, monkeypatch)
        mq.advance(1000)
        assert max(counts) <= SLICE
        triggers = mq.triggers()
        assert len(triggers) == 3 * (1000 + 1) + 1
        assert "Q" in {trigger.q_name for trigger in triggers[:SLICE]}


@pytest.mark.parametrize("hours", [0, 2])
def test_a_clock_that_is_set_forward_before_a_restart_has_missed_the_moments_in_between(hours):
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q", missed="all")
        mq.advance(hours * HOUR + 1000)
        assert started(mq) == hours
        set_wall_clock(mq, 5 * HOUR)
        mq.restart()
        mq.advance(1000)
        assert started(mq) == 5
