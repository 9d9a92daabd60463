"""What a queue manager stands on: its store, with a member's half of its group's, and itself upon them.

It is taken up once; by a member of a group again whenever the group was lost. What failed for good is CannotStart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from trigmon.command_server.server import CommandServer
from trigmon.notify import ServiceManager
from trigmon.qmgr.clock import SystemClock
from trigmon.qmgr.housekeeping import Retention
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.two_stores import TwoStores
from trigmon.rules.model.manager_state import Disk as DiskState
from trigmon.server.disk import NARROW, DiskReserve
from trigmon.server.event_log import Logged
from trigmon.server.exit_status import STORE_LOST, CannotStart, status_of
from trigmon.server.startup_calls import apply_definitions
from trigmon.server.store_setup import KeptStore, Patience, open_directory, open_group, open_schema, where
from trigmon.settings import Settings
from trigmon.store.port import AnothersStore, Fenced, Lost, Store, StoreBroken, StoreLost
from trigmon.store.sqlite.journal_archive import JournalArchive
from trigmon.store.sqlite.store import FILE_NAME, SqliteStore

if TYPE_CHECKING:
    from trigmon.store.postgres.group.membership import PostgresMembership
    from trigmon.store.postgres.store import PostgresStore


class QueueManagerSetup:
    """The stores of one queue manager. What :meth:`take_up` made is there until :meth:`let_go`.

    ``half`` is the member's half of its group's store, and ``remote`` its own store where that is on another machine:
    both want to say now and then that it lives. ``clock`` is its own time.
    ``accept_loss`` as the store on SQLite has it.
    """

    _puts_allowed: Callable[[], bool] = staticmethod(lambda: True)

    def __init__(
        self, settings: Settings, service: ServiceManager, log: Any, event_log: Logged, *, accept_loss: bool = False
    ) -> None:
        self._settings = settings
        self._accept_loss = accept_loss
        self._service = service
        self._log = log
        self._event_log = event_log
        self._disk: DiskReserve | None = None
        self._local: SqliteStore | None = None
        self._store: Store
        self.half: PostgresMembership | None = None
        self.remote: PostgresStore | None = None
        self.clock: SystemClock

    async def take_up(self, over: asyncio.Future[int], on_wait: Callable[[str], None]) -> QueueManager | None:
        """Returns the queue manager, as soon as it can serve; None when ``over`` was done before. Raises CannotStart.

        ``on_wait`` is called with each new reason to wait.
        """
        patience = Patience(over, self._service, self._log, on_wait)
        while True:
            try:
                own = await self._open(patience)
                if own is None:
                    return None
                if self.half is None and self.remote is None:
                    return self._begin(own)
                begin, waits_for = partial(self._begin_alive, own), self.waits_for
                return await patience.see_to(begin, waits_for, max(1.0, self._settings.server.stop_timeout_s))
            except Lost as error:
                if self._settings.group.name is None:
                    why = f"{where(self._settings)} cannot be opened: {error}"
                    raise CannotStart(why, status_of(error)) from error
                is_fenced = isinstance(error, Fenced)
                what = "it was given up for dead while it started" if is_fenced else "the database went away again"
                await patience.wait(f"{what}: {error}")

    def waits_for(self) -> str:
        """Returns what the member waits for in its group's database, for a person; empty where it does not."""
        return self.half.waits_for if self.half is not None else ""

    def let_go(self) -> None:
        """Releases what was taken up; none of it is used again."""
        self._store.abandon()

    def look_at_the_disk(self) -> None:
        """Prepares what a start on a full disk needs, while there is room; else keeps the log short."""
        if self._disk is None or self._local is None:
            return
        with suppress(OSError):
            self._local.turns.is_short = self._disk.free() < NARROW
            if self._disk.puts_allowed():
                self._local.spare.make()

    def _room(self) -> dict[str, int]:
        """Returns the bytes of the disk and of the store's files; nothing for a database elsewhere."""
        room: dict[str, int] = {}
        if self._disk is not None:
            with suppress(OSError):
                directory = self._settings.qmgr.directory
                room["store_bytes"] = sum(path.stat().st_size for path in directory.glob(f"{FILE_NAME}*"))
                state = self._disk.state()
                room |= {"free_bytes": state.free_bytes, "reserve_bytes": state.reserve_bytes}
        return room

    async def _open(self, patience: Patience) -> KeptStore | None:
        """Returns the own store (``_store`` adds the group's half); None when it is over before."""
        settings = self._settings
        own: KeptStore
        if settings.store.postgres:
            self.remote = await open_schema(settings, patience)
            if self.remote is None:
                return None
            own = self.remote
        else:
            archive = self._archive
            own = local = open_directory(settings, accept_loss=self._accept_loss, tell=self._on_damage, archive=archive)
            self._disk = DiskReserve(settings.qmgr.directory, settings.store.disk_reserve, self._on_disk)
            self._puts_allowed = self._disk.puts_allowed
            self._disk.reusable = local.reusable_bytes
            self._local = local
            self.look_at_the_disk()
        self._store = own
        if settings.group.name is None:
            return own
        try:
            self.half = await open_group(settings, patience, self._say_it_lives, self.half)
        except BaseException:
            own.abandon()
            raise
        if self.half is None:
            own.abandon()
            return None
        self._store = TwoStores(own, self.half)
        return own

    def _say_it_lives(self) -> None:
        if self.remote is not None:
            self.remote.beat()

    def _begin_alive(self, own: KeptStore) -> QueueManager:
        with self.half.session.kept_alive() if self.half is not None else nullcontext():
            return self._begin(own)

    def _begin(self, own: KeptStore) -> QueueManager:
        """Returns the queue manager, with what the definition files add to it. Raises CannotStart, Lost."""
        settings = self._settings
        try:
            is_new = own.is_new()
            self.clock = SystemClock(own.kept_time())
            if self._local is not None:
                self._local.clock = self.clock.now
            keep = Retention(settings.runs.keep_count, settings.runs.keep_ms)
            manager = QueueManager(
                settings.qmgr.name, self._store, self.clock, self._event_log, self._puts_allowed, keep
            )
            manager.counters.timer, manager.counters.room = time.perf_counter, self._room
            manager.disk = self._disk_state
            CommandServer(manager)
            try:
                made = apply_definitions(manager, settings.qmgr.definitions, is_new=is_new)
            except CannotStart:
                manager.stop()
                raise
        except Lost:
            self.let_go()
            raise
        except StoreLost as error:
            raise CannotStart(f"something that was acknowledged is gone: {error}", STORE_LOST) from error
        except (AnothersStore, StoreBroken) as error:
            raise CannotStart(f"{where(settings)} cannot be opened: {error}", status_of(error)) from error
        if made:
            self._log.info("objects made from definition files", objects=made)
        return manager

    @property
    def _archive(self) -> JournalArchive | None:
        store = self._settings.store
        if store.journal_archive is None:
            return None
        return JournalArchive(Path(store.journal_archive), store.journal_archive_days, self._on_archive)

    def _disk_state(self) -> DiskState | None:
        """Returns the room on the disk, and what is missing in the archive of the journal."""
        if self._disk is None or self._local is None:
            return None
        archive = self._local.turns.archive
        return replace(self._disk.state(), not_archived="" if archive is None else archive.missing)

    def _on_archive(self, missing: str) -> None:
        if missing:
            self._log.error("the journal is not archived", what=missing)
        else:
            self._log.info("the journal is archived again")

    def _on_damage(self, what: str) -> None:
        self._log.error("the store was damaged", what=what)

    def _on_disk(self, allowed: bool, free: int) -> None:
        if allowed:
            self._log.info("puts are allowed again", free_bytes=free)
        else:
            reserve = self._settings.store.disk_reserve
            self._log.warning("puts are refused: the disk is nearly full", free_bytes=free, disk_reserve=reserve)
