"""A browse by many messages a call sees what a browsing MQGET sees, and ranges divide the work, on every store."""

from __future__ import annotations

import random

import pytest

from tests.qmgr.members import Member
from trigmon.client.browse import Range, browse, plan
from trigmon.mq.calls import Alter, Backout, BrowseMany, Commit, Define, Get, GetMany, Open, PlanBrowse, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Refused, WasGot
from trigmon.qmgr.manager import SLICE
from trigmon.rules.messages.browse_many import MOST_SKIPPED
from trigmon.store.memory.group import MemoryGroup
from trigmon.store.sql.leftovers import Leftovers

IN, BROWSE = OpenOption.INPUT_SHARED, OpenOption.BROWSE
SYNC = int(GetOption.SYNCPOINT)
FIRST, NEXT = int(GetOption.BROWSE_FIRST), int(GetOption.BROWSE_NEXT)


class Asking:
    """What the client's browse needs of a connection, at a world or a member of a group."""

    def __init__(self, world, *name):
        self._world = world
        self._name = name

    def ask(self, call, kind, *, is_sound=False):
        reply = self._world.do(call, *self._name)
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
        assert isinstance(reply, kind)
        return reply

    def opened(self, options=int(BROWSE)):
        return self._world.did(Open(object_name="Q", options=options), *self._name).handle


def planned(asking, handle, parts):
    return plan(asking, handle, lambda depth: parts)


def read(asking, handle, of):
    return [got for batch in browse(asking, handle, of) for got in batch]


def one_by_one(asking, handle):
    seen, step = [], FIRST
    while True:
        try:
            seen.append(asking.ask(Get(handle=handle, options=step), WasGot))
        except MQError as end:
            assert end.reason == 2033
            return seen
        step = NEXT


def bodies(messages):
    return [got.data for got in messages]


def fill(world, count, seed):
    """Puts messages of all kinds: of any priority, expired, in open units of work, got; one locked elsewhere."""
    chosen = random.Random(seed)
    for number in range(count):
        body, priority = b"%d" % number, chosen.randrange(10)
        match chosen.randrange(8):
            case 0:
                world.put("Q", body, priority=priority, expiry=1)
            case 1:
                world.put("Q", body, as_="writer", unit=1, priority=priority)
            case 2:
                world.put("Q", body, as_="browser", unit=1, priority=priority)
            case _:
                world.put("Q", body, priority=priority, expiry=-1 if number % 3 else 36_000)
    handle = world.open("Q", IN, BROWSE, as_="getter")
    world.did(GetMany(handle=handle, count=3, options=SYNC, unit=1), "getter")
    if seed % 2:
        world.did(Get(handle=handle, options=FIRST | int(GetOption.LOCK)), "getter")
    world.clock.advance(1000)


@pytest.mark.parametrize("seed", range(4))
def test_it_sees_what_a_browse_sees_in_the_same_order_in_any_number_of_ranges(world, seed):
    world.define("Q")
    fill(world, 60, seed)
    asking = Asking(world, "browser")
    handle = asking.opened()
    for parts in (1, 2, 3, 7, 100):
        ranges = planned(asking, handle, parts)
        assert len(ranges) <= parts
        seen = [got for each in ranges for got in read(asking, handle, each)]
        assert seen == one_by_one(asking, handle)
        assert len(seen) > 20


@pytest.mark.parametrize("count", [1, 2, 5])
def test_calls_of_any_length_go_on_where_the_last_one_ended(world, count, monkeypatch):
    monkeypatch.setattr("trigmon.client.browse.COUNT", count)
    world.define("Q")
    fill(world, 40, 9)
    asking = Asking(world, "browser")
    handle = asking.opened()
    assert read(asking, handle, Range()) == one_by_one(asking, handle)


def test_each_message_is_in_one_range_also_one_put_after_the_plan_and_one_got_meanwhile_in_none(world):
    world.define("Q")
    for number in range(40):
        world.put("Q", b"%d" % number, priority=number % 4)
    asking = Asking(world, "browser")
    handle = asking.opened()
    ranges = planned(asking, handle, 4)
    assert [bool(each.until) for each in ranges] == [True, True, True, False]
    for priority in range(10):
        world.put("Q", b"later %d" % priority, priority=priority)
    gone = bodies(world.did(GetMany(handle=world.open("Q", IN), count=12)).messages)
    parts = [bodies(read(asking, handle, each)) for each in reversed(ranges)]
    expected = [b"%d" % number for number in range(40)] + [b"later %d" % priority for priority in range(10)]
    assert sorted([body for part in parts for body in part] + gone) == sorted(expected)
    assert len(gone) == 12
    assert max(map(len, parts)) <= 20


def test_what_is_put_while_a_range_is_read_is_not_in_it(world, monkeypatch):
    monkeypatch.setattr("trigmon.client.browse.COUNT", 2)
    world.define("Q")
    world.did(PutMany(q_name="Q", bodies=[b"%d" % number for number in range(6)]))
    asking = Asking(world, "browser")
    seen = []
    for batch in browse(asking, asking.opened(), Range()):
        world.did(PutMany(q_name="Q", bodies=[b"later"] * 3))
        seen += bodies(batch)
    assert seen == [b"%d" % number for number in range(6)]


def test_ranges_are_about_equal_over_several_priorities(world):
    world.define("Q")
    world.did(PutMany(q_name="Q", bodies=[b"x"] * 500, descriptor=MessageDescriptor(priority=3)))
    world.did(PutMany(q_name="Q", bodies=[b"x"] * 500, descriptor=MessageDescriptor(priority=5)))
    asking = Asking(world, "browser")
    handle = asking.opened()
    sizes = [len(read(asking, handle, each)) for each in planned(asking, handle, 4)]
    assert sizes == [250] * 4


