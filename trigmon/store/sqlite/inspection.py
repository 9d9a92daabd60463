"""What a start looks at before it serves, and what it makes whole: indexes against each other, and each row's checksum.

It is bounded: one walk of an index, and the tables that a start reads anyway. Only where damage was met before, or is
met now, everything is checked. What cannot be made whole here is CorruptError; then the file is salvaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import msgspec

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import Inhibit
from trigmon.store.base import ID_BLOCK
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import KEY
from trigmon.store.sqlite.checksums import IS_RIGHT, ROWS, SUMMED, is_right, is_whole

Tell = Callable[[str], None]
MOST_SAID = 20
_LOST_LEFTOVERS = (
    "which units of work had ended whose rows were still to go is lost: messages that a committed one had got may lie "
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
_STRAYS = "SELECT DISTINCT queue FROM message WHERE queue > 0 AND queue NOT IN (SELECT number FROM queue)"
# What a start removes or gives back is looked up by these; the rows have to say the same.
_TOUCHED = {
    "message_put_by": "put_by IS NOT NULL",
    "message_taken_by": "taken_by IS NOT NULL",
    "message_volatile": "persistent = 0",
}


def inspect(db: apsw.Connection, tell: Tell, *, everything: bool) -> None:
    """Makes whole what can be, and says what was not. Raises apsw.CorruptError where the file has to be salvaged."""
    if not _agree(db) or (everything and _errors(db)):
        tell("the indexes do not say what the messages say: they are made anew")
        with db:
            db.execute("REINDEX")
        if not _agree(db) or _errors(db):
            raise apsw.CorruptError("the indexes made anew do not agree either")
    strays = db.execute(_STRAYS).fetchall()
    if everything or strays:
        put_right(db, tell)
    _check_tables(db, tell)
    if strays:
        with db:
            settle(db, tell, {"queue"})


def _errors(db: apsw.Connection) -> list[str]:
    found = [str(text) for (text,) in db.execute(f"PRAGMA integrity_check({MOST_SAID})")]
    return [] if found == ["ok"] else found


def _agree(db: apsw.Connection) -> bool:
    """Whether the indexes of messages say the same."""
    return (
        _counted(db, _PARTS) == _counted(db, (_ALL,))
        and _counted(db, _GROUP_PARTS) == _counted(db, (_GROUPS,)) == _counted(db, (_OF_GROUPS,))
        and all(_is_as_its_rows(db, index, where) for index, where in _TOUCHED.items())
    )


def _counted(db: apsw.Connection, parts: Sequence[str]) -> dict[Any, tuple[int, int]]:
    """How many messages, and which in sum, each queue has by all of these."""
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
    """Sets aside the messages whose columns are not what was written: no queue has them any more. Whether none was."""
    is_all_right = True
    for number, queue in list(db.execute(f"SELECT id, queue FROM message NOT INDEXED WHERE NOT {IS_RIGHT}")):
        if isinstance(queue, int) and queue < 0:
            continue
        tell(f"message {number} of queue number {queue} is not what was written: it is set aside")
        _put_aside(db, number)
        is_all_right = False
    return is_all_right


def _put_aside(db: apsw.Connection, number: int) -> None:
    """Takes a message whose columns say nothing certain from its queue; its bodies stay."""
    db.execute(
        """
