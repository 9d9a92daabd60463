"""The start of a SQLite store: opens its database, repairs it where needed, and replays its journal."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from trigmon.journal.entries import UnknownEntryError
from trigmon.journal.journal import UnknownVersionError
from trigmon.store.port import StoreBroken, UnsupportedVersion
from trigmon.store.sqlite.connection import traces_in
from trigmon.store.sqlite.open_database import Opened, open_database
from trigmon.store.sqlite.replay import replay
from trigmon.store.sqlite.salvage import WRONG_VALUES, is_damage
from trigmon.store.sqlite.turn_log import JOURNAL_SUFFIX

if TYPE_CHECKING:
    from trigmon.store.sqlite.store import SqliteStore


def open_and_replay(store: SqliteStore, directory: Path, *, accept_loss: bool) -> None:
    """Opens the database of a store and applies the journal's turns that it does not have.

    Raises AnothersStore, UnsupportedVersion, StoreLost, StoreBroken.
    """
    traces = traces_in(directory, store._lock) + ([] if store._journal.is_empty else [f"{store._path}{JOURNAL_SUFFIX}"])
    try:
        opened = open_database(
            store._path, store._vfs, store.last_turn, store._journal.tail, traces, store._tell, accept_loss=accept_loss
        )
    except (UnknownVersionError, UnknownEntryError) as error:
        raise UnsupportedVersion(
            f"{directory}: {error}: start the trigmon that wrote it, and stop it in order"
        ) from error
    store._use(opened.db)
    store._make_whole(opened.turn, everything=store.last_turn.is_damaged)
    try:
        _replay(store, opened)
    except (apsw.Error, StoreBroken, *WRONG_VALUES) as error:
        if not is_damage(error) and not isinstance(error, WRONG_VALUES):
            if isinstance(error, StoreBroken):
                raise
            raise StoreBroken(f"{store._path}: {error}") from error
        roll_back(store)
        store._make_whole(opened.turn, everything=True)
        try:
            _replay(store, opened)
        except (apsw.Error, *WRONG_VALUES) as again:
            raise StoreBroken(f"{store._path}: its journal cannot be applied: {again!r}") from again


def _replay(store: SqliteStore, opened: Opened) -> None:
    """Applies the journal's turns that the database does not have."""
    if opened.behind:
        store.turns.begin()
        replay(store, chain.from_iterable(opened.behind), store._tell)
    store.turns.end_replay(opened.turn + len(opened.behind), opened.highest)


def roll_back(store: SqliteStore) -> None:
    """Undoes the transaction of a store that is starting or being repaired."""
    store.turns.forget()
    store.gets.forget()
    store.outcomes.forget()
    if store._db.in_transaction:
        store._db.execute("ROLLBACK")
