"""Gets that wait on a shared queue: each is answered once, whenever another member's messages come."""

from __future__ import annotations

import pytest

from tests.qmgr.members import IN, Member
from trigmon.mq.calls import Define, Get, Open
from trigmon.mq.enums import GetOption
from trigmon.mq.replies import WasGot

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
