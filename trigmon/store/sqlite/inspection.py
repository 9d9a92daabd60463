"""Consistency check and repair at the start: compares the indexes, and checks each row's checksum.

The cost is bounded: walks of the message indexes, and the tables that a start reads anyway. Everything is checked only
if damage was found before or is found now. Damage that cannot be repaired here raises CorruptError; then the file is
salvaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import msgspec

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import Inhibit
from trigmon.store.base import ID_BLOCK
from trigmon.store.sql import reserved_ranges
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import KEY
from trigmon.store.sqlite.checksums import IS_RIGHT, ROWS, SUMMED, is_right, is_whole

Tell = Callable[[str], None]
MOST_ERRORS = 20
_LOST_LEFTOVERS = (
    "the record of ended units of work with deferred rows is lost: messages that a committed one had got may lie "
    "on their queues again"
)
LOST_DEFINITION = "its definition was damaged: define it again, then allow gets and puts"

# All messages, and the same ones by the indexes of those that wait, were put or were got.
_PART = "SELECT queue, count(*), sum(16 * id + priority) FROM message INDEXED BY message_{} WHERE {} GROUP BY queue"
_ALL = _PART.format("msg_id", "1")
_WAIT = "put_by IS NULL AND taken_by IS NULL AND head"
_PARTS = (
    _PART.format("ready", f"{_WAIT} IS NULL"),
    _PART.format("heads", f"{_WAIT} > 0"),
    _PART.format("rests", f"{_WAIT} = 0"),
    _PART.format("put_by", "put_by IS NOT NULL"),
    _PART.format("taken_by", "taken_by IS NOT NULL AND put_by IS NULL"),
)
# Those of groups by an index of their own, and the same ones by the others.
_GROUPS = _PART.format("group", "group_id IS NOT NULL")
_OF_GROUPS = _PART.format("of_group", "group_id IS NOT NULL")
_GROUP_PARTS = (*_PARTS[1:3], *(part.replace(" GROUP", " AND group_id IS NOT NULL GROUP") for part in _PARTS[3:]))
_UNKNOWN_QUEUES = "SELECT DISTINCT queue FROM message WHERE queue > 0 AND queue NOT IN (SELECT number FROM queue)"
# An entry of an index has no checksum, and SQLite answers from the index alone where it holds all that is asked for.
_INDEXED = ("queue", "run", "reservation")
# A start finds the rows to remove or give back by these indexes, so the rows must agree with them.
_TOUCHED = {
    "message_put_by": "put_by IS NOT NULL",
    "message_taken_by": "taken_by IS NOT NULL",
    "message_volatile": "persistent = 0",
}


# By the places of a Range: messages that are not marked are on their queue again once their reservation is lost.
RANGES_OF_NOTHING = f"""
SELECT DISTINCT json_extract(part.value, '$[3]') FROM meta, json_each(meta.value) AS part
WHERE meta.key = '{reserved_ranges.KEY}' AND json_extract(part.value, '$[3]') NOT IN (SELECT number FROM reservation)"""


def inspect(db: apsw.Connection, tell: Tell, *, everything: bool) -> None:
    """Repairs what it can, and reports the damage. Raises apsw.CorruptError if the file has to be salvaged."""
    _rebuild_indexes_of_tables(db, tell)
    if not do_indexes_agree(db) or (everything and errors_in(db, "message")):
        tell("the indexes do not agree with the messages: they are rebuilt")
        _rebuild_indexes(db, "message")
        if not do_indexes_agree(db) or errors_in(db, "message"):
            raise apsw.CorruptError("the rebuilt indexes do not agree either")
    with db:  # nothing is dropped from a file that has to be salvaged: pages may belong to two tables
        unknown = db.execute(_UNKNOWN_QUEUES).fetchall()
        if everything or unknown:
            put_right(db, tell)
        _check_tables(db, tell)
        if unknown:
            settle(db, tell, {"queue"})
        if everything and (errors := errors_in(db)):
            raise apsw.CorruptError("; ".join(errors))


def errors_in(db: apsw.Connection, part: str | int = MOST_ERRORS) -> list[str]:
    """Returns what SQLite itself finds wrong with the file, MOST_ERRORS at most, or with a table and its indexes."""
    found = [str(text) for (text,) in db.execute(f"PRAGMA integrity_check({part})")]
    return [] if found == ["ok"] else found


def do_indexes_agree(db: apsw.Connection) -> bool:
    """Returns whether the indexes of messages agree with each other."""
    return (
        _counted(db, _PARTS) == _counted(db, (_ALL,))
        and _counted(db, _GROUP_PARTS) == _counted(db, (_GROUPS,)) == _counted(db, (_OF_GROUPS,))
        and all(_is_as_its_rows(db, index, where) for index, where in _TOUCHED.items())
    )


def _counted(db: apsw.Connection, parts: Sequence[str]) -> dict[Any, tuple[int, int]]:
    """Returns, by queue, the number of messages and a sum over them that these statements find together."""
    counted: dict[Any, tuple[int, int]] = {}
    for part in parts:
        for queue, number, added in db.execute(part):
            before = counted.get(queue, (0, 0))
            counted[queue] = before[0] + number, before[1] + (added if isinstance(added, int) else 0)
    return counted


def _is_as_its_rows(db: apsw.Connection, index: str, where: str) -> bool:
    statement = f"""
