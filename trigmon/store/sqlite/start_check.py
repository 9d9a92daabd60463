"""The check of a database at a start: inspects it, and replaces a damaged one by what can be salvaged."""

from __future__ import annotations

from pathlib import Path

import apsw

from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.inspection import Tell, inspect
from trigmon.store.sqlite.salvage import DAMAGE, WRONG_VALUES, salvage
from trigmon.store.sqlite.turn_log import LastTurn


def whole(
    db: apsw.Connection, path: Path, last: LastTurn, turn: int, tell: Tell, vfs: str | None, *, everything: bool
) -> apsw.Connection:
    """Checks and repairs the database; returns it, or the one in its place if it had to be salvaged.

    ``turn``: the number of its last durable turn. Raises StoreBroken, StoreLost.
    """
    try:
        inspect(db, tell, everything=everything)
    except (*DAMAGE, *WRONG_VALUES) as error:
        if vfs is not None:
            raise StoreBroken(f"{path}: {error}") from error
        return _salvaged(db, path, last, turn, tell)
    except apsw.Error as error:
        raise StoreBroken(f"{path}: {error}") from error
    return db


def _salvaged(db: apsw.Connection, path: Path, last: LastTurn, turn: int, tell: Tell) -> apsw.Connection:
    last.set_damaged(True)
    # Its log was checked when it was opened.
    last.set_moving(0, 0)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.close(True)
    try:
        salvaged = salvage(path, tell)
        salvaged.execute(SUMMED.get(sql.SET_META, sql.SET_META), ("turn", turn))
    except (apsw.Error, OSError) as error:
        raise StoreBroken(f"{path} is damaged, and could not be copied: {error}") from error
    return salvaged
