"""The recorded outcomes of units of work in the memory store: the last two of each client."""

from __future__ import annotations

from collections.abc import Container, Sequence

from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model.handles import Decided
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.undo_notes import UndoNotes


class UnitOutcomes:
    """The outcomes by client and number of the unit, and when each client's last one was recorded in ms since 1970."""

    def __init__(self, notes: UndoNotes) -> None:
        self._notes = notes
        self._outcomes: dict[str, dict[int, UnitOutcome]] = {}
        self._recorded_ms: dict[str, int] = {}

    def __len__(self) -> int:
        """Returns the number of clients."""
        return len(self._outcomes)

    def of_client(self, client_id: str) -> dict[int, UnitOutcome]:
        """Returns a client's recorded outcomes by number."""
        return self._outcomes.get(client_id, {})

    def begin(self, change: c.BeginUnit) -> None:
        """Records that the unit before this one has no known outcome, unless it has one."""
        recorded = self.of_client(change.client_id)
        self._set(change.client_id, {change.number - 1: UnitOutcome.UNKNOWN, **recorded}, change.now)

    def record(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        """Records the outcome of a unit, and forgets those before the one that preceded it."""
        kept = {each: ended for each, ended in self.of_client(client_id).items() if each >= number - 1}
        self._set(client_id, {**kept, number: outcome}, now)

    def commit(self, decided: Sequence[Decided], now: int) -> None:
        """Records at a start the units that the group's store has committed."""
        for each in decided:
            self._outcomes.setdefault(each.client_id, {})[each.number] = UnitOutcome.COMMITTED
            self._recorded_ms[each.client_id] = now

    def forget(self, before_ms: int, connected: Container[str]) -> None:
        """Forgets one slice of the clients that are not connected and whose last outcome is older."""
        old = [c for c, at_ms in self._recorded_ms.items() if at_ms < before_ms and c not in connected]
        for client_id in old[:SLICE]:
            del self._outcomes[client_id], self._recorded_ms[client_id]

    def _set(self, client_id: str, outcomes: dict[int, UnitOutcome], now: int) -> None:
        self._notes.set(self._outcomes, client_id, outcomes)
        self._notes.set(self._recorded_ms, client_id, now)
