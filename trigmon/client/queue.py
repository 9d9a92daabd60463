"""An open object, as a handle to put to, get from, browse, set and inquire."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from trigmon.client import option_names, spans
from trigmon.client.field_values import whole
from trigmon.client.message import Message, Receipt, receipt
from trigmon.client.option_names import Data, GetWords, Match, PutWords
from trigmon.client.reservation import Reservation, reserve
from trigmon.mq.calls import Call, Close, Get, GetMany, Inquire, Put, PutMany, Reserve, Set
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import CloseOption, GetOption
from trigmon.mq.errors import (
    BackedOut,
    BufferLengthError,
    HobjError,
    MQError,
    NoMsgAvailable,
    OptionsError,
    TruncatedMsgFailed,
    WaitIntervalError,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply, Values, WasGot, WasPut, WereGot, WerePut

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

R = TypeVar("R", bound=Reply)

FRAME_BODIES = 256
FRAME_BYTES = 4_194_304
AHEAD = 8
"""Calls under way at once under syncpoint, where the unit stands or falls together."""
_BROWSE_FIRST, _BROWSE_NEXT = int(GetOption.BROWSE_FIRST), int(GetOption.BROWSE_NEXT)


class Queue:
    """What :meth:`Connection.open` returns. Leaving its block closes it, which commits nothing.

    An exception that leaves the block backs the connection's unit of work out before the queue is closed: what was got
    and not consumed is there again when the close is judged, and the queue's trigger may fire for it.

    ``name`` is the name it was opened by, ``q_name`` that of the local queue: behind an alias, made by opening a model
    queue, or the transmission queue of a remote one.
    """

    def __init__(self, connection: Connection, name: str, q_name: str, handle: int) -> None:
        self.connection = connection
        self.name = name
        self.q_name = q_name
        self.handle = handle
        self._open = True

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, NoMsgAvailable):
            # The end of a queue is no failure: what was taken up to there is the caller's to commit.
            self.close()
        elif self._open and self.connection.alive:
            with suppress(MQError):  # the error on its way says more than this one
                self.connection.give_up_unit()
                self.close()

    def __repr__(self) -> str:
        return f"<Queue {self.name} of {self.connection.q_mgr_name}{'' if self._open else ', closed'}>"

    def close(self, *options: CloseOption | str, delete: bool = False, purge: bool = False) -> Reason:
        """Closes the object; a second time does nothing. The unit of work goes on.

        Returns ``Reason.NONE``, or the warning it completed with: ``INCOMPLETE_GROUP`` or ``INCOMPLETE_MSG`` where the
        last put or get in logical order was not the end of a group or logical message, which stays as it is.

        ``delete`` deletes a permanent dynamic queue when it is empty, ``purge`` with what is on it. Raises QNotEmpty,
        OptionNotValidForType, and the object stays open. A temporary dynamic queue goes with its creating handle.
        """
        if not self._open:
            return Reason.NONE
        bits = option_names.close_bits(options)
        bits |= int(CloseOption.DELETE_PURGE if purge else CloseOption.DELETE) if delete or purge else 0
        reply = self.connection.call(Close(handle=self.handle, options=bits))
        self._open = False
        return Reason(reply.warning)

    def put(self, data: Data, **options: Unpack[PutWords]) -> Receipt:
        """Puts one message; text goes as UTF-8 with format MQSTR. Raises MQError: QFull, PutInhibited, ..."""
        return put(self.connection, data, options, handle=self._checked(), name=self.name)

    def put_many(self, bodies: Iterable[Data], **options: Unpack[PutWords]) -> list[bytes]:
        """Puts a message for each body, with the same options, and returns the message ids in order.

        A frame holds up to 256 bodies or 4 MB and is put whole or not at all. Under syncpoint all frames belong
        to the unit of work; outside it what was put before a refused frame stays put.
        """
        return put_many(self.connection, bodies, options, handle=self._checked(), name=self.name)

    def put_each(self, messages: Iterable[tuple[Data, PutWords]], **options: Unpack[PutWords]) -> list[bytes]:
        """Puts messages that have options of their own beside those of all, and returns their ids in order.

        Under syncpoint a few are under way at once, which is about twice as fast as one by one; where one is refused,
        some behind it may be in the unit of work as well as those before it. Outside syncpoint each waits for the one
        before it, and what was put before a refused one stays put.
        """
        return put_each(self.connection, messages, options, handle=self._checked(), name=self.name)

    def get(
        self,
        *,
        wait_interval_ms: int | None = None,
        max_length: int | None = None,
        match: Match | None = None,
        **options: Unpack[GetWords],
    ) -> Message:
        """Returns the next message, taken or browsed. Raises NoMsgAvailable when there is none (in time).

        ``wait_interval_ms`` is how long to wait for one, -1 for as long as it takes. Over ``max_length`` bytes the
        get fails with 2080 and the message stays, or is cut with ``accept_truncated_msg``.

        A message got with ``mark_skip_backout`` does not go back with :meth:`Connection.backout`, but belongs to the
        unit of work that follows. ``unlock`` lets go what a browse with ``lock`` has locked and returns an empty
        message, whose ``warning`` is ``NO_MSG_LOCKED`` where nothing was locked.
        """
        bits = option_names.get_bits(options) if options else 0
        bits, wait_ms = _waiting(bits, wait_interval_ms)
        reply = self._call(
            Get(
                handle=self.handle,
                options=bits,
                wait_interval_ms=wait_ms,
                max_length=-1 if max_length is None else whole(BufferLengthError, "max_length", max_length),
                **option_names.match_parts(match),
                unit=self.connection.unit if bits & option_names.IN_UNIT else 0,
            ),
            WasGot,
        )
        if reply.warning == Reason.TRUNCATED_MSG_FAILED:
            raise TruncatedMsgFailed(f"{self.name}: the message has {reply.data_length} bytes and was left there")
        message = Message(reply)
        if not bits & option_names.LEAVES and spans.are_on(self.connection.traces):
            self.connection.single_gets.note(self.name, message)
        return message

    def get_many(
        self, count: int, *, wait_interval_ms: int | None = None, **options: Unpack[GetWords]
    ) -> list[Message]:
        """Gets up to ``count`` messages in one round trip, at least one; only the first is waited for.

        Under syncpoint messages that were backed out before come with fewer others each time, and alone before
        BOTHRESH: a bad one takes no good ones with it. Raises NoMsgAvailable when there is none.
        """
        bits, wait_ms = _waiting(option_names.get_bits(options), wait_interval_ms)
        unit = self.connection.unit if bits & option_names.IN_UNIT else 0
        count = whole(OptionsError, "count", count)
        call = GetMany(
            handle=self.handle,
            count=count,
            options=bits,
            wait_interval_ms=wait_ms,
            unit=unit,
            fewer_if_backed_out=bool(unit),
        )
        return [Message(got) for got in self._call(call, WereGot).messages]

    def drain(self, batch: int = 100, *, wait_interval_ms: int | None = None) -> Iterator[Message]:
        """Yields every message to the end of the queue, under syncpoint, ``batch`` at a time.

        A batch is committed when the caller asks for the message after its last, so what was done with its
        messages is done. Leaving the loop early backs the batch out, with the messages already seen in it; then
        its messages come in smaller batches, and alone before BOTHRESH, so that a bad one is put aside alone. A
        backout inside the loop gives the batch back, and it comes again in the same way; so does a connection that was
        lost and made again (``reconnect_s``). With ``wait_interval_ms``
        the end is where nothing came for so long.
        """
        messages, connection = self._drained(batch, wait_interval_ms), self.connection
        return spans.followed(connection.traces, self.name, messages) if spans.are_on(connection.traces) else messages

    def _drained(self, batch: int, wait_interval_ms: int | None) -> Generator[Message, None, None]:
        connection = self.connection
        while True:
            try:
                messages = self.get_many(batch, wait_interval_ms=wait_interval_ms, syncpoint=True)
            except NoMsgAvailable:
                return
            mark = connection.begin_batch()
            try:
                for message in messages:
                    yield message
                    if connection.backed_out_since(mark):
                        break  # the rest of the batch has gone back to the queue, and comes again from there
            except GeneratorExit:
                connection.leave_batch(mark)
                raise
            connection.end_batch()
            try:
                connection.commit()
            except BackedOut:
                # A connection that was made again has backed the batch out, and it comes once more.
                if not connection.backed_out_since(mark):
                    raise

    def reserve(
        self,
        consumer: str,
        *,
        max_messages: int = 10_000,
        max_bytes: int = 1 << 30,
        whole_groups: bool = False,
        token: str = "",
    ) -> Reservation:
        """Reserves the next messages as a fixed batch, hidden from every getter until it is settled or released.

        Raises NoMsgAvailable when there is nothing, ObjectInUse while another connection holds the consumer's.
        No lost connection and no restart ends it: a consumer of this name that reserves again is given the very same
        batch, with ``again`` set, the ``token`` it was made with, and backout counts raised by one.
        """
        call = Reserve(
            handle=self._checked(),
            consumer=consumer,
            max_messages=whole(OptionsError, "max_messages", max_messages),
            max_bytes=whole(OptionsError, "max_bytes", max_bytes),
            whole_groups=whole_groups,
            token=token,
        )
        return reserve(self.connection, call)

    def browse(self, **options: Unpack[GetWords]) -> Iterator[Message]:
        """Returns every message from the first to the last, left where it is. Needs the queue open for ``browse``."""
        self._checked()
        return self._browsed(option_names.get_bits(options))

    def _browsed(self, bits: int) -> Iterator[Message]:
        step = _BROWSE_FIRST
        while True:
            try:
                reply = self._call(Get(handle=self.handle, options=bits | step), WasGot)
            except NoMsgAvailable:
                return
            yield Message(reply)
            step = _BROWSE_NEXT

    def set(self, selectors: Mapping[str | int, Any] | None = None, /, **attributes: Any) -> None:
        """Changes attributes (MQSET) by long name: ``trigger_control="on"``. Raises InhibitValueError, ...

        ``selectors`` names them by IBM's numbers, or in any other way.
        """
        self._checked()
        given: dict[str | int, Any] = dict(selectors or {})
        given.update(attributes)
        self.connection.call(Set(handle=self.handle, attributes=given))

    def inquire(self, *names: str | int) -> dict[str, Any]:
        """Returns attribute values by long name, enumerations as words; without names all there are.

        Names are long names, MQSC's words or IBM's selectors. What only another type of queue has is -1, or asterisks.
        """
        self._checked()
        return self.connection.ask(Inquire(handle=self.handle, names=list(names)), Values).values

    def _checked(self) -> int:
        if not self._open:
            raise HobjError(f"{self.name} was closed")
        return self.handle

    def _call(self, call: Call, kind: type[R]) -> R:
        """Returns a call of which nothing is the application's word unseen, and its reply."""
        self._checked()
        return self.connection.ask(call, kind, is_sound=True)


