"""Committed messages that have no rows yet: which looks and changes write them, and that an undo gives them back."""

import msgspec
import pytest

from tests.store.reading import statements
from tests.worlds import World
from trigmon.journal import journal
from trigmon.mq.calls import Backout, Clear, Commit, Get, PutMany, Reserve
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, MatchOption, OpenOption
from trigmon.store.sqlite import young_messages

IN = OpenOption.INPUT_SHARED
SYNC = GetOption.SYNCPOINT


@pytest.fixture
def world(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q", max_q_depth=99_999, def_persistence="persistent")
    world.store.idle()
    yield world
    world.end()


def rows(world):
    """Returns the number of rows, without those of messages that were got and are removed later."""
    return world.store.rows("SELECT count(*) FROM message")[0][0] - len(world.store.gets.removed)


def test_a_queue_that_keeps_up_never_touches_the_database(world):
    handle = world.open("Q", IN)
    world.put("Q")
    world.did(Get(handle=handle))  # it reads the rows once
    world.store.idle()
    seen = statements(world)
    for number in range(3000):
        world.put("Q", b"%d" % number)
        assert world.did(Get(handle=handle)).data == b"%d" % number
    assert seen == []
    assert rows(world) == 0


def test_a_unit_of_puts_becomes_rows_only_where_it_stays(world):
    handle = world.open("Q", IN)
    world.put("Q")
    world.did(Get(handle=handle))
    world.store.idle()
    seen = statements(world)
    for unit in range(1, 11):
        world.did(PutMany(q_name="Q", bodies=[b"m"] * 20, options=SYNC, unit=unit))
        world.did(Commit(unit=unit))
        for _ in range(20):
            world.did(Get(handle=handle))
    assert [statement for statement in seen if "message" in statement] == []
    assert rows(world) == 0


@pytest.mark.parametrize("how", ["another look", "count", "bytes", "commit", "idle", "reserve", "clear"])
def test_they_get_rows_when_something_needs_them(world, how, monkeypatch):
    monkeypatch.setattr(young_messages, "MOST", 3 if how == "count" else 1000)
    monkeypatch.setattr(young_messages, "MOST_BYTES", 5 if how == "bytes" else 1000)
    handle = world.open("Q", IN)
    for _ in range(4):
        world.put("Q", b"12")
    assert rows(world) == {"count": 3, "bytes": 2}.get(how, 0)
    if how == "another look":
        world.do(Get(handle=handle, correl_id=b"c" * 24, match=MatchOption.CORREL_ID))
    elif how == "commit":
        world.store.turns._commit()
    elif how == "idle":
        world.store.idle()
    elif how == "reserve":
        world.did(Reserve(handle=handle, consumer="JOB", max_messages=2))
    elif how == "clear":
        world.disconnect("app")
        world.did(Clear(q_name="Q"), "operator")
    assert rows(world) == {"count": 3, "bytes": 2, "clear": 0}.get(how, 4)


def test_one_that_is_got_under_syncpoint_gets_its_row_alone_when_it_goes_back(world):
    handle = world.open("Q", IN)
    world.put("Q", b"first")
    world.did(Get(handle=handle))
    for number in range(5):
        world.put("Q", b"%d" % number)
    assert world.did(Get(handle=handle, options=SYNC, unit=1)).data == b"0"
    assert rows(world) == 0
    world.did(Backout(unit=1))
    assert rows(world) == 1
    assert [world.did(Get(handle=handle)).data for _ in range(5)] == [b"%d" % number for number in range(5)]


def test_no_turn_writes_the_rows_of_many_of_them(world):
    before, most = rows(world), 0
    for number in range(5 * young_messages.MOST):
        world.put("Q", b"%d" % number)
        found = rows(world)
        most, before = max(most, found - before), found
    assert young_messages.AT_ONCE <= most < 3 * young_messages.AT_ONCE
    assert len(world.store.turns.young) < young_messages.MOST
    world.crash()
    handle = world.open("Q", IN)
    got = [world.did(Get(handle=handle)).data for _ in range(5 * young_messages.MOST)]
    assert got == [b"%d" % number for number in range(5 * young_messages.MOST)]


@pytest.mark.parametrize("end", ["crash", "restart"])
def test_they_survive_a_crash_and_a_restart(world, end):
    for number in range(5):
        world.put("Q", b"%d" % number)
    world.did(Get(handle=world.open("Q", IN)))
    for number in range(5, 8):
        world.put("Q", b"%d" % number)
    getattr(world, end)()
    handle = world.open("Q", IN)
    assert [world.did(Get(handle=handle)).data for _ in range(7)] == [b"%d" % number for number in range(1, 8)]


@pytest.mark.parametrize("end", ["crash", "restart", "idle and crash", "full journal", "full disk"])
def test_a_queue_that_kept_up_all_the_time_loses_no_turn(world, end, monkeypatch):
    handle = world.open("Q", IN)
    world.put("Q")
    world.did(Get(handle=handle))
    world.store.idle()
    if end == "full journal":
        monkeypatch.setattr(journal, "SIZE", journal.FIRST_SIZE)
    world.store.turns.is_short = end == "full disk"
    seen = statements(world)
    for number in range(500):
        world.put("Q", b"%d" % number * 20)
        world.did(Get(handle=handle))
    assert "full" in end or [statement for statement in seen if "message" in statement] == []
    if end == "idle and crash":
        world.store.idle()
    (world.restart if end == "restart" else world.crash)()
    assert world.queue_depth("Q") == 0
    world.put("Q")
    world.crash()
    assert world.queue_depth("Q") == 1


class TestAnUndo:
    def begin(self, world):
        handle = world.open("Q", IN)
        world.put("Q", b"0")
        world.did(Get(handle=handle))
        for number in (1, 2):
            world.put("Q", b"%d" % number)
        store = world.store
        store.mark()
        store.turns.begin_call()
        return store, store.turns.young

    def data(self, young):
        return sorted(put.data for put in young._puts.values())

    def test_takes_back_what_came(self, world):
        store, young = self.begin(world)
        young.keep(next(iter(young._puts.values())).__class__("Q", 99, 0, True, MessageDescriptor(), b"new"))
        assert self.data(young) == [b"1", b"2", b"new"]
        store.undo()
        assert self.data(young) == [b"1", b"2"]

    def test_brings_back_what_was_written(self, world):
        store, young = self.begin(world)
        young.write_all()
        assert (rows(world), len(young)) == (2, 0)
        store.undo()
        assert (rows(world), self.data(young)) == (0, [b"1", b"2"])
        assert young._size == 2

    def test_leaves_what_was_written_before_the_call_could_be_undone(self, world):
        store, young = self.begin(world)
        store.turns.end_call()
        store.mark()
        young.write_all()
        store.undo()
        assert (rows(world), len(young), young._size) == (2, 0, 0)

    @pytest.mark.parametrize("is_written_to_again", [False, True])
    def test_does_not_reach_behind_a_sync_of_the_database_in_the_middle_of_the_call(self, world, is_written_to_again):
        store, young = self.begin(world)
        put = next(iter(young._puts.values()))
        young.keep(msgspec.structs.replace(put, number=99, data=b"new"))
        store.turns.settle()
        if is_written_to_again:
            store.turns.begin_call()
            young.keep(msgspec.structs.replace(put, number=100, data=b"undone"))
        store.undo()
        assert (rows(world), len(young), young._size) == (3, 0, 0)


class TestAFault:
    """What would break if a rule of theirs were left out; each is seen by what a program gets."""

    def test_no_rows_before_another_look(self, world, monkeypatch):
        monkeypatch.setattr(world.store.turns.young, "write_all", lambda: None)
        world.put("Q", correl_id=b"c" * 24)
        found = world.do(Get(handle=world.open("Q", IN), correl_id=b"c" * 24, match=MatchOption.CORREL_ID))
        assert not hasattr(found, "data")

    def test_no_rows_with_a_commit_of_the_database(self, world, monkeypatch):
        monkeypatch.setattr(world.store.turns, "write_due", lambda: None)
        world.put("Q", b"young")
        world.define("OTHER")
        world.store.turns._commit()
        world.put("Q", b"behind")
        world.crash()
        handle = world.open("Q", IN)
        assert world.did(Get(handle=handle)).data == b"behind"
