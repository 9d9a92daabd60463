"""A reservation is a record of ranges: what belongs to it on every store, and SQLite's rows without marks."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise

import apsw
import pytest

from tests.store.reserving import BROWSE, IN, bodies, fill, got, lose, read, reserve, sweep
from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Delete, Get, PutMany, Release, Reservations, Settle
from trigmon.mq.enums import GetOption, MatchOption
from trigmon.mq.replies import WasGot
from trigmon.rules.model.stored_messages import LARGE_SLICE, Selection, Summary, columns_of, stretches
from trigmon.store.sql import reserved_ranges
from trigmon.store.sql.reserved_ranges import KEY, ReservedRanges, around
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.store_check import check_directory

ON_SQLITE = pytest.mark.parametrize("world", ["sqlite"], indirect=True)


@pytest.fixture
def q(world):
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"


def marked(world):
    return world.store.rows("SELECT count(*) FROM message WHERE taken_by IS NOT NULL")[0][0]


def all_ranges(world):
    return list(world.store.ranges._all())


class TestWhatBelongs:
    def late_put_and_others_get(self, world):
        """Twelve messages with consecutive numbers: one committed late, and one that somebody else has got."""
        fill(world, 5)
        world.put("Q", b"late", as_="writer", unit=1)
        for number in range(5, 10):
            world.put("Q", b"%d" % number)
        world.put("Q", b"of another", msg_id=b"A" * 24)
        getter = world.open("Q", IN, as_="getter")
        by_id = Get(handle=getter, options=GetOption.SYNCPOINT, match=MatchOption.MSG_ID, msg_id=b"A" * 24, unit=1)
        assert world.did(by_id, "getter").data == b"of another"
        world.put("Q", b"10")

    def test_neither_a_put_that_commits_late_nor_what_another_has_got_is_read_or_settled(self, world, q):
        self.late_put_and_others_get(world)
        made = reserve(world)
        world.did(Commit(unit=1), "writer")
        world.did(Backout(unit=1), "getter")
        assert bodies(world, made) == [str(number) for number in range(11)]
        world.did(Settle(reservation=made.reservation), "job")
        sweep(world)
        world.restart()
        assert got(world) == [("late", 0), ("of another", 1)]

    def test_nor_does_it_go_back_with_the_batch(self, world, q):
        self.late_put_and_others_get(world)
        made = reserve(world)
        world.did(Commit(unit=1), "writer")
        world.did(Commit(unit=1), "getter")
        browser = world.open(q, BROWSE, as_="browser")
        assert world.did(Get(handle=browser, options=GetOption.BROWSE_FIRST), "browser").data == b"late"
        world.did(Release(reservation=made.reservation), "job")
        sweep(world)
        assert got(world) == [*((str(n), 1) for n in range(5)), ("late", 0), *((str(n), 1) for n in range(5, 11))]

    def test_nor_behind_a_crash_between(self, world, q):
        self.late_put_and_others_get(world)
        made = reserve(world)
        world.did(Commit(unit=1), "writer")
        world.crash()
        assert bodies(world, made, as_="reader") == [str(number) for number in range(11)]
        assert got(world) == [("late", 0), ("of another", 1)]

    def test_what_comes_between_two_slices_with_a_higher_priority_belongs_to_the_second(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"%d" % n for n in range(LARGE_SLICE + 2)]))
        made = reserve(world, max_messages=LARGE_SLICE)
        world.put(q, b"urgent", priority=9)
        rest = reserve(world, "other", "OTHER")
        assert bodies(world, made) == [str(number) for number in range(LARGE_SLICE)]
        assert bodies(world, rest) == ["urgent", str(LARGE_SLICE), str(LARGE_SLICE + 1)]


@ON_SQLITE
class TestWithoutMarks:
    def test_no_row_is_rewritten_and_the_record_has_one_range(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"x"] * (3 * LARGE_SLICE)))
        made = reserve(world)
        assert marked(world) == 0
        (only,) = all_ranges(world)
        assert (only.reservation, only.ordinal, only.end) == (made.reservation, 0, 3 * LARGE_SLICE)
        world.did(Settle(reservation=made.reservation, ordinal=10, count=20), "job")
        sweep(world)
        assert [(each.ordinal, each.end) for each in all_ranges(world)] == [(0, 10), (30, 3 * LARGE_SLICE)]
        world.did(Settle(reservation=made.reservation), "job")
        sweep(world)
        assert all_ranges(world) == []
        assert world.store.rows("SELECT count(*) FROM message") == [(0,)]

    @pytest.mark.parametrize("fields", [{"expiry": 1000}, {"group_id": b"G" * 24, "msg_flags": 8}])
    def test_messages_that_expire_or_are_of_a_group_are_marked(self, world, q, fields):
        fill(world, 3, **fields)
        reserve(world)
        assert (marked(world), all_ranges(world)) == (3, [])

    def test_messages_that_make_many_short_ranges_are_marked(self, world, q):
        world.define("OTHER", def_persistence="persistent")
        for _ in range(20):
            world.put(q)
            world.put("OTHER")
        reserve(world)
        assert (marked(world), all_ranges(world)) == (20, [])

    def test_messages_of_units_of_work_of_one_make_one_range(self, world, q):
        for unit in range(1, 21):
            world.put(q, unit=unit)
            world.did(Commit(unit=unit))
        reserve(world)
        assert (marked(world), len(all_ranges(world))) == (0, 1)

    def test_so_are_those_of_a_reservation_behind_so_many_ranges_or_messages(self, world, q, monkeypatch):
        monkeypatch.setattr(ReservedRanges, "most", 1)
        fill(world, 4)
        reserve(world, max_messages=2)
        reserve(world, "other", "OTHER")
        assert (marked(world), len(all_ranges(world))) == (2, 1)

    def test_a_start_marks_all_and_the_batch_is_the_same(self, world, q):
        fill(world, 9)
        made = reserve(world, max_messages=6)
        before = read(world, made)
        world.did(Settle(reservation=made.reservation, ordinal=2, count=1), "job")
        sweep(world)
        for again in (world.restart, world.crash):
            again()
            assert (marked(world), all_ranges(world)) == (5, [])
            assert world.queue_depth(q) == 8
            assert read(world, made) == [*before[:2], *before[3:]]

    def test_one_batch_may_have_marked_rows_and_ranges(self, world, q):
        world.put(q, b"expires", expiry=9999)
        made = reserve(world, max_messages=1)
        world.crash()
        world.did(Release(reservation=made.reservation), "operator")
        sweep(world)
        world.did(PutMany(q_name=q, bodies=[b"%d" % n for n in range(2 * LARGE_SLICE)]))
        made = reserve(world)
        assert 0 < marked(world) < 2 * LARGE_SLICE
        assert bodies(world, made) == ["expires", *(str(n) for n in range(2 * LARGE_SLICE))]
        assert bodies(world, made, ordinal=LARGE_SLICE - 2, count=5) == [
            str(n) for n in range(LARGE_SLICE - 3, LARGE_SLICE + 2)
        ]

    def test_a_part_may_begin_anywhere(self, world, q):
        fill(world, 40, priority=3)
        fill(world, 40, priority=7)
        made = reserve(world)
        assert len(all_ranges(world)) == 2
        kept = read(world, made)
        for first in range(0, 80, 7):
            for count in (1, 5, 50):
                assert read(world, made, ordinal=first, count=count) == kept[first : first + count]

    def test_a_call_that_is_undone_leaves_the_record_as_it_was(self, world, q):
        fill(world, 4)
        reserve(world, max_messages=2)
        before = all_ranges(world)
        found = world.store.find(Selection(q, 0, limit=9)).messages
        store = world.store
        store.begin()
        store.mark()
        store.apply([reserved_change(99, found)], can_be_undone=True)
        assert len(all_ranges(world)) == 2
        store.undo()
        store.end()
        assert all_ranges(world) == before
        assert got(world) == [("2", 0), ("3", 0)]

    def test_a_queue_that_is_deleted_leaves_nothing(self, world, q):
        fill(world, 4)
        reserve(world)
        lose(world, "job")
        world.did(Delete(object_type="QLOCAL", name=q, purge=True), "operator")
        assert all_ranges(world) == []
        world.define(q, def_persistence="persistent")
        assert got(world) == []


def reserved_change(reservation, messages):
    from trigmon.rules.model.reservation_changes import ReserveMessages

    return ReserveMessages(reservation, columns_of(messages[0].q_name, messages), 0)


@ON_SQLITE
class TestLookUps:
    def test_each_kind_passes_over_what_is_reserved(self, world, q):
        for number in range(30):
            world.put(q, b"%d" % number, msg_id=b"%024d" % number, correl_id=b"C" * 24, priority=3)
        reserve(world, max_messages=20)
        assert marked(world) == 0
        browser = world.open(q, BROWSE, as_="browser")
        first = world.did(Get(handle=browser, options=GetOption.BROWSE_FIRST), "browser")
        assert first.data == b"20"
        getter = world.open(q, IN, as_="getter")
        named = {
            MatchOption.MSG_ID: {"msg_id": b"%024d" % 5},
            MatchOption.CORREL_ID: {"correl_id": b"C" * 24},
            MatchOption.MSG_ID | MatchOption.CORREL_ID: {"msg_id": b"%024d" % 5, "correl_id": b"C" * 24},
        }
        found = [world.do(Get(handle=getter, match=how, **ids), "getter") for how, ids in named.items()]
        assert [isinstance(reply, WasGot) and reply.data for reply in found] == [False, b"20", False]
        assert got(world) == [(str(number), 0) for number in range(21, 30)]

    @pytest.mark.parametrize("reserved", [(0, 10), (10, 20), (25, 30), (0, 30)])
    def test_the_oldest_and_the_newest_are_those_that_are_available(self, world, q, reserved):
        fill(world, reserved[0], priority=2)
        fill(world, reserved[1] - reserved[0], priority=7)
        reserve(world, max_messages=reserved[1] - reserved[0])
        lower = fill(world, 30 - reserved[1], priority=2)
        assert lower is None
        store, left = world.store, [n for n in range(30) if not reserved[0] <= n < reserved[1]]
        for priority in (2, 7):
            summary = Summary(oldest_of=(priority,), newest_of=(priority,))
            ends = store.find(Selection(q, 0, summary=summary)).messages
            assert len(ends) == (2 if left and priority == 2 else 0)
        numbers = [each.number for each in store.find(Selection(q, 0, limit=99)).messages]
        assert len(numbers) == len(left)

    def test_a_look_up_reads_no_row_of_a_large_reservation_but_the_first_of_each_range(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"x"] * 2000))
        reserve(world)
        world.put(q, b"behind", priority=0)
        store = world.store
        store.ahead.forget_all()
        opened, steps = store._open_rows, []

        def counted(statement, values):
            return CountedRows(opened(statement, values), steps)

        store._open_rows = counted
        asked = [
            Selection(q, 0),
            Selection(q, 0, correl_id=bytes(24)),
            Selection(q, 0, summary=Summary(oldest_of=(0,), newest_of=(0,))),
        ]
        assert [len(store.find(each).messages) for each in asked] == [1, 1, 2]
        assert len(steps) < 12


class CountedRows:
    def __init__(self, cursor, steps):
        self._cursor, self._steps = cursor, steps

    def __iter__(self):
        for row in self._cursor:
            self._steps.append(row[0])
            yield row

    def close(self, force=False):
        self._cursor.close(force)


@ON_SQLITE
class TestDamage:
    def reserved_and_stopped(self, world):
        fill(world, 6)
        made = reserve(world, max_messages=4)
        world.qm.stop()
        world.sessions.clear()
        return made

    def test_where_the_record_is_damaged_the_messages_are_back_and_no_reservation_is_left(self, world, q):
        made = self.reserved_and_stopped(world)
        change(world, f"UPDATE meta SET value = '[]' WHERE key = '{KEY}'")
        said = repaired(world)
        assert any(f"which messages reservation {made.reservation} has is lost" in text for text in said)
        assert world.did(Reservations()).rows == []
        assert world.queue_depth(q) == 6
        assert got(world) == [(str(number), 0) for number in range(6)]

    def test_where_the_reservation_is_lost_its_messages_are_back(self, world, q):
        made = self.reserved_and_stopped(world)
        change(world, "UPDATE reservation SET record = '{}'")
        assert any("messages belong to reservation" in text for text in without_reservation(world))
        said = repaired(world)
        assert any(f"reservation {made.reservation} is lost" in text for text in said)
        assert (world.queue_depth(q), len(got(world))) == (6, 6)


def without_reservation(world):
    copy = world.directory / "copy"
    shutil.copytree(world.directory, copy, ignore=shutil.ignore_patterns("copy"))
    change_in(copy, "DELETE FROM reservation")
    return list(check_directory(copy / "qm.db"))


def change(world, statement):
    change_in(world.directory, statement)


def change_in(directory, statement):
    db = apsw.Connection(str(directory / "qm.db"))
    db.execute(statement)
    db.close()


def repaired(world):
    from trigmon.store.sqlite.store_check import repair_directory

    said = repair_directory(world.directory)
    world._start()
    return said


def test_the_record_is_what_a_table_of_single_messages_would_be():
    """Random batches, parts that are settled, and reads of the record."""
    for seed in range(30):
        dice = random.Random(seed)
        written = {}

        def execute(statement, values, written=written):
            written[values[0]] = values[1]

        def rows(statement, values, written=written):
            return [(written[values[0]],)] if values[0] in written else []

        record = ReservedRanges(execute, rows)
        known: dict[tuple[int, int], tuple[int, int]] = {}
        free = {queue: list(range(queue, 4000, 2)) if queue == 2 else list(range(5000, 9000)) for queue in (1, 2)}
        count = {7: 0, 8: 0}
        for _ in range(60):
            queue = dice.choice((1, 2))
            if dice.random() < 0.5:
                at = dice.randrange(len(free[queue]) - 40)
                numbers = free[queue][at : at + dice.randrange(1, 40)]
                if record.take(queue, 6 + queue, count[6 + queue], numbers):
                    for number in numbers:
                        known[queue, number] = (6 + queue, count[6 + queue])
                        count[6 + queue] += 1
                    del free[queue][at : at + len(numbers)]
            elif mine := sorted(number for of, number in known if of == queue):
                at = dice.randrange(len(mine))
                gone = mine[at : at + dice.randrange(1, 30)]
                record.remove(queue, stretches(gone))
                for number in gone:
                    del known[queue, number]
            if dice.random() < 0.2:
                record = ReservedRanges(execute, rows)
                record.load()
            check_record(record, known)


def check_record(record, known):
    for queue in (1, 2):
        of = record.of_queue(queue)
        assert all(a.last < b.first for a, b in pairwise(of))
        found = {
            number: (each.reservation, each.ordinal + number - each.first)
            for each in of
            for number in range(each.first, each.last + 1)
        }
        assert found == {number: what for (where, number), what in known.items() if where == queue}
        assert all((around(of, number) is not None) == (number in found) for number in range(0, 9000, 17))


def test_every_write_of_marks_keeps_the_checksum():
    from trigmon.store.sql import statements

    assert statements.RESERVE_STRETCH in SUMMED
    assert SqliteStore.reserves_ranges
    assert reserved_ranges.LEAST > 1


def test_marks_of_a_start_leave_whole_checksums(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q", def_persistence="persistent")
    fill(world, 20)
    reserve(world, max_messages=15)
    world.restart()
    assert marked(world) == 15
    world.end()
    assert list(check_directory(tmp_path / "qm.db")) == []
