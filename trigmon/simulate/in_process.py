"""The stage of ``trigmon simulate``: the daemon's queue manager and store in this process, on a virtual clock.

Several queue managers form a queue-sharing group over one store that they share: what one of them does there, each
other looks at before the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from trigmon.command_server.server import CommandServer
from trigmon.mq.calls import Backout, Call, Commit, Disconnect, Get, GetMany
from trigmon.mq.errors import MQError, NoMsgAvailable, UnexpectedError
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.manager_events import Event, Telling, TriggerMessageAvailable
from trigmon.qmgr.sessions import Identity, Session
from trigmon.qmgr.timed_work import due, next_ring
from trigmon.qmgr.two_stores import TwoStores
from trigmon.simulate.scenario_stores import STORES, Group, Stores
from trigmon.simulate.stage import Available, numbered
from trigmon.store.port import Store


class _Listener(Telling):
    """Keeps what a scenario may ask about: the trigger messages that became available."""

    def __init__(self) -> None:
        self.heard: list[Available] = []

    def tell(self, event: Event) -> None:
        """Adds a trigger message that became available."""
        if isinstance(event, TriggerMessageAvailable):
            self.heard.append(Available(event.q_mgr_name, event.initiation_q, event.message))


class _QueueManager:
    """One queue manager of the stage, on a store that is empty again at the end. ``group``: it is a member of it."""

    def __init__(self, name: str, clock: VirtualClock, telling: Telling, stores: Stores, group: Group | None) -> None:
        self.name = name
        self._clock = clock
        self._telling = telling
        self._stores = stores
        self._group = group
        self._run_at: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        """Starts the queue manager; what its store kept is there."""
        own = self._stores.new()
        self._store: Store = own if self._group is None else TwoStores(own, self._group.join(self.name))
        self.manager = QueueManager(self.name, self._store, self._clock, telling=self._telling)
        CommandServer(self.manager)
        self.scan()

    def cut_off(self) -> None:
        """Ends it as a killed process ends: what was not durable is gone."""
        self._store.abandon()
        if self._group is not None:
            self._group.recover(self.name)

    def clear(self) -> None:
        """Ends the queue manager and discards its data."""
        self.manager.stop()
        self._stores.empty()

    def next_moment(self) -> int | None:
        """Returns when time next changes something: a wait ends, a queue is judged by time, or a moment comes."""
        moments = [self.manager.next_deadline_ms(), self.manager.housekeeping.schedules.due_ms()]
        if self.manager.housekeeping.watches_the_clock:
            moments.append(next_ring(self._run_at, self._clock.now()))
        return min((moment for moment in moments if moment is not None), default=None)

    def do_what_is_due(self, moment: int) -> list[Answer]:
        """Returns the chores of this moment, and the ends of waits."""
        answers: list[Answer] = []
        for job in due(self._run_at, moment):
            self._run_at[job.name] = moment
            answers += job.work(self.manager.housekeeping)
        answers += self.manager.housekeeping.reach_moments()
        return [*answers, *self.scan(), *self.manager.turn([])]

    def scan(self) -> list[Answer]:
        """Lets a look for expired messages come to its end: between two steps there is time for it."""
        answers: list[Answer] = []
        while self.manager.housekeeping.is_scanning:
            answers += self.manager.housekeeping.scan()
        return answers


@dataclass
class _Connection:
    """An application's session and the number of its current unit of work, counted from 1."""

    session: Session
    unit: int = 1


