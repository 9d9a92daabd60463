"""How often a turn goes to the server: what a batch of calls costs does not grow with the calls."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Commit, Get, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption

IN = OpenOption.INPUT_SHARED
LASTING = MessageDescriptor(persistence=1)


@pytest.fixture
def world(tmp_path):
    made = World("postgres", tmp_path)
    made.define("Q", max_q_depth=100_000)
    made.qm.housekeeping.idle()
    yield made
    made.end()


def trips(world, act) -> int:
    """How often the act went to the server."""
    before = world.store._turn.link.trips
    act()
    return world.store._turn.link.trips - before


def turn(world, *calls, of=1):
    """One turn of calls, from so many connections each; the replies."""
    requests = [
        (world.session(f"app{number}"), sequence, call)
        for sequence, call in enumerate(calls, 1)
        for number in range(of)
    ]
    return [answer.reply for answer in world.qm.turn(requests)]


def test_a_turn_of_puts_is_one_trip_however_many_they_are(world):
    assert trips(world, lambda: turn(world, Put(q_name="Q", descriptor=LASTING))) == 1
    assert trips(world, lambda: turn(world, Put(q_name="Q", descriptor=LASTING), of=100)) == 1


def test_gets_from_a_queue_that_is_known_are_one_trip_a_turn_and_read_nothing(world):
    turn(world, Put(q_name="Q", descriptor=LASTING), of=101)
    handle = world.open("Q", IN, as_="app0")
    got = []
    world.did(Get(handle=handle), "app0")
    for _ in range(10):
        assert trips(world, lambda: got.extend(turn(world, *[Get(handle=handle)] * 5))) <= 3
    assert trips(world, lambda: [got.extend(turn(world, *[Get(handle=handle)] * 25)) for _ in range(2)]) <= 4
    assert len({reply.descriptor.msg_id for reply in got}) == 100


def test_units_of_work_of_many_clients_are_put_and_committed_in_one_trip(world):
    puts = Put(q_name="Q", descriptor=LASTING, options=2, unit=1)
    assert trips(world, lambda: turn(world, puts, Commit(unit=1), of=50)) == 1
    assert world.queue_depth("Q") == 50
    world.crash()
    assert world.queue_depth("Q") == 50


def test_what_no_crash_has_to_keep_goes_to_the_server_when_there_is_time(world):
    handle = world.open("Q", IN)
    world.do(Get(handle=handle))
    assert trips(world, lambda: [(world.put("Q"), world.did(Get(handle=handle))) for _ in range(50)]) == 0
    world.put("Q", b"left")
    assert trips(world, world.qm.housekeeping.idle) == 1
    assert world.did(Get(handle=handle)).data == b"left"


def test_a_backed_out_message_is_got_again_without_being_read_again(world):
    world.put("Q", b"first", persistence=1)
    world.put("Q", b"second", persistence=1)
    handle = world.open("Q", IN)
    world.did(Get(handle=handle, unit=1, options=GetOption.SYNCPOINT))
    assert world.queue_depth("Q") == 1
    world.lose("app")
    again = world.open("Q", IN)
    reply = []
    assert trips(world, lambda: reply.append(world.did(Get(handle=again)))) == 1
    assert (reply[0].data, reply[0].descriptor.backout_count) == (b"first", 1)


def test_a_larger_get_goes_on_behind_what_is_known_over_every_priority(world):
    for priority in (3, 9, 0):
        for number in range(200):
            world.put("Q", b"%d:%d" % (priority, number), persistence=1, priority=priority)
    world.restart()
    handle = world.open("Q", IN)
    found = [world.did(Get(handle=handle)).data for _ in range(600)]
    assert found == [b"%d:%d" % (priority, number) for priority in (9, 3, 0) for number in range(200)]


def test_what_was_committed_without_waiting_lasts_when_it_is_prepared_and_that_costs_a_trip_once(world):
    turn(world, Put(q_name="Q", descriptor=LASTING))
    handle = world.open("Q", IN, as_="app0")
    turn(world, Get(handle=handle, options=int(GetOption.SYNCPOINT), unit=1))
    assert trips(world, world.store.prepare) == 1
    assert trips(world, world.store.prepare) == 0
