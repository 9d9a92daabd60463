"""Damage beyond a message's bodies: its columns, the indexes, pages. What is served is right, and the rest goes on."""

import contextlib
import os
import re
from types import SimpleNamespace

import apsw
import pytest

from tests.store.damaged_store import IN, PAGE, change, filled, got, page_of, started, stopped
from trigmon.mq.calls import Backout, Commit, Delete, Get, Put, Reserve, Settle
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption
from trigmon.mq.reasons import Reason
from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sqlite import salvage
from trigmon.store.sqlite.checksums import IS_RIGHT, ROWS, SUMMED, is_whole, register
from trigmon.store.sqlite.inspection import _INDEXED, errors_in
from trigmon.store.sqlite.open_database import _turn_of
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.turn_log import Stamp, unpacked

SYNC = GetOption.SYNCPOINT
world = pytest.fixture(filled)


COLUMNS = ["priority = 8", "expires_ms = 1", "backout_count = 3", "backout_count = x''", "persistent = 0", "queue = 77"]


@pytest.mark.parametrize("columns", [*COLUMNS, "put_by = 0", "taken_by = 12345", "held = 2", "head = 3", "ordinal = 1"])
def test_a_message_with_a_changed_column_is_set_aside_or_put_right_and_its_queue_goes_on(world, columns):
    db = stopped(world)
    db.execute(f"UPDATE message SET {columns} WHERE data = CAST('2' AS BLOB) AND priority = 2")
    db.close()
    started(world)
    bodies, reason = got(world, "Q")
    assert (bodies, reason) == ([b"4", b"3", b"1", b"0"], Reason.NO_MSG_AVAILABLE)
    assert world.telling.damaged or world.said
    assert got(world, "Q2")[0] == [b"0", b"1", b"2", b"3", b"4"]
    world.qm.stop()


def test_every_statement_that_writes_a_row_writes_its_checksum():
    writes = re.compile(rf"\s*(UPDATE|INSERT INTO|INSERT OR REPLACE INTO) ({'|'.join(['message', *ROWS])})\b")
    statements = {name: text for name, text in vars(sql).items() if isinstance(text, str) and writes.match(text)}
    assert len(statements) > 20
    # What is set aside is never read again.
    assert [name for name, text in statements.items() if text not in SUMMED] == ["SET_ASIDE"]


def test_every_update_keeps_the_checksums_right(world):
    handle, other = world.open("Q", IN), world.open("Q2", IN)
    world.did(Put(q_name="Q", data=b"unit", descriptor=MessageDescriptor(persistence=1), options=2, unit=1))
    world.did(Get(handle=handle, options=SYNC, unit=1))
    world.did(Backout(unit=1))
    world.did(Put(q_name="Q", data=b"unit", descriptor=MessageDescriptor(persistence=1), options=2, unit=2))
    world.did(Get(handle=handle, options=SYNC, unit=2))
    world.did(Commit(unit=2))
    for place in (2, 1, 3):
        said = MessageDescriptor(
            persistence=1, group_id=b"g" * 24, msg_seq_number=place, msg_flags=8 + 16 * (place == 3)
        )
        world.did(Put(q_name="Q2", data=b"group", descriptor=said, options=2, unit=3))
    world.did(Commit(unit=3))
    made = world.did(Reserve(handle=other, consumer="JOB", max_messages=3))
    world.did(Settle(reservation=made.reservation))
    world.did(Reserve(handle=handle, consumer="JOB2"))
    world.crash()
    db = stopped(world)
    assert db.execute(f"SELECT count(*) FROM message WHERE header IS NULL OR NOT {IS_RIGHT}").fetchall() == [(0,)]
    assert db.execute("SELECT count(*) FROM message").fetchall() != [(0,)]
    for table in ROWS:
        bad = db.execute(f"SELECT * FROM {table} WHERE sum IS NULL OR NOT {is_whole(table)}").fetchall()
        assert bad == [], table
    db.close()


