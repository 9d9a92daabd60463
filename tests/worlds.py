"""A queue manager on each store, on virtual time, for tests that drive it by calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.postgres import give_back, place
from trigmon.mq.calls import Call, Define, Disconnect, Display, Open, Put
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.manager_events import CallFailed, Event, MessageDamaged, Telling, TriggerMessageAvailable
from trigmon.qmgr.sessions import Identity, Session
from trigmon.rules.model.events import (
    MessageDropped,
    OperatorAsked,
    PoisonKept,
    PoisonMoved,
    QueueHeld,
    TriggerMessageDropped,
)
from trigmon.store.memory.store import MemoryStore
from trigmon.store.port import Store
from trigmon.store.postgres.store import PostgresStore
from trigmon.store.sqlite.store import SqliteStore

STORES = ("memory", "sqlite", "postgres")


class Collected(Telling):
    """The events in order; a bug is raised, not hidden."""

    def __init__(self) -> None:
        self.triggers: list[TriggerMessage] = []
        self.dropped: list[tuple[str, str]] = []
        self.lost: list[tuple[str, str]] = []
        self.damaged: list[tuple[str, int]] = []
        self.aside: list[PoisonMoved] = []
        self.not_aside: list[PoisonKept] = []
        self.held: list[QueueHeld] = []
        self.asked: list[OperatorAsked] = []
        self.bugs: list[BaseException] = []

    def tell(self, event: Event) -> None:
        match event:
            case TriggerMessageAvailable():
                self.triggers.append(event.message)
            case TriggerMessageDropped():
                self.dropped.append((event.q_name, event.why))
            case MessageDropped():
                self.lost.append((event.q_name, event.why))
            case MessageDamaged():
                self.damaged.append((event.q_name, event.number))
            case PoisonMoved():
                self.aside.append(event)
            case PoisonKept():
                self.not_aside.append(event)
            case QueueHeld():
                self.held.append(event)
            case OperatorAsked():
                self.asked.append(event)
            case CallFailed():
                self.bugs.append(event.error)


class World:
    """One queue manager, its clock and its connections by name."""

    def __init__(self, kind: str, directory: Path, puts_allowed: Callable[[], bool] = lambda: True) -> None:
        self._puts_allowed = puts_allowed
        self.kind = kind
        self.directory = directory
        self.clock = VirtualClock()
        self.telling = Collected()
        self.sessions: dict[str, Session] = {}
        self.users: dict[str, str] = {}  # of those connections that are not root's
        self.runs: dict[str, str] = {}  # of those connections that are started programs'
        self.ended_waits: list[Answer] = []
        self._sequence = 0
        self._memory = MemoryStore()
        self.store: Store
        self._start()

    def _start(self) -> None:
        if self.kind == "memory":
            self.store = self._memory
        elif self.kind == "sqlite":
            self.store = SqliteStore(self.directory)
        else:
            self.store = PostgresStore(place(self.directory))
        self.qm = self.manager()

    def manager(self) -> QueueManager:
        """Returns a queue manager that has the store."""
        return QueueManager("QM1", self.store, self.clock, self.telling, self._puts_allowed)

    def end(self) -> None:
        """Stops it in order; it is not started again."""
        self.qm.stop()
        if self.kind == "postgres":
            give_back(self.directory)

    def restart(self) -> None:
        """Stops it in order and starts it again; connections are lost."""
        self.qm.stop()
        self.sessions.clear()
        self._start()

    def crash(self) -> None:
        """Crashes it and starts a new one."""
        self.store.abandon()
        self.sessions.clear()
        self._start()

    def session(self, name: str) -> Session:
        found = self.sessions.get(name)
        if found is None or found.is_gone:
            identity = Identity(
                client_id=f"client-{name}",
                application=name,
                user=self.users.get(name, "root"),
                run_id=self.runs.get(name, ""),
                administrator=True,
            )
            found = self.sessions[name] = self.qm.connect(identity)
        return found

    def do(self, call: Call, as_: str = "app") -> Reply | None:
        """Sends a call and returns the reply, or None when the call waits."""
        self._sequence += 1
        session = self.session(as_)
        answers = self.qm.turn([(session, self._sequence, call)])
        # A get that met more expired messages than a turn discards goes on in the next.
        while (deadline := self.qm.next_deadline_ms()) is not None and deadline <= self.clock.now():
            answers += self.qm.turn([])
        if self.telling.bugs:
            raise self.telling.bugs[0]
        mine = [a.reply for a in answers if a.sequence == self._sequence and a.session is session]
        self.ended_waits += [a for a in answers if a.session is not session]
        return mine[0] if mine else None

    def did(self, call: Call, as_: str = "app") -> Reply:
        """Sends a call that must not be refused and returns the reply."""
        reply = self.do(call, as_)
        assert reply is not None and not isinstance(reply, Refused), reply
        return reply

    def disconnect(self, name: str) -> None:
        """Ends a connection in order."""
        self.did(Disconnect(), name)

    def lose(self, name: str) -> None:
        """Ends a connection without a disconnect."""
        self.qm.lost([self.sessions[name]])

    def define(self, name: str, kind: str = "QLOCAL", **attributes: object) -> None:
        self.did(Define(object_type=kind, name=name, attributes=attributes), "operator")

    def open(self, name: str, *options: OpenOption, as_: str = "app") -> int:
        bits = 0
        for option in options:
            bits |= option
        return self.did(Open(object_name=name, options=bits), as_).handle

    def put(self, name: str, data: bytes = b"m", as_: str = "app", unit: int = 0, **fields: object) -> Reply:
        descriptor = MessageDescriptor(**fields)
        options = 2 if unit else 0
        return self.did(Put(q_name=name, data=data, descriptor=descriptor, options=options, unit=unit), as_)

    def queue_depth(self, name: str) -> int:
        """Returns CURDEPTH."""
        return self.did(Display(object_type="QLOCAL", name=name), "operator").rows[0]["current_q_depth"]

    def fired(self) -> list[str]:
        """Returns the queues whose trigger messages became available since the last look."""
        names = [message.q_name for message in self.telling.triggers]
        self.telling.triggers.clear()
        return names
