"""The changes of reservations, and of the rows of messages that they have."""

from __future__ import annotations

from trigmon.rules.model.change import SYNCED, VOLATILE, Change, Durability
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.stored_messages import MessageColumns, StoredMessage, Stretch


class ReserveMessages(Change, frozen=True):
    """Messages become those of a reservation, with ordinals from ``first`` on: hidden from every getter.

    ``messages`` are the same ones, where one of them is of a group or expires; else there are none.
    """

    reservation: int
    columns: MessageColumns
    first: int
    messages: tuple[StoredMessage, ...] = ()


class SetReservation(Change, frozen=True):
    """A reservation is written anew. With ``is_stored`` off only the connections behind it have changed.

    ``must_last`` off: a crash may undo it, together with what was done to the rows in the same call.
    """

    reservation: Reservation
    is_stored: bool = True
    must_last: bool = True

    @property
    def durability(self) -> Durability:
        """Only what is stored, and would be missed, lasts."""
        return SYNCED if self.is_stored and self.must_last else VOLATILE


class SettleReserved(Change, frozen=True):
    """Rows of a reservation are deleted; its record has them as settled already.

    ``messages`` are the same ones, where they were looked at: a store that never answers by numbers finds rows by them.
    """

    q_name: str
    stretches: tuple[Stretch, ...]
    messages: tuple[StoredMessage, ...] = ()


class ReturnReserved(Change, frozen=True):
    """Rows of a reservation go back to their places on the queue, ``adds`` on their backout counts."""

    messages: tuple[StoredMessage, ...]
    adds: int

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the messages' queue."""
        return (self.messages[0].q_name,)
