"""What the queue manager tells, as log lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.log import Seldom
from trigmon.mq.calls import Call
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import MQError, NotAuthorized
from trigmon.qmgr.events import Telling
from trigmon.qmgr.sessions import Session
from trigmon.rules.model.decision import Aside, Asked, NotAside, QueueHeld
from trigmon.rules.model.verdict import Verdict


class Logged(Telling):
    """Logs what an operator asks about afterwards. ``on_failed`` hears of sessions that met a bug."""

    def __init__(self, log: Any, on_failed: Callable[[Session], None]) -> None:
        self._log = log
        self._seldom = Seldom(log, times=10)
        self._hourglass = Seldom(log, interval_s=60)
        self._on_failed = on_failed

    def trigger_available(self, q_mgr_name: str, initiation_q: str, message: TriggerMessage) -> None:
        """The monitor can get it from now on."""
        self._log.debug("trigger message available", q_name=message.q_name, initiation_q=initiation_q)

    def trigger_written(self, q_name: str, verdict: Verdict) -> None:
        """On a busy queue of type EVERY that is a line a message, so it is for those who look closely."""
        self._log.debug("trigger message written", q_name=q_name, occasion=str(verdict.occasion))

    def trigger_dropped(self, q_name: str, why: str) -> None:
        """Somebody's program is not going to be started."""
        self._seldom.warning("trigger message dropped", q_name=q_name, why=why)

    def message_lost(self, q_name: str, why: str) -> None:
        """Somebody will not hear of what became of a message."""
        self._seldom.warning("message dropped", q_name=q_name, why=why)

    def message_put_aside(self, told: Aside) -> None:
        """Each one: somebody's work was not done, and here is where it lies now."""
        self._log.warning(
            "a poison message was put aside" if told.to_q_name else "a poison message was discarded, as it asked to be",
            q_name=told.q_name,
            to_q_name=told.to_q_name,
            msg_id=told.msg_id.hex(),
            backout_count=told.backout_count,
            **({"why": told.why} if told.why else {}),
        )

    def message_not_put_aside(self, told: NotAside) -> None:
        """It comes round with every get, so once a minute is enough."""
        self._hourglass.warning(
            "a poison message has nowhere to go and is handed out again",
            q_name=told.q_name,
            msg_id=told.msg_id.hex(),
            backout_count=told.backout_count,
            why=told.why,
        )

    def asked(self, told: Asked) -> None:
        """Who looks later why nothing was started finds it here."""
        self._log.info(told.event, **told.about)

    def queue_held(self, told: QueueHeld) -> None:
        """Nothing is started for it until somebody has looked."""
        self._log.warning("queue held: does not drain", q_name=told.q_name, why=told.why)

    def message_damaged(self, q_name: str, number: int) -> None:
        """The disk or the file was damaged: a message is lost to programs, and its row kept."""
        self._log.error("a damaged message was set aside", q_name=q_name, row=number)

    def not_heeded(self, why: MQError | None) -> None:
        """Programs that other members' messages should start are not started meanwhile."""
        if why is None:
            self._log.info("what other members did is heeded again")
        else:
            self._log.warning("what other members did cannot be heeded yet, so triggers wait", why=str(why))

    def refused(self, session: Session, call: Call, error: MQError) -> None:
        """Every denial is logged; up to ten a second."""
        if isinstance(error, NotAuthorized):
            who = session.identity
            self._seldom.warning(
                "not authorized",
                call=type(call).__name__,
                about=error.about,
                user=who.user or "nobody (TCP)",
                uid=who.uid,
                pid=who.pid,
                application=who.application,
            )

    def failed(self, session: Session, call: Call, error: BaseException) -> None:
        """A bug: its traceback, and no word of what the call held."""
        self._log.error("a call failed by a bug", call=type(call).__name__, exc_info=error)
        self._on_failed(session)
