"""What stands between calls, and how changes move it: one copy of the arithmetic for every store.

Held here is what costs the same at any depth: definitions, counts by priority, handles, connections, open units.
Messages themselves are the store's. Each change is noted, so that :meth:`Standing.undo` takes a call back whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import setitem
from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import (
    OBJECT_TYPES,
    AliasQueue,
    AnyDefinition,
    LocalQueue,
    ModelQueue,
    Process,
    QueueManagerDefinition,
    RemoteQueue,
)
from trigmon.mq.enums import ObjectType, OpenOption, UnitOutcome
from trigmon.rules import changes as c
from trigmon.rules.facts import (
    ConnectionFacts,
    Facts,
    HandleFacts,
    HeldTrigger,
    Neighbour,
    QueueFacts,
    Transmission,
    UnitFacts,
    Wants,
    World,
    with_place,
)

_GONE = object()
_INPUT = OpenOption.INPUT_SHARED.value | OpenOption.INPUT_EXCLUSIVE.value
_EXCLUSIVE = OpenOption.INPUT_EXCLUSIVE.value
_OUTPUT = OpenOption.OUTPUT.value


class Standing:
    """The standing state of one queue manager."""

    def __init__(self, q_mgr_name: str) -> None:
        self.q_mgr = {"": QueueManagerDefinition(name=q_mgr_name)}
        self.queues: dict[str, QueueFacts] = {}
        self.aliases: dict[str, AliasQueue] = {}
        self.remotes: dict[str, RemoteQueue] = {}
        self.models: dict[str, ModelQueue] = {}
        self.processes: dict[str, Process] = {}
        self.handles: dict[int, HandleFacts] = {}
        self.connections: dict[int, ConnectionFacts] = {}
        self.units: dict[int, UnitFacts] = {}
        self.deleted: dict[str, None] = {}
        self.locks: dict[int, int] = {}  # locked messages by number, and the handles that locked them
        self._notes: list[tuple[dict[Any, Any], Hashable, object]] = []
        # Which queues name which initiation queue; None when definitions have changed since it was looked up.
        self._serving: dict[str, list[str]] | None = None

    # -- taking back ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """From here on :meth:`undo` takes back."""
        self._notes.clear()

    def undo(self) -> None:
        """Puts everything back to the last mark."""
        self._serving = None
        for table, key, before in reversed(self._notes):
            if before is _GONE:
                del table[key]
            else:
                table[key] = before
        self._notes.clear()

    def _write(self, table: dict[Any, Any], key: Hashable, value: object) -> None:
        self._notes.append((table, key, table.get(key, _GONE)))
        table[key] = value

    def _drop(self, table: dict[Any, Any], key: Hashable) -> None:
        self._notes.append((table, key, table[key]))
        del table[key]

    # -- reading ----------------------------------------------------------------------------------------

    def facts(self, wants: Wants) -> Facts:
        """The neighbourhood a call wants: an open handle leads to its queue, a name is resolved to what it means."""
        connection = self.connections[wants.connection]
        handle = self._own(wants.handle, wants.connection)
        queue = alias = process = initiation = remote = model = transmission = None
        target_exists = False
        name = self.q_mgr[""].dead_letter_q_name if wants.dead_letter else wants.object_name
        if handle is not None:
            queue = self.queues.get(handle.q_name)
            if handle.object_name != handle.q_name:
                alias = self.aliases.get(handle.object_name)
                if handle.route is not None:
                    remote = self.remotes.get(handle.route.definition)
        elif wants.q_mgr_name not in ("", self.q_mgr[""].name):
            remote = RemoteQueue(name=name, remote_q_name=name, remote_q_mgr_name=wants.q_mgr_name)
            transmission = self._transmission(remote)
            queue = self.queues.get(transmission.q_name)
        elif name:
            queue = self.queues.get(name)
            if queue is None:
                alias = self.aliases.get(name)
                if alias is not None:
                    name = alias.base_q_name
                    queue = self.queues.get(name)
                    target_exists = queue is None and (name in self.aliases or name in self.models)
                else:
                    model = self.models.get(name)
                remote = self.remotes.get(name)
                if remote is not None:
                    transmission = self._transmission(remote)
                    queue = self.queues.get(transmission.q_name)
        if queue is not None:
            process = self.processes.get(queue.definition.process_name)
            initiation = self.queues.get(queue.definition.initiation_q_name)
        unit = self.units.get(connection.unit_id) if connection.unit_id else None
        return Facts(
            self.q_mgr[""],
            connection,
            handle,
            queue,
            alias,
            process,
            initiation,
            unit,
            target_exists,
            remote,
            model,
            transmission,
            tuple(self.deleted) if self.deleted else (),
            context=self._own(wants.context, wants.connection) if wants.context else None,
        )

    def _own(self, number: int, connection: int) -> HandleFacts | None:
        """A connection's handle; another's is none."""
        handle = self.handles.get(number)
        return handle if handle is not None and handle.connection == connection else None

    def _transmission(self, remote: RemoteQueue) -> Transmission:
        """The queue that XMITQ names, else the one named like the other queue manager, else DEFXMITQ."""
        for name in (remote.xmit_q_name, remote.remote_q_mgr_name):
            exists = self._is_queue(name)
            if exists or (name and name == remote.xmit_q_name):
                return Transmission(name, False, exists)
        name = self.q_mgr[""].def_xmit_q_name
        return Transmission(name, True, self._is_queue(name))

    def _is_queue(self, name: str) -> bool:
        return any(name in table for table in (self.queues, self.aliases, self.remotes, self.models))

    def wider(self, facts: Facts, wants: Wants) -> Facts:
        """The same, with what only commands, opens and changes of attributes ask for."""
        object_type = wants.object_type
        name = wants.object_name
        if facts.handle is not None:
            # An alias is inquired of and set itself, whatever it was opened for besides.
            object_type, name = facts.handle.object_type, facts.handle.object_name
        return replace(
            facts,
            named=self.definition(object_type, name) if object_type is not None else None,
            like=self.definition(object_type, wants.like) if object_type is not None and wants.like else None,
            target_exists=self._is_queue(wants.target) if wants.target else facts.target_exists,
            target_q_name=self.aliases[wants.target].base_q_name if wants.target in self.aliases else wants.target,
            served=self._served(facts.queue.definition.name if facts.queue is not None else name),
            world=self.world() if wants.everything else None,
        )

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """The definition of this name, whatever kind of queue it is when a queue is asked for."""
        if object_type is ObjectType.QMGR:
            return self.q_mgr[""]
        if object_type is ObjectType.PROCESS:
            return self.processes.get(name)
        queue = self.queues.get(name)
        if queue is not None:
            return queue.definition
        return self.aliases.get(name) or self.remotes.get(name) or self.models.get(name)

    def _served(self, initiation_q: str) -> tuple[Neighbour, ...]:
        """Every queue that names this initiation queue, by name (conditions 13a and 13c ask for all of them).

        A name may be that of a queue which is just being made. A queue that is logically deleted triggers nothing.
        The order is that of the names, so that a restart does not change in which order they are triggered.
        """
        if not initiation_q:
            return ()
        if self._serving is None:
            self._serving = {}
            for name in sorted(self.queues):
                self._serving.setdefault(self.queues[name].definition.initiation_q_name, []).append(name)
        initiation = self.queues.get(initiation_q)
        queues = [self.queues[name] for name in self._serving.get(initiation_q, ())]
        return tuple(
            Neighbour(queue, self.processes.get(queue.definition.process_name), initiation)
            for queue in queues
            if not queue.is_deleted
        )

    def world(self) -> World:
        """Everything that stands, for the verbs that list."""
        return World(
            tuple(self.queues.values()),
            tuple(self.aliases.values()),
            tuple(self.processes.values()),
            tuple(self.handles.values()),
            tuple(self.connections.values()),
            tuple(self.units.values()),
            tuple(self.remotes.values()),
            tuple(self.models.values()),
        )

    # -- moving -----------------------------------------------------------------------------------------

    def follow(self, change: c.AnyChange) -> None:
        """Moves what stands by one change."""
        _FOLLOW[type(change)](self, change)

    def _count(self, q_name: str, priority: int, by: int, puts: int = 0, gets: int = 0) -> None:
        queue = self.queues[q_name]
        depths = list(queue.depths)
        depths[priority] += by
        self._write(
            self.queues,
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
            ),
        )

    def _add_message(self, change: c.AddMessage) -> None:
        in_unit = change.unit_id != 0
        self._count(change.q_name, change.priority, 1, puts=int(in_unit))
        if in_unit:
            unit = self.units[change.unit_id]
            key = (change.q_name, change.priority)
            held = unit.held
            if change.is_held:
                held = (*held, HeldTrigger(change.q_name, change.priority, change.trigger, change.on_backout))
            self._write(
                self.units,
                unit.unit_id,
                replace(
                    unit,
                    count=unit.count + (not change.is_further),
                    is_durable=unit.is_durable or change.is_persistent,
                    puts={**unit.puts, key: unit.puts.get(key, 0) + 1},
                    held=held,
                ),
            )

    def _take_message(self, change: c.TakeMessage) -> None:
        message = change.message
        self._count(message.q_name, message.priority, -1, gets=1)
        self._forget_lock(message.number)
        unit = self.units[change.unit_id]
        key = (message.q_name, message.priority)
        self._write(
            self.units,
            unit.unit_id,
            replace(
                unit,
                count=unit.count + 1,
                is_durable=unit.is_durable or message.is_persistent,
                gets={**unit.gets, key: unit.gets.get(key, 0) + 1},
                marked=change.marked or unit.marked,
            ),
        )

    def _remove_message(self, change: c.RemoveMessage | c.SetAside) -> None:
        self._count(change.message.q_name, change.message.priority, -1)
        self._forget_lock(change.message.number)

    def _begin_unit(self, change: c.BeginUnit) -> None:
        unit = UnitFacts(change.unit_id, change.number, change.connection, change.client_id)
        if change.carried is not None:
            first = {(change.carried.q_name, change.carried.priority): 1}
            unit = replace(unit, count=1, is_durable=change.carried.is_persistent, gets=first)
        self._write(self.units, change.unit_id, unit)
        connection = self.connections[change.connection]
        self._write(
            self.connections,
            change.connection,
            replace(connection, unit_id=change.unit_id, unit_number=change.number),
        )

    def _carry_over(self, change: c.CarryOver) -> None:
        """A row's business: the end of the one unit and the beginning of the other say what stands."""

    def _skip_unit(self, change: c.SkipUnit) -> None:
        connection = self.connections[change.connection]
        self._write(self.connections, change.connection, replace(connection, unit_number=change.number))

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        committed = change.outcome is UnitOutcome.COMMITTED
        kept: dict[tuple[str, int], int] = {}
        for held in unit.held:
            if held.on_backout:
                key = (held.q_name, held.priority)
                kept[key] = kept.get(key, 0) + 1
        for (q_name, priority), count in unit.puts.items():
            gone = 0 if committed else count - kept.get((q_name, priority), 0)
            self._count(q_name, priority, -gone, puts=-count)
        for (q_name, priority), count in unit.gets.items():
            self._count(q_name, priority, 0 if committed else count, gets=-count)
        for (number, side), place in () if committed else unit.places.items():
            handle = self.handles.get(number)
            if handle is not None:
                self._write(self.handles, number, with_place(handle, side, place))
        self._drop(self.units, unit.unit_id)
        connection = self.connections.get(unit.connection)
        if connection is not None:
            self._write(self.connections, connection.connection, replace(connection, unit_id=0))

    def _open_handle(self, change: c.OpenHandle) -> None:
        handle = change.handle
        self._write(self.handles, handle.handle, handle)
        connection = self.connections[handle.connection]
        self._write(
            self.connections,
            handle.connection,
            replace(connection, handles=(*connection.handles, handle.handle)),
        )
        self._opened(handle, 1)

    def _close_handle(self, change: c.CloseHandle) -> None:
        handle = self.handles[change.handle]
        self._drop(self.handles, change.handle)
        connection = self.connections[handle.connection]
        left = tuple(h for h in connection.handles if h != change.handle)
        self._write(self.connections, handle.connection, replace(connection, handles=left))
        self._opened(handle, -1)

    def _opened(self, handle: HandleFacts, by: int) -> None:
        queue = self.queues.get(handle.q_name)
        if queue is None:
            return
        options = handle.options
        opened = replace(
            queue,
            open_input_count=queue.open_input_count + (by if options & _INPUT else 0),
            open_exclusive=(by > 0) if options & _EXCLUSIVE else queue.open_exclusive,
            open_output_count=queue.open_output_count + (by if options & _OUTPUT else 0),
            open_count=queue.open_count + by,
        )
        self._write(self.queues, handle.q_name, opened)

    def _move_cursor(self, change: c.MoveCursor) -> None:
        self._write(self.handles, change.handle, replace(self.handles[change.handle], cursor=change.cursor))

    def _lock_message(self, change: c.LockMessage) -> None:
        for number in change.numbers:
            self._write(self.locks, number, change.handle)
        self._write(self.handles, change.handle, replace(self.handles[change.handle], locked=change.numbers))

    def _unlock_message(self, change: c.UnlockMessage) -> None:
        for number in self.handles[change.handle].locked:
            self._forget_lock(number)

    def _forget_lock(self, number: int) -> None:
        handle = self.locks.get(number)
        if handle is not None:
            self._drop(self.locks, number)
            left = tuple(each for each in self.handles[handle].locked if each != number)
            self._write(self.handles, handle, replace(self.handles[handle], locked=left))

    def _set_place(self, change: c.SetPlace) -> None:
        handle = self.handles[change.handle]
        if change.unit_id:
            unit = self.units[change.unit_id]
            key = (change.handle, change.side)
            if key not in unit.places:
                before = {**unit.places, key: handle.place(change.side)}
                self._write(self.units, unit.unit_id, replace(unit, places=before))
        self._write(self.handles, change.handle, with_place(handle, change.side, change.place))

    def _save_context(self, change: c.SaveContext) -> None:
        self._write(self.handles, change.handle, replace(self.handles[change.handle], context=change.context))

    def _set_definition(self, change: c.SetDefinition) -> None:
        definition = change.definition
        if isinstance(definition, LocalQueue):
            queue = self.queues.get(definition.name)
            facts = QueueFacts(definition) if queue is None else replace(queue, definition=definition)
            if queue is None or queue.definition.initiation_q_name != definition.initiation_q_name:
                self._serving = None
            self._write(self.queues, definition.name, facts)
        else:
            self.define(definition, self._write)

    def define(self, definition: AnyDefinition, write: Callable[[dict[Any, Any], str, Any], None] = setitem) -> None:
        """Any definition but a local queue's, into its table; a store that starts needs no note of it."""
        table = self._tables()[OBJECT_TYPES[type(definition)]]
        write(table, "" if table is self.q_mgr else definition.name, definition)

    def _tables(self) -> dict[ObjectType, dict[str, Any]]:
        return {
            ObjectType.QLOCAL: self.queues,
            ObjectType.QALIAS: self.aliases,
            ObjectType.QREMOTE: self.remotes,
            ObjectType.QMODEL: self.models,
            ObjectType.PROCESS: self.processes,
            ObjectType.QMGR: self.q_mgr,
        }

    def _drop_definition(self, change: c.DropDefinition) -> None:
        self._serving = None
        self._drop(self._tables()[change.object_type], change.name)
        if change.object_type is ObjectType.QLOCAL and change.name in self.deleted:
            self._drop(self.deleted, change.name)

    def _delete_logically(self, change: c.DeleteLogically) -> None:
        self._write(self.queues, change.q_name, replace(self.queues[change.q_name], is_deleted=True))
        self._write(self.deleted, change.q_name, None)

    def _stamp_trigger(self, change: c.StampTrigger) -> None:
        self._write(self.queues, change.q_name, replace(self.queues[change.q_name], trigger_stamp_ms=change.now))

    def _connect(self, change: c.Connect) -> None:
        self._write(self.connections, change.connection.connection, change.connection)

    def _drop_connection(self, change: c.DropConnection) -> None:
        self._drop(self.connections, change.connection)

    def _write_run(self, change: c.WriteRun) -> None:
        """Runs are rows of the store, nothing of them stands here."""


_FOLLOW: dict[type[c.Change], Any] = {
    c.AddMessage: Standing._add_message,
    c.TakeMessage: Standing._take_message,
    c.RemoveMessage: Standing._remove_message,
    c.SetAside: Standing._remove_message,
    c.BeginUnit: Standing._begin_unit,
    c.CarryOver: Standing._carry_over,
    c.SkipUnit: Standing._skip_unit,
    c.EndUnit: Standing._end_unit,
    c.OpenHandle: Standing._open_handle,
    c.CloseHandle: Standing._close_handle,
    c.MoveCursor: Standing._move_cursor,
    c.LockMessage: Standing._lock_message,
    c.UnlockMessage: Standing._unlock_message,
    c.SetPlace: Standing._set_place,
    c.SaveContext: Standing._save_context,
    c.SetDefinition: Standing._set_definition,
    c.DropDefinition: Standing._drop_definition,
    c.DeleteLogically: Standing._delete_logically,
    c.StampTrigger: Standing._stamp_trigger,
    c.Connect: Standing._connect,
    c.DropConnection: Standing._drop_connection,
    c.WriteRun: Standing._write_run,
}
