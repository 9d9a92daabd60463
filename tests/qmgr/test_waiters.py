"""Waiting gets: whoever waits, however often and until the same moment, is answered in order."""

from tests.worlds import World
from trigmon.mq.calls import Get, Put, Refused
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason

WAIT = GetOption.WAIT.value


def idle_until(world: World, wait_interval_ms: int) -> None:
    """Somebody waits on another queue, and his time is up before that of the others."""
    world.define("IDLE")
    handle = world.open("IDLE", OpenOption.INPUT_SHARED, as_="idle")
    assert world.do(Get(handle=handle, options=WAIT, wait_interval_ms=wait_interval_ms), "idle") is None


def test_a_get_answered_and_waiting_again_in_the_same_millisecond(world: World):
    idle_until(world, 1000)
    world.define("Q")
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    waiting = Get(handle=handle, options=WAIT, wait_interval_ms=5000)
    for _ in range(5):
        assert world.do(waiting) is None
        world.did(Put(q_name="Q"), "producer")
    assert world.do(waiting) is None
    world.clock.advance(5000)
    _, answer = world.qm.turn([])
    assert isinstance(answer.reply, Refused) and answer.reply.reason == Reason.NO_MSG_AVAILABLE


def test_waits_that_were_answered_early_are_not_kept_until_their_time(world: World):
    idle_until(world, 1000)
    world.define("Q")
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    for _ in range(1000):
        world.do(Get(handle=handle, options=WAIT, wait_interval_ms=3_600_000))
        world.did(Put(q_name="Q"), "producer")
    assert len(world.qm._waiters._deadlines) < 200
