"""Pausing and resuming what triggering starts: a queue, a process, or everything; and schedules and watches.

The trigger conditions do not look at it: a paused queue takes and gives messages, and its trigger messages are
written. What a pause keeps back is a program: the ledger lets no run become due that a pause concerns
(:mod:`trigmon.rules.runs.run_ledger`). A schedule or a watch that is paused does not act itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trigmon.mq.attributes import Definition
from trigmon.mq.calls import Pause, Pauses, Resume
from trigmon.mq.errors import AttrValueError, CommandFailed, ObjectTypeError, UnknownObjectName
from trigmon.mq.explanation import moment
from trigmon.mq.replies import Done, Listing
from trigmon.rules.model.changes import AnyChange, DropPause, SetCause, SetPause
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import OperatorAsked
from trigmon.rules.model.facts import Facts, WideFacts, WorldFacts, WorldWants
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.run_facts import Cause, Paused
from trigmon.rules.model.stored_messages import Found

QUEUE, PROCESS, EVERYTHING = "queue", "process", "everything"
SCHEDULE, WATCH = "schedule", "watch"
LONGEST_REASON = 256


def wants_pause(call: Pause | Resume, connection: int) -> WorldWants:
    """Returns the wanted facts: a queue's name is resolved, so an alias pauses its base queue; others have none."""
    return WorldWants(connection, call.name if call.what == QUEUE else "")


