"""One client's connection: its bytes in, its calls in order, its replies out, and the patience it is given.

Calls of one connection are performed in the order they came, and a get that waits is answered before the next call is
looked at. A peer that speaks nonsense, drips, floods or never reads is cut; nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from trigmon.mq.calls import BrowseMany, Call, Disconnect, Get, GetMany
from trigmon.mq.enums import GetOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply, WasGot, WereGot
from trigmon.qmgr.sessions import Session
from trigmon.server.memory_budget import MOST_OF_ONE, CallQueue, Intake, Room, longest_reply, messages_of
from trigmon.server.peer_identity import Peer
from trigmon.setting_sections import ServerSettings
from trigmon.wire import codec
from trigmon.wire.frames import HELLO_LIMIT, Body, FrameReader, ProtocolError

if TYPE_CHECKING:
    import ssl

OUTBOX_BYTES = 1024 * 1024
"""Replies that lie unread in the daemon; above it the connection's next call waits."""

BYTES_A_SECOND = 1024 * 1024
"""The pace that earns a long frame more time than the timeout."""

WAIT = int(GetOption.WAIT)
NOTHING = int(Reason.NO_MSG_AVAILABLE)
_GETS = Get, GetMany, BrowseMany
_MAY_WAIT = Get, GetMany
_GETS_AND_END = frozenset({*_GETS, Disconnect})
_GOT = frozenset({WasGot, WereGot})
# Looked up by class: where a class of msgspec does not match, isinstance takes ten times as long.

# All connections read into this one, for each takes what came before the loop goes on. A buffer a read, as asyncio
# makes it for a plain Protocol, costs more than the read itself: the kernel maps and clears so large a one each time.
_READ = memoryview(bytearray(256 * 1024))
_READ_LITTLE = _READ[: 64 * 1024]


class Host(Protocol):
    """What a connection needs of the daemon around it."""

    @property
    def patience(self) -> ServerSettings:
        """How long a peer may take for what."""

    @property
    def intake(self) -> Intake:
        """The budget of what all connections bring."""

    @property
    def frame_limit(self) -> int:
        """The longest call, in bytes, that is accepted after the hello."""

    def greet(self, connection: Connection, hello: codec.Hello) -> None:
        """Lets a client in, giving the connection its session, or says why not: by its ``welcome``, now or later."""

    def began(self, connection: Connection) -> None:
        """Records that a connection was made."""

    def arrived(self, connection: Connection) -> None:
        """Records that a call of this connection can be performed."""

    def keeps_up(self, connection: Connection, it_does: bool) -> None:
        """Records whether the client reads its replies as fast as they come."""

    def cut_off(self, connection: Connection, why: str) -> None:
        """Logs why a connection is closed by the server."""

    def ended(self, connection: Connection) -> None:
        """Records that a connection has ended; its session may be None, or have disconnected in order."""


