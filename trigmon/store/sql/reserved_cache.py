"""Cache of reserved messages: what was read to be reserved is read by its consumer, and removed, without its rows.

A reserved message does not change until it goes back to its queue, and then it is of no reservation. Of each
reservation the first messages are kept, as far as there is room; the others are read from their rows. The reservation
that was read last keeps its room while another one is made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

from trigmon.rules.model import changes as c
from trigmon.rules.model.stored_messages import Found, Selection, StoredMessage

MOST_BYTES = 64 << 20
"""Of all reservations together."""
OF_A_MESSAGE = 1024
"""Bytes that a message takes beside its data, at most."""


class ReservedCache:
    """The first messages of reservations, by number; the place in each list is the ordinal."""

    def __init__(self) -> None:
        self._of: dict[int, list[StoredMessage]] = {}
        self._sizes: dict[int, int] = {}
        self._read_last = 0
        self.is_changed = False
        """Whether the present call has changed anything."""

    def undo(self) -> None:
        """Forgets everything if the call has changed anything."""
        if self.is_changed:
            self.forget_all()

    def forget_all(self) -> None:
        """Discards everything: all messages are read from their rows."""
        self._of.clear()
        self._sizes.clear()

    def found(self, selection: Selection) -> Found | None:
        """Returns the first of the messages that a selection asks for; None where they are not here."""
        wanted = selection.reserved
        if wanted is None or not (of := self._of.get(wanted.reservation)) or wanted.first >= len(of):
            return None
        self._read_last = wanted.reservation
        messages = of[wanted.first : min(wanted.end, wanted.first + selection.limit)]
        sizes = list(accumulate([len(message.data) for message in messages]))
        if sizes and sizes[-1] > selection.limit_bytes:
            del messages[bisect_left(sizes, selection.limit_bytes) + 1 :]
        return Found(tuple(messages))

    def follow(self, change: c.AnyChange) -> None:
        """Updates the cache after a change of a class in FOLLOWED."""
        self.is_changed = True
        FOLLOWED[type(change)](self, change)

    def _reserve(self, change: c.ReserveMessages) -> None:
        number = change.reservation
        size = self._sizes.get(number, 0) + sum([len(each.data) + OF_A_MESSAGE for each in change.messages])
        if change.first != len(self._of.get(number, ())) or not self._has_room(number, size):
            return
        self._of.setdefault(number, []).extend(_with_ordinals(change.messages, change.first))
        self._sizes[number] = size

    def _has_room(self, number: int, size: int) -> bool:
        """Makes room for a reservation that takes ``size`` bytes now; not where the one that is being read has it."""
        others = [each for each in self._sizes if each not in (number, self._read_last)]
        while size + sum(self._sizes.values()) - self._sizes.get(number, 0) > MOST_BYTES:
            if not others:
                return False
            self._forget(others.pop(0))
        return True

    def _set(self, change: c.SetReservation) -> None:
        if change.reservation.is_over:
            self._forget(change.reservation.number)

    def _drop(self, change: c.DropDefinition) -> None:
        for number in [number for number, of in self._of.items() if of and of[0].q_name == change.name]:
            self._forget(number)

    def _forget(self, number: int) -> None:
        self._of.pop(number, None)
        self._sizes.pop(number, None)


def _with_ordinals(messages: Iterable[StoredMessage], first: int) -> list[StoredMessage]:
    return [
        StoredMessage(
            each.number, each.q_name, each.priority, each.is_persistent, each.descriptor, each.data, each.expires_ms,
            False, ordinal,
        )
        for ordinal, each in enumerate(messages, first)
    ]  # fmt: skip


FOLLOWED: dict[type[c.AnyChange], Callable[[ReservedCache, Any], None]] = {
    c.ReserveMessages: ReservedCache._reserve,
    c.SetReservation: ReservedCache._set,
    c.DropDefinition: ReservedCache._drop,
}
