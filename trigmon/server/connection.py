"""One client's connection: its bytes in, its calls in order, its replies out, and the patience it is given.

Calls of one connection are performed in the order they came, and a get that waits is answered before the next call is
looked at. A peer that speaks nonsense, drips, floods or never reads is cut; nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, cast

from trigmon.mq.calls import Call, Disconnect, Get, GetMany, Refused, Reply
from trigmon.mq.enums import GetOption
from trigmon.qmgr.sessions import Session
from trigmon.server.authority import Peer
from trigmon.settings import ServerSettings
from trigmon.wire import codec
from trigmon.wire.frames import HELLO_LIMIT, Body, FrameReader, ProtocolError

INBOX_BYTES = 4 * 1024 * 1024
INBOX_CALLS = 1024
"""A client may send ahead this much; what is over it stays in the kernel until some were performed."""

OUTBOX_BYTES = 1024 * 1024
"""Replies that lie unread in the daemon; above it the connection's next call waits."""

GETS_A_TURN = 32
"""A get is short and its reply may be long: what one turn brings a connection must fit into memory."""

BYTES_A_SECOND = 1024 * 1024
"""The pace that earns a long frame more time than the timeout."""

WAIT = int(GetOption.WAIT)

# All connections read into this one, for each takes what came before the loop goes on. A buffer a read, as asyncio
# makes it for a plain Protocol, costs more than the read itself: the kernel maps and clears so large a one each time.
_READ = memoryview(bytearray(256 * 1024))


class House(Protocol):
    """What a connection needs of the daemon around it."""

    @property
    def patience(self) -> ServerSettings:
        """How long a peer may take for what."""

    def greet(self, connection: Connection, hello: codec.Hello) -> codec.Welcome | Refused:
        """Lets a client in, giving the connection its session, or says why not."""

    def began(self, connection: Connection) -> None:
        """A connection stands."""

    def arrived(self, connection: Connection) -> None:
        """A call of this connection can be performed."""

    def cut_off(self, connection: Connection, why: str) -> None:
        """A connection is cut for a reason worth a line in the log."""

    def ended(self, connection: Connection) -> None:
        """A connection is no more; its session may be None, or have disconnected in order."""


