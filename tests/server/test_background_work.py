"""Background work is planned once at a time, between what else the loop does, and none of it begins after the end."""

from __future__ import annotations

import asyncio
from itertools import count, pairwise
from types import SimpleNamespace

from trigmon.qmgr.timed_work import Job
from trigmon.server.background_work import LONGEST_YIELD_S, BackgroundWork
from trigmon.server.deadline_timer import DeadlineTimer
from trigmon.server.executor import OnTheLoop


class Upkeep:
    """A scan of so many slices."""

    max_msg_length = 100

    def __init__(self, slices):
        self.slices = slices
        self.commands = SimpleNamespace(are_waiting=False)

    @property
    def is_scanning(self):
        return self.slices > 0

    def scan(self):
        self.slices -= 1
        return ["slice"]


def played(story, slices=0, calls=lambda: 0):
    """The results of a story on a loop of its own, which is given the background work."""

    async def on_a_loop():
        results = []

        def performed(done):
            results.append(done)
            work.plan_scan()

        manager = SimpleNamespace(housekeeping=Upkeep(slices), next_deadline_ms=lambda: 7)
        work = BackgroundWork(manager, OnTheLoop(), performed, calls)
        await story(work)
        await asyncio.sleep(0.01)
        return results

    return asyncio.run(on_a_loop())


def test_a_scan_goes_on_to_its_end_and_the_loop_goes_on_between_two_slices():
    seen = []

    async def story(work):
        work.plan_scan()
        work.plan_scan()
        for _ in range(3):
            seen.append(work._manager.housekeeping.slices)
            await asyncio.sleep(0)

    assert [(done.answers, done.deadline_ms) for done in played(story, slices=3)] == [(["slice"], 7)] * 3
    assert seen == [3, 2, 1]


class MadeUpTime:
    """A loop on which time passes only while somebody waits."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()
        self.call_soon = self._loop.call_soon
        self.now = 100.0

    def time(self):
        return self.now

    def call_later(self, seconds, callback, *values):
        self.now += seconds
        self.call_soon(callback, *values)


def moments_of_slices(calls, *, slices=4, are_commands_waiting=False):
    """Returns when the slices behind the first were done, in milliseconds behind the one before."""
    moments = []

    async def story(work):
        work._loop = MadeUpTime()
        housekeeping, scan = work._manager.housekeeping, work._manager.housekeeping.scan
        housekeeping.commands.are_waiting = are_commands_waiting
        housekeeping.scan = lambda: moments.append(work._loop.now) or scan()
        work.plan_scan()

    assert len(played(story, slices, calls)) == slices
    return [round((later - earlier) * 1000) for earlier, later in pairwise(moments)]


def test_a_slice_waits_while_calls_are_performed_but_not_long():
    assert moments_of_slices(count(1).__next__) == [LONGEST_YIELD_S * 1000] * 3


def test_a_slice_waits_for_nobody_when_no_call_was_performed():
    assert moments_of_slices(lambda: 7) == [0, 0, 0]


def test_a_slice_that_waited_begins_when_no_further_call_was_performed():
    calls = iter([1, 2, 3, 3, *[3] * 9])
    assert moments_of_slices(lambda: next(calls)) == [2, 0, 0]


def test_a_slice_of_commands_waits_for_no_call():
    assert moments_of_slices(count(1).__next__, are_commands_waiting=True) == [0, 0, 0]


def test_work_that_still_waits_is_not_planned_twice():
    done = []

    async def story(work):
        for _ in range(3):
            work.plan("beat", lambda: "beat", done.append)
        await asyncio.sleep(0)
        work.plan("beat", lambda: "again", done.append)

    played(story)
    assert done == ["beat", "again"]


def test_nothing_begins_after_the_end():
    done = []

    async def story(work):
        work.plan("beat", lambda: "beat", done.append)
        work.end()
        work.plan("other", lambda: "other", done.append)

    assert played(story, slices=1) == done == []


def test_a_job_that_can_rest_is_left_out_of_a_period_with_calls():
    rests, never_rests = Job("tidy", 1000, lambda _: ["tidied"], can_rest=True), Job("tend", 1000, lambda _: ["tended"])

    calls = SimpleNamespace(performed=0)

    async def story(work):
        for calls.performed in (5, 5, 6):
            work.plan_job(rests)
            work.plan_job(never_rests)
            await asyncio.sleep(0)

    results = played(story, calls=lambda: calls.performed)
    assert [done.answers for done in results] == [["tended"], ["tidied"], ["tended"], ["tended"]]


def test_a_deadline_is_called_once_and_the_last_one_counts():
    calls = []

    async def story():
        timer = DeadlineTimer(SimpleNamespace(now=lambda: 1000), lambda: calls.append(len(calls)))
        for deadline_ms in (900, None, 5000, 1010, 1010):
            timer.set(deadline_ms)
        await asyncio.sleep(0.05)
        assert calls == [0]
        timer.set(1010)
        await asyncio.sleep(0.05)
        timer.set(5000)
        timer.set(None)

    asyncio.run(story())
    assert calls == [0, 1]
