"""A backup and the archive of the journal give the store as it was at any time; what they cannot give is refused."""

import itertools
import os
import random
import re
from datetime import datetime
from pathlib import Path

import apsw
import pytest

from tests.qmgr.script_steps import APPS, BROWSE, IN, batches, large_ends, traffic
from tests.store.archived_world import ArchivedScript, ArchivedWorld, brought_forward, dump
from tests.store.damaged_store import killed
from tests.store.test_online_backup import back_up
from tests.worlds import World
from trigmon.journal import journal as journal_module
from trigmon.mq.calls import Get
from trigmon.mq.enums import GetOption
from trigmon.mq.replies import Refused
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sqlite import durable_turns, journal_archive
from trigmon.store.sqlite.archived_turns import ArchiveError
from trigmon.store.sqlite.journal_archive import archived_files, last_turn
from trigmon.store.sqlite.turn_log import TurnLog


def play(seed, kind, steps, directory):
    """Plays a random script with a backup in its middle; returns how many moments behind it were restored."""
    chance = random.Random(seed)
    script = ArchivedScript("sqlite", directory)
    world = script.world
    script_steps = kind(seed, steps)
    at = chance.randrange(len(script_steps) // 2)
    script.play(script_steps[:at])
    backup = back_up(world)
    moments = []
    for step in script_steps[at:]:
        script.play([step])
        if chance.random() < 0.1:
            world.store.turns.rest()
        if chance.random() < 0.08:
            script.play([("crash",), *(("open", name, q_name, IN | BROWSE) for q_name in "FB" for name in APPS)])
        if chance.random() < 0.1:
            moments.append((next(world.times), dump(killed(world, directory / f"killed{len(moments)}"))))
    world.qm.stop()
    assert world.missing == []
    for number, (until, expected) in enumerate(moments):
        brought_forward(backup, world.archive, directory / f"restored{number}", until)
        assert dump(directory / f"restored{number}") == expected, (seed, number)
    return len(moments)


@pytest.mark.parametrize("kind", [traffic, batches, large_ends], ids=lambda kind: kind.__name__)
def test_each_moment_behind_a_backup_can_be_restored(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(Leftovers, "at_once", 3)
    monkeypatch.setattr(durable_turns, "MOST_WAITING", 60)
    monkeypatch.setattr(durable_turns, "SIZE", 64 << 10)
    restored = 0
    for seed in range(4):
        (tmp_path / str(seed)).mkdir()
        restored += play(seed, kind, 60, tmp_path / str(seed))
    assert restored > 10


@pytest.fixture
def world(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    made = ArchivedWorld("sqlite", home)
    made.define("Q", def_persistence="persistent", max_q_depth=99_999)
    yield made
    made.qm.stop()


def put_all(world, *bodies):
    for body in bodies:
        world.put("Q", body)


def bodies(directory):
    world = World("sqlite", directory)
    handle, found = world.open("Q", IN), []
    while not isinstance(reply := world.do(Get(handle=handle)), Refused):
        found.append((reply.data, reply.descriptor.backout_count))
    world.end()
    return found


def forward(world, backup, to, until=0):
    """Stops the queue manager, and returns what a restore of the backup has, brought forward by its archive."""
    world.qm.stop()
    brought_forward(backup, world.archive, to, until)
    world.sessions.clear()
    world._start()
    return bodies(to)


def test_what_was_in_flight_at_each_start_is_backed_out_then_and_not_at_the_end(world, tmp_path):
    backup = back_up(world)
    put_all(world, b"1")
    for _ in range(3):
        world.put("Q", b"in flight", unit=1)
        world.did(Get(handle=world.open("Q", IN), options=GetOption.SYNCPOINT, unit=1))
        world.put("Q", b"volatile", persistence=0)
        world.put("Q", b"other", as_="other")
        world.crash()
    assert forward(world, backup, tmp_path / "R") == [(b"1", 3)] + [(b"other", 0)] * 3


def test_a_turn_that_does_not_fit_into_the_journal_is_archived(world, tmp_path, monkeypatch):
    backup = back_up(world)
    monkeypatch.setattr(journal_module, "SIZE", journal_module.FIRST_SIZE)
    monkeypatch.setattr(durable_turns, "SIZE", journal_module.FIRST_SIZE)
    sent = [b"before", b"x" * 100_000, b"behind", b"y" * 40_000, b"z" * 40_000]
    put_all(world, *sent)
    assert [data for data, _ in forward(world, backup, tmp_path / "R")] == sent
    assert world.missing == []


def test_a_turn_of_more_than_a_megabyte_is_archived(world, tmp_path):
    backup = back_up(world)
    put_all(world, b"before", b"x" * 3_000_000)
    assert [len(data) for data, _ in forward(world, backup, tmp_path / "R")] == [6, 3_000_000]


def test_a_turn_is_archived_within_a_minute_also_while_nothing_comes(world):
    back_up(world)
    files = len(archived_files(world.archive))
    put_all(world, b"1")
    world.store.idle()
    assert len(archived_files(world.archive)) == files
    world.times = itertools.count(next(world.times) + durable_turns.ARCHIVED_WITHIN_MS)
    world.store.clock = world.times.__next__
    world.store.idle()
    assert len(archived_files(world.archive)) == files + 1


@pytest.fixture
def archived(world, tmp_path):
    """Returns a backup, three files of an archive behind it with a message each, and when each message was put."""
    backup = back_up(world)
    times = []
    for number in range(3):
        put_all(world, b"%d" % number)
        times.append(next(world.times))
        world.store.turns.rest()
    ends = read_backup_turn(backup, tmp_path)
    files = [file for file in archived_files(world.archive) if file.last > ends]
    assert len(files) == 3
    return backup, files, times


def read_backup_turn(backup, tmp_path):
    path = tmp_path / "backup.db"
    path.write_bytes(backup)
    db = apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    ((turn,),) = db.execute("SELECT value FROM meta WHERE key = 'turn'")
    db.close()
    return turn


def refused(backup, archive, directory, until=0):
    with pytest.raises(ArchiveError) as error:
        brought_forward(backup, archive, directory, until)
    assert [path.name for path in directory.iterdir()] == ["lock"]
    return str(error.value)


def proposed(text):
    """Returns the time that an error proposes, in milliseconds since 1970."""
    return round(datetime.fromisoformat(re.search(r"--until (\S+)Z", text)[1] + "+00:00").timestamp() * 1000)


def test_a_hole_is_refused_by_its_turns_and_time_and_what_lies_before_it_can_be_restored(world, archived, tmp_path):
    backup, files, times = archived
    files[1].path.unlink()
    text = refused(backup, world.archive, tmp_path / "R")
    assert f"turns behind {files[0].last} up to {files[1].last} are missing in {world.archive}" in text
    assert "bring the missing files back, or take a backup from behind them, or give --until 2033-" in text
    assert refused(backup, world.archive, tmp_path / "R", times[2]) == text
    brought_forward(backup, world.archive, tmp_path / "S", proposed(text))
    assert bodies(tmp_path / "S") == [(b"0", 0)]


def test_a_backup_from_before_the_archive_s_beginning_is_refused(world, archived, tmp_path):
    backup, files, _ = archived
    files[0].path.unlink()
    text = refused(backup, world.archive, tmp_path / "R")
    assert text.startswith(f"the backup ends with turn {files[0].before}, and turns behind {files[0].before} up to")
    assert text.endswith("take a later backup, or bring the missing files back")


def test_a_file_with_one_changed_bit_is_refused_wherever_it_is(world, archived, tmp_path):
    backup, files, _ = archived
    whole = files[1].path.read_bytes()
    for at in (0, 9, 14, 30, 64, 70, 90, len(whole) // 2, len(whole) - 1):
        files[1].path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        text = refused(backup, world.archive, tmp_path / f"R{at}")
        assert str(files[1].path) in text
        assert "is damaged" in text or "version" in text
    files[1].path.write_bytes(whole[:-1])
    text = refused(backup, world.archive, tmp_path / "cut")
    assert "bring a copy of it back, or give --until" in text
    brought_forward(backup, world.archive, tmp_path / "S", proposed(text))
    assert bodies(tmp_path / "S") == [(b"0", 0)]


def test_a_time_before_the_backup_and_a_directory_without_an_archive_are_refused(world, archived, tmp_path):
    backup, *_ = archived
    assert "take an earlier one" in refused(backup, world.archive, tmp_path / "R", 1)
    assert "name the directory store.journal_archive" in refused(backup, tmp_path / "home", tmp_path / "S")


def test_an_archive_that_cannot_be_written_is_reported_and_calls_go_on_and_the_hole_is_known(world, tmp_path):
    backup = back_up(world)
    aside = world.archive.rename(tmp_path / "aside")
    world.archive.write_bytes(b"")
    put_all(world, b"1")
    world.store.turns.rest()
    put_all(world, b"2")
    world.store.turns.rest()
    (told,) = world.missing
    assert "are missing in" in told and "Not a directory" in told
    archive = world.store.turns.archive
    assert archive.missing == told
    world.archive.unlink()
    aside.rename(world.archive)
    put_all(world, b"3")
    world.store.turns.rest()
    assert world.missing == [told, ""]
    assert archive.missing == told
    later = back_up(world)
    assert archive.missing == ""
    put_all(world, b"4")
    assert [data for data, _ in forward(world, later, tmp_path / "S")] == [b"1", b"2", b"3", b"4"]
    assert "are missing in" in refused(backup, world.archive, tmp_path / "R")


def test_turns_of_a_time_without_the_archive_are_missing_in_it_and_that_is_reported(world, tmp_path):
    backup = back_up(world)
    world.qm.stop()
    other = World("sqlite", world.directory)
    other.put("Q", b"unknown")
    other.end()
    world.sessions.clear()
    world._start()
    (told,) = world.missing
    assert "are missing in" in told
    put_all(world, b"1")
    world.store.turns.rest()
    assert "are missing in" in refused(backup, world.archive, tmp_path / "R")


def test_a_restored_store_goes_on_in_the_archive_of_the_one_before(world, archived, tmp_path):
    backup, _, times = archived
    world.qm.stop()
    brought_forward(backup, world.archive, world.directory, times[1], replace=True)
    world.sessions.clear()
    world._start()
    put_all(world, b"new")
    later = back_up(world)
    put_all(world, b"newer")
    assert [data for data, _ in forward(world, later, tmp_path / "S")] == [b"0", b"1", b"new", b"newer"]
    brought_forward(backup, world.archive, tmp_path / "T", times[2])
    assert [data for data, _ in bodies(tmp_path / "T")] == [b"0", b"1", b"2"]


def restored_in_place(world, backup, until=0):
    world.qm.stop()
    told = brought_forward(backup, world.archive, world.directory, until, replace=True, behind=last_turn(world.archive))
    world.sessions.clear()
    world._start()
    return told


def test_a_restore_ends_a_chain_and_leaves_no_hole(world, archived, tmp_path):
    backup, _, times = archived
    for body in (b"second", b"third"):
        restored_in_place(world, backup, times[1])
        put_all(world, body)
        world.store.turns.rest()
    assert (world.missing, world.store.turns.archive.missing) == ([], "")
    later = back_up(world)
    put_all(world, b"newer")
    assert [data for data, _ in forward(world, later, tmp_path / "S")] == [b"0", b"1", b"third", b"newer"]
    told = brought_forward(backup, world.archive, tmp_path / "T")
    assert [data for data, _ in bodies(tmp_path / "T")] == [b"0", b"1", b"2"]
    assert [each.count("a restored store") for each in told if "a restored store" in each] == [1, 1]


def test_a_time_behind_a_restore_is_refused_for_a_backup_from_before_it(world, archived, tmp_path):
    backup, *_ = archived
    restored_in_place(world, backup)
    put_all(world, b"new")
    until = next(world.times)
    world.store.turns.rest()
    text = refused(backup, world.archive, tmp_path / "R", until)
    assert "of a restored store" in text
    brought_forward(backup, world.archive, tmp_path / "S", proposed(text))
    assert [data for data, _ in bodies(tmp_path / "S")] == [b"0", b"1", b"2"]


def test_files_that_are_too_old_are_deleted(world):
    back_up(world)
    world.store.turns.archive._keep_days = 2
    (first, *_) = archived_files(world.archive)
    os.utime(first.path, (0, 0))
    put_all(world, b"1")
    world.store.turns.rest()
    assert first not in archived_files(world.archive)


def test_a_file_that_cannot_be_deleted_is_no_hole(world, monkeypatch):
    back_up(world)
    world.store.turns.archive._keep_days = 2
    (first, *_) = archived_files(world.archive)
    os.utime(first.path, (0, 0))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        put_all(world, b"1")
        world.store.turns.rest()
    assert (world.missing, world.store.turns.archive.missing) == ([], "")
    put_all(world, b"2")
    world.store.turns.rest()
    assert first not in archived_files(world.archive)


def refuse(*_, **__):
    raise PermissionError("planted")


def test_a_restore_reports_nothing_missing(world, archived, tmp_path):
    backup, *_ = archived
    told = brought_forward(backup, world.archive, tmp_path / "S")
    assert [each for each in told if "missing" in each] == []


class Killed(BaseException):
    pass


@pytest.mark.parametrize("when", range(8))
def test_killed_while_it_archives_it_leaves_no_hole(world, tmp_path, monkeypatch, when):
    backup = back_up(world)
    calls = itertools.count()

    def dies(right):
        def call(*args):
            if next(calls) == when:
                raise Killed
            return right(*args)

        return call

    sent = [b"%d" % number for number in range(20)]
    with monkeypatch.context() as patched:
        for of, name in ((os, "fsync"), (Path, "rename"), (journal_archive, "make_durable"), (TurnLog, "sync")):
            patched.setattr(of, name, dies(getattr(of, name)))
        with pytest.raises(Killed):
            for body in sent:
                put_all(world, body)
                world.store.turns.rest()
    world.crash()
    put_all(world, b"behind")
    found = [data for data, _ in forward(world, backup, tmp_path / "R")]
    assert found[-1] == b"behind"
    assert found[:-1] == sent[: len(found) - 1]
    assert world.missing == []
