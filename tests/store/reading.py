"""What the tests of messages see of a world: all messages of a queue, how many there are, and what SQLite is asked."""

from __future__ import annotations

import apsw

from trigmon.mq.calls import (
    Display,
    Get,
)
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot

IN, OUT, BROWSE = OpenOption.INPUT_SHARED, OpenOption.OUTPUT, OpenOption.BROWSE
SYNC = GetOption.SYNCPOINT


def drained(world, q_name, as_="reader"):
    handle = world.open(q_name, IN, as_=as_)
    seen = []
    while isinstance(reply := world.do(Get(handle=handle), as_), WasGot):
        seen.append((reply.data.decode(), reply.descriptor.backout_count))
    assert reply == Refused(reason=Reason.NO_MSG_AVAILABLE, about=q_name)
    return seen


def names(world, q_name):
    return [data for data, _ in drained(world, q_name)]


def depth(world, q_name):
    return world.did(Display(object_type="QLOCAL", name=q_name)).rows[0]["current_q_depth"]


def statements(world):
    """Returns a list that gets the statements of SQLite from now on."""
    seen = []
    world.store._db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: seen.append(event["sql"]))
    return seen
