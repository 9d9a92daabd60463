"""Every SQL statement, by name, in the SQL that SQLite and PostgreSQL share.

Look-ups of messages use an index at any depth; a test of each store checks their query plans.
"""

from functools import cache

COLUMNS = "id, priority, persistent, expires_ms, backout_count, descriptor, data, checksum"
_READY = "queue = ? AND put_by IS NULL AND taken_by IS NULL"
_ORDER = "ORDER BY priority DESC, id"

ADD_MESSAGE = """
INSERT INTO message (id, queue, priority, persistent, put_by, held, expires_ms, backout_count, msg_id, correl_id,
                     descriptor, data, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
ADD_ITEM = """
INSERT INTO message (id, queue, priority, persistent, put_by, held, expires_ms, backout_count, msg_id, correl_id,
                     descriptor, data, checksum, group_id, msg_seq_number, msg_offset, msg_flags, head, whole)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
SET_ASIDE = "UPDATE message SET queue = -queue WHERE id = ?"
TAKE_MESSAGE = "UPDATE message SET taken_by = ? WHERE id = ?"
REMOVE_MESSAGE = "DELETE FROM message WHERE id = ?"
REMOVE_STRETCH = "DELETE FROM message WHERE id BETWEEN ? AND ?"
CLEAR_QUEUE = "DELETE FROM message WHERE queue = ?"

# Look-ups in get order, by kind: messages outside groups; first items of groups, by completeness; the other items of
# all groups, or of complete ones; and messages named by an id. Each starts at the first message, behind a place (first
# the same priority, then the lower ones), or at one priority.
_KINDS = {"plain": "head IS NULL", **{f"head {n}": f"head > 0 AND head = {n}" for n in (1, 2, 3)}, "rest": "head = 0"}
_KINDS["rest of whole"] = """head = 0 AND EXISTS (
    SELECT 1 FROM message AS first WHERE first.queue = message.queue AND first.group_id = message.group_id
    AND first.msg_seq_number = 1 AND first.msg_offset = 0 AND first.head = 3
    AND first.put_by IS NULL AND first.taken_by IS NULL)"""
# Kinds narrowed to a place in the group, or to messages without a correlation id. They have no index of their own,
# since it would slow down every put; but the database skips the rows that do not match instead of returning them.
_AT = "msg_seq_number = coalesce(?, msg_seq_number) AND msg_offset = coalesce(?, msg_offset)"
_FEWER = {f"{k} at": f"{_KINDS[k]} AND {_AT}" for k in ("rest", "rest of whole")}
_FEWER |= {f"{k} alone": f"{kind} AND correl_id IS NULL" for k, kind in (_KINDS | _FEWER).items()}
_NAMED = {
    "msg_id": "msg_id = ?",
    "correl_id": "correl_id = ?",
    "both ids": "msg_id = ? AND correl_id IS NOT DISTINCT FROM ?",
    "group": "group_id = ?",
}
_ALL = _KINDS | _FEWER | _NAMED
FIND_FIRST = {k: f"SELECT {COLUMNS} FROM message WHERE {_READY} AND {kind} {_ORDER}" for k, kind in _ALL.items()}
FIND_FIRST_OF = {
    k: f"SELECT {COLUMNS} FROM message WHERE {_READY} AND {kind} AND priority = ? ORDER BY id"
    for k, kind in _KINDS.items()
}
FIND_LAST_OF = {k: f"{find} DESC" for k, find in FIND_FIRST_OF.items()}
FIND_BEFORE = {
    k: f"SELECT {COLUMNS} FROM message WHERE {_READY} AND {kind} AND priority = ? AND id < ? ORDER BY id DESC"
    for k, kind in _KINDS.items()
}
FIND_AFTER_SAME = {
    k: f"SELECT {COLUMNS} FROM message WHERE {_READY} AND {kind} AND priority = ? AND id > ? ORDER BY id"
    for k, kind in _ALL.items()
}
FIND_AFTER_LOWER = {
    k: f"SELECT {COLUMNS} FROM message WHERE {_READY} AND {kind} AND priority < ? {_ORDER}" for k, kind in _ALL.items()
}
# The place of the message that lies so many behind the first: an index is read, and no message.
_PLACE = f"SELECT priority, id FROM message WHERE {_READY} AND {_KINDS['plain']}"
PLACE_FIRST = f"{_PLACE} {_ORDER} LIMIT 1 OFFSET ?"
PLACE_AFTER_SAME = f"{_PLACE} AND priority = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ?"
PLACE_AFTER_LOWER = f"{_PLACE} AND priority < ? {_ORDER} LIMIT 1 OFFSET ?"
# The same places, read one by one, so that those can be left out that are reserved and not marked.
_PASS = _PLACE.replace("priority, id", "id, priority", 1)
PASS_FIRST = f"{_PASS} {_ORDER}"
PASS_AFTER_SAME = f"{_PASS} AND priority = ? AND id > ? ORDER BY id"
PASS_AFTER_LOWER = f"{_PASS} AND priority < ? {_ORDER}"
FIND_AT = f"SELECT {COLUMNS} FROM message WHERE {_READY} AND priority = ? AND id = ?"
FIND_ITEM = f"""
SELECT {COLUMNS} FROM message WHERE {_READY} AND group_id = ? AND msg_seq_number = ? AND msg_offset = ? {_ORDER}"""
PLACES_OF = f"SELECT priority, id FROM message WHERE {_READY} AND group_id = ? AND msg_seq_number = ?"
FIND_OWN = f"""
SELECT {COLUMNS} FROM message
WHERE put_by = ? AND queue = ? AND taken_by IS NULL AND held = 0 {_ORDER}"""
FIND_EXPIRED = f"""
SELECT {COLUMNS} FROM message INDEXED BY message_expiring
WHERE {_READY} AND expires_ms > 0 AND expires_ms <= ? ORDER BY expires_ms"""
EXPIRED = f"SELECT 1 FROM message WHERE {_READY} AND expires_ms > 0 AND expires_ms <= ? ORDER BY expires_ms"

