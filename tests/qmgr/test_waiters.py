"""Waiting gets: whoever waits, however often and until the same moment, is answered in order."""

from tests.worlds import World
from trigmon.mq.calls import Alter, Commit, Get, Put
from trigmon.mq.enums import GetOption, MatchOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

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


def test_only_those_whom_a_message_concerns_are_asked_again(world: World, monkeypatch):
    world.define("REPLIES")
    asked = []
    for number in range(20):
        name, correl_id = f"app{number}", b"%024d" % number
        handle = world.open("REPLIES", OpenOption.INPUT_SHARED, as_=name)
        get = Get(handle=handle, options=WAIT, wait_interval_ms=5000, match=MatchOption.CORREL_ID, correl_id=correl_id)
        assert world.do(get, name) is None
    retry = world.qm._retry
    monkeypatch.setattr(world.qm, "_retry", lambda session, *rest: asked.append(session) or retry(session, *rest))
    world.put("REPLIES", correl_id=b"%024d" % 7, as_="server")
    world.put("REPLIES", correl_id=b"%024d" % 3, as_="server", unit=1)
    world.did(Commit(unit=1), "server")
    assert [session.identity.application for session in asked] == ["app7", "app3"]
    assert [answer.session.identity.application for answer in world.ended_waits] == ["app7", "app3"]


def test_who_waits_through_an_alias_hears_that_it_was_closed_to_gets(world: World):
    world.define("Q")
    world.define("AL", "QALIAS", base_q_name="Q")
    for name, q_name in (("first", "Q"), ("second", "AL")):
        world.do(
            Get(handle=world.open(q_name, OpenOption.INPUT_SHARED, as_=name), options=WAIT, wait_interval_ms=-1), name
        )
    world.did(Alter(object_type="QALIAS", name="AL", attributes={"inhibit_get": "inhibited"}), "operator")
    ((answer),) = world.ended_waits
    assert (answer.session.identity.application, answer.reply.reason) == ("second", Reason.GET_INHIBITED)
