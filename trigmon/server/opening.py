"""The daemon's store, as its settings say: a data directory, or a schema of PostgreSQL, where one serves at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from trigmon.notify import ServiceManager
from trigmon.server.problems import IN_USE, CannotStart
from trigmon.settings import Settings
from trigmon.store.port import AnothersStore, DirectoryInUse, Store, StoreBroken, StoreTooNew, Unreachable
from trigmon.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from trigmon.store.postgres.connection import Place
    from trigmon.store.postgres.store import PostgresStore


class KeptStore(Store, Protocol):
    """A store of which something is there before it is opened."""

    def is_new(self) -> bool:
        """Whether no queue manager had it before."""

    def kept_time(self) -> str:
        """What was kept of the queue manager's own time; empty for a new store."""


AGAIN_S = 1.0
"""How often one that stands by, or does not reach its database, asks again; with short leases more often."""


def where(settings: Settings) -> str:
    """The place of the data, for a person."""
    return str(_place(settings)) if settings.store.postgres else f"the data directory {settings.qmgr.directory}"


def open_directory(settings: Settings) -> SqliteStore:
    """The store in the data directory, which is made if it is not there. Raises CannotStart."""
    directory = settings.qmgr.directory
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteStore(directory)
    except DirectoryInUse as error:
        raise CannotStart(f"another queue manager has the data directory {directory}", IN_USE) from error
    except (AnothersStore, StoreTooNew, StoreBroken, OSError) as error:
        raise CannotStart(f"the data directory {directory} cannot be opened: {error}") from error


async def open_schema(
    settings: Settings, over: asyncio.Future[int], service: ServiceManager, log: Any
) -> PostgresStore | None:
    """The store on PostgreSQL as soon as nobody else serves it; None when ``over`` was done before. Raises CannotStart.

    It waits as long as it takes, for the other's end or for the database, and says what for when that changes.
    """
    try:
        place = _place(settings)
        from trigmon.store.postgres.store import PostgresStore
    except ImportError as error:
        raise CannotStart(f"store.postgres needs the extra trigmon[postgres]: {error}") from error
    name, said = settings.qmgr.name, ""
    store: PostgresStore | None = None
    while not over.done():
        try:
            store = store or PostgresStore(place)
            if store.take(name):
                return store
            waits_for = f"{store.holder(name)} serves"
        except Unreachable as error:
            if store is not None:
                store.abandon()
                store = None
            waits_for = f"the database cannot be reached: {error}"
        except (StoreBroken, StoreTooNew) as error:
            raise CannotStart(str(error)) from error
        if waits_for != said:
            said = waits_for
            log.info("standing by", why=waits_for)
            # Whoever waits for this start waits for a process that is up, not for one that serves.
            service.ready()
            service.status(f"standing by: {waits_for}")
        service.beat()
        await asyncio.wait([over], timeout=min(AGAIN_S, settings.store.lease_s / 5))
    if store is not None:
        store.abandon()
    return None


def _place(settings: Settings) -> Place:
    from trigmon.store.postgres.connection import Place

    said = settings.store
    schema = said.postgres_schema or f"trigmon_{settings.qmgr.name}"
    return Place(said.postgres or "", schema, said.accept_loss, round(said.lease_s * 1000))
