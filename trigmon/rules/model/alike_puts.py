"""The changes of a put of many messages that differ in their ids and content alone.

What follows from such puts is worked out once for all of them: counts, notes, and what a store keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from trigmon.rules.model.changes import AddMessage, AnyChange


class WithAlikePuts(list[AnyChange]):
    """Changes of which the last are puts that are alike, at least one.

    They are messages outside groups, of one queue, unit of work, priority and persistence. None is held, a trigger
    message, or a further segment. Their numbers ascend.
    """

    def __init__(self, before: Iterable[AnyChange], puts: Iterable[AddMessage]) -> None:
        super().__init__(before)
        self._begin = len(self)
        self += puts

    @property
    def before(self) -> list[AnyChange]:
        """The changes before those puts."""
        return self[: self._begin]

    @property
    def puts(self) -> list[AddMessage]:
        """Those puts."""
        return cast("list[AddMessage]", self[self._begin :])
