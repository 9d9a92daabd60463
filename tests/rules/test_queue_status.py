"""DISPLAY QSTATUS and RESET QSTATS: the oldest message, and what went through each queue, on every store."""

from __future__ import annotations

import random

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import (
    Backout,
    Clear,
    Commit,
    Delete,
    Get,
    GetMany,
    Move,
    Put,
    PutMany,
    QueueStatus,
    Release,
    Reserve,
)
from trigmon.mq.calls import ResetQueueStatistics as Reset
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.paging import all_rows
from trigmon.mq.reasons import Reason
from trigmon.qmgr.queue_history import LONG, SHORT, Activity
from trigmon.qmgr.sessions import Identity

SYNCPOINT = int(GetOption.SYNCPOINT)
COUNTED = ("puts", "gets", "high_q_depth")


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("Q", def_persistence="persistent")
    made.handle = made.open("Q", OpenOption.INPUT_SHARED, OpenOption.BROWSE, OpenOption.OUTPUT)
    yield made
    made.end()


def status(world, name="Q"):
    (row,) = world.did(QueueStatus(q_name=name)).rows
    return row


def counted(world, name="Q"):
    row = status(world, name)
    return tuple(row[each] for each in COUNTED)


def get(world, options=0, unit=0):
    return world.do(Get(handle=world.handle, options=options, unit=unit))


def test_a_queue_without_messages_has_no_oldest_and_nothing_went_through_it(world):
    row = status(world)
    assert {row[name] for name in (*COUNTED, "oldest_ms", "oldest_age_s", "last_put_ms", "last_get_ms")} == {0}
    assert (row["open_input_count"], row["open_output_count"], row["max_q_depth"]) == (1, 1, 5000)
    assert row["since_ms"] == world.qm.started_ms


def test_the_oldest_message_is_the_one_that_was_put_first_whatever_its_priority(world):
    first = world.clock.now()
    world.put("Q", priority=1)
    world.clock.advance(5_500)
    world.put("Q", priority=9)
    row = status(world)
    assert (row["oldest_ms"], row["oldest_age_s"]) == (first, 5)
    get(world)  # the one of priority 9
    assert status(world)["oldest_ms"] == first
    get(world)
    assert status(world)["oldest_ms"] == 0


def test_one_that_is_got_and_not_committed_or_put_and_not_committed_is_not_the_oldest(world):
    world.put("Q")
    get(world, SYNCPOINT, unit=1)
    world.put("Q", as_="other", unit=1)
    row = status(world)
    assert (row["oldest_ms"], row["current_q_depth"], row["uncommitted_msgs"]) == (0, 1, 2)


def test_puts_and_gets_are_counted_with_the_time_of_the_last_and_not_taken_back_by_a_backout(world):
    world.did(PutMany(q_name="Q", bodies=[b"a", b"b", b"c"]))
    put_ms = world.clock.now()
    world.clock.advance(1000)
    get(world, SYNCPOINT, unit=1)
    world.did(Backout(unit=1))
    row = status(world)
    assert (row["puts"], row["gets"], row["high_q_depth"]) == (3, 1, 3)
    assert (row["last_put_ms"], row["last_get_ms"]) == (put_ms, world.clock.now())
    world.did(GetMany(handle=world.handle, count=10, options=SYNCPOINT, unit=2))
    world.did(Commit(unit=2))
    assert counted(world) == (3, 4, 3)


def test_a_browse_a_clear_and_an_expiry_are_no_gets(world):
    world.put("Q")
    world.put("Q", expiry=1)
    assert get(world, int(GetOption.BROWSE_FIRST)).data == b"m"
    world.clock.advance(10_000)
    world.lose("app")
    world.did(Clear(q_name="Q"), "operator")
    assert counted(world) == (2, 0, 2)


def test_a_message_that_spark_reserves_is_got(world):
    world.put("Q")
    world.put("Q")
    world.did(Reserve(handle=world.handle, consumer="JOB"))
    assert counted(world)[:2] == (2, 2)


def test_a_refused_put_is_not_counted_and_a_trigger_message_is(world):
    initq = "SYSTEM.DEFAULT.INITIATION.QUEUE"
    world.define("P", "PROCESS", appl_id="/bin/true")
    world.define(
        "T",
        process_name="P",
        initiation_q_name=initq,
        trigger_control="on",
        trigger_type="every",
        max_q_depth=1,
    )
    world.open(initq, OpenOption.INPUT_SHARED, as_="monitor")
    world.put("T")
    assert world.do(Put(q_name="T", data=b"x", descriptor=MessageDescriptor())).reason == Reason.Q_FULL
    assert counted(world, "T") == (1, 0, 1)
    assert counted(world, initq) == (1, 0, 1)


