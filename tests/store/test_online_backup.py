"""A backup that is made while the queue manager serves, and its restore: all that was answered before, or nothing."""

import io
import random
import shutil
from pathlib import Path

import pytest

from tests.worlds import World
from trigmon.mq.calls import BeginBackup, EndBackup, Get, ReadBackup, RecordRun
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import BackupBegun, Refused
from trigmon.qmgr.client_backup import UNREAD_MS
from trigmon.store.port import AnothersStore, DirectoryInUse
from trigmon.store.sqlite.backup_file import BackupError, BackupNote, BackupWriter, verify
from trigmon.store.sqlite.restoration import StoreExistsError, finish_restore, restore
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.store_check import check_backup, check_directory
from trigmon.store.sqlite.turn_log import LastTurn


@pytest.fixture
def served(tmp_path):
    world = World("sqlite", tmp_path / "QM1")
    world.define("Q", def_persistence="persistent", max_q_depth=9999)
    yield world
    world.end()


def begin(world, as_="backup"):
    begun = world.did(BeginBackup(), as_)
    assert isinstance(begun, BackupBegun)
    return begun


def finish(world, begun, as_="backup", step=10_000) -> bytes:
    """Returns the backup as one file."""
    made = io.BytesIO()
    writer = BackupWriter(made)
    for offset in range(0, begun.size, step):
        writer.write(world.did(ReadBackup(offset=offset, count=min(step, begun.size - offset)), as_).data)
    world.did(EndBackup(), as_)
    writer.finish(BackupNote(q_mgr_name="QM1", made_ms=begun.made_ms, size=begun.size, trigmon_version="0"))
    return made.getvalue()


def back_up(world) -> bytes:
    return finish(world, begin(world))


def restored(backup: bytes, directory: Path, name="QM1", **options) -> list[str]:
    told: list[str] = []
    restore(io.BytesIO(backup), directory / "qm.db", name, told.append, **options)
    return told


def bodies(directory, kind="sqlite"):
    """Returns the messages of Q in a store, all of which are got."""
    world = World(kind, directory)
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    found = []
    while not isinstance(reply := world.do(Get(handle=handle)), Refused):
        found.append(reply.data)
    world.end()
    return found


def test_it_holds_what_was_answered_before_it_began_and_nothing_behind(served, tmp_path):
    for number in range(50):
        served.put("Q", b"before %d" % number)
    begun = begin(served)
    for number in range(50):
        served.put("Q", b"behind %d" % number)
    served.qm.housekeeping.idle()
    backup = finish(served, begun)
    restored(backup, tmp_path / "R")
    assert bodies(tmp_path / "R") == [b"before %d" % number for number in range(50)]


def test_what_is_written_while_it_is_made_is_there_behind_it_and_after_a_crash(served):
    begun = begin(served)
    for number in range(300):
        served.put("Q", b"%d" % number)
    finish(served, begun)
    served.qm.housekeeping.idle()
    assert Path(served.directory / "qm.db-wal").exists()
    served.crash()
    assert served.queue_depth("Q") == 300


def test_a_unit_of_work_in_flight_is_backed_out_in_it(served, tmp_path):
    served.put("Q", b"committed")
    served.put("Q", b"in a unit", unit=1)
    backup = back_up(served)
    restored(backup, tmp_path / "R")
    assert bodies(tmp_path / "R") == [b"committed"]


def test_definitions_and_runs_are_in_it(served, tmp_path):
    served.define("OTHER", max_q_depth=77)
    run = {"run_id": "00000000000000aa", "state": "exited", "q_name": "Q", "exit_status": 0, "ended_ms": 1}
    served.did(RecordRun(run_id=run["run_id"], record=run))
    restored(back_up(served), tmp_path / "R")
    world = World("sqlite", tmp_path / "R")
    assert world.store.standing.queues["OTHER"].definition.max_q_depth == 77
    assert [found.run_id for found in world.store.ledger.runs({}, "", 10)] == [run["run_id"]]
    world.end()


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_a_store_that_is_no_file_refuses_it(kind, tmp_path):
    world = World(kind, tmp_path)
    assert world.do(BeginBackup()).reason == Reason.FUNCTION_NOT_SUPPORTED
    world.end()


