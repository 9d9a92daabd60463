"""A killed store's journal, replayed, gives the database that the queue manager had: every table, row by row."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from tests.qmgr.script_steps import batches, large_ends, traffic
from tests.qmgr.store_script import Script
from tests.store.damaged_store import killed
from tests.worlds import World
from trigmon.journal import journal as journal_module
from trigmon.journal.journal import NO_HEADER
from trigmon.mq.calls import Delete, Get, Open
from trigmon.mq.enums import GetOption, MatchOption, OpenOption
from trigmon.rules.model.changes import AddMessage
from trigmon.store.port import StoreBroken, StoreLost, UnsupportedVersion
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sql.row_writes import WRITE
from trigmon.store.sqlite import durable_turns
from trigmon.store.sqlite.checksums import ROWS
from trigmon.store.sqlite.store import SqliteStore

IN = OpenOption.INPUT_SHARED


def content(store):
    """Returns all rows; the number of the last turn is that of the last commit, and not yet written in a live store."""
    tables = {name: sorted(store.rows(f"SELECT * FROM {name}"), key=repr) for name in ("message", *ROWS)}
    tables["meta"] = [row for row in tables["meta"] if row[0] != "turn"]
    return tables


def with_all_rows(store):
    """Returns all rows, with those that are not due yet, which stay so."""
    store.mark()
    store.turns.begin_call()
    store.turns.write_due()
    found = content(store)
    store.undo()
    return found


def replayed(directory, to):
    """Returns all rows of the store that a kill would leave now, behind its replay and before its recovery."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in ("qm.db", "qm.db-wal", "qm.db-turns", "last_turn", "lock"):
        shutil.copyfile(directory / name, to / name)
    store = SqliteStore(to)
    found, number = content(store), store._journal.number
    store.abandon()
    return found, number


def play_and_compare(seed, kind, steps, directory):
    """Plays a random script; returns how many states were compared and how many had turns to replay."""
    script = Script("sqlite", directory)
    compared = with_replay = 0
    for step in kind(seed, steps):
        script.play([step])
        store = script.world.store
        assert isinstance(store, SqliteStore)
        # What a crash undoes by itself has no record yet: it gets one, as it would behind 4 MiB of it.
        assert store._journal.write(is_synced=False)
        found, number = replayed(store._path.parent, directory / "killed")
        assert found == with_all_rows(store), (seed, compared, step)
        assert number == store._journal.number
        compared += 1
        with_replay += bool(store.turns.is_open)
    script.world.end()
    return compared, with_replay


