"""Opens the SQLite database: checks the library's version, sets WAL and exclusive locking, reads every pragma back."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import apsw

from trigmon.store.port import AnothersStore, DirectoryInUse, StoreBroken, UnsupportedVersion
from trigmon.store.sqlite.checksums import register
from trigmon.store.sqlite.file_modes import keep_others_out
from trigmon.store.sqlite.turn_log import FILE_NAME as LAST_TURN

T = TypeVar("T")

SCHEMA_VERSION = 9
"""The version of schema.sql. A change of a stored table, or a new kind of object, raises it (docs/contributing)."""
RELEASED_VERSION = 8
"""The schema of the first release, 0.1.0. A store of a version from it on is upgraded when it is opened."""
UPGRADES: dict[int, tuple[str, ...]] = {8: ()}  # version 8 knows no namelists, and no ranges of reserved messages
"""By version the statements that make the next one of it. A released one never changes."""
APPLICATION_ID = 0x54524D51
PAGE_SIZE = 16384
"""Bytes, of a new database: rows of messages cost a third less than in pages of 4096. An older one keeps its own."""
LOWEST_SQLITE = (3, 51, 3)

# Exclusive locking keeps the WAL index in this process, so no other process can read half a turn. Checkpoints run when
# no call waits: one inside a commit stalls every client for milliseconds. A commit is not synced: the journal is.
PRAGMAS: tuple[tuple[str, str, object], ...] = (
    ("locking_mode", "EXCLUSIVE", "exclusive"),
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "NORMAL", 1),
    ("wal_autocheckpoint", "0", 0),
    ("temp_store", "MEMORY", 2),
    ("mmap_size", "0", 0),
    ("cache_size", "-65536", -65536),
)


def lock_directory(directory: Path) -> int:
    """Locks the data directory for this process; returns the descriptor that holds the lock. Raises DirectoryInUse."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o750)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder, _ = _lock_lines(lock)
        os.close(lock)
        raise DirectoryInUse(f"{directory} is in use by process {holder or 'unknown'}") from None
    except OSError:
        os.close(lock)
        raise
    _write_lock(lock, _lock_lines(lock)[1])
    return lock


def mark_lock(lock: int, q_mgr_name: str) -> None:
    """Writes the queue manager's name into the lock file: the next start knows that the directory had data."""
    if _lock_lines(lock)[1] != q_mgr_name:
        _write_lock(lock, q_mgr_name)


def traces_in(directory: Path, lock: int) -> list[str]:
    """Returns, as texts, the signs beside the database that a queue manager had data here."""
    name = _lock_lines(lock)[1]
    found = [f"the mark of {name} in {directory / 'lock'}"] if name else []
    found += [str(directory / "runs")] if (directory / "runs").is_dir() else []
    last = directory / LAST_TURN
    return found + ([str(last)] if last.exists() and last.stat().st_size else [])


def _lock_lines(lock: int) -> tuple[str, str]:
    """Returns the id of the process that holds the lock, and the queue manager's name; empty where unknown."""
    lines = os.pread(lock, 256, 0).decode(errors="replace").split("\n")
    return lines[0].strip(), lines[1].strip() if len(lines) > 1 else ""


def _write_lock(lock: int, q_mgr_name: str) -> None:
    text = f"{os.getpid()}\n{q_mgr_name}\n".encode()
    with suppress(OSError):  # a full disk has no room for it
        os.pwrite(lock, text, 0)
        os.ftruncate(lock, len(text))


def connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    """Opens the database in its present version, or creates it. Raises AnothersStore, UnsupportedVersion, StoreBroken.

    ``vfs`` is SQLite's name of the file system; None is the machine's own.
    """
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < LOWEST_SQLITE:
        raise StoreBroken(f"SQLite {apsw.sqlite_lib_version()} can corrupt its WAL; 3.51.3 or later is needed")
    if vfs is None:
        keep_others_out(path)
    try:
        connection = apsw.Connection(str(path), vfs=vfs, statementcachesize=200)
        # The log is evidence if this database is refused.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Else each execution of a look-up by a partial index is planned anew for its values.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_timeout(0)
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # first: it has no effect once there is a WAL
        for name, value, wanted in PRAGMAS:
            # fetchall: a pragma that returns rows takes effect only when all are read
            connection.execute(f"PRAGMA {name} = {value}").fetchall()
            got = _pragma(connection, name)
            if got != wanted:
                raise StoreBroken(f"{path}: PRAGMA {name} is {got!r} instead of {wanted!r}")
        identify(connection, path)
        register(connection)
    except apsw.Error as error:
        raise StoreBroken(f"{path}: {error}") from error
    return connection


def identify(connection: apsw.Connection, path: Path) -> None:
    """Raises AnothersStore if another program made the database, UnsupportedVersion if another version did."""
    version = _pragma(connection, "user_version")
    is_ours = _pragma(connection, "application_id") == APPLICATION_ID
    if not is_ours and (version or connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() != [(0,)]):
        raise AnothersStore(f"{path} is the SQLite database of another program: name another directory, or move it")
    if version > SCHEMA_VERSION:
        raise UnsupportedVersion(
            f"{path} has schema {version}; this trigmon knows {SCHEMA_VERSION}: install a later one"
        )
    if 0 < version < RELEASED_VERSION:
        raise UnsupportedVersion(
            f"{path} has schema {version}, from before the first release; this trigmon knows {SCHEMA_VERSION}:"
            " empty its queues with the trigmon that wrote it, then name an empty directory"
        )


def is_empty(connection: apsw.Connection) -> bool:
    """Returns whether nothing was ever written to the database."""
    return not _pragma(connection, "user_version")


def _pragma(connection: apsw.Connection, name: str) -> Any:
    rows: list[Any] = connection.execute(f"PRAGMA {name}").fetchall()
    return rows[0][0] if rows else None


def upgrade(connection: apsw.Connection, path: Path) -> None:
    """Brings a database of a released version to this one, in one transaction. Raises StoreBroken.

    If that fails, the database is as it was, and the release that wrote it serves it.
    """
    found = _pragma(connection, "user_version")
    if found in (0, SCHEMA_VERSION):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(found, SCHEMA_VERSION):
            for statement in UPGRADES[version]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except apsw.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise StoreBroken(
            f"{path} cannot be brought from schema {found} to {SCHEMA_VERSION} ({error}): nothing of it is changed, and"
            " the release that wrote it can serve it"
        ) from None  # with its cause it would be taken for damage


def create_schema(connection: apsw.Connection) -> None:
    """Creates the tables of an empty database; changes nothing in any other."""
    if not is_empty(connection):
        return
    schema = files("trigmon.store.sqlite").joinpath("schema.sql").read_text()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(schema)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("COMMIT")


def guarded(work: Callable[[], T]) -> T:
    """Returns what SQLite does. Raises StoreBroken for its errors."""
    try:
        return work()
    except apsw.Error as error:
        raise StoreBroken(str(error)) from error
