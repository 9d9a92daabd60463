"""Checksums of rows: the statements of the SQL store, extended by a checksum column.

A message's ``header`` is the sum of its columns, each times a weight. An UPDATE of some columns adds the difference, so
SQLite computes it alone, and earlier damage stays detectable. Rows of the other tables, which are written seldom, have
the CRC-32 of their values. A row without a checksum (NULL) is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import apsw

from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import row_sum

_WEIGHTS = {
    "id": 3,
    "queue": 5,
    "priority": 7,
    "persistent": 11,
    "held": 13,
    "expires_ms": 17,
    "backout_count": 19,
    "put_by": 23,
    "taken_by": 29,
    "ordinal": 31,
    "msg_seq_number": 37,
    "msg_offset": 41,
    "msg_flags": 43,
    "head": 47,
    "whole": 53,
}
_MAY_BE_NULL = ("put_by", "taken_by", "ordinal", "msg_seq_number", "msg_offset", "msg_flags", "head", "whole")
_NULL = -7
"""The value of NULL in the sum: no column ever holds this number."""


def _term(column: str, value: str | None = None) -> str:
    value = value or column
    if column == "whole" and value != "NULL":
        value = f"({value} & 1073741823) + ({value} >> 30)"  # it packs two numbers and is too large to be multiplied
    if value == "NULL":
        return f"{_WEIGHTS[column] * _NULL}"
    return f"{_WEIGHTS[column]} * {f'ifnull({value}, {_NULL})' if column in _MAY_BE_NULL else f'({value})'}"


def is_right(prefix: str = "") -> str:
    """Returns the SQL condition that a message's columns match the checksum. ``prefix`` stands before their names."""
    header = " + ".join(_term(column, prefix + column) for column in _WEIGHTS)
    return f"({prefix}header IS NULL OR {prefix}header IS ({header}))"


IS_RIGHT = is_right()


def _set(where: str, **new: str) -> str:
    """Returns an UPDATE that sets columns of messages and adjusts the checksum."""
    sums = "".join(f" - {_term(column)} + {_term(column, value)}" for column, value in new.items())
    columns = ", ".join(f"{column} = {value}" for column, value in new.items())
    return f"UPDATE message SET header = header{sums}, {columns} WHERE {where}"


def _added(statement: str, columns: dict[str, str]) -> str:
    """Returns an INSERT of a message with its checksum; ``columns`` maps columns to their parameters."""
    header = " + ".join(_term(column, columns.get(column, "NULL")) for column in _WEIGHTS)
    into, values = statement.split("VALUES")
    numbered = ", ".join(_numbered(values))
    return f"{into.rstrip().removesuffix(')')}, header) VALUES ({numbered}, {header})"


def _numbered(values: str) -> list[str]:
    """Returns the values of an INSERT, with its parameters numbered."""
    numbers = count(1)
    parts = [part.strip() for part in values.strip().strip("()").split(",")]
    return [f"?{next(numbers)}" if part == "?" else part for part in parts]


_FIRST = {"id": "?1", "queue": "?2", "priority": "?3", "persistent": "?4", "put_by": "?5", "held": "?6"}
_FIRST |= {"expires_ms": "?7", "backout_count": "?8"}
_ITEM = {"msg_seq_number": "?15", "msg_offset": "?16", "msg_flags": "?17", "head": "?18", "whole": "?19"}
_LEFT = {"put_by": "NULL", "held": "0"}
_BACK = {"taken_by": "NULL", "backout_count": "backout_count + 1"}
SUMMED = {
    sql.ADD_MESSAGE: _added(sql.ADD_MESSAGE, _FIRST),
    sql.ADD_ITEM: _added(sql.ADD_ITEM, _FIRST | _ITEM),
    sql.TAKE_MESSAGE: _set("id = ?2", taken_by="?1"),
    sql.COMMIT_PUTS: _set("put_by = ?", **_LEFT),
    sql.RELEASE_HELD: _set("put_by = ?", **_LEFT),
    sql.RELEASE_HELD_ON: _set("put_by = ? AND queue = ? AND held = 2", **_LEFT),
    sql.BACK_OUT_GETS: _set("taken_by = ?", **_BACK),
    sql.COMMIT_PUT: _set("id = ? AND put_by = ?", **_LEFT),
    sql.RETURN_GET: _set("id = ? AND taken_by = ?", **_BACK),
    sql.COMMIT_SLICE_OF_PUTS: _set(sql.COMMIT_SLICE_OF_PUTS.partition("WHERE")[2], **_LEFT),
    sql.RETURN_SLICE_OF_GETS: _set(sql.RETURN_SLICE_OF_GETS.partition("WHERE")[2], **_BACK),
    sql.RECOVER_GETS: _set("taken_by IS NOT NULL AND ordinal IS NULL", **_BACK),
    sql.SET_WHOLE: _set("id = ?3", head="?1", whole="?2"),
    sql.RESERVE_MESSAGE: _set("id = ?3", taken_by="?1", ordinal="?2"),
    sql.RESERVE_STRETCH: _set("id BETWEEN ?3 AND ?4 AND +queue = ?5", taken_by="?1", ordinal="(id + ?2)"),
    sql.RETURN_RESERVED: _set("id = ?2", taken_by="NULL", ordinal="NULL", backout_count="(backout_count + ?1)"),
}
SUMMED[sql.SET_WHOLE_OF] = _set(sql.SET_WHOLE_OF.partition("WHERE")[2], head="?1", whole="?2")
"""Maps the store's statements on messages to those that write, or check, the checksum."""

