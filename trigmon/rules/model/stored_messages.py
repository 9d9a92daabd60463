"""Stored messages, and the selection of those that a call looks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import msgspec

from trigmon.mq.descriptors import EXPIRY_UNLIMITED, NO_ID, MessageDescriptor
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.group_position import LAST_SEGMENT, SEGMENT

SLICE = 256
"""Rows that one call looks at or moves where there may be many: work is done in slices, so that a turn stays short."""
LARGE_SLICE = 1024
"""The same of rows whose data is not read, which cost a quarter as much."""

Stretch = tuple[int, int]
"""Consecutive numbers of messages: the first and the last."""


class Cursor(msgspec.Struct, frozen=True):
    """Where a browse stands: the counted priority and the arrival number of the message last browsed."""

    priority: int
    number: int


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as it lies in a store."""

    number: int  # its arrival
    q_name: str
    priority: int
    is_persistent: bool
    descriptor: MessageDescriptor
    data: bytes
    expires_ms: int = 0  # 0: never
    is_own: bool = False  # the unit of work that looks has put it, and not committed yet
    ordinal: int = -1  # its place in the reservation it is of, -1 in none

    def has_expired(self, now: int) -> bool:
        """Returns whether its expiry is over."""
        return 0 < self.expires_ms <= now

    def waited_ms(self, now: int) -> int:
        """Returns the milliseconds since its put: by its expiry if it has one, since an application may set PutTime."""
        if self.expires_ms:
            return self.descriptor.expiry * 100 - (self.expires_ms - now)
        return now - self.descriptor.put_ms

    def tenths_left(self, now: int) -> int:
        """Returns Expiry as a get does: the tenths of a second it has left, above 0, or unlimited."""
        return max(1, (self.expires_ms - now) // 100) if self.expires_ms else EXPIRY_UNLIMITED


Kind = tuple[int, str, int]


class MessageColumns(msgspec.Struct, frozen=True):
    """Messages of one queue in get order, by columns and without their data.

    ``sizes`` are bytes of data, ``put_ms`` milliseconds since 1970. ``kinds`` are Report, Format and PutApplType.
    In a journal there are the numbers alone, which are all that rows are found by.
    """

    q_name: str
    numbers: list[int]
    priorities: list[int] = []
    sizes: list[int] = []
    put_ms: list[int] = []
    kinds: list[Kind] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def first(self, count: int) -> MessageColumns:
        """Returns the first so many messages."""
        if count >= len(self):
            return self
        return MessageColumns(
            self.q_name,
            self.numbers[:count],
            self.priorities[:count],
            self.sizes[:count],
            self.put_ms[:count],
            self.kinds[:count],
        )


kind_of: Callable[[MessageDescriptor], Kind] = attrgetter("report", "format", "put_appl_type")
"""Returns Report, Format and PutApplType of a message."""


def columns_of(q_name: str, messages: Sequence[StoredMessage]) -> MessageColumns:
    """Returns these messages of one queue by columns."""
    descriptors = [message.descriptor for message in messages]
    return MessageColumns(
        q_name,
        [message.number for message in messages],
        [message.priority for message in messages],
        [len(message.data) for message in messages],
        [descriptor.put_ms for descriptor in descriptors],
        [kind_of(descriptor) for descriptor in descriptors],
    )


def is_simple(messages: Iterable[StoredMessage]) -> bool:
    """Returns whether all these messages are outside groups and never expire."""
    return not any(each.expires_ms or each.descriptor.group_id != NO_ID for each in messages)


def stretches(numbers: Sequence[int]) -> Iterator[Stretch]:
    """Yields the ranges of consecutive numbers, in the order of the numbers; none for no numbers."""
    if not numbers:
        return
    if list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        yield numbers[0], numbers[-1]  # as most are
        return
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[begin], numbers[at - 1]
            begin = at


def numbers_in(parts: Iterable[Stretch]) -> Iterator[int]:
    """Yields the numbers of these stretches."""
    return chain.from_iterable(range(first, last + 1) for first, last in parts)


def count_in(parts: Iterable[Stretch]) -> int:
    """Returns how many numbers are in these stretches."""
    return sum(last - first + 1 for first, last in parts)


class Summary(msgspec.Struct, frozen=True):
    """Questions about the committed messages of a queue, which may be asked together.

    ``oldest_of`` asks for the one of these priorities that arrived first, ``newest_of`` for the one that arrived last,
    ``counts_expired`` how many have expired, counted up to so many. Two are asked alone: ``lists_expired`` for those
    that have expired, and ``skip`` for the place so many messages further on, where the queue has no groups.
    """

    oldest_of: Collection[int] = ()
    counts_expired: int = 0
    newest_of: Collection[int] = ()
    lists_expired: bool = False
    skip: int = 0


class Reserved(msgspec.Struct, frozen=True):
    """The messages of a reservation with the ordinals from ``first`` to before ``end``, expired or not."""

    reservation: int
    first: int
    end: int


class Form(Enum):
    """What a look-up returns of the messages it finds. In place of the last three a store may return them whole."""

    WHOLE = 0
    GATHERED = 1
    """What is found first brings the segments that follow it, in order."""
    COLUMNS = 2
    """By columns (:class:`MessageColumns`), not checked for damage; none is of a group or expires. Where a store has to
    return them whole, or marks their rows, it may look for :data:`SLICE` of them."""
    AS_STORED = 3
    """Of a reservation whose messages are plain: the bytes of descriptor and data (:class:`AsStored`), checked."""
    NUMBERS = 4
    """Of a reservation the numbers (:class:`ReservedNumbers`). Nothing else is known, nor whether one is damaged."""


class Selection(msgspec.Struct, frozen=True):
    """Which messages a call looks for, in get order: highest priority first, then arrival.

    Messages expired at ``now`` are returned apart. Two questions are of another kind: ``summary``, and ``reserved``,
    whose messages come in the order of their ordinals.
    """

    q_name: str
    now: int
    limit: int = 1  # a store stops looking once it has so many
    unit_id: int = 0  # whose own uncommitted puts are visible
    after: Cursor | None = None  # begins behind a browse cursor
    until: Cursor | None = None  # ends with this place
    at: Cursor | None = None  # looks at that one message
    msg_id: bytes | None = None
    correl_id: bytes | None = None
    group_id: bytes | None = None
    msg_seq_number: int | None = None
    offset: int | None = None
    starts: Whole = Whole.NOTHING  # only what a logical message, or a group, begins with; a message in none is both
    whole: Whole = Whole.NOTHING  # only what has all of its logical message, or group, there
    limit_bytes: int = 4 << 20  # or once those of one kind (committed, or the unit's own) hold so many
    handle: int = 0  # what another than this has locked is not there
    own_persistent: bool = False  # of the unit's own only the persistent ones
    summary: Summary | None = None
    reserved: Reserved | None = None
    form: Form = Form.WHOLE

    @property
    def is_anything(self) -> bool:
        """Whether any message will do, the first there is."""
        return _conditions(self) == _NO_CONDITIONS


_NAMED = ("msg_id", "correl_id", "group_id", "msg_seq_number", "offset")
_named = attrgetter(*_NAMED)
_ANY = (None,) * len(_NAMED)
_conditions = attrgetter("after", "until", "at", "starts", "whole", *_NAMED)
_NO_CONDITIONS = (None, None, None, Whole.NOTHING, Whole.NOTHING, *_ANY)


def fits(selection: Selection, descriptor: MessageDescriptor) -> bool:
    """Returns whether a message has the fields that a selection names, and starts what it asks for."""
    named = _named(selection)
    if named != _ANY:
        fields = zip(named, _named(descriptor), strict=True)
        if any(wanted is not None and wanted != found for wanted, found in fields):
            return False
    if selection.starts is Whole.NOTHING:
        return True
    return not descriptor.offset and (selection.starts is Whole.MESSAGE or descriptor.msg_seq_number == 1)


def follows(segment: StoredMessage, other: StoredMessage) -> bool:
    """Returns whether the other is the next segment of the same logical message, both of one group."""
    before, found = segment.descriptor, other.descriptor
    if not before.msg_flags & SEGMENT or before.msg_flags & LAST_SEGMENT:
        return False
    return (found.msg_seq_number, found.offset) == (before.msg_seq_number, before.offset + len(segment.data))


class AsStored(NamedTuple):
    """Reserved messages in their order, as the bytes that a store has; none expires or was ever backed out."""

    ordinals: list[int]
    descriptors: list[bytes]
    """Each as MessagePack."""
    bodies: list[bytes]


class ReservedNumbers(NamedTuple):
    """The numbers of reserved messages in their order; ``end`` is the ordinal behind the last one's."""

    stretches: tuple[Stretch, ...]
    end: int


class Found(msgspec.Struct, frozen=True):
    """The messages a selection found, and on the way expired ones, and damaged ones of which no more is known.

    ``place`` answers ``skip``. ``newest`` is the last number that a group has given; 0: numbers are the member's own.
    ``columns``, ``as_stored`` and ``numbers`` are in place of ``messages``, where that was asked for and the store
    could. ``most`` is for how many the store has looked, where these were fewer than it was asked for.
    """

    messages: tuple[StoredMessage, ...] = ()
    expired: tuple[StoredMessage, ...] = ()
    damaged: tuple[StoredMessage, ...] = ()
    expired_count: int = 0
    place: Cursor | None = None
    newest: int = 0
    columns: MessageColumns | None = None
    as_stored: AsStored | None = None
    numbers: ReservedNumbers | None = None
    most: int = 0
