"""How a queue elsewhere is copied so that each message comes once: two units of work, and a record between them. Pure.

A batch is got there under syncpoint. One unit of work here puts its messages and the record of them, and is committed;
then the unit there is committed. A crash in between lets the messages come again there, and the record knows them: they
are committed there, and are not put a second time.

The record names the messages of the last unit of work there: all of them came back, or none. That is found out when
the queue there is open again for exclusive input, so that the earlier unit of work has ended: they are looked for by
their message ids. Programs can give one id to several messages, so an identity is more than the id, and the record
counts; what was given back has a backout count that is higher than on record. The record is taken away before the next
get, so no later unit of work raises a count.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Protocol

import msgspec

from trigmon.mq.descriptors import ID_LENGTH, MessageDescriptor
from trigmon.mq.rfh2 import FORMAT_RULES_2, header_parts

BATCH = 200
"""Messages a unit of work, at most."""
MOST_BYTES = 16 << 20
"""No further message is got into a batch that has so many bytes."""
MOST_OF_AN_ID = 2000
"""So many messages of one id are looked at when a unit of work may have come back."""
_DIGEST = 16


class Recorded(msgspec.Struct, frozen=True, array_like=True):
    """Messages of one identity on record: how many, and the highest backout count that one of them had."""

    count: int
    backout_count: int


Record = dict[bytes, Recorded]
"""By identity the messages of the last unit of work there, which were put here."""


class TakenMessage(msgspec.Struct, frozen=True):
    """A message that was got there, as it is to be put here."""

    descriptor: MessageDescriptor
    data: bytes
    identity: bytes


class There(Protocol):
    """The queue that is copied, open for exclusive input. A call raises where its queue manager cannot be reached."""

    def take(self, wait_ms: int) -> TakenMessage | None:
        """Gets the next message under syncpoint; None where none comes within the time."""

    def take_again(self, msg_id: bytes) -> TakenMessage | None:
        """Gets the next message of this id under syncpoint, without waiting; None where there is none."""

    def look(self, msg_id: bytes, most: int) -> list[TakenMessage]:
        """Browses the messages of this id, so many at most: what is only looked at has no backout count."""

    def commit(self) -> None:
        """Commits what was got."""

    def backout(self) -> None:
        """Gives back what was got. It raises nothing: with a lost connection its unit of work ends as well."""


class Here(Protocol):
    """The local queue and the record."""

    def room(self) -> int:
        """Returns how many messages the queue has room for now, 1 or more. Raises MQError where it takes none."""

    def put(self, messages: Sequence[TakenMessage], record: Record) -> None:
        """Puts messages and the record in one unit of work, and commits it. Raises MQError where nothing was done."""


class QueueCopy:
    """The copy of one queue, from when the record was read. Where a call's outcome is unknown a new one is made.

    The outcome is unknown after an error of ``there``, until it is open again and :meth:`resolve` has been called; and
    after any other error of ``here`` than a refusal: then the record is read anew.
    """

    def __init__(self, there: There, here: Here, record: Record, batch: int = BATCH) -> None:
        self._there = there
        self._here = here
        self._record = dict(record)
        self._is_recorded = bool(record)
        self._batch = batch
        self.last_put_ms = 0
        """When the last message that was copied was put there, by its descriptor; 0 where that does not say."""

    def resolve(self) -> int:
        """Commits there what came back of the unit of work on record; returns how many other messages were put here.

        Called when the queue there was opened, before the first batch.
        """
        put = 0
        if self._record and came_back(self._record, self._found(self._there.look)):
            taken = self._found(self._taken_again)
            new = not_on_record(self._record, taken)
            if new:
                self._put(new, taken)
                put = len(new)
            self._there.commit()
        self._record = {}
        self.settle()
        return put

    def copy_batch(self, wait_ms: int) -> int:
        """Copies the next messages, waiting for the first so long; returns how many, 0 where none came.

        Raises MQError where the messages cannot be put here: they are given back there.
        """
        most = min(self._batch, self._here.room())
        taken: list[TakenMessage] = []
        size = 0
        while len(taken) < most and size < MOST_BYTES:
            message = self._there.take(0 if taken else wait_ms)
            if message is None:
                break
            taken.append(message)
            size += len(message.data)
        if taken:
            self._put(taken, taken)
            self._there.commit()
            self._record = {}
            self.last_put_ms = taken[-1].descriptor.put_ms
            self.settle()
        return len(taken)

    def settle(self) -> None:
        """Takes the record away where all of it is committed there, before the next get.

        So it stands for no later message, and no later unit of work raises the backout count of one that is like it.
        """
        if self._is_recorded and not self._record:
            self._here.put([], {})
            self._is_recorded = False

    def _put(self, messages: Sequence[TakenMessage], unit: Sequence[TakenMessage]) -> None:
        """Puts messages here, with the record of the whole unit of work there."""
        record = record_of(unit)
        try:
            self._here.put(messages, record)
        except Exception:
            self._there.backout()
            raise
        self._record = record
        self._is_recorded = True

    def _found(self, look: Callable[[bytes, int], list[TakenMessage]]) -> list[TakenMessage]:
        found: list[TakenMessage] = []
        for msg_id in dict.fromkeys(identity[:ID_LENGTH] for identity in self._record):
            found += look(msg_id, MOST_OF_AN_ID)
        return found

    def _taken_again(self, msg_id: bytes, most: int) -> list[TakenMessage]:
        taken: list[TakenMessage] = []
        while len(taken) < most and (message := self._there.take_again(msg_id)) is not None:
            taken.append(message)
        return taken


def record_of(unit: Iterable[TakenMessage]) -> Record:
    """Returns the record of the messages of a unit of work."""
    record: Record = {}
    for each in unit:
        before = record.get(each.identity, Recorded(0, 0))
        most = max(before.backout_count, each.descriptor.backout_count)
        record[each.identity] = Recorded(before.count + 1, most)
    return record


def came_back(record: Record, found: Sequence[TakenMessage]) -> bool:
    """Returns whether the unit of work on record was backed out there, by the messages that are there now.

    A raised backout count is proof. Without one (z/OS forgets it where a queue is not HARDENBO) it came back when all
    of it is there, and nothing shows that there are several messages of one identity.
    """
    there = Counter(each.identity for each in found)
    if any(
        each.descriptor.backout_count > record[each.identity].backout_count for each in found if each.identity in record
    ):
        return True
    return all(recorded.count == there[identity] == 1 for identity, recorded in record.items())


def not_on_record(record: Record, taken: Sequence[TakenMessage]) -> list[TakenMessage]:
    """Returns the messages that were not put here yet, of those that came when the unit of work on record came back.

    Of several messages of one identity those were put that have been given back more often.
    """
    left = {identity: recorded.count for identity, recorded in record.items()}
    known: set[int] = set()
    for at, each in sorted(enumerate(taken), key=lambda it: -it[1].descriptor.backout_count):
        if left.get(each.identity, 0):
            left[each.identity] -= 1
            known.add(at)
    return [each for at, each in enumerate(taken) if at not in known]


class _Message(msgspec.Struct, frozen=True):
    """The record as a message: which queue is copied, and the record by identity in hexadecimal."""

    source: str
    record: dict[str, Recorded]


def encode(source: str, record: Record) -> bytes:
    """Returns the record as the data of its message."""
    return msgspec.json.encode(_Message(source, {identity.hex(): each for identity, each in record.items()}))


def decode(data: bytes) -> tuple[str, Record]:
    """Returns which queue a record is of, and the record. Raises ValueError for what is no record."""
    read = msgspec.json.decode(data, type=_Message)
    record = {bytes.fromhex(identity): each for identity, each in read.record.items()}
    if any(len(identity) != ID_LENGTH + _DIGEST or each.count < 1 for identity, each in record.items()):
        raise ValueError("a record of a copy holds identities and how often each")
    return read.source, record


def identity_of(descriptor: MessageDescriptor, data: bytes) -> bytes:
    """Returns what tells a message from others: its id, and a digest of what stays when it comes again.

    Not what is left of the expiry, nor the backout count; nor an MQRFH2, since a queue manager that returns properties
    in one may write it anew.
    """
    parts = (
        descriptor.correl_id,
        descriptor.put_ms,
        descriptor.put_appl_name,
        descriptor.user_identifier,
        descriptor.msg_type,
        descriptor.priority,
        descriptor.persistence,
        descriptor.group_id,
        descriptor.msg_seq_number,
        descriptor.offset,
    )
    digest = blake2b(msgspec.msgpack.encode(parts), digest_size=_DIGEST)
    digest.update(_behind_headers(descriptor, data))
    return descriptor.msg_id + digest.digest()


def _behind_headers(descriptor: MessageDescriptor, data: bytes) -> bytes:
    while descriptor.format == FORMAT_RULES_2:
        try:
            descriptor, data, _ = header_parts(descriptor, data)
        except (struct.error, ValueError):
            break
    return data
