"""What a put leaves in the caller's hand and what a get brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import Persistence
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import WasGot, WasPut

if TYPE_CHECKING:
    from datetime import datetime

    from trigmon.mq.rejection import Rejection

_FIELDS = frozenset(MessageDescriptor.__struct_fields__)


class Receipt(msgspec.Struct, frozen=True):
    """How a message was put: the ids it got, and the priority and persistence the queue gave it.

    ``put_ms`` is when, in milliseconds since 1970; ``warning`` is ``Reason.NONE`` when the put simply completed.
    ``group_id``, ``msg_seq_number`` and ``offset`` are its place in its group: what a program writes down, in the
    same unit of work, to be able to resume the group after a restart.
    """

    msg_id: bytes
    correl_id: bytes
    priority: int
    persistence: Persistence
    put_ms: int
    warning: Reason = Reason.NONE
    group_id: bytes = NO_ID
    msg_seq_number: int = 1
    offset: int = 0


def receipt(reply: WasPut) -> Receipt:
    """Returns the receipt for one put."""
    return Receipt(
        msg_id=reply.msg_id,
        correl_id=reply.correl_id,
        priority=reply.priority,
        persistence=Persistence(reply.persistence),
        put_ms=reply.put_ms,
        warning=Reason(reply.warning),
        group_id=reply.group_id,
        msg_seq_number=reply.msg_seq_number,
        offset=reply.offset,
    )


class Message:
    """A message: its data, and every field of its descriptor under its own name.

    ``data`` is the bytes, ``data_length`` how many there were where ``data`` was cut, ``descriptor`` all the fields
    in one value; ``group_status`` and ``segment_status`` are one character, a blank outside groups and segments.
    """

    __slots__ = ("_got",)

    if TYPE_CHECKING:  # __getattr__ answers these; they stand here for type checkers and for readers
        report: int
        msg_type: int
        expiry: int
        feedback: int
        encoding: int
        coded_char_set_id: int
        format: str
        priority: int
        msg_id: bytes
        correl_id: bytes
        backout_count: int
        reply_to_q: str
        reply_to_q_mgr: str
        user_identifier: str
        accounting_token: bytes
        appl_identity_data: str
        put_appl_type: int
        put_appl_name: str
        put_ms: int
        appl_origin_data: str
        group_id: bytes
        msg_seq_number: int
        offset: int
        msg_flags: int
        original_length: int
        traceparent: str

    def __init__(self, got: WasGot) -> None:
        self._got = got

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self._got.descriptor, name)
        raise AttributeError(f"a message has no {name!r}", name=name, obj=self)

    @property
    def descriptor(self) -> MessageDescriptor:
        """The message descriptor, whole."""
        return self._got.descriptor

    @property
    def data(self) -> bytes:
        """The message's bytes, as far as they were got."""
        return self._got.data

    @property
    def data_length(self) -> int:
        """How many bytes the message has, also where ``data`` was cut."""
        return self._got.data_length

    @property
    def text(self) -> str:
        """The data as UTF-8 text. Raises UnicodeDecodeError when it is none."""
        return self._got.data.decode()

    @property
    def rejection(self) -> Rejection | None:
        """Why an application rejected the message, where it lies on a backout queue for that: ``data`` begins with it.

        ``why`` is its reason, ``q_name`` the queue of the message, ``ms`` the time, in milliseconds since 1970.
        """
        return self._behind()[1]

    @property
    def body(self) -> bytes:
        """The data as it was put, also where ``data`` begins with why the message was rejected."""
        return self._behind()[0]

    def _behind(self) -> tuple[bytes, Rejection | None]:
        from trigmon.mq.rejection import without_rejection  # only who looks after failures asks

        _, body, rejection = without_rejection(self._got.descriptor, self._got.data)
        return body, rejection

    @property
    def persistence(self) -> Persistence:
        """Whether the message survives a restart of the queue manager."""
        return Persistence(self._got.descriptor.persistence)

    @property
    def expiry_tenths(self) -> int:
        """What is left of the message's life, in tenths of a second; -1 is for ever."""
        return self._got.descriptor.expiry

    @property
    def put_time(self) -> datetime:
        """When the message was put, in UTC."""
        from datetime import UTC, datetime  # most programs never ask, and every one would pay for the import

        return datetime.fromtimestamp(self._got.descriptor.put_ms / 1000, UTC)

    @property
    def group_status(self) -> str:
        """``G`` in a group, ``L`` for its last message, a blank outside groups."""
        return self._got.group_status

    @property
    def segment_status(self) -> str:
        """``S`` for a segment, ``L`` for the last one, a blank for a whole message."""
        return self._got.segment_status

    @property
    def warning(self) -> Reason:
        """Why the get did not simply complete: ``TRUNCATED_MSG_ACCEPTED``; else ``NONE``."""
        return Reason(self._got.warning)

    def __repr__(self) -> str:
        descriptor = self._got.descriptor
        return f"<Message {descriptor.msg_id.hex()} {descriptor.format or 'no format'}, {self._got.data_length} bytes>"
