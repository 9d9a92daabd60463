"""A file of the store that is gone, cut, older or another's: nothing is begun in its place."""

import struct

import apsw
import pytest

from tests.store.damaged_store import filled, killed
from trigmon.store.port import AnothersStore, StoreLost
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.turn_log import SIZE, Stamp, unpacked

world = pytest.fixture(filled)


@pytest.mark.parametrize("suffix", ["-wal", "-turns"])
def test_a_log_or_journal_that_is_gone_cut_or_changed_is_refused_until_the_loss_is_accepted(world, tmp_path, suffix):
    missing = r"turns? that were acknowledged are missing.*--accept-loss|is empty|are missing in the journal"
    for number, damage in enumerate((lambda log: b"", lambda log: log[: len(log) // 2], changed_in_the_middle)):
        files = killed(world, tmp_path / f"k{number}")
        log = files / f"qm.db{suffix}"
        log.write_bytes(damage(log.read_bytes().rstrip(b"\0")))
        for _ in range(2):
            with pytest.raises(StoreLost, match=missing):
                SqliteStore(files)
        said = []
        store = SqliteStore(files, accept_loss=True, tell=said.append)
        store.open("QM1", 0)
        store.close()
        assert "this is accepted" in said[0]
        SqliteStore(files).abandon()
    world.qm.stop()


def changed_in_the_middle(log):
    middle = len(log) // 2
    return log[:middle] + bytes([log[middle] ^ 1]) + log[middle + 1 :]


def test_a_killed_store_that_is_whole_is_taken_up_without_a_word(world, tmp_path):
    said = []
    SqliteStore(killed(world, tmp_path / "k"), tell=said.append).abandon()
    assert said == []
    world.qm.stop()


@pytest.mark.parametrize("left", [["lock"], ["last_turn"], ["lock", "last_turn"], ["runs"]])
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_database_that_is_missing_or_empty_is_no_new_queue_manager(world, tmp_path, left, is_empty):
    world.qm.stop()
    home = tmp_path / "left"
    home.mkdir()
    for name in left:
        if name == "runs":
            (home / name).mkdir()
        else:
            (home / name).write_bytes((world.directory / name).read_bytes())
    if is_empty:
        (home / "qm.db").touch()
    with pytest.raises(StoreLost, match=r"qm\.db is missing or empty.*was left.*restore a backup.*--accept-loss"):
        SqliteStore(home)
    store = SqliteStore(home, accept_loss=True)
    assert store.open("QM1", 0)
    store.close()
    SqliteStore(home).abandon()


def test_a_directory_in_which_a_first_start_failed_is_still_a_new_one(tmp_path):
    SqliteStore(tmp_path).abandon()
    (tmp_path / "qm.db").unlink()
    SqliteStore(tmp_path).abandon()


def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    db = apsw.Connection(str(tmp_path / "qm.db"))
    db.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    db.close()
    before = (tmp_path / "qm.db").read_bytes()
    with pytest.raises(AnothersStore, match="another program"):
        SqliteStore(tmp_path)
    db = apsw.Connection(str(tmp_path / "qm.db"))
    assert db.execute("SELECT * FROM theirs").fetchall() == [(1,)]
    assert [name for (name,) in db.execute("SELECT name FROM sqlite_schema")] == ["theirs"]
    db.close()
    assert struct.unpack(">I", before[68:72]) == (0,)


def test_an_older_copy_of_the_database_is_refused(world, tmp_path):
    world.qm.stop()
    older = (world.directory / "qm.db").read_bytes()
    world.sessions.clear()
    world._start()
    world.put("Q", b"later")
    world.qm.stop()
    (world.directory / "qm.db").write_bytes(older)
    with pytest.raises(StoreLost, match="older copy"):
        SqliteStore(world.directory)


def test_a_log_that_was_cut_while_it_was_moved_is_refused(world, tmp_path):
    """A part of its pages may be in the database already, the number of the turn among them."""
    world.store.last_turn.set_moving(_salt(world.directory), world.store._log.synced_pages)
    files = killed(world, tmp_path / "k")
    (files / "qm.db-wal").write_bytes(b"")
    stamp = unpacked((files / "last_turn").read_bytes())
    (files / "last_turn").write_bytes(stamp._replace(turn=0).packed())
    with pytest.raises(StoreLost):
        SqliteStore(files)
    world.qm.stop()


def _salt(directory):
    return int.from_bytes((directory / "qm.db-wal").read_bytes()[16:24], "big")


def test_a_stamp_says_what_was_written_and_nothing_else():
    stamp = Stamp(7, 2**64 - 1, 5, is_damaged=True)
    assert unpacked(stamp.packed()) == stamp
    assert len(stamp.packed()) == SIZE
    for at in range(SIZE):
        data = bytearray(stamp.packed())
        data[at] ^= 1
        assert unpacked(bytes(data)) is None
