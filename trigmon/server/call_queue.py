"""What one client has sent and nobody has performed yet, and whether it may send more."""

from __future__ import annotations

from collections import deque

from trigmon.mq.calls import Call
from trigmon.server.memory_budget import Intake, Sender
from trigmon.wire.frames import FrameReader, ProtocolError

MOST_BYTES = 4 * 1024 * 1024
MOST_CALLS = 1024
LITTLE = 64 * 1024
"""A client may send ahead this much; what is over it stays in the kernel until some were performed. When others have
sent so much that memory is short, it is little."""

LONG_FRAME = 64 * 1024
"""A frame of which so much is still to come needs leave to come."""


class CallQueue:
    """Calls in the order they came, with their numbers, counted against the budget of all."""

    __slots__ = ("_bytes", "_calls", "_intake", "_last_number", "_reserved", "_sender", "_taken")

    def __init__(self, intake: Intake, sender: Sender) -> None:
        self._intake = intake
        self._sender = sender
        self._calls: deque[tuple[int, Call, int]] = deque()
        self._last_number = 0
        self._bytes = 0
        self._taken = 0
        self._reserved = 0

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, sequence: int, call: Call, size: int) -> None:
        """Keeps a call of this number and length in bytes. Raises ProtocolError where another number was due."""
        if sequence != self._last_number + 1:
            # Answered under 0, for the number may have been given away before. A gap is a call that was lost: what
            # comes behind it may be the commit of a unit that it belonged to.
            raise ProtocolError(f"call number {sequence}, where {self._last_number + 1} was due")
        self._last_number = sequence
        self._calls.append((sequence, call, size))
        self._bytes += size
        self._intake.keep(size)

    @property
    def first(self) -> tuple[int, Call, int]:
        """The call whose turn it is, with its number and its length in bytes."""
        return self._calls[0]

    def drop_first(self) -> None:
        """Removes the first call, which is being performed. Its room is free from :meth:`settle` on."""
        self._taken += self._calls.popleft()[2]

    def settle(self) -> None:
        """Gives back the room of what was taken out."""
        if self._taken:
            taken, self._taken = self._taken, 0
            self._bytes -= taken
            self._intake.give_back(taken)

    def may_grow(self, reader: FrameReader, was_allowed: bool) -> bool:
        """Returns whether more may be read: there is not too much here, and the frame that has begun has its room.

        Who had to stop goes on when half was performed, not at each call.
        """
        most_bytes = LITTLE if self._intake.is_tight else MOST_BYTES
        most_calls = MOST_CALLS
        if not was_allowed:
            most_bytes, most_calls = most_bytes // 2, most_calls // 2
        return self._bytes <= most_bytes and len(self._calls) <= most_calls and self._has_room_for_frame(reader)

    def _has_room_for_frame(self, reader: FrameReader) -> bool:
        if self._reserved or not reader.mid_frame or (missing := reader.missing) <= LONG_FRAME:
            return True
        if not self._intake.admit(self._sender, missing):
            return False
        self._reserved = missing
        return True

    @property
    def awaits_frame(self) -> bool:
        """Whether a long frame is on its way, its room kept."""
        return self._reserved > 0

    def frame_ended(self) -> None:
        """Records that the frame whose room was reserved is here, and counts it as a call."""
        if self._reserved:
            reserved, self._reserved = self._reserved, 0
            self._intake.came(self._sender, reserved)

    def clear(self) -> None:
        """Drops every call: none will be performed, and no more come."""
        self._calls.clear()
        self._intake.forget(self._sender)
        self.frame_ended()
        if self._bytes:
            size, self._bytes, self._taken = self._bytes, 0, 0
            self._intake.give_back(size)
