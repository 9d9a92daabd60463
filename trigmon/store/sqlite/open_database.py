"""Opens the database after checking that nothing acknowledged is missing: it and the journal have the last turn."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from trigmon.journal.entries import JournalChange, changes_in
from trigmon.journal.journal import Tail
from trigmon.store.port import StoreBroken, StoreLost
from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import row_sum
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.connection import connect, create_schema, is_empty, upgrade
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.salvage import DAMAGE, set_aside, take_place
from trigmon.store.sqlite.turn_log import JOURNAL_SUFFIX as JOURNAL
from trigmon.store.sqlite.turn_log import LastTurn, log_salt

REMEDY = "restore a backup, or start once with --accept-loss to go on without it"
_UNKNOWN = "whether turns are missing at the end cannot be known this time"
_UNFIT = (*DAMAGE, apsw.SQLError)
"""Errors that show that the file is no database of trigmon any more."""


TailOf = Callable[[int], Tail]
"""Returns the journal's records behind a turn."""


class Opened(NamedTuple):
    """The database at this version's schema, the number of its last turn, and the changes of the turns behind that.

    No file has a number behind ``highest``: from there on numbers are given, so that no record left in the journal is
    ever taken for a later turn.
    """

    db: apsw.Connection
    turn: int
    behind: list[list[JournalChange]]
    highest: int


def open_database(
    path: Path, vfs: str | None, last: LastTurn, tail_of: TailOf, traces: list[str], tell: Tell, *, accept_loss: bool
) -> Opened:
    """Opens the database.

    ``traces``: signs that a queue manager's database was here before. Raises StoreLost if acknowledged data is missing
    and ``accept_loss`` is not set; if it is, the rest is used and an unreadable file is moved aside. Raises
    UnknownVersionError, UnknownEntryError, and what ``connect`` raises.
    """
    if vfs is None:
        take_place(path, tell)
    if vfs is None and traces and not (path.exists() and path.stat().st_size):
        _accept(f"{path} is missing or empty, and {', '.join(traces)} was left by a queue manager", tell, accept_loss)
        if Path(f"{path}-wal").exists():
            set_aside(path)
    try:
        return _opened(path, vfs, last, tail_of, traces, tell, accept_loss=accept_loss)
    except (*_UNFIT, StoreBroken) as error:
        if isinstance(error, StoreBroken) and not isinstance(error.__cause__, _UNFIT):
            raise
        _accept(f"{path} is no database any more ({error})", tell, accept_loss)
    aside = set_aside(path)
    tell(f"{path.name} is kept as {aside.name}, and a new one begins")
    with suppress(OSError):
        # The journal itself is open, and will be emptied.
        shutil.copyfile(f"{path}{JOURNAL}", f"{aside}{JOURNAL}")
    return _opened(path, vfs, last, tail_of, traces, tell, accept_loss=accept_loss)


def _accept(missing: str, tell: Tell, is_accepted: bool) -> None:
    if not is_accepted:
        raise StoreLost(f"{missing}: {REMEDY}")
    tell(f"{missing}: this is accepted")


def _opened(
    path: Path, vfs: str | None, last: LastTurn, tail_of: TailOf, traces: list[str], tell: Tell, *, accept_loss: bool
) -> Opened:
    # Opening the database may shorten its log, so the log is read first.
    salt = log_salt(path, vfs or "") if last.found.frames else 0
    db = connect(path, vfs)
    try:
        was_empty = is_empty(db)
        known = 0 if was_empty else _turn_of(db, last, tell)
        turn = last.found.turn if known is None else known
        missing = f"it is empty, and {', '.join(traces)} was left by a queue manager" if was_empty and traces else ""
        tail = tail_of(turn)
        if known is None and tail.highest:
            missing = (
                missing or "the number of its last turn is damaged, and which turns of its journal it has is unknown"
            )
        # What a journal changes in a database that is not there any more has nothing to stand on.
        records = [] if was_empty or known is None else tail.records
        # Before the database is brought to this version: the trigmon that wrote the journal must be able to open it.
        behind = [list(changes_in(record.entries)) for record in records]
        missing = missing or tail.lost or _missing(db, turn + len(behind), salt, last)
        if missing:
            _accept(f"{path}: {missing}", tell, accept_loss)
        if last.is_unreadable or (not last.is_there and turn):
            tell(f"the file last_turn is damaged or missing: {_UNKNOWN}")
        create_schema(db)
        upgrade(db, path)
        db.execute(SUMMED[sql.SET_META], ("turn", turn))
    except BaseException as error:
        db.close(True)
        if isinstance(error, apsw.Error) and not isinstance(error, _UNFIT):
            raise StoreBroken(f"{path}: {error}") from error  # a full disk can pass
        raise
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    return Opened(db, turn, behind, max(turn + len(behind), tail.highest, last.found.turn))


def _turn_of(db: apsw.Connection, last: LastTurn, tell: Tell) -> int | None:
    """Returns the number of the last turn that was committed; None if damage has destroyed it."""
    rows: list[Any]
    try:
        rows = db.execute("SELECT * FROM meta WHERE key = 'turn'").fetchall()
    except DAMAGE:
        rows = [("turn", None, None)]
    if not rows:
        if last.found.turn:
            tell(f"the number of the last turn is damaged: its row is missing: {_UNKNOWN}")
        return None
    _, turn, checksum = rows[0]
    if checksum != row_sum("turn", turn) or not isinstance(turn, int):
        tell(f"the number of the last turn is damaged: {_UNKNOWN}")
        return None
    return turn


def _missing(db: apsw.Connection, turn: int, salt: int, last: LastTurn) -> str:
    """Returns a text about missing acknowledged data; empty if nothing is missing."""
    acknowledged = last.found.turn
    if turn < acknowledged:
        since = _last_time(db) if turn else ""
        return (
            f"the last {acknowledged - turn} of {acknowledged} turns that were acknowledged are missing{since}; the"
            " journal or the log (-wal) was cut, damaged or removed, or an older copy was put in its place"
        )
    if last.found.frames and salt in (0, last.found.salt):
        db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        frames, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        if frames < last.found.frames:
            return f"of {last.found.frames} pages of its log (-wal) that were being moved {max(0, frames)} are left"
    return ""


def _last_time(db: apsw.Connection) -> str:
    """Returns a text with the time since when turns are missing; empty if the database does not know."""
    try:
        rows: list[Any] = db.execute(sql.GET_META, ("own_time",)).fetchall()
        if not rows or not rows[0][0]:
            return ""
        last = datetime.fromtimestamp(msgspec.json.decode(rows[0][0])["own_ms"] / 1000, UTC)
        return f", of the time behind {last:%Y-%m-%dT%H:%M:%SZ}"
    except (*DAMAGE, msgspec.DecodeError, KeyError, TypeError):
        return ""
