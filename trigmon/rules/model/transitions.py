"""State transitions: one function a kind of change, the one copy of the arithmetic for every store.

Each only writes through :meth:`Standing.write` and :meth:`Standing.drop`, so that a call can be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from trigmon.mq.attributes import QUEUE_KINDS, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.handle_transitions import FOLLOW_HANDLES, add_count, forget_lock
from trigmon.rules.model.handles import HeldTrigger, UnitFacts, with_place
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Serving
from trigmon.rules.model.run_program import is_trigger
from trigmon.rules.model.stored_messages import StoredMessage

if TYPE_CHECKING:
    from trigmon.rules.model.state import Standing

_MOST_TRIGGERS = 256
"""How many trigger messages a unit of work remembers, many more than a monitor takes at a time."""


def _count(standing: Standing, q_name: str, priority: int, by: int, puts: int = 0, gets: int = 0) -> None:
    queue = standing.queues[q_name]
    depths = list(queue.depths)
    depths[priority] += by
    standing.write(
        standing.queues,
        q_name,
        QueueFacts(
            queue.definition,
            tuple(depths),
            queue.open_input_count,
            queue.open_exclusive,
            queue.open_output_count,
            queue.open_count,
            queue.uncommitted_puts + puts,
            queue.uncommitted_gets + gets,
            queue.trigger_stamp_ms,
            queue.is_deleted,
            queue.reserved,
            queue.shared,
        ),
    )


def _add_message(standing: Standing, change: c.AddMessage, count: int = 1) -> None:
    """Counts a message, or so many that are alike."""
    in_unit = change.unit_id != 0
    _count(standing, change.q_name, change.priority, count, puts=count if in_unit else 0)
    if in_unit:
        unit = standing.units[change.unit_id]
        key = (change.q_name, change.priority)
        held = unit.held
        if change.is_held:
            held = (*held, HeldTrigger(change.q_name, change.priority, change.trigger, change.on_backout))
        standing.write(
            standing.units,
            unit.unit_id,
            replace(
                unit,
                count=unit.count + (0 if change.is_further else count),
                is_durable=unit.is_durable or change.is_persistent,
                puts={**unit.puts, key: unit.puts.get(key, 0) + count},
                held=held,
            ),
        )


def follow_alike_puts(standing: Standing, puts: Sequence[c.AddMessage]) -> None:
    """Applies puts that are alike (:mod:`trigmon.rules.model.alike_puts`) to the state, as one change each does."""
    _add_message(standing, puts[0], len(puts))


def _take_message(standing: Standing, change: c.TakeMessage) -> None:
    message = change.message
    _count(standing, message.q_name, message.priority, -1, gets=1)
    forget_lock(standing, message.number)
    unit = standing.units[change.unit_id]
    key = (message.q_name, message.priority)
    standing.write(
        standing.units,
        unit.unit_id,
        replace(
            unit,
            count=unit.count + 1,
            is_durable=unit.is_durable or message.is_persistent,
            gets={**unit.gets, key: unit.gets.get(key, 0) + 1},
            marked=change.marked or unit.marked,
            triggers=(*unit.triggers, message) if _is_remembered(message, unit) else unit.triggers,
        ),
    )


def _is_remembered(message: StoredMessage, unit: UnitFacts) -> bool:
    return is_trigger(message) and len(unit.triggers) < _MOST_TRIGGERS


def _remove_message(standing: Standing, change: c.RemoveMessage | c.SetAside) -> None:
    _count(standing, change.message.q_name, change.message.priority, -1)
    forget_lock(standing, change.message.number)


def _begin_unit(standing: Standing, change: c.BeginUnit) -> None:
    unit = UnitFacts(change.unit_id, change.number, change.connection, change.client_id)
    if change.carried is not None:
        first = {(change.carried.q_name, change.carried.priority): 1}
        unit = replace(unit, count=1, is_durable=change.carried.is_persistent, gets=first)
    standing.write(standing.units, change.unit_id, unit)
    connection = standing.connections[change.connection]
    standing.write(
        standing.connections,
        change.connection,
        replace(connection, unit_id=change.unit_id, unit_number=change.number),
    )


def _carry_over(standing: Standing, change: c.CarryOver) -> None:
    """Leaves the state as it is: the end of one unit and the beginning of the next change it."""


def _skip_unit(standing: Standing, change: c.SkipUnit) -> None:
    connection = standing.connections[change.connection]
    standing.write(standing.connections, change.connection, replace(connection, unit_number=change.number))


def _note_refused(standing: Standing, change: c.NoteRefused) -> None:
    connection = standing.connections.get(change.connection)
    if connection is not None:
        standing.write(standing.connections, change.connection, replace(connection, refused_unit=change.number))


def _end_unit(standing: Standing, change: c.EndUnit) -> None:
    unit = change.unit
    committed = change.outcome is UnitOutcome.COMMITTED
    kept: dict[tuple[str, int], int] = {}
    for held in unit.held:
        if held.on_backout:
            key = (held.q_name, held.priority)
            kept[key] = kept.get(key, 0) + 1
    for (q_name, priority), count in unit.puts.items():
        gone = 0 if committed else count - kept.get((q_name, priority), 0)
        _count(standing, q_name, priority, -gone, puts=-count)
    for (q_name, priority), count in unit.gets.items():
        _count(standing, q_name, priority, 0 if committed else count, gets=-count)
    for (number, side), place in () if committed else unit.places.items():
        handle = standing.handles.get(number)
        if handle is not None:
            standing.write(standing.handles, number, with_place(handle, side, place))
    standing.drop(standing.units, unit.unit_id)
    connection = standing.connections.get(unit.connection)
    if connection is not None:
        standing.write(standing.connections, connection.connection, replace(connection, unit_id=0))


def _set_definition(standing: Standing, change: c.SetDefinition) -> None:
    definition = change.definition
    if isinstance(definition, LocalQueue):
        queue = standing.queues.get(definition.name)
        facts = QueueFacts(definition) if queue is None else replace(queue, definition=definition)
        before = None if queue is None else queue.definition.initiation_q_name
        if before != definition.initiation_q_name:
            standing.serve(definition.name, before, definition.initiation_q_name)
        if queue is not None:
            standing.count_dynamic(queue.definition, -1)
        standing.count_dynamic(definition, 1)
        standing.write(standing.queues, definition.name, facts)
    else:
        standing.define(definition, standing.write)


def _drop_definition(standing: Standing, change: c.DropDefinition) -> None:
    if change.object_type is ObjectType.QLOCAL:
        gone = standing.queues[change.name].definition
        standing.serve(change.name, gone.initiation_q_name, None)
        standing.count_dynamic(gone, -1)
    standing.drop(standing.tables()[change.object_type], change.name)
    if change.object_type is ObjectType.QLOCAL and change.name in standing.deleted:
        standing.drop(standing.deleted, change.name)
    pause = pause_of(change)
    if pause in standing.pauses:
        standing.drop(standing.pauses, pause)
    for cause in causes_of(change, standing.causes):
        standing.drop(standing.causes, cause)
    for reservation in [each for each in standing.reservations.values() if each.q_name == change.name]:
        if change.object_type is ObjectType.QLOCAL:
            _stand_behind(standing, reservation.number, reservation.behind, ())
            standing.drop(standing.reservations, reservation.number)


def _delete_logically(standing: Standing, change: c.DeleteLogically) -> None:
    standing.write(standing.queues, change.q_name, replace(standing.queues[change.q_name], is_deleted=True))
    standing.write(standing.deleted, change.q_name, None)


def _stamp_trigger(standing: Standing, change: c.StampTrigger) -> None:
    standing.write(standing.queues, change.q_name, replace(standing.queues[change.q_name], trigger_stamp_ms=change.now))


def _set_group_definition(standing: Standing, change: group_changes.SetGroupDefinition) -> None:
    standing.write(standing.of_group, (change.object_type, change.definition.name), change.definition)


def _drop_group_definition(standing: Standing, change: group_changes.DropGroupDefinition) -> None:
    standing.drop(standing.of_group, (change.object_type, change.name))


def _note_triggered(standing: Standing, change: group_changes.NoteTriggered) -> None:
    """Leaves the state as it is: the state of a shared queue is the group's."""


