"""What is reserved without its data, read as it is stored and removed unread is what it is in the other way."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.store.reserving import IN, fill, got, lose, reserve, sweep
from tests.store.test_packed_rows import fill_with_anything, replies
from trigmon.mq.calls import Get, Put, PutMany, Release, Settle
from trigmon.mq.descriptors import FORMAT_XMIT_Q_HEADER, MessageDescriptor
from trigmon.mq.enums import GetOption, PutOption, ReportOption
from trigmon.mq.packed_messages import bodies_of
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.stored_messages import LARGE_SLICE
from trigmon.store.sql.select import Look

SQL = pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)
REPORTS = {"report": int(ReportOption.COD | ReportOption.PASS_MSG_ID), "reply_to_q": "REPLIES"}


@pytest.fixture
def q(world):
    world.define("REPLIES", max_q_depth=999_999)
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"


@pytest.fixture
def as_stored(monkeypatch):
    """How many messages each look-up gave as they are stored; None where it could not."""
    given: list[int | None] = []
    right = Look._as_stored

    def counted(look, wanted):
        stored = right(look, wanted)
        given.append(None if stored is None else len(stored.ordinals))
        return stored

    monkeypatch.setattr(Look, "_as_stored", counted)
    return given


def both_ways(world, made, monkeypatch):
    new = replies(world, made, packed=True)
    with monkeypatch.context() as patched:
        patched.setattr(Look, "_as_stored", lambda look, wanted: None)
        old = replies(world, made, packed=True)
    return old, new


def back_out(world, q_name):
    """The first message is got, and comes back."""
    world.did(Get(handle=world.open(q_name, IN, as_="getter"), options=GetOption.SYNCPOINT, unit=1), "getter")
    lose(world, "getter")


def unread(monkeypatch):
    """Makes each look-up of whole reserved messages fail."""
    monkeypatch.setattr(Look, "_reserved", lambda look, wanted: pytest.fail("rows were read"))


@SQL
@pytest.mark.parametrize("seed", range(4))
def test_a_reply_has_the_same_bytes_in_both_ways_whatever_was_put(world, q, seed, monkeypatch):
    dice = random.Random(seed)
    fill_with_anything(world, dice)
    if seed % 2:
        back_out(world, q)
    made = reserve(world)
    old, new = both_ways(world, made, monkeypatch)
    encode = msgspec.msgpack.encode
    assert [encode(reply) for reply in old] == [encode(reply) for reply in new]


@SQL
@pytest.mark.parametrize("count", [1, 15, 16, 2 * LARGE_SLICE + 3])
def test_plain_messages_are_read_as_they_are_stored_and_removed_unread(world, q, count, as_stored, monkeypatch):
    fill(world, count, correl_id=b"C" * 24, format="MQSTR", priority=4)
    made = reserve(world)
    old, new = both_ways(world, made, monkeypatch)
    assert msgspec.msgpack.encode(old) == msgspec.msgpack.encode(new)
    assert as_stored == [count]
    assert [body for reply in new for body in bodies_of(reply)] == [b"%d" % number for number in range(count)]
    unread(monkeypatch)
    world.did(Settle(reservation=made.reservation, ordinal=1, count=count // 2), "job")
    sweep(world)
    left = [body for reply in replies(world, made, packed=True) for body in bodies_of(reply)]
    assert left == [b"%d" % number for number in range(count) if not 1 <= number <= count // 2]
    world.did(Settle(reservation=made.reservation), "job")
    sweep(world)
    lose(world, "job")
    assert (world.queue_depth(q), got(world)) == (0, [])
    world.restart()
    assert got(world) == []


@SQL
@pytest.mark.parametrize("what", ["expires", "backed out", "no context", "transmission", "report", "large"])
def test_a_message_that_is_not_plain_is_read_and_reported_as_before(world, q, what, as_stored, monkeypatch):
    fill(world, LARGE_SLICE)  # it is in the second slice
    descriptor, options, data = MessageDescriptor(), 0, b"other"
    if what == "expires":
        descriptor = MessageDescriptor(expiry=9999)
    elif what == "transmission":
        descriptor = MessageDescriptor(format=FORMAT_XMIT_Q_HEADER)
    elif what == "report":
        descriptor = MessageDescriptor(**REPORTS)
    elif what == "no context":
        options = PutOption.NO_CONTEXT.value
    elif what == "large":
        data = bytes(20_000)
    world.did(Put(q_name=q, descriptor=descriptor, options=options, data=data))
    if what == "backed out":
        back_out(world, q)
    made = reserve(world)
    old, new = both_ways(world, made, monkeypatch)
    assert msgspec.msgpack.encode(old) == msgspec.msgpack.encode(new)
    assert as_stored == ([None] if what in ("expires", "backed out") else [])
    world.did(Settle(reservation=made.reservation), "job")
    sweep(world)
    assert world.queue_depth("REPLIES") == (what == "report")


def test_the_report_on_what_expired_on_the_way_has_its_data(world, q):
    full = int(ReportOption.EXPIRATION_WITH_FULL_DATA)
    fill(world, 3)
    world.put(q, b"of no use any more", expiry=5, report=full, reply_to_q="REPLIES")
    fill(world, 3)
    world.clock.advance(10_000)
    made = reserve(world)
    assert (made.count, made.size) == (6, 6)
    assert got(world, q_name="REPLIES") == [("of no use any more", 0)]


@pytest.mark.parametrize("room", [10, 25, 1000])
def test_as_many_are_reserved_as_there_is_room_for(world, q, room):
    world.did(PutMany(q_name=q, bodies=[b"x" * (number % 4) for number in range(40)]))
    made = reserve(world, max_bytes=room)
    sizes = [number % 4 for number in range(40)]
    most = max(count for count in range(1, 41) if count == 1 or sum(sizes[:count]) <= room)
    assert (made.count, made.size) == (most, sum(sizes[:most]))


@SQL
def test_rows_that_are_removed_are_those_of_the_reservation_and_no_others(world, q):
    """Numbers of other queues, and of messages that are not reserved, lie between those of a reservation."""
    world.define("OTHER", def_persistence="persistent")
    for number in range(40):
        world.put("Q", b"%d" % number, priority=number % 2)
        world.put("OTHER", b"%d" % number)
    slow = world.open("Q", IN, as_="slow")
    world.did(Get(handle=slow, options=GetOption.SYNCPOINT, unit=1), "slow")
    made = reserve(world, max_messages=30)
    world.put("Q", b"later", priority=9)
    world.did(Settle(reservation=made.reservation), "job")
    sweep(world)
    lose(world, "slow", "job")
    world.restart()
    assert [body for body, _ in got(world, q_name="OTHER")] == [str(number) for number in range(40)]
    assert [body for body, _ in got(world)] == ["later", "1", *(str(number) for number in range(22, 40, 2))]


def test_what_goes_back_has_its_data_and_its_count(world, q):
    fill(world, 5)
    made = reserve(world)
    world.did(Settle(reservation=made.reservation, ordinal=1, count=1), "job")
    world.did(Release(reservation=made.reservation), "job")
    sweep(world)
    assert got(world) == [(str(number), 1) for number in (0, 2, 3, 4)]


def test_a_record_of_an_older_version_is_read_and_settled_as_before():
    record = msgspec.json.decode(msgspec.json.encode(Reservation(7, "Q", "JOB", is_plain=True)))
    del record["is_plain"]
    assert not msgspec.convert(record, Reservation).is_plain
