"""Frames: four bytes of length, big-endian, then a body of that many bytes. What the body says is :mod:`codec`'s."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

MAX_LENGTH = 2**32 - 1
OVERHEAD = 65_536  # what a frame may be longer than the longest message: ids, names, the descriptor, command attributes
HELLO_LIMIT = 16_384  # a stranger cannot make anyone keep more than this
DEFAULT_LIMIT = 4_194_304 + OVERHEAD

Body = bytes | bytearray | memoryview

_LENGTH = struct.Struct(">I")


class ProtocolError(Exception):
    """The other side sent something that is no part of the protocol; the text names what is wrong.

    ``sequence`` is the number of the call that it was sent in, 0 where that could not be read. Nothing that comes
    after it on the connection can be trusted, so the connection ends.
    """

    def __init__(self, text: str, sequence: int = 0) -> None:
        super().__init__(text)
        self.sequence = sequence


def frame_limit(max_msg_length: int) -> int:
    """Returns the longest body, in bytes, to let in where messages may have ``max_msg_length`` bytes."""
    return max_msg_length + OVERHEAD


def frame(body: bytes) -> bytes:
    """Returns the body with its length before it. Raises ProtocolError when four bytes cannot say the length."""
    return _head(len(body)) + body


def set_length(buffer: bytearray) -> None:
    """Writes the length of a body that stands behind four free bytes into these, so that it need not be copied.

    Raises ProtocolError as :func:`frame`.
    """
    buffer[: _LENGTH.size] = _head(len(buffer) - _LENGTH.size)


def _head(length: int) -> bytes:
    if length > MAX_LENGTH:
        raise ProtocolError(f"a frame has at most {MAX_LENGTH} bytes, not {length}")
    return _LENGTH.pack(length)


class FrameReader:
    """Bytes as they arrive, in; whole bodies, out, however the bytes were cut.

    A length over ``limit`` raises ProtocolError as soon as its four bytes are there, so nobody waits for a body
    that would be refused, and nothing is kept of it. The limit may be raised between frames.

    >>> reader = FrameReader()
    >>> [bytes(body) for body in reader.feed(frame(b"one") + frame(b"two")[:5])]
    [b'one']
    >>> reader.mid_frame
    True
    """

    __slots__ = ("_rest", "limit")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._rest = bytearray()

    def feed(self, data: Body) -> Iterable[Body]:
        """Returns the bodies that are whole with ``data``, perhaps views of it; iterate all before the next feed."""
        # Nearly always a read brings one frame and nothing else: then nothing is copied together and cut again.
        if not self._rest and len(data) >= 4:
            (length,) = _LENGTH.unpack_from(data)
            if length == len(data) - 4 and length <= self.limit:
                return (data[4:],)
        self._rest += data
        return self._whole()

    def _whole(self) -> Iterator[Body]:
        rest = self._rest
        while len(rest) >= 4:
            (length,) = _LENGTH.unpack_from(rest)
            if length > self.limit:
                raise ProtocolError(f"a frame of {length} bytes, where at most {self.limit} are let in")
            end = 4 + length
            if len(rest) < end:
                return
            body = rest[4:end]
            del rest[:end]  # a bytearray gives up its front without moving what is behind
            yield body

    def receive_rest(self, receive_into: Callable[[memoryview], int]) -> memoryview:
        """Returns the body of a frame that has begun, its length at least; the rest is received straight to its place.

        Raises EOFError at the end of the stream. Behind any error the link is of no use: the frame is lost.
        """
        at = len(self._rest)
        whole = memoryview(bytearray(at + self.missing))
        whole[:at] = self._rest
        self._rest.clear()
        while at < len(whole):
            count = receive_into(whole[at:])
            if not count:
                raise EOFError("it closed the connection")
            at += count
        return whole[_LENGTH.size :]

    @property
    def mid_frame(self) -> bool:
        """Whether a frame has begun and not ended: the moment at which a slow peer is slow."""
        return bool(self._rest)

    @property
    def missing(self) -> int:
        """How many bytes are wanted before the next body, or its length, is whole."""
        have = len(self._rest)
        return 4 - have if have < 4 else max(0, 4 + int(_LENGTH.unpack_from(self._rest)[0]) - have)