class InProcess:
    """Queue managers by name, several as one queue-sharing group, on stores that are empty again at the end.

    ``store`` is for what is their own: one of STORES, or what was made by one of them for each queue manager.
    ``in_group``: one is in a group as well, of its own.
    """

    def __init__(self, q_mgrs: Sequence[str], store: str | Sequence[Stores], *, in_group: bool = False) -> None:
        self._clock = VirtualClock()
        self._listener = _Listener()
        self._connections: dict[tuple[str, str], _Connection] = {}
        self._operators: dict[str, Session] = {}
        self._sequence = 0
        self._q_mgrs: dict[str, _QueueManager] = {}
        made = [STORES[store]("") for _ in q_mgrs] if isinstance(store, str) else store
        self._group = made[0].group() if in_group or len(q_mgrs) > 1 else None
        self._to_end = made if isinstance(store, str) else ()
        for name, stores in zip(q_mgrs, made, strict=True):
            self._q_mgrs[name] = _QueueManager(name, self._clock, self._listener, stores, self._group)
            self._has_started(name)

    def perform(self, q_mgr: str, application: str, call: Call) -> Reply:
        """See :class:`trigmon.simulate.stage.Stage`."""
        key = q_mgr, application
        if key not in self._connections:
            self._connections[key] = _Connection(self.connect(application, administrator=True, q_mgr=q_mgr))
        connection = self._connections[key]
        reply = self.ask(connection.session, numbered(call, connection.unit))
        if isinstance(call, Commit | Backout):
            connection.unit += 1
        elif isinstance(call, Disconnect):
            del self._connections[key]
        return reply

    def command(self, q_mgr: str, call: Call) -> Reply:
        """See :class:`trigmon.simulate.stage.Stage`."""
        return self.ask(self._operators[q_mgr], call)

    def kill(self, q_mgr: str, application: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`. An application that has not connected loses nothing."""
        connection = self._connections.pop((q_mgr, application), None)
        if connection is not None:
            self.lose(connection.session)

    def restart(self, q_mgr: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        self._end(q_mgr, lambda member: member.manager.stop())

    def crash(self, q_mgr: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`. What was not durable is gone with the process."""
        self._end(q_mgr, lambda member: member.cut_off())

    def advance(self, milliseconds: int) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        end = self._clock.now() + milliseconds
        while (moment := self._next_moment()) is not None and moment <= end:
            self._go_on_to(moment)
        self._go_on_to(end)

    def became_available(self) -> list[Available]:
        """See :class:`trigmon.simulate.stage.Stage`."""
        heard, self._listener.heard = self._listener.heard, []
        return heard

    def close(self) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        for member in self._q_mgrs.values():
            member.clear()
        for stores in self._to_end:
            stores.end()

    def connect(self, application: str, *, administrator: bool = False, q_mgr: str = "", user: str = "root") -> Session:
        """Returns a session for calls by :meth:`ask`; blank: with the first queue manager. The caller numbers units."""
        member = self._q_mgrs[q_mgr] if q_mgr else next(iter(self._q_mgrs.values()))
        self._sequence += 1
        session = member.manager.connect(
            Identity(
                client_id=f"{self._sequence:016x}",
                application=application,
                pid=1,
                uid=0,
                user=user,
                run_id="",
                administrator=administrator,
            )
        )
        session.attachment = member.name
        return session

    def ask(self, session: Session, call: Call) -> Reply:
        """Returns the reply to a call; one that waits gets the time it waits for. Raises MQError for a refusal."""
        if isinstance(call, Get | GetMany) and call.wait_interval_ms < 0:
            return self._ask_without_end(session, call)
        self._sequence += 1
        mine = self._sequence
        member = self._q_mgrs[session.attachment]
        answers = [*member.manager.turn([(session, mine, call)]), *member.scan(), *self._look_around()]
        while not (reply := _reply_to(answers, session, mine)):
            moment = self._next_moment()
            assert moment is not None, call
            answers = self._go_on_to(moment)
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
        return reply

    def lose(self, session: Session) -> None:
        """Loses the connection of a session from :meth:`connect`."""
        self._q_mgrs[session.attachment].manager.lost([session])
        self._look_around()

    def _end(self, q_mgr: str, end: Callable[[_QueueManager], object]) -> None:
        """Ends a queue manager, lets the others find that out, and starts it again."""
        member = self._q_mgrs.pop(q_mgr)
        end(member)
        for key in [key for key in self._connections if key[0] == q_mgr]:
            del self._connections[key]
        self._look_around()
        member.start()
        self._q_mgrs[q_mgr] = member
        self._has_started(q_mgr)

    def _has_started(self, q_mgr: str) -> None:
        self._operators[q_mgr] = self.connect("operator", administrator=True, q_mgr=q_mgr)
        self._look_around()

    def _look_around(self) -> list[Answer]:
        """Lets every member look at what the others did in the group, until nobody does anything any more."""
        answers: list[Answer] = []
        seen = -1
        while self._group is not None and seen != self._group.version:
            seen = self._group.version
            for member in self._q_mgrs.values():
                answers += member.manager.turn([])
        return answers

    def _ask_without_end(self, session: Session, call: Get | GetMany) -> Reply:
        """Returns the reply to a get that may wait without end, which in a scenario nobody could ever end."""
        try:
            return self.ask(session, msgspec.structs.replace(call, wait_interval_ms=0))
        except NoMsgAvailable:
            raise UnexpectedError("it waits without end: in a scenario nothing can happen meanwhile") from None

    def _next_moment(self) -> int | None:
        moments = [member.next_moment() for member in self._q_mgrs.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def _go_on_to(self, moment: int) -> list[Answer]:
        """Lets the time come to a moment, and what is due then happen: ends of waits, and the chores."""
        self._clock.advance(max(0, moment - self._clock.now()))
        answers: list[Answer] = []
        for member in self._q_mgrs.values():
            answers += member.do_what_is_due(moment)
        return [*answers, *self._look_around()]


def _reply_to(answers: list[Answer], session: Session, sequence: int) -> Reply | None:
    return next((a.reply for a in answers if a.session is session and a.sequence == sequence), None)
