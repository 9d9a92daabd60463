"""Shared queues: what counts, by which criteria each member judges, who is told, and what a lost member leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, both, decided
from trigmon.mq.enums import QsgDisp, TriggerType, UnitOutcome
from trigmon.qmgr.moved_queues import MovedQueues
from trigmon.rules import shared_triggers
from trigmon.rules.model.changes import AddMessage, SetDefinition, StampTrigger
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.group_changes import NoteTriggered
from trigmon.rules.model.internal_calls import JudgeMoved, JudgeShared, TakeCopy
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_queue import SharedQueue
from trigmon.rules.model.shared_view import Shared
from trigmon.rules.model.situation import Situation
from trigmon.rules.model.state import Standing
from trigmon.rules.objects import define, sharing_scope
from trigmon.rules.triggers import effects, sharing
from trigmon.store.memory import group, member_writes
from trigmon.store.memory.group import Membership, MemoryGroup
from trigmon.store.memory.member_writes import MemberWrites

FIRST, EVERY, DEPTH = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH


def _instead(where: Any, name: str, wrap: Callable[..., Any]) -> Callable[[Patches], None]:
    """Plants ``wrap(as it should be, *arguments)`` in the place of a function."""
    right = getattr(where, name)
    return lambda patches: patches.setattr(where, name, lambda *args, **named: wrap(right, *args, **named))


def _seen(change: Callable[[QueueFacts, SharedQueue], QueueFacts]) -> Callable[[Patches], None]:
    """Members see a shared queue otherwise than it is."""

    def seen_by(right: Any, queue: SharedQueue, member: str, stamp: int | None) -> QueueFacts:
        return change(right(queue, member, stamp), queue)

    return _instead(SharedQueue, "seen_by", seen_by)


def _without(right: Any, *args: Any) -> Any:
    return None


def _uncommitted_too(queue: QueueFacts, _: SharedQueue) -> QueueFacts:
    return replace(queue, depths=(queue.depths[0] + queue.uncommitted_puts, *queue.depths[1:]))


def _got_too(queue: QueueFacts, _: SharedQueue) -> QueueFacts:
    return replace(queue, depths=(queue.depths[0] + queue.uncommitted_gets, *queue.depths[1:]))


def _added(wrap: Callable[..., None]) -> Callable[[Patches], None]:
    right = member_writes.WRITE_MEMBER[AddMessage]
    return lambda patches: patches.setitem(member_writes.WRITE_MEMBER, AddMessage, lambda *args: wrap(right, *args))


def _put_at_once(right: Any, self: MemberWrites, change: Any) -> None:
    right(self, change)
    if change.unit_id:
        queue = self.group.queues[change.q_name]
        self.write(member_writes.came(queue, member_writes.counts_of([change.priority])))


def _all_readers_are_own(queue: QueueFacts, _: SharedQueue) -> QueueFacts:
    return replace(queue, open_input_count=queue.readers, shared=replace(queue.shared, readers=()))


def _nobody_elsewhere(queue: QueueFacts, _: SharedQueue) -> QueueFacts:
    return replace(queue, shared=replace(queue.shared, readers=()))


def _first(definition: Any, shared: Shared, **values: Any) -> Any:
    return replace(definition, **values) if shared.readers else definition


def _disarms_by_first(right: Any, situation: Situation, *args: Any, **named: Any) -> Any:
    found = right(situation, *args, **named)
    definition = situation.queue.definition
    if not found.events or situation.queue.shared is None or definition.trigger_type is not DEPTH:
        return found
    if not situation.queue.shared.readers:
        return found
    off = SetDefinition(effects.ObjectType.QLOCAL, effects.disarmed(definition))
    return replace(found, changes=[*found.changes, off])


def _stays_on(right: Any, situation: Situation, *args: Any, **named: Any) -> Any:
    found = right(situation, *args, **named)
    return replace(found, changes=[c for c in found.changes if not isinstance(c, SetDefinition)])


def _somebody_has_fired(right: Any, neighbour: Any) -> bool:
    judged = neighbour.judged
    return judged is not None and neighbour.queue.shared.triggers > judged.shared.triggers


def _unstamped(right: Any, call: JudgeShared, *rest: Any) -> Any:
    decision = right(call, *rest)
    if any(isinstance(change, NoteTriggered) for change in decision.changes):
        return decision
    return replace(decision, changes=[c for c in decision.changes if not isinstance(c, StampTrigger)])


def _others_puts_unseen(right: Any, neighbour: Any, facts: Any, now: int, *, acted: bool) -> Any:
    return right(neighbour, facts, now, acted=acted) if acted else []


def _own_close_only(right: Any, neighbour: Any, *rest: Any) -> Any:
    judged = neighbour.judged
    return right(neighbour, *rest) if judged is not None and judged.open_input_count else []


def _others_close_only(right: Any, neighbour: Any, *rest: Any) -> Any:
    return [] if neighbour.queue.readers else right(neighbour, *rest)


def _any_close(right: Any, neighbour: Any, *rest: Any) -> Any:
    """Also a close that leaves other readers elsewhere wakes those who read nothing."""
    queue, judged = neighbour.queue, neighbour.judged
    if judged is not None and judged.readers > queue.readers:
        spoiled = replace(judged, open_input_count=1)
        return right(replace(neighbour, judged=spoiled), *rest)
    return right(neighbour, *rest)


def _changes_of_others_unseen(right: Any, facts: Any, queue: Any, neighbour: Any, before: Any, *rest: Any) -> Any:
    return right(facts, queue, neighbour, queue.definition, *rest)


def _acted_everywhere(right: Any, call: JudgeShared, *rest: Any) -> Any:
    return right(JudgeShared(q_name=call.q_name, acted=True), *rest)


def _acted_nowhere(right: Any, call: JudgeShared, *rest: Any) -> Any:
    return right(JudgeShared(q_name=call.q_name, acted=False), *rest)


def _recovered(drop_puts: bool = True, requeue: bool = True, count: bool = True) -> Callable[[Patches], None]:
    """A member's loss is recovered with something left out."""

    def backed_out(right: Any, self: MemoryGroup, q_name: str, queue: SharedQueue, own: int) -> SharedQueue:
        for row in list(self.rows.of.get(q_name, {}).values()):
            if row.put_by // group.OWN_NUMBERS == own:
                if drop_puts:
                    self.rows.drop(row)
                else:
                    self.rows.set(group.Row(row.message))
            elif row.taken_by // group.OWN_NUMBERS == own and requeue:
                message = group.once_more(row.message) if count else row.message
                self.rows.set(group.Row(message, row.put_by))
                queue = group.lies(queue, group.counts_of([row.message.priority]))
        return queue

    return _instead(MemoryGroup, "_backed_out", backed_out)


