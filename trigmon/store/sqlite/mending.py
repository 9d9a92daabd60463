"""Damage met while the queue manager serves: indexes are made anew, and rows get from them what only they still know.

All of it is one savepoint in the turn: it is done whole or not at all. It reads every message once, so it is done only
where a look has met what cannot be.
"""

from __future__ import annotations

from typing import Any

import apsw

from trigmon.store.sql import statements as sql
from trigmon.store.sql.looking import message_of
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.salvage import DAMAGE
from trigmon.store.sqlite.sums import IS_RIGHT

_ROW = f"SELECT {sql.COLUMNS}, {IS_RIGHT} FROM message NOT INDEXED WHERE id = ?"
_WAIT = "put_by IS NULL AND taken_by IS NULL AND head"
# What each index says of a message: the columns that are read from it alone, of those that are in it.
_SAID = {
    "message_msg_id": ("queue, priority", "queue > -1"),
    "message_put_by": ("put_by", "put_by IS NOT NULL"),
    "message_taken_by": ("taken_by, ordinal", "taken_by IS NOT NULL"),
    "message_expiring": ("expires_ms", "expires_ms > 0 AND put_by IS NULL AND taken_by IS NULL"),
    "message_ready": ("NULL AS put_by, NULL AS taken_by, NULL AS head", f"{_WAIT} IS NULL"),
    "message_rests": ("NULL AS put_by, NULL AS taken_by, 0 AS head", f"{_WAIT} = 0"),
    "message_heads": ("NULL AS put_by, NULL AS taken_by, head", f"{_WAIT} > 0"),
}


def can_be_put_aside(db: apsw.Connection, number: int) -> bool:
    """Whether a message that was found damaged is so, and its row can be changed; otherwise an index is damaged."""
    try:
        rows = db.execute(_ROW, (number,)).fetchall()
        if not rows or (rows[0][-1] and message_of(rows[0], "") is not None):
            return False
        db.execute("SAVEPOINT trial")
        try:
            db.execute(sql.SET_ASIDE, (number,))
        finally:
            db.execute("ROLLBACK TO trial")
            db.execute("RELEASE trial")
    except DAMAGE:
        return False
    return True


def mend(db: apsw.Connection, tell: Tell) -> None:
    """Makes the indexes of messages anew, and rows right by what they said. Raises what says that it cannot be."""
    with db:  # a savepoint of its own
        damaged = {n for (n,) in db.execute(f"SELECT id FROM message NOT INDEXED WHERE queue > -1 AND NOT {IS_RIGHT}")}
        said = {number: _said_of(db, number) for number in damaged}
        db.execute("REINDEX message")
        for number, columns in said.items():
            if columns:
                sets = ", ".join(f"{column} = :{column}" for column in columns)
                db.execute(f"UPDATE message SET {sets} WHERE id = :id", {**columns, "id": number})
            is_right = db.execute(_ROW, (number,)).fetchall()[0][-1]
            tell(f"message {number} was damaged and is " + ("right again" if is_right else "to be set aside"))
    tell("the indexes of the messages did not say what the messages say: they were made anew")


def _said_of(db: apsw.Connection, number: int) -> dict[str, Any]:
    """The columns of a message as its indexes have them."""
    said: dict[str, Any] = {}
    for index, (columns, where) in _SAID.items():
        try:
            cursor = db.execute(f"SELECT {columns} FROM message INDEXED BY {index} WHERE {where} AND id = ?", (number,))
            for row in cursor:
                said |= dict(zip((name for name, *_ in cursor.description), row, strict=True))
        except DAMAGE:
            continue
    return said
