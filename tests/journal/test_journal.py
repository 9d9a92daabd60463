"""The journal on a disk that is asked for everything: how it is written, synced, used again, and what has no room."""

import itertools

import apsw
import pytest

from tests.proof.disk import Disk
from tests.proof.vfs import VFS
from trigmon.journal import journal as module
from trigmon.journal.journal import FIRST_SIZE, HEADER_SIZE, NO_HEADER, Journal
from trigmon.rules.model.changes import DropRun
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.turn_log import VfsJournalFile


@pytest.fixture
def disk():
    VFS.disk = Disk(log=[])
    return VFS.disk


def opened(tmp_path):
    return Journal(VfsJournalFile(tmp_path / "qm.db", VFS.name), itertools.count(1).__next__, lambda: 0)


def write(journal, text="x", is_synced=True):
    journal.entries.add(DropRun(text))
    return journal.write(is_synced=is_synced)


def on_disk(disk):
    return bytes(disk.files["qm.db-turns"].seen)


def tail(tmp_path, number=0):
    return [record.number for record in opened(tmp_path).tail(number).records]


def asked(disk):
    return [op.kind for op in disk.log]


def test_a_turn_is_one_write_and_one_sync(disk, tmp_path):
    journal = opened(tmp_path)
    write(journal)
    disk.log.clear()
    journal.entries.add(DropRun("a"))
    journal.entries.add(DropRun("b"))
    assert journal.write(is_synced=True)
    assert asked(disk) == ["write", "sync"]
    assert journal.is_durable


def test_a_turn_that_need_not_survive_a_power_cut_is_synced_with_the_next(disk, tmp_path):
    journal = opened(tmp_path)
    write(journal)
    disk.log.clear()
    write(journal, is_synced=False)
    assert (asked(disk), journal.is_durable) == (["write"], False)
    write(journal)
    assert (asked(disk), journal.is_durable) == (["write", "write", "sync"], True)
    assert tail(tmp_path) == [1, 2, 3]


def test_a_turn_without_changes_asks_nothing_of_the_disk(disk, tmp_path):
    journal = opened(tmp_path)
    write(journal)
    disk.log.clear()
    assert journal.write(is_synced=True)
    assert asked(disk) == []


def test_a_write_within_the_file_does_not_change_its_size(disk, tmp_path):
    journal = opened(tmp_path)
    write(journal)
    assert len(on_disk(disk)) == FIRST_SIZE
    while len(on_disk(disk)) == FIRST_SIZE:
        write(journal, "x" * 1000)
    assert len(on_disk(disk)) == 2 * FIRST_SIZE
    assert tail(tmp_path) == list(range(1, journal.number + 1))


def test_used_again_it_has_the_turns_behind_that_and_no_others(disk, tmp_path):
    journal = opened(tmp_path)
    for _ in range(5):
        write(journal)
    journal.restart(9)
    assert tail(tmp_path) == [1, 2, 3, 4, 5]  # what a power cut leaves before the next turn
    write(journal)
    assert tail(tmp_path, 9) == [10]
    assert tail(tmp_path) == []


def test_emptied_it_has_a_blank_header_that_lasts(disk, tmp_path):
    journal = opened(tmp_path)
    journal.clear()
    assert asked(disk) == ["create"]  # it was empty
    write(journal)
    journal.clear()
    assert on_disk(disk)[:HEADER_SIZE] == NO_HEADER
    assert not disk.files["qm.db-turns"].pending
    assert tail(tmp_path) == []


def test_a_turn_that_does_not_fit_changes_nothing(disk, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SIZE", FIRST_SIZE)
    journal = opened(tmp_path)
    write(journal)
    assert not write(journal, "x" * FIRST_SIZE)
    assert journal.entries
    assert tail(tmp_path) == [1]
    journal.restart(2)
    assert write(journal)
    assert tail(tmp_path, 2) == [3]


@pytest.mark.parametrize("which", range(1, 4))
def test_on_a_full_disk_what_was_written_stands(disk, tmp_path, which):
    journal = opened(tmp_path)
    write(journal)
    left = itertools.count(1)

    def fault(kind):
        if kind == "write" and next(left) >= which:
            raise apsw.exception_for(apsw.SQLITE_FULL)

    disk.fault = fault
    results = [write(journal, "x" * 40_000), write(journal, "x" * 40_000)]
    assert False in results
    disk.fault = lambda kind: None
    assert tail(tmp_path) == list(range(1, 2 + results.index(False)))


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_an_error_of_the_disk_breaks_the_store(disk, tmp_path, kind):
    journal = opened(tmp_path)
    write(journal)

    def fault(asked):
        if asked == kind:
            raise apsw.exception_for(apsw.SQLITE_IOERR)

    disk.fault = fault
    with pytest.raises(StoreBroken, match=r"qm\.db-turns"):
        write(journal)


def test_no_turn_waits_for_many_megabytes_of_zeros(disk, tmp_path):
    journal = opened(tmp_path)
    sizes = [0]
    while sizes[-1] < module.SIZE:
        assert write(journal, "x" * 30_000)
        sizes.append(len(on_disk(disk)))
        disk.files["qm.db-turns"].pending.clear()
    grown = {after - before for before, after in itertools.pairwise(sizes)} - {0}
    assert max(grown) <= module.MOST_GROWTH
    assert not write(journal, "x" * module.SIZE)
    assert len(on_disk(disk)) == module.SIZE
