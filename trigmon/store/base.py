"""The base class of all stores: the facts in memory, and the facts for commands that are read from rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import DefinitionType, UnitOutcome
from trigmon.rules.display import outcome_of
from trigmon.rules.model import changes as c
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.facts import NOTHING_MOVED, Decided, Facts, Line, Moved, Serving, Wants
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_record import line_of
from trigmon.rules.model.state import Standing
from trigmon.store.port import NotEntered

# Numbers are handed out from blocks, so that none is used again after a crash and no put pays for a counter.
ID_BLOCK = 1_000_000
KEPT_RESERVATIONS = 8
"""So many ended reservations of a consumer are remembered, so that a repeated settlement gets the same answer."""


class BaseStore(ABC):
    """The part that all stores share: reads facts from memory, and keeps them in step with changes."""

    def __init__(self) -> None:
        self.standing = Standing("")
        # Units of work in flight that the group's store has committed: the next open commits them here as well.
        self.decided: Sequence[Decided] = ()

    def enter(self) -> None:
        """See the port. Without a group it is never called."""
        raise NotEntered

    def changed(self) -> Moved:
        """See the port. Without a group only own calls change objects."""
        return NOTHING_MOVED

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """See the port. Without a group, this queue manager always holds the role."""
        return True

    def facts(self, wants: Wants, is_wide: bool) -> Facts:
        """See :class:`trigmon.store.port.Store`."""
        facts = self.standing.facts(wants)
        if not is_wide:
            return facts
        facts = self.standing.wider(facts, wants)
        if wants.client_id:
            facts = replace(facts, outcome=int(self._outcome(wants.client_id, wants.unit)))
        if wants.run_id:
            facts = self._about_run(facts, wants)
        if wants.reservation and facts.reservation is None:
            facts = replace(facts, reservation=self._ended(wants.reservation))
        if wants.line_of is not None:
            facts = replace(facts, lines=tuple(self._lines(wants.line_of, wants.limit)), serves=self._serves())
        elif wants.limit:
            runs = tuple(self._runs(wants.where or {}, wants.before, wants.limit))
            causes, unread = tuple(self.standing.causes.values()), self.standing.unread(runs)
            facts = replace(facts, runs=runs, serves=self._serves(), causes=causes, unread=unread)
        if wants.keep_count >= 0:
            facts = replace(facts, outdated=tuple(self._outdated(wants.keep_count, wants.ended_before_ms)))
        return facts

    def _about_run(self, facts: Facts, wants: Wants) -> Facts:
        run = self._run(wants.run_id)
        facts = self.standing.about_run(facts, run, wants)
        line = line_of(run or wants.run_of or {})
        count = self.standing.held.get(line, 0)
        if not count or wants.run_of is None:
            return replace(facts, held=count) if count else facts
        return replace(facts, held=count, waiting=self._run(self._held(line, 1, from_last=True)[0]))

    def _serves(self) -> tuple[Serving, ...]:
        return tuple(self.standing.running.values())

    def _lines(self, initiation_q: str, limit: int) -> Iterator[Line]:
        """Yields the lines of an initiation queue, each with its first runs."""
        for key in [key for key in self.standing.held if key[0] == initiation_q]:
            yield self.standing.line(*key, self._held(key, limit))

    def _outcome(self, client_id: str, unit: int) -> UnitOutcome:
        recorded = self._recorded(client_id)
        for connection in self.standing.connections.values():
            if connection.client_id != client_id or unit in recorded:
                continue
            if unit > connection.unit_number or (unit == connection.unit_number and connection.unit_id):
                return UnitOutcome.OPEN  # its end may still come: the client is connected
        return outcome_of(recorded, unit)

    @abstractmethod
    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        """Returns the recorded outcomes of a client's last units of work, by number."""

    @abstractmethod
    def _run(self, run_id: str) -> dict[str, object] | None:
        """A run's record."""

    @abstractmethod
    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        """The ids of the first held runs of a line (initiation queue, slot, queue), or of the last, as recorded."""

    @abstractmethod
    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[dict[str, object]]:
        """Runs whose record holds every value of ``where``, newest first, from behind the run ``before`` if named."""

    @abstractmethod
    def _ended(self, reservation: int) -> Reservation | None:
        """Returns an ended reservation, as long as it is remembered."""

    @abstractmethod
    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        """The first slice of the runs that ended before this or are, by their end, too many; the oldest first."""


def can_wait(change: AnyChange) -> bool:
    """Whether a crash of the process undoes this change by itself: then it need not be written before it is answered.

    A unit's puts are backed out, volatile messages go, and so do temporary queues; that a unit is committed which the
    group's store has decided is told again at the next start. A get's mark may not wait: it raises the backout count.
    Nor do the rows of a reservation wait, which are many: one slice a commit, without a sync. Nor does the outcome of a
    unit in which nothing was done: it is on record before it is answered.
    """
    if isinstance(change, c.AddMessage):
        return bool(change.unit_id) or not change.is_persistent
    if isinstance(change, c.TakeMessage | c.CarryOver | c.RemoveMessage):
        return not change.message.is_persistent
    if isinstance(change, c.SetReservation):
        return not (change.is_stored and change.must_last)
    if isinstance(change, c.WriteRun):
        return change.can_wait
    if isinstance(change, c.EndUnit):
        return change.is_decided
    return isinstance(change, _STANDS_ONLY) or is_of_temporary_queue(change)


def is_of_temporary_queue(change: AnyChange) -> bool:
    """Whether it makes, changes or deletes a temporary dynamic queue, which no restart brings back."""
    if isinstance(change, c.SetDefinition):
        definition = change.definition
        return isinstance(definition, LocalQueue) and definition.definition_type is _TEMPORARY
    return isinstance(change, c.DropDefinition | c.DeleteLogically) and change.is_temporary


_STANDS_ONLY = (
    *(c.BeginUnit, c.NoteRefused, c.OpenHandle, c.CloseHandle, c.SaveContext),
    *(c.MoveCursor, c.SetPlace, c.LockMessage, c.UnlockMessage),
    *(c.StampTrigger, c.NoteTriggered, c.NoteJudged, c.Connect, c.DropConnection),
    # What a program has done is written with what it did: its commits are.
    c.Serve,
)
_ALWAYS = (c.SetAside, c.SetDefinition, c.DropDefinition, c.DeleteLogically, c.SetPause, c.DropPause)
_TEMPORARY = DefinitionType.TEMPORARY_DYNAMIC


def must_last(changes: Sequence[AnyChange]) -> bool:
    """Whether any of these must survive a power cut once answered. A unit of work in flight need not."""
    for change in changes:
        if isinstance(change, c.AddMessage):
            if change.is_persistent and not change.unit_id:
                return True
        elif isinstance(change, c.RemoveMessage):
            if change.message.is_persistent:
                return True
        elif isinstance(change, c.EndUnit):
            if change.unit.is_durable and not change.is_decided:
                return True
        elif isinstance(change, c.WriteRun | c.SetReservation):
            if not can_wait(change):
                return True
        elif isinstance(change, _ALWAYS) and not is_of_temporary_queue(change):
            return True
    return False