SELECT count(*) FROM (SELECT id FROM message INDEXED BY {index} WHERE {where}) AS i
LEFT JOIN message AS m NOT INDEXED ON m.id = i.id WHERE (m.{where} AND {is_right("m.")}) IS NOT 1"""
    return bool(db.execute(statement).fetchall() == [(0,)])


def put_right(db: apsw.Connection, tell: Tell) -> bool:
    """Sets aside, off their queues, the messages whose columns are damaged; returns whether there were none."""
    is_all_right = True
    for number, queue in list(db.execute(f"SELECT id, queue FROM message NOT INDEXED WHERE NOT {IS_RIGHT}")):
        if isinstance(queue, int) and queue < 0:
            continue
        tell(f"message {number} of queue number {queue} is damaged: it is set aside")
        _put_aside(db, "id", number)
        is_all_right = False
    return is_all_right


def _put_aside(db: apsw.Connection, column: str, number: int) -> None:
    """Takes a message with damaged columns off its queue; its descriptor and data stay."""
    db.execute(
        f"""
UPDATE message SET queue = CASE WHEN queue > 0 THEN -queue ELSE -1 END, put_by = NULL, taken_by = NULL, ordinal = NULL,
    head = NULL, persistent = 1, expires_ms = 0, held = 0 WHERE {column} = ?""",
        (number,),
    )


def _rebuild_indexes(db: apsw.Connection, table: str) -> None:
    """Rebuilds the indexes of a table. Raises CorruptError where two rows have a key that may be there once."""
    try:
        with db:
            db.execute(f"REINDEX {table}")
    except apsw.ConstraintError as error:
        raise apsw.CorruptError(str(error)) from error


# -- the other tables -------------------------------------------------------------------------------------------------


def _rebuild_indexes_of_tables(db: apsw.Connection, tell: Tell) -> None:
    """Rebuilds the indexes of tables that do not agree with their rows.

    A table with a damaged row is left alone: it is written again without it, and its indexes with it.
    """
    for table in _INDEXED:
        if errors_in(db, table) and not _damaged_in(db, table):
            tell(f"the indexes of the table {table} do not agree with its rows: they are rebuilt")
            _rebuild_indexes(db, table)
            if errors_in(db, table):
                raise apsw.CorruptError(f"the rebuilt indexes of the table {table} do not agree either")


def _damaged_in(db: apsw.Connection, table: str) -> bool:
    return bool(db.execute(f"SELECT 1 FROM {table} NOT INDEXED WHERE NOT {is_whole(table)}").fetchall())


def _check_tables(db: apsw.Connection, tell: Tell) -> None:
    """Drops damaged rows, reports each, and replaces them where possible."""
    damaged = {table for table in ROWS if _damaged_in(db, table)}
    for table in sorted(damaged):
        drop_damaged(db, tell, table)
    settle(db, tell, damaged)


def drop_damaged(db: apsw.Connection, tell: Tell, table: str) -> bool:
    """Drops a table's damaged rows; returns whether there were none.

    The whole table is written again, since no look-up leads to a row with a damaged key.
    """
    rows = list(db.execute(f"SELECT *, {is_whole(table)} FROM {table}"))
    bad = [row for row in rows if not row[-1]]
    for row in bad:
        tell(f"a row of the table {table} is damaged and is dropped: {short(row[:-2])}")
        if table == "meta" and row[0] == "leftovers":
            tell(_LOST_LEFTOVERS)
    if not bad:
        return True
    db.execute(f"DELETE FROM {table}")
    write_rows(db, table, [row[:-1] for row in rows if row[-1]])
    return False


def write_rows(db: apsw.Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Adds rows as they are; skips those whose key exists."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)


def short(values: Sequence[object]) -> str:
    """Returns a row as text for a log, shortened to 200 characters."""
    text = ", ".join(str(value) for value in values)
    return text if len(text) <= 200 else f"{text[:200]}..."


def settle(db: apsw.Connection, tell: Tell, damaged: set[str]) -> None:
    """Repairs what depends on dropped rows of these tables."""
    if "meta" in damaged:
        _set_next_id(db)
        _set_puts_aside(db, tell)
        _end_reservations(db, tell)
    if damaged & {"object", "queue"}:
        _name_queues(db, tell, may_lack_definition="object" in damaged)
    if "reservation" in damaged:
        _give_back(db, tell)


def _set_next_id(db: apsw.Connection) -> None:
    """Sets the next free number above all numbers in use, if it is lost."""
    if db.execute(sql.GET_META, ("next_id",)).fetchall():
        return
    highest = """
