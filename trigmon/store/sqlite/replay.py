"""Replays a journal: applies to the database what its turns changed behind the last commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trigmon.journal.entries import JournalChange, RecoverStore, SetMeta
from trigmon.rules.model import changes as c
from trigmon.rules.model.state import Standing
from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import WRITE
from trigmon.store.sql.store import QueueGoneError
from trigmon.store.sqlite.inspection import Tell

if TYPE_CHECKING:
    from trigmon.store.sql.store import RowStore


def replay(store: RowStore, changes: Iterable[JournalChange], tell: Tell) -> None:
    """Writes the rows of these changes, in the caller's transaction.

    A change of a queue that is gone, as damage took it, is reported and left out. Raises what the database raises.
    """
    _read_rows(store)
    for change in changes:
        _write(store, change, tell)


def _read_rows(store: RowStore) -> None:
    """Reads what the writes of changes need to know of the rows, before the store is opened."""
    store.standing = Standing("")
    store._read_numbers()
    store.leftovers.load()
    store.ranges.load()
    store.messages.groups.resume()
    store.ledger.load(store.standing)
    store._block_end = int(store._meta("next_id") or 0)


def _write(store: RowStore, change: JournalChange, tell: Tell) -> None:
    if isinstance(change, RecoverStore):
        store.decided = change.decided
        store._recover(change.q_mgr_name, change.now)
        _read_rows(store)
        return
    if isinstance(change, SetMeta):
        store.execute(sql.SET_META, (change.key, change.value))
        if change.key == "next_id":
            store._block_end = int(change.value)
        return
    try:
        WRITE[type(change)](store, change)
    except QueueGoneError as error:
        tell(f"a change of the journal is left out, for queue {error} is lost")
    if isinstance(change, c.SetCause):
        store.standing.follow(change)  # the end of a process deletes its causes
