"""Every SQL statement of a group's own tables, by name; its messages use the statements of the SQL store."""

# The lock is held until the transaction ends, so members' turns in the group follow one another. Later queries see the
# result of the last turn: each statement of a transaction sees what was committed before the statement.
LOCK = "SELECT version FROM turn WHERE one FOR UPDATE"
PEEK = "SELECT version FROM turn WHERE one"
LOOK = """
SELECT 'turn', locks_version::text, next_number, version::text FROM turn WHERE one
UNION ALL SELECT CASE WHEN has_groups THEN 'queue of groups' ELSE 'queue' END, name, number, stands
          FROM queue WHERE version > ?
UNION ALL SELECT kind, name, 0, definition FROM definition WHERE version > ?
UNION ALL SELECT 'deferred', '', 0, work FROM deferred WHERE one AND version > ?
UNION ALL SELECT 'lock', '', message, handle::text FROM lock
          WHERE message > 0 AND ? < (SELECT locks_version FROM turn WHERE one)"""
"""What has changed since a version: rows of kind, name, number, and the new state."""
REACHED = """
SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer, version FROM turn WHERE one"""
"""The server's timeline, one more after each promotion of a standby, and the group's version."""
SET_TURN = "UPDATE turn SET version = ?, locks_version = ?, next_number = ? WHERE one"
SET_QUEUE = "UPDATE queue SET version = ?, has_groups = ?, stands = ? WHERE number = ?"
SET_COPIED = """
INSERT INTO definition (kind, name, version, definition) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, definition = excluded.definition"""
SET_DEFERRED = """
INSERT INTO deferred (one, version, work) VALUES (true, ?, ?)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, work = excluded.work"""
SET_LOCK = """
INSERT INTO lock (message, handle) VALUES (?, ?) ON CONFLICT (message) DO UPDATE SET handle = excluded.handle"""
DROP_LOCK = "DELETE FROM lock WHERE message = ?"
TAKE_ROLE = """
INSERT INTO role AS r (name, holder, until_ms) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
WHERE r.holder = excluded.holder OR r.until_ms <= ? RETURNING name"""

DECIDE = """
INSERT INTO decided (member, client_id, number, unit_id, epoch) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (member, client_id, number) DO UPDATE SET unit_id = excluded.unit_id, epoch = excluded.epoch"""
FORGET_DECIDED = "DELETE FROM decided WHERE member = ?"
DECIDED = "SELECT client_id, number, unit_id FROM decided WHERE member = ?"

# The first two values are the bounds of a member's numbers of units of work, or of handles; the third has the units of
# work that have ended.
DROP_PUTS = "DELETE FROM message WHERE put_by >= ? AND put_by < ? AND put_by <> ALL (?::int8[]) RETURNING queue"
GROUPS_GOT = """
SELECT DISTINCT queue, group_id FROM message
WHERE taken_by >= ? AND taken_by < ? AND taken_by <> ALL (?::int8[]) AND group_id IS NOT NULL"""
GIVE_BACK = """
UPDATE message SET taken_by = NULL, backout_count = backout_count + 1
WHERE taken_by >= ? AND taken_by < ? AND taken_by <> ALL (?::int8[]) RETURNING queue, priority"""
DROP_LOCKS = "DELETE FROM lock WHERE handle >= ? AND handle < ? RETURNING message"
DROP_ROLES = "DELETE FROM role WHERE holder = ?"
NOTE_RECOVERY = """
UPDATE joined SET recovered = clock_timestamp(), recovered_by = ?, puts = ?, gets = ?, opens = ?, locks = ?
WHERE name = ?"""

NUMBER = "SELECT number FROM joined WHERE name = ?"
JOIN = """
INSERT INTO joined (name, number) SELECT %s, 1 + coalesce(max(number), 0) FROM joined ON CONFLICT (name) DO NOTHING"""
MEMBERS = """
SELECT m.name, m.epoch, m.serving, (1000 * extract(epoch FROM clock_timestamp() - m.beat))::bigint, m.lease_ms,
       m.host, m.pid, array_to_string(ARRAY(SELECT r.name FROM role r WHERE r.holder = m.name ORDER BY r.name), ' '),
       (1000 * extract(epoch FROM clock_timestamp() - j.recovered))::bigint, coalesce(j.recovered_by, ''),
       j.puts, j.gets, j.opens, j.locks
FROM member m JOIN joined j ON j.name = m.name ORDER BY m.name"""
