"""The daemon's store, as its settings say: a data directory, or a schema of PostgreSQL, where one serves at a time.

A member of a queue-sharing group takes up its half of the group's store as well. Whatever lies on another machine is
waited for as long as it takes, and each change of the reason is reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trigmon.notify import ServiceManager
from trigmon.qmgr.two_stores import OwnHalf
from trigmon.server.executor import SLOW_S, aside
from trigmon.server.exit_status import IN_USE, STORE_LOST, CannotStart, status_of
from trigmon.settings import Settings
from trigmon.store.port import (
    AnothersStore,
    DirectoryInUse,
    Lost,
    MayLose,
    StoreBroken,
    StoreLost,
    Unfit,
    UnsupportedVersion,
)
from trigmon.store.sqlite.journal_archive import JournalArchive
from trigmon.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from trigmon.store.postgres.connection import Place
    from trigmon.store.postgres.group.membership import PostgresMembership
    from trigmon.store.postgres.store import PostgresStore


class KeptStore(OwnHalf, Protocol):
    """A store of which something is there before it is opened."""

    def is_new(self) -> bool:
        """Returns whether no queue manager had it before."""

    def kept_time(self) -> str:
        """Returns what was kept of the queue manager's own time; empty for a new store."""


T = TypeVar("T")

AGAIN_S = 1.0
"""How often one that stands by, or does not reach its database, asks again; with short leases more often."""


def where(settings: Settings) -> str:
    """Returns the place of the data, for a person."""
    return str(_place(settings)) if settings.store.postgres else f"the data directory {settings.qmgr.directory}"


