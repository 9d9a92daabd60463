"""DISPLAY and status: verbs that read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from operator import attrgetter, itemgetter
from typing import Any

from msgspec.structs import asdict, replace

from trigmon.mq.attributes import OUR_KINDS, QUEUE_KINDS, Definition
from trigmon.mq.calls import Call, Display, DisplayHandles, Ping, Status
from trigmon.mq.enums import ObjectType, OpenOption, UnitOutcome
from trigmon.mq.names import matches
from trigmon.mq.replies import Done, Listing, Reply, Values
from trigmon.mq.rights import Right, read_record_name
from trigmon.rules.attention import (
    Newest,
    Waiting,
    aside_queues,
    attention_of_process,
    needs_attention,
    ordered,
)
from trigmon.rules.bridges import attention_of_bridges, bridge_rows
from trigmon.rules.call_rights import kind_of, may_see_queue, of_q_mgr
from trigmon.rules.copies import attention_of_copies, copy_rows
from trigmon.rules.model.authority import Need, has_right, is_own
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WideFacts, World, WorldFacts
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts
from trigmon.rules.model.internal_calls import NewestMessage
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.resolve_name import object_type_of
from trigmon.rules.model.schedule_facts import is_lost
from trigmon.rules.model.stored_messages import SLICE, Found
from trigmon.rules.objects.inquire_set import shown
from trigmon.rules.reservations.display_reservations import rows as reserved_rows
from trigmon.rules.runs.pause import itself_paused, shown_pauses
from trigmon.rules.runs.pause import rows as pause_rows
from trigmon.rules.watches import attention_of_watches, with_state


def decide_display(call: Display, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists objects by generic name, in the order of their names, a slice at a time."""
    world = facts.world
    wanted = QUEUE_KINDS if call.object_type == "queue" else (object_type_of(call.object_type),)
    objects = (
        each
        for each in _objects(world, facts.q_mgr)
        if each[1] in wanted
        and each[0] > call.after
        and (each[1] is ObjectType.QMGR or matches(each[0], call.name))  # there is one
        and _may_see(each[1], each[0], facts)
    )
    limit = max(1, min(call.limit, SLICE))
    behind = nsmallest(limit + 1, objects, key=itemgetter(0))
    rows = [
        {**shown(kind, definition, queue), **_state(kind, definition, facts)}
        for _, kind, definition, queue in behind[:limit]
    ]
    return Decision(Listing(rows=rows, more=len(behind) > limit))


def complete_display(call: Display, reply: Listing, manager: ManagerState) -> Listing:
    """Adds to watches how they are, as the process reports that serves them."""
    if call.object_type.upper() != ObjectType.WATCH.name:
        return reply
    reported = manager.reports.watches()
    return replace(reply, rows=[with_state(row, reported) for row in reply.rows])


def _may_see(kind: ObjectType, name: str, facts: WideFacts) -> bool:
    """Returns whether the user may display an object; an authority record also by what it is about."""
    user, records = facts.connection, facts.records
    if records is None or user.is_administrator or kind is ObjectType.QMGR:
        return True
    if kind is ObjectType.AUTHREC:
        return is_own(read_record_name(name), user) or has_right(of_q_mgr(Right.DSP), user, records)
    return has_right(Need(Right.DSP, kind_of(kind), name), user, records)


_Object = tuple[str, ObjectType, Definition, QueueFacts | None]


def _objects(world: World, q_mgr: Definition) -> Iterator[_Object]:
    yield from ((queue.definition.name, ObjectType.QLOCAL, queue.definition, queue) for queue in world.queues)
    for kind, definitions in (
        (ObjectType.QALIAS, world.aliases),
        (ObjectType.QREMOTE, world.remotes),
        (ObjectType.QMODEL, world.models),
        (ObjectType.NAMELIST, world.namelists),
        (ObjectType.PROCESS, world.processes),
        (ObjectType.SCHEDULE, world.schedules),
        (ObjectType.WATCH, world.watches),
        (ObjectType.AUTHREC, world.authority),
        (ObjectType.QMGR, (q_mgr,)),
    ):
        yield from ((definition.name, kind, definition, None) for definition in definitions)


def _state(kind: ObjectType, definition: Any, facts: WideFacts) -> dict[str, Any]:
    """Returns how an object is: its pause, or that of what it triggers, for a person.

    ``not_started``: the last moment of a schedule was to start something and could not.
    """
    if kind is ObjectType.QLOCAL:
        return shown_pauses(facts, definition.name, definition.process_name)
    if kind is ObjectType.PROCESS:
        return shown_pauses(facts, None, definition.name)
    if kind not in OUR_KINDS:
        return {}
    state: dict[str, Any] = {"paused": itself_paused(kind.name.lower(), definition.name, facts)}
    return state | {"not_started": is_lost(definition)} if kind is ObjectType.SCHEDULE else state


def decide_display_handles(
    call: DisplayHandles, facts: WorldFacts, found: Found | None, now: int, ids: Ids
) -> Decision:
    """Lists the handles of queues, a slice at a time: which application has each open, and how."""
    world = facts.world
    people = {connection.connection: connection for connection in world.connections}
    later = (each for each in world.handles if each.handle > call.after and each.object_type in QUEUE_KINDS)
    named = (each for each in later if matches(_opened(each), call.q_name) and may_see_queue(_opened(each), facts))
    limit = max(1, min(call.limit, SLICE))
    behind = nsmallest(limit + 1, named, key=attrgetter("handle"))
    rows = [_handle_row(handle, people[handle.connection]) for handle in behind[:limit]]
    return Decision(Listing(rows=rows, more=len(behind) > limit))


