"""Salvage of a damaged database: copies the readable rows into a new file and keeps the old file beside it.

Rows are read by number, from both ends of each unreadable range. The indexes may still hold number and queue of
messages that are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from trigmon.store.port import StoreLost
from trigmon.store.sqlite.checksums import ROWS
from trigmon.store.sqlite.connection import connect, create_schema
from trigmon.store.sqlite.inspection import Tell, drop_damaged, put_right, settle, short
from trigmon.store.sqlite.turn_log import make_durable

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, UnicodeDecodeError)
"""Errors that show that the file is damaged, so that a retry does not help."""
WRONG_VALUES = (TypeError, ValueError, LookupError)
"""Errors that a damaged value causes in Python."""
_MOST = 2**45
_NUMBERED = ("queue", "run", "reservation")


def is_damage(error: BaseException) -> bool:
    """Returns whether an error, or its cause, shows that the file is damaged."""
    return isinstance(error, DAMAGE) or isinstance(error.__cause__, DAMAGE)


def set_aside(path: Path, why: str = "damaged", suffixes: Sequence[str] = ("-wal", "")) -> Path:
    """Renames a database, and the files of these suffixes, to a free name ``.damaged-N``, after ``why``.

    Returns the new path.
    """
    there = [suffix for suffix in suffixes if Path(f"{path}{suffix}").exists()]
    for number in count(1):
        aside = path.with_name(f"{path.name}.{why}-{number}")
        # The database is renamed last: what a kill left half-way is finished under the same name.
        if not aside.exists() and not any(Path(f"{aside}{suffix}").exists() for suffix in there):
            break
    for suffix in there:
        Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


def salvage(path: Path, tell: Tell) -> apsw.Connection:
    """Copies the readable rows into a new database at this path and returns it. Raises StoreLost if none is readable.

    The new one is built beside the old one and replaces it when complete: until then a kill or a full disk changes
    nothing.
    """
    tell(f"{path.name} is damaged: what can be read is copied")
    try:
        old = connect(path)
        is_there = {name for (name,) in old.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except Exception as error:
        if not is_damage(error) and not isinstance(error.__cause__ or error, apsw.SQLError):
            raise  # a full disk or too many open files may pass, and nothing was changed
        raise StoreLost(f"nothing of {set_aside(path)} can be read ({error}): {_REMEDY}") from error
    part = _beside(path, "part")
    _remove(part)
    try:
        _make(part, old, sorted(is_there & {*ROWS, "message"}), tell)
    except BaseException:
        _remove(part)
        raise
    finally:
        old.close(True)
    part.rename(_beside(path, "salvaged"))
    take_place(path, tell)
    return connect(path)


def take_place(path: Path, tell: Tell) -> None:
    """Replaces the damaged database by a complete salvaged one, if there is one, also one that a kill left behind."""
    salvaged = _beside(path, "salvaged")
    if not salvaged.exists():
        return
    if any(Path(f"{path}{suffix}").exists() for suffix in ("", "-wal")):
        tell(f"{path.name} as it was is kept as {set_aside(path).name}")
    salvaged.rename(path)
    make_durable(path.parent)


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{what}")


def _remove(path: Path) -> None:
    for suffix in ("-wal", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _make(path: Path, old: apsw.Connection, tables: list[str], tell: Tell) -> None:
    """Copies these tables into a new database and removes its log."""
    new = connect(path)
    try:
        create_schema(new)
        damaged: set[str] = set()
        with new:
            for table in tables:
                if not _copy(old, new, table, tell):
                    damaged.add(table)
            settle(new, tell, damaged)
        new.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        new.close(True)
    Path(f"{path}-wal").unlink(missing_ok=True)


_REMEDY = "restore a backup, or start with --accept-loss to begin anew"


def _copy(old: apsw.Connection, new: apsw.Connection, table: str, tell: Tell) -> bool:
    """Copies the readable rows of a table; returns whether all were readable and undamaged."""
    columns = [name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")]
    known = {name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")}
    wanted = [name for name in columns if name in known]
    lost: list[str] = []
    rows = _numbered(old, table, wanted, lost) if table in (*_NUMBERED, "message") else _keyed(old, table, wanted, lost)
    places = ", ".join("?" * len(wanted))
    into = f"INSERT OR IGNORE INTO {table} ({', '.join(wanted)}) VALUES ({places})"
    for row in rows:
        try:
            new.execute(into, row)
        except apsw.ConstraintError:
            lost.append(short(row))
    for each in lost:
        tell(f"{table}: {each} cannot be read")
    if table == "message":
        _say_lost_messages(old, new, tell)
        return put_right(new, tell) and not lost
    return drop_damaged(new, tell, table) and not lost


def _numbered(db: apsw.Connection, table: str, columns: list[str], lost: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a numbered table; continues at the next readable number after an unreadable range."""
    select = f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
    first: int | None = -(2**62)
    while first is not None:
        try:
            for row in db.execute(select, (first,)):
                first = max(first, row[0] + 1)  # a damaged page may give numbers out of order: never back
                yield row[1:]
        except DAMAGE:
            behind = _next_readable(db, select, first)
            lost.append(f"from number {max(1, first)}" + ("" if behind is None else f" up to number {behind - 1}"))
            first = behind
        else:
            return


def _next_readable(db: apsw.Connection, select: str, first: int) -> int | None:
    """Returns the lowest number behind this one from which rows can be read; None if there is none."""

    def can_be_read(number: int) -> bool:
        try:
            for _ in db.execute(f"{select} LIMIT 1", (number,)):
                break
        except DAMAGE:
            return False
        return True

    unread, step = max(0, first), 1
    while not can_be_read(unread + step):
        unread, step = unread + step, step * 2
        if step > _MOST:
            return None
    read = unread + step
    while read - unread > 1:
        middle = (read + unread) // 2
        unread, read = (unread, middle) if can_be_read(middle) else (middle, read)
    return read


def _keyed(db: apsw.Connection, table: str, columns: list[str], lost: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yields the readable rows of a table without numbers, from its start and from its end."""
    keys = [name for _, name, _, _, _, key in db.execute(f"PRAGMA table_info({table})") if key]
    for order in ("ASC", "DESC"):
        by = ", ".join(f"{key} {order}" for key in keys)
        try:
            yield from db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {by}")
        except DAMAGE:
            lost.append(f"a row in its middle ({order.lower()}ending)")
        else:
            return


def _say_lost_messages(old: apsw.Connection, new: apsw.Connection, tell: Tell) -> None:
    """Reports the messages that are in an index but whose rows are lost."""
    try:
        names = dict(old.execute("SELECT number, name FROM queue"))
        known = list(old.execute("SELECT queue, id FROM message INDEXED BY message_msg_id"))
    except DAMAGE:
        return
    there = {number for (number,) in new.execute("SELECT id FROM message")}
    for queue, number in known:
        if number not in there:
            tell(f"message {number} of queue {names.get(queue, queue)} is lost: its row cannot be read")
