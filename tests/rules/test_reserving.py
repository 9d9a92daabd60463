"""What the rules of reservations say of a call before a store is asked; the rest is told by scenarios."""

from __future__ import annotations

import re

import pytest

from trigmon.mq.attributes import LocalQueue, QueueManagerDefinition
from trigmon.mq.calls import Reserve
from trigmon.mq.enums import ObjectType, OpenOption, QsgDisp
from trigmon.mq.errors import FunctionNotSupported
from trigmon.rules.model.facts import Common, WideFacts
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import Shared
from trigmon.rules.reservations.reserve import look_for_reserve


def test_a_reservation_of_a_shared_queue_is_refused_with_its_name_and_a_remedy():
    handle = HandleFacts(1, 1, ObjectType.QLOCAL, "ALIAS", "ORDERS", OpenOption.INPUT_SHARED.value)
    queue = QueueFacts(LocalQueue(name="ORDERS", qsg_disp=QsgDisp.SHARED), shared=Shared())
    facts = WideFacts(
        QueueManagerDefinition(name="QM1"),
        ConnectionFacts(1, "c", "a", "u", 1),
        handle,
        queue,
        common=Common("GROUP", None),
    )
    call = Reserve(handle=1, consumer="JOB", max_messages=10, max_bytes=1000)
    with pytest.raises(FunctionNotSupported, match=re.escape("QLOCAL(ORDERS)")) as refused:
        look_for_reserve(call, facts, 0)
    told = str(refused.value)
    assert "shared in GROUP" in told
    assert "Spark" in told
    assert "syncpoint" in told
    assert "QSGDISP(QMGR)" in told