def _opened(handle: HandleFacts) -> str:
    return handle.q_name or handle.object_name


def _handle_row(handle: HandleFacts, connection: ConnectionFacts) -> dict[str, Any]:
    return {
        "handle": handle.handle,
        "name": _opened(handle),
        "application": connection.application,
        "pid": connection.pid,
        "user": connection.user,
        "run_id": connection.run_id,
        "input": _input(handle),
        "browse": bool(handle.options & OpenOption.BROWSE),
        "output": bool(handle.options & OpenOption.OUTPUT),
        "inquire": bool(handle.options & OpenOption.INQUIRE),
        "set": bool(handle.options & OpenOption.SET),
    }


def _input(handle: HandleFacts) -> str:
    if handle.options & OpenOption.INPUT_EXCLUSIVE:
        return "exclusive"
    return "shared" if handle.options & OpenOption.INPUT_SHARED else "no"


def decide_status(call: Status, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the queue manager at a glance; :func:`complete_status` adds what only its process knows."""
    filled = set(_own_filled(facts))
    aside = [name for name in aside_queues(facts) if name in filled]
    looks: list[Call] = [NewestMessage(q_name=name) for name in aside]

    def values(replies: list[Reply]) -> Values:
        answers = (each.values for each in replies if isinstance(each, Values))
        newest = {name: Newest(of["at_ms"], of["error"]) for name, of in zip(aside, answers, strict=True)}
        return Values(values={**_status(facts, now), "facts": facts, "newest": newest})

    return Decision(internal_calls=looks, gather=values) if looks else Decision(values([]))


def _own_filled(facts: WorldFacts) -> list[str]:
    """Returns the names of queues with messages, not of shared ones: a slow database of a group holds up no status."""
    return [queue.definition.name for queue in facts.world.queues if queue.depth and queue.shared is None][:SLICE]


def _status(facts: WorldFacts, now: int) -> dict[str, Any]:
    world = facts.world
    return {
        **shown(ObjectType.QMGR, facts.q_mgr),
        "q_mgr_name": facts.q_mgr.name,
        **({"group": facts.group} if facts.group else {}),
        "now_ms": now,
        "connections": len(world.connections),
        "queues": len(world.queues),
        "aliases": len(world.aliases),
        "remotes": len(world.remotes),
        "models": len(world.models),
        "processes": len(world.processes),
        "messages": sum(q.depth for q in world.queues),
        "open_units": len(world.units),
        "reservations": sum(1 for reservation in world.reservations if reservation.left),
        "reserved": [{**row, "age_ms": now - row["since_ms"]} for row in reserved_rows(world.reservations)],
        "pauses": pause_rows(facts.pauses),
        "runs_under_way": len(facts.serves),
        "initiation_queues": _initiation_queues(world),
    }


def complete_status(call: Status, reply: Values, manager: ManagerState) -> Values:
    """Adds what only the queue manager's process knows."""
    values = dict(reply.values)
    facts, newest = values.pop("facts"), values.pop("newest")
    oldest = {name: manager.oldest_put_ms(name) for name in _own_filled(facts)}
    left = {name: manager.activity.left_ms(name) for name in facts.idle_runs}
    lies = Waiting({name: put_ms for name, put_ms in oldest.items() if put_ms}, newest, left, manager.started_ms)
    known = needs_attention(facts, lies)
    of_services = [*attention_of_watches(facts, manager), *attention_of_bridges(manager), *attention_of_copies(manager)]
    attention = ordered([*known, *attention_of_process(manager, lies, known), *of_services])
    more: dict[str, Any] = {"started_ms": manager.started_ms, "waiting_gets": manager.waiting_gets}
    more |= {"oldest_ms": min(lies.oldest_ms.values(), default=0), "warnings": manager.warnings}
    more |= {"bridges": bridge_rows(manager), "copies": copy_rows(manager)}
    if manager.disk is not None:
        more["disk_free_bytes"] = manager.disk.free_bytes
    return replace(reply, values={**values, **more, "attention": [asdict(each) for each in attention]})


def _initiation_queues(world: World) -> list[dict[str, Any]]:
    """Returns those that queues name, or from which runs are held, with their monitors and what waits there."""
    named = Counter(queue.definition.initiation_q_name for queue in world.queues)
    there = {queue.definition.name: queue for queue in world.queues}
    return [
        {
            "name": name,
            "monitors": there[name].open_input_count if name in there else 0,
            "current_q_depth": there[name].depth if name in there else 0,
            "queues": named[name],
            "runs_held": world.held.get(name, 0),
        }
        for name in sorted((named.keys() & there.keys()) | world.held.keys())
    ]


def decide_ping(call: Ping, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Answers, and does nothing else."""
    return Decision(Done())


def outcome_of(recorded: dict[int, UnitOutcome], unit: int) -> UnitOutcome:
    """Returns the outcome of a client's unit, from the last outcomes on record for that client.

    Only the last two are kept. A unit just above the last one on record ended without a record: it was cut off and
    backed out, since a commit is on record before it is answered, also that of a unit in which nothing was done.
    """
    if unit in recorded:
        return recorded[unit]
    if recorded and unit == max(recorded) + 1:
        return UnitOutcome.BACKED_OUT
    return UnitOutcome.UNKNOWN