class Connection(asyncio.BufferedProtocol):
    """The daemon's end of one connection. The moments it keeps are on the loop's clock; 0 says it is not so now."""

    def __init__(self, house: House, peer: Peer, loop: asyncio.AbstractEventLoop) -> None:
        self.peer = peer
        self.session: Session | None = None
        self.disconnected = False
        self._house = house
        self._now = loop.time
        self._transport: asyncio.Transport
        self._reader = FrameReader(HELLO_LIMIT)
        self._inbox: deque[tuple[int, Call, int]] = deque()
        self._inbox_bytes = 0
        self._outbox: list[bytes] = []
        self._last_reply_bytes = 0
        self._last_number = 0
        self._awaited: int | None = None
        self._farewell: int | None = None
        self._is_reading = True
        self._began = loop.time()
        self._ended = 0.0
        self._frame_began = 0.0
        self._frame_bytes = 0
        self._unread_since = 0.0
        self._unread_bytes = 0

    # -- what asyncio tells -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It begins."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=OUTBOX_BYTES)
        self._house.began(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return _READ

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        data = bytes(_READ[:nbytes])
        bodies = 0
        try:
            for body in self._reader.feed(data):
                bodies += 1
                if self._ended:
                    return
                self._take_in(body)
        except ProtocolError as error:
            self._house.cut_off(self, f"it left the protocol: {error}")
            self.end(codec.encode_response(error.sequence, codec.broken_off(error)))
            return
        self._watch_frame(bodies, len(data))
        if self._inbox_bytes > INBOX_BYTES or len(self._inbox) > INBOX_CALLS:
            self._is_reading = False
            self._transport.pause_reading()
        if bodies and self.is_ready:
            self._house.arrived(self)

    def pause_writing(self) -> None:
        """The peer reads more slowly than it is answered."""
        self._unread_since = self._now()
        self._unread_bytes = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """It has read."""
        self._unread_since = 0.0
        if self.is_ready:
            self._house.arrived(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over, however that came."""
        self._ended = self._ended or self._now()
        self._inbox.clear()
        self._house.ended(self)

    def _take_in(self, body: Body) -> None:
        if self.session is not None:
            sequence, call = codec.decode_request(body)
            if sequence <= self._last_number:
                # Answered under 0, for a number that was given away before names no one call.
                raise ProtocolError(f"call number {sequence}, where it had to be above {self._last_number}")
            self._last_number = sequence
            self._inbox.append((sequence, call, len(body)))
            self._inbox_bytes += len(body)
            return
        greeting = self._house.greet(self, codec.decode_hello(body))
        if isinstance(greeting, Refused):
            self.end(codec.encode_welcome(greeting))
        else:
            self._reader.limit = greeting.frame_limit
            self._transport.write(codec.encode_welcome(greeting))

    def _watch_frame(self, bodies: int, length: int) -> None:
        """Keeps when the frame began that has not ended yet."""
        if not self._reader.mid_frame:
            self._frame_began = 0.0
        elif bodies or not self._frame_began:
            self._frame_began = self._now()
            self._frame_bytes = 0
        else:
            self._frame_bytes += length

    # -- what the turn asks -------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether a call of this connection could be performed now."""
        return bool(self._inbox) and self._awaited is None and not self._unread_since and not self._ended

    def take(self, calls: int, size: int) -> tuple[list[tuple[int, Call]], int]:
        """The next calls with their numbers, at most so many, until ``size`` bytes are passed; and their bytes.

        Once a turn. A call that may wait for its answer is the last, and nothing more is taken until it has one.
        """
        taken: list[tuple[int, Call]] = []
        used = gets = 0
        while len(taken) < calls and used < size and gets < GETS_A_TURN and self.is_ready:
            sequence, call, length = self._inbox[0]
            if isinstance(call, codec.UnknownCall) and taken:
                # Its answer needs no turn and would overtake those of the calls before it.
                break
            self._inbox.popleft()
            self._inbox_bytes -= length
            if isinstance(call, codec.UnknownCall):
                self.answer(sequence, codec.not_supported(call))
                self.flush()
                continue
            taken.append((sequence, call))
            # The last reply is the best guess of what the next will take.
            used += length + self._last_reply_bytes
            if isinstance(call, Get | GetMany):
                gets += 1
                if call.options & WAIT:
                    self._awaited = sequence
            elif isinstance(call, Disconnect):
                self._awaited = self._farewell = sequence
        self._read_on()
        return taken, used

    def _read_on(self) -> None:
        if self._is_reading or self._ended:
            return
        if self._inbox_bytes < INBOX_BYTES // 2 and len(self._inbox) < INBOX_CALLS // 2:
            self._is_reading = True
            # The pause was ours, so the peer's time begins anew.
            self._frame_began = self._now() if self._reader.mid_frame else 0.0
            self._transport.resume_reading()

    def answer(self, sequence: int, reply: Reply) -> None:
        """Keeps a reply for :meth:`flush`."""
        self._outbox.append(codec.encode_response(sequence, reply))
        if sequence == self._awaited:
            self._awaited = None
        if sequence == self._farewell:
            self._farewell = None
            self.disconnected = not isinstance(reply, Refused)

    def flush(self) -> None:
        """Sends the replies of a turn, all in one write."""
        if self._outbox:
            self._last_reply_bytes = len(self._outbox[-1])
            self._transport.write(b"".join(self._outbox))
            self._outbox.clear()
        if self.disconnected:
            self.end()

    # -- the end ------------------------------------------------------------------------------------------

    def end(self, last_words: bytes = b"") -> None:
        """Ends it when the peer has taken what it is owed, and ``last_words`` behind that."""
        if self._ended:
            return
        self._ended = self._now()
        self._inbox.clear()
        self._transport.write(b"".join(self._outbox) + last_words)
        self._outbox.clear()
        self._transport.close()

    def cut(self) -> None:
        """Ends it at once; what lies unsent is thrown away."""
        self._ended = self._ended or self._now()
        self._inbox.clear()
        self._transport.abort()

    def look_after(self, now: float) -> None:
        """Ends the connection when its peer's time is up; to be called about once a second."""
        why = self._overdue(now)
        if not why:
            return
        self._house.cut_off(self, why)
        if self._frame_began and not self._ended:
            self.end(codec.encode_response(0, codec.broken_off(ProtocolError(why))))
        else:
            self.cut()

    def _overdue(self, now: float) -> str:
        """Why the peer's time is up, or nothing."""
        patience = self._house.patience
        if self._ended:
            return "it does not take its last replies" if now - self._ended > patience.reply_timeout_s else ""
        if self.session is None and now - self._began > patience.hello_timeout_s:
            return "it never said hello"
        allowed = patience.frame_timeout_s + self._frame_bytes / BYTES_A_SECOND
        if self._frame_began and self._is_reading and now - self._frame_began > allowed:
            return "it does not end the frame it began"
        if self._unread_since:
            left = self._transport.get_write_buffer_size()
            if left < self._unread_bytes:
                self._unread_since, self._unread_bytes = now, left
            elif now - self._unread_since > patience.reply_timeout_s:
                return "it does not read its replies"
        return ""
