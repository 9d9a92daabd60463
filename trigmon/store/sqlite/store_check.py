"""The check of a whole store, or of a backup, that changes nothing: every row, every message, every reference."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec

from trigmon.checksum import crc32
from trigmon.journal.entries import UnknownEntryError, changes_in
from trigmon.journal.journal import Record, UnknownVersionError, tail_of
from trigmon.mq.run import read_run
from trigmon.store.port import DirectoryInUse, StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.store import definition_of
from trigmon.store.sqlite.backup_file import BackupError, Progress, verify
from trigmon.store.sqlite.checksums import IS_RIGHT, ROWS, is_whole, register
from trigmon.store.sqlite.connection import identify, lock_directory
from trigmon.store.sqlite.inspection import RANGES_OF_NOTHING, do_indexes_agree, errors_in, short
from trigmon.store.sqlite.salvage import DAMAGE, WRONG_VALUES
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.turn_log import FILE_NAME as LAST_TURN
from trigmon.store.sqlite.turn_log import JOURNAL_SUFFIX as JOURNAL
from trigmon.store.sqlite.turn_log import LastTurn, unpacked

MOST_FINDINGS = 100
"""Reported of one kind; the rest are counted."""

_REFERENCES = (
    (
        "SELECT DISTINCT queue FROM message WHERE queue > 0 AND queue NOT IN (SELECT number FROM queue)",
        "messages lie on queue number {}, which has no name",
    ),
    (
        "SELECT DISTINCT taken_by FROM message WHERE ordinal IS NOT NULL"
        " AND taken_by NOT IN (SELECT number FROM reservation)",
        "messages belong to reservation {}, which does not exist",
    ),
    (RANGES_OF_NOTHING, "messages belong to reservation {}, which does not exist"),
    (
        "SELECT name FROM object WHERE kind = 'QLOCAL' AND name NOT IN (SELECT name FROM queue)",
        "queue {} has a definition and no number",
    ),
    (
        f"SELECT name FROM queue WHERE name NOT GLOB '{sql.DROPPED}*' AND name NOT IN (SELECT name FROM object)",
        "queue {} has a number and no definition",
    ),
    ("SELECT number FROM held WHERE number NOT IN (SELECT number FROM run)", "run number {} waits and has no record"),
    ("SELECT run_id FROM serving WHERE run_id NOT IN (SELECT run_id FROM run)", "run {} has a program and no record"),
    (
        "SELECT max(id) FROM message HAVING max(id) >= (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'next_id')",
        "message {} has a number that was not given yet",
    ),
    ("SELECT id FROM message WHERE queue < 0", "message {} was damaged, and is set aside"),
)


def check_backup(path: Path, progress: Progress = lambda size: None) -> Iterator[str]:
    """Yields what is wrong with a backup, a sentence each. Raises OSError."""
    try:
        verify(path, progress)
    except BackupError as error:
        yield str(error)
        return
    yield from _checked(path, apsw.SQLITE_OPEN_READONLY, "?immutable=1")


def check_directory(path: Path) -> Iterator[str]:
    """Yields what is wrong with the store of which this is the database, a sentence each.

    Raises DirectoryInUse while a queue manager has it, OSError.
    """
    with _locked(path.parent):
        if not path.exists() or not path.stat().st_size:
            yield f"{path} is missing or empty"
            return
        log = Path(f"{path}-wal")
        has_log = log.exists() and log.stat().st_size
        flags = apsw.SQLITE_OPEN_READWRITE if has_log else apsw.SQLITE_OPEN_READONLY
        yield from _checked(path, flags, "" if has_log else "?immutable=1", is_store=True)


def repair_directory(directory: Path) -> list[str]:
    """Checks and repairs a store as a start behind found damage does; returns what was repaired or set aside.

    Raises DirectoryInUse, StoreLost, StoreBroken.
    """
    repaired: list[str] = []
    _mark_damaged(directory, True)
    SqliteStore(directory, tell=repaired.append).close()
    _mark_damaged(directory, False)
    return repaired


def _mark_damaged(directory: Path, is_damaged: bool) -> None:
    lock = lock_directory(directory)
    try:
        last = LastTurn(directory)
        last.set_damaged(is_damaged)
        last.sync()
        last.close()
    finally:
        os.close(lock)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keeps a queue manager from opening the directory; writes nothing. Raises DirectoryInUse, OSError."""
    file = directory / "lock"
    if not file.exists():
        yield
        return
    lock = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DirectoryInUse(f"a queue manager has {directory} open") from None
    finally:
        os.close(lock)