def test_a_plan_looks_over_so_many_messages_a_call(world):
    world.define("Q", max_q_depth=999_999)
    handle = Asking(world, "browser").opened()
    reply = world.did(PlanBrowse(handle=handle, skip=10**9), "browser")
    assert (reply.skipped, reply.after) == (MOST_SKIPPED, [])


def test_a_queue_with_groups_is_one_range(world):
    world.define("Q")
    world.did(PutMany(q_name="Q", bodies=[b"x"] * 100))
    item = {"group_id": padded_id("G"), "msg_flags": int(MsgFlag.MSG_IN_GROUP)}
    world.put("Q", b"first", msg_seq_number=1, **item)
    asking = Asking(world, "browser")
    handle = asking.opened()
    assert planned(asking, handle, 4) == [Range()]
    world.put("Q", b"second", msg_seq_number=2, **item)
    seen = read(asking, handle, Range())
    assert seen == one_by_one(asking, handle)
    assert bodies(seen)[-2:] == [b"first", b"second"]


@pytest.mark.parametrize("how", ["commit of puts", "backout of gets"])
def test_a_large_unit_of_work_is_seen_before_its_rows_are_rewritten(world, how, monkeypatch):
    monkeypatch.setattr(Leftovers, "at_once", 50)
    world.define("Q")
    unit = 1 if how == "commit of puts" else 0
    world.did(PutMany(q_name="Q", bodies=[b"%d" % n for n in range(300)], options=2 * unit, unit=unit))
    if unit:
        world.did(Commit(unit=1))
    else:
        world.did(GetMany(handle=world.open("Q", IN), count=300, options=SYNC, unit=1))
        world.did(Backout(unit=1))
    asking = Asking(world, "browser")
    handle = asking.opened()
    for _ in range(3):
        ranges = planned(asking, handle, 3)
        assert bodies([got for each in ranges for got in read(asking, handle, each)]) == [b"%d" % n for n in range(300)]
        if world.store.has_leftovers:
            world.store.begin()
            world.store.remove_leftovers()
            world.store.end()


def test_a_reply_has_so_many_bytes_and_a_longer_message_comes_alone(world):
    world.did(Alter(object_type="QMGR", name="QM1", attributes={"max_msg_length": 100 << 20}), "operator")
    world.define("Q", max_msg_length=100 << 20)
    for size in (3, 2, 6, 1):
        world.put("Q", bytes(size << 20))
    asking = Asking(world, "browser")
    handle = asking.opened()
    assert [[len(got.data) >> 20 for got in batch] for batch in browse(asking, handle, Range())] == [[3], [2], [6], [1]]


def test_more_expired_messages_than_a_turn_discards_are_passed_by(world):
    world.define("Q", max_q_depth=9999)
    for _ in range(2):
        world.did(PutMany(q_name="Q", bodies=[b"x"] * (3 * SLICE), descriptor=MessageDescriptor(expiry=1)))
        world.put("Q", b"there")
    world.clock.advance(1000)
    asking = Asking(world, "browser")
    assert bodies(read(asking, asking.opened(), Range())) == [b"there", b"there"]


def test_the_cursor_stays_and_only_so_many_are_read_as_are_wanted(world):
    world.define("Q")
    world.did(PutMany(q_name="Q", bodies=[b"a", b"b", b"c"]))
    asking = Asking(world, "browser")
    handle = asking.opened()
    asking.ask(Get(handle=handle, options=FIRST), WasGot)
    assert [bodies(batch) for batch in browse(asking, handle, Range(), most=2)] == [[b"a", b"b"]]
    assert asking.ask(Get(handle=handle, options=NEXT), WasGot).data == b"b"


@pytest.mark.parametrize("call", [BrowseMany, PlanBrowse])
def test_it_is_refused_as_a_browse_is(world, call):
    world.define("Q")
    handle = world.open("Q", IN)
    assert world.do(call(handle=handle)).reason == 2036
    handle = world.open("Q", BROWSE)
    assert world.do(call(handle=handle, after=[1])).reason == 2046
    world.did(Alter(object_type="QLOCAL", name="Q", attributes={"inhibit_get": "inhibited"}), "operator")
    assert world.do(call(handle=handle)).reason == 2016


def test_numbers_that_no_plan_gives_are_refused(world):
    world.define("Q")
    handle = world.open("Q", BROWSE)
    for wrong in ({"count": 0}, {"newest": -1}, {"until": [1, -1]}, {"until": [2**63, 1]}):
        assert world.do(BrowseMany(handle=handle, **wrong)).reason == 2046
    assert world.do(PlanBrowse(handle=handle, skip=-1)).reason == 2046


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_a_shared_queue_is_divided_too(request, kind, tmp_path):
    shared = request.getfixturevalue("group") if kind == "postgres" else MemoryGroup()
    one, two = (Member("memory", tmp_path, shared, name) for name in ("QM1", "QM2"))
    try:
        one.did(Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared", "max_q_depth": 9999}))
        for number in range(60):
            (one, two)[number % 2].did(
                Put(q_name="Q", data=b"%d" % number, descriptor=MessageDescriptor(priority=number % 3))
            )
        asking = Asking(two)
        handle = asking.opened()
        ranges = planned(asking, handle, 3)
        assert len(ranges) == 3
        seen = []
        for each in ranges:
            for batch in browse(asking, handle, each):
                seen += batch
                one.did(Put(q_name="Q", data=b"later", descriptor=MessageDescriptor(priority=9)))
        assert seen == [got for got in one_by_one(asking, handle) if got.data != b"later"]
        assert len(seen) == 60
    finally:
        for member in (one, two):
            member.die()
