"""Outcomes of units of work, kept in memory until the database is committed: only a client's last ones count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trigmon.mq.enums import UnitOutcome
from trigmon.store.sql import statements as sql

_Kept = tuple[tuple[int, UnitOutcome, int], ...]


class KeptOutcomes:
    """The outcomes of each client, in order. ``run`` runs a statement, ``note`` notes an undo.

    The journal has the ends of the units, so they are written before the database is committed, or anybody looks.
    """

    def __init__(self, run: Callable[..., None], note: Callable[[Callable[[], object]], None]) -> None:
        self._run = run
        self._note = note
        self._kept: dict[str, _Kept] = {}

    def add(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        """Adds the outcome of a client's unit of work, and forgets those before the one before it."""
        before = self._kept.get(client_id, ())
        self._kept[client_id] = (*(each for each in before if each[0] >= number - 1), (number, outcome, now))
        self._note(partial(self._bring_back, client_id, before))

    def write_all(self) -> None:
        """Writes the rows of all."""
        if not self._kept:
            return
        for client_id, outcomes in self._kept.items():
            for number, outcome, now in outcomes:
                self._run(sql.RECORD_OUTCOME, (client_id, number, int(outcome), now))
                self._run(sql.FORGET_OUTCOMES, (client_id, number - 1))
        self._note(partial(setattr, self, "_kept", self._kept))
        self.forget()

    def forget(self) -> None:
        """Forgets all: what they are of was rolled back."""
        self._kept = {}

    def _bring_back(self, client_id: str, kept: _Kept) -> None:
        self._kept[client_id] = kept