def _as_group(decision: Decision) -> Decision:
    own = QsgDisp.Q_MGR
    changes = [
        replace(c, definition=replace(c.definition, qsg_disp=own)) if isinstance(c, SetDefinition) else c
        for c in decision.changes
    ]
    return replace(decision, changes=changes)


def _locks_stay(right: Any, self: MemoryGroup, member: str) -> None:
    locks = dict(self.locks)
    right(self, member)
    self.locks.update(locks)


def _half_a_unit(right: Any, self: Membership, change: Any, q_names: Any) -> None:
    return right(self, replace(change, outcome=UnitOutcome.COMMITTED), q_names)


COUNTING = [
    Fault("shared: uncommitted messages count", _seen(_uncommitted_too)),
    Fault("shared: messages got and not committed count", _seen(_got_too)),
    Fault("shared: a put in a unit is an occasion at once", _added(_put_at_once)),
    Fault(
        "shared: a commit is no occasion",
        lambda patches: patches.setattr(member_writes, "came", lambda queue, counts: member_writes.lies(queue, counts)),
    ),
    Fault("shared: a backout commits the group's half", _instead(Membership, "end_unit", _half_a_unit)),
    Fault(
        "shared: uncommitted messages take up no place",
        lambda patches: patches.setattr(QueueFacts, "lying", property(lambda queue: queue.depth)),
    ),
    Fault(
        "shared: a trigger message on it is a put of its own",
        _added(lambda right, self, change: right(self, replace(change, trigger=None))),
    ),
]
CRITERIA = [
    Fault("4a: nothing changes on the others", _instead(sharing, "criteria", lambda right, d, shared: d)),
    Fault(
        "4a: only the type changes",
        _instead(sharing, "criteria", lambda right, d, shared: _first(d, shared, trigger_type=FIRST)),
    ),
    Fault(
        "4a: only the priority changes",
        _instead(sharing, "criteria", lambda right, d, shared: _first(d, shared, trigger_msg_priority=0)),
    ),
    Fault(
        "4a: NONE becomes FIRST as well",
        _instead(
            sharing,
            "criteria",
            lambda right, d, shared: _first(d, shared, trigger_type=FIRST, trigger_msg_priority=0),
        ),
    ),
    Fault(
        "4a: EVERY stays EVERY",
        _instead(sharing, "criteria", lambda right, d, shared: d if d.trigger_type is EVERY else right(d, shared)),
    ),
    Fault("4a: the put is judged by the definition", _instead(shared_triggers, "criteria", lambda right, d, shared: d)),
    Fault("4b: an exclusive reader silences nobody else", _instead(sharing, "silenced_by", lambda *_: "")),
    Fault(
        "4b: an exclusive reader does not silence EVERY",
        _instead(
            sharing,
            "silenced_by",
            lambda right, queue, shared: "" if queue.definition.trigger_type is EVERY else right(queue, shared),
        ),
    ),
    Fault(
        "4b: any reader silences everybody",
        _instead(
            sharing, "silenced_by", lambda right, q, shared: shared.readers[0].q_mgr_name if shared.readers else ""
        ),
    ),
    Fault("4b: readers of other members count as own", _seen(_all_readers_are_own)),
    Fault("4b: nobody hears of readers on other members", _seen(_nobody_elsewhere)),
    Fault(
        "4b: an exclusive reader leaves when any reader does",
        _instead(
            group, "opened", lambda right, q, member, h, by: right(q, member, replace(h, options=h.options & ~4), by)
        ),
    ),
]
MEMBERS = [
    Fault("members: nobody judges what others did", _instead(MovedQueues, "judge_others", _without)),
    Fault("members: nobody judges what he did himself", _instead(MovedQueues, "_judge", _without)),
    Fault("members: EVERY is each member's", decided(JudgeShared, _acted_everywhere)),
    Fault("members: EVERY is nobody's", decided(JudgeShared, _acted_nowhere)),
    Fault("members: puts of others are not judged", _instead(shared_triggers, "_puts", _others_puts_unseen)),
    Fault("members: closes are not judged", _instead(shared_triggers, "_close", lambda *_: [])),
    Fault("12: only a member's own last reader counts", _instead(shared_triggers, "_close", _own_close_only)),
    Fault("12: only the group's last reader counts", _instead(shared_triggers, "_close", _others_close_only)),
    Fault("12: any reader that closes counts", _instead(shared_triggers, "_close", _any_close)),
    Fault("13: what changed is not seen", _instead(shared_triggers, "situations", _changes_of_others_unseen)),
    Fault(
        "members: what has been judged is judged again",
        decided(
            JudgeMoved,
            lambda right, call, *rest: replace(
                right(call, *rest), internal_calls=right(call, *rest).internal_calls[:-1]
            ),
        ),
    ),
    Fault(
        "DEPTH: the first member's firing keeps the others quiet",
        _instead(shared_triggers, "in_force", lambda r, n, j: n.definition),
    ),
    Fault("DEPTH: judged as FIRST, it switches itself off", _instead(shared_triggers, "trigger", _disarms_by_first)),
    Fault("DEPTH: on a shared queue it stays on", _instead(shared_triggers, "trigger", _stays_on)),
    Fault(
        "group: each member writes to a shared initiation queue",
        _instead(shared_triggers, "_group_has_fired", lambda *_: False),
    ),
    Fault(
        "group: one member writes, also where each has its own initiation queue",
        both(
            _instead(effects, "NoteTriggered", lambda right, q_name, _, is_off: right(q_name, True, is_off)),
            _instead(shared_triggers, "_group_has_fired", _somebody_has_fired),
        ),
    ),
    Fault("group: the others have no stamp of the group's trigger message", decided(JudgeShared, _unstamped)),
    Fault(
        "8: only the member's own monitors read a shared initiation queue",
        lambda patches: patches.setattr(QueueFacts, "readers", property(lambda queue: queue.open_input_count)),
    ),
]
LOSSES = [
    Fault("lost member: its uncommitted puts are committed", _recovered(drop_puts=False)),
    Fault("lost member: its uncommitted gets are gone", _recovered(requeue=False)),
    Fault("lost member: the backout count stays", _recovered(count=False)),
    Fault("lost member: its readers stay", _instead(group, "left", lambda right, queue, member: queue)),
    Fault("lost member: its locks stay", _instead(MemoryGroup, "recover", _locks_stay)),
    Fault("scan: every member looks for expired messages", _instead(Membership, "takes_role", lambda *_: True)),
    Fault("scan: nobody takes over", _instead(Membership, "takes_role", lambda right, self, *_: self.member == "QM1")),
    Fault(
        "names: a private object may be defined beside a shared one",
        _instead(sharing_scope, "disposition", lambda *_: None),
    ),
    Fault(
        "names: a private object hides the shared one",
        _instead(Standing, "facts", lambda right, *args: replace(right(*args), is_ambiguous=False)),
    ),
    Fault("names: whoever deletes need not say whose it is", _instead(define, "check_meant", _without)),
    Fault(
        "names: a queue is shared where there is no group",
        _instead(Standing, "facts", lambda right, *args: replace(right(*args), group="ANY")),
    ),
]
COPIES = [
    Fault("copies: nobody takes one", decided(TakeCopy, lambda *_: Decision())),
    Fault("copies: they hide what is a member's own", _instead(define, "disposition", lambda *_: QsgDisp.COPY)),
    Fault(
        "copies: they stay when the group's definition goes",
        decided(
            TakeCopy, lambda right, call, facts, *rest: right(call, facts, *rest) if facts.of_group else Decision()
        ),
    ),
    Fault(
        "copies: the group's definition is one queue manager's as well",
        decided(TakeCopy, lambda right, call, facts, *rest: _as_group(right(call, facts, *rest))),
    ),
]
FAULTS = [*COUNTING, *CRITERIA, *MEMBERS, *LOSSES, *COPIES]
