"""The stores on which a rehearsal plays: made empty, emptied behind each scenario, gone at the end."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trigmon.qmgr.two_stores import OwnHalf, SharedHalf
from trigmon.store.memory.group import MemoryGroup
from trigmon.store.memory.store import MemoryStore
from trigmon.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from trigmon.store.postgres.group.group import PostgresGroup
    from trigmon.store.postgres.group.membership import PostgresMembership

_AGAIN_S = 0.01


class Stores(Protocol):
    """Where one queue manager after another has its data."""

    def new(self) -> OwnHalf:
        """Returns the store at a start; what the one before kept is in it."""

    def empty(self) -> None:
        """Discards all data, after the last store was closed."""

    def end(self) -> None:
        """Removes everything."""

    def group(self) -> Group:
        """Returns an empty queue-sharing group of this kind of store; all members of the last have ended."""


class Group(Protocol):
    """A queue-sharing group whose members are all here."""

    @property
    def version(self) -> int:
        """It rises with whatever a member must look at."""

    def join(self, member: str) -> SharedHalf:
        """Returns a member's way into it."""

    def recover(self, member: str) -> None:
        """Lets the other members recover a member that was cut off."""


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

    def group(self) -> Group:
        """See :class:`Stores`."""
        return MemoryGroup()


class InDirectory:
    """One SQLite file."""

    def __init__(self, _dsn: str = "") -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="trigmon-simulate-"))

    def new(self) -> OwnHalf:
        """See :class:`Stores`."""
        return SqliteStore(self._directory)

    def empty(self) -> None:
        """See :class:`Stores`."""
        for file in self._directory.iterdir():
            file.unlink()

    def end(self) -> None:
        """See :class:`Stores`."""
        shutil.rmtree(self._directory)

    def group(self) -> Group:
        """See :class:`Stores`."""
        return MemoryGroup()


class InSchema:
    """A schema of its own in a PostgreSQL database. A rehearsal accepts any loss."""

    def __init__(self, dsn: str = "") -> None:
        # Here, since the library is there only where this store is wanted.
        from trigmon.store.postgres import connection, store

        self._connection, self._store = connection, store.PostgresStore
        schema = f"trigmon_simulate_{secrets.token_hex(8)}"
        self._place = connection.Place(dsn, schema, accept_loss=True)
        self._group: PostgresGroup | None = None

    def new(self) -> OwnHalf:
        """See :class:`Stores`."""
        return self._store(self._place)

    def empty(self) -> None:
        """See :class:`Stores`."""
        self._connection.empty(self._place)

    def end(self) -> None:
        """See :class:`Stores`."""
        self._connection.drop(self._place)
        if self._group is not None:
            self._connection.drop(self._group.place)

    def group(self) -> Group:
        """See :class:`Stores`."""
        from trigmon.store.postgres.group.group import PostgresGroup
        from trigmon.store.postgres.schemas import GROUP

        if self._group is None:
            self._group = PostgresGroup(self._place._replace(schema=f"{self._place.schema}_group"), "QSG1", 0)
        else:
            self._connection.empty(self._group.place, GROUP)
        return Together(self._group)


class Together:
    """A group in a schema, all of whose members are in this process."""

    def __init__(self, group: PostgresGroup) -> None:
        self._group = group
        self._members: dict[str, PostgresMembership] = {}

    def join(self, member: str) -> SharedHalf:
        """See :class:`Group`."""
        self._members[member] = joined = self._group.join(member)
        return joined

    @property
    def version(self) -> int:
        """See :class:`Group`."""
        return max((member.version for member in self._members.values()), default=0)

    def recover(self, member: str) -> None:
        """See :class:`Group`. Its session ends soon after its last word."""
        del self._members[member]
        for other in self._members.values():
            while not other.recover(member):
                time.sleep(_AGAIN_S)
            return


STORES: dict[str, Callable[[str], Stores]] = {"memory": InMemory, "sqlite": InDirectory, "postgres": InSchema}
"""By the name of each what makes it, from the connection string that the last needs; empty: the environment's."""