def test_an_index_that_leads_elsewhere_is_made_anew_by_the_look_that_meets_it(world):
    world.qm.housekeeping.idle()
    db = stopped(world)
    page = page_of(db, "message_ready")
    db.close()
    clean, last = ((world.directory / name).read_bytes() for name in ("qm.db", "last_turn"))
    for at in range(PAGE - 60, PAGE, 7):
        (world.directory / "last_turn").write_bytes(last)
        data = bytearray(clean)
        data[(page - 1) * PAGE + at] ^= 1
        (world.directory / "qm.db").write_bytes(data)
        started(world)
        assert got(world, "Q") == ([b"4", b"3", b"2", b"1", b"0"], Reason.NO_MSG_AVAILABLE), at
        assert got(world, "Q2")[0] == [b"0", b"1", b"2", b"3", b"4"]
        world.qm.stop()
        world.sessions.clear()


# The row of another table than that of messages, and how an entry of its index is damaged.
RUN = "INSERT INTO run (run_id, state, q_name, record, ended_ms) VALUES ('r1', 'exited', 'Q2', '{}', 7007)"
RESERVATION = """
INSERT INTO reservation (number, queue, consumer, record)
VALUES (7007, 1, 'JOB', '{"number": 7007, "q_name": "Q", "consumer": "JOB"}')"""


def started_damaged(world, row, part, old, new, *, is_noted=False):
    """Adds a row, changes bytes of the first page of a table or an index, and starts the queue manager.

    ``is_noted``: damage was found before, so the start checks everything.
    """
    db = stopped(world)
    db.execute(row)
    page = page_of(db, part)
    db.close()
    change(world.directory, page, old, new)
    if is_noted:
        note_damage(world.directory)
    started(world)


def assert_whole(world):
    """Stops a queue manager whose file is without fault and whose queues have all their messages."""
    assert errors_in(world.store._db) == []
    for name in ("Q", "Q2"):
        assert len(got(world, name)[0]) == 5
    world.qm.stop()


@pytest.mark.parametrize(
    ("index", "row", "old", "new"),
    [
        ("sqlite_autoindex_queue_1", "SELECT 1", b"Q2", b"Q3"),
        ("sqlite_autoindex_run_1", RUN, b"r1", b"r2"),
        ("run_state", RUN, b"exited", b"Exited"),
        ("run_queue", RUN, b"Q2", b"Q3"),
        ("run_ended", RUN, b"\x1b\x5f", b"\x1b\x5e"),
        ("reservation_consumer", RESERVATION, b"JOB", b"JOC"),
        ("reservation_left", RESERVATION, b"\x1b\x5f", b"\x1b\x5e"),
    ],
)
def test_an_index_of_another_table_that_leads_elsewhere_is_made_anew_at_the_start(world, index, row, old, new):
    started_damaged(world, row, index, old, new)
    table = index.removeprefix("sqlite_autoindex_").partition("_")[0]
    assert world.said == [f"the indexes of the table {table} do not agree with its rows: they are rebuilt"]
    assert_whole(world)


SUMMED_QUEUE = "INSERT INTO queue (number, name, sum) VALUES (77, 'Q3', row_sum(77, 'Q3'))"


@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize(
    ("table", "row", "old", "new", "said"),
    [
        ("queue", SUMMED_QUEUE, b"Q3", b"Q2", "a row of the table queue is damaged and is dropped: 77, Q2"),
        ("queue", SUMMED_QUEUE, b"Q3", b"Q4", "a row of the table queue is damaged and is dropped: 77, Q4"),
        ("run", f"{RUN}, ('r2', 'exited', 'Q2', '{{}}', 7008)", b"r2", b"r1", "is kept as"),
    ],
)
def test_a_damaged_row_is_dropped_though_it_has_the_key_of_another(world, table, row, old, new, said, is_noted):
    started_damaged(world, row, table, old, new, is_noted=is_noted)
    assert any(said in text for text in world.said), world.said
    if table == "queue":
        assert not any("indexes" in text for text in world.said), world.said
        assert not list(world.directory.glob("qm.db.damaged*"))
    assert_whole(world)


