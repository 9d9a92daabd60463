"""The archive of a journal: a directory of files that have every turn since a backup, in a chain.

A file is a journal whose turns follow one upon the other. Its name is ``BEFORE-LAST-SUM.turns``: the turn behind which
the database was when its first turn came, the number of its last turn, and the CRC-32 of the file. Where a file is
missing, or could not be written, no other begins behind the turn with which the one before ends: a hole is seen.
A restore ends a chain: the next one begins at a number that no hole leads to.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trigmon.checksum import crc32
from trigmon.journal.entries import Entries
from trigmon.journal.journal import DamagedHeaderError, Journal, Record, UnknownVersionError, journal_of, records_in
from trigmon.store.sqlite.turn_log import make_durable

_NAME = re.compile(r"([0-9]{20})-([0-9]{20})-([0-9a-f]{8})\.turns")
_PART = "part"
DAY_S = 86_400
NUMBERS_SKIPPED = 2**36
"""Numbers of turns that a restore leaves out behind the last one, and other numbers that consumers may know."""


class ArchivedFile(NamedTuple):
    """A file of an archive, by its name."""

    before: int
    last: int
    sum: int
    path: Path


def archived_files(directory: Path) -> list[ArchivedFile]:
    """Returns the files of an archive, in the order of their turns. Raises OSError."""
    return sorted(
        ArchivedFile(int(match[1]), int(match[2]), int(match[3], 16), path)
        for path in directory.iterdir()
        if (match := _NAME.fullmatch(path.name))
    )


def last_turn(directory: Path) -> int:
    """Returns the number of the last turn in an archive, 0 where there is none. Raises OSError."""
    return max((each.last for each in archived_files(directory)), default=0) if directory.exists() else 0


def begins_chain(before: int, last: int) -> bool:
    """Returns whether turns behind ``before`` are of a store that was restored after this last turn.

    Half the numbers are enough: the last turn of an archive may be behind that of the restored backup.
    """
    return before - last > NUMBERS_SKIPPED // 2


class JournalArchive:
    """Writes the archive of one store. ``keep_days``: files that are older are deleted; None keeps all.

    ``tell`` is called when a file could not be written, with what is missing and why, and with "" when the next one
    could. ``missing`` is the text until a backup has begun behind the hole.
    """

    def __init__(self, directory: Path, keep_days: float | None, tell: Callable[[str], None]) -> None:
        self._directory = directory
        self._keep_days = keep_days
        self._tell = tell
        self._is_failing = False
        self._at = 0
        self.missing = ""

    def take_up(self, journal: Journal, number: int, highest: int) -> int:
        """Archives what an earlier process left in the journal; returns the number to go on behind.

        ``number``: of the last turn that the database has. No file has a number behind ``highest``.
        """
        files: list[ArchivedFile] = []
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._directory / _PART).unlink(missing_ok=True)
            files = archived_files(self._directory)
        except OSError as error:
            self._fail(error)
        self._at = last = max((each.last for each in files), default=0)
        if last > number:
            # The store has lost turns that the archive has: what comes now does not follow upon them.
            self._at = max(highest, last) + 1
            self._lack(last, f"the store was at turn {number} when it started")
            return self._at
        left = _up_to(number, _readable(journal.used))
        if left and left[-1].number > last:
            left = [each for each in left if each.number > last]
            self._write(left, left[0].number - 1, number)
        elif number > last:
            self._skip(last, number)
        if highest > number:
            self._write([_no_changes(highest)], number, highest)
        return highest

    def add(self, journal: Journal, number: int) -> None:
        """Adds the turns of a journal, up to this one, which the database has. Errors are reported."""
        if journal.size:
            self._save(journal.used, self._at, journal.number)
        if journal.entries:  # there was no room for it in the journal
            record = Record(number, journal.number, journal.now_ms(), journal.entries.encoded())
            self._write([record], self._at, number)

    def begin_backup(self) -> None:
        """Forgets the hole that was reported: the backup lies behind it."""
        if not self._is_failing:
            self.missing = ""

    def _write(self, records: list[Record], before: int, last: int) -> None:
        if before != self._at and self._at and not begins_chain(before, self._at):
            self._lack(self._at, "the journal did not have them any more")
        self._save(journal_of(records, secrets.randbits(32)), before, last)

    def _skip(self, last: int, number: int) -> None:
        if last and not begins_chain(number, last):
            self._lack(last, "the store served without this archive")
        self._at = number

    def _lack(self, last: int, why: str) -> None:
        self.missing = f"turns behind {last} are missing in {self._directory}: {why}"
        self._tell(self.missing)

    def _save(self, data: bytes, before: int, last: int) -> None:
        self._at = last
        part = self._directory / _PART
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.rename(self._directory / f"{before:020}-{last:020}-{crc32(data):08x}.turns")
            make_durable(self._directory)
            self._forget_old()
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            self._fail(error, before)
        else:
            if self._is_failing:
                self._is_failing = False
                self._tell("")

    def _fail(self, error: OSError, before: int = 0) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._lack(before, str(error))

    def _forget_old(self) -> None:
        if self._keep_days is None:
            return
        oldest_s = time.time() - self._keep_days * DAY_S
        for each in archived_files(self._directory):
            with suppress(OSError):  # no turn is missing; the next file tries again
                if each.path.stat().st_mtime < oldest_s:
                    each.path.unlink()


def _no_changes(number: int) -> Record:
    return Record(number, number, 0, Entries().encoded())


def _readable(data: bytes) -> list[Record]:
    try:
        return list(records_in(data))
    except (DamagedHeaderError, UnknownVersionError):  # the store was started though that was lost
        return []


def _up_to(number: int, records: Iterable[Record]) -> list[Record]:
    """Returns the records that lead to this one without a gap; none if it is not there."""
    found: list[Record] = []
    for record in records:
        if found and record.number != found[-1].number + 1:
            found.clear()
        if record.number <= number:
            found.append(record)
    return found if found and found[-1].number == number else []
