"""MQCLOSE, MQDISC and lost connections. The last reader's close is occasion 12; uncommitted work survives a close."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Backout, Call, Close, Commit, Disconnect, Done, LostConnection
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.errors import HobjError, OptionNotValidForType, OptionsError
from trigmon.rules.changes import AnyChange, CloseHandle, DropConnection, SetDefinition
from trigmon.rules.decision import Decision, Ids
from trigmon.rules.errands import Forget
from trigmon.rules.facts import Facts, Found
from trigmon.rules.triggers.effects import trigger
from trigmon.rules.triggers.extensions import comes_back, rearmed
from trigmon.rules.triggers.situation import Happened, Situation

_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value


def decide_close(call: Close, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """MQCLOSE."""
    handle = facts.handle
    if handle is None:
        raise HobjError(f"handle {call.handle}")
    if call.options & ~3 or call.options == 3:
        raise OptionsError(f"close options {call.options:#x}")
    if call.options:
        raise OptionNotValidForType(f"{handle.object_name}: only a dynamic queue can be deleted by closing it")
    changes: list[AnyChange] = [CloseHandle(handle.handle)]
    queue = facts.queue
    if queue is None or not handle.options & _INPUT:
        return Decision(Done(), changes)
    left = queue.open_input_count - 1
    closed = replace(queue, open_input_count=left, open_exclusive=False)
    initiation = facts.initiation
    if initiation is not None and initiation.definition.name == queue.definition.name:
        initiation = closed
    situation = Situation(
        Happened.CLOSE,
        closed,
        facts.process,
        initiation,
        facts.q_mgr.trigger_interval,
        now,
        had_readers=queue.open_input_count,
    )
    effects = trigger(situation, facts.q_mgr.name, ids)
    if comes_back(closed):
        changes.append(SetDefinition(ObjectType.QLOCAL, rearmed(closed.definition)))
    return Decision(Done(), [*changes, *effects.changes], effects.errands, effects.told, judged=effects.judged)


def decide_disconnect(call: Disconnect, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """MQDISC: a commit, then a close of every handle in the order of opening."""
    ends: list[Call] = [Commit(unit=facts.connection.unit_number)] if facts.connection.unit_id else []
    return Decision(Done(), errands=[*ends, *_closes(facts), Forget()])


def decide_lost_connection(call: LostConnection, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """A connection ended without MQDISC: a backout, then its closes."""
    ends: list[Call] = [Backout(unit=facts.connection.unit_number)] if facts.connection.unit_id else []
    return Decision(Done(), errands=[*ends, *_closes(facts), Forget()])


def decide_forget(call: Forget, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Strikes the connection off."""
    return Decision(Done(), [DropConnection(facts.connection.connection)])


def _closes(facts: Facts) -> list[Call]:
    return [Close(handle=handle) for handle in facts.connection.handles]
