"""The place in an unfinished group, kept on a STATUS queue by the same units of work: a restart goes on from it.

Two methods, which the programs beside this file choose by ``--keep``:

    message     one message, replaced in each unit of work
    segments    one more segment in each, which saves the gets; the last unit of work gets them all as one message

Either way the STATUS queue is empty when a group is done. One program at a time uses it, so it is opened exclusively.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple, Protocol

import trigmon

OPEN_FOR = ("input_exclusive", "browse", "output")


class Place(NamedTuple):
    """The last message of a group that is done. With segmented messages its Offset would belong to it, too."""

    group_id: bytes
    msg_seq_number: int

    def encode(self) -> str:
        """Returns the message on the queue."""
        return json.dumps({"group_id": self.group_id.hex(), "msg_seq_number": self.msg_seq_number})

    @classmethod
    def decode(cls, text: str) -> Place:
        """Returns the place in a message."""
        fields = json.loads(text)
        return cls(bytes.fromhex(fields["group_id"]), fields["msg_seq_number"])


class Status(Protocol):
    """The interface of both methods. Changes are under syncpoint: the program commits them."""

    def read(self) -> Place | None:
        """Returns the place at which a program was terminated, or None. Called once, after a start."""

    def note(self, place: Place) -> None:
        """Records the place in an intermediate unit of work."""

    def clear(self) -> None:
        """Removes the status in the last unit of work."""


class OneMessage:
    """One message, got and put anew in each unit of work."""

    def __init__(self, queue: trigmon.Queue) -> None:
        self._queue = queue
        self._is_there = False

    def read(self) -> Place | None:
        """See :class:`Status`. It gets the message, so the next unit of work puts a new one."""
        try:
            return Place.decode(self._queue.get(syncpoint=True).text)
        except trigmon.NoMsgAvailable:
            return None

    def note(self, place: Place) -> None:
        """See :class:`Status`."""
        self.clear()
        self._queue.put(place.encode(), syncpoint=True)
        self._is_there = True

    def clear(self) -> None:
        """See :class:`Status`."""
        if self._is_there:
            self._queue.get(syncpoint=True)
            self._is_there = False


class Segments:
    """Segments of one logical message; the last one has the place."""

    def __init__(self, queue: trigmon.Queue) -> None:
        self._queue = queue
        self._is_there = False
        self._left: trigmon.Message | None = None

    def read(self) -> Place | None:
        """See :class:`Status`. It browses to the last segment and gets nothing."""
        for message in self._queue.browse(logical_order=True):
            self._left = message
        self._is_there = self._left is not None
        return Place.decode(self._left.text) if self._left is not None else None

    def note(self, place: Place) -> None:
        """See :class:`Status`."""
        self._put(place.encode(), "segment")
        self._is_there = True

    def clear(self) -> None:
        """See :class:`Status`. The final segment makes the message complete, so that one get clears it."""
        if self._is_there:
            self._put("", "last_segment")
            self._queue.get(complete_msg=True, syncpoint=True)
            self._is_there = False

    def _put(self, text: str, flag: str) -> None:
        left, self._left = self._left, None
        if left is None:
            self._queue.put(text, msg_flags=flag, logical_order=True, syncpoint=True)
        else:
            # The first segment after a restart names its place, since this handle has put none before it.
            offset = left.offset + left.data_length
            self._queue.put(text, msg_flags=flag, group_id=left.group_id, offset=offset, syncpoint=True)


KEEP: dict[str, Callable[[trigmon.Queue], Status]] = {"message": OneMessage, "segments": Segments}
