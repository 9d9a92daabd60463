"""What the queue manager tells, as log lines: a sentence, the event's stable name (``event_name``) and its fields."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from trigmon.audit import Link
from trigmon.log import Seldom
from trigmon.qmgr import manager_events as events
from trigmon.qmgr.manager_events import Event, Telling
from trigmon.qmgr.sessions import Session
from trigmon.qmgr.waiting_commands import CommandDropped, CommandFailed, CommandRefused
from trigmon.rules.model import events as decided
from trigmon.server.audit_log import AuditLog, act_fields, denial_fields


class Logged(Telling):
    """Logs what an operator asks about afterwards. ``on_failed`` is called with sessions that met a bug."""

    def __init__(self, log: Any, on_failed: Callable[[Session], None], audit_file: str | None = None) -> None:
        self.log = log
        self.audit = AuditLog(audit_file, log)
        self.ten_a_second = Seldom(log, times=10)
        self.once_a_minute = Seldom(log, interval_s=60)
        self.on_failed = on_failed
        if not log.is_enabled_for(logging.DEBUG):
            self.ignored = _DEBUG

    def tell(self, event: Event) -> None:
        """Writes the event's line."""
        _LINES[type(event)](self, event)


def _trigger_message_available(to: Logged, event: events.TriggerMessageAvailable) -> None:
    """Logs a trigger message that the monitor can get from now on."""
    q_name = event.message.q_name
    to.log.debug("trigger message available", event_name=event.name, q_name=q_name, initiation_q=event.initiation_q)


def _trigger_fired(to: Logged, event: decided.TriggerFired) -> None:
    """Logs at debug level: on a busy queue of type EVERY there is a line for each message."""
    occasion = str(event.verdict.occasion)
    to.log.debug("trigger message written", event_name=event.name, q_name=event.q_name, occasion=occasion)


def _trigger_message_dropped(to: Logged, event: decided.TriggerMessageDropped) -> None:
    """Logs a trigger message that will start no program."""
    to.ten_a_second.warning("trigger message dropped", event_name=event.name, q_name=event.q_name, why=event.why)


def _message_dropped(to: Logged, event: decided.MessageDropped) -> None:
    """Logs a message, such as a report, that could not be put anywhere."""
    to.ten_a_second.warning("message dropped", event_name=event.name, q_name=event.q_name, why=event.why)


def _poison_moved(to: Logged, event: decided.PoisonMoved) -> None:
    """Logs each poison message with the queue to which it went: its work was not done."""
    moved, discarded = "a poison message was put aside", "a poison message was discarded, as it asked to be"
    to.log.warning(
        moved if event.to_q_name else discarded,
        event_name=event.name,
        q_name=event.q_name,
        to_q_name=event.to_q_name,
        msg_id=event.msg_id.hex(),
        backout_count=event.backout_count,
        **({"why": event.why} if event.why else {}),
    )


def _poison_kept(to: Logged, event: decided.PoisonKept) -> None:
    """Logs once a minute: the message returns with every get."""
    to.once_a_minute.warning(
        "a poison message has nowhere to go and is handed out again",
        event_name=event.name,
        q_name=event.q_name,
        msg_id=event.msg_id.hex(),
        backout_count=event.backout_count,
        why=event.why,
    )


def _operator_asked(to: Logged, event: decided.OperatorAsked) -> None:
    """Logs what an operator asked for: it may be why nothing was started."""
    to.log.info(event.event, event_name=event.name, **event.about)


def _queue_held(to: Logged, event: decided.QueueHeld) -> None:
    """Logs a queue for which nothing is started until an operator releases it."""
    to.log.warning("queue held: does not drain", event_name=event.name, q_name=event.q_name, why=event.why)


def _moment_not_started(to: Logged, event: decided.MomentNotStarted) -> None:
    """Logs a moment of a schedule for which a condition did not hold."""
    to.ten_a_second.warning(
        "a schedule started nothing",
        event_name=event.name,
        schedule=event.schedule,
        moment_ms=event.moment_ms,
        why=event.why,
    )


def _event_message_dropped(to: Logged, event: decided.EventMessageDropped) -> None:
    """Logs once a minute: a full event queue takes no event until somebody reads it."""
    to.once_a_minute.warning(
        "event message dropped", event_name=event.name, q_name=event.q_name, dropped=event.event, why=event.why
    )


