"""Backup while the queue manager serves: the calls by which a client reads the store's file.

The rules decide nothing about the file: what it holds is the state behind every call that was answered before.
"""

from __future__ import annotations

from trigmon.mq.calls import BeginBackup, EndBackup, ReadBackup
from trigmon.mq.errors import OptionsError
from trigmon.mq.replies import BackupBegun, BackupPart, Done
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found

MOST_BYTES = 4 << 20
"""Read by one call at most."""


def decide_backup(
    call: BeginBackup | ReadBackup | EndBackup, facts: Facts, found: Found | None, now: int, ids: Ids
) -> Decision:
    """Changes nothing. Raises OptionsError for a place that no file has."""
    if isinstance(call, ReadBackup) and (not 0 <= call.offset < 1 << 62 or not 0 < call.count <= MOST_BYTES):
        raise OptionsError(f"read_backup from {call.offset}, {call.count} bytes: at most {MOST_BYTES} at a time")
    return Decision(Done())


def complete_begin_backup(call: BeginBackup, reply: Done, manager: ManagerState) -> BackupBegun:
    """Begins the backup of the connection."""
    return BackupBegun(size=manager.backup.begin(), made_ms=manager.now_ms)


def complete_read_backup(call: ReadBackup, reply: Done, manager: ManagerState) -> BackupPart:
    """Reads bytes of it."""
    return BackupPart(data=manager.backup.read(call.offset, call.count))


def complete_end_backup(call: EndBackup, reply: Done, manager: ManagerState) -> Done:
    """Ends it."""
    manager.backup.end()
    return reply
