"""The turn of the loop: every call that has arrived becomes one turn of the queue manager, and then all are answered.

The connections that were readable together ring once; the turn runs when all of them have been read, so under load the
batch grows by itself and one sync of the disk serves many. Nobody waits for a batch to fill.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from trigmon.log import Seldom
from trigmon.mq.calls import Alter, Call
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.clock import Clock
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.sessions import Session
from trigmon.qmgr.timed_work import Job
from trigmon.server.connection import Connection
from trigmon.server.connection_limits import Clients
from trigmon.server.executor import OnTheLoop, Work, Worker
from trigmon.server.memory_budget import TURN_MESSAGES, Intake, Room, to_be_cut
from trigmon.server.startup_calls import max_msg_length
from trigmon.settings import ServerSettings
from trigmon.wire import codec
from trigmon.wire.frames import frame_limit

FAIR_SHARE = 8
"""Messages a connection may bring into a turn at least, however many connections there are."""

T = TypeVar("T")
Batch = list[tuple[Session, int, Call]]


class Performed(NamedTuple):
    """What a turn brought; ``frame_limit`` only where it may have changed."""

    answers: list[Answer]
    deadline_ms: int | None
    frame_limit: int | None


class Turns:
    """Carries calls from connections to the queue manager and replies back.

    ``on_broken`` hears of an error out of a turn: then nothing may be
    answered any more. The ``worker`` does all that is asked of the queue manager.
    """

    def __init__(
        self,
        manager: QueueManager,
        clock: Clock,
        patience: ServerSettings,
        clients: Clients,
        *,
        log: Any,
        on_broken: Callable[[BaseException], None],
        worker: Worker | None = None,
    ) -> None:
        self.patience = patience
        self.clients = clients
        self.performed = 0
        self._manager = manager
        self._clock = clock
        self._log = log
        self._seldom = Seldom(log)
        self._on_broken = on_broken
        self._worker = worker or OnTheLoop()
        self._worker.failed = self._break
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Connection, None] = {}
        self._lost: list[Session] = []
        self._failed: list[Session] = []
        self.frame_limit = frame_limit(max_msg_length(manager))
        self.intake = Intake(self.frame_limit)
        self._slow: set[Connection] = set()
        self._is_scheduled = False
        self._is_due = False
        self._is_scanning = False
        self._performed_before: dict[str, int] = {}
        self._asked: set[object] = set()
        self._is_over = False
        self._dismissed: Refused | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms: int | None = None

    # -- what connections tell ----------------------------------------------------------------------------

    def began(self, connection: Connection) -> None:
        """Keeps a connection, from its first moment to its last."""
        self.clients.began(connection)
        if self._dismissed:
            connection.end(codec.encode_welcome(self._dismissed))

    def greet(self, connection: Connection, hello: codec.Hello) -> None:
        """Lets a client in, or says why not, by a welcome to the connection."""
        identity = self.clients.claim(connection, hello)
        if isinstance(identity, Refused):
            connection.welcome(identity)
        else:
            greeted = partial(self._greeted, connection, identity.client_id)
            self._worker.do(partial(self.clients.enter, identity), greeted)

    def _greeted(self, connection: Connection, client_id: str, entered: Session | Refused) -> None:
        is_there = connection in self.clients.connections
        greeting = self.clients.greet(connection, client_id, entered, self.frame_limit)
        if is_there:
            connection.welcome(greeting)
        else:
            self.ended(connection)

    def arrived(self, connection: Connection) -> None:
        """Plans a turn for a call that can be performed, behind all that has arrived."""
        self._ready[connection] = None
        self._ring()

    def keeps_up(self, connection: Connection, it_does: bool) -> None:
        """Keeps who does not take its replies as fast as they come, and cuts the slowest when they are too many."""
        if it_does:
            self._slow.discard(connection)
            return
        self._slow.add(connection)
        for slowest in to_be_cut(self._slow):
            self._slow.discard(slowest)
            self.cut_off(slowest, "it does not read its replies, and too many lie unread")
            slowest.cut()

    def cut_off(self, connection: Connection, why: str) -> None:
        """Says that a connection is cut and why, but not more often than a disk can bear."""
        self._seldom.warning("connection cut", why=why, peer=str(connection.peer))

    def ended(self, connection: Connection) -> None:
        """Backs out what a lost connection left, in the next turn."""
        self.clients.gone(connection)
        self._ready.pop(connection, None)
        session = connection.session
        if session is not None:
            session.attachment = None
            if not connection.disconnected and not self._is_over:
                self._lost.append(session)
                self._ring()

    def session_failed(self, session: Session) -> None:
        """Ends the connection of a session whose call met a bug; the call is answered."""
        self._failed.append(session)

    # -- the turn -----------------------------------------------------------------------------------------

    def _ring(self) -> None:
        if not self._is_scheduled and not self._is_over:
            self._is_scheduled = True
            # Its calls are gathered when its time has come: who comes meanwhile is of the same turn.
            self._loop.call_soon(self._worker.give, self._turn)

    def _due(self) -> None:
        self._alarm = self._alarm_ms = None
        self._is_due = True
        self._ring()

    def _turn(self) -> Work | None:
        self._is_scheduled = False
        if self._is_over:
            return None
        batch = self._gather()
        lost, self._lost = self._lost, []
        is_due, self._is_due = self._is_due, False
        perform = partial(self._perform, batch, lost, is_due=is_due)
        return perform, partial(self._performed, len(batch), lost)

    def _perform(self, batch: Batch, lost: list[Session], *, is_due: bool) -> Performed:
        """Returns a turn of the queue manager, and what the daemon asks it behind that.

        The loop may go on meanwhile.
        """
        answers = self._manager.lost(lost) if lost else []
        if batch or is_due:
            answers += self._manager.turn(batch)
        limit = None
        if any(isinstance(call, Alter) and call.object_type == "QMGR" for _, _, call in batch):
            limit = frame_limit(max_msg_length(self._manager))
        return Performed(answers, self._manager.next_deadline_ms(), limit)

    def _performed(self, calls: int, lost: list[Session], done: Performed) -> None:
        self.clients.forget(lost)
        if done.frame_limit is not None:
            self.frame_limit = done.frame_limit
            self.intake.suit(self.frame_limit)
        self.performed += calls
        self._worked(done)

    def _break(self, error: BaseException) -> None:
        self._is_over = True
        self._on_broken(error)

    def _gather(self) -> Batch:
        """Returns the calls of the next turn: of each connection some, in its order."""
        batch: Batch = []
        room = Room()
        share = max(FAIR_SHARE, TURN_MESSAGES // max(1, len(self._ready)))
        waiting, self._ready = self._ready, {}
        served: list[Connection] = []
        for connection in waiting:
            if room.is_left and connection.session is not None:
                session = connection.session
                batch += [(session, sequence, call) for sequence, call in connection.take(share, room)]
                served.append(connection)
            elif connection.is_ready:
                self._ready[connection] = None
        # Who was served stands behind those who were not.
        for connection in served:
            if connection.is_ready:
                self._ready[connection] = None
        return batch

    def _send(self, answers: Iterable[Answer]) -> None:
        """Sends each connection its replies, and lets those go on whose waiting get was answered."""
        touched: dict[Connection, None] = {}
        for session, sequence, reply in answers:
            connection: Connection | None = session.attachment
            if connection is not None:
                connection.answer(sequence, reply)
                touched[connection] = None
        for connection in touched:
            connection.flush()
            if connection.is_ready:
                self._ready[connection] = None
        for session in self._failed:
            if session.attachment is not None:
                session.attachment.end()
        self._failed.clear()

    def _set_alarm(self, deadline_ms: int | None) -> None:
        """Rings when the manager wants a turn even if nobody calls: a wait runs out, upkeep is due."""
        if deadline_ms == self._alarm_ms:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_ms = None, deadline_ms
        if deadline_ms is not None:
            wait_s = max(0, deadline_ms - self._clock.now()) / 1000
            self._alarm = self._loop.call_later(wait_s, self._due)

    # -- upkeep and the end -------------------------------------------------------------------------------

    def look_after(self) -> None:
        """Cuts those whose time is up; once a second."""
        if self._is_over:
            return
        now = self._loop.time()
        for connection in list(self.clients.connections):
            connection.look_after(now)

    def work(self, job: Job) -> None:
        """Performs one of the queue manager's own jobs, which is due."""
        was_busy = self.performed != self._performed_before.get(job.name, 0)
        self._performed_before[job.name] = self.performed
        if not (job.can_rest and was_busy):
            self._chore(job.name, partial(self._timed, partial(job.work, self._manager.housekeeping)), self._worked)

    def _timed(self, work: Callable[[], list[Answer]]) -> Performed:
        """Performs work that no call asked for."""
        return Performed(work(), self._manager.next_deadline_ms(), None)

    def _worked(self, done: Performed) -> None:
        self._send(done.answers)
        self._set_alarm(done.deadline_ms)
        self.go_on_scanning()
        if self._ready:
            self._ring()

    def keep(self, call: Callable[[], T], then: Callable[[T], None] = lambda _: None) -> None:
        """Runs a call of the store and then ``then``; it fails as a turn would."""
        self._chore(call, call, then)

    def _chore(self, name: object, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Plans timed work; a job that still waits is not planned twice."""

        def done(result: T) -> None:
            self._asked.discard(name)
            then(result)

        if not self._is_over and name not in self._asked:
            self._asked.add(name)
            self._worker.do(work, done)

    @property
    def busy_s(self) -> float:
        """How long the queue manager has been at work on the same thing, while the loop went on."""
        return self._worker.busy_s

    def look(self) -> None:
        """Plans a turn without calls, for what may have changed without one."""
        self._is_due = True
        self._ring()

    def go_on_scanning(self) -> None:
        """Lets a look for expired messages go on, a slice between two turns, until it is over."""
        if self._manager.housekeeping.is_scanning and not self._is_scanning and not self._is_over:
            self._is_scanning = True
            self._loop.call_soon(self._scan)

    def _scan(self) -> None:
        if not self._is_over:
            self._worker.do(partial(self._timed, self._manager.housekeeping.scan), self._scanned)

    def _scanned(self, done: Performed) -> None:
        self._is_scanning = False
        self._worked(done)

    def stop(self, stopped: Callable[[], None] = lambda: None) -> None:
        """Ends in order: answers waiting calls, backs out open units of work, closes connections.

        ``stopped`` is called behind that.
        """
        self._is_over = True
        self._set_alarm(None)
        self._worker.finish(self._manager.stop, partial(self._see_off, stopped))

    def _see_off(self, stopped: Callable[[], None], answers: list[Answer]) -> None:
        self._set_alarm(None)
        self._send(answers)
        stopping = Refused(reason=int(Reason.Q_MGR_STOPPING), about=self._manager.name)
        for connection in list(self.clients.connections):
            # Numbered 0: it answers no call, it is the last word on the connection. Some wait for their welcome.
            connection.end(codec.encode_response(0, stopping) if connection.session else codec.encode_welcome(stopping))
        stopped()

    def dismiss(self, why: str) -> None:
        """Ends all connections with the reason; the outcome of unanswered calls is not known here.

        A client that has sent nothing yet learns that nothing was done.
        """
        self._is_over = True
        self._set_alarm(None)
        self._dismissed = Refused(reason=int(Reason.CF_NOT_AVAILABLE), about=why)
        broken = codec.encode_response(0, Refused(reason=int(Reason.CONNECTION_BROKEN), about=why))
        for connection in list(self.clients.connections):
            connection.end(broken if connection.session else codec.encode_welcome(self._dismissed))
        self._loop.call_later(self.patience.stop_timeout_s, self.drop)

    def drop(self) -> None:
        """Ends at once: no call is answered."""
        self._is_over = True
        self._set_alarm(None)
        for connection in list(self.clients.connections):
            connection.cut()
