"""The stores on which a rehearsal plays: made empty, emptied behind each scenario, gone at the end."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from trigmon.qmgr.two_stores import OwnHalf
from trigmon.store.memory import MemoryStore
from trigmon.store.sqlite.store import FILE_NAME, SqliteStore


class Stores(Protocol):
    """Where one queue manager after another has its data."""

    def new(self) -> OwnHalf:
        """The store at a start; what the one before kept is in it."""

    def empty(self) -> None:
        """Nothing is kept any more. The last store was closed."""

    def end(self) -> None:
        """Nothing is left."""


class InMemory:
    """What a store in memory holds outlives its queue manager, as a disk does."""

    def __init__(self, _dsn: str = "") -> None:
        self._store = MemoryStore()

    def new(self) -> OwnHalf:
        """See :class:`Stores`."""
        return self._store

    def empty(self) -> None:
        """See :class:`Stores`."""
        self._store = MemoryStore()

    def end(self) -> None:
        """See :class:`Stores`."""


class InDirectory:
    """One SQLite file."""

    def __init__(self, _dsn: str = "") -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="trigmon-simulate-"))

    def new(self) -> OwnHalf:
        """See :class:`Stores`."""
        return SqliteStore(self._directory)

    def empty(self) -> None:
        """See :class:`Stores`."""
        for file in self._directory.glob(f"{FILE_NAME}*"):
            file.unlink()

    def end(self) -> None:
        """See :class:`Stores`."""
        shutil.rmtree(self._directory)


class InSchema:
    """A schema of its own in a PostgreSQL database. A rehearsal puts up with any loss."""

    def __init__(self, dsn: str = "") -> None:
        # Here, since the library is there only where this store is wanted.
        from trigmon.store.postgres import connection, store

        self._connection, self._store = connection, store.PostgresStore
        schema = f"trigmon_simulate_{secrets.token_hex(8)}"
        self._place = connection.Place(dsn, schema, accept_loss=True)

    def new(self) -> OwnHalf:
        """See :class:`Stores`."""
        return self._store(self._place)

    def empty(self) -> None:
        """See :class:`Stores`."""
        self._connection.empty(self._place)

    def end(self) -> None:
        """See :class:`Stores`."""
        self._connection.drop(self._place)


STORES: dict[str, Callable[[str], Stores]] = {"memory": InMemory, "sqlite": InDirectory, "postgres": InSchema}
"""By the name of each what makes it, from the connection string that the last needs; empty: the environment's."""
