"""One socket to a queue manager: a call goes out, its reply comes back, in order.

A connection that has lost its place in the conversation is never used again: not after the link went, not after a
frame that made no sense, and not after a call whose reply was never read (a signal's exception in the middle of a
waiting get: the message may already have been taken).
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from contextlib import suppress
from typing import Protocol

from trigmon import paths
from trigmon.mq.calls import Call
from trigmon.mq.errors import ConnectionBroken, MQError, MsgTooBigForQMgr, NotAuthorized, QMgrNotAvailable
from trigmon.mq.replies import Refused, Reply
from trigmon.wire import codec
from trigmon.wire.frames import HELLO_LIMIT, MAX_LENGTH, FrameReader, ProtocolError

_RECEIVE = 262_144
_LONGEST_IN_PLACE = 64 << 20
"""Bytes: a frame up to here gets all of its memory before its rest has come. The length is only what a peer says."""
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # a host that fell silent: a minute

_SCHEMES = ("tls://", "tls:", "tcp://", "tcp:", "unix:", "http://", "https://")


def shown(address: str) -> str:
    """Returns an address as an error names it: a password may stand before the host, or among the keys behind it.

    Where an "@" stands behind a "?", the one may be a password's or the other a key's: then no host is named.
    """
    before, _, keys = address.partition("?")
    if "@" not in address:
        return before
    scheme = next((scheme for scheme in _SCHEMES if address.startswith(scheme)), "")
    return f"{scheme}***" if "@" in keys else f"{scheme}***@{before.rpartition('@')[2]}"


class Link(Protocol):
    """What a connection speaks to: a :class:`Transport`, or what stands for one in a test."""

    broken: str

    @property
    def where(self) -> str:
        """Its address as people write it."""

    @property
    def welcome(self) -> codec.Welcome:
        """The first thing that the queue manager sent."""

    def send(self, call: Call, *, is_sound: bool = False) -> int:
        """Sends a call and returns its number; one that ``is_sound`` need not be looked at before."""

    def receive(self, sequence: int) -> Reply:
        """Returns the reply to the call of that number."""

    def close(self) -> None:
        """Ends the link without a word."""


class Transport:
    """A greeted link. ``where`` is its address as people write it.

    ``timeout_s`` is for the greeting. A reply may take ``call_timeout_s`` (0: any time) besides what its get may wait.
    """

    def __init__(
        self, link: socket.socket, where: str, hello: codec.Hello, timeout_s: float, call_timeout_s: float = 0
    ) -> None:
        self.where = where
        self.broken = ""
        self._link = link
        self._call_timeout_s = call_timeout_s or None
        self._timeout_s: float | None = timeout_s
        # How long the replies that are due may take, where that is not the time that any may take.
        self._longer: dict[int, float | None] = {}
        self._reader = FrameReader(HELLO_LIMIT)
        self._bodies: deque[bytes | bytearray | memoryview] = deque()
        self._sequence = 0
        try:
            self.welcome = self._greet(hello, timeout_s)
        except BaseException:
            self.close()
            raise

    def _greet(self, hello: codec.Hello, timeout_s: float) -> codec.Welcome:
        self._link.settimeout(timeout_s)
        try:
            # Where there is no room, the refusal may lie here already and the other side have gone.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._link.sendall(codec.encode_hello(hello))
            greeting = codec.decode_welcome(self._next_body())
        except TimeoutError:
            raise QMgrNotAvailable(f"{self.where}: no welcome within {timeout_s:g} seconds") from None
        except (OSError, EOFError) as error:
            raise QMgrNotAvailable(f"{self.where}: {_why(error)}") from None
        except ProtocolError as error:
            raise QMgrNotAvailable(f"{self.where}: what answers is no queue manager: {error}") from None
        if isinstance(greeting, Refused):
            raise MQError.of(greeting.reason, greeting.about)
        self._be_patient(self._call_timeout_s)
        self._reader.limit = MAX_LENGTH  # what it was asked for, it may bring
        return greeting

    def send(self, call: Call, *, is_sound: bool = False) -> int:
        """Sends a call without waiting and returns its number, for :meth:`receive`.

        Before anything is sent it raises MsgTooBigForQMgr when the queue manager would not read so much, and TypeError
        or ValueError when it would not read such values; ``is_sound`` says that they were looked at.
        """
        if self.broken:
            raise ConnectionBroken(self.broken)
        encode = codec.encode_request if is_sound else codec.encode_checked_request
        data = encode(self._sequence + 1, call)
        if len(data) - 4 > self.welcome.frame_limit:
            limit = self.welcome.frame_limit
            raise MsgTooBigForQMgr(f"a call of {len(data) - 4} bytes, where {self.where} reads at most {limit}")
        self._sequence += 1
        wait_ms = getattr(call, "wait_interval_ms", 0)
        if wait_ms and self._call_timeout_s is not None:
            self._longer[self._sequence] = self._call_timeout_s + wait_ms / 1000 if wait_ms > 0 else None
        try:
            self._send_whole(data)
        except TimeoutError:
            raise self._no_answer() from None
        except OSError as error:
            raise self._last_word(error) from None
        except BaseException:
            self._interrupted()
            raise
        return self._sequence

    def _send_whole(self, data: bytes | bytearray | memoryview) -> None:
        """Sends all of it; the limit is for some of it to go, since sendall would count all of a slow link's time."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._link.send(rest) :]

    def receive(self, sequence: int) -> Reply:
        """Returns the reply to the call of that number, which is the oldest that was sent and not yet answered."""
        if self.broken:
            raise ConnectionBroken(self.broken)
        try:
            if self._longer:
                self._be_patient(self._longer.pop(sequence, self._call_timeout_s))
            number, reply = codec.decode_response(self._next_body())
            if self._timeout_s != self._call_timeout_s:
                self._be_patient(self._call_timeout_s)
        except TimeoutError:
            raise self._no_answer() from None
        except (OSError, EOFError) as error:
            raise self._break(f"{self.where}: {_why(error)}") from None
        except ProtocolError as error:
            raise self._break(f"{self.where} left the protocol: {error}") from None
        except BaseException:
            self._interrupted()
            raise
        if number == sequence:
            return reply
        if number == 0 and isinstance(reply, Refused):
            raise self._dismissed(reply)
        raise self._break(f"{self.where} answered call {number}, where {sequence} was due")

    def close(self) -> None:
        """Ends the link; the queue manager sees a lost connection unless a Disconnect was answered before."""
        self.broken = self.broken or f"the connection to {self.where} has ended"
        self._link.close()

    def _be_patient(self, timeout_s: float | None) -> None:
        """Sets how long the other side may be silent; a dead link is found by its keepalive."""
        self._timeout_s = timeout_s
        self._link.settimeout(timeout_s)

    def _no_answer(self) -> ConnectionBroken:
        return self._break(f"{self.where}: no answer within {self._timeout_s:g} seconds; what was asked may be done")

    def _next_body(self) -> bytes | bytearray | memoryview:
        while not self._bodies:
            if _RECEIVE < self._reader.missing <= _LONGEST_IN_PLACE:
                return self._reader.receive_rest(self._link.recv_into)
            data = self._link.recv(_RECEIVE)
            if not data:
                raise EOFError("it closed the connection")
            self._bodies.extend(self._reader.feed(data))
        return self._bodies.popleft()

    def _last_word(self, error: OSError) -> MQError:
        """Returns the error of a link that takes no more calls: the queue manager's last message, if there is one."""
        self._link.settimeout(0)  # it lies here already or never comes
        try:
            number, reply = codec.decode_response(self._next_body())
        except (OSError, EOFError, ProtocolError):
            number, reply = 0, None
        if number == 0 and isinstance(reply, Refused):
            return self._dismissed(reply)
        return self._break(f"{self.where}: {_why(error)}")

    def _dismissed(self, word: Refused) -> MQError:
        """Returns the error of a word to the whole connection, which is always the last one."""
        self._break(f"{self.where} ended the connection: {word.about}")
        return MQError.of(word.reason, word.about)

    def _interrupted(self) -> None:
        self._break("a call was interrupted before its reply was read")

    def _break(self, why: str) -> ConnectionBroken:
        self.broken = why
        self._link.close()
        return ConnectionBroken(why)


