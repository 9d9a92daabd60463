"""What a member does about the messages of another: it answers gets that wait, each once, and starts programs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.qmgr.members import IN, Member
from trigmon.mq.calls import Define, Explain, Get, Open
from trigmon.mq.enums import GetOption
from trigmon.mq.errors import StorageMediumFull
from trigmon.mq.replies import Refused, WasGot
from trigmon.qmgr.manager_events import SharedQueuesJudged, SharedQueuesUnjudged, Telling
from trigmon.rules.model.internal_calls import JudgeShared
from trigmon.rules.verbs import VERBS

WAIT_MS = 50


@pytest.fixture
def pair(group, tmp_path):
    """Two members with one shared queue."""
    made = [Member("memory", tmp_path, group, name) for name in ("QM1", "QM2")]
    made[0].did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    yield made
    for one in made:
        one.die()


@pytest.mark.parametrize("count", [1, 2])
def test_one_whose_wait_is_over_when_messages_come_gets_one_of_them_and_one_answer(pair, count):
    """It is asked a last time, and looks at the group for that: what is found there wakes it as well."""
    waiting, other = pair
    handle = waiting.did(Open(object_name="SHARED", options=IN)).handle
    options = GetOption.WAIT | GetOption.SYNCPOINT
    get = Get(handle=handle, options=options, wait_interval_ms=WAIT_MS, unit=1)
    assert waiting.qm.turn([(waiting.session, 7, get)]) == []
    right = waiting.store.enter

    def enter():
        waiting.store.enter = right
        for number in range(count):
            other.put("SHARED", b"%d" % number, unit=0)
        right()

    waiting.store.enter = enter
    waiting.qm.clock.advance(WAIT_MS)
    (answer,) = [answer for answer in waiting.qm.turn([]) if answer.session is waiting.session]
    assert isinstance(answer.reply, WasGot)
    assert (answer.sequence, answer.reply.data) == (7, b"0")
    assert [data for data, _ in other.left("SHARED")] == [b"1"][: count - 1]


class Heard(Telling):
    """Collects whether the changes of others are judged."""

    def __init__(self):
        self.heard = []

    def tell(self, event):
        if isinstance(event, SharedQueuesUnjudged):
            self.heard.append(event.why.about)
        elif isinstance(event, SharedQueuesJudged):
            self.heard.append(None)


@pytest.fixture
def armed(pair):
    """The pair with a shared queue T that triggers; and the first's handle of its initiation queue."""
    here, _ = pair
    said = {"trigger_control": "on", "initiation_q_name": "INITQ", "process_name": "P", "qsg_disp": "shared"}
    here.did(Define(object_type="QLOCAL", name="INITQ"))
    here.did(Define(object_type="PROCESS", name="P"))
    here.did(Define(object_type="QLOCAL", name="T", attributes=said))
    return *pair, here.did(Open(object_name="INITQ", options=IN)).handle


def test_explain_says_of_what_another_did_that_it_was_seen_in_the_group(armed):
    here, other, _ = armed
    other.put("T", b"m", unit=0)
    (look,) = [look for look in here.did(Explain(q_name="T", why_not=True)).last if look.happened == "put"]
    assert "  put, seen in the group, priority 0: a trigger message was written" in look.headline


def test_what_another_did_and_was_refused_here_is_judged_in_a_later_turn_and_reported_once(armed, monkeypatch):
    """Nothing moves meanwhile that would bring it about by itself."""
    here, other, serving = armed
    told = here.qm._telling = Heard()

    right = VERBS[JudgeShared].decide

    def refuse(call, facts, *more):
        if facts.q_mgr.name == here.name:
            raise StorageMediumFull("no room")
        return right(call, facts, *more)

    with monkeypatch.context() as patch:
        patch.setitem(VERBS, JudgeShared, replace(VERBS[JudgeShared], decide=refuse))
        other.put("T", b"m", unit=0)
        for _ in range(3):
            here.qm.turn([])
    assert isinstance(here.do(Get(handle=serving)), WasGot)
    assert isinstance(here.do(Get(handle=serving)), Refused), "it is written once"
    assert told.heard == ["no room", None]
