"""Outcomes of units of work, kept in memory until the database is committed: only a client's last ones count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trigmon.mq.enums import UnitOutcome
from trigmon.store.sql.outcomes import Outcomes

_Kept = tuple[tuple[int, UnitOutcome, int], ...]


class KeptOutcomes(Outcomes):
    """The outcomes of each client, in order. ``execute`` and ``rows`` as of the base, ``note`` notes an undo.

    The journal has the ends of the units, so they are written before the database is committed, or anybody looks.
    """

    def __init__(
        self,
        execute: Callable[..., object],
        rows: Callable[..., list[Any]],
        note: Callable[[Callable[[], object]], None],
    ) -> None:
        super().__init__(execute, rows)
        self._note = note
        self._kept: dict[str, _Kept] = {}

    def add(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        """See the base; its rows are written later."""
        before = self._kept.get(client_id, ())
        self._kept[client_id] = (*(each for each in before if each[0] >= number - 1), (number, outcome, now))
        self._note(partial(self._bring_back, client_id, before))

    def of(self, client_id: str) -> dict[int, UnitOutcome]:
        """See the base."""
        self.write_all()
        return super().of(client_id)

    def write_all(self) -> None:
        """Writes the rows of all. The end of a unit has begun the transaction that they belong to."""
        if not self._kept:
            return
        for client_id, outcomes in self._kept.items():
            for each in outcomes:
                super().add(client_id, *each)
        self._note(partial(setattr, self, "_kept", self._kept))
        self.forget()

    def forget(self) -> None:
        """Forgets all: what they are of was rolled back."""
        self._kept = {}

    def _bring_back(self, client_id: str, kept: _Kept) -> None:
        self._kept[client_id] = kept
