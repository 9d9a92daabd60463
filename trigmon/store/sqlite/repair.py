"""Repair while the queue manager serves: rebuilds the indexes and restores damaged columns of rows from them.

It runs in a transaction of its own, since SQLite commits nothing of a transaction in which it met damage. It reads
every message once, so it runs only after a look-up has found an inconsistency.
"""

from __future__ import annotations

from typing import Any

import apsw

from trigmon.store.sql import statements as sql
from trigmon.store.sql.picked_messages import message_of
from trigmon.store.sqlite.checksums import IS_RIGHT
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.salvage import DAMAGE

_ROW = f"SELECT {sql.COLUMNS}, {IS_RIGHT} FROM message NOT INDEXED WHERE id = ?"
_WAIT = "put_by IS NULL AND taken_by IS NULL AND head"
# By index, the columns of a message that can be read from the index alone, and the condition of the index.
_INDEX_COLUMNS = {
    "message_msg_id": ("queue, priority", "queue > -1"),
    "message_put_by": ("put_by", "put_by IS NOT NULL"),
    "message_taken_by": ("taken_by, ordinal", "taken_by IS NOT NULL"),
    "message_expiring": ("expires_ms", "expires_ms > 0 AND put_by IS NULL AND taken_by IS NULL"),
    "message_ready": ("NULL AS put_by, NULL AS taken_by, NULL AS head", f"{_WAIT} IS NULL"),
    "message_rests": ("NULL AS put_by, NULL AS taken_by, 0 AS head", f"{_WAIT} = 0"),
    "message_heads": ("NULL AS put_by, NULL AS taken_by, head", f"{_WAIT} > 0"),
}


def _has_entry(index: str, columns: str, where: str = "1") -> str:
    same = " AND ".join(f"i.{name} IS m.{name}" for name in (*columns.split(", "), "id"))
    only = where.replace("{}", "i.")
    of_row = where.replace("{}", "m.")
    return f"""
(({of_row}) IS NOT 1 OR EXISTS (SELECT 1 FROM message AS i INDEXED BY {index} WHERE {only} AND {same}))"""


_WAITS = "{}put_by IS NULL AND {}taken_by IS NULL"
_IS_INDEXED = f"""
SELECT put_by IS NULL AND taken_by IS NULL AND {
    " AND ".join(
        (
            _has_entry("message_msg_id", "queue, msg_id, priority"),
            _has_entry("message_ready", "queue, priority", f"{_WAITS} AND {{}}head IS NULL"),
            _has_entry("message_heads", "queue, head, priority", f"{_WAITS} AND {{}}head > 0"),
            _has_entry("message_rests", "queue, priority", f"{_WAITS} AND {{}}head = 0"),
            _has_entry("message_expiring", "queue, expires_ms", f"{{}}expires_ms > 0 AND {_WAITS}"),
            _has_entry("message_correl_id", "queue, correl_id, priority", "{}correl_id IS NOT NULL"),
            _has_entry("message_of_group", "queue, group_id, priority", "{}group_id IS NOT NULL"),
            _has_entry("message_group", "queue, group_id, msg_seq_number, msg_offset", "{}group_id IS NOT NULL"),
            _has_entry("message_volatile", "id", "{}persistent = 0"),
        )
    )
} FROM message AS m NOT INDEXED WHERE id = ?"""


def can_be_put_aside(db: apsw.Connection, number: int) -> bool:
    """Returns whether this waiting message is damaged and the indexes agree with its row; otherwise they are wrong."""
    rows = db.execute(_ROW, (number,)).fetchall()
    if not rows or (rows[0][-1] and message_of(rows[0], "") is not None):
        return False
    return bool(db.execute(_IS_INDEXED, (number,)).fetchall() == [(1,)])


def mend(db: apsw.Connection, tell: Tell, *, from_nothing: bool) -> None:
    """Rebuilds the indexes of messages, and restores damaged rows from the old indexes. Raises apsw.Error on failure.

    ``from_nothing``: the old indexes cannot be read and are not touched; their pages are reused after the next salvage.
    """
    damaged = [n for (n,) in db.execute(f"SELECT id FROM message NOT INDEXED WHERE queue > -1 AND NOT {IS_RIGHT}")]
    indexed = {number: _indexed_columns(db, number) for number in ([] if from_nothing else damaged)}
    if from_nothing:
        _index_anew(db)
    else:
        db.execute("REINDEX message")
    for number in damaged:
        columns = indexed.get(number)
        if columns:
            sets = ", ".join(f"{column} = :{column}" for column in columns)
            db.execute(f"UPDATE message SET {sets} WHERE id = :id", {**columns, "id": number})
        is_right = db.execute(_ROW, (number,)).fetchall()[0][-1]
        tell(f"message {number} was damaged and is " + ("repaired" if is_right else "to be set aside"))
    tell("the indexes did not agree with the messages: they were rebuilt")


def _index_anew(db: apsw.Connection) -> None:
    of_messages = "type = 'index' AND tbl_name = 'message' AND sql IS NOT NULL"
    statements = [sql for (sql,) in db.execute(f"SELECT sql FROM sqlite_schema WHERE {of_messages}")]
    db.execute("PRAGMA writable_schema = ON")
    db.execute(f"DELETE FROM sqlite_schema WHERE {of_messages}")
    db.execute("PRAGMA writable_schema = RESET").fetchall()
    for statement in statements:
        db.execute(str(statement))


def _indexed_columns(db: apsw.Connection, number: int) -> dict[str, Any]:
    """Returns the columns of a message as its indexes have them."""
    found: dict[str, Any] = {}
    for index, (columns, where) in _INDEX_COLUMNS.items():
        try:
            cursor = db.execute(f"SELECT {columns} FROM message INDEXED BY {index} WHERE {where} AND id = ?", (number,))
            for row in cursor:
                found |= dict(zip((name for name, *_ in cursor.description), row, strict=True))
        except DAMAGE:
            continue
    return found
