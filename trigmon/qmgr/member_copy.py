"""The copy of the own store's file, of a member of a queue-sharing group."""

from __future__ import annotations

from collections.abc import Callable

from trigmon.store.port import FileCopy


class MemberCopy:
    """See :class:`trigmon.store.port.FileCopy`. ``decide`` commits in both stores the units of work that ended."""

    def __init__(self, copy: FileCopy, decide: Callable[[], None]) -> None:
        self._copy = copy
        self._decide = decide
        self.read = copy.read
        self.end = copy.end

    @property
    def is_held(self) -> bool:
        """Whether the file is still as it was at :meth:`begin`."""
        return self._copy.is_held

    def begin(self) -> int:
        """Makes the turn so far durable: the end of a unit of work in the group's store first."""
        self._decide()
        return self._copy.begin()