def open_unix(path: str, timeout_s: float) -> socket.socket:
    """Returns a connected Unix socket. Raises QMgrNotAvailable, NotAuthorized."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(timeout_s)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            link.connect(os.fspath(path))
        except BlockingIOError:  # the listener's backlog is full
            if time.monotonic() > deadline:
                link.close()
                raise QMgrNotAvailable(f"{path}: its backlog is full") from None
            time.sleep(0.02)
        except PermissionError:
            link.close()
            raise NotAuthorized(_kept_out(path)) from None
        except OSError as error:
            link.close()
            raise QMgrNotAvailable(f"nothing answers at {path}: {_why(error)}") from None
        else:
            return link


def _kept_out(path: str) -> str:
    """Returns whose socket it is, and what would help."""
    group = paths.key_group(path)
    if not group:
        return f"{path}: permission denied, and it has no group to join: server.socket_group gives it one"
    return (
        f"{path}: permission denied, for it is for the group {group}: "
        f"sudo usermod -aG {group} {_user()}, then log in anew"
    )


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def open_tcp(host: str, port: int, timeout_s: float) -> socket.socket:
    """Returns a connected TCP socket that notices when the other host falls silent. Raises QMgrNotAvailable."""
    try:
        link = socket.create_connection((host, port), timeout_s)
    except OSError as error:
        raise QMgrNotAvailable(f"nothing answers at {host}:{port}: {_why(error)}") from None
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return link


def _why(error: BaseException) -> str:
    """Returns an operating system's error as a person reads it, without its number."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
