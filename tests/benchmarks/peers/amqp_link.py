"""AMQP 0-9-1 as far as a client needs it that puts with confirms and gets one by one."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tests.benchmarks.peers.byte_link import ByteLink

METHOD, HEADER, BODY = 1, 2, 3
END = b"\xce"
PERSISTENT = struct.pack(">HB", 0x1000, 2)
_DECLARED_DURABLE, _WITHOUT_ARGUMENTS = 0b10, b"\0\0\0\0"


class Method(NamedTuple):
    """A method by its two numbers, and its arguments as they came."""

    number: tuple[int, int]
    arguments: bytes


class AmqpLink:
    """A connection with one channel, on which each publication is confirmed."""

    def __init__(self, port: int) -> None:
        self._link = ByteLink(port)
        self._link.send(b"AMQP\0\0\x09\x01")
        self.method((10, 10))
        self._send(0, (10, 11), _WITHOUT_ARGUMENTS + _short("PLAIN") + _long(b"\0guest\0guest") + _short("en_US"))
        channels, self._longest, _ = struct.unpack(">HIH", self.method((10, 30)).arguments)
        self._send(0, (10, 31), struct.pack(">HIH", channels, self._longest, 0))
        self._send(0, (10, 40), _short("/") + _short("") + b"\0")
        self.method((10, 41))
        self.ask((20, 10), _short(""), (20, 11))
        self.ask((85, 10), b"\0", (85, 11))
        self._sent = 0

    def declare(self, queue: str, kind: str) -> None:
        """Declares a durable queue of this kind."""
        table = _short("x-queue-type") + b"S" + _long(kind.encode())
        arguments = b"\0\0" + _short(queue) + bytes([_DECLARED_DURABLE]) + _long(table)
        self.ask((50, 10), arguments, (50, 11))

    def purge(self, queue: str) -> None:
        """Removes what is on a queue."""
        self.ask((50, 30), b"\0\0" + _short(queue) + b"\0", (50, 31))

    def ask(self, number: tuple[int, int], arguments: bytes, answer: tuple[int, int]) -> Method:
        """Sends a method on the channel and returns its answer."""
        self._send(1, number, arguments)
        return self.method(answer)

    def published(self, queue: str, body: bytes) -> bytes:
        """Returns the frames that put a persistent message."""
        header = struct.pack(">HHQ", 60, 0, len(body)) + PERSISTENT
        room = self._longest - 8
        parts = [_frame(BODY, 1, body[at : at + room]) for at in range(0, len(body), room)]
        method = _frame(METHOD, 1, struct.pack(">HH", 60, 40) + b"\0\0" + _short("") + _short(queue) + b"\0")
        return b"".join((method, _frame(HEADER, 1, header), *parts))

    def put(self, frames: bytes, count: int) -> None:
        """Sends publications and waits until each is confirmed."""
        self._link.send(frames)
        left = set(range(self._sent + 1, self._sent + count + 1))
        self._sent += count
        while left:
            # Confirms come in any order, and one may stand for all before it.
            number, several = struct.unpack(">Q?", self.method((60, 80)).arguments)
            left = {each for each in left if each > number} if several else left - {number}

    def get(self, queue: str) -> bytes:
        """Gets the first message and acknowledges it, which has no answer."""
        got = self.ask((60, 70), b"\0\0" + _short(queue) + b"\0", (60, 71))
        length = struct.unpack_from(">Q", self._frame(HEADER), 4)[0]
        body = b""
        while len(body) < length:
            body += self._frame(BODY)
        self._send(1, (60, 80), got.arguments[:8] + b"\0")
        return body

    def method(self, wanted: tuple[int, int]) -> Method:
        """Returns the next method. Raises OSError when it is not the one that is wanted."""
        payload = self._frame(METHOD)
        found = Method(struct.unpack_from(">HH", payload), payload[4:])
        if found.number != wanted:
            raise OSError(f"{found}, where {wanted} was due")
        return found

    def _send(self, channel: int, number: tuple[int, int], arguments: bytes) -> None:
        self._link.send(_frame(METHOD, channel, struct.pack(">HH", *number) + arguments))

    def _frame(self, wanted: int) -> bytes:
        while True:
            kind, _, length = struct.unpack(">BHI", self._link.exactly(7))
            payload = self._link.exactly(length + 1)[:-1]
            if kind == wanted:
                return payload
            assert kind not in (METHOD, HEADER, BODY), (kind, payload)  # a heartbeat

    def close(self) -> None:
        """Closes it in order, so that what was sent last has been read."""
        self._send(0, (10, 50), b"\0\0" + _short("") + b"\0\0\0\0")
        self.method((10, 51))
        self._link.close()


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