class NoTransport(asyncio.Transport):
    """The transport of a connection that has ended: takes all and does nothing.

    In place of the real one, which refers to the connection: both would await the garbage collector, with the buffers
    of TLS, 256 KiB.
    """

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Drops what nobody reads."""

    def close(self) -> None:
        """Ends nothing."""

    def abort(self) -> None:
        """Ends nothing."""

    def pause_reading(self) -> None:
        """Reads nothing."""

    def resume_reading(self) -> None:
        """Reads nothing."""

    def get_write_buffer_size(self) -> int:
        """Returns 0: nothing is kept."""
        return 0


_GONE = NoTransport()


class Connection(asyncio.BufferedProtocol):
    """The daemon's end of one connection. The moments it keeps are on the loop's clock; 0 says it is not so now."""

    def __init__(
        self,
        host: Host,
        peer: Peer,
        loop: asyncio.AbstractEventLoop,
        identify: Callable[[Connection, codec.Hello], asyncio.Task[None] | None] | None = None,
    ) -> None:
        self.peer = peer
        self._identify = identify
        self._check: asyncio.Task[None] | None = None
        self.session: Session | None = None
        self.disconnected = False
        self._is_greeted = False
        self._is_lost = False
        self._host = host
        self._now = loop.time
        self._transport: asyncio.Transport
        self._reader = FrameReader(HELLO_LIMIT)
        self._calls_waiting = CallQueue(host.intake, self)
        self._outbox: list[bytes | bytearray] = []
        self._next_got = 0
        self._awaited: int | None = None
        self._farewell: int | None = None
        self._is_reading = True
        self._began = loop.time()
        self._ended = 0.0
        self._frame_began = 0.0
        self._frame_bytes = 0
        self.unread_since = 0.0
        self._unread_bytes = 0

    # -- what asyncio tells -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the protocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=OUTBOX_BYTES)
        self._host.began(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the buffer for the next bytes."""
        return _READ_LITTLE if self._host.intake.is_tight else _READ

    def buffer_updated(self, nbytes: int) -> None:
        """Takes the bytes that came."""
        data = _READ[:nbytes]  # decoding copies what stays
        bodies = 0
        try:
            for body in self._reader.feed(data):
                bodies += 1
                if self._ended:
                    return
                self._take_in(body)
        except ProtocolError as error:
            self._host.cut_off(self, f"it left the protocol: {error}")
            self.end(codec.encode_response(error.sequence, codec.broken_off(error)))
            return
        self._watch_frame(bodies, nbytes)
        if bodies:
            self._calls_waiting.frame_ended()
        self._read_on()
        if bodies and self.is_ready:
            self._host.arrived(self)

    def pause_writing(self) -> None:
        """Stops performing calls: the client reads more slowly than it is answered."""
        self.unread_since = self._now()
        self._unread_bytes = self._transport.get_write_buffer_size()
        self._host.keeps_up(self, False)

    def resume_writing(self) -> None:
        """Performs calls again: the client has read."""
        self.unread_since = 0.0
        self._host.keeps_up(self, True)
        if self.is_ready:
            self._host.arrived(self)

    def eof_received(self) -> None:
        """Ends the connection at once: a turn of this pass already finds what it leaves."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the connection, whatever the reason."""
        if self._is_lost:
            return
        self._is_lost = True
        self._ended = self._ended or self._now()
        self._calls_waiting.clear()
        if self._check is not None:
            self._check.cancel()
            self._check = None
        self._transport = _GONE
        self._host.keeps_up(self, True)
        self._host.ended(self)

    def _take_in(self, body: Body) -> None:
        if self._is_greeted:
            sequence, call = codec.decode_request(body)
            self._calls_waiting.add(sequence, call, len(body))
            return
        hello = codec.decode_hello(body)
        self._is_greeted = True
        self._reader.limit = self._host.frame_limit  # calls may come before the welcome has gone
        if self._identify is not None:
            self._check = self._identify(self, hello)
        else:
            self.ask_for_welcome(hello)

    def ask_for_welcome(self, hello: codec.Hello) -> None:
        """Asks the host to greet the client, whose user is known now."""
        self._host.greet(self, hello)

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS of its link, None where it has none."""
        return cast("ssl.SSLObject | None", self._transport.get_extra_info("ssl_object"))

    def _read_on(self) -> None:
        """Reads on, or leaves what comes in the kernel until some of what came was performed."""
        if self._ended or (may := self._calls_waiting.may_grow(self._reader, self._is_reading)) == self._is_reading:
            return
        self._is_reading = may
        if may:
            # The pause was ours, so the peer's time begins anew.
            self._frame_began = self._now() if self._reader.mid_frame else 0.0
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    @property
    def user(self) -> int | str:
        """The user whose limits it counts under; -1 over TCP, where all are one."""
        return self.peer.shares[0]

    @property
    def is_idle(self) -> bool:
        """Whether what it brings would be performed as soon as it is there."""
        return not self._calls_waiting.calls and self._awaited is None

    def go_on(self) -> bool:
        """Tries again to get room for a long frame, and says whether it did."""
        self._read_on()
        return self._calls_waiting.awaits_frame

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

    def welcome(self, greeting: codec.Welcome | Refused) -> None:
        """Answers its hello. What it has sent behind that can be performed now."""
        if isinstance(greeting, Refused):
            self.end(codec.encode_welcome(greeting))
            if self.tls is not None:
                # The end of TLS waits for the client's half: who is refused would hold a place by sending none.
                self._transport.abort()
            return
        self._reader.limit = self._next_got = greeting.frame_limit
        self._transport.write(codec.encode_welcome(greeting))
        if self.is_ready:
            self._host.arrived(self)

    @property
    def is_ready(self) -> bool:
        """Whether a call of this connection could be performed now."""
        may_be_served = bool(self._calls_waiting.calls) and self._awaited is None and self.session is not None
        return may_be_served and not self.unread_since and not self._ended

    def take(self, share: int, room: Room) -> list[tuple[Session, int, Call]]:
        """Returns the session, the number and the call of the next: one, or up to about ``share`` messages.

        As far as there is room; once a turn. Nothing is taken behind a call that may wait until it has its answer.
        """
        taken: list[tuple[Session, int, Call]] = []
        session = self.session
        while session is not None and share > 0 and self.is_ready and room.is_left:
            sequence, call, length = self._calls_waiting.calls[0]
            unknown = call if type(call) is codec.UnknownCall else None
            if unknown is not None and taken:
                # Its answer needs no turn and would overtake those of the calls before it.
                break
            self._calls_waiting.drop_first()
            if unknown is not None:
                self.answer(sequence, codec.not_supported(unknown))
                self.flush()
                continue
            taken.append((session, sequence, call))
            messages = messages_of(call)
            share -= messages
            room.messages -= messages
            room.size -= length
            if type(call) not in _GETS_AND_END:
                continue
            if isinstance(call, _GETS):
                longest = longest_reply(call, self._reader.limit)
                room.size -= min(longest, self._next_got)
                room.replies -= min(longest, MOST_OF_ONE)
                if isinstance(call, _MAY_WAIT) and call.options & WAIT:
                    self._awaited = sequence
            else:
                self._awaited = self._farewell = sequence
        self._calls_waiting.settle()
        if not self._is_reading:  # where it is read, there is more room than at the last read
            self._read_on()
        return taken

    def answer(self, sequence: int, reply: Reply) -> None:
        """Keeps a reply for :meth:`flush`."""
        encode = codec.encode_long_response if type(reply) in codec.LONG_REPLIES else codec.encode_response
        encoded = encode(sequence, reply)
        self._outbox.append(encoded)
        if type(reply) in _GOT or (type(reply) is Refused and reply.reason == NOTHING):
            # What the next get will bring: as much as the longest of late, and before the first as much as can be.
            self._next_got = max(len(encoded), self._next_got * 7 // 8)
        if sequence == self._awaited:
            self._awaited = None
        if sequence == self._farewell:
            self._farewell = None
            self.disconnected = not isinstance(reply, Refused)

    def flush(self) -> None:
        """Sends the replies of a turn, all in one write."""
        if self._outbox:
            # A view: Python 3.11's transport would copy what the socket does not take at once, and copy it once more.
            only = self._outbox[0] if len(self._outbox) == 1 else b"".join(self._outbox)
            self._transport.write(memoryview(only))
            self._outbox.clear()
        if self.disconnected:
            self.end()

    # -- the end ------------------------------------------------------------------------------------------

    def end(self, last_words: bytes = b"") -> None:
        """Ends it when the peer has taken what it is owed, and ``last_words`` behind that."""
        if self._ended:
            return
        self._ended = self._now()
        self._calls_waiting.clear()
        self._transport.write(b"".join(self._outbox) + last_words)
        self._outbox.clear()
        self._transport.close()

    def cut(self) -> None:
        """Ends it at once; what lies unsent is thrown away."""
        self._ended = self._ended or self._now()
        self._calls_waiting.clear()
        self._transport.abort()

    @property
    def unread_bytes(self) -> int:
        """How much its peer has not read."""
        return self._transport.get_write_buffer_size()

    def look_after(self, now: float) -> None:
        """Ends the connection when its peer's time is up; to be called about once a second."""
        if not (why := self._overdue(now)):
            return
        self._host.cut_off(self, why)
        if self._frame_began and not self._ended:
            self.end(codec.encode_response(0, codec.broken_off(ProtocolError(why))))
        else:
            self.cut()

    def _overdue(self, now: float) -> str:
        """Returns why the peer's time is up, or nothing."""
        patience = self._host.patience
        if self._ended:
            return "it does not take its last replies" if now - self._ended > patience.reply_timeout_s else ""
        if not self._is_greeted and now - self._began > patience.hello_timeout_s:
            return "it never sent its hello"
        allowed = patience.frame_timeout_s + self._frame_bytes / BYTES_A_SECOND
        if self._frame_began and self._is_reading and now - self._frame_began > allowed:
            return "it does not end the frame it began"
        if self.unread_since:
            left = self._transport.get_write_buffer_size()
            if left < self._unread_bytes:
                self.unread_since, self._unread_bytes = now, left
            elif now - self.unread_since > patience.reply_timeout_s:
                return "it does not read its replies"
        return ""
