"""Fresh numbers, ascending, for messages, units of work and handles; a message id carries its number."""

from __future__ import annotations

from typing import Final, NamedTuple

BLOCK: Final = 1024
"""So many numbers at a time are set apart for units of work and handles."""


class Place(NamedTuple):
    """The next number of a message, and the numbers from ``other`` to before ``end`` for all else."""

    message: int
    other: int = 0
    end: int = 0


class Counter:
    """One counter for all three: numbers are never used again, so none can be mistaken for another.

    Those of messages are consecutive over many units of work, so that a reservation of them is a few ranges.
    """

    def __init__(self, q_mgr_name: str, first: int) -> None:
        self._prefix = b"AMQ " + q_mgr_name.encode()[:12].ljust(12)
        self.go_back(Place(first))

    @property
    def place(self) -> Place:
        """What is given next."""
        return Place(self._next, self._other, self._end)

    def go_back(self, to: Place) -> None:
        """Takes back the numbers from this place on: no client has seen them."""
        self._next, self._other, self._end = to

    def message(self) -> int:
        """Returns an arrival number, above all before it."""
        number = self._next
        self._next = number + 1
        return number

    def unit(self) -> int:
        """Returns a number for a unit of work, above all before it."""
        if self._other == self._end:
            self._other, self._end = self._next, self._next + BLOCK
            self._next = self._end
        number = self._other
        self._other = number + 1
        return number

    def handle(self) -> int:
        """Returns a number for an open object."""
        return self.unit()

    def msg_id(self, number: int) -> bytes:
        """Returns 24 bytes: ``AMQ``, twelve bytes of the queue manager's name, the number."""
        return self._prefix + number.to_bytes(8, "big")