def test_a_reset_answers_with_what_was_counted_and_counts_anew(world):
    world.put("Q")
    world.put("Q")
    get(world)
    world.clock.advance(60_000)
    (row,) = world.did(Reset(q_name="Q"), "operator").rows
    assert (tuple(row[each] for each in COUNTED), row["since_s"]) == ((2, 1, 2), 60)
    row = status(world)
    assert (tuple(row[each] for each in COUNTED), row["since_s"]) == ((0, 0, 1), 0)
    assert row["last_put_ms"] and row["last_get_ms"]


def test_who_is_no_administrator_may_look_and_not_reset(world):
    world.sessions["plain"] = world.qm.connect(Identity(client_id="p", application="p", user="joe"))
    assert world.did(QueueStatus(q_name="Q"), "plain").rows
    assert world.do(Reset(q_name="Q"), "plain").reason == Reason.NOT_AUTHORIZED


def test_counting_begins_with_the_queue_manager_and_with_the_queue(world):
    world.put("Q")
    world.restart()
    assert counted(world) == (0, 0, 1)
    world.did(Delete(object_type="QLOCAL", name="Q", purge=True), "operator")
    world.define("Q")
    assert counted(world) == (0, 0, 0)


def test_queues_are_listed_by_generic_name_a_page_at_a_time(world):
    for number in range(5):
        world.define(f"PAGE.{number}")
        world.put(f"PAGE.{number}")
    world.define("PAGE.ALIAS", "QALIAS", base_q_name="Q")
    rows = list(all_rows(world.did, QueueStatus(q_name="PAGE.*", limit=2)))
    assert [row["name"] for row in rows] == [f"PAGE.{number}" for number in range(5)]
    assert all(row["oldest_ms"] for row in rows)


def test_the_time_that_got_messages_had_been_there_is_of_the_last_few_and_of_more(world):
    assert (status(world)["q_time_short_us"], status(world)["q_time_long_us"]) == (-1, -1)
    world.put("Q")
    world.clock.advance(64)
    get(world)
    assert (status(world)["q_time_short_us"], status(world)["q_time_long_us"]) == (64_000, 64_000)
    world.put("Q")
    get(world)  # at once
    assert (status(world)["q_time_short_us"], status(world)["q_time_long_us"]) == (56_000, 63_000)
    world.did(Reset(q_name="Q"), "operator")
    assert status(world)["q_time_short_us"] == 56_000


def test_a_put_time_that_a_program_has_set_is_no_time_on_the_queue_before_it_or_of_years(world):
    for put_ms in (world.clock.now() + 3_600_000, 0):
        world.put("Q", put_ms=put_ms)
        get(world)
        assert 0 <= status(world)["q_time_long_us"] <= 999_999_999


def test_times_of_messages_that_are_got_together_count_as_those_of_single_gets():
    dice = random.Random(7)
    together, single = Activity(0), Activity(0)
    for now in range(100_000, 400_000, 10_000):
        times = [t for t in dice.choices(range(now - 90_000, now + 500), k=20) for _ in range(dice.choice([1, 2, 90]))]
        together.got_many("Q", times, now)
        for put_ms in times:
            single.got("Q", put_ms, now)
        one, other = together.of("Q", 0), single.of("Q", 0)
        assert (one.gets, one.last_get_ms) == (other.gets, other.last_get_ms)
        assert one.q_time_short_us == pytest.approx(other.q_time_short_us, abs=2**SHORT)
        assert one.q_time_long_us == pytest.approx(other.q_time_long_us, abs=2**LONG)