_CHECKED = f" CASE WHEN {IS_RIGHT} THEN checksum ELSE -1 END"


def _looks(statements: Iterable[str]) -> dict[str, str]:
    return {statement: statement.replace(" checksum", _CHECKED, 1) for statement in statements}


for _name in ("FIND_FIRST", "FIND_FIRST_OF", "FIND_AFTER_SAME", "FIND_AFTER_LOWER"):
    SUMMED |= _looks(getattr(sql, _name).values())
SUMMED |= _looks((*sql.COMMITTED.values(), *sql.RETURNED.values()))
SUMMED |= _looks((sql.FIND_AT, sql.FIND_ITEM, sql.FIND_OWN, sql.FIND_EXPIRED, sql.SEGMENTS, sql.RESERVED))
SUMMED |= _looks((sql.RESERVED_STRETCH, *sql.FIND_BEFORE.values()))

# -- the other tables -------------------------------------------------------------------------------------------------

ROWS = {
    "meta": ("key", "value"),
    "object": ("kind", "name", "definition"),
    "queue": ("number", "name"),
    "run": ("run_id", "state", "q_name", "record", "ended_ms"),
    "held": ("initiation_q", "slot", "q_name", "number"),
    "serving": ("run_id", "doing"),
    "cause": ("slot", "q_name", "failed", "fruitless", "until_ms"),
    "pause": ("what", "name", "by", "since_ms", "reason"),
    "reservation": ("number", "queue", "consumer", "ended_ms", "record"),
    "outcome": ("client_id", "number", "outcome", "at_ms"),
}
"""The other tables, with the columns that the checksum of a row covers."""


def register(connection: apsw.Connection) -> None:
    """Registers ``row_sum(...)`` as an SQL function."""
    connection.create_scalar_function("row_sum", row_sum, -1, deterministic=True)


def is_whole(table: str) -> str:
    """Returns the SQL condition that a row of this table matches its checksum."""
    return f"(sum IS NULL OR sum IS row_sum({', '.join(ROWS[table])}))"


def _kept(table: str, statement: str) -> str:
    """Returns an INSERT of a row with its checksum; an upsert updates the checksum as well."""
    columns = ROWS[table]
    into, _, behind = statement.partition("VALUES")
    values, _, conflict = behind.partition(")")
    numbered = ", ".join(_numbered(values))
    into = into.rstrip().removesuffix(")")
    if "DO UPDATE SET" in conflict:
        conflict = f"{conflict}, sum = row_sum({', '.join(_after(column, conflict, table) for column in columns)})"
    return f"{into}, sum) VALUES ({numbered}, row_sum({numbered})){conflict}"


def _after(column: str, conflict: str, table: str) -> str:
    """Returns the SQL of a column's value after an upsert: the new value if it is set, otherwise the old one."""
    return f"excluded.{column}" if f"{column} = excluded.{column}" in conflict else f"{table}.{column}"


def _renamed(statement: str) -> str:
    """Returns an UPDATE of a queue's name, with the checksum of its row."""
    head, where, condition = statement.partition(" WHERE ")
    name = head.partition(" name = ")[2]
    return f"{head}, sum = row_sum(number, {name}){where}{condition}"


_NEXT_QUEUE = "(SELECT 1 + coalesce(max(number), 0) FROM queue)"
SUMMED |= {
    sql.SET_META: _kept("meta", sql.SET_META),
    sql.SET_OBJECT: _kept("object", sql.SET_OBJECT),
    sql.WRITE_RUN: _kept("run", sql.WRITE_RUN),
    sql.SERVE: _kept("serving", sql.SERVE),
    sql.SET_CAUSE: _kept("cause", sql.SET_CAUSE),
    sql.SET_PAUSE: _kept("pause", sql.SET_PAUSE),
    sql.SET_RESERVATION: _kept("reservation", sql.SET_RESERVATION),
    sql.RECORD_OUTCOME: _kept("outcome", sql.RECORD_OUTCOME),
    sql.RECORD_BEFORE_FIRST: _kept("outcome", sql.RECORD_BEFORE_FIRST),
    sql.SET_DROPPED: _renamed(sql.SET_DROPPED),
    sql.SET_DELETED_DROPPED: _renamed(sql.SET_DELETED_DROPPED),
    sql.HOLD: """
INSERT INTO held (initiation_q, slot, q_name, number, sum) SELECT ?1, ?2, ?3, number, row_sum(?1, ?2, ?3, number)
FROM run WHERE run_id = ?4 ON CONFLICT DO NOTHING""",
    sql.ADD_QUEUE: f"""
INSERT INTO queue (number, name, sum) VALUES ({_NEXT_QUEUE}, ?1, row_sum({_NEXT_QUEUE}, ?1)) RETURNING number""",
}
SET_TURN = "UPDATE meta SET value = ?1, sum = ?2 WHERE key = 'turn'"
"""Sets the number of the last durable turn, and its checksum."""
