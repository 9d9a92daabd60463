"""What is reserved is looked up by columns, without its data, where each message may be taken as it lies there."""

from __future__ import annotations

import random

import pytest

from tests.store.reserving import BROWSE, IN, fill, got, reserve
from trigmon.mq.calls import Commit, Get, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, MsgFlag, PutOption, ReportOption
from trigmon.rules.model.stored_messages import SLICE, Form, Selection, columns_of
from trigmon.store.sql import leftovers, message_columns, message_finder

ROWS = "SELECT id, priority, expires_ms, length(data), descriptor FROM message ORDER BY id"
SQL = pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)


def look_up(world, limit=1000, form=Form.COLUMNS):
    return world.store.find(Selection("Q", world.clock.now(), limit=limit, form=form))


def whole(world, limit=1000):
    return look_up(world, limit, Form.WHOLE).messages


@SQL
@pytest.mark.parametrize("seed", range(4))
def test_columns_are_those_of_the_messages_in_get_order_whatever_was_put_and_reserved(world, q, seed):
    dice = random.Random(seed)
    for _ in range(60):
        context = PutOption.NO_CONTEXT.value if dice.random() < 0.1 else 0
        form = dice.choice(["", "MQSTR"])
        descriptor = MessageDescriptor(
            priority=dice.randrange(3), format=form, report=dice.choice([0, 1 << 11]), reply_to_q="R"
        )
        world.did(Put(q_name=q, descriptor=descriptor, options=context, data=b"x" * dice.randrange(5000)))
        world.clock.advance(dice.randrange(100))
    for consumer in ("one", "two"):
        reserve(world, as_=consumer, consumer=consumer, max_messages=dice.randrange(1, 20))
    for limit in (1, 7, 1000):
        found = look_up(world, limit)
        assert found.messages == ()
        assert found.columns == columns_of("Q", whole(world, limit))


def test_the_first_columns_are_those_of_the_first_messages(world, q):
    fill(world, 9, priority=3)
    messages = whole(world)
    columns = columns_of("Q", messages)
    assert columns.first(4) == columns_of("Q", messages[:4])
    assert columns.first(9) == columns.first(99) == columns
    assert len(columns.first(0)) == 0


@SQL
@pytest.mark.parametrize("what", ["expires", "group", "lock", "rows to rewrite", "damaged", "nothing"])
def test_messages_come_whole_where_one_is_not_to_be_taken_as_it_lies_there(world, q, what, monkeypatch):
    if what != "nothing":
        fill(world, 3)
    if what == "expires":
        world.put(q, b"soon", expiry=9999)
    elif what == "group":
        world.put(q, b"item", group_id=b"g" * 24, msg_flags=int(MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP))
    elif what == "lock":
        world.define("OTHER")
        world.put("OTHER", b"locked")
        options = GetOption.BROWSE_FIRST | GetOption.LOCK
        world.did(Get(handle=world.open("OTHER", BROWSE | IN, as_="reader"), options=options), "reader")
    elif what == "rows to rewrite":
        monkeypatch.setattr(leftovers.Leftovers, "at_once", 1)
        world.did(PutMany(q_name=q, bodies=[b"a", b"b", b"c"], options=PutOption.SYNCPOINT, unit=1), "putter")
        world.did(Commit(unit=1), "putter")
    elif what == "damaged":
        world.restart()  # now it has rows
        world.store.execute("UPDATE message SET descriptor = data WHERE data = ?", (b"1",))
    found = look_up(world)
    assert found.columns is None
    if what == "damaged":
        assert ([each.data for each in found.messages], len(found.damaged)) == ([b"0", b"2"], 1)
    else:
        assert found.messages == whole(world)


@SQL
def test_a_descriptor_that_lacks_its_end_does_not_take_that_of_the_next_one(world, q):
    fill(world, 3)
    world.restart()  # now they have rows
    rows = [list(row) for row in world.store.rows(ROWS)]
    assert len(message_columns.read_columns(rows, q, 9).columns) == 3
    for cut in range(1, len(rows[1][4])):
        shorter = [rows[0], [*rows[1][:4], rows[1][4][:-cut]], rows[2]]
        assert message_columns.read_columns(shorter, q, 9) is None


@SQL
def test_a_priority_that_no_message_can_have_is_looked_at_by_itself(world, q):
    fill(world, 3)
    world.restart()  # now they have rows
    rows = [list(row) for row in world.store.rows(ROWS)]
    for priority in (-1, 10, "0"):
        assert message_columns.read_columns([[rows[0][0], priority, *rows[0][2:]], *rows[1:]], q, 9) is None


@SQL
def test_a_message_that_expires_is_looked_at_with_those_of_its_slice_alone(world, q):
    fill(world, 1)
    world.restart()  # now it has a row
    ((number, priority, _, size, head),) = world.store.rows(ROWS)

    def read(expiring):
        rows = [(number + n, priority, int(n == expiring), size, head) for n in range(2 * SLICE)]
        unread = iter(rows)
        found = message_columns.read_columns(unread, q, len(rows))
        return found and (found.columns.numbers, found.most), len(list(unread))

    numbers = list(range(number, number + 2 * SLICE))
    assert read(None) == ((numbers, 0), 0)
    assert read(SLICE - 1) == (None, SLICE), "the slice behind it has been read in vain"
    assert read(SLICE) == ((numbers[:SLICE], SLICE), 0)


@SQL
def test_where_all_messages_expire_columns_are_looked_for_once_a_slice(world, q, monkeypatch):
    world.did(PutMany(q_name=q, bodies=[b"x"] * (3 * SLICE), descriptor=MessageDescriptor(expiry=9999)))
    looks = []
    find = message_finder.find_columns
    monkeypatch.setattr(message_finder, "find_columns", lambda *given: looks.append(given) or find(*given))
    assert reserve(world).count == 3 * SLICE
    assert len(looks) == 4, "the last finds the queue empty"


@pytest.mark.parametrize(("room", "is_plain"), [(3, True), (9, False)])
def test_a_batch_is_plain_whatever_waits_behind_it(world, q, room, is_plain):
    world.define("R")
    fill(world, 3)
    world.put(q, b"last", report=int(ReportOption.COD), reply_to_q="R")
    made = reserve(world, max_bytes=room)
    assert world.store.standing.reservations[made.reservation].is_plain is is_plain


def test_a_group_that_is_reserved_whole_is_recorded_with_its_messages(world, q):
    flags = int(MsgFlag.MSG_IN_GROUP)
    for at, more in ((1, 0), (2, int(MsgFlag.LAST_MSG_IN_GROUP))):
        world.put(q, b"item", group_id=b"g" * 24, msg_seq_number=at, msg_flags=flags | more)
    fill(world, 2)
    made = reserve(world, whole_groups=True)
    assert (made.count, made.left) == (4, 4)
    assert got(world) == []