class Patience:
    """Waits for what another process or machine has to do first, until ``over`` is done.

    ``on_wait`` is called with each new reason: a service manager waits for a process that is up, not one that serves.
    """

    def __init__(
        self, over: asyncio.Future[int], service: ServiceManager, log: Any, on_wait: Callable[[str], None]
    ) -> None:
        self._over = over
        self._service = service
        self._log = log
        self._on_wait = on_wait
        self._reason = ""

    @property
    def is_over(self) -> bool:
        """Whether it was asked to stop."""
        return self._over.done()

    async def wait(self, why: str, longest_s: float = AGAIN_S) -> None:
        """Waits a while; the loop goes on."""
        self._say(why)
        self._service.beat()
        await asyncio.wait([self._over], timeout=min(AGAIN_S, longest_s))

    async def see_to(
        self, work: Callable[[], T], why: Callable[[], str] = lambda: "", grace_s: float = 0.0
    ) -> T | None:
        """Runs this work, which may wait for a database, and returns its result; the loop goes on meanwhile.

        None when it is over before, and the work does not end within ``grace_s`` of that: then it is left to itself.
        ``why`` is what it waits for in the database.
        """
        doing, began_s = aside(work), time.monotonic()
        ends: list[asyncio.Future[Any]] = [doing, self._over]
        while not doing.done() and not self._over.done():
            await asyncio.wait(ends, timeout=AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            self._service.beat()
            if not doing.done() and time.monotonic() - began_s >= SLOW_S:
                waits = why()
                self._say(f"the database does not answer{waits and f' ({waits})'}")
        if not doing.done():
            await asyncio.wait([doing], timeout=grace_s)
        return None if doing.cancel() else doing.result()

    def _say(self, why: str) -> None:
        if why != self._reason:
            self._reason = why
            self._log.info("standing by", why=why)
            self._service.ready()
            self._service.status(f"standing by: {why}")
            self._on_wait(why)


def open_directory(
    settings: Settings, *, accept_loss: bool, tell: Callable[[str], None], archive: JournalArchive | None = None
) -> SqliteStore:
    """Returns the store in the data directory, which is made if it is not there. Raises CannotStart.

    ``accept_loss``, ``tell`` and ``archive`` as the store has them.
    """
    directory = settings.qmgr.directory
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteStore(directory, accept_loss=accept_loss, tell=tell, archive=archive)
    except StoreLost as error:
        raise CannotStart(f"something that was acknowledged is gone: {error}", STORE_LOST) from error
    except DirectoryInUse as error:
        raise CannotStart(f"another queue manager has the data directory {directory}", IN_USE) from error
    except (AnothersStore, UnsupportedVersion, StoreBroken, OSError) as error:
        raise CannotStart(f"the data directory {directory} cannot be opened: {error}", status_of(error)) from error


async def open_schema(settings: Settings, patience: Patience) -> PostgresStore | None:
    """Returns the store on PostgreSQL once no other process serves it; None if asked to stop. Raises CannotStart."""
    try:
        place = _place(settings)
        from trigmon.store.postgres.store import PostgresStore
    except ImportError as error:
        raise CannotStart(f"store.postgres needs the extra trigmon[postgres]: {error}") from error
    name = settings.qmgr.name
    return await _stand_by(
        patience,
        settings.store.lease_s / 5,
        lambda: PostgresStore(place),
        lambda store: store.take(name),
        lambda store: f"{store.holder(name)} serves",
    )


async def open_group(
    settings: Settings, patience: Patience, meanwhile: Callable[[], None], before: PostgresMembership | None
) -> PostgresMembership | None:
    """Returns the member's half of the group's store, once the database is there and no other process is the member.

    None when it is over before. ``meanwhile`` is called while it waits. ``before`` is the half that this process had:
    it does not end because of a server that may lose something, and goes on with none that has less than that knew.
    Raises CannotStart, and what that raises.
    """
    group_settings = settings.group
    dsn = group_settings.postgres or settings.store.postgres
    if not dsn:
        raise CannotStart("group.name is set, and group.postgres does not say where the group's database is")
    try:
        from trigmon.store.postgres.connection import Place
        from trigmon.store.postgres.group.group import PostgresGroup
        from trigmon.store.postgres.group.member_session import NOTHING_REACHED
    except ImportError as error:
        raise CannotStart(f"group.name needs the extra trigmon[postgres]: {error}") from error
    name = group_settings.name or ""
    place = Place(
        dsn,
        group_settings.postgres_schema or f"trigmon_group_{name}",
        group_settings.accept_loss,
        round(group_settings.lease_s * 1000),
    )
    group = PostgresGroup(place, name)
    reached = before.reached if before is not None else NOTHING_REACHED

    return await _stand_by(
        patience,
        group_settings.lease_s / 5,
        lambda: group.join(settings.qmgr.name, reached),
        lambda half: half.take(),
        lambda half: f"{half.session.holder()} is {settings.qmgr.name} of the group {name}",
        meanwhile,
        has_served=before is not None,
    )


class _Releasable(Protocol):
    def abandon(self) -> None:
        """Lets go at once."""


S = TypeVar("S", bound=_Releasable)


async def _stand_by(
    patience: Patience,
    longest_s: float,
    connect: Callable[[], S],
    take: Callable[[S], bool],
    holder: Callable[[S], str],
    meanwhile: Callable[[], None] = lambda: None,
    *,
    has_served: bool = False,
) -> S | None:
    """Returns what ``connect`` makes, once it could be taken; None when it is over before. Raises CannotStart.

    A first start on a server that may lose messages fails at once; one that ``has_served`` waits for another server.
    """
    store: S | None = None

    def attempt() -> str:
        nonlocal store
        if store is None:
            store = connect()
        return "" if take(store) else holder(store)

    while not patience.is_over:
        try:
            # Who does not answer is waited for, and the loop has others to answer.
            waits_for = await patience.see_to(attempt)
            if waits_for is None:
                return None
            if not waits_for:
                return store
        except Lost as error:
            if isinstance(error, MayLose) and not has_served:
                raise CannotStart(str(error)) from error
            if store is not None:
                store.abandon()
                store = None
            why = "will not do now" if isinstance(error, Unfit) else "cannot be reached"
            waits_for = f"the database {why}: {error}"
        except (StoreBroken, UnsupportedVersion, AnothersStore) as error:
            raise CannotStart(str(error), status_of(error)) from error
        await patience.wait(waits_for, longest_s)
        await patience.see_to(meanwhile)
    if store is not None:
        store.abandon()
    return None


def _place(settings: Settings) -> Place:
    from trigmon.store.postgres.connection import Place

    store = settings.store
    schema = store.postgres_schema or f"trigmon_{settings.qmgr.name}"
    return Place(store.postgres or "", schema, store.accept_loss, round(store.lease_s * 1000))