def test_one_connection_at_a_time_makes_one(served):
    begin(served, "first")
    assert served.do(BeginBackup(), "second").reason == Reason.OBJECT_IN_USE
    assert served.do(ReadBackup(offset=0), "second").reason == Reason.BACKED_OUT
    served.did(EndBackup(), "second")
    assert served.did(ReadBackup(offset=0), "first").data
    served.lose("first")
    begin(served, "second")


def test_one_that_is_not_read_for_a_minute_is_ended(served):
    begin(served)
    served.clock.advance(UNREAD_MS - 1)
    served.qm.housekeeping.look_after_backups()
    assert served.did(ReadBackup(offset=0), "backup").data
    served.clock.advance(UNREAD_MS)
    served.qm.housekeeping.look_after_backups()
    assert served.do(ReadBackup(offset=0), "backup").reason == Reason.BACKED_OUT
    assert not served.store.copy.is_held


def test_one_whose_client_is_gone_is_ended(served):
    begin(served)
    served.lose("backup")
    assert served.store.copy.is_held
    served.qm.housekeeping.look_after_backups()
    assert not served.store.copy.is_held


def test_a_disk_that_is_nearly_full_ends_it(served):
    begin(served)
    served.store.turns.is_short = True
    while served.store.copy.is_held:
        served.put("Q", bytes(4000))
    refused = served.do(ReadBackup(offset=0), "backup")
    assert (refused.reason, "disk" in refused.about) == (Reason.BACKED_OUT, True)


@pytest.mark.parametrize(("offset", "count"), [(-1, 1), (0, 0), (0, -1), (0, 2**40), (2**63 - 1, 1)])
def test_a_place_that_no_file_has_is_refused(served, offset, count):
    begin(served)
    assert served.do(ReadBackup(offset=offset, count=count), "backup").reason == Reason.OPTIONS_ERROR


def test_behind_the_end_of_the_file_there_are_no_bytes(served):
    begun = begin(served)
    assert served.did(ReadBackup(offset=begun.size), "backup").data == b""
    assert len(served.did(ReadBackup(offset=begun.size - 5), "backup").data) == 5


# -- restore --------------------------------------------------------------------------------------------------


@pytest.fixture
def backup(served):
    served.put("Q", b"kept")
    return back_up(served)


def test_it_becomes_a_queue_manager_of_another_name_if_asked(backup, tmp_path):
    with pytest.raises(AnothersStore, match="QM1, not of QM2"):
        restored(backup, tmp_path / "QM2", "QM2")
    assert not (tmp_path / "QM2").exists()
    restored(backup, tmp_path / "QM2", "QM2", may_rename=True)
    assert list(check_directory(tmp_path / "QM2" / "qm.db")) == []
    store = SqliteStore(tmp_path / "QM2")
    with pytest.raises(AnothersStore, match="QM2, not of QM1"):
        store.open("QM1", 0)
    assert store.open("QM2", 0)
    store.close()


def test_numbers_that_were_given_after_the_backup_are_not_given_again(served, backup, tmp_path):
    given = {served.put("Q").msg_id for _ in range(10)}
    restored(backup, tmp_path / "R")
    world = World("sqlite", tmp_path / "R")
    msg_id = world.put("Q").msg_id
    assert msg_id not in given
    assert int.from_bytes(msg_id[-8:], "big") > 2**36
    world.end()


def test_a_store_that_is_there_is_left_or_kept_beside(backup, tmp_path):
    world = World("sqlite", tmp_path / "R")
    with pytest.raises(DirectoryInUse):
        restored(backup, tmp_path / "R", replace=True)
    world.define("Q")
    world.end()
    with pytest.raises(StoreExistsError):
        restored(backup, tmp_path / "R")
    assert bodies(tmp_path / "R") == []
    assert restored(backup, tmp_path / "R", replace=True) == ["qm.db as it was is kept as qm.db.replaced-1"]
    assert bodies(tmp_path / "R") == [b"kept"]
    (tmp_path / "S").mkdir()
    (tmp_path / "R" / "qm.db.replaced-1").rename(tmp_path / "S" / "qm.db")
    assert bodies(tmp_path / "S") == []


def test_a_store_is_kept_with_its_log_and_a_log_without_its_database_is_not_taken_for_the_restored_ones(
    served, tmp_path
):
    backup = back_up(served)
    for number in range(5):
        served.put("Q", b"%d" % number)
    left = shutil.copytree(served.directory, tmp_path / "R")
    restored(backup, left, replace=True)
    assert bodies(left) == []
    (tmp_path / "S").mkdir()
    for suffix in ("", "-wal", "-turns"):
        (left / f"qm.db.replaced-1{suffix}").rename(tmp_path / "S" / f"qm.db{suffix}")
    assert bodies(tmp_path / "S") == [b"%d" % number for number in range(5)]
    (tmp_path / "T").mkdir()
    shutil.copy(served.directory / "qm.db-wal", tmp_path / "T")
    restored(backup, tmp_path / "T")
    assert bodies(tmp_path / "T") == []