def _message_damaged(to: Logged, event: events.MessageDamaged) -> None:
    """Logs damage of the disk or the file: programs do not get the message, and its row is kept."""
    to.log.error("a damaged message was set aside", event_name=event.name, q_name=event.q_name, row=event.number)


def _shared_queues_unjudged(to: Logged, event: events.SharedQueuesUnjudged) -> None:
    """Logs that messages of other members start no program for now."""
    sentence = "what other members did cannot be judged yet, so triggers wait"
    to.log.warning(sentence, event_name=event.name, why=str(event.why))


def _shared_queues_judged(to: Logged, event: events.SharedQueuesJudged) -> None:
    to.log.info("what other members did is judged again", event_name=event.name)


def _not_authorized(to: Logged, event: events.NotAuthorizedCall) -> None:
    """Logs every denial, up to ten a second."""
    fields = denial_fields(event)
    to.ten_a_second.warning("not authorized", **fields, **_place(to.audit.write_denial(fields)))


def _administrative_act(to: Logged, event: events.AdministrativeAct) -> None:
    """Logs what was changed, by which user, from where, and how it was before."""
    fields = act_fields(event)
    to.log.info("an administrative act", **fields, **_place(to.audit.write(fields)))


def _place(place: Link | None) -> dict[str, Any]:
    """Returns where the audit file has it: lines that go missing at its end are missed by this."""
    return {} if place is None else {"audit_number": place.number, "audit_hash": place.hash}


def _call_failed(to: Logged, event: events.CallFailed) -> None:
    """Logs a bug with its traceback, without the data of the call."""
    to.log.error("a call failed by a bug", event_name=event.name, call=type(event.call).__name__, exc_info=event.error)
    to.on_failed(event.session)


def _command_dropped(to: Logged, event: CommandDropped) -> None:
    """Logs a command that was not answered: from whom it came, and what was wrong."""
    it = event.descriptor
    to.ten_a_second.warning(
        "a command was dropped",
        event_name=event.name,
        msg_id=it.msg_id.hex(),
        user=event.user,
        application=it.put_appl_name,
        reply_to_q=it.reply_to_q,
        why=event.why,
    )


def _command_refused(to: Logged, event: CommandRefused) -> None:
    """Logs a command that was refused: its user has the reason in the reply, so it is no warning."""
    to.ten_a_second.info(
        "a command was refused",
        event_name=event.name,
        command=event.command,
        object_name=event.object_name,
        user=event.user,
        application=event.application,
        reason=event.reason,
        why=event.why,
    )


def _command_failed(to: Logged, event: CommandFailed) -> None:
    """Logs a bug of the command server with its traceback."""
    to.log.error("a command failed by a bug", event_name=event.name, command=event.command, exc_info=event.error)


def _session_ended(to: Logged, event: events.SessionEnded) -> None:
    """Logs the end of a connection by an operator, and has it cut."""
    ended, by = event.session.identity, event.by.identity
    to.log.warning(
        "an operator ended a connection",
        event_name=event.name,
        application=ended.application,
        pid=ended.pid,
        by=by.user,
    )
    to.on_failed(event.session)


_LINES: dict[type[Event], Callable[[Logged, Any], None]] = {
    events.TriggerMessageAvailable: _trigger_message_available,
    decided.TriggerFired: _trigger_fired,
    decided.TriggerMessageDropped: _trigger_message_dropped,
    decided.MessageDropped: _message_dropped,
    decided.PoisonMoved: _poison_moved,
    decided.PoisonKept: _poison_kept,
    decided.OperatorAsked: _operator_asked,
    decided.QueueHeld: _queue_held,
    decided.MomentNotStarted: _moment_not_started,
    decided.EventMessageDropped: _event_message_dropped,
    events.MessageDamaged: _message_damaged,
    events.SharedQueuesUnjudged: _shared_queues_unjudged,
    events.SharedQueuesJudged: _shared_queues_judged,
    events.NotAuthorizedCall: _not_authorized,
    events.AdministrativeAct: _administrative_act,
    events.CallFailed: _call_failed,
    events.SessionEnded: _session_ended,
    CommandDropped: _command_dropped,
    CommandRefused: _command_refused,
    CommandFailed: _command_failed,
}

_DEBUG: frozenset[type[Event]] = frozenset((events.TriggerMessageAvailable, decided.TriggerFired))
"""What is logged at debug level, some of it for each message: it is handed over only where such lines are written."""
