"""Health checks of external Spark Connect servers, which trigmon does not start or end.

A server is checked before the first run is sent there, and periodically while runs or definitions name it. When it does
not answer, no run is sent there; when it has not for ``connect.deadline_s``, its runs are to end: a Spark client would
wait for ten minutes. Used by the servers' thread alone.
"""

from __future__ import annotations

import time
import uuid
from typing import Final

from trigmon.keeper.protocol import Message
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.attendant import GONE, Attendant
from trigmon.log import logger
from trigmon.monitor.spark_servers.session_admission import SessionAdmission

log = logger()
USER: Final = "trigmon-attendant"
_CHECK_S, _CHECK_S_WHEN_IDLE = 2.0, 10.0
_UNWANTED_S = 60.0
_RELEASE_S = 10.0


class _ExternalServer:
    """One external server, with times by time.monotonic().

    ``asked_at`` is when the check began that is under way, ``answered_at`` when the last one ended, with or without an
    answer, 0.0 where there is none; ``silent_since`` is when the first check without an answer began,
    0.0 where it answers.
    """

    def __init__(self, url: str, now: float) -> None:
        self.url = url
        self.name = connect_server.shown(url)
        self.session_id = ""
        self.remote = ""
        self.wanted_at = now
        self.asked_at = 0.0
        self.answered_at = 0.0
        self.silent_since = 0.0

    def due_at(self, uses: int) -> float:
        """Returns when the next check is due, with so many runs at work there."""
        if not self.answered_at:
            return 0.0
        return self.answered_at + (_CHECK_S if uses or self.silent_since else _CHECK_S_WHEN_IDLE)

    def begin_session(self) -> None:
        """Begins a session for the check: a new one each time, since a server may have ended the last."""
        self.session_id = str(uuid.uuid4())
        self.remote = connect_server.remote_of(self.url, USER, self.session_id)


class ExternalServers:
    """The external Spark Connect servers of one monitor."""

    def __init__(self, warm: SessionAdmission, attendant: Attendant) -> None:
        self._warm = warm
        self._attendant = attendant
        self._others: dict[str, _ExternalServer] = {}
        self._leaving = 0

    def look(self, now: float) -> bool:
        """Checks the servers that are due, and drops those not needed any more; returns whether any are left."""
        wanted = self._warm.wanted_elsewhere()
        for url in wanted:
            self._others.setdefault(url, _ExternalServer(url, now)).wanted_at = now
        for other in list(self._others.values()):
            if not other.asked_at and now >= other.due_at(wanted.get(other.url, 0)):
                self._check(other, now)
            elif not other.asked_at and now >= other.wanted_at + _UNWANTED_S:
                self._leave(other)
        return bool(self._others)

    @property
    def is_done(self) -> bool:
        """Whether no session of this monitor is left on any of them."""
        return not (self._others or self._leaving)

    def stop(self) -> None:
        """Releases the sessions on all of them."""
        for other in list(self._others.values()):
            self._leave(other)

    def _check(self, other: _ExternalServer, now: float) -> None:
        if not other.remote:
            other.begin_session()
        other.asked_at = now

        def answered(answer: Message) -> None:
            asked_at, other.asked_at = other.asked_at, 0.0
            error = str(answer.get("error", ""))
            if error == GONE or other.url not in self._others:
                other.remote = ""  # nothing is known by that
            elif error:
                self._is_silent(other, asked_at, connect_server.redacted(error, other.url))
            else:
                self._is_there(other)

        deadline_s = self._warm.settings.deadline_s
        self._attendant.ask("check", answered, deadline_s, url=other.url, remote=other.remote)

    def _is_there(self, other: _ExternalServer) -> None:
        if other.silent_since or not other.answered_at:
            log.info("external Spark Connect server answers", server=other.name)
        other.answered_at, other.silent_since = time.monotonic(), 0.0
        self._warm.is_there(other.url)

    def _is_silent(self, other: _ExternalServer, asked_at: float, error: str) -> None:
        if not other.silent_since:
            log.warning("external Spark Connect server does not answer", server=other.name, error=error)
        other.answered_at, other.silent_since = time.monotonic(), other.silent_since or asked_at
        is_lost = other.answered_at >= other.silent_since + self._warm.settings.deadline_s
        self._warm.is_away(other.url, error, is_lost=is_lost)
        self._attendant.ask("forget", lambda _: None, _RELEASE_S, url=other.url, remote=other.remote)
        other.remote = ""

    def _leave(self, other: _ExternalServer) -> None:
        """Drops a server that is not needed any more: its session there is released."""
        del self._others[other.url]
        self._warm.is_unknown(other.url)
        if not other.remote or other.silent_since:
            return
        self._leaving += 1

        def released(_: Message) -> None:
            self._leaving -= 1
            if self._attendant.is_there:
                self._attendant.ask("forget", lambda _: None, _RELEASE_S, url=other.url, remote=other.remote)

        user_id = connect_server.user_of(other.url, USER)
        fields = {"url": other.url, "user_id": user_id, "session_id": other.session_id}
        self._attendant.ask("release", released, _RELEASE_S, **fields)