SELECT max(coalesce((SELECT max(id) FROM message), 0), coalesce((SELECT max(put_by) FROM message), 0),
    coalesce((SELECT max(taken_by) FROM message), 0), coalesce((SELECT max(number) FROM reservation), 0))"""
    rows: list[tuple[int]] = list(db.execute(highest))
    last = rows[0][0]
    db.execute(SUMMED[sql.SET_META], ("next_id", str(last + 2 * ID_BLOCK)))


def _set_puts_aside(db: apsw.Connection, tell: Tell) -> None:
    """Sets aside what open units of work have put, if the record of ended units is lost: one may have been committed.

    Units that are committed without their rows being rewritten have put no messages of groups.
    """
    if db.execute(sql.GET_META, (KEY,)).fetchall():
        return
    units = "SELECT put_by FROM message WHERE put_by IS NOT NULL GROUP BY put_by HAVING count(group_id) = 0"
    for (unit,) in list(db.execute(units)):
        tell(f"whether unit of work {unit} was committed is lost: what it has put is set aside")
        _put_aside(db, "put_by", unit)


def _end_reservations(db: apsw.Connection, tell: Tell) -> None:
    """Gives back what is reserved, if the record of the messages that are reserved and not marked is lost."""
    if db.execute(sql.GET_META, (reserved_ranges.KEY,)).fetchall():
        return
    for (number,) in list(db.execute("SELECT number FROM reservation WHERE ended_ms IS NULL")):
        tell(f"which messages reservation {number} has is lost: they, and what it has settled last, lie on their queue")
        db.execute("DELETE FROM reservation WHERE number = ?", (number,))
    _give_back(db, tell)


def _name_queues(db: apsw.Connection, tell: Tell, *, may_lack_definition: bool) -> None:
    """Gives every queue with messages a name, and every queue that was not deleted a definition."""
    names = dict(db.execute("SELECT number, name FROM queue"))
    defined = {name for (name,) in db.execute("SELECT name FROM object WHERE kind = 'QLOCAL'")}
    without_name = [n for (n,) in db.execute("SELECT DISTINCT queue FROM message WHERE queue > 0") if n not in names]
    without_number = sorted(defined - set(names.values()))
    # If one is missing on each side, they belong together.
    if len(without_name) == len(without_number) == 1:
        names[without_name.pop()] = without_number.pop()
    for number in without_name:
        names[number] = f"DAMAGED.QUEUE.{number}"
        tell(f"messages lie on queue number {number}, whose name is lost: it is called {names[number]}")
    for name in without_number:
        names[1 + max(names, default=0)] = name
    for number, name in names.items():
        if name.startswith(sql.DROPPED):
            continue
        db.execute("INSERT OR IGNORE INTO queue (number, name, sum) VALUES (?1, ?2, row_sum(?1, ?2))", (number, name))
        if name not in defined and (may_lack_definition or number in without_name):
            tell(f"queue {name}: {LOST_DEFINITION}")
            db.execute(SUMMED[sql.SET_OBJECT], ("QLOCAL", name, _closed_definition(name)))


def _closed_definition(name: str) -> str:
    closed = LocalQueue(
        name=name,
        description=LOST_DEFINITION[:64],
        inhibit_get=Inhibit.INHIBITED,
        inhibit_put=Inhibit.INHIBITED,
    )
    return msgspec.json.encode(closed).decode()


def _give_back(db: apsw.Connection, tell: Tell) -> None:
    """Returns the messages of lost reservations to their queues."""
    lost = f"""
SELECT taken_by FROM message WHERE ordinal IS NOT NULL AND taken_by NOT IN (SELECT number FROM reservation)
UNION {RANGES_OF_NOTHING}"""
    for (number,) in list(db.execute(lost)):
        tell(f"reservation {number} is lost: its messages lie on their queue again")
        held = list(db.execute("SELECT id FROM message WHERE taken_by = ? AND ordinal IS NOT NULL", (number,)))
        db.executemany(SUMMED[sql.RETURN_RESERVED], [(1, each) for (each,) in held])
