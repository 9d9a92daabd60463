"""Checks of a Spark Connect server: whether it answers, is healthy, and is not too large or old; its warm-up."""

from __future__ import annotations

import time
from collections.abc import Callable

from trigmon.keeper.protocol import Message
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.attendant import GONE, Attendant
from trigmon.log import logger
from trigmon.monitor.spark_servers.kept_server import KeptServer
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.mq.quantities import size

log = logger()
HEATED_BY = "SYSTEM.DEFAULT.LOCAL.QUEUE"
_CHECK_S, _CHECK_S_WHEN_IDLE = 2.0, 10.0
_ANSWER_S, _HEAT_S = 300.0, 900.0
_LEAST_AGE_S = 30.0


class ServerChecks:
    """Checks servers through the attendant, and admits runs to those that answer.

    ``address`` is the queue manager's, from which a warm-up reads. ``answers`` is called with the master of a server
    that answers for the first time, ``kill`` with one that does not answer, and why.
    """

    def __init__(
        self,
        warm: SessionAdmission,
        attendant: Attendant,
        address: str,
        answers: Callable[[str], None],
        kill: Callable[[KeptServer, str], None],
    ) -> None:
        self._warm = warm
        self._attendant = attendant
        self._address = address
        self._answers = answers
        self._kill = kill

    def look(self, kept: KeptServer, uses: int, now: float) -> None:
        """Sends the requests that are due to a server, in which ``uses`` runs work."""
        if not kept.is_asked:
            self._await(kept)
        if kept.is_there and now >= kept.check_at:
            self._check(kept, uses, now)
            self._check_age(kept, now)

    def _await(self, kept: KeptServer) -> None:
        """Waits until it answers, and has it warmed up then."""
        kept.is_asked = True

        def answered(answer: Message) -> None:
            if kept.is_ending:
                return
            if answer.get("error") == GONE:
                kept.is_asked = False
            elif error := answer.get("error"):
                self._kill(kept, f"it does not answer: {error}")
            else:
                self._begin(kept)

        self._attendant.ask("wait", answered, _ANSWER_S, url=kept.server.url)

    def _begin(self, kept: KeptServer) -> None:
        """Admits waiting runs to it, unless an older server still takes them: then it is warmed up first."""
        self._answers(kept.server.master)
        kept.is_there, kept.check_at = True, time.monotonic() + _CHECK_S
        _log(kept, "Spark Connect server answers")
        if kept.is_found or not self._warm.has(kept.server.master):
            self._warm.is_warm(kept.server)
        kept.is_warm = kept.is_found  # it has been heated, or is in use
        if not kept.is_warm:
            self._heat(kept)

    def _heat(self, kept: KeptServer) -> None:
        def answered(answer: Message) -> None:
            if kept.is_ending:
                return
            kept.is_warm = True
            if missed := answer.get("missed") or answer.get("error"):
                log.warning("not all of a Spark Connect server is warm", missed=missed)
            _log(kept, "Spark Connect server is warm", took_ms=answer.get("took_ms"))
            self._warm.is_warm(kept.server)

        fields = {"directory": str(kept.directory), "queue": HEATED_BY, "address": self._address}
        self._attendant.ask("heat", answered, _HEAT_S, url=kept.server.url, **fields)

    def _check(self, kept: KeptServer, uses: int, now: float) -> None:
        """Sends a health check."""
        deadline_s = self._warm.settings.deadline_s
        kept.check_at = now + deadline_s + _CHECK_S

        def answered(answer: Message) -> None:
            kept.check_at = time.monotonic() + (_CHECK_S if uses else _CHECK_S_WHEN_IDLE)
            error = answer.get("error")
            if error and error != GONE and not kept.kill_at:
                self._kill(kept, f"it does not answer: {error}")

        self._attendant.ask("check", answered, deadline_s, url=kept.server.url)

    def _check_age(self, kept: KeptServer, now: float) -> None:
        """Marks a server as old that is to be replaced."""
        if not kept.is_old and now >= kept.since + _LEAST_AGE_S and (why := self._why_old(kept)):
            kept.is_old, kept.why = True, why
            log.info("Spark Connect server is to be replaced", server=kept.server.server_id, why=why)

    def _why_old(self, kept: KeptServer) -> str:
        settings = self._warm.settings
        rss = connect_server.memory_of_session(kept.pid)
        if settings.rss_limit and rss > settings.rss_limit:
            return f"it takes {size(rss)} of memory, more than connect.rss_limit allows"
        age_s = time.time() - kept.server.made_ms / 1000
        if settings.max_age_s and age_s > settings.max_age_s:
            return f"it is {age_s / 3600:.1f} hours old, more than connect.max_age_s allows"
        return "" if kept.server.is_as(settings) else "the settings connect have changed"


def _log(kept: KeptServer, event: str, **more: object) -> None:
    took_s = round(time.monotonic() - kept.since, 1)
    log.info(event, server=kept.server.server_id, pid=kept.pid, after_s=took_s, **more)