# The same look-ups among the rows of a large unit of work that has ended and whose rows are not rewritten yet: after
# the queue they take the unit. A message named by an id is found by the id's index; the plus rules out the other one.
_LOOKS = (FIND_FIRST, FIND_AFTER_SAME, FIND_AFTER_LOWER)
_OF_UNIT = [each[k] for each in _LOOKS for k in ("plain", "plain alone")] + [FIND_FIRST_OF["plain"], EXPIRED]
_BY_ID = [each[k] for each in _LOOKS for k in ("msg_id", "correl_id", "both ids")] + [FIND_AT]
_UNSORTED = EXPIRED.rpartition(" ORDER BY ")[0]
COMMITTED = {
    **{find: find.replace("put_by IS NULL", "put_by = ?") for find in _OF_UNIT},
    **{find: find.replace("put_by IS NULL", "+put_by = ?") for find in _BY_ID},
    EXPIRED: _UNSORTED.replace("put_by IS NULL", "put_by = ?"),
}
_RAISED = COLUMNS.replace("backout_count", "backout_count + 1")
_GOT = "taken_by = ? AND ordinal IS NULL"
RETURNED = {
    **{find: find.replace("taken_by IS NULL", _GOT).replace("BY ", "BY ordinal, ") for find in _OF_UNIT},
    **{find: find.replace("taken_by IS NULL", "+taken_by = ?") for find in _BY_ID},
    EXPIRED: _UNSORTED.replace("taken_by IS NULL", _GOT),
}
RETURNED = {find: of_unit.replace(COLUMNS, _RAISED, 1) for find, of_unit in RETURNED.items()}

