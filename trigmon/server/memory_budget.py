"""What clients may keep in the daemon's memory, all of them together: calls not yet performed, replies not yet read.

A turn's own load is a matter of what its calls may bring, for the length of a message is known only when it was got.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Protocol, TypeVar

from trigmon.mq.calls import BrowseMany, Call, Commit, Get, GetMany, Put, PutMany, Reserve
from trigmon.rules.messages.get import MOST_BYTES, MOST_MESSAGES
from trigmon.rules.model.stored_messages import SLICE
from trigmon.wire.frames import FrameReader, ProtocolError

INTAKE_BYTES = 64 * 1024 * 1024
"""Calls that lie unperformed, and the long frames that have begun, of all connections together."""

UNREAD_BYTES = 256 * 1024 * 1024
"""Replies that lie unread, of all connections together; above it those are cut that have read nothing for longest."""

TURN_MESSAGES = 256
TURN_BYTES = 4 * 1024 * 1024
"""What one turn may hold: longer ones would make everybody wait for their end."""

TURN_REPLIES = 256 * 1024 * 1024
MOST_OF_ONE = 16 * 1024 * 1024
"""What the gets of one turn may bring when each message is as long as it can be, and how much of that one get is."""

MOST_QUEUED_BYTES = 4 * 1024 * 1024
MOST_QUEUED_CALLS = 1024
LITTLE = 64 * 1024
"""A client may send ahead this much; what is over it stays in the kernel until some were performed. When others have
sent so much that memory is short, it is little."""

LONG_FRAME = 64 * 1024
"""A frame of which so much is still to come needs leave to come."""


PUT_MANY_PARTS = 2
"""So many messages of a put_many take a turn about the time of one put."""
_OF_ONE = {Put, Get, Commit}


def messages_of(call: Call) -> int:
    """Returns how many messages of a turn a call counts as: those it is about at most; 1 where it is about none."""
    if type(call) in _OF_ONE:  # nearly always
        return 1
    if isinstance(call, PutMany):
        return max(1, len(call.bodies) // PUT_MANY_PARTS)
    if isinstance(call, GetMany | BrowseMany):
        return max(1, min(call.count, MOST_MESSAGES))
    return SLICE if isinstance(call, Reserve) else 1


def longest_reply(call: Get | GetMany | BrowseMany, longest_message: int) -> int:
    """Returns how many bytes the reply to a get can have."""
    if isinstance(call, Get):  # nearly always
        return longest_message if call.max_length < 0 else min(call.max_length, longest_message)
    return max(MOST_BYTES, longest_message)


class Room:
    """What is left of a turn; it is passed by one call at most."""

    __slots__ = ("messages", "replies", "size")

    def __init__(self) -> None:
        self.messages = TURN_MESSAGES
        self.size = TURN_BYTES
        self.replies = TURN_REPLIES

    @property
    def is_left(self) -> bool:
        """Whether another call goes in."""
        return self.messages > 0 and self.size > 0 and self.replies > 0


class Sender(Protocol):
    """A connection, as one that brings bytes."""

    @property
    def user(self) -> int | str:
        """Its user, by whom memory is shared out."""

    @property
    def is_idle(self) -> bool:
        """Whether what it brings would be performed as soon as it is there."""

    def go_on(self) -> bool:
        """Tries the request again; returns whether it was granted."""


class Intake:
    """The budget of what came in and was not yet performed.

    One half is anybody's. The other is for long frames of those who have nothing else in hand: such a frame ends or is
    cut for being late, and then is performed, so this half becomes free again whatever clients do. One such frame
    finds room always. What is on its way of one user's frames is half of the budget at most, so that a user who sends
    long frames slowly keeps no other user's waiting.
    """

    def __init__(self, longest_frame: int) -> None:
        self.held = 0
        self._promised: Counter[int | str] = Counter()  # by user; who has none is not in it
        self._waiting: dict[Sender, int] = {}  # and how much each asks for
        self.suit(longest_frame)

    def suit(self, longest_frame: int) -> None:
        """Suits the budget to the longest frame there may be."""
        self.budget = max(INTAKE_BYTES, 4 * longest_frame)

    @property
    def is_tight(self) -> bool:
        """Whether clients are to send ahead as little as possible."""
        return self.held > self.budget // 2

    def keep(self, size: int) -> None:
        """Counts what is there already."""
        self.held += size

    def admit(self, sender: Sender, size: int) -> bool:
        """Counts what is about to come; without room the sender waits until it is called to go on."""
        if not self._has_room(sender, size):
            self._waiting[sender] = size
            return False
        self._waiting.pop(sender, None)
        self._promised[sender.user] += size
        self.held += size
        return True

    def _has_room(self, sender: Sender, size: int) -> bool:
        if self._is_over_share(sender.user, size):
            return False
        if not sender.is_idle:
            return self.held + size <= self.budget // 2
        return self.held + size <= self.budget or not self._promised

    def _is_over_share(self, user: int | str, size: int) -> bool:
        promised = self._promised.get(user, 0)
        return promised > 0 and promised + size > self.budget // 2

    def came(self, sender: Sender, size: int) -> None:
        """Records that what was admitted has come, or never will."""
        self._promised[sender.user] -= size
        if not self._promised[sender.user]:
            del self._promised[sender.user]
        self.give_back(size)

    def give_back(self, size: int) -> None:
        """Frees the room of what was performed, or never will be; waiting connections go on, the first first."""
        self.held -= size
        for sender, wanted in list(self._waiting.items()) if self._waiting else ():
            if sender not in self._waiting or self._is_over_share(sender.user, wanted):
                continue
            if not sender.go_on() and sender.is_idle:
                return

    def forget(self, sender: Sender) -> None:
        """Removes it from those that wait."""
        self._waiting.pop(sender, None)


class CallQueue:
    """Calls in the order they came, counted against the budget of all.

    ``calls``: each with its number and its length in bytes.
    """

    __slots__ = ("_bytes", "_intake", "_last_number", "_reserved", "_sender", "_taken", "calls")

    def __init__(self, intake: Intake, sender: Sender) -> None:
        self._intake = intake
        self._sender = sender
        self.calls: deque[tuple[int, Call, int]] = deque()
        self._last_number = 0
        self._bytes = 0
        self._taken = 0
        self._reserved = 0

    def add(self, sequence: int, call: Call, size: int) -> None:
        """Keeps a call of this number and length in bytes. Raises ProtocolError where another number was due."""
        if sequence != self._last_number + 1:
            # Answered under 0, for the number may have been given away before. A gap is a call that was lost: what
            # comes behind it may be the commit of a unit that it belonged to.
            raise ProtocolError(f"call number {sequence}, where {self._last_number + 1} was due")
        self._last_number = sequence
        self.calls.append((sequence, call, size))
        self._bytes += size
        self._intake.keep(size)

    def drop_first(self) -> None:
        """Removes the first call, which is being performed. Its room is free from :meth:`settle` on."""
        self._taken += self.calls.popleft()[2]

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
        most_bytes = LITTLE if self._intake.is_tight else MOST_QUEUED_BYTES
        most_calls = MOST_QUEUED_CALLS
        if not was_allowed:
            most_bytes, most_calls = most_bytes // 2, most_calls // 2
        return self._bytes <= most_bytes and len(self.calls) <= most_calls and self._has_room_for_frame(reader)

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
        self.calls.clear()
        self._intake.forget(self._sender)
        self.frame_ended()
        if self._bytes:
            size, self._bytes, self._taken = self._bytes, 0, 0
            self._intake.give_back(size)


class Reader(Protocol):
    """A connection, as one that is owed replies."""

    @property
    def user(self) -> int | str:
        """Its user, by whom memory is shared out."""

    @property
    def unread_since(self) -> float:
        """Since when it has read nothing, on the loop's clock."""

    @property
    def unread_bytes(self) -> int:
        """How much it has not read."""


R = TypeVar("R", bound=Reader)


def to_be_cut(readers: Iterable[R], most_bytes: int = UNREAD_BYTES) -> list[R]:
    """Returns which of the slow readers must be disconnected so that no more than ``most_bytes`` lie unread.

    It is always the slowest of the user for whom most lies unread.
    """
    slowest: dict[int | str, deque[R]] = {}
    unread: Counter[int | str] = Counter()
    for reader in sorted(readers, key=lambda reader: reader.unread_since):
        slowest.setdefault(reader.user, deque()).append(reader)
        unread[reader.user] += reader.unread_bytes
    over = unread.total() - most_bytes
    cut = []
    while over > 0 and slowest:
        user = max(slowest, key=lambda user: unread[user])
        reader = slowest[user].popleft()
        cut.append(reader)
        over -= reader.unread_bytes
        unread[user] -= reader.unread_bytes
        if not slowest[user]:
            del slowest[user]
    return cut
