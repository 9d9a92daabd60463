"""The state of a local queue. Priorities are the counted ones."""

from __future__ import annotations

import msgspec

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import MsgDeliverySequence
from trigmon.mq.errors import QDeleted
from trigmon.rules.model.shared_view import NO_DEPTH, Shared


class QueueFacts(msgspec.Struct, frozen=True):
    """The state of a local queue: its definition, its messages, its open handles, its last trigger.

    Of a ``shared`` queue ``depths`` are the committed messages of the whole group (seed 001, condition 3, note b), and
    so are the counts of what is uncommitted and of open handles in all; ``open_input_count``, ``open_output_count``
    and the stamp are this member's own. ``open_exclusive`` is true where any member has it open so.
    """

    definition: LocalQueue
    depths: tuple[int, ...] = NO_DEPTH  # by priority
    open_input_count: int = 0
    open_exclusive: bool = False
    open_output_count: int = 0
    open_count: int = 0
    uncommitted_puts: int = 0
    uncommitted_gets: int = 0
    trigger_stamp_ms: int | None = None
    is_deleted: bool = False  # logically: it stays for the handles that are open, and no other may use it
    reserved: int = 0  # messages of reservations that a connection stands behind, which are not in depths
    shared: Shared | None = None

    @property
    def readers(self) -> int:
        """How many handles are open for input, on whichever member."""
        if self.shared is None:
            return self.open_input_count
        return self.open_input_count + sum(reader.count for reader in self.shared.readers)

    @property
    def lying(self) -> int:
        """How many messages take up places: a shared queue's uncommitted ones do, which do not count as waiting."""
        return self.depth if self.shared is None else self.depth + self.uncommitted_puts

    @property
    def unseen(self) -> int:
        """How many of those that wait are not committed, so that no other unit of work can get them."""
        return self.uncommitted_puts if self.shared is None else 0

    @property
    def in_use(self) -> int:
        """How many handles and uncommitted or reserved messages there are."""
        return self.open_count + self.uncommitted_puts + self.uncommitted_gets + self.reserved

    @property
    def depth(self) -> int:
        """CURDEPTH."""
        return sum(self.depths)

    def waiting(self, priority: int) -> int:
        """Returns how many messages of at least this priority there are."""
        return sum(self.depths[priority:])


def check_alive(queue: QueueFacts) -> None:
    """Raises QDeleted (2052) for a dynamic queue that was deleted and stays only for handles that are still open."""
    if queue.is_deleted:
        raise QDeleted(f"{queue.definition.name} was deleted")


def counted_priority(definition: LocalQueue, priority: int) -> int:
    """Returns the priority at which a message is placed and counted (condition 14)."""
    return definition.def_priority if definition.msg_delivery_sequence is MsgDeliverySequence.FIFO else priority
