"""The outcomes of units of work, by which a client that lost its connection learns how its unit ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.mq.enums import UnitOutcome
from trigmon.store.sql import statements as sql


class Outcomes:
    """The recorded outcomes. ``execute`` runs a statement, ``rows`` returns the rows of one."""

    def __init__(self, execute: Callable[..., object], rows: Callable[..., list[Any]]) -> None:
        self._execute = execute
        self._rows = rows

    def add(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        """Records how a client's unit of work ended, and forgets the outcomes before the one before it."""
        self._execute(sql.RECORD_OUTCOME, (client_id, number, int(outcome), now))
        self._execute(sql.FORGET_OUTCOMES, (client_id, number - 1))

    def of(self, client_id: str) -> dict[int, UnitOutcome]:
        """Returns the outcomes of a client's last units of work, by number."""
        return {number: UnitOutcome(outcome) for number, outcome in self._rows(sql.OUTCOMES, (client_id,))}

    def write_all(self) -> None:
        """Writes the rows of those that have none yet; here all have."""