def _note_judged(standing: Standing, change: group_changes.NoteJudged) -> None:
    queue = standing.queues.get(change.q_name)
    if queue is not None and queue.shared is not None:
        standing.write(standing.judged, change.q_name, queue)
    elif change.q_name in standing.judged:
        standing.drop(standing.judged, change.q_name)


def _write_run(standing: Standing, change: c.WriteRun) -> None:
    """Counts held runs and notes those that are to be ended; runs themselves are rows of the store."""
    for run, by in ((change.before, -1), (change.run, 1)):
        if run is not None and run.is_held:
            add_count(standing, standing.held, run.line, by)
    if change.run.is_being_cancelled:
        standing.write(standing.cancelling, change.run_id, change.run.program.monitor)
    elif change.run_id in standing.cancelling:
        standing.drop(standing.cancelling, change.run_id)


def _drop_run(standing: Standing, change: c.DropRun) -> None:
    """Leaves the state as it is: a run that has ended is in no table."""


def after_restart(serving: Serving) -> Serving:
    """Returns a program's counts after a restart: its connections are lost, what was uncommitted is backed out."""
    return replace(serving, opens=0, backed_out=serving.taken - serving.committed)


def _serve(standing: Standing, change: c.Serve) -> None:
    standing.write(standing.running, change.serving.run_id, change.serving)