def test_a_page_of_two_tables_costs_no_message(world):
    for _ in range(60):
        world.put("Q", b"x" * 1000)
    db = stopped(world)
    rows = ((f"r{number}", " " * 800) for number in range(200))
    db.executemany("INSERT INTO run (run_id, state, q_name, record) VALUES (?, 'exited', 'Q2', ?)", rows)
    leaves = db.execute("SELECT pageno FROM dbstat WHERE name = 'message' AND pagetype = 'leaf'").fetchall()
    root = (page_of(db, "run") - 1) * PAGE
    db.close()
    path = world.directory / "qm.db"
    data = bytearray(path.read_bytes())
    data[root + 8 : root + 12] = leaves[3][0].to_bytes(4, "big")  # the last child of an interior page
    path.write_bytes(data)
    note_damage(world.directory)
    started(world)
    assert len(got(world, "Q")[0]) == 65
    assert (world.directory / "qm.db.damaged-1").read_bytes() == data
    world.qm.stop()


def test_every_index_of_a_table_other_than_that_of_messages_is_compared_with_its_rows(world):
    db = stopped(world)
    indexed = "SELECT DISTINCT tbl_name FROM sqlite_schema WHERE type = 'index' AND tbl_name <> 'message'"
    keys = {table for (table,) in db.execute(indexed)}
    # Where the key is the table, its index holds the rows with their checksums.
    assert {table for table in keys if "WITHOUT ROWID" not in schema_of(db, table)} == set(_INDEXED)
    db.close()


