"""Fresh numbers, ascending, for messages, units of work and handles; a message id carries its number."""

from __future__ import annotations


class Counter:
    """One counter for all three: numbers are never used again, so none can be mistaken for another."""

    def __init__(self, q_mgr_name: str, first: int) -> None:
        self._prefix = b"AMQ " + q_mgr_name.encode()[:12].ljust(12)
        self._next = first

    @property
    def next(self) -> int:
        """The number that is given next."""
        return self._next

    def go_back(self, number: int) -> None:
        """Takes back the numbers from this one on: no client has seen them."""
        self._next = number

    def message(self) -> int:
        """Returns an arrival number, above all before it."""
        number = self._next
        self._next = number + 1
        return number

    def unit(self) -> int:
        """Returns a number for a unit of work."""
        return self.message()

    def handle(self) -> int:
        """Returns a number for an open object."""
        return self.message()

    def msg_id(self, number: int) -> bytes:
        """Returns 24 bytes: ``AMQ``, twelve bytes of the queue manager's name, the number."""
        return self._prefix + number.to_bytes(8, "big")
