"""The changes of a put of many messages that differ in their ids and content alone.

What follows from such puts is worked out once for all of them: counts, notes, and what a store keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from trigmon.rules.model.changes import AddMessage, AnyChange


class WithAlikePuts(list[AnyChange]):
    """Changes of which the last are puts that are alike, at least one; ``begin`` is the place of the first of them.

    They are messages outside groups, of one queue, unit of work, priority and persistence. None is held, a trigger
    message, or a further segment. Their numbers ascend.
    """

    def __init__(self, before: Iterable[AnyChange], puts: Iterable[AddMessage]) -> None:
        super().__init__(before)
        self.begin = len(self)
        self += puts


_NONE: list[AddMessage] = []


def alike_puts(changes: Sequence[AnyChange]) -> list[AddMessage]:
    """Returns the puts at the end of these changes that are known to be alike; there may be none."""
    return cast("list[AddMessage]", changes[changes.begin :]) if type(changes) is WithAlikePuts else _NONE