# The items of a group that a get can see: committed ones, and those that its own unit of work put.
_VISIBLE = "queue = ? AND taken_by IS NULL AND (put_by IS NULL OR put_by = ?) AND (expires_ms = 0 OR expires_ms > ?)"
GROUP_FROM = f"""
SELECT msg_seq_number, msg_offset, length(data), msg_flags, id FROM message
WHERE {_VISIBLE} AND group_id = ? AND (msg_seq_number, msg_offset) >= (?, ?)
ORDER BY msg_seq_number, msg_offset, priority DESC, id"""
SEGMENTS = f"""
SELECT {COLUMNS} FROM message
WHERE {_VISIBLE} AND group_id = ? AND msg_seq_number = ? ORDER BY msg_offset, priority DESC, id"""
FIRST_AT = f"""
SELECT id, priority, head, whole FROM message
WHERE {_READY} AND group_id = ? AND msg_seq_number = ? AND msg_offset = ? {_ORDER} LIMIT 2"""
SET_WHOLE_OF = f"""
UPDATE message SET head = ?, whole = ?
WHERE {_READY} AND group_id = ? AND msg_seq_number = 1 AND msg_offset = 0 AND (head <> ? OR whole <> ?)"""
SET_WHOLE = "UPDATE message SET head = ?, whole = ? WHERE id = ?"
HAS_GROUP = "SELECT 1 FROM message WHERE queue = ? AND group_id = ? LIMIT 1"
GROUP_OF = "SELECT group_id, msg_seq_number, msg_offset FROM message WHERE id = ? AND group_id IS NOT NULL"
PUT_BY = """
SELECT queue, group_id, msg_seq_number, msg_offset FROM message INDEXED BY message_put_by
WHERE put_by = ? AND group_id IS NOT NULL"""
TAKEN_BY = """
SELECT queue, group_id, msg_seq_number, msg_offset FROM message INDEXED BY message_taken_by
WHERE taken_by = ? AND group_id IS NOT NULL"""
QUEUES_WITH_GROUPS = "SELECT DISTINCT queue FROM message WHERE group_id IS NOT NULL"
UNITS_WITH_GROUPS = """
SELECT put_by FROM message INDEXED BY message_put_by WHERE put_by IS NOT NULL AND group_id IS NOT NULL
UNION SELECT taken_by FROM message INDEXED BY message_taken_by WHERE taken_by IS NOT NULL AND group_id IS NOT NULL"""
GROUPS_TO_RECOVER = """
SELECT DISTINCT queue, group_id FROM message WHERE group_id IS NOT NULL AND (persistent = 0 OR taken_by IS NOT NULL)"""

COMMIT_GETS = "DELETE FROM message WHERE taken_by = ?"
COMMIT_PUTS = "UPDATE message SET put_by = NULL, held = 0 WHERE put_by = ?"
BACK_OUT_PUTS = "DELETE FROM message WHERE put_by = ? AND held < 2"
BACK_OUT_GETS = "UPDATE message SET taken_by = NULL, backout_count = backout_count + 1 WHERE taken_by = ?"
RELEASE_HELD = "UPDATE message SET put_by = NULL, held = 0 WHERE put_by = ?"
RELEASE_HELD_ON = "UPDATE message SET put_by = NULL, held = 0 WHERE put_by = ? AND queue = ? AND held = 2"
COMMIT_PUT = "UPDATE message SET put_by = NULL, held = 0 WHERE id = ? AND put_by = ?"
RETURN_GET = "UPDATE message SET taken_by = NULL, backout_count = backout_count + 1 WHERE id = ? AND taken_by = ?"
COMMIT_SLICE_OF_PUTS = """
UPDATE message SET put_by = NULL, held = 0
WHERE id IN (SELECT id FROM message WHERE put_by = ? ORDER BY queue LIMIT ?) RETURNING id"""
RETURN_SLICE_OF_GETS = """
UPDATE message SET taken_by = NULL, backout_count = backout_count + 1
WHERE id IN (SELECT id FROM message WHERE taken_by = ? ORDER BY ordinal LIMIT ?) RETURNING id"""
CLEAR_SLICE_OF_GETS = """
DELETE FROM message WHERE id IN (SELECT id FROM message WHERE taken_by = ? ORDER BY ordinal LIMIT ?) RETURNING id"""
CLEAR_SLICE_OF_PUTS = """
DELETE FROM message WHERE id IN (SELECT id FROM message WHERE put_by = ? ORDER BY queue LIMIT ?) RETURNING id"""

GROUPS_OF_PUTS = "SELECT queue, group_id FROM message WHERE group_id IS NOT NULL AND put_by = ?"

RECORD_OUTCOME = """
INSERT INTO outcome (client_id, number, outcome, at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (client_id, number) DO UPDATE SET outcome = excluded.outcome, at_ms = excluded.at_ms"""
RECORD_BEFORE_FIRST = """
INSERT INTO outcome (client_id, number, outcome, at_ms) VALUES (?, ?, 0, ?)
ON CONFLICT (client_id, number) DO NOTHING"""
FORGET_OUTCOMES = "DELETE FROM outcome WHERE client_id = ? AND number < ?"
OUTCOMES = "SELECT number, outcome FROM outcome WHERE client_id = ?"
CLIENTS_WITH_OUTCOMES = """
SELECT client_id, max(at_ms) FROM outcome WHERE client_id > ? GROUP BY client_id ORDER BY client_id LIMIT ?"""
FORGET_CLIENT = "DELETE FROM outcome WHERE client_id = ?"

