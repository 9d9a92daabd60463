"""Many messages that are read at once are those that the cache of a queue's first messages would have."""

from __future__ import annotations

import random

import pytest

from tests.store.reserving import BROWSE, IN, sweep
from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get, GetMany, PutMany, Release, Reserve, Settle
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption
from trigmon.mq.replies import Reserved, WereGot
from trigmon.rules.model.stored_messages import SLICE

LOCK = GetOption.BROWSE_FIRST | GetOption.LOCK


def play(world, dice):
    """Puts, gets, locks and reserves as the dice say; returns what was answered."""
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    handle, browser = world.open("Q", IN, as_="job"), world.open("Q", BROWSE, as_="browser")
    seen, put, made = [], 0, []
    for step in range(14):
        count = dice.choice((3, SLICE, 2 * SLICE + 5))
        fields = {"priority": dice.randrange(3), "expiry": dice.choice((-1, -1, 20))}
        bodies = [b"%d" % number for number in range(put, put + count)]
        world.did(PutMany(q_name="Q", bodies=bodies, descriptor=MessageDescriptor(**fields)))
        put += count
        world.clock.advance(dice.choice((0, 500)))
        if dice.random() < 0.3:
            world.do(Get(handle=browser, options=LOCK), "browser")
        how = dice.randrange(4)
        if how == 0:
            reply = world.do(GetMany(handle=handle, count=dice.choice((2, SLICE, 3 * SLICE))), "job")
            seen += [each.data for each in reply.messages] if isinstance(reply, WereGot) else [reply]
        elif how == 1:
            taking = GetMany(handle=handle, count=SLICE + 7, options=GetOption.SYNCPOINT.value, unit=step + 1)
            seen.append(world.do(taking, "job"))
            seen.append(world.do(dice.choice((Commit, Backout))(unit=step + 1), "job"))
        else:
            call = Reserve(handle=handle, consumer=f"JOB {step}", max_messages=dice.choice((SLICE, 3 * SLICE)))
            while isinstance(reply := world.do(call, "job"), Reserved) and reply.more:
                pass
            seen.append(reply)
            made += [reply.reservation] if isinstance(reply, Reserved) else []
        if made and dice.random() < 0.5:
            end = dice.choice((Settle, Release))
            seen.append(world.do(end(reservation=made.pop(), ordinal=1, count=SLICE), "job"))
            sweep(world)
    rest = world.open("Q", IN, as_="rest")
    while isinstance(reply := world.do(GetMany(handle=rest, count=SLICE), "rest"), WereGot):
        seen += [each.data for each in reply.messages]
    return seen


def told(one):
    """What was answered, without ids and times, which are each world's own."""
    if isinstance(one, WereGot):
        return [each.data for each in one.messages]
    return (one.count, one.size, one.left) if isinstance(one, Reserved) else one


@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_same_whatever_was_done_before(tmp_path, seed):
    found = []
    for name, is_read_at_once in (("at-once", True), ("by-the-cache", False)):
        (tmp_path / name).mkdir()
        world = World("sqlite", tmp_path / name)
        world.store.reads_at_once = is_read_at_once
        found.append([told(one) for one in play(world, random.Random(seed))])
        world.end()
    assert found[0] == found[1]


def test_a_full_slice_is_not_cached_and_the_last_one_is(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    world.did(PutMany(q_name="Q", bodies=[b"x"] * (2 * SLICE + 1)))
    call = Reserve(handle=world.open("Q", IN, as_="job"), consumer="JOB")
    assert world.did(call, "job").more
    assert not world.store.ahead.has("Q", 0)
    while world.did(call, "job").more:
        pass
    assert world.store.ahead.has("Q", SLICE)
    world.end()
