"""Brings a backup forward: applies to its database the turns that an archive of the journal has behind it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from trigmon.checksum import crc32
from trigmon.journal.entries import UnknownEntryError, changes_in
from trigmon.journal.journal import DamagedHeaderError, Record, UnknownVersionError, records_in
from trigmon.store.sqlite.backup_file import BackupNote
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.journal_archive import ArchivedFile, archived_files, begins_chain
from trigmon.store.sqlite.replay import replay
from trigmon.store.sqlite.store import FILE_NAME, SqliteStore
from trigmon.store.sqlite.turn_log import FILE_NAME as LAST_TURN
from trigmon.store.sqlite.turn_log import NOTHING


class ArchiveError(Exception):
    """The backup cannot be brought to the time by this archive; the text says why, and what can be done."""


class Until(NamedTuple):
    """An archive, and the time (milliseconds since 1970) up to which its turns are wanted; 0: all of them."""

    directory: Path
    ms: int

    def bring(self, path: Path, note: BackupNote, tell: Tell) -> None:
        """Brings the database of a backup forward. Raises ArchiveError, StoreBroken, OSError."""
        if self.ms and self.ms < note.made_ms:
            raise ArchiveError(f"the backup was made at {_instant(note.made_ms)}, behind --until: take an earlier one")
        work = path.with_name(f"{path.name}-work")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        try:
            path.rename(work / FILE_NAME)
            (work / LAST_TURN).write_bytes(NOTHING.packed())  # a backup has none: that is no loss to be reported
            store = SqliteStore(work, tell=tell)
            try:
                last_ms = self._apply(store, tell)
            finally:
                store.close()
            (work / FILE_NAME).rename(path)
        finally:
            shutil.rmtree(work)
        tell(f"the last turn that was applied is of {_instant(last_ms)}" if last_ms else "no turn had to be applied")

    def _apply(self, store: SqliteStore, tell: Tell) -> int:
        """Applies the turns; returns the time of the last one, 0 if there is none."""
        last_ms = 0
        for records in self._behind(store._journal.number, tell):
            try:
                changes = [list(changes_in(record.entries)) for record in records]
            except UnknownEntryError as error:
                raise ArchiveError(f"{self.directory}: {error}: restore with the trigmon that wrote it") from error
            store.turns.begin()
            replay(store, chain.from_iterable(changes), tell)
            store.turns.end_replay(records[-1].number, records[-1].number)
            store.turns.rest()
            last_ms = max(last_ms, records[-1].time_ms)
        return last_ms

    def _behind(self, number: int, tell: Tell) -> Iterator[list[Record]]:
        """Yields the turns behind this one, those of a file at a time, up to the next restore. Raises ArchiveError."""
        files = [each for each in self._files() if each.last > number]
        at, last_ms = number, 0
        for place, each in enumerate(files):
            if self.ms and last_ms >= self.ms:
                return
            if begins_chain(each.before, at):
                self._end_chain(files[place:], at, last_ms, tell)
                return
            if each.before > at:
                raise ArchiveError(self._hole(at, each, last_ms, is_first=at == number))
            records = [record for record in self._records(each, at, last_ms) if record.number > at]
            wanted = list(takewhile(lambda record: not self.ms or record.time_ms <= self.ms, records))
            if wanted:
                yield wanted
            if len(wanted) < len(records):
                return
            at, last_ms = each.last, max(last_ms, records[-1].time_ms)

    def _end_chain(self, later: list[ArchivedFile], at: int, last_ms: int, tell: Tell) -> None:
        """Says which chains follow. Raises ArchiveError where the wanted time is in one of them."""
        for each in later:
            if begins_chain(each.before, at):
                since_ms = self._first_ms(each)
                of = f"turns since {_instant(since_ms)} are of a restored store: only a backup made since leads to them"
                if self.ms >= since_ms:
                    raise ArchiveError(f"{of}{_or_until(last_ms)}")
                tell(of)
            at = each.last

    def _first_ms(self, file: ArchivedFile) -> int:
        """Returns when the first turn of a file was; of one that is damaged, when it was written."""
        with suppress(ArchiveError, StopIteration):
            return next(record.time_ms for record in self._records(file, file.before, 0) if record.time_ms)
        return round(file.path.stat().st_mtime * 1000)

    def _files(self) -> list[ArchivedFile]:
        files = archived_files(self.directory)
        if not files:
            raise ArchiveError(f"{self.directory} has no file of an archive: name the directory store.journal_archive")
        return files

    def _records(self, file: ArchivedFile, at: int, last_ms: int) -> list[Record]:
        data = file.path.read_bytes()
        try:
            records = list(records_in(data))
        except UnknownVersionError as error:
            raise ArchiveError(f"{file.path}: {error}: restore with the trigmon that wrote it") from error
        except DamagedHeaderError:
            records = []
        numbers = [record.number for record in records]
        if crc32(data) != file.sum or not numbers or numbers != list(range(numbers[0], file.last + 1)):
            raise ArchiveError(
                f"{file.path} is damaged, and turns behind {at} up to {file.last} cannot be read:"
                f" bring a copy of it back{_or_until(last_ms)}"
            )
        return records

    def _hole(self, at: int, file: ArchivedFile, last_ms: int, *, is_first: bool) -> str:
        missing = f"turns behind {at} up to {file.before} are missing in {self.directory}"
        if is_first:
            return (
                f"the backup ends with turn {at}, and {missing}: take a later backup, or bring the missing files back"
            )
        return f"{missing}: bring the missing files back, or take a backup from behind them{_or_until(last_ms)}"


def _or_until(last_ms: int) -> str:
    return f", or give --until {_instant(last_ms)}, when the last turn before was" if last_ms else ""


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