def _checked(path: Path, flags: int, query: str, *, is_store: bool = False) -> Iterator[str]:
    try:
        db = apsw.Connection(f"{path.absolute().as_uri()}{query}", flags=flags | apsw.SQLITE_OPEN_URI)
        try:
            # The log stays as it is: nothing is written, and nothing is moved when it is closed.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            for pragma in ("locking_mode = EXCLUSIVE", "query_only = 1", "temp_store = MEMORY"):
                db.execute(f"PRAGMA {pragma}").fetchall()
            identify(db, path)
            register(db)
            if is_store:
                yield from _missing_turns(db, path)
            yield from _contents(db)
        finally:
            db.close(True)
    except (*DAMAGE, *WRONG_VALUES, apsw.SQLError, StoreBroken) as error:
        yield f"{path.name} cannot be read to its end: {error}"


def _missing_turns(db: apsw.Connection, path: Path) -> Iterator[str]:
    rows: list[Any] = db.execute(sql.GET_META, ("turn",)).fetchall()
    turn = int(rows[0][0]) if rows else 0
    with suppress(FileNotFoundError):
        try:
            tail = tail_of(Path(f"{path}{JOURNAL}").read_bytes(), turn)
        except UnknownVersionError as error:
            yield str(error)
            return
        if tail.lost:
            yield tail.lost
        yield from _limited(_unknown_turns(tail.records))
        turn += len(tail.records)
    file = path.parent / LAST_TURN
    with suppress(FileNotFoundError):
        stamp = unpacked(file.read_bytes())
        if stamp is None:
            yield f"{file.name} is damaged: whether turns are missing at the end is not known"
        elif stamp.turn > turn:
            yield f"the last {stamp.turn - turn} of {stamp.turn} turns that were acknowledged are missing"


def _unknown_turns(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        try:
            for _ in changes_in(record.entries):
                pass
        except UnknownEntryError as error:
            yield f"turn {record.number} of the journal cannot be applied: {error}"


def _contents(db: apsw.Connection) -> Iterator[str]:
    yield from (f"SQLite: {error}" for error in errors_in(db))
    if not do_indexes_agree(db):
        yield "the indexes do not agree with the messages"
    yield from _limited(_rows(db))
    yield from _limited(_messages(db))
    for statement, text in _REFERENCES:
        yield from _limited(text.format(value) for (value,) in db.execute(statement))
    yield from _limited(_records(db))


def _rows(db: apsw.Connection) -> Iterator[str]:
    for table in ROWS:
        for row in db.execute(f"SELECT * FROM {table} WHERE NOT {is_whole(table)}"):
            yield f"a row of the table {table} does not match its checksum: {short(row)}"


def _messages(db: apsw.Connection) -> Iterator[str]:
    names = dict(db.execute("SELECT number, name FROM queue"))
    rows = db.execute(f"SELECT id, queue, {IS_RIGHT}, descriptor, data, checksum FROM message NOT INDEXED")
    for number, queue, is_right, descriptor, data, checksum in rows:
        if isinstance(queue, int) and queue < 0:
            continue  # it was set aside, and is named as such
        if not is_right or not isinstance(data, bytes) or crc32(data, crc32(descriptor)) != checksum:
            yield f"message {number} of queue {names.get(queue, queue)} does not match its checksum"


def _records(db: apsw.Connection) -> Iterator[str]:
    """Yields the definitions and runs that cannot be read though their checksums match."""
    for kind, name, text in db.execute("SELECT kind, name, definition FROM object"):
        try:
            definition_of(kind, text)
        except (msgspec.MsgspecError, *WRONG_VALUES) as error:
            yield f"the definition of {kind} {name} cannot be read: {error}"
    for run_id, text in db.execute("SELECT run_id, record FROM run"):
        try:
            if read_run(msgspec.json.decode(text)).run_id != run_id:
                yield f"the record of run {run_id} is of another run"
        except (msgspec.MsgspecError, *WRONG_VALUES) as error:
            yield f"the record of run {run_id} cannot be read: {error}"


def _limited(findings: Iterator[str]) -> Iterator[str]:
    for number, finding in enumerate(findings):
        if number < MOST_FINDINGS:
            yield finding
        else:
            yield f"and {1 + sum(1 for _ in findings)} more of this kind"