def _unserve(standing: Standing, change: c.Unserve) -> None:
    standing.drop(standing.running, change.run_id)


def _set_cause(standing: Standing, change: c.SetCause) -> None:
    cause = change.cause
    key = (cause.slot, cause.q_name)
    if cause.failed or cause.fruitless:
        standing.write(standing.causes, key, cause)
    elif key in standing.causes:
        standing.drop(standing.causes, key)


def _set_pause(standing: Standing, change: c.SetPause) -> None:
    standing.write(standing.pauses, (change.pause.what, change.pause.name), change.pause)


def _drop_pause(standing: Standing, change: c.DropPause) -> None:
    standing.drop(standing.pauses, (change.what, change.name))


def _reserve_messages(standing: Standing, change: r.ReserveMessages) -> None:
    columns = change.columns
    _recount(standing, columns.q_name, [-1 * n for n in _counted(columns.priorities)], 0)
    for number in columns.numbers if standing.locks else ():
        forget_lock(standing, number)


def _return_reserved(standing: Standing, change: r.ReturnReserved) -> None:
    """Counts rows that go back as waiting; their reservation counted them so, until the change behind this."""
    _recount(standing, change.messages[0].q_name, _counted(message.priority for message in change.messages), 0)


def _settle_reserved(standing: Standing, change: r.SettleReserved) -> None:
    """Leaves the state as it is: these rows were not counted."""


def _counted(priorities: Iterable[int]) -> list[int]:
    """Returns how many there are of each priority."""
    counts = [0] * 10
    for priority, count in Counter(priorities).items():
        counts[priority] += count
    return counts


def _set_reservation(standing: Standing, change: r.SetReservation) -> None:
    after = change.reservation
    before = standing.reservations.get(after.number, Reservation(after.number, after.q_name, after.consumer))
    more = [new - old for old, new in zip(before.waiting, after.waiting, strict=True)]
    if any(more) or before.held != after.held:
        _recount(standing, after.q_name, more, after.held - before.held)
    _stand_behind(standing, after.number, before.behind, after.behind)
    if not after.is_over:
        standing.write(standing.reservations, after.number, after)
    elif after.number in standing.reservations:
        standing.drop(standing.reservations, after.number)


def _recount(standing: Standing, q_name: str, more: list[int], reserved: int) -> None:
    queue = standing.queues[q_name]
    depths = tuple(depth + by for depth, by in zip(queue.depths, more, strict=True))
    standing.write(standing.queues, q_name, replace(queue, depths=depths, reserved=queue.reserved + reserved))


def _stand_behind(standing: Standing, number: int, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    for connection in {*before} ^ {*after}:
        facts = standing.connections.get(connection)
        if facts is not None:
            left = tuple(each for each in facts.reservations if each != number)
            standing.write(
                standing.connections,
                connection,
                replace(facts, reservations=(*left, number) if connection in after else left),
            )


def pause_of(change: c.DropDefinition) -> tuple[str, str]:
    """Returns the key of the pause that is deleted with an object: one defined by its name later begins anew."""
    return ("queue" if change.object_type in QUEUE_KINDS else change.object_type.name.lower()), change.name


def causes_of(change: c.DropDefinition, causes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the keys of the causes that are deleted with an object, for the same reason."""
    what, name = pause_of(change)
    return [(slot, q_name) for slot, q_name in causes if name == {"process": slot, "queue": q_name}.get(what)]


FOLLOW: dict[type[c.AnyChange], Any] = {
    c.AddMessage: _add_message,
    c.TakeMessage: _take_message,
    c.RemoveMessage: _remove_message,
    c.SetAside: _remove_message,
    c.BeginUnit: _begin_unit,
    c.CarryOver: _carry_over,
    c.SkipUnit: _skip_unit,
    c.NoteRefused: _note_refused,
    c.EndUnit: _end_unit,
    **FOLLOW_HANDLES,
    c.SetDefinition: _set_definition,
    c.DropDefinition: _drop_definition,
    c.DeleteLogically: _delete_logically,
    c.StampTrigger: _stamp_trigger,
    group_changes.SetGroupDefinition: _set_group_definition,
    group_changes.DropGroupDefinition: _drop_group_definition,
    group_changes.NoteTriggered: _note_triggered,
    group_changes.NoteJudged: _note_judged,
    c.WriteRun: _write_run,
    c.DropRun: _drop_run,
    c.Serve: _serve,
    c.Unserve: _unserve,
    c.SetCause: _set_cause,
    c.SetPause: _set_pause,
    c.DropPause: _drop_pause,
    r.ReserveMessages: _reserve_messages,
    r.SetReservation: _set_reservation,
    r.SettleReserved: _settle_reserved,
    r.ReturnReserved: _return_reserved,
}
