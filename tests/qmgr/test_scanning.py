"""Expired messages in great number: a slice of them a turn, whoever meets them, and nobody waits behind all."""

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Alter, Delete, Get, GetMany, Put, PutMany, Refresh
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot, WereGot
from trigmon.mq.rights import Right
from trigmon.rules.call_rights import RIGHTS
from trigmon.rules.model.stored_messages import SLICE

IN = OpenOption.INPUT_SHARED
MANY = 3 * SLICE + 10


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("Q", max_q_depth=100_000, def_persistence="persistent")
    made.define("OTHER")
    yield made
    made.end()


def expired(world, count=MANY, q_name="Q", **fields):
    descriptor = MessageDescriptor(expiry=1, **fields)
    world.did(PutMany(q_name=q_name, bodies=[b"m"] * count, descriptor=descriptor))
    world.clock.advance(100)


def depth(world, q_name="Q"):
    return world.store.standing.queues[q_name].depth


def turn(world, *calls, as_="app"):
    """One turn, and its replies by sequence."""
    session = world.session(as_)
    return {a.sequence: a.reply for a in world.qm.turn([(session, n, call) for n, call in enumerate(calls, 1)])}


@pytest.mark.parametrize("call", [Get, lambda **said: GetMany(count=5, **said)])
def test_a_get_that_meets_them_discards_a_slice_a_turn_and_is_answered_when_it_has_what_it_wants(world, call):
    expired(world)
    world.put("Q", b"live", priority=0)
    handle = world.open("Q", IN)
    assert turn(world, call(handle=handle)) == {}
    depths = [depth(world)]
    answered = {}
    while not answered:
        assert world.qm.next_deadline_ms() <= world.clock.now()
        answered = turn(world)
        depths.append(depth(world))
    assert isinstance(answered[1], WasGot | WereGot)
    assert all(before - after <= SLICE + 1 for before, after in zip([MANY + 1, *depths], depths, strict=False))
    assert depths[-1] == 0


def test_others_are_served_between_two_slices(world):
    expired(world)
    handle = world.open("Q", IN, as_="reader")
    assert turn(world, Get(handle=handle), as_="reader") == {}
    assert 1 in turn(world, Put(q_name="OTHER", data=b"m"))
    assert depth(world) > 0
    assert world.session("reader").parked is not None


def test_several_gets_of_one_turn_share_its_slice(world):
    expired(world)
    names = ("one", "two", "three")
    handles = {name: world.open("Q", IN, as_=name) for name in names}
    world.qm.turn([(world.session(name), 1, Get(handle=handles[name])) for name in names])
    assert depth(world) >= MANY - 2 * SLICE


def test_one_without_a_wait_gets_2033_and_one_with_a_wait_keeps_its_time(world):
    expired(world)
    handle = world.open("Q", IN)
    reply = world.do(Get(handle=handle))
    assert isinstance(reply, Refused)
    assert (reply.reason, depth(world)) == (Reason.NO_MSG_AVAILABLE, 0)
    expired(world)
    assert world.do(Get(handle=handle, options=int(GetOption.WAIT), wait_interval_ms=5000)) is None
    assert (depth(world), world.qm.next_deadline_ms()) == (0, world.clock.now() + 5000)
    world.clock.advance(4999)
    assert turn(world) == {}
    world.clock.advance(1)
    (answer,) = world.qm.turn([])
    assert answer.reply.reason == Reason.NO_MSG_AVAILABLE


def test_one_that_waits_for_ever_goes_on_waiting_behind_them_and_gets_what_comes(world):
    expired(world)
    handle = world.open("Q", IN, as_="reader")
    wait = Get(handle=handle, options=int(GetOption.WAIT), wait_interval_ms=-1)
    assert world.do(wait, "reader") is None
    assert (depth(world), world.qm.next_deadline_ms()) == (0, None)
    world.put("Q", b"new")
    assert [a.reply.data for a in world.ended_waits] == [b"new"]


def test_a_lost_connection_in_the_midst_of_them_is_forgotten(world):
    expired(world)
    handle = world.open("Q", IN, as_="reader")
    turn(world, Get(handle=handle), as_="reader")
    world.qm.lost([world.session("reader")])
    assert world.qm.next_deadline_ms() is None
    assert 0 < depth(world) < MANY


def test_a_start_answers_first_and_discards_them_after_it_a_slice_at_a_time(world):
    expired(world, report=0x0020_0000, reply_to_q="REPLY")
    world.define("REPLY")
    world.restart()
    assert world.qm.housekeeping.is_scanning
    assert depth(world) == MANY
    left = [MANY]
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
        left.append(depth(world))
        assert left[-2] - left[-1] <= SLICE
    assert left[-1] == 0
    assert depth(world, "REPLY") == MANY


def test_a_look_through_many_queues_ends_with_each_looked_at_once(world):
    for number in range(600):
        world.define(f"Q.{number:03}")
    for number in (0, 300, 599):
        expired(world, 1, f"Q.{number:03}")
    reply = world.did(Refresh(name="Q.*"))
    assert reply.count == 600
    slices = 0
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
        slices += 1
    assert [depth(world, f"Q.{number:03}") for number in (0, 300, 599)] == [0, 0, 0]
    assert slices >= 3


def test_a_slice_is_one_turn_and_shared_by_its_queues(world, monkeypatch):
    names = [f"Q{number}" for number in range(8)]
    for name in names:
        world.define(name, def_persistence="persistent")
        expired(world, SLICE, name)
    end, ends = world.store.end, []
    monkeypatch.setattr(world.store, "end", lambda: (ends.append(1), end()))
    world.did(Refresh())
    ends.clear()
    world.qm.housekeeping.scan()
    assert len(ends) == 1
    assert 0 < sum(SLICE - depth(world, name) for name in names) <= SLICE
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
    assert [depth(world, name) for name in names] == [0] * 8


def test_a_queue_that_was_deleted_meanwhile_is_passed_by(world):
    world.did(Refresh(name="OTHER"))
    world.did(Delete(object_type="QLOCAL", name="OTHER"))
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()


def test_a_look_that_is_late_is_made_late_and_not_dropped(world):
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
    world.did(Alter(object_type="QMGR", name="QM1", attributes={"expiry_interval": 60}), "operator")
    world.clock.advance(59_999)
    world.qm.housekeeping.expire()
    assert not world.qm.housekeeping.is_scanning
    world.clock.advance(500_000)
    world.qm.housekeeping.expire()
    assert world.qm.housekeeping.is_scanning
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
    world.qm.housekeeping.expire()
    assert not world.qm.housekeeping.is_scanning


def test_an_interval_outlives_a_restart(world):
    world.did(Alter(object_type="QMGR", name="QM1", attributes={"expiry_interval": 60}), "operator")
    world.restart()
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
    expired(world)
    world.clock.advance(60_000)
    world.qm.housekeeping.expire()
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
    assert depth(world) == 0


def test_only_an_administrator_asks_for_a_look():
    assert [need.right for need in RIGHTS[Refresh](Refresh(), None)] == [Right.CTRL]
