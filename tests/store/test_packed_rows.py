"""A reservation read in buffers is the reservation read message by message, on every store, whatever is in it."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.store.reserving import IN, fill, lose, reserve
from trigmon.client.reservation import read_rows
from trigmon.mq.calls import Get, Put, PutMany, ReadReserved, Release, Settle
from trigmon.mq.descriptors import FORMAT_STRING, FORMAT_XMIT_Q_HEADER, MessageDescriptor
from trigmon.mq.enums import GetOption, PutOption
from trigmon.mq.packed_messages import pack
from trigmon.mq.replies import ReservedRows, WereReserved
from trigmon.mq.rfh2 import with_properties
from trigmon.spark.arrow_rows import NAMED, to_batch
from trigmon.spark.messages import Messages, PackedMessages

SCHEMAS = {
    "every column": tuple(NAMED),
    "without headers": tuple(name for name in NAMED if name != "headers"),
    "data alone": ("data",),
    "data and ordinals": ("ordinal", "data"),
    "few": ("msg_id", "put_time", "data"),
    "no data": ("priority", "correl_id", "ordinal"),
}
EACH = 120


@pytest.fixture
def q(world):
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"


def schema_of(names):
    return pa.schema([(name, NAMED[name][0]) for name in names])


def replies(world, made, *, packed, ordinal=0, count=100_000, as_="reader"):
    """All replies to a reader, however many a stretch takes."""
    found = []
    while True:
        call = ReadReserved(reservation=made.reservation, ordinal=ordinal, count=count, packed=packed)
        reply = world.did(call, as_)
        found.append(reply)
        if not reply.more:
            return found
        count, ordinal = ordinal + count - reply.ordinal, reply.ordinal


def message(dice, number):
    """A message with any fields that a put takes."""
    some = [
        ("priority", dice.randrange(9)),
        ("persistence", dice.randrange(2)),
        ("expiry", dice.randrange(100, 10_000)),
        ("correl_id", dice.randbytes(24)),
        ("msg_id", dice.randbytes(24)),
        ("reply_to_q", "ANSWERS"),
        ("reply_to_q_mgr", "QM2"),
        ("format", dice.choice((FORMAT_STRING, "MQADMIN", ""))),
        ("msg_type", 65_536 + number),
        ("feedback", 1 + number),
        ("encoding", dice.choice((273, 546))),
        ("coded_char_set_id", dice.choice((1208, 819))),
        ("group_id", dice.randbytes(24)),
        ("report", 256),
        ("original_length", number),
        ("traceparent", f"00-{dice.randbytes(16).hex()}-{dice.randbytes(8).hex()}-01"),
    ]
    fields = dict(dice.sample(some, dice.randrange(len(some))))
    fields |= {"msg_flags": 8} if "group_id" in fields else {}
    if "report" in fields:
        fields["reply_to_q"] = "ANSWERS"
    body = dice.choice((b"", b"%d" % number, dice.randbytes(dice.randrange(2000)), "ä€".encode() * number))
    descriptor = MessageDescriptor(**fields)
    if dice.random() < 0.2:
        return with_properties(descriptor, body, {"colour": "red", "usr.number": str(number)})
    return descriptor, body


def fill_with_anything(world, dice):
    for number in range(EACH):
        descriptor, data = message(dice, number)
        options = dice.choice((0, 0, 0, PutOption.NO_CONTEXT.value))
        world.did(Put(q_name="Q", descriptor=descriptor, data=data, options=options))
        world.clock.advance(dice.randrange(50))


@pytest.mark.parametrize("seed", range(3))
def test_buffers_have_the_same_rows_of_each_schema_whatever_was_put_and_done(world, q, seed):
    dice = random.Random(seed)
    fill_with_anything(world, dice)
    fill(world, 3, format=FORMAT_XMIT_Q_HEADER)
    world.put(q, b"not committed", as_="writer", unit=1)
    world.put(q, b"of another", msg_id=b"A" * 24, priority=9)
    getter = world.open(q, IN, as_="getter")
    assert world.did(Get(handle=getter, options=GetOption.SYNCPOINT.value, unit=1), "getter").data == b"of another"
    made = reserve(world)
    if seed:  # offered anew, with parts settled and given back
        lose(world, "job")
        world.did(Settle(reservation=made.reservation, ordinal=4, count=9), "heir")
        world.did(Release(reservation=made.reservation, ordinal=40, count=5), "heir")
        made = reserve(world, as_="heir")
    old, new = (replies(world, made, packed=packed) for packed in (False, True))
    assert {type(reply) for reply in old} == {WereReserved}
    assert {type(reply) for reply in new} == {ReservedRows}
    for one, other in zip(old, new, strict=True):
        assert (one.ordinals, one.ordinal, one.more) == (other.ordinals, other.ordinal, other.more)
        assert [(each.descriptor, each.data) for each in one.messages] == [
            *zip(PackedMessages(other).descriptors, PackedMessages(other).bodies, strict=True)
        ]
        for names in SCHEMAS.values():
            schema = schema_of(names)
            before = to_batch(Messages.of_got(one.messages, one.ordinals), schema)
            assert to_batch(PackedMessages(other), schema).equals(before)
            to_batch(PackedMessages(other), schema).validate(full=True)
    bodies = [each for reply in new for each in PackedMessages(reply).bodies]
    assert len(bodies) == made.left
    assert not {b"not committed", b"of another"}.intersection(bodies)


def test_large_messages_come_in_as_many_replies_as_before(world, q):
    for number in range(4):
        world.did(PutMany(q_name=q, bodies=[b"%d" % number * (1 << 20), b"", b"small"]))
    made = reserve(world)
    old, new = (replies(world, made, packed=packed) for packed in (False, True))
    assert len(new) > 1
    assert [reply.ordinals for reply in new] == [reply.ordinals for reply in old]
    schema = schema_of(("data", "ordinal"))
    for one, other in zip(old, new, strict=True):
        assert to_batch(PackedMessages(other), schema).equals(
            to_batch(Messages.of_got(one.messages, one.ordinals), schema)
        )


def test_a_part_that_is_not_left_has_no_rows(world, q):
    fill(world, 10)
    made = reserve(world)
    world.did(Settle(reservation=made.reservation, ordinal=2, count=4), "job")
    (nothing,) = replies(world, made, packed=True, ordinal=2, count=4)
    assert (nothing.ordinals, nothing.lengths, nothing.data, nothing.more) == ([], [], b"", False)
    for names in SCHEMAS.values():
        assert to_batch(PackedMessages(nothing), schema_of(names)).num_rows == 0
    rest = replies(world, made, packed=True)
    assert [reply.ordinals for reply in rest] == [[0, 1], [6, 7, 8, 9]]


class Older:
    """The connection to a queue manager that does not know of packed messages: it passes over the field."""

    def __init__(self, world):
        self._world = world

    def call(self, call):
        return self._world.did(ReadReserved(reservation=call.reservation, ordinal=call.ordinal, count=call.count))


def test_an_older_queue_manager_s_answer_has_the_same_rows(world, q):
    fill_with_anything(world, random.Random(9))
    made = reserve(world)
    call = ReadReserved(reservation=made.reservation, count=EACH, packed=True)
    assert read_rows(Older(world), call) == world.did(call)


def test_buffers_of_no_messages_have_none():
    nothing = PackedMessages(pack([], [], [], 0, more=False))
    assert (len(nothing), nothing.bodies, nothing.descriptors) == (0, [], [])
