"""Puts of an open unit of work have rows only where something needs them, and are written once with the commit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get, Open, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption
from trigmon.mq.replies import Refused, WasGot
from trigmon.store.sqlite import unit_puts

IN = OpenOption.INPUT_SHARED.value
SYNC = GetOption.SYNCPOINT.value
WHOLE = GetOption.ALL_MSGS_AVAILABLE.value | GetOption.LOGICAL_ORDER.value
LASTING = MessageDescriptor(persistence=1)


@pytest.fixture
def world(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q", max_q_depth=99_999)
    world.define("OTHER")
    yield world
    world.end()


def put(world, data=b"x", unit=1, as_="app", q_name="Q"):
    return world.do(Put(q_name=q_name, data=data, descriptor=LASTING, options=2 * bool(unit), unit=unit), as_)


def rows(world):
    """Returns the number of rows, committed messages that have none yet included, and how many are uncommitted."""
    world.store.turns.young.write_all()
    return world.store.rows("SELECT count(*), count(put_by) FROM message")[0]


def get_all(world, as_="getter", **how):
    handle = world.did(Open(object_name="Q", options=IN), as_).handle
    got = []
    while isinstance(reply := world.do(Get(handle=handle, **how), as_), WasGot):
        got.append(reply.data)
    return got


def test_they_have_no_rows_before_the_commit_and_committed_ones_behind_it(world):
    for number in range(3):
        put(world, b"%d" % number)
    assert rows(world) == (0, 0)
    assert world.store.standing.queues["Q"].depth == 3
    assert get_all(world) == []
    world.did(Commit(unit=1))
    assert rows(world) == (3, 0)
    assert get_all(world) == [b"0", b"1", b"2"]


def test_a_backout_writes_nothing(world):
    put(world)
    world.did(Backout(unit=1))
    assert rows(world) == (0, 0)
    assert world.store.standing.queues["Q"].depth == 0


def test_their_own_unit_gets_them(world):
    put(world, b"first")
    put(world, b"second")
    handle = world.did(Open(object_name="Q", options=IN)).handle
    assert world.did(Get(handle=handle, options=SYNC, unit=1)).data == b"first"
    assert rows(world) == (2, 2)
    put(world, b"third")
    world.did(Commit(unit=1))
    assert get_all(world) == [b"second", b"third"]


@pytest.mark.parametrize("how", ["commit", "crash"])
def test_committed_ones_survive_a_crash_and_others_do_not(world, how):
    put(world, b"kept", unit=1)
    put(world, b"of another", unit=1, as_="other")
    if how == "commit":
        world.did(Commit(unit=1))
    world.crash()
    assert get_all(world) == ([b"kept"] if how == "commit" else [])


def test_message_ids_of_lost_ones_are_not_given_again(world):
    lost = put(world).msg_id
    world.crash()
    assert put(world, unit=0).msg_id > lost


def test_a_refused_call_leaves_those_before_it(world):
    put(world, b"before")
    refused = world.do(PutMany(q_name="OTHER", bodies=[b"x"] * 9000, options=2, unit=1))
    assert isinstance(refused, Refused)
    assert isinstance(put(world, q_name="NONE"), Refused)
    put(world, b"behind")
    world.did(Commit(unit=1))
    assert get_all(world) == [b"before", b"behind"]


def test_a_call_that_is_undone_behind_its_write_leaves_those_before_it(world):
    store = world.store
    put(world, b"before")
    (unit_id,) = store.unit_puts.by_unit
    store.mark()
    store._will_write()
    store.turns.begin_call()
    store.unit_puts.write(unit_id)
    assert rows(world) == (1, 1)
    store.undo()
    assert rows(world) == (0, 0)
    world.did(Commit(unit=1))
    assert get_all(world) == [b"before"]


@pytest.mark.parametrize("limit", ["count", "bytes"])
def test_so_many_are_kept_and_no_more(world, monkeypatch, limit):
    if limit == "count":
        world.store.leftovers.at_once = 5
    else:
        monkeypatch.setattr(unit_puts, "MOST_BYTES", 50)
    for number in range(13):
        put(world, b"%010d" % number)
    assert rows(world)[1] >= 5
    assert len(world.store.unit_puts.by_unit.get(1, ())) <= 5
    world.did(Commit(unit=1))
    while world.store.has_leftovers:
        world.qm.housekeeping.scan()
    assert get_all(world) == [b"%010d" % number for number in range(13)]
    assert world.store.unit_puts._size == 0


def test_a_queue_that_is_deleted_with_them_takes_them_along(world):
    world.define("MODEL", "QMODEL", definition_type="temporary_dynamic")
    world.did(Open(object_name="MODEL", options=IN, dynamic_q_name="TEMP"), "owner")
    world.did(Put(q_name="TEMP", options=2, unit=1))
    world.disconnect("owner")
    world.did(Commit(unit=1))
    assert get_all(world) == []
    world.restart()
    assert rows(world) == (0, 0)


# -- messages of groups -------------------------------------------------------------------------------------------

ITEMS = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b"]),
        st.integers(1, 3),
        st.sampled_from([0, 1, 2]),
        st.sampled_from([0, MsgFlag.LAST_MSG_IN_GROUP.value]),
        st.sampled_from([0, MsgFlag.SEGMENT.value, MsgFlag.LAST_SEGMENT.value]),
        st.integers(0, 1),
        st.sampled_from([b"x", b"xx"]),
    ),
    max_size=12,
)


def put_item(world, group, seq, offset, last, segment, priority, data, unit=1):
    """Puts a message of a group under the unit of work."""
    flags = MsgFlag.MSG_IN_GROUP.value | last | segment
    fields = {"group_id": padded_id(group), "msg_seq_number": seq, "msg_flags": flags, "priority": priority}
    world.put("Q", data, unit=unit, offset=offset if segment else 0, persistence=1, **fields)


def marks(world):
    """Returns the place of each message of a group, and what its row says of the group."""
    columns = "group_id, msg_seq_number, msg_offset, priority, data, head, whole, put_by"
    return world.store.rows(f"SELECT {columns} FROM message WHERE group_id IS NOT NULL ORDER BY id")


def test_those_of_groups_have_no_rows_before_the_commit(world):
    put_item(world, b"a", 1, 0, 0, 0, 0, b"one")
    put_item(world, b"a", 2, 0, MsgFlag.LAST_MSG_IN_GROUP.value, 0, 0, b"two")
    assert rows(world) == (0, 0)
    assert get_all(world, options=WHOLE) == []
    world.did(Commit(unit=1))
    assert rows(world) == (2, 0)
    assert get_all(world, options=WHOLE) == [b"one", b"two"]


def test_their_own_unit_gets_those_of_groups(world):
    put_item(world, b"a", 1, 0, MsgFlag.LAST_MSG_IN_GROUP.value, 0, 0, b"one")
    assert get_all(world, as_="app", options=SYNC, unit=1) == [b"one"]
    assert rows(world) == (1, 1)


@pytest.mark.parametrize("kept", [0, 1000])
def test_a_group_that_a_unit_completes_is_whole(world, kept):
    world.store.leftovers.at_once = kept
    put_item(world, b"a", 1, 0, 0, 0, 0, b"one")
    world.did(Commit(unit=1))
    put_item(world, b"a", 2, 0, MsgFlag.LAST_MSG_IN_GROUP.value, 0, 0, b"two", unit=2)
    world.did(Commit(unit=2))
    assert get_all(world, options=WHOLE) == [b"one", b"two"]


@settings(max_examples=60, deadline=None)
@given(units=st.lists(ITEMS, min_size=1, max_size=3))
def test_rows_of_groups_are_the_same_written_once_written_twice_and_replayed(units):
    found = []
    for kept in (0, 1000):  # puts of a unit that are kept: with none, each is written at once, and with the commit anew
        with tempfile.TemporaryDirectory() as directory:
            world = World("sqlite", Path(directory))
            world.define("Q", max_q_depth=99_999)
            world.store.leftovers.at_once = kept
            for unit, items in enumerate(filter(None, units), 1):
                for item in items:
                    put_item(world, *item, unit)
                world.did(Commit(unit=unit))
                while world.store.has_leftovers:
                    world.qm.housekeeping.scan()
            found.append(marks(world))
            world.crash()
            found.append(marks(world))
            world.end()
    assert found[1:] == found[:-1]