def put(
    connection: Connection, data: Data, options: PutWords, *, handle: int = 0, q_name: str = "", name: str = ""
) -> Receipt:
    """Puts one message through a handle, to the queue ``name``, or to a queue by name; returns its receipt."""
    call = _put(connection, data, options, handle, q_name)
    if not spans.are_on(connection.traces):
        return receipt(connection.ask(call, WasPut, is_sound=bool(handle)))
    with spans.putting(connection.traces, q_name or name) as traceparent:
        call = replace(call, descriptor=_within(call.descriptor, traceparent))
        return receipt(connection.ask(call, WasPut, is_sound=bool(handle)))


def _within(descriptor: MessageDescriptor, traceparent: str) -> MessageDescriptor:
    """Returns a descriptor with this traceparent, unless the application gave one."""
    return replace(descriptor, traceparent=traceparent) if traceparent and not descriptor.traceparent else descriptor


@contextmanager
def _traced(connection: Connection, q_name: str) -> Iterator[str]:
    """Yields the traceparent of the puts in the block, which have one span; "" where there is none."""
    if not spans.are_on(connection.traces):
        yield ""
        return
    with spans.putting(connection.traces, q_name) as traceparent:
        yield traceparent


def put_each(
    connection: Connection, messages: Iterable[tuple[Data, PutWords]], options: PutWords, *, handle: int, name: str
) -> list[bytes]:
    """Puts messages, each with options of its own, through a handle; returns their ids."""
    is_unit = bool(option_names.put_parts(options, False)[1] & option_names.SYNCPOINT)
    with _traced(connection, name) as traceparent:
        puts = (_put(connection, data, {**options, **own}, handle) for data, own in messages)
        calls = (replace(put, descriptor=_within(put.descriptor, traceparent)) if traceparent else put for put in puts)
        replies = connection.pipeline(calls, window=AHEAD if is_unit else 1, is_sound=True)
    return [reply.msg_id for reply in replies if isinstance(reply, WasPut)]


