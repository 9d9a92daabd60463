"""What is reported of a decision: it follows from the decision's changes, so that it holds for whatever made them.

A run that ended is reported where its record is written, a queue that is held where its pause is: so an event says what
the ledger says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, FORMAT_TRIGGER, unpack_dlh, unpack_tm
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.event_kinds import EVENT_QUEUES
from trigmon.mq.quantities import counted
from trigmon.mq.run import Ending
from trigmon.rules.attention import last_line
from trigmon.rules.dead_letters.manage import dead_message, name_of
from trigmon.rules.dead_letters.newest import why_dead
from trigmon.rules.event_messages.event_put import Happened
from trigmon.rules.model import events as e
from trigmon.rules.model.changes import AddMessage, AnyChange, EndUnit, SetAside, SetPause, WriteRun
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.run_facts import BREAKER
from trigmon.rules.model.stored_messages import StoredMessage

_RUN_EVENTS = {
    Ending.FAILED: "run_failed",
    Ending.COULD_NOT_START: "run_could_not_start",
    Ending.UNKNOWN: "run_end_unknown",
}
_OF_PAUSE = ("what", "name", "by", "reason")
_ENDS = {
    Ending.FAILED: "failed",
    Ending.COULD_NOT_START: "could not start",
    Ending.UNKNOWN: "ended, and nobody saw how",
}


class WhyDead(NamedTuple):
    """Why a message is a dead letter: the name of the reason, and a sentence; each empty where nothing says it."""

    reason_name: str = ""
    why: str = ""


def dead_in_unit(decision: Decision, dead_letter_q_name: str) -> Iterator[tuple[int, WhyDead]]:
    """Yields each unit of work in which a dead letter is put, with why: its commit reports it."""
    for change in decision.changes:
        if isinstance(change, AddMessage) and change.unit_id and change.q_name == dead_letter_q_name:
            yield change.unit_id, _why_dead(change)


def happened_by(decision: Decision, dead_letter_q_name: str, in_units: Mapping[int, WhyDead]) -> Iterator[Happened]:
    """Yields what a performed decision is to report; nothing that is about an event queue.

    ``in_units`` has by unit of work why its last dead letter is one.
    """
    for found in _all(decision, dead_letter_q_name, in_units):
        if not found.is_about_events:
            yield found


def _all(decision: Decision, dead_letter_q_name: str, in_units: Mapping[int, WhyDead]) -> Iterator[Happened]:
    moved_to = {event.to_q_name for event in decision.events if isinstance(event, e.PoisonMoved)}
    for change in decision.changes:
        if isinstance(change, WriteRun):
            yield from _of_run(change)
        elif isinstance(change, SetPause) and change.pause.is_breaker:
            q_name, why = change.pause.name, change.pause.reason
            yield Happened("queue_held", f"queue {q_name} is held: {why}", {"q_name": q_name, "why": why})
        elif isinstance(change, SetAside):
            fields = {"q_name": change.message.q_name, "msg_id": change.message.descriptor.msg_id.hex()}
            yield Happened("message_damaged", f"a damaged message of {fields['q_name']} was set aside", fields)
        elif count := _dead_letters(change, dead_letter_q_name, moved_to):
            dead = WhyDead()
            if isinstance(change, AddMessage):
                dead = _why_dead(change)
            elif isinstance(change, EndUnit):
                dead = in_units.get(change.unit.unit_id, dead)
            yield _dead_letter(dead_letter_q_name, count, dead)
    for event in decision.events:
        of_event = _OF_EVENT.get(type(event))
        if of_event is not None:
            yield from of_event(event)


def _of_run(change: WriteRun) -> Iterator[Happened]:
    """Yields the end of a run that went wrong, with the change that says so; a later change of the record is none."""
    run, how = change.run, change.run.ending
    if how not in _RUN_EVENTS or (change.before is not None and how == change.before.ending):
        return
    q_name, process = run.trigger.q_name, run.slot
    fields: dict[str, Any] = {"run_id": run.run_id, "q_name": q_name, "process_name": process}
    fields |= {"attempt": run.origin.attempt, "why": run.why}
    line = last_line(run) if how is Ending.FAILED else ""
    if how is Ending.FAILED:
        fields |= {"exit_status": run.outcome.exit_status, "signal": run.outcome.signal, "last_line": line}
    text = f"run {run.run_id} of {process} for queue {q_name} {_ENDS[how]}"
    last_output = f"last output: {line}" if line and line not in run.why else ""
    why = "; ".join(filter(None, (run.why, last_output)))
    yield Happened(_RUN_EVENTS[how], ": ".join(filter(None, (text, why))), fields)


def _dead_letters(change: AnyChange, dead_letter_q_name: str, moved_to: set[str]) -> int:
    """Returns how many messages a change brings to the dead-letter queue for others to see.

    One that was put aside is reported as such. A trigger message of an event queue is left out: its event could lead to
    the next.
    """
    if not dead_letter_q_name or dead_letter_q_name in moved_to:
        return 0
    if isinstance(change, AddMessage):
        return int(change.q_name == dead_letter_q_name and not change.unit_id and not _is_of_event_queue(change))
    if isinstance(change, EndUnit) and change.outcome is UnitOutcome.COMMITTED:
        return sum(count for (q_name, _), count in change.unit.puts.items() if q_name == dead_letter_q_name)
    return 0


def _dead_letter(q_name: str, count: int, dead: WhyDead) -> Happened:
    letters = "a message" if count == 1 else f"{count} messages"
    why = f"{'' if count == 1 else 'the last: '}{dead.why}" if dead.why else ""
    text = f"{letters} came to the dead-letter queue {q_name}" + (f": {why}" if why else "")
    return Happened("dead_letter", text, {"q_name": q_name, "count": count, **dead._asdict()})


def _why_dead(change: AddMessage) -> WhyDead:
    message = StoredMessage(
        change.number, change.q_name, change.priority, change.is_persistent, change.descriptor, change.data
    )
    dead = dead_message(message)
    return WhyDead(name_of(dead.reason), why_dead(dead))


def _is_of_event_queue(change: AddMessage) -> bool:
    if change.descriptor.format != FORMAT_DEAD_LETTER:
        return False
    try:
        header, data = unpack_dlh(change.data, change.descriptor.encoding)
        return header.format == FORMAT_TRIGGER and unpack_tm(data).q_name in EVENT_QUEUES
    except ValueError:
        return False


def _poison_moved(event: e.PoisonMoved) -> Iterator[Happened]:
    name = "message_put_aside" if event.to_q_name else "message_discarded"
    went = f"was put on {event.to_q_name}" if event.to_q_name else "was discarded"
    times = counted(event.backout_count, "time")
    text = f"a message of queue {event.q_name}, backed out {times}, {went}" + (f": {event.why}" if event.why else "")
    fields = {"q_name": event.q_name, "to_q_name": event.to_q_name, "msg_id": event.msg_id.hex()}
    yield Happened(name, text, {**fields, "backout_count": event.backout_count, "why": event.why})


def _dropped(event: e.TriggerMessageDropped | e.MessageDropped) -> Iterator[Happened]:
    what = "trigger message" if isinstance(event, e.TriggerMessageDropped) else "message"
    text = f"a {what} for queue {event.q_name} was dropped: {event.why}"
    yield Happened(event.name, text, {"q_name": event.q_name, "why": event.why})


def _moment_not_started(event: e.MomentNotStarted) -> Iterator[Happened]:
    text = f"schedule {event.schedule} started nothing: {event.why}"
    fields = {"name": event.schedule, "moment_ms": event.moment_ms, "why": event.why}
    yield Happened(event.name, text, fields)


def _operator_asked(event: e.OperatorAsked) -> Iterator[Happened]:
    about = event.about
    if event.name not in ("starting_paused", "starting_resumed"):
        return
    if about.get("paused_by") == BREAKER:
        text = f"queue {about['name']} is resumed by {about['by']}"
        yield Happened("queue_resumed", text, {"q_name": about["name"], "by": about["by"]})
        return
    fields: dict[str, Any] = {key: value for key, value in about.items() if key in _OF_PAUSE}
    subject, why = f"{about['what']} {about['name']}".rstrip(), about.get("reason", "")
    text = f"{subject} is {event.name.removeprefix('starting_')} by {about['by']}" + (f": {why}" if why else "")
    yield Happened(event.name, text, fields)


_OF_EVENT: dict[type[e.DecisionEvent], Callable[[Any], Iterator[Happened]]] = {
    e.PoisonMoved: _poison_moved,
    e.TriggerMessageDropped: _dropped,
    e.MessageDropped: _dropped,
    e.MomentNotStarted: _moment_not_started,
    e.OperatorAsked: _operator_asked,
}
