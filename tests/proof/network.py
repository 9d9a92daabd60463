"""The network between clients and the daemon: streams of frames, each of which it may lose, repeat, swap or cut.

No kernel does that to a stream; whoever stands between two programs may, and the numbers of calls must find it out.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.proof.loop import Loop

TICK = 1000
"""What arrives within one millisecond is read together."""


@dataclass
class Faults:
    """How likely each is, per frame or per connection; 0 for none."""

    lose: float = 0
    repeat: float = 0
    swap: float = 0
    cut: float = 0
    slow: float = 0
    half_open_ms: int = 0


def frames_of(data: bytes) -> list[bytes]:
    """Bytes as whole frames."""
    frames = []
    while data:
        (length,) = struct.unpack_from(">I", data)
        frames.append(data[: 4 + length])
        data = data[4 + length :]
    return frames


class Way:
    """One direction of a link."""

    def __init__(self, link: Link, deliver: Callable[[bytes], None]) -> None:
        self._link = link
        self._deliver = deliver
        self._held: list[bytes] = []
        self.clear_at = 0

    def send(self, data: bytes) -> None:
        """Sends frames, to each of which something may happen."""
        link, chance, faults = self._link, self._link.chance, self._link.faults
        for frame in frames_of(data):
            if link.is_cut:
                return
            dice = chance.random()
            if dice < faults.lose:
                link.count("lost")
            elif dice < faults.lose + faults.repeat:
                link.count("repeated")
                self._carry(frame)
                self._carry(frame)
            elif dice < faults.lose + faults.repeat + faults.swap:
                link.count("swapped")
                self._held.append(frame)
                continue
            elif dice < faults.lose + faults.repeat + faults.swap + faults.cut:
                link.count("cut")
                self._carry(frame[: chance.randrange(len(frame))])
                link.cut()
            else:
                self._carry(frame)
            held, self._held = self._held, []
            for other in held:
                self._carry(other)

    def _carry(self, data: bytes) -> None:
        link = self._link
        ms = link.chance.choice((0.05, 0.1, 0.3, 1)) + (200 if link.chance.random() < link.faults.slow else 0)
        moment = -(-(link.loop.now + int(ms * 1000)) // TICK) * TICK
        self.clear_at = moment = max(moment, self.clear_at)
        link.loop.at(moment, lambda: self._deliver(data))


class Link:
    """One connection: the client's end is this object, the daemon's is its ``transport``.

    ``heard`` and ``lost`` are the client's; ``connection`` is the daemon's protocol.
    """

    def __init__(
        self,
        loop: Loop,
        chance: random.Random,
        faults: Faults,
        count: Callable[[str], None],
        heard: Callable[[bytes], None],
        lost: Callable[[], None],
    ) -> None:
        self.loop = loop
        self.chance = chance
        self.faults = faults
        self.count = count
        self.is_cut = False
        self._heard, self._lost = heard, lost
        self._there = Way(self, self._reach_daemon)
        self._back = Way(self, self._reach_client)
        self._connection: Any = None
        self._is_client_gone = self._is_daemon_gone = False
        self._is_paused = False
        self._unread = b""

    def accepted(self, connection: Any) -> None:
        """The daemon took the connection."""
        self._connection = connection
        connection.connection_made(self)

    # -- the client's end -----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Sends frames to the daemon."""
        self._there.send(data)

    def drop(self) -> None:
        """The client is no more; what it sent is still on its way."""
        self._is_client_gone = True
        self._tell_daemon(self._there.clear_at)

    def cut(self) -> None:
        """The connection breaks; each end notices in its own time."""
        if not self.is_cut:
            self.is_cut = True
            self._tell_daemon(self.loop.now)
            self._tell_client(self.loop.now + self._lateness())

    def _lateness(self) -> int:
        return 1000 * self.chance.randint(0, self.faults.half_open_ms)

    def _tell_daemon(self, moment: int) -> None:
        self.loop.at(max(moment, self.loop.now) + self._lateness(), self._daemon_notices)

    def _tell_client(self, moment: int) -> None:
        self.loop.at(moment, self._client_notices)

    def _client_notices(self) -> None:
        if not self._is_client_gone:
            self._is_client_gone = True
            self._lost()

    def _daemon_notices(self) -> None:
        self.is_cut = True
        if not self._is_daemon_gone:
            self._is_daemon_gone = True
            self._connection.connection_lost(None)

    def _reach_client(self, data: bytes) -> None:
        if not self._is_client_gone:
            self._heard(data)

    def _reach_daemon(self, data: bytes) -> None:
        if self._is_daemon_gone:
            return
        if self._is_paused:
            self._unread += data
            return
        while data and not self._is_daemon_gone:
            room = self._connection.get_buffer(-1)
            piece, data = data[: len(room)], data[len(room) :]
            room[: len(piece)] = piece
            self._connection.buffer_updated(len(piece))

    # -- the daemon's end: what it asks of asyncio's transport ---------------------------------------------

    def write(self, data: bytes) -> None:
        """As asyncio's."""
        if not self._is_daemon_gone:
            self._back.send(bytes(data))

    def close(self) -> None:
        """As asyncio's: what was written still goes out."""
        self._end(self._back.clear_at)

    def abort(self) -> None:
        """As asyncio's; what the kernel has of it the client still reads."""
        self._end(self._back.clear_at)

    def _end(self, moment: int) -> None:
        self._tell_client(moment)
        self.loop.at(self.loop.now, self._daemon_notices)

    def daemon_died(self, loses_replies: bool) -> None:
        """The daemon's process is no more. A client hears what was written before, or not even that."""
        self._is_daemon_gone = True
        self.is_cut = True
        self._tell_client(self.loop.now if loses_replies else self._back.clear_at)

    def pause_reading(self) -> None:
        """As asyncio's."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """As asyncio's."""
        self._is_paused = False
        data, self._unread = self._unread, b""
        self.loop.at(self.loop.now, lambda: self._reach_daemon(data))

    def set_write_buffer_limits(self, high: int) -> None:
        """As asyncio's; every client here reads."""

    def get_write_buffer_size(self) -> int:
        """As asyncio's."""
        return 0
