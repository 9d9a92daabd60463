"""Opens the SQLite database: checks the library's version, sets WAL and exclusive locking, reads every pragma back."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw

from trigmon.store.port import AnothersStore, DirectoryInUse, StoreBroken, StoreTooNew
from trigmon.store.sqlite.checksums import ROWS, register
from trigmon.store.sqlite.file_modes import keep_others_out
from trigmon.store.sqlite.last_turn import FILE_NAME as LAST_TURN

SCHEMA_VERSION = 8
# The statements that lead from each version to the next; a new database begins with the last version.
MIGRATIONS = {
    1: """CREATE INDEX message_expiring ON message (queue, expires_ms, put_by, taken_by)
    WHERE expires_ms > 0 AND put_by IS NULL AND taken_by IS NULL;""",
    2: """DROP INDEX message_ready;
DROP INDEX message_group;
CREATE INDEX message_group ON message (queue, group_id, msg_seq_number, msg_offset, priority DESC)
    WHERE group_id IS NOT NULL;
CREATE INDEX message_ready ON message (queue, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head IS NULL;
CREATE INDEX message_heads ON message (queue, head, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head > 0;
CREATE INDEX message_rests ON message (queue, priority DESC)
    WHERE put_by IS NULL AND taken_by IS NULL AND head = 0;
CREATE INDEX message_of_group ON message (queue, group_id, priority DESC) WHERE group_id IS NOT NULL;""",
    3: """ALTER TABLE run ADD COLUMN ended_ms INTEGER;
UPDATE run SET ended_ms = coalesce(nullif(json_extract(record, '$.end_ms'), 0), json_extract(record, '$.recorded_ms'))
    WHERE state NOT IN ('', 'held', 'due', 'started');
CREATE INDEX run_ended ON run (ended_ms) WHERE ended_ms > 0;
CREATE TABLE pause (
    what TEXT NOT NULL, name TEXT NOT NULL, by TEXT NOT NULL, since_ms INTEGER NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (what, name)
) WITHOUT ROWID;""",
    4: """CREATE TABLE held (
    initiation_q TEXT NOT NULL, slot TEXT NOT NULL, q_name TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (initiation_q, slot, q_name, number)
) WITHOUT ROWID;
CREATE TABLE serving (
    run_id TEXT NOT NULL PRIMARY KEY, doing TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cause (
    slot TEXT NOT NULL, q_name TEXT NOT NULL,
    failed INTEGER NOT NULL, fruitless INTEGER NOT NULL, until_ms INTEGER NOT NULL,
    PRIMARY KEY (slot, q_name)
) WITHOUT ROWID;
INSERT INTO held SELECT
    coalesce(json_extract(record, '$.initiation_q'), ''),
    coalesce(nullif(json_extract(record, '$.process_name'), ''), json_extract(record, '$.appl_id'), ''),
    q_name, number FROM run WHERE state = 'held';
INSERT INTO serving SELECT run_id, json_object('run_id', run_id, 'q_name', q_name, 'slot',
    coalesce(nullif(json_extract(record, '$.process_name'), ''), json_extract(record, '$.appl_id'), ''),
    'monitor', coalesce(json_extract(record, '$.monitor'), '')) FROM run WHERE state IN ('due', 'started');""",
    5: """ALTER TABLE message ADD COLUMN ordinal INTEGER;
DROP INDEX message_taken_by;
CREATE INDEX message_taken_by ON message (taken_by, ordinal) WHERE taken_by IS NOT NULL;
CREATE TABLE reservation (
    number INTEGER PRIMARY KEY, queue INTEGER NOT NULL, consumer TEXT NOT NULL, ended_ms INTEGER, record TEXT NOT NULL
);
CREATE INDEX reservation_consumer ON reservation (queue, consumer, number);
CREATE INDEX reservation_left ON reservation (number) WHERE ended_ms IS NULL;""",
    # Existing rows have no such checksum until they are written again: a start does not read all of a large store.
    6: "ALTER TABLE message ADD COLUMN header INTEGER;\n"
    + "\n".join(f"ALTER TABLE {table} ADD COLUMN sum INTEGER;" for table in ROWS),
    7: """DROP INDEX message_taken_by;
CREATE INDEX message_taken_by ON message (taken_by, ordinal, queue, priority DESC) WHERE taken_by IS NOT NULL;""",
}
APPLICATION_ID = 0x54524D51
LOWEST_SQLITE = (3, 51, 3)

# Exclusive locking keeps the WAL index in this process, so no other process can read half a turn. Checkpoints run when
# no call waits: one inside a commit stalls every client for milliseconds.
PRAGMAS: tuple[tuple[str, str, object], ...] = (
    ("locking_mode", "EXCLUSIVE", "exclusive"),
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", 2),
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
    """Opens the database in its present version, or creates it. Raises AnothersStore, StoreTooNew, StoreBroken.

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
        connection.set_busy_timeout(0)
        for name, value, wanted in PRAGMAS:
            # fetchall: a pragma that returns rows takes effect only when all are read
            connection.execute(f"PRAGMA {name} = {value}").fetchall()
            got = _pragma(connection, name)
            if got != wanted:
                raise StoreBroken(f"{path}: PRAGMA {name} is {got!r} instead of {wanted!r}")
        _identify(connection, path)
        register(connection)
    except apsw.Error as error:
        raise StoreBroken(f"{path}: {error}") from error
    return connection


def _identify(connection: apsw.Connection, path: Path) -> None:
    """Raises AnothersStore if another program made the database, StoreTooNew if a later version did."""
    version = _pragma(connection, "user_version")
    is_ours = _pragma(connection, "application_id") == APPLICATION_ID
    if not is_ours and (version or connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() != [(0,)]):
        raise AnothersStore(f"{path} is the SQLite database of another program: name another directory, or move it")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} has schema {version}; this trigmon knows {SCHEMA_VERSION}: install a later one")


def is_empty(connection: apsw.Connection) -> bool:
    """Returns whether nothing was ever written to the database."""
    return not _pragma(connection, "user_version")


def is_present(connection: apsw.Connection) -> bool:
    """Returns whether the database has this version's schema."""
    return bool(_pragma(connection, "user_version") == SCHEMA_VERSION)


def _pragma(connection: apsw.Connection, name: str) -> Any:
    rows: list[Any] = connection.execute(f"PRAGMA {name}").fetchall()
    return rows[0][0] if rows else None


def migrate(connection: apsw.Connection) -> None:
    """Migrates the database to this version's schema."""
    version = _pragma(connection, "user_version")
    if version == 0:
        schema = files("trigmon.store.sqlite").joinpath("schema.sql").read_text()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(schema)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    for old in range(version or SCHEMA_VERSION, SCHEMA_VERSION):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(MIGRATIONS[old])
        connection.execute(f"PRAGMA user_version = {old + 1}")
        connection.execute("COMMIT")
