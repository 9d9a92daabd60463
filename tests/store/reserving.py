"""What the tests of reservations do with a world: fill a queue, reserve, read, lose a connection."""

from __future__ import annotations

from trigmon.mq.calls import (
    Close,
    Get,
    ReadReserved,
    Reserve,
)
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot

IN, OUT, BROWSE = OpenOption.INPUT_SHARED, OpenOption.OUTPUT, OpenOption.BROWSE


def fill(world, count, q_name="Q", **fields):
    for number in range(count):
        world.put(q_name, b"%d" % number, **fields)


def reserve(world, as_="job", consumer="JOB", q_name="Q", **wanted):
    """The whole batch."""
    handle = world.open(q_name, IN, as_=as_)
    while (made := world.did(Reserve(handle=handle, consumer=consumer, **wanted), as_)).more:
        pass
    return made


def read(world, made, as_="reader", ordinal=0, count=100_000):
    """What is left, as (ordinal, body, backout count)."""
    found = []
    while True:
        reply = world.did(ReadReserved(reservation=made.reservation, ordinal=ordinal, count=count), as_)
        messages = zip(reply.ordinals, reply.messages, strict=True)
        found += [(at, message.data.decode(), message.descriptor.backout_count) for at, message in messages]
        if not reply.more:
            return found
        count, ordinal = ordinal + count - reply.ordinal, reply.ordinal


def bodies(world, made, **how):
    return [body for _, body, _ in read(world, made, **how)]


def got(world, as_="getter", q_name="Q"):
    """What a getter finds."""
    handle = world.open(q_name, IN, as_=as_)
    found = []
    while isinstance(reply := world.do(Get(handle=handle), as_), WasGot):
        found.append((reply.data.decode(), reply.descriptor.backout_count))
    world.did(Close(handle=handle), as_)
    return found


def lose(world, *names):
    for name in names:
        world.qm.lost([world.sessions.pop(name)])


def sweep(world):
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()


def reason_of(reply):
    assert isinstance(reply, Refused), reply
    return Reason(reply.reason)