SET_OBJECT = """
INSERT INTO object (kind, name, definition) VALUES (?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET definition = excluded.definition"""
DROP_OBJECT = "DELETE FROM object WHERE kind = ? AND name = ?"
OBJECTS = "SELECT kind, definition FROM object ORDER BY kind, name"
ADD_QUEUE = "INSERT INTO queue (name) VALUES (?) RETURNING number"
DROP_QUEUE = "DELETE FROM queue WHERE number = ?"
QUEUES = "SELECT number, name FROM queue"
# A queue without a definition was deleted while a handle was still open.
_DEFINED = "(SELECT q.number FROM queue q JOIN object o ON o.kind = 'QLOCAL' AND o.name = q.name)"
_DELETED = f"number NOT IN {_DEFINED}"
# No queue can have such a name. Its rows are removed a slice at a time, and then the queue itself.
DROPPED = "(dropped) "
SET_DROPPED = f"UPDATE queue SET name = '{DROPPED}' || number WHERE number = ?"
SET_DELETED_DROPPED = f"UPDATE queue SET name = '{DROPPED}' || number WHERE {_DELETED}"
CLEAR_SLICE = (
    "DELETE FROM message WHERE id IN (SELECT id FROM message WHERE queue = ? ORDER BY msg_id LIMIT ?) RETURNING id"
)

RECOVER_PUTS = "DELETE FROM message WHERE put_by IS NOT NULL"
RECOVER_VOLATILE = "DELETE FROM message WHERE persistent = 0 AND ordinal IS NULL"
RECOVER_GETS = """
UPDATE message SET taken_by = NULL, backout_count = backout_count + 1 WHERE taken_by IS NOT NULL AND ordinal IS NULL"""
DEPTHS = {  # what has its own index has its own count
    kind: f"""
SELECT queue, priority, count(*) FROM message
WHERE put_by IS NULL AND taken_by IS NULL AND queue > 0 AND {which} GROUP BY queue, {order}"""
    for kind, which, order in (
        ("plain", "head IS NULL", "priority"),
        ("heads", "head > 0", "head, priority"),
        ("rest", "head = 0", "priority"),
    )
}

RESERVE_MESSAGE = "UPDATE message SET taken_by = ?, ordinal = ? WHERE id = ?"
RESERVE_STRETCH = "UPDATE message SET taken_by = ?, ordinal = id + ? WHERE id BETWEEN ? AND ? AND +queue = ?"
RETURN_RESERVED = "UPDATE message SET taken_by = NULL, ordinal = NULL, backout_count = backout_count + ? WHERE id = ?"
RESERVED = (
    f"SELECT {COLUMNS}, ordinal FROM message WHERE taken_by = ? AND ordinal >= ? AND ordinal < ? ORDER BY ordinal"
)
RESERVED_STRETCH = f"""
SELECT {COLUMNS}, id + ? FROM message WHERE id BETWEEN ? AND ? AND +queue = ? ORDER BY id"""
# In place of the columns what is read of a row as it is stored: the last value is 0 if that is all there is to it.
_AS_STORED = "descriptor, data, checksum, {ordinal}, expires_ms | backout_count"
STORED = RESERVED.replace(f"{COLUMNS}, ordinal", _AS_STORED.format(ordinal="ordinal"))
STORED_STRETCH = RESERVED_STRETCH.replace(f"{COLUMNS}, id + ?", _AS_STORED.format(ordinal="id + ?"))
NUMBERS = RESERVED.replace(COLUMNS, "id")
SET_RESERVATION = """
INSERT INTO reservation (number, queue, consumer, ended_ms, record) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET ended_ms = excluded.ended_ms, record = excluded.record"""
RESERVATION = "SELECT record FROM reservation WHERE number = ?"
RESERVATIONS_LEFT = "SELECT record FROM reservation INDEXED BY reservation_left WHERE ended_ms IS NULL"
FORGET_RESERVATIONS = """
DELETE FROM reservation WHERE queue = ? AND consumer = ? AND ended_ms > 0 AND number < (
    SELECT number FROM reservation WHERE queue = ? AND consumer = ? ORDER BY number DESC LIMIT 1 OFFSET ?)"""
