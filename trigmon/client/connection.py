"""A connection to a queue manager: units of work, opened objects, and every call there is."""

from __future__ import annotations

import os
from _thread import get_ident
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, TypeVar, Unpack

from trigmon.client import option_names, queue, reservation
from trigmon.client.message import Message, Receipt
from trigmon.client.option_names import Data, PutWords
from trigmon.client.queue import Queue
from trigmon.client.spans import SingleGets, trace_environment
from trigmon.client.transport import Link
from trigmon.mq.calls import (
    Backout,
    Call,
    Commit,
    Disconnect,
    Explain,
    Get,
    GetMany,
    Open,
    Outcome,
    Put,
    PutMany,
    RecordRun,
    RecordRuns,
    Rehearse,
    Release,
    Reservations,
    Settle,
)
from trigmon.mq.enums import GetOption, ObjectType, OpenOption, UnitOutcome
from trigmon.mq.errors import BackedOut, CallInProgress, ConnectionBroken, HconnError, MQError
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Explained, Opened, OutcomeWas, Refused, Reply, Settled, WereGot
from trigmon.wire.frames import OVERHEAD

R = TypeVar("R", bound=Reply)
_ENDS_A_UNIT: Final = (Commit, Backout, RecordRun, RecordRuns)
_JOINS_A_UNIT: Final = frozenset({Put, PutMany, Get, GetMany})
_MARK: Final = int(GetOption.MARK_SKIP_BACKOUT)


def hand_over(connection: Connection) -> None:
    """Makes the calling thread the one that uses a connection; the caller keeps all others from it meanwhile.

    Raises HconnError in another process than the one that connected.
    """
    if connection._owner[1] != os.getpid():
        raise HconnError("this connection is another process's: connect again after a fork")
    connection._owner = (get_ident(), os.getpid())