class Changes:
    """What comes to a queue, leaves it and comes back to it, by chance."""

    def __init__(self, world, seed):
        self.world, self.chance = world, random.Random(seed)
        self.units, self.made, self.batches = {"app": 1, "other": 1}, 0, []
        world.define("ASIDE", def_persistence="persistent")
        self.handles = {who: world.open("Q", OpenOption.INPUT_SHARED, as_=who) for who in self.units}

    def step(self):
        ways = (self.put, self.put, self.put_in_unit, self.get, self.get_in_unit, self.end_unit)
        ways += (self.expire, self.reserve, self.release, self.move, self.reset, self.pass_time)
        self.chance.choice(ways)()

    def who(self):
        return self.chance.choice(sorted(self.units))

    def put(self):
        self.world.put("Q", priority=self.chance.randrange(3), expiry=self.chance.choice((-1, -1, 20)))

    def put_in_unit(self):
        who = self.who()
        self.world.put("Q", as_=who, unit=self.units[who])

    def get(self):
        self.world.do(Get(handle=self.handles["app"]))

    def get_in_unit(self):
        who = self.who()
        self.world.do(Get(handle=self.handles[who], options=SYNCPOINT, unit=self.units[who]), who)

    def end_unit(self):
        who = self.who()
        self.world.did(self.chance.choice((Commit, Backout))(unit=self.units[who]), who)
        self.units[who] += 1

    def expire(self):
        self.world.put("Q", expiry=1)
        self.world.clock.advance(200)

    def reserve(self):
        self.made += 1
        call = Reserve(handle=self.handles["app"], consumer=f"JOB{self.made}", max_messages=2)
        reply = self.world.do(call)
        self.batches += [number] if (number := getattr(reply, "reservation", 0)) else []

    def release(self):
        if self.batches:
            self.world.did(Release(reservation=self.batches.pop()), "operator")

    def move(self):
        self.world.do(Move(q_name="Q", to_q_name="ASIDE", count=1), "operator")
        self.world.do(Move(q_name="ASIDE", to_q_name="Q", count=1), "operator")

    def reset(self):
        self.world.did(Reset(q_name="Q"), "operator")

    def pass_time(self):
        self.world.clock.advance(1500)


@pytest.mark.parametrize("seed", range(3))
def test_the_oldest_message_that_was_kept_is_the_one_that_a_look_finds(world, seed):
    changes, kept = Changes(world, seed), 0
    for _ in range(60 if world.kind == "postgres" else 400):
        for _ in range(changes.chance.randrange(1, 6)):
            changes.step()
        before = dict(world.qm._activity._oldest)
        shown = status(world)["oldest_ms"]
        kept += bool(before) and world.qm._activity._oldest == before
        world.qm._activity._oldest.clear()
        assert status(world)["oldest_ms"] == shown
    assert kept  # time alone, for one, changes nothing


def older_comes_back_while_the_newer_is_got(world):
    other = world.open("Q", OpenOption.INPUT_SHARED, as_="other")
    get(world, SYNCPOINT, unit=1)
    yield
    world.did(Get(handle=other, options=SYNCPOINT, unit=1), "other")
    world.did(Backout(unit=1))


def older_comes_back_while_the_newer_is_moved(world):
    get(world, SYNCPOINT, unit=1)
    yield
    world.did(Move(q_name="Q", to_q_name="ASIDE", count=1), "operator")
    world.did(Backout(unit=1))


def older_is_released_while_the_newer_is_moved(world):
    reply = world.did(Reserve(handle=world.handle, consumer="JOB", max_messages=1))
    yield
    world.did(Move(q_name="Q", to_q_name="ASIDE", count=1), "operator")
    world.did(Release(reservation=reply.reservation), "operator")


@pytest.mark.parametrize(
    "change",
    [
        older_comes_back_while_the_newer_is_got,
        older_comes_back_while_the_newer_is_moved,
        older_is_released_while_the_newer_is_moved,
    ],
    ids=lambda change: change.__name__,
)
def test_the_depth_that_was_may_be_of_other_messages(world, change):
    world.define("ASIDE", def_persistence="persistent")
    for _ in range(2):
        world.put("Q")
        world.clock.advance(1000)
    steps = change(world)
    next(steps)
    row = status(world)
    assert next(steps, None) is None
    assert status(world)["current_q_depth"] == row["current_q_depth"]
    assert status(world)["oldest_ms"] == row["oldest_ms"] - 1000


def test_a_message_that_is_committed_may_be_older_than_the_oldest_was(world):
    world.put("Q", as_="other", unit=1)
    world.clock.advance(1000)
    world.put("Q")
    row = status(world)
    world.did(Commit(unit=1), "other")
    assert status(world)["current_q_depth"] == row["current_q_depth"]
    assert status(world)["oldest_ms"] == row["oldest_ms"] - 1000


def test_what_is_kept_of_a_queue_goes_with_it(world):
    world.put("Q")
    first = status(world)["oldest_ms"]
    world.lose("app")
    world.did(Delete(object_type="QLOCAL", name="Q", purge=True), "operator")
    world.clock.advance(1000)
    world.define("Q")
    world.put("Q")
    assert status(world)["oldest_ms"] == first + 1000