FORGET_OLD_RESERVATIONS = "DELETE FROM reservation WHERE ended_ms < ?"
DROP_RESERVATIONS = "DELETE FROM reservation WHERE queue = ?"
DROP_RESERVATIONS_OF_NOTHING = f"DELETE FROM reservation WHERE queue NOT IN {_DEFINED}"

WRITE_RUN = """
INSERT INTO run (run_id, state, q_name, record, ended_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, record = excluded.record, ended_ms = excluded.ended_ms"""
DROP_RUN = "DELETE FROM run WHERE run_id = ?"
RUN = "SELECT record FROM run WHERE run_id = ?"
RUN_NUMBER = "SELECT number FROM run WHERE run_id = ?"
RUNS = "SELECT record FROM run WHERE number < ? ORDER BY number DESC"
RUNS_BY = {  # the most telling first
    name: f"SELECT record FROM run WHERE {name} = ? AND number < ? ORDER BY number DESC"
    for name in ("run_id", "state", "q_name")
}

COUNT_ENDED = "SELECT count(*) FROM run WHERE ended_ms > 0"
OLDEST_ENDED = "SELECT run_id, ended_ms FROM run WHERE ended_ms > 0 ORDER BY ended_ms, number LIMIT ?"
HISTORY = """
SELECT ended_ms, state, q_name, record FROM run WHERE ended_ms > 0 AND ended_ms >= ? AND ended_ms < ?
ORDER BY ended_ms LIMIT ?"""
UNDER_WAY = "SELECT run_id, record FROM run WHERE state IN ('due', 'started', 'serving', 'drained')"

HOLD = """
INSERT INTO held (initiation_q, slot, q_name, number) SELECT ?, ?, ?, number FROM run WHERE run_id = ?
ON CONFLICT DO NOTHING"""
NO_LONGER_HOLD = """
DELETE FROM held
WHERE initiation_q = ? AND slot = ? AND q_name = ? AND number = (SELECT number FROM run WHERE run_id = ?)"""
HELD = {
    from_last: f"""
SELECT run_id FROM held JOIN run USING (number)
WHERE held.initiation_q = ? AND held.slot = ? AND held.q_name = ? ORDER BY held.number {order} LIMIT ?"""
    for from_last, order in ((False, ""), (True, "DESC"))
}
HELD_LINES = "SELECT initiation_q, slot, q_name, count(*) FROM held GROUP BY initiation_q, slot, q_name"

SERVE = """
INSERT INTO serving (run_id, doing) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE SET doing = excluded.doing"""
UNSERVE = "DELETE FROM serving WHERE run_id = ?"
SERVING = "SELECT doing FROM serving"

SET_CAUSE = """
INSERT INTO cause (slot, q_name, failed, fruitless, until_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (slot, q_name)
DO UPDATE SET failed = excluded.failed, fruitless = excluded.fruitless, until_ms = excluded.until_ms"""
DROP_CAUSE = "DELETE FROM cause WHERE slot = ? AND q_name = ?"
CAUSES = "SELECT slot, q_name, failed, fruitless, until_ms FROM cause"

SET_PAUSE = """
INSERT INTO pause (what, name, by, since_ms, reason) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (what, name) DO UPDATE SET by = excluded.by, since_ms = excluded.since_ms, reason = excluded.reason"""
DROP_PAUSE = "DELETE FROM pause WHERE what = ? AND name = ?"
PAUSES = "SELECT what, name, by, since_ms, reason FROM pause"
DROP_PAUSES_OF_NOTHING = "DELETE FROM pause WHERE what = 'queue' AND name NOT IN (SELECT name FROM queue)"

GET_META = "SELECT value FROM meta WHERE key = ?"
SET_META = """
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


@cache
def by_columns(statement: str) -> str:
    """Returns a look-up of messages whose rows have what :mod:`trigmon.store.sql.message_columns` reads."""
    return statement.replace(COLUMNS, "id, priority, expires_ms, length(data), descriptor", 1)
