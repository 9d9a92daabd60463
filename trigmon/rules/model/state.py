"""The state of a queue manager between calls, one copy for every store; ``transitions`` applies changes to it.

Held here is what costs the same at any depth: definitions, counts by priority, handles, connections, open units.
Messages themselves are in the store. Each change is noted, so that :meth:`Standing.undo` takes a call back whole.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import setitem
from typing import Any

from msgspec.structs import astuple, replace

from trigmon.mq.attributes import (
    OBJECT_TYPES,
    QUEUE_KINDS,
    AliasQueue,
    AnyDefinition,
    AuthorityRecord,
    LocalQueue,
    ModelQueue,
    Namelist,
    Process,
    QueueManagerDefinition,
    RemoteQueue,
    Schedule,
    Watch,
)
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.mq.run import NO_RUN, Run
from trigmon.rules.model import changes as c
from trigmon.rules.model.authority import AuthorityRecords
from trigmon.rules.model.bridged_queue import bridged_queue
from trigmon.rules.model.facts import (
    WIDE,
    Common,
    Facts,
    Meant,
    Neighbour,
    RunFacts,
    RunWants,
    Wants,
    WideFacts,
    WorldWants,
    recovers_all,
)
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts, Transmission, UnitFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Cause, Line, Paused, Serving
from trigmon.rules.model.transitions import FOLLOW
from trigmon.rules.model.world import world_of

_GONE = object()


class Standing:
    """The state of one queue manager in memory."""

    def __init__(self, q_mgr_name: str) -> None:
        self.q_mgr = {"": QueueManagerDefinition(name=q_mgr_name)}
        self.queues: dict[str, QueueFacts] = {}
        self.aliases: dict[str, AliasQueue] = {}
        self.remotes: dict[str, RemoteQueue] = {}
        self.models: dict[str, ModelQueue] = {}
        self.namelists: dict[str, Namelist] = {}
        self.processes: dict[str, Process] = {}
        self.schedules: dict[str, Schedule] = {}
        self.watches: dict[str, Watch] = {}
        self.authority: dict[str, AuthorityRecord] = {}
        self.handles: dict[int, HandleFacts] = {}
        self.connections: dict[int, ConnectionFacts] = {}
        self.units: dict[int, UnitFacts] = {}
        self.deleted: dict[str, None] = {}
        self.locks: dict[int, int] = {}  # locked messages by number, and the handles that locked them
        self.pauses: dict[tuple[str, str], Paused] = {}
        self.cancelling: dict[str, str] = {}  # runs that are to be ended, and their monitors
        self.running: dict[str, Serving] = {}  # runs that are due or have programs
        self.causes: dict[tuple[str, str], Cause] = {}  # by slot and queue, where the last run did not end well
        self.held: dict[tuple[str, str, str], int] = {}  # how many runs are held, by line
        self.connected: dict[str, int] = {}  # how many connections a run has
        self.reservations: dict[int, Reservation] = {}
        self.group = ""
        self.of_group: dict[tuple[ObjectType, str], AnyDefinition] = {}  # what each member has a copy of
        self.judged: dict[str, QueueFacts] = {}  # shared queues as this member judged them last
        self.ambiguous: frozenset[str] = frozenset()  # names of shared queues that are also its own objects'
        self._notes: list[tuple[dict[Any, Any], Hashable, object]] = []
        # Which queues name which initiation queue; None when definitions have changed since it was looked up.
        self.serving: dict[str, list[str]] | None = None
        # How many dynamic queues each user has made that are there; None when that has to be counted anew.
        self.dynamic: Counter[str] | None = None
        # None when an authority record has changed since it was made.
        self._common: Common | None = None

    # -- taking back ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Sets the mark to which :meth:`undo` goes back."""
        self._notes.clear()

    def undo(self) -> None:
        """Puts everything back to the last mark."""
        self.serving = self.dynamic = None
        for table, key, before in reversed(self._notes):
            if table is self.authority:
                self._common = None
            if before is _GONE:
                del table[key]
            else:
                table[key] = before
        self._notes.clear()

    def write(self, table: dict[Any, Any], key: Hashable, value: object) -> None:
        """Sets a key of one of the tables."""
        self._notes.append((table, key, table.get(key, _GONE)))
        table[key] = value

    def drop(self, table: dict[Any, Any], key: Hashable) -> None:
        """Takes a key out of one of the tables."""
        if table is self.authority:
            self._common = None
        self._notes.append((table, key, table[key]))
        del table[key]

    # -- reading ----------------------------------------------------------------------------------------

    def facts(self, wants: Wants) -> Facts:
        """Returns the facts that a call wants: an open handle leads to its queue, a name to what it means."""
        connection = self.connections[wants.connection]
        handle = self._own(wants.handle, wants.connection)
        queue = alias = process = initiation = remote = model = transmission = None
        target_exists = False
        name = self.q_mgr[""].dead_letter_q_name if wants.dead_letter else wants.object_name
        reservation = self.reservations.get(wants.reservation) if wants.reservation else None
        if reservation is not None:
            name = name or ("" if wants.dead_letter else reservation.q_name)
        if handle is not None:
            queue = self.queues.get(handle.q_name)
            if handle.object_name != handle.q_name:
                alias = self.aliases.get(handle.object_name)
                if handle.route is not None:
                    remote = self.remotes.get(handle.route.definition)
        elif name or wants.q_mgr_name:
            name, queue, alias, remote, model, transmission, target_exists = self._meant(name, wants.q_mgr_name)
        if queue is not None:
            process = self.processes.get(queue.definition.process_name)
            initiation = self.queues.get(queue.definition.initiation_q_name)
        unit = self.units.get(connection.unit_id) if connection.unit_id else None
        is_shared = queue is not None and queue.shared is not None
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
            serving=self.running.get(connection.run_id) if connection.run_id else None,
            connected=self.connected.get(connection.run_id, 0) if connection.run_id else 0,
            reservation=reservation,
            common=self._common if self._common is not None else self._made_common(),
            judged=self.judged.get(queue.definition.name) if is_shared and queue is not None else None,
            is_ambiguous=bool(self.ambiguous) and not self.ambiguous.isdisjoint((wants.object_name, name)),
        )

    def _meant(self, name: str, q_mgr_name: str) -> Meant:
        """Returns what a name means; at another queue manager it is the transmission queue."""
        if q_mgr_name not in ("", self.q_mgr[""].name):
            remote = RemoteQueue(name=name, remote_q_name=name, remote_q_mgr_name=q_mgr_name)
            return self._meant_remotely(Meant(name, None), remote)
        queue = self.queues.get(name)
        if queue is not None or not name:
            return Meant(name, queue)
        alias = self.aliases.get(name)
        if alias is None:
            meant = Meant(name, None, model=self.models.get(name))
        else:
            name = alias.base_q_name
            queue = self.queues.get(name)
            meant = Meant(name, queue, alias, target_exists=queue is None and self._leads_on(name))
        return self._meant_remotely(meant, self.remotes.get(name))

    def _made_common(self) -> Common:
        self._common = Common(self.group, AuthorityRecords(self.authority.values()) if self.authority else None)
        return self._common

    def _leads_on(self, name: str) -> bool:
        """Returns whether an alias or a model queue has this name, which an alias cannot lead to."""
        return name in self.aliases or name in self.models

    def _meant_remotely(self, meant: Meant, remote: RemoteQueue | None) -> Meant:
        if remote is None:
            return meant
        transmission = self._transmission(remote)
        queue = self.queues.get(transmission.q_name)
        return meant._replace(queue=queue, remote=remote, transmission=transmission)

    def _own(self, number: int, connection: int) -> HandleFacts | None:
        """Returns a handle of this connection; None for another connection's."""
        handle = self.handles.get(number)
        return handle if handle is not None and handle.connection == connection else None

    def _transmission(self, remote: RemoteQueue) -> Transmission:
        """Returns the queue that XMITQ names, else the one named like the other queue manager, else DEFXMITQ."""
        for name in (remote.xmit_q_name, remote.remote_q_mgr_name):
            exists = self._is_queue(name)
            if exists or (name and name == remote.xmit_q_name):
                return Transmission(name, False, exists)
        name = self.q_mgr[""].def_xmit_q_name
        return Transmission(name, True, self._is_queue(name))

    def _is_queue(self, name: str) -> bool:
        return any(name in table for table in (self.queues, self.aliases, self.remotes, self.models))

    def wider(self, facts: Facts, wants: Wants) -> WideFacts:
        """Returns the facts with what only commands, opens and changes of attributes ask for."""
        object_type = wants.object_type
        name = wants.object_name
        if facts.handle is not None:
            # An alias is inquired of and set itself, whatever it was opened for besides.
            object_type, name = facts.handle.object_type, facts.handle.object_name
        is_of_all = isinstance(wants, WorldWants)
        more: dict[str, Any] = {"world": world_of(self)} if is_of_all else {}
        return replace(
            WIDE[type(wants)](*astuple(facts), **more),
            named=self.definition(object_type, name) if object_type is not None else None,
            of_group=self.of_group.get((object_type, name)) if object_type is not None else None,
            like=self.definition(object_type, wants.like) if object_type is not None and wants.like else None,
            target_exists=self._is_queue(wants.target) if wants.target else facts.target_exists,
            target_q_name=self.aliases[wants.target].base_q_name if wants.target in self.aliases else wants.target,
            served=self._served(facts.queue.definition.name if facts.queue is not None else name),
            pauses=tuple(self.pauses.values()),
            cancelling=tuple(self.cancelling.items()),
            causes=tuple(self.causes.values()) if is_of_all else (),
            serves=tuple(self.running.values()) if is_of_all else (),
            reservations=self._reservations_of(facts.queue) if self.reservations else (),
            handles_of_user=self._handles_of(facts.connection),
            dynamic_of_user=self._dynamic_of(facts.connection),
            reservations_of_user=self._open_reservations_of(facts.connection),
            under_way=self._under_way(facts.queue) if facts.queue is not None else 0,
        )

    def _handles_of(self, connection: ConnectionFacts) -> int:
        if not connection.max_handles:
            return 0
        return sum(len(each.handles) for each in self.connections.values() if each.user == connection.user)

    def _dynamic_of(self, connection: ConnectionFacts) -> int:
        if not connection.max_dynamic_queues:
            return 0
        if self.dynamic is None:
            self.dynamic = Counter(q.definition.made_by for q in self.queues.values() if q.definition.is_dynamic)
        return self.dynamic[connection.user]

    def count_dynamic(self, definition: LocalQueue, by: int) -> None:
        """Counts a dynamic queue that was made (``by`` is 1) or deleted (-1)."""
        if self.dynamic is not None and definition.is_dynamic:
            self.dynamic[definition.made_by] += by

    def about_run(self, facts: RunFacts, run: Run | None, wants: RunWants) -> RunFacts:
        """Returns the facts with what concerns a run: one on record, or one that is to be written."""
        about = run or wants.run_of or NO_RUN
        _, slot, q_name = about.line
        return replace(
            facts,
            run=run,
            queue=self.queues.get(q_name) or bridged_queue(about),
            process=self.processes.get(about.trigger.process_name),
            itself=self.running.get(wants.run_id),
            serves=tuple(self.running.values()),
            cause=self.causes.get((slot, q_name)),
            connected=self.connected.get(wants.run_id, 0),
            dead_letter=self.facts(Wants(wants.connection, dead_letter=True)) if about.is_unstartable else None,
        )

    def line(self, initiation_q: str, slot: str, q_name: str, run_ids: Sequence[str]) -> Line:
        """Returns held runs with what decides whether the first of them may start."""
        count = self.held[initiation_q, slot, q_name]
        queue, process = self.queues.get(q_name), self.processes.get(slot)
        return Line(initiation_q, slot, q_name, count, tuple(run_ids), queue, process, self.causes.get((slot, q_name)))

    def unread(self, runs: Iterable[Run]) -> tuple[str, ...]:
        """Returns the initiation queues of held runs that are not open for input: no monitor asks for those runs."""
        names = {run.origin.initiation_q for run in runs if run.is_held}
        queues = {name: self.queues.get(name) for name in names}
        return tuple(name for name, queue in queues.items() if queue is None or not queue.open_input_count)

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """Returns the definition of this name, whatever kind of queue it is when a queue is asked for."""
        if object_type is ObjectType.QMGR:
            return self.q_mgr[""]
        if object_type not in QUEUE_KINDS:
            definition: AnyDefinition | None = self.tables()[object_type].get(name)
            return definition
        queue = self.queues.get(name)
        if queue is not None:
            return queue.definition
        return self.aliases.get(name) or self.remotes.get(name) or self.models.get(name)

    def _served(self, initiation_q: str) -> tuple[Neighbour, ...]:
        """Returns every queue that names this initiation queue, by name (conditions 13a and 13c ask for all of them).

        A name may be that of a queue which is just being made. A queue that is logically deleted triggers nothing.
        The order is that of the names, so that a restart does not change in which order they are triggered.
        """
        if not initiation_q:
            return ()
        if self.serving is None:
            self.serving = {}
            for name in sorted(self.queues):
                self.serving.setdefault(self.queues[name].definition.initiation_q_name, []).append(name)
        initiation = self.queues.get(initiation_q)
        queues = [self.queues[name] for name in self.serving.get(initiation_q, ())]
        return tuple(
            Neighbour(
                queue,
                self.processes.get(queue.definition.process_name),
                initiation,
                self.judged.get(queue.definition.name) if queue.shared is not None else None,
                self._under_way(queue),
            )
            for queue in queues
            if not queue.is_deleted
        )

    def serve(self, q_name: str, before: str | None, initiation_q: str | None) -> None:
        """Notes that a queue names another initiation queue than before; None where it is new, or goes."""
        if self.serving is None:
            return
        if before is not None:
            self.serving[before].remove(q_name)
        if initiation_q is not None:
            insort(self.serving.setdefault(initiation_q, []), q_name)

    def _under_way(self, queue: QueueFacts) -> int:
        """See :class:`Neighbour`."""
        if not recovers_all(queue, self.processes.get(queue.definition.process_name)):
            return 0
        name = queue.definition.name
        held = sum(count for (_, _, q_name), count in self.held.items() if q_name == name)
        begun = [each for each in self.running.values() if each.q_name == name and not each.is_over]
        hidden = [each.message for unit in self.units.values() for each in unit.held if each.message is not None]
        return (
            held
            + sum(each.taken <= each.backed_out for each in begun)
            + sum(message.q_name == name for message in hidden)
        )

    def _open_reservations_of(self, connection: ConnectionFacts) -> int:
        if not connection.max_reservations:
            return 0
        each = self.reservations.values()
        return sum(r.user == connection.user and r.outcome is UnitOutcome.OPEN for r in each)

    def _reservations_of(self, queue: QueueFacts | None) -> tuple[Reservation, ...]:
        name = queue.definition.name if queue is not None else ""
        return tuple(reservation for reservation in self.reservations.values() if reservation.q_name == name)

    # -- changing -------------------------------------------------------------------------------------------

    def follow(self, change: c.AnyChange) -> None:
        """Applies one change to the state."""
        FOLLOW[type(change)](self, change)

    def define(self, definition: AnyDefinition, write: Callable[[dict[Any, Any], str, Any], None] = setitem) -> None:
        """Writes any definition but a local queue's into its table; a store that starts needs no undo of it."""
        table = self.tables()[OBJECT_TYPES[type(definition)]]
        if table is self.authority:
            self._common = None
        write(table, "" if table is self.q_mgr else definition.name, definition)

    def tables(self) -> dict[ObjectType, dict[str, Any]]:
        """Returns the table of each kind of object."""
        return {
            ObjectType.QLOCAL: self.queues,
            ObjectType.QALIAS: self.aliases,
            ObjectType.QREMOTE: self.remotes,
            ObjectType.QMODEL: self.models,
            ObjectType.NAMELIST: self.namelists,
            ObjectType.PROCESS: self.processes,
            ObjectType.SCHEDULE: self.schedules,
            ObjectType.WATCH: self.watches,
            ObjectType.AUTHREC: self.authority,
            ObjectType.QMGR: self.q_mgr,
        }