@pytest.mark.parametrize("kind", [traffic, batches, large_ends], ids=lambda kind: kind.__name__)
def test_it_equals_what_was_written_behind_every_step_of_random_scripts(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(Leftovers, "at_once", 3)
    monkeypatch.setattr(ReservedRanges, "least", 1)
    monkeypatch.setattr(durable_turns, "MOST_WAITING", 60)  # so that a replay begins in many places
    compared, with_replay = play_and_compare(7, kind, 60, tmp_path)
    assert compared > 60
    assert with_replay > 30


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_it_equals_what_was_written_behind_each_of_10000_steps(tmp_path, monkeypatch, part):
    compared = 0
    for seed in range(part * 100, part * 100 + 100):
        monkeypatch.setattr(Leftovers, "at_once", 1 + seed % 4)
        monkeypatch.setattr(ReservedRanges, "least", 1 + seed % 3)
        monkeypatch.setattr(durable_turns, "MOST_WAITING", 1 + seed % 50)
        monkeypatch.setattr(journal_module, "SIZE", 64 << (10 + seed % 3))
        home = tmp_path / str(seed)
        home.mkdir()
        compared += play_and_compare(seed, (traffic, batches, large_ends)[seed % 3], 30, home)[0]
        shutil.rmtree(home)
        if compared >= 1000:
            return
    pytest.fail(f"only {compared} states were compared")


@pytest.fixture
def world(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    made = World("sqlite", home)
    made.define("Q", def_persistence="persistent")
    yield made
    made.qm.stop()


def bodies(directory):
    world = World("sqlite", directory)
    handle, found = world.open("Q", IN), []
    while hasattr(reply := world.do(Get(handle=handle)), "data"):
        found.append(reply.data)
    world.end()
    return found


def test_an_orderly_stop_leaves_an_empty_journal(world):
    world.put("Q", b"kept")
    world.restart()
    world.qm.stop()
    assert (world.directory / "qm.db-turns").read_bytes().startswith(NO_HEADER)
    world.sessions.clear()
    world._start()


def test_a_journal_of_another_version_is_refused_by_name_and_left_as_it_is(world, tmp_path):
    world.put("Q")
    files = killed(world, tmp_path / "k")
    path = files / "qm.db-turns"
    path.write_bytes(path.read_bytes()[:8] + b"\x09" + path.read_bytes()[9:])
    before = path.read_bytes()
    with pytest.raises(UnsupportedVersion, match=r"version 9; this trigmon knows 3: start the trigmon that wrote it"):
        SqliteStore(files)
    assert path.read_bytes() == before


def test_an_empty_journal_of_another_version_is_used(world, tmp_path):
    world.put("Q", b"kept")
    world.store.idle()
    world.qm.stop()
    files = shutil.copytree(world.directory, tmp_path / "stopped")
    path = files / "qm.db-turns"
    path.write_bytes(NO_HEADER + b"of any format" + path.read_bytes()[80:])
    assert bodies(files) == [b"kept"]
    world.sessions.clear()
    world._start()


def test_a_missing_journal_of_a_killed_store_is_refused_until_the_loss_is_accepted(world, tmp_path):
    world.put("Q", b"first")
    world.store.idle()
    world.put("Q", b"second")
    files = killed(world, tmp_path / "k")
    (files / "qm.db-turns").unlink()
    with pytest.raises(StoreLost, match=r"the last 1 of \d+ turns that were acknowledged are missing.*the journal"):
        SqliteStore(files)
    store = SqliteStore(files, accept_loss=True)
    store.open("QM1", 0)
    store.close()
    assert bodies(files) == [b"first"]


def test_a_missing_journal_of_a_stopped_store_is_made_anew(world, tmp_path):
    world.put("Q", b"kept")
    world.qm.stop()
    files = shutil.copytree(world.directory, tmp_path / "stopped")
    (files / "qm.db-turns").unlink()
    assert bodies(files) == [b"kept"]
    world.sessions.clear()
    world._start()


def test_turns_behind_an_accepted_loss_are_not_mixed_with_those_that_were_lost(world, tmp_path):
    for number in range(4):
        world.put("Q", b"%d" % number)
    files = killed(world, tmp_path / "k")
    path = files / "qm.db-turns"
    data = path.read_bytes()
    at = data.rindex(b"turn", 0, data.rindex(b"turn", 0, data.rindex(b"turn")))  # the record of the second put
    path.write_bytes(data[:at] + bytes(8) + data[at + 8 :])
    with pytest.raises(StoreLost, match="are missing in the journal"):
        SqliteStore(files)
    store = SqliteStore(files, accept_loss=True)
    store.open("QM1", 0)
    store.abandon()
    left = World("sqlite", files)
    left.put("Q", b"later")
    left.crash()
    left.end()
    found = bodies(files)
    assert found[-1:] == [b"later"]
    assert found[:-1] == [b"%d" % number for number in range(len(found) - 1)]
    assert len(found) < 5


def test_a_turn_that_does_not_fit_into_the_journal_lasts_as_any(world, monkeypatch):
    monkeypatch.setattr(journal_module, "SIZE", journal_module.FIRST_SIZE)
    world.put("Q", b"before")
    world.put("Q", b"x" * 100_000)
    world.put("Q", b"behind")
    world.crash()
    handle = world.open("Q", IN)
    assert [len(world.did(Get(handle=handle)).data) for _ in range(3)] == [6, 100_000, 6]


def test_a_deleted_queue_stays_deleted_with_its_messages(world):
    world.define("LARGE", max_q_depth=9999, def_persistence="persistent")
    for _ in range(3):
        world.put("LARGE")
    world.did(Delete(object_type="QLOCAL", name="LARGE", purge=True), "operator")
    world.define("LARGE")
    world.crash()
    assert world.queue_depth("LARGE") == 0


def test_numbers_of_puts_that_a_crash_backed_out_are_not_given_again_though_their_block_was_just_begun(world):
    store = world.store
    store._block_end = store.rows("SELECT max(id) FROM message")[0][0] or 0
    lost = world.put("Q", unit=1).msg_id
    handle = world.did(Open(object_name="Q", options=IN)).handle
    world.put("Q", as_="other")
    world.did(Get(handle=handle, options=GetOption.SYNCPOINT, unit=1))
    world.crash()
    assert world.put("Q").msg_id > lost


def test_a_start_on_damage_repairs_and_then_replays(world, tmp_path):
    for number in range(50):
        world.put("Q", b"%d" % number)
    world.store.idle()
    world.put("Q", b"in the journal")
    files = killed(world, tmp_path / "k")
    path = Path(files / "qm.db")
    data = bytearray(path.read_bytes())
    at = data.index(b"in the journal") if b"in the journal" in data else len(data) - 3000
    data[at] ^= 1
    path.write_bytes(bytes(data))
    store = SqliteStore(files)
    store.open("QM1", 0)
    store.close()
    assert b"in the journal" in bodies(files)


def test_the_clock_s_state_is_kept_with_turns_that_touch_no_row(world):
    handle = world.open("Q", IN)
    world.put("Q")
    world.did(Get(handle=handle))
    world.store.idle()
    world.qm._kept_ms = -5000  # it is kept each second
    world.qm.clock.kept = lambda: "later"
    world.put("Q")
    world.store.abandon()
    store = SqliteStore(world.directory)
    assert store.kept_time() == "later"
    store.abandon()
    world.sessions.clear()
    world._start()


class Killed(BaseException):
    """The process dies here."""


def dies(*_arguments):
    raise Killed


def killed_before_the_journal_is_empty(files, to, monkeypatch, **how):
    """Starts a store, and returns its files as a kill leaves them when all is settled and the journal is not empty."""
    with monkeypatch.context() as patched:
        patched.setattr(journal_module.Journal, "clear", dies)
        store = SqliteStore(files, **how)
        with pytest.raises(Killed):
            store.open("QM1", 0)
        left = shutil.copytree(files, to)
        store.abandon()
    return left


def test_a_start_that_is_killed_before_it_has_emptied_the_journal_takes_nothing_of_it_twice(
    world, tmp_path, monkeypatch
):
    for number in range(10):
        world.put("Q", b"%d" % number)
    files = killed(world, tmp_path / "k")
    path = files / "qm.db-turns"
    data = path.read_bytes()
    records = list(journal_module.records_in(data))
    at = data.index(journal_module.packed(records[3], salt(data)))
    path.write_bytes(data[:at] + bytes(8) + data[at + 8 :])
    left = killed_before_the_journal_is_empty(files, tmp_path / "left", monkeypatch, accept_loss=True)
    found = bodies(left)
    assert found == [b"%d" % number for number in range(len(found))]
    assert len(found) < 10


def salt(data):
    found = journal_module.salt_in(data)
    assert found is not None
    return found


def test_a_damaged_number_of_the_last_turn_does_not_make_a_start_skip_the_journal(world, tmp_path):
    world.store.idle()
    world.put("Q", b"in the journal")
    files = killed(world, tmp_path / "k")
    db = apsw.Connection(str(files / "qm.db"))
    db.execute("PRAGMA locking_mode = exclusive").fetchall()
    db.execute("UPDATE meta SET sum = sum + 1 WHERE key = 'turn'")
    db.close()
    with pytest.raises(StoreLost, match="which turns of its journal it has is unknown"):
        SqliteStore(files)
    store = SqliteStore(files, accept_loss=True)
    store.open("QM1", 0)
    store.close()
    assert bodies(files) == []


def test_a_damaged_header_of_the_journal_is_refused_also_where_the_number_of_the_last_turn_is_old(world, tmp_path):
    world.store.idle()
    before = (world.directory / "last_turn").read_bytes()
    world.put("Q")
    files = killed(world, tmp_path / "k")
    (files / "last_turn").write_bytes(before)
    path = files / "qm.db-turns"
    data = bytearray(path.read_bytes())
    data[13] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreLost, match="the header of the journal is damaged"):
        SqliteStore(files)


def test_damage_that_young_messages_meet_when_they_get_rows_ends_the_process_and_a_start_has_them(world, monkeypatch):
    for number in range(3):
        world.put("Q", b"%d" % number)

    def many(statement, values):
        raise apsw.CorruptError("planted")

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "many", many)
        with pytest.raises(StoreBroken):
            world.do(Get(handle=world.open("Q", IN), correl_id=b"c" * 24, match=MatchOption.CORREL_ID))
    world.crash()
    handle = world.open("Q", IN)
    assert [world.did(Get(handle=handle)).data for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_change_of_a_queue_that_is_gone_is_reported_and_left_out(world, tmp_path):
    world.put("Q")
    world.store.idle()
    for number in range(3):
        world.put("Q", b"%d" % number)
    files = killed(world, tmp_path / "k")
    db = apsw.Connection(str(files / "qm.db"))
    db.execute("DELETE FROM queue WHERE name = 'Q'")
    db.execute("DELETE FROM message")
    db.close()
    told: list[str] = []
    SqliteStore(shutil.copytree(files, tmp_path / "gone"), tell=told.append).abandon()
    assert told.count("a change of the journal is left out, for queue 'Q' is lost") == 3


def test_a_fault_in_a_change_s_write_is_not_taken_for_a_queue_that_is_gone(world, tmp_path, monkeypatch):
    world.put("Q")
    files = killed(world, tmp_path / "k")

    def faulty(store, change):
        return {}["no queue"]

    monkeypatch.setitem(WRITE, AddMessage, faulty)
    with pytest.raises(StoreBroken, match="its journal cannot be applied: KeyError"):
        SqliteStore(files)


def test_a_journal_whose_database_is_gone_is_refused_though_nothing_else_was_left(world, tmp_path):
    world.put("Q", b"only here")
    files = killed(world, tmp_path / "k")
    for path in files.iterdir():
        if path.name != "qm.db-turns":
            path.unlink()
    with pytest.raises(StoreLost, match=r"qm\.db is missing or empty, and .*qm\.db-turns was left by a queue manager"):
        SqliteStore(files)