def schema_of(db, table):
    ((text,),) = db.execute("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,))
    return text


def test_damage_met_while_serving_is_mended_and_the_process_goes_on(world):
    said = []
    world.store._tell = said.append
    world.open("Q", IN)
    world.qm.housekeeping.idle()
    with (world.directory / "qm.db").open("r+b") as file:
        file.seek((page_of(world.store._db, "message_ready") - 1) * PAGE)
        file.write(b"\xff")  # no page begins like this
    world.store._db.execute("PRAGMA shrink_memory").fetchall()
    bodies, _ = got(world, "Q")
    assert bodies == [b"4", b"3", b"2", b"1", b"0"]
    assert any("rebuilt" in text for text in said)


def test_a_page_of_messages_that_cannot_be_read_costs_its_messages_and_each_is_named(world):
    for _ in range(60):
        world.put("Q", b"x" * 1000)
    db = stopped(world)
    (leaf,) = db.execute(
        "SELECT pageno FROM dbstat WHERE name = 'message' AND pagetype = 'leaf' LIMIT 1 OFFSET 3"
    ).fetchall()[0]
    db.close()
    path = world.directory / "qm.db"
    data = bytearray(path.read_bytes())
    data[(leaf - 1) * PAGE : leaf * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    world._start()
    world.said = []
    world.store._tell = world.said.append
    first = world.do(Get(handle=world.open("Q2", IN)))
    assert first.data == b"0"
    with_answers, reason = [], None
    with contextlib.suppress(StoreBroken):
        with_answers, reason = got(world, "Q")
    assert reason in (None, Reason.OBJECT_DAMAGED), (len(with_answers), reason)
    world.store.abandon()
    world.sessions.clear()
    started(world)
    assert any("is lost: its row cannot be read" in text for text in world.said)
    left, reason = got(world, "Q")
    assert reason == Reason.NO_MSG_AVAILABLE
    assert 50 <= len(left) + len(with_answers) < 65
    assert list(world.directory.glob("qm.db.damaged-1"))
    world.qm.stop()


def broken(world):
    """One page of messages cannot be read, and the next start is to check everything."""
    for _ in range(60):
        world.put("Q", b"x" * 1000)
    db = stopped(world)
    leaves = "SELECT pageno FROM dbstat WHERE name = 'message' AND pagetype = 'leaf' LIMIT 1 OFFSET 3"
    (leaf,) = db.execute(leaves).fetchall()[0]
    db.close()
    path = world.directory / "qm.db"
    data = bytearray(path.read_bytes())
    data[(leaf - 1) * PAGE : leaf * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    note_damage(world.directory)


def note_damage(directory):
    """Lets the next start check everything."""
    last = directory / "last_turn"
    last.write_bytes(unpacked(last.read_bytes())._replace(is_damaged=True).packed())


def goes_on(world):
    started(world)
    left, reason = got(world, "Q")
    assert reason == Reason.NO_MSG_AVAILABLE
    assert 50 <= len(left) < 65
    world.qm.stop()
    names = {path.name for path in world.directory.iterdir()}
    assert names & {"qm.db.damaged-1", "qm.db.damaged-2", "qm.db.part", "qm.db.salvaged"} == {"qm.db.damaged-1"}


STEPS = ["connect", "_make", "create_schema", "_copy", "settle", "take_place", "set_aside", "make_durable"]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_salvage_that_is_killed_has_lost_nothing(world, step, is_done):
    broken(world)
    pid = os.fork()
    if not pid:
        real = getattr(salvage, step)

        def last(*given):
            if is_done:
                real(*given)
            os._exit(9)

        setattr(salvage, step, last)
        with contextlib.suppress(BaseException):
            SqliteStore(world.directory)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    goes_on(world)


def test_a_salvage_that_has_no_room_changes_nothing(world, monkeypatch):
    def fill(*_):
        raise apsw.FullError("database or disk is full")

    broken(world)
    with monkeypatch.context() as full:
        full.setattr(salvage, "settle", fill)
        with pytest.raises(StoreBroken, match="is damaged, and could not be copied: database or disk is full"):
            SqliteStore(world.directory)
    goes_on(world)


def test_a_salvage_that_cannot_open_a_file_now_changes_nothing(world, monkeypatch):
    def fail(path):
        raise StoreBroken(f"{path}: too many open files") from apsw.CantOpenError()

    broken(world)
    with monkeypatch.context() as short:
        short.setattr(salvage, "connect", fail)
        with pytest.raises(StoreBroken, match="too many open files"):
            SqliteStore(world.directory)
    goes_on(world)


def test_a_last_turn_that_cannot_be_opened_is_reported(world):
    world.qm.stop()
    (world.directory / "last_turn").unlink()
    (world.directory / "last_turn").mkdir()
    with pytest.raises(StoreBroken, match="last_turn: unable to open"):
        SqliteStore(world.directory)


@pytest.mark.parametrize("table", ["object", "queue"])
def test_a_queue_that_is_going_slice_by_slice_is_no_queue_again_where_another_is_damaged(world, table):
    world.define("GOING")
    for _ in range(300):
        world.put("GOING", b"")
    world.did(Delete(object_type="QLOCAL", name="GOING", purge=True))
    assert world.store.has_leftovers
    world.crash()
    db = stopped(world)
    (going,) = db.execute("SELECT name FROM queue WHERE name LIKE '(dropped)%'").fetchall()[0]
    db.execute(f"UPDATE {table} SET sum = sum + 1 WHERE name = 'Q'")
    db.close()
    started(world)
    assert world.said
    assert going not in world.store.standing.queues
    while world.store.has_leftovers:
        world.store.begin()
        world.store.remove_leftovers()
        world.store.end()
    assert got(world, "Q2")[0] == [b"0", b"1", b"2", b"3", b"4"]
    world.qm.stop()


# -- the last turn ----------------------------------------------------------------------------------------------------


def test_a_missing_number_of_the_last_turn_is_reported(world):
    with contextlib.closing(stopped(world)) as db:
        db.execute("DELETE FROM meta WHERE key = 'turn'")
    said = []
    with contextlib.closing(apsw.Connection(":memory:")) as db:
        register(db)
        db.execute("CREATE TABLE meta (key, value, sum)")
        assert _turn_of(db, SimpleNamespace(found=Stamp(7, 0, 0)), said.append) is None
    assert any("its row is missing" in each and "cannot be known" in each for each in said)
    started(world)
    assert any("its row is missing" in each for each in world.said)


def test_a_damaged_record_of_ended_units_is_reported_with_what_follows_from_it(world):
    with contextlib.closing(stopped(world)) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('leftovers', '{}', 1)")
    started(world)
    assert any("committed one had got may lie on their queues again" in each for each in world.said)


def test_what_may_not_have_been_committed_is_set_aside_where_the_record_of_large_units_is_damaged(world, monkeypatch):
    monkeypatch.setattr(Leftovers, "at_once", 1)
    for body in (b"large 1", b"large 2", b"large 3"):
        world.put("Q2", body, unit=1, persistence=1)
    world.did(Commit(unit=1))
    assert world.store.has_leftovers
    db = stopped(world)
    db.execute("UPDATE meta SET sum = sum + 1 WHERE key = 'leftovers'")
    db.close()
    started(world)
    assert any("what it has put is set aside" in text for text in world.said)
    assert not any(body.startswith(b"large") for body in got(world, "Q2")[0])
    world.qm.stop()