class Connection:
    """What :func:`trigmon.connect` returns; one thread of one process uses it.

    Leaving its block cleanly disconnects, which commits; an exception backs out. After a lost link every call
    raises ConnectionBroken, and a new connection may ask what became of ``unit`` by this one's ``client_id``; but
    with ``reconnect_s`` it is a :class:`trigmon.client.reconnectable.ReconnectableConnection`.
    """

    def __init__(self, transport: Link, client_id: str) -> None:
        self._transport = transport
        self._owner = (get_ident(), os.getpid())
        self._ended = False
        self._unit = 1
        self._batches = 0
        self._backouts = 0
        self._in_unit = False
        self._marked = False
        self._ahead: deque[tuple[int, list[Reply]]] = deque()
        self.traces = trace_environment(os.environ)
        self.single_gets = SingleGets()
        self.client_id = client_id
        self.q_mgr_name = transport.welcome.q_mgr_name
        self.server_version = transport.welcome.server_version
        self.administrator = transport.welcome.administrator
        self.monitor = transport.welcome.monitor

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.disconnect()
        elif self.alive:
            try:
                self.give_up_unit()
                self.disconnect()
            except MQError:
                self.drop()  # the error on its way says more; the queue manager backs a lost connection out

    def __repr__(self) -> str:
        return f"<Connection to {self.q_mgr_name}{'' if self.alive else ', ended'}>"

    # -- the connection itself ------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether calls can be made: not disconnected, and the link not known to be broken."""
        return not self._ended and not self._transport.broken

    @property
    def unit(self) -> int:
        """The number of the unit of work that calls under syncpoint belong to, from 1."""
        return self._unit

    @property
    def largest_call(self) -> int:
        """How many bytes of message data the queue manager reads in one call."""
        return self._transport.welcome.frame_limit - OVERHEAD

    def disconnect(self) -> None:
        """Commits the unit of work and ends the connection in order; a second time does nothing.

        A batch of :meth:`Queue.drain` that was left in the middle is backed out first.
        """
        if self._ended:
            return
        if self._batches:
            self.give_up_unit()
        try:
            self.call(Disconnect(unit=self._unit if self._in_unit else 0))
        finally:
            self.drop()

    def drop(self) -> None:
        """Ends the connection without a word: the queue manager backs out and closes, as for a lost one."""
        self._ended = True
        self._transport.close()
        self.single_gets.end(self.traces)

    # -- calls ----------------------------------------------------------------------------------------------

    def call(self, call: Call, *, is_sound: bool = False) -> Reply:
        """Sends any call and returns its reply. Raises the MQError of a refusal; ConnectionBroken if the link is lost.

        A value that the queue manager would not read is a TypeError or ValueError before anything is sent; who has
        looked at all of them says so by ``is_sound``.
        """
        self._check()
        if self._ahead:
            self._hear(all_but=0)
        if type(call) in _JOINS_A_UNIT:
            self._join(call)
        reply = self._exchange(call, is_sound=is_sound)
        self._settle(call, reply)
        return reply

    def _exchange(self, call: Call, *, is_sound: bool) -> Reply:
        return self._transport.receive(self._transport.send(call, is_sound=is_sound))

    def ask(self, call: Call, kind: type[R], *, is_sound: bool = False) -> R:
        """Sends as :meth:`call` a call whose reply is of this kind."""
        reply = self.call(call, is_sound=is_sound)
        if not isinstance(reply, kind):
            self.drop()
            raise ConnectionBroken(f"{self._transport.where} answered {call!r} with {reply!r}")
        return reply

    def pipeline(self, calls: Iterable[Call], window: int = 8, *, is_sound: bool = False) -> list[Reply]:
        """Sends several calls, of which ``window`` may be on their way at once, and returns their replies in order.

        No call is sent after a refusal was read; the first refusal is raised when all replies are in. None of
        the calls may wait, nor end the unit of work. ``calls`` may make calls of its own on this connection, as
        a browse does: those on their way are heard first. ``is_sound`` as in :meth:`call`, of all of them.
        """
        replies = self.answers(calls, window, is_sound=is_sound)
        for reply in replies:
            if isinstance(reply, Refused):
                raise MQError.of(reply.reason, reply.about)
        return replies

    def answers(self, calls: Iterable[Call], window: int = 8, *, is_sound: bool = False) -> list[Reply]:
        """Sends as :meth:`pipeline`, but a refusal is one of the replies; as many as calls were sent."""
        self._check()
        replies: list[Reply] = []
        try:
            for call in calls:
                if replies and isinstance(replies[-1], Refused):
                    break
                self._join(call)
                self._ahead.append((self._send_ahead(call, is_sound=is_sound), replies))
                self._hear(all_but=window - 1)
        finally:  # an exception from ``calls`` must not leave replies for the next call to find
            self._hear(all_but=0)
        return replies

    def _send_ahead(self, call: Call, *, is_sound: bool = False) -> int:
        return self._transport.send(call, is_sound=is_sound)

    def _hear(self, all_but: int) -> None:
        """Receives what was sent ahead, the oldest first; nothing more comes where the link has gone."""
        while len(self._ahead) > all_but:
            number, replies = self._ahead.popleft()
            if self._transport.broken:
                self._ahead.clear()
                return
            replies.append(self._transport.receive(number))

    def _check(self) -> None:
        if self._owner != (get_ident(), os.getpid()):
            if self._owner[1] != os.getpid():
                raise HconnError("this connection is another process's: connect again after a fork")
            raise CallInProgress("this connection is another thread's: one thread a connection")
        if self._ended:
            raise HconnError(f"the connection to {self.q_mgr_name} has ended")

    def _join(self, call: Call) -> None:
        """Notes that the unit of work has begun, and that a message may be marked in it."""
        if getattr(call, "unit", 0):
            self._in_unit = True
            if type(call) is Get and call.options & _MARK:
                self._marked = True

    def _settle(self, call: Call, reply: Reply) -> None:
        if isinstance(reply, Refused):
            error = MQError.of(reply.reason, reply.about)
            if isinstance(error, BackedOut) and isinstance(call, _ENDS_A_UNIT):
                self._next_unit()  # the unit has ended, only not as it was asked to
            raise error
        ends = isinstance(call, _ENDS_A_UNIT) or (isinstance(reply, WereGot) and bool(reply.runs))
        if ends and getattr(call, "unit", 0) == self._unit:
            carries_over = self._marked and isinstance(call, Backout)
            self._next_unit()
            self._in_unit = carries_over
            if isinstance(call, Backout):
                self._batches = 0
                self._backouts += 1

    def _next_unit(self) -> None:
        self._unit += 1
        self._in_unit = self._marked = False

    # -- units of work --------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commits the unit of work and begins the next. Raises BackedOut when it had to be backed out instead.

        When the link is lost in the middle the outcome is unknown here: a new connection's :meth:`outcome` of
        this ``unit`` and ``client_id`` tells it.
        """
        self.call(Commit(unit=self._unit))

    def backout(self) -> None:
        """Backs the unit of work out and begins the next: what was put is gone, what was got is back.

        But for a message got with ``mark_skip_backout``: it belongs to the next unit of work, and is gone with that
        one's commit and back with its backout.
        """
        self.call(Backout(unit=self._unit))

    def give_up_unit(self) -> None:
        """Backs out the unit of work if there is one: called where an exception leaves a block, or a batch is left.

        A marked message goes back as well: the application asked for no backout that it could skip (seed 002, note 1).
        """
        while self._in_unit:
            self.backout()

    def outcome(self, unit: int, client_id: str | None = None) -> UnitOutcome:
        """Returns what became of a unit of work, of this connection or of one that has gone."""
        call = Outcome(client_id=self.client_id if client_id is None else client_id, unit=unit)
        return self.ask(call, OutcomeWas).outcome

    def begin_batch(self) -> tuple[int, int]:
        """Notes that messages of :meth:`Queue.drain` lie in the caller's hands, taken and not yet consumed.

        Returns a mark of this moment for :meth:`backed_out_since` and :meth:`leave_batch`.
        """
        self._batches += 1
        return self._unit, self._backouts

    def backed_out_since(self, mark: tuple[int, int]) -> bool:
        """Returns whether a unit of work was backed out since the mark."""
        return mark[1] != self._backouts

    def end_batch(self) -> None:
        """Notes that a batch was consumed."""
        self._batches = max(0, self._batches - 1)

    def leave_batch(self, mark: tuple[int, int]) -> None:
        """Backs out a batch left in the middle, unless its unit of work has ended anyway.

        It is called when a generator is closed, which may be long after, and from a collector in any thread.
        """
        if self.alive and self._unit == mark[0] and self._owner == (get_ident(), os.getpid()):
            self.give_up_unit()

    # -- objects and messages -------------------------------------------------------------------------------

    def open(
        self,
        name: str,
        *options: OpenOption | str,
        object_type: ObjectType | str | int = "queue",
        dynamic_q_name: str = "AMQ.*",
    ) -> Queue:
        """Opens an object for what the words say: ``"input_shared", "output"``. Raises UnknownObjectName, ...

        Opening a model queue makes a queue of the name ``dynamic_q_name``, with 16 characters of its own in place of a
        ``*`` at the end, and opens that; the result's ``q_name`` says what it is called.
        """
        call = Open(
            object_name=name,
            options=option_names.open_bits(options),
            object_type=option_names.object_type(object_type),
            dynamic_q_name=dynamic_q_name,
        )
        reply = self.ask(call, Opened)
        return Queue(self, name, reply.q_name or name, reply.handle)

    def put(self, q_name: str, data: Data, **options: Unpack[PutWords]) -> Receipt:
        """Puts one message to a queue that need not be open (MQPUT1)."""
        return queue.put(self, data, options, q_name=q_name)

    put1 = put

    def put_many(self, q_name: str, bodies: Iterable[Data], **options: Unpack[PutWords]) -> list[bytes]:
        """Puts many messages to a queue that need not be open, as :meth:`Queue.put_many` does."""
        return queue.put_many(self, bodies, options, q_name=q_name)

    # -- reservations -----------------------------------------------------------------------------------------

    def read_reserved(self, number: int, first: int = 0, count: int | None = None) -> Iterator[tuple[int, Message]]:
        """Returns what is left of ``count`` messages of a reservation from ordinal ``first`` on, each with its ordinal.

        Any connection may read, any number of times, and reads the same; it stands behind the reservation from then on.
        """
        return reservation.read(self, number, first, count)

    def settle(self, number: int, first: int = 0, count: int | None = None) -> bool:
        """Settles what is left of these messages of a reservation: they are gone. Says whether any was left.

        A second time is as good as the first. Raises BackedOut when the reservation was given back, UnknownObjectName
        when nobody remembers it.
        """
        call = Settle(reservation=number, ordinal=first, count=-1 if count is None else count)
        return not self.ask(call, Settled).already

    def release(self, number: int, first: int = 0, count: int | None = None, *, counts: bool = True) -> bool:
        """Gives what is left of these messages back to the queue. Says whether any was left.

        Their backout counts rise by one, beside once for each time they were offered anew; not with ``counts=False``.
        Raises NotAuthorized while another connection holds it and this one is no administrator's.
        """
        call = Release(reservation=number, ordinal=first, count=-1 if count is None else count, counts=counts)
        return not self.ask(call, Settled).already

    def reservations(self, q_name: str = "*") -> list[dict[str, Any]]:
        """Returns the reservations of which anything is left, of queues of a generic name, by queue and consumer.

        Each is values by name; ``own`` says that it is of this connection's user.
        """
        rows = all_rows(self.call, Reservations(q_name=q_name))
        return sorted(rows, key=lambda row: (row["q_name"], row["consumer"], row["reservation"]))

    def explain(self, q_name: str, priority: int = -1, *, why_not: bool = False) -> Explained:
        """Returns the verdict of a put of this priority (-1: the queue's) now; ``print`` shows it as text.

        ``why_not`` asks besides why the last message did or did not fire: ``last`` holds the last verdict for each
        kind of thing that has happened to the queue since the queue manager started, newest first.
        """
        return self.ask(Explain(q_name=q_name, priority=priority, why_not=why_not), Explained)

    def rehearse(self, q_name: str, priority: int = -1, **attributes: Any) -> Explained:
        """Returns the verdict of a put if the local queue had these attributes, by long name; nothing is changed.

        ``values["saving"]`` holds the verdict on the change itself. Raises AttrValueError, SelectorError.
        """
        return self.ask(Rehearse(q_name=q_name, attributes=attributes, priority=priority), Explained)
