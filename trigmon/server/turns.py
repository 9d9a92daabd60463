"""The turn of the loop: every call that has arrived becomes one turn of the queue manager, and then all are answered.

Connections that were readable together plan one turn; it begins when all of them have been read, so under load the
batch grows by itself and one sync of the disk serves many. No call waits for a batch to fill. Where a turn waits for a
group to be entered, the calls that arrive meanwhile belong to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

from trigmon.log import Seldom
from trigmon.mq.calls import Call
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.clock import Clock
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.sessions import Session
from trigmon.qmgr.timed_work import Job
from trigmon.server.background_work import BackgroundWork, Performed
from trigmon.server.connection import Connection
from trigmon.server.connection_limits import Clients
from trigmon.server.deadline_timer import DeadlineTimer
from trigmon.server.event_loop import EventLoop
from trigmon.server.executor import OnTheLoop, Work, Worker
from trigmon.server.memory_budget import TURN_MESSAGES, Intake, Room, to_be_cut
from trigmon.setting_sections import ServerSettings
from trigmon.wire import codec
from trigmon.wire.frames import frame_limit

T = TypeVar("T")
FAIR_SHARE = 8
"""Messages a connection may bring into a turn at least, however many connections there are."""

Batch = list[tuple[Session, int, Call]]


class SharedTurn(Protocol):
    """The group's part of a member's turns; :class:`trigmon.store.postgres.group.membership.PostgresMembership`."""

    @property
    def is_due(self) -> bool:
        """Whether the next turn enters the group at its begin."""

    def begin(self) -> None:
        """Begins a turn, which may wait for other members. The turn must be performed, even without calls."""


class ReadyQueue:
    """Ready connections, in the order in which they take part in turns."""

    def __init__(self) -> None:
        self._connections: dict[Connection, None] = {}

    def __bool__(self) -> bool:
        return bool(self._connections)

    def add(self, connection: Connection) -> None:
        """Adds a connection that is ready behind all others, unless it is there."""
        self._connections[connection] = None

    def add_again(self, connection: Connection) -> None:
        """Adds a connection that has taken part in a turn, if it is ready."""
        if connection.is_ready:
            self._connections[connection] = None

    def remove(self, connection: Connection) -> None:
        """Removes a connection that has ended."""
        self._connections.pop(connection, None)

    def next_batch(self) -> Batch:
        """Returns the calls of the next turn: of each connection some, in its order."""
        batch: Batch = []
        room = Room()
        share = max(FAIR_SHARE, TURN_MESSAGES // max(1, len(self._connections)))
        waiting, self._connections = self._connections, {}
        served: list[Connection] = []
        for connection in waiting:
            if room.is_left:
                batch += connection.take(share, room)
                served.append(connection)
            else:
                self.add_again(connection)
        # Behind the connections that were not served.
        for connection in served:
            self.add_again(connection)
        return batch


class Turns:
    """Carries calls from connections to the queue manager and replies back, until its end.

    ``on_broken`` is called with an error out of a turn: then nothing may be answered any more. The ``worker`` does all
    that is asked of the queue manager. ``shared``: the group's part of each turn, for a member.
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
        shared: SharedTurn | None = None,
    ) -> None:
        self.patience = patience
        self.clients = clients
        self.performed = 0
        self._manager = manager
        self._seldom = Seldom(log)
        self._on_broken = on_broken
        self._worker = worker or OnTheLoop()
        self._worker.failed = self._break
        self._shared = shared
        self._loop = loop = asyncio.get_running_loop()
        self._at_end_of_pass = loop.call_at_end_of_pass if isinstance(loop, EventLoop) else loop.call_soon
        self._ready = ReadyQueue()
        self._lost: list[Session] = []
        self._failed: list[Session] = []
        self._max_msg_length = manager.housekeeping.max_msg_length
        self.frame_limit = frame_limit(self._max_msg_length)
        self.intake = Intake(self.frame_limit)
        self._slow: set[Connection] = set()
        self._is_scheduled = False
        self._is_due = False
        self._is_over = False
        self._timer = DeadlineTimer(clock, self.look)
        self._background = BackgroundWork(manager, self._worker, self._finish, lambda: self.performed)

    # -- what connections tell ----------------------------------------------------------------------------

    def began(self, connection: Connection) -> None:
        """Keeps a connection, from its first moment to its last."""
        self.clients.began(connection)

    def greet(self, connection: Connection, hello: codec.Hello) -> None:
        """Lets a client in, or says why not, by a welcome to the connection."""
        identity = self.clients.claim(connection, hello)
        if isinstance(identity, Refused):
            connection.welcome(identity)
        else:
            greeted = partial(self._greeted, connection, identity.client_id)
            self._worker.do(partial(self.clients.enter, identity), greeted)

    def _greeted(self, connection: Connection, client_id: str, entered: Session | Refused) -> None:
        if isinstance(entered, Refused) and connection.peer.ticket:
            self._seldom.warning("a ticket was refused", why=entered.about, address=connection.peer.address)
        is_there = connection in self.clients.connections
        greeting = self.clients.greet(connection, client_id, entered, self.frame_limit)
        if is_there:
            connection.welcome(greeting)
        else:
            self.ended(connection)

    def arrived(self, connection: Connection) -> None:
        """Plans a turn for a call that can be performed, behind all that has arrived."""
        self._ready.add(connection)
        self._schedule()

    def keeps_up(self, connection: Connection, it_does: bool) -> None:
        """Keeps the connections that read more slowly than they are answered; cuts the slowest at too many replies."""
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
        self._ready.remove(connection)
        session = connection.session
        if session is not None:
            session.attachment = None
            if not connection.disconnected and not self._is_over:
                self._lost.append(session)
                self._schedule()

    def session_failed(self, session: Session) -> None:
        """Ends the connection of a session whose call met a bug; the call is answered."""
        self._failed.append(session)

    # -- the turn -----------------------------------------------------------------------------------------

    def look(self) -> None:
        """Plans a turn even without calls, for what time or another member may have changed."""
        self._is_due = True
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._is_over:
            self._is_scheduled = True
            # Calls are gathered when the turn begins: what arrives until then belongs to the same turn.
            self._at_end_of_pass(partial(self._worker.give, self._begin))

    def _begin(self) -> Work | None:
        """Returns what enters the group, so that calls are gathered behind that; without a wait to use, the turn."""
        if self._is_over or self._shared is None or not self._shared.is_due:
            return self._turn()
        return self._shared.begin, lambda _: self._worker.give_next(self._begun)

    def _begun(self) -> Work | None:
        self._is_due = True
        return self._turn()

    def _turn(self) -> Work | None:
        self._is_scheduled = False
        if self._is_over:
            return None
        batch = self._ready.next_batch()
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
        return Performed(answers, self._manager.next_deadline_ms(), self._manager.housekeeping.max_msg_length)

    def _performed(self, calls: int, lost: list[Session], done: Performed) -> None:
        if lost:
            self.clients.forget(lost)
        self.performed += calls
        self._finish(done)

    def _finish(self, done: Performed) -> None:
        """Sends the answers of a turn or of background work, and plans what follows from it."""
        if done.max_msg_length != self._max_msg_length:
            # By a call, or by a command that the command server performed.
            self._max_msg_length = done.max_msg_length
            self.frame_limit = frame_limit(self._max_msg_length)
            self.intake.suit(self.frame_limit)
        self._send(done.answers)
        if not self._is_over:
            self._timer.set(done.deadline_ms)
            self._background.plan_scan()
            if self._ready:
                self._schedule()

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
            self._ready.add_again(connection)
        for session in self._failed:
            if session.attachment is not None:
                session.attachment.end()
        self._failed.clear()

    # -- timed work ---------------------------------------------------------------------------------------

    def look_after(self) -> None:
        """Cuts those whose time is up; once a second."""
        if not self._is_over:
            self.clients.look_after(self._loop.time())

    def work(self, job: Job) -> None:
        """Performs one of the queue manager's own jobs, which is due."""
        self._background.plan_job(job)

    def keep(self, call: Callable[[], T], then: Callable[[T], None] = lambda _: None) -> None:
        """Runs a call of the store and then ``then``; it fails as a turn would."""
        self._background.plan(call, call, then)

    def go_on_scanning(self) -> None:
        """Lets a scan for expired messages go on, a slice between two turns, until it is over."""
        self._background.plan_scan()

    @property
    def busy_s(self) -> float:
        """How long the queue manager has been at work on the same thing, while the loop went on."""
        return self._worker.busy_s

    # -- the end ------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Ends all that is planned: no turn and no background work begins any more."""
        self._is_over = True
        self._timer.set(None)
        self._background.end()

    def _break(self, error: BaseException) -> None:
        self._end()
        self._on_broken(error)

    def stop(self, stopped: Callable[[], None] = lambda: None) -> None:
        """Ends in order: answers waiting calls, backs out open units of work, closes connections.

        ``stopped`` is called behind that.
        """

        def finish(answers: list[Answer]) -> None:
            self._send(answers)
            stopping = Refused(reason=int(Reason.Q_MGR_STOPPING), about=self._manager.name)
            self.clients.end_all(stopping, stopping)
            stopped()

        self._end()
        self._worker.finish(self._manager.stop, finish)

    def dismiss(self, why: str) -> None:
        """Ends all connections with the reason; the outcome of unanswered calls is not known here.

        A client that has sent nothing yet learns that nothing was done, also one that connects later.
        """
        self._end()
        self.clients.refusal = Refused(reason=int(Reason.CF_NOT_AVAILABLE), about=why)
        self.clients.end_all(Refused(reason=int(Reason.CONNECTION_BROKEN), about=why), self.clients.refusal)
        self._loop.call_later(self.patience.stop_timeout_s, self.drop)

    def drop(self) -> None:
        """Ends at once: no call is answered."""
        self._end()
        self.clients.cut_all()
