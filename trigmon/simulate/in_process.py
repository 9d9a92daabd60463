"""The stage of ``trigmon simulate``: the daemon's queue manager and store in this process, on a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from trigmon.mq.calls import Backout, Call, Commit, Disconnect, Get, GetMany
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import MQError, NoMsgAvailable, UnexpectedError
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.housekeeping import due, next_ring
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.sessions import Identity, Session
from trigmon.qmgr.telling import Telling
from trigmon.simulate.stage import Available, numbered
from trigmon.simulate.stores import STORES, Stores


class _Listener(Telling):
    """Keeps what a scenario may ask about: the trigger messages that became available."""

    def __init__(self) -> None:
        self.heard: list[Available] = []

    def trigger_available(self, q_mgr_name: str, initiation_q: str, message: TriggerMessage) -> None:
        """One more."""
        self.heard.append(Available(q_mgr_name, initiation_q, message))


@dataclass
class _Connection:
    """An application's session and the number of its current unit of work, counted from 1."""

    session: Session
    unit: int = 1


class InProcess:
    """One queue manager by name, on a store that is empty again at the end; a name is that of one in STORES."""

    def __init__(self, q_mgr: str, store: str | Stores) -> None:
        self._name = q_mgr
        self._clock = VirtualClock()
        self._listener = _Listener()
        self._is_own = isinstance(store, str)
        self._stores = STORES[store]("") if isinstance(store, str) else store
        self._store = self._stores.new()
        self._connections: dict[str, _Connection] = {}
        self._rung: dict[str, int] = {}
        self._sequence = 0
        self._start()

    def perform(self, q_mgr: str, application: str, call: Call) -> Reply:
        """See :class:`trigmon.simulate.stage.Stage`."""
        connection = self._connections.get(application)
        if connection is None:
            connection = self._connections[application] = _Connection(self.connect(application, administrator=True))
        reply = self.ask(connection.session, numbered(call, connection.unit))
        if isinstance(call, Commit | Backout):
            connection.unit += 1
        elif isinstance(call, Disconnect):
            del self._connections[application]
        return reply

    def command(self, q_mgr: str, call: Call) -> Reply:
        """See :class:`trigmon.simulate.stage.Stage`."""
        return self.ask(self._operator, call)

    def kill(self, application: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`. An application that has not connected loses nothing."""
        connection = self._connections.pop(application, None)
        if connection is not None:
            self._manager.lost([connection.session])

    def restart(self, q_mgr: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        self._manager.stop()
        self._start_again()

    def crash(self, q_mgr: str) -> None:
        """See :class:`trigmon.simulate.stage.Stage`. What was not durable is gone with the process."""
        self._store.abandon()
        self._start_again()

    def advance(self, milliseconds: int) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        end = self._clock.now() + milliseconds
        while (moment := self._next_moment()) is not None and moment <= end:
            self._go_on_to(moment)
        self._go_on_to(end)

    def _next_moment(self) -> int | None:
        """When something happens by itself: a wait ends, or a queue that watches the clock is looked at."""
        moments = [self._manager.next_deadline_ms()]
        if self._manager.watches_the_clock:
            moments.append(next_ring(self._rung, self._clock.now()))
        return min((moment for moment in moments if moment is not None), default=None)

    def became_available(self) -> list[Available]:
        """See :class:`trigmon.simulate.stage.Stage`."""
        heard, self._listener.heard = self._listener.heard, []
        return heard

    def close(self) -> None:
        """See :class:`trigmon.simulate.stage.Stage`."""
        self._manager.stop()
        self._stores.empty()
        if self._is_own:
            self._stores.end()

    def _start(self) -> None:
        self._manager = QueueManager(self._name, self._store, self._clock, telling=self._listener)
        self._scan()
        self._operator = self.connect("operator", administrator=True)

    def _start_again(self) -> None:
        self._connections.clear()
        self._store = self._stores.new()
        self._start()

    def connect(self, application: str, *, administrator: bool = False) -> Session:
        """A session for who makes calls by :meth:`ask` and numbers units of work himself."""
        self._sequence += 1
        return self._manager.connect(
            Identity(
                client_id=f"{self._sequence:016x}",
                application=application,
                pid=1,
                uid=0,
                user="root",
                run_id="",
                administrator=administrator,
            )
        )

    def ask(self, session: Session, call: Call) -> Reply:
        """The reply to a call; one that waits gets the time it waits for. Raises MQError for a refusal."""
        if isinstance(call, Get | GetMany) and call.wait_interval_ms < 0:
            return self._ask_without_end(session, call)
        self._sequence += 1
        mine = self._sequence
        answers = self._manager.turn([(session, mine, call)]) + self._scan()
        while not (reply := _reply_to(answers, session, mine)):
            moment = self._next_moment()
            assert moment is not None, call
            answers = self._go_on_to(moment)
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
        return reply

    def lose(self, session: Session) -> None:
        """The connection of a session from :meth:`connect` is lost."""
        self._manager.lost([session])

    def _ask_without_end(self, session: Session, call: Get | GetMany) -> Reply:
        """The reply to a get that may wait without end, which in a scenario nobody could ever end."""
        try:
            return self.ask(session, msgspec.structs.replace(call, wait_interval_ms=0))
        except NoMsgAvailable:
            raise UnexpectedError("it waits without end: in a scenario nothing can happen meanwhile") from None

    def _go_on_to(self, moment: int) -> list[Answer]:
        """Lets the time come to a moment, and what is due then happen: ends of waits, and the chores."""
        self._clock.advance(max(0, moment - self._clock.now()))
        answers: list[Answer] = []
        for job in due(self._rung, moment):
            self._rung[job.name] = moment
            answers += job.work(self._manager)
        return [*answers, *self._scan(), *self._manager.turn([])]

    def _scan(self) -> list[Answer]:
        """Lets a look for expired messages come to its end: between two steps there is time for it."""
        answers: list[Answer] = []
        while self._manager.is_scanning:
            answers += self._manager.scan()
        return answers


def _reply_to(answers: list[Answer], session: Session, sequence: int) -> Reply | None:
    return next((a.reply for a in answers if a.session is session and a.sequence == sequence), None)
