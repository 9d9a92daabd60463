"""Locks, as others feel them: who waits is woken when a message is let go, and by nothing before."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Close, Disconnect, Get, GetMany, Move
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.replies import WasGot

IN, BROWSE = OpenOption.INPUT_SHARED, OpenOption.BROWSE
WAIT = GetOption.WAIT.value
LOCK_FIRST = int(GetOption.BROWSE_FIRST | GetOption.LOCK)
LOCK_NEXT = int(GetOption.BROWSE_NEXT | GetOption.LOCK)


def lock_the_first(world: World) -> int:
    world.define("Q")
    world.put("Q", b"m")
    handle = world.open("Q", BROWSE | IN, as_="holder")
    assert world.did(Get(handle=handle, options=LOCK_FIRST), "holder").data == b"m"
    return handle


def waiting(world: World, options: int = 0) -> None:
    handle = world.open("Q", BROWSE | IN, as_="waiter")
    assert world.do(Get(handle=handle, options=options | WAIT, wait_interval_ms=5000), "waiter") is None


def heard(world: World) -> list[bytes]:
    answers = [(answer.session.identity.application, answer.reply) for answer in world.ended_waits]
    world.ended_waits.clear()
    assert all(name == "waiter" and isinstance(reply, WasGot) for name, reply in answers)
    return [reply.data for _, reply in answers]


@pytest.mark.parametrize("options", [0, GetOption.BROWSE_FIRST, LOCK_FIRST])
@pytest.mark.parametrize("how", ["unlock", "close", "disconnect", "lost", "browse on"])
def test_a_waiting_get_gets_the_message_when_it_is_unlocked(world: World, how, options):
    handle = lock_the_first(world)
    waiting(world, options)
    assert heard(world) == []
    match how:
        case "unlock":
            world.did(Get(handle=handle, options=int(GetOption.UNLOCK)), "holder")
        case "close":
            world.did(Close(handle=handle), "holder")
        case "disconnect":
            world.did(Disconnect(), "holder")
        case "lost":
            world.ended_waits += world.qm.lost([world.session("holder")])
        case "browse on":
            world.do(Get(handle=handle, options=LOCK_NEXT), "holder")
    assert heard(world) == [b"m"]


def test_a_browse_that_begins_to_wait_lets_its_message_go_before(world: World):
    handle = lock_the_first(world)
    waiting(world)
    assert world.do(Get(handle=handle, options=LOCK_NEXT | WAIT, wait_interval_ms=1000), "holder") is None
    assert heard(world) == [b"m"]


def test_of_several_who_wait_to_lock_a_message_one_does(world: World):
    world.define("Q")
    for name in ("one", "two"):
        handle = world.open("Q", BROWSE, as_=name)
        assert world.do(Get(handle=handle, options=LOCK_FIRST | WAIT, wait_interval_ms=5000), name) is None
    world.put("Q", b"m")
    assert [answer.session.identity.application for answer in world.ended_waits] == ["one"]


def test_a_get_of_several_passes_by_what_another_handle_has_locked(world: World):
    lock_the_first(world)
    world.put("Q", b"n")
    handle = world.open("Q", IN)
    assert [message.data for message in world.did(GetMany(handle=handle, count=9)).messages] == [b"n"]


def test_a_move_leaves_a_locked_message_where_it_is(world: World):
    lock_the_first(world)
    world.put("Q", b"n")
    world.define("TO")
    moved = world.did(Move(q_name="Q", to_q_name="TO"), "operator")
    assert (moved.count, moved.more) == (1, True)
    moved = world.did(Move(q_name="Q", to_q_name="TO"), "operator")
    assert (moved.count, moved.more) == (0, False)


def test_a_get_of_several_neither_locks_nor_marks(world: World):
    lock_the_first(world)
    handle = world.open("Q", IN | BROWSE)
    for option in (GetOption.MARK_SKIP_BACKOUT | GetOption.SYNCPOINT, GetOption.UNLOCK, GetOption.LOCK):
        assert world.do(GetMany(handle=handle, count=1, options=int(option), unit=1)).reason == 2046


def test_a_get_of_several_if_persistent_takes_each_as_it_is(world: World):
    world.define("Q")
    for body, persistence in ((b"kept", 1), (b"light", 0), (b"kept too", 1)):
        world.put("Q", body, persistence=persistence)
    handle = world.open("Q", IN)
    many = GetMany(handle=handle, count=9, options=int(GetOption.SYNCPOINT_IF_PERSISTENT), unit=1)
    assert len(world.did(many).messages) == 3
    world.qm.lost([world.session("app")])
    handle = world.open("Q", IN)
    left = world.did(GetMany(handle=handle, count=9)).messages
    assert [(message.data, message.descriptor.backout_count) for message in left] == [(b"kept", 1), (b"kept too", 1)]


@pytest.mark.parametrize("unit", [0, -1, 2**63])
def test_under_syncpoint_if_persistent_names_a_unit_whatever_the_message_is(world: World, unit):
    world.define("Q")
    world.put("Q", b"light", persistence=0)
    handle = world.open("Q", IN)
    get = Get(handle=handle, options=int(GetOption.SYNCPOINT_IF_PERSISTENT), unit=unit)
    assert world.do(get).reason == 2046
