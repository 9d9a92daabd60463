"""The reservations of the memory store, and what they do to rows of messages."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.state import Standing
from trigmon.store.base import KEPT_RESERVATIONS
from trigmon.store.memory.rows import Row, Rows, once_more
from trigmon.store.undo_notes import UndoNotes


class ReservedMessages:
    """The reservations by number; the ended ones that are remembered as well."""

    def __init__(self, rows: Rows, notes: UndoNotes) -> None:
        self._rows = rows
        self._notes = notes
        self._reservations: dict[int, Reservation] = {}

    def reservation(self, number: int) -> Reservation | None:
        """Returns a reservation, or None."""
        return self._reservations.get(number)

    def restore(self, standing: Standing) -> None:
        """Restores the facts at a start; reservations of queues that are gone are forgotten."""
        for number, reservation in list(self._reservations.items()):
            if reservation.q_name not in standing.queues:
                del self._reservations[number]
            elif not reservation.is_over:
                standing.follow(r.SetReservation(reservation))

    def reserve(self, change: r.ReserveMessages) -> None:
        """Hides messages from every getter."""
        columns = change.columns
        places = zip(columns.priorities, columns.numbers, strict=True)
        for ordinal, (priority, number) in enumerate(places, change.first):
            row = self._rows.at(columns.q_name, priority, number)
            self._rows.set(Row(replace(row.message, ordinal=ordinal), 0, change.reservation))

    def write(self, change: r.SetReservation) -> None:
        """Writes a reservation, and forgets ended ones of its consumer but the last few."""
        if change.is_stored:
            stored = replace(change.reservation, holder=0, readers=())
            self._notes.set(self._reservations, stored.number, stored)
            if stored.is_over:
                self._forget(stored.q_name, stored.consumer)

    def settle(self, change: r.SettleReserved) -> None:
        """Removes rows."""
        for message in change.messages:
            self._rows.drop(self._rows.row(message))

    def give_back(self, change: r.ReturnReserved) -> None:
        """Makes messages available again."""
        for message in change.messages:
            row = self._rows.row(message)
            self._rows.set(Row(replace(once_more(row.message, change.adds), ordinal=-1)))

    def drop_queue(self, q_name: str) -> None:
        """Forgets the reservations of a queue."""
        for number, reservation in list(self._reservations.items()):
            if reservation.q_name == q_name:
                self._notes.set(self._reservations, number, None)

    def _forget(self, q_name: str, consumer: str) -> None:
        of = sorted(n for n, r in self._reservations.items() if (r.q_name, r.consumer) == (q_name, consumer))
        for number in of[:-KEPT_RESERVATIONS]:
            if self._reservations[number].is_over:
                self._notes.set(self._reservations, number, None)
