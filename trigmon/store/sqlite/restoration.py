"""Restores a backup into a data directory: whole or not at all, also when it is killed.

The database is written beside the store and takes its place when it is complete; a start finishes what a kill left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import apsw

from trigmon.store.port import AnothersStore, StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import row_sum
from trigmon.store.sqlite.backup_file import BackupError, BackupNote, Progress, read_note, verify
from trigmon.store.sqlite.checksums import SET_TURN, SUMMED
from trigmon.store.sqlite.connection import connect, lock_directory
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.journal_archive import NUMBERS_SKIPPED
from trigmon.store.sqlite.salvage import DAMAGE, salvage, set_aside
from trigmon.store.sqlite.turn_log import FILE_NAME as LAST_TURN
from trigmon.store.sqlite.turn_log import JOURNAL_SUFFIX as JOURNAL
from trigmon.store.sqlite.turn_log import Stamp, make_durable

_PART = 1 << 20


class StoreExistsError(Exception):
    """There is a store already; the text names it."""


def restore(
    source: IO[bytes],
    path: Path,
    q_mgr_name: str,
    tell: Tell,
    *,
    may_rename: bool = False,
    replace: bool = False,
    accept_damage: bool = False,
    progress: Progress = lambda size: None,
    bring_forward: Callable[[Path, BackupNote], None] | None = None,
    behind: int = 0,
) -> BackupNote:
    """Makes the database ``path`` of a backup, for a queue manager of this name; returns the backup's note.

    ``may_rename``: the backup may be of another. ``replace``: a store that is there is kept beside the new one.
    ``accept_damage``: a damaged backup is taken too, and the next start salvages what it can. ``tell`` is called with
    what was set aside or found damaged. ``bring_forward`` is called with the copied database, before
    anything else is changed. ``behind``: the last turn of the archive in which the store goes on.
    Raises what ``bring_forward`` raises, BackupError, AnothersStore, StoreExistsError, DirectoryInUse, StoreBroken,
    OSError.
    """
    wanted = None if may_rename else q_mgr_name
    if source.seekable():
        _check_name(read_note(source), wanted)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = lock_directory(path.parent)
    try:
        finish_restore(path, tell)
        if path.exists() and path.stat().st_size and not replace:
            raise StoreExistsError(f"{path.parent} holds a store already")
        part = _beside(path, "restored-part")
        try:
            note, is_damaged = _copied(source, part, tell, accept_damage=accept_damage, progress=progress)
            _check_name(note, wanted)
            if bring_forward is not None:
                bring_forward(part, note)
            _take_place(path, part, q_mgr_name, tell, is_damaged=is_damaged, behind=behind)
            return note
        finally:
            for suffix in ("", "-wal"):
                Path(f"{part}{suffix}").unlink(missing_ok=True)
    finally:
        os.close(lock)


def _check_name(note: BackupNote, wanted: str | None) -> None:
    if wanted not in (None, note.q_mgr_name):
        raise AnothersStore(f"the backup is of queue manager {note.q_mgr_name}, not of {wanted}")


def _copied(
    source: IO[bytes], part: Path, tell: Tell, *, accept_damage: bool, progress: Progress
) -> tuple[BackupNote, bool]:
    """Copies the database of a backup into this file; returns the backup's note, and whether it is damaged."""
    with _own_file(part) as copy:
        shutil.copyfileobj(source, copy, _PART)
    is_damaged = False
    try:
        note = verify(part, progress)
    except BackupError as error:
        if not accept_damage:
            raise
        tell(f"{error}: this is accepted")
        with part.open("rb") as copy:
            note = read_note(copy)
        is_damaged = True
    os.truncate(part, note.size)
    return note, is_damaged


def _take_place(path: Path, part: Path, q_mgr_name: str, tell: Tell, *, is_damaged: bool, behind: int) -> None:
    """Makes the copied file the database of this queue manager.

    A kill leaves the old store, or what the next start finishes.
    """
    turn = _rename(part, q_mgr_name, tell, may_be_damaged=is_damaged, behind=behind)
    with _own_file(_beside(path.parent / LAST_TURN, "restored")) as stamp:
        stamp.write(Stamp(turn, is_damaged=is_damaged).packed())
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.rename(_beside(path, "restored"))
    make_durable(path.parent)
    finish_restore(path, tell)


def finish_restore(path: Path, tell: Tell) -> None:
    """Puts a complete restored database in its place, if there is one, also one that a kill left. Raises OSError."""
    restored = _beside(path, "restored")
    if not restored.exists():
        return
    files = (JOURNAL, "-wal", "")
    if any(Path(f"{path}{suffix}").exists() for suffix in files):
        tell(f"{path.name} as it was is kept as {set_aside(path, 'replaced', files).name}")
    stamp = path.parent / LAST_TURN
    if _beside(stamp, "restored").exists():
        _beside(stamp, "restored").rename(stamp)
    restored.rename(path)
    make_durable(path.parent)


def _rename(part: Path, q_mgr_name: str, tell: Tell, *, may_be_damaged: bool, behind: int) -> int:
    """Gives the database to a queue manager of this name, with numbers never given; returns that of its last turn.

    Numbers of turns go on far behind those of the backup and of the archive, too: the archive tells what came before
    this restore from what comes now.
    """
    try:
        return _renamed(connect(part), q_mgr_name, behind)
    except (StoreBroken, *DAMAGE) as error:
        if not may_be_damaged:
            raise
        tell(f"what can be read of the backup is copied ({error})")
        return _renamed(salvage(part, tell), q_mgr_name, behind)


def _renamed(db: apsw.Connection, q_mgr_name: str, behind: int) -> int:
    try:
        meta = dict(db.execute("SELECT key, value FROM meta"))
        first = int(meta.get("next_id") or 1) + NUMBERS_SKIPPED
        turn = max(int(meta.get("turn") or 0), behind) + NUMBERS_SKIPPED
        with db:
            db.execute(SET_TURN, (turn, row_sum("turn", turn)))
            db.execute(SUMMED[sql.SET_META], ("next_id", str(first)))
            db.execute(SUMMED[sql.SET_META], ("q_mgr_name", q_mgr_name))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return turn
    finally:
        db.close(True)


@contextmanager
def _own_file(path: Path) -> Iterator[IO[bytes]]:
    """Yields a new file of mode 0600, that is durable behind the block."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{what}")