def test_the_files_are_for_their_owner_alone_and_nothing_else_is_left(backup, tmp_path):
    restored(backup, tmp_path / "R")
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "R").iterdir()}
    assert found == {"qm.db": 0o600, "last_turn": 0o600, "lock": 0o640}


class Killed(BaseException):
    pass


def steps_of_restore(backup, directory, monkeypatch, last):
    """Restores and is killed behind that many changes of names; returns whether it was."""
    done = 0

    def count(change):
        def changed(path, *to):
            nonlocal done
            if done == last:
                raise Killed
            done += 1
            return change(path, *to)

        return changed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", count(Path.rename))
        patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
        try:
            restored(backup, directory, replace=True)
        except Killed:
            return True
    return False


def test_killed_anywhere_it_leaves_the_old_store_or_the_new_one_whole(served, tmp_path, monkeypatch):
    served.put("Q", b"new")
    backup = back_up(served)
    old = World("sqlite", tmp_path / "old")
    old.define("Q", def_persistence="persistent")
    for _ in range(9):  # more turns than the restored one has
        old.put("Q", b"old")
    found = []
    for last in range(10):
        directory = shutil.copytree(old.directory, tmp_path / f"R{last}")  # with a log, as a kill leaves it
        was_killed = steps_of_restore(backup, directory, monkeypatch, last)
        found.append(bodies(directory))
        assert list(check_directory(directory / "qm.db")) == []
        if not was_killed:
            break
    old.end()
    assert found == [[b"old"] * 9] + [[b"new"]] * (len(found) - 1)
    assert len(found) == 7


def test_a_damaged_backup_is_taken_only_if_that_is_accepted_and_the_start_salvages_it(served, tmp_path):
    sent = [b"message %d" % number for number in range(200)]
    for body in sent:
        served.put("Q", body)
    backup = bytearray(back_up(served))
    place = backup.index(b"message 100")
    backup[place : place + 11] = b"MESSAGE 100"
    with pytest.raises(BackupError):
        restored(bytes(backup), tmp_path / "R")
    assert not (tmp_path / "R" / "qm.db").exists()
    told = restored(bytes(backup), tmp_path / "R", accept_damage=True)
    assert told[0].endswith("this is accepted")
    assert LastTurn(tmp_path / "R").is_damaged
    assert bodies(tmp_path / "R") == [body for body in sent if body != b"message 100"]


def test_each_of_1000_damaged_copies_is_refused(backup, tmp_path):
    rng = random.Random(18)
    path = tmp_path / "backup"
    for kind in ["flip", "cut", "hole", "longer"] * 250:
        damaged = bytearray(backup)
        place = rng.randrange(len(damaged))
        match kind:
            case "flip":
                damaged[place] ^= 1 << rng.randrange(8)
            case "cut":
                del damaged[place:]
            case "hole":
                del damaged[place : place + rng.randrange(1, 9000)]
            case "longer":
                damaged[place:place] = rng.randbytes(rng.randrange(1, 100))
        path.write_bytes(damaged)
        with pytest.raises(BackupError):
            verify(path)
        assert len(list(check_backup(path))) == 1
    path.write_bytes(backup)
    assert list(check_backup(path)) == []


def test_a_finished_restore_is_not_finished_twice(backup, tmp_path):
    restored(backup, tmp_path / "R")
    finish_restore(tmp_path / "R" / "qm.db", pytest.fail)
    assert bodies(tmp_path / "R") == [b"kept"]


def test_a_journal_whose_database_is_gone_is_kept_beside_the_restored_store(served, backup, tmp_path):
    served.put("Q", b"behind")
    left = shutil.copytree(served.directory, tmp_path / "R")
    journal = (left / "qm.db-turns").read_bytes()
    (left / "qm.db").unlink()
    assert restored(backup, left) == ["qm.db as it was is kept as qm.db.replaced-1"]
    assert (left / "qm.db.replaced-1-turns").read_bytes() == journal
    assert bodies(left) == [b"kept"]