UPDATE message SET queue = CASE WHEN queue > 0 THEN -queue ELSE -1 END, put_by = NULL, taken_by = NULL, ordinal = NULL,
    head = NULL, persistent = 1, expires_ms = 0, held = 0 WHERE id = ?""",
        (number,),
    )


# -- the other tables -------------------------------------------------------------------------------------------------


def _check_tables(db: apsw.Connection, tell: Tell) -> None:
    """Drops rows that are not what was written, says each, and puts in their place what can be."""
    damaged = {table for table in ROWS if db.execute(f"SELECT 1 FROM {table} WHERE NOT {is_whole(table)}").fetchall()}
    if damaged:
        with db:
            for table in sorted(damaged):
                drop_damaged(db, tell, table)
            settle(db, tell, damaged)


def drop_damaged(db: apsw.Connection, tell: Tell, table: str) -> bool:
    """Writes a table anew without them: where a key is damaged no look-up leads to its row. Whether there was none."""
    rows = list(db.execute(f"SELECT *, {is_whole(table)} FROM {table}"))
    bad = [row for row in rows if not row[-1]]
    for row in bad:
        tell(f"a row of the table {table} is not what was written and is dropped: {short(row[:-2])}")
        if table == "meta" and row[0] == "leftovers":
            tell(_LOST_LEFTOVERS)
    if not bad:
        return True
    db.execute(f"DELETE FROM {table}")
    write_rows(db, table, [row[:-1] for row in rows if row[-1]])
    return False


def write_rows(db: apsw.Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Adds rows as they are; one whose key is there already is left out."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)


def short(values: Sequence[object]) -> str:
    """A row for a log."""
    text = ", ".join(str(value) for value in values)
    return text if len(text) <= 200 else f"{text[:200]}..."


def settle(db: apsw.Connection, tell: Tell, damaged: set[str]) -> None:
    """What follows from rows that are gone, table by table."""
    if "meta" in damaged:
        _set_next_id(db)
        _keep_puts(db, tell)
    if damaged & {"object", "queue"}:
        _name_queues(db, tell, may_lack_definition="object" in damaged)
    if "reservation" in damaged:
        _give_back(db, tell)


def _set_next_id(db: apsw.Connection) -> None:
    """Numbers are given out from behind all that are in use."""
    if db.execute(sql.GET_META, ("next_id",)).fetchall():
        return
    highest = """
SELECT max(coalesce((SELECT max(id) FROM message), 0), coalesce((SELECT max(put_by) FROM message), 0),
    coalesce((SELECT max(taken_by) FROM message), 0), coalesce((SELECT max(number) FROM reservation), 0))"""
    rows: list[tuple[int]] = list(db.execute(highest))
    last = rows[0][0]
    db.execute(SUMMED[sql.SET_META], ("next_id", str(last + 2 * ID_BLOCK)))


def _keep_puts(db: apsw.Connection, tell: Tell) -> None:
    """Where it is lost which units of work have ended, what they had put stays: rather too much than too little.

    Units that are committed without their rows being rewritten have put no messages of groups.
    """
    if db.execute(sql.GET_META, (KEY,)).fetchall():
        return
    units = "SELECT put_by FROM message WHERE put_by IS NOT NULL GROUP BY put_by HAVING count(group_id) = 0"
    for (unit,) in list(db.execute(units)):
        tell(f"whether unit of work {unit} was committed is lost: what it has put counts as committed")
        db.execute(SUMMED[sql.COMMIT_PUTS], (unit,))


def _name_queues(db: apsw.Connection, tell: Tell, *, may_lack_definition: bool) -> None:
    """Every message lies on a queue that has a name, and every queue has a definition but those that were deleted."""
    names = dict(db.execute("SELECT number, name FROM queue"))
    defined = {name for (name,) in db.execute("SELECT name FROM object WHERE kind = 'QLOCAL'")}
    without_name = [n for (n,) in db.execute("SELECT DISTINCT queue FROM message WHERE queue > 0") if n not in names]
    without_number = sorted(defined - set(names.values()))
    # One that is missing on each side is the same.
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
    """What a reservation has that is gone lies on its queue again."""
    lost = """
SELECT DISTINCT taken_by FROM message WHERE ordinal IS NOT NULL AND taken_by NOT IN (SELECT number FROM reservation)"""
    for (number,) in list(db.execute(lost)):
        tell(f"reservation {number} is lost: its messages lie on their queue again")
        held = list(db.execute("SELECT id FROM message WHERE taken_by = ? AND ordinal IS NOT NULL", (number,)))
        db.executemany(SUMMED[sql.RETURN_RESERVED], [(1, each) for (each,) in held])
