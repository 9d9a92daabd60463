"""The backup that one client at a time makes of the store's file while the queue manager serves."""

from __future__ import annotations

from collections.abc import Mapping

from trigmon.mq.errors import BackedOut, FunctionNotSupported, ObjectInUse
from trigmon.qmgr.clock import Clock
from trigmon.qmgr.sessions import Session
from trigmon.store.port import FileCopy, Store

UNREAD_MS = 60_000
"""A backup that is not read for this time is ended: it keeps the write-ahead log growing."""


class Backups:
    """The backup under way, and the connection that makes it. ``sessions`` are those that are connected."""

    def __init__(self, store: Store, clock: Clock, sessions: Mapping[int, Session]) -> None:
        self._store = store
        self._clock = clock
        self._sessions = sessions
        self._session: Session | None = None
        self._read_ms = 0

    def of(self, session: Session) -> BackupOf:
        """Returns the backup as this session may use it."""
        return BackupOf(self, session)

    def look_after(self) -> None:
        """Ends a backup whose client is gone or does not read it."""
        session = self._session
        if session is None:
            return
        if session.connection not in self._sessions or self._clock.now() - self._read_ms >= UNREAD_MS:
            self.end(session)

    def begin(self, session: Session) -> int:
        """See :class:`trigmon.rules.model.manager_state.Backup`; one that the session has begins anew."""
        self.look_after()
        if self._session not in (None, session):
            raise ObjectInUse("another connection makes a backup")
        self.end(session)
        size = self._copy().begin()
        self._session, self._read_ms = session, self._clock.now()
        return size

    def read(self, session: Session, offset: int, count: int) -> bytes:
        """See :class:`trigmon.rules.model.manager_state.Backup`."""
        if self._session is not session:
            raise BackedOut(f"this connection has no backup, or did not read it for {UNREAD_MS // 1000} s: begin again")
        if not self._copy().is_held:
            self.end(session)
            raise BackedOut("the backup was ended: the disk is nearly full; make room and begin again")
        self._read_ms = self._clock.now()
        return self._copy().read(offset, count)

    def end(self, session: Session) -> None:
        """Ends the backup, if this session has it."""
        if self._session is session:
            self._session = None
            self._copy().end()

    def _copy(self) -> FileCopy:
        copy = self._store.copy
        if copy is None:
            raise FunctionNotSupported("this store is no file: back up its database (docs: PostgreSQL and failover)")
        return copy


class BackupOf:
    """The backup as one session may use it."""

    def __init__(self, backups: Backups, session: Session) -> None:
        self._backups = backups
        self._session = session

    def begin(self) -> int:
        """See :class:`trigmon.rules.model.manager_state.Backup`."""
        return self._backups.begin(self._session)

    def read(self, offset: int, count: int) -> bytes:
        """See :class:`trigmon.rules.model.manager_state.Backup`."""
        return self._backups.read(self._session, offset, count)

    def end(self) -> None:
        """See :class:`trigmon.rules.model.manager_state.Backup`."""
        self._backups.end(self._session)