def _put(connection: Connection, data: Data, options: PutWords, handle: int, q_name: str = "") -> Put:
    descriptor, bits = option_names.put_parts(options, isinstance(data, str))
    return Put(
        handle=handle,
        q_name=q_name,
        descriptor=descriptor,
        data=option_names.as_bytes(data),
        options=bits,
        unit=connection.unit if bits & option_names.SYNCPOINT else 0,
        context=option_names.handle_of(options),
    )


def put_many(
    connection: Connection,
    bodies: Iterable[Data],
    options: PutWords,
    *,
    handle: int = 0,
    q_name: str = "",
    name: str = "",
) -> list[bytes]:
    """Puts many messages through a handle, or to a queue by name."""
    parts = {is_text: option_names.put_parts(options, is_text) for is_text in (False, True)}
    bits = parts[False][1]
    unit = connection.unit if bits & option_names.SYNCPOINT else 0
    with _traced(connection, q_name or name) as traceparent:
        descriptors = {is_text: _within(descriptor, traceparent) for is_text, (descriptor, _) in parts.items()}
        calls = (
            PutMany(
                bodies=chunk, handle=handle, q_name=q_name, descriptor=descriptors[is_text], options=bits, unit=unit
            )
            for is_text, chunk in _chunks(bodies, min(FRAME_BYTES, connection.largest_call))
        )
        # Under syncpoint the unit stands or falls together, so the next frame need not wait for the last one's reply.
        replies = connection.pipeline(calls, window=AHEAD if unit else 1, is_sound=bool(handle))
    return [msg_id for reply in replies if isinstance(reply, WerePut) for msg_id in reply.msg_ids]


def _chunks(bodies: Iterable[Data], most_bytes: int) -> Iterator[tuple[bool, list[bytes]]]:
    """Bodies a frame: of one kind, since a frame has one descriptor, and neither too many nor too long."""
    chunk: list[bytes] = []
    kind, size = False, 0
    for body in bodies:
        is_text, raw = isinstance(body, str), option_names.as_bytes(body)
        if chunk and (is_text != kind or len(chunk) == FRAME_BODIES or size + len(raw) > most_bytes):
            yield kind, chunk
            chunk, size = [], 0
        chunk.append(raw)
        kind, size = is_text, size + len(raw)
    if chunk:
        yield kind, chunk


def _waiting(bits: int, wait_interval_ms: int | None) -> tuple[int, int]:
    """Returns the option bits and the interval: an interval means wait; wait without one has no limit."""
    if wait_interval_ms is not None:
        return bits | option_names.WAIT, whole(WaitIntervalError, "wait_interval_ms", wait_interval_ms)
    return bits, -1 if bits & option_names.WAIT else 0