def decide_pause(call: Pause, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Pauses starting from now on. An earlier pause keeps its user and reason: it is not overwritten."""
    what, name = _subject(call, facts)
    world = facts.world
    there: dict[str, tuple[Definition, ...]] = {
        PROCESS: world.processes,
        SCHEDULE: world.schedules,
        WATCH: world.watches,
    }
    if what in there and all(each.name != name for each in there[what]):
        raise UnknownObjectName(f"{what.upper()}({name})")
    reason = checked_reason(call.reason)
    before = _pause_of(what, name, facts)
    if before is not None:
        raise CommandFailed(f"{sentence(before)}; resume it first")
    pause = Paused(what, name, who(facts.connection), now, reason)
    event = OperatorAsked("starting paused", {**_event_fields(pause), "reason": reason})
    return Decision(Done(), [SetPause(pause)], events=(event,))


def decide_resume(call: Resume, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Resumes starting, as far as no other pause concerns it: everything also means what the breaker holds."""
    what, name = _subject(call, facts)
    ended = [pause for pause in (_pause_of(what, name, facts),) if pause is not None]
    if what == EVERYTHING:
        ended += [pause for pause in facts.pauses if pause.is_breaker]
    if not ended:
        nothing = "nothing is held, and not everything is paused"
        raise CommandFailed(nothing if what == EVERYTHING else f"{what} {name} is not paused")
    changes: list[AnyChange] = [DropPause(pause.what, pause.name) for pause in ended]
    held = {pause.name for pause in ended if pause.is_breaker}  # what was counted against them begins anew
    changes += [SetCause(Cause(each.slot, each.q_name)) for each in facts.causes if each.q_name in held]
    return Decision(Done(), changes, events=tuple(_resumed(pause, facts) for pause in ended))


def forget_failures(process_name: str, facts: WideFacts) -> Decision:
    """Returns the decision that begins anew what was counted against an altered process: it may have been mended.

    Queues that the breaker holds for it are resumed, pauses behind its failures end.
    """
    causes = [each for each in facts.causes if each.slot == process_name]
    q_names = {each.q_name for each in causes}
    held = [pause for pause in facts.pauses if pause.is_breaker and pause.what == QUEUE and pause.name in q_names]
    changes: list[AnyChange] = [SetCause(Cause(each.slot, each.q_name)) for each in causes]
    changes += [DropPause(pause.what, pause.name) for pause in held]
    return Decision(Done(), changes, events=tuple(_resumed(pause, facts) for pause in held))


def decide_pauses(call: Pauses, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists what is paused, everything first, the rest by name."""
    return Decision(Listing(rows=rows(facts.pauses)))


def rows(pauses: Iterable[Paused]) -> list[dict[str, Any]]:
    """Returns pauses as they are shown."""
    return [
        {
            "what": pause.what,
            "name": pause.name,
            "by": pause.by,
            "since_ms": pause.since_ms,
            "reason": pause.reason,
            "paused": sentence(pause),
        }
        for pause in sorted(pauses, key=lambda pause: (pause.what, pause.name))
    ]


def pauses_of(facts: WideFacts, q_name: object, process_name: object) -> list[Paused]:
    """Returns those that keep runs for this queue and of this process from being started."""
    return [pause for pause in facts.pauses if pause.concerns(q_name, process_name)]


def paused(facts: WideFacts, q_name: object, process_name: object) -> str:
    """Returns the same for a person; blank where nothing is paused."""
    return "; ".join(map(sentence, pauses_of(facts, q_name, process_name)))


def shown_pauses(facts: WideFacts, q_name: object, process_name: object) -> dict[str, Any]:
    """Returns the fields of a queue, or a process, that say whether it is paused, and whether the breaker holds it."""
    is_held = any(pause.is_breaker for pause in pauses_of(facts, q_name, process_name))
    return {"paused": paused(facts, q_name, process_name), "held": is_held}


def itself_paused(what: str, name: str, facts: WideFacts) -> str:
    """Returns the pause of a schedule or a watch for a person; blank where it is not paused."""
    pause = _pause_of(what, name, facts)
    return sentence(pause) if pause is not None else ""


def sentence(pause: Paused) -> str:
    """Returns a pause for a person: "queue ORDERS paused by alice since ...: the database is down"."""
    subject, since = f"{pause.what} {pause.name}".rstrip(), moment(pause.since_ms)
    if pause.is_breaker:
        return f"{subject} held since {since}: does not drain: {pause.reason}"
    return f"{subject} paused by {pause.by} since {since}" + (f": {pause.reason}" * bool(pause.reason))


def checked_reason(reason: str) -> str:
    """Returns what a person may give as the reason. Raises AttrValueError (4005)."""
    reason = reason.strip()
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise AttrValueError(f"a reason is one line of at most {LONGEST_REASON} characters")
    return reason


def who(connection: ConnectionFacts) -> str:
    """Returns the user as the kernel knows it; a rehearsal's connections have applications only."""
    return connection.user or connection.application or "nobody"


def _subject(call: Pause | Resume, facts: Facts) -> tuple[str, str]:
    """Returns what is meant, a queue by the name of the local queue behind it."""
    if call.what == EVERYTHING:
        if call.name:
            raise ObjectTypeError(f"everything has no name, and {call.name!r} was given")
        return EVERYTHING, ""
    if call.what in (PROCESS, SCHEDULE, WATCH):
        return call.what, call.name
    if call.what != QUEUE:
        raise ObjectTypeError(f"{call.what!r}: known are {QUEUE}, {PROCESS}, {SCHEDULE}, {WATCH} and {EVERYTHING}")
    if "@" in call.name:
        return QUEUE, call.name  # of a queue manager elsewhere
    queue, route = base_queue(call.name, facts)
    if route is not None:
        raise ObjectTypeError(f"{call.name} is a remote queue: nothing is started for it here")
    return QUEUE, queue.definition.name


def _pause_of(what: str, name: str, facts: WideFacts) -> Paused | None:
    return next((pause for pause in facts.pauses if (pause.what, pause.name) == (what, name)), None)


def _resumed(before: Paused, facts: Facts) -> OperatorAsked:
    by = {"by": who(facts.connection), "paused_by": before.by, "paused_ms": str(before.since_ms)}
    return OperatorAsked("starting resumed", _event_fields(before) | by)


def _event_fields(pause: Paused) -> dict[str, str]:
    return {"what": pause.what, "name": pause.name, "by": pause.by}
