"""The base class of all stores: the facts in memory, and the facts for commands that are read from rows."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from trigmon.mq.enums import UnitOutcome
from trigmon.mq.run import NO_RUN, WENT_WRONG, Run
from trigmon.rules.display import outcome_of
from trigmon.rules.model.change import VOLATILE, Change, Durability
from trigmon.rules.model.facts import Facts, LedgerWants, RunFacts, RunWants, Wants, WideFacts, WorldFacts, WorldWants
from trigmon.rules.model.handles import Decided
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import EndedRun, Line, Serving
from trigmon.rules.model.schedule_facts import ScheduleFacts, ScheduleWants, about_schedule
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.model.state import Standing
from trigmon.rules.runs.idle_run import took_none
from trigmon.store.port import FileCopy, NotEntered

# Numbers are handed out from blocks, so that none is used again after a crash and no put pays for a counter.
ID_BLOCK = 1_000_000
MOST_CAUSES = 64
LOOKED_AT = 16
"""Of so many queues at most the last run is looked for, among so many of each."""
KEPT_RESERVATIONS = 8
"""So many ended reservations of a consumer are remembered, so that a repeated settlement gets the same answer."""


class BaseStore(ABC):
    """The part that all stores share: reads facts from memory, and keeps them in step with changes."""

    is_in_group = False
    copy: FileCopy | None = None
    _ended_runs: Callable[[int, int, int], Sequence[EndedRun]]
    """Returns the first runs that ended from one time to before another, the oldest end first: since, until, limit."""

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
        wide = self.standing.wider(facts, wants)
        if wants.client_id:
            wide = replace(wide, outcome=int(self._outcome(wants.client_id, wants.unit)))
        if wants.reservation and wide.reservation is None:
            wide = replace(wide, reservation=self._ended(wants.reservation))
        if isinstance(wants, ScheduleWants) and isinstance(wide, ScheduleFacts):
            return about_schedule(self.standing, wide, wants)
        if isinstance(wants, RunWants) and isinstance(wide, RunFacts):
            return self._about_run(wide, wants)
        if isinstance(wants, LedgerWants):
            return self._about_ledger(wide, wants)
        if isinstance(wants, WorldWants) and wants.of_failures and isinstance(wide, WorldFacts):
            return replace(wide, last_runs=dict(self._last_runs()), idle_runs=dict(self._idle_runs()))
        return wide

    def local_queue(self, q_name: str) -> QueueFacts | None:
        """See :class:`trigmon.store.port.Store`."""
        return self.standing.queues.get(q_name)

    def _last_runs(self) -> Iterator[tuple[str, tuple[Run, ...]]]:
        """Yields queues whose last runs failed, or removed nothing, each with those runs, the newest first.

        Of a row longer than LOOKED_AT its newest runs.
        """
        causes = [each for each in self.standing.causes.values() if each.failed or each.fruitless]
        for cause in causes[:MOST_CAUSES]:
            ended = (run for run in self._runs({"q_name": cause.q_name}, "", LOOKED_AT) if run.is_ended)
            meant = (run for run in ended if run.slot == cause.slot and (run.ending in WENT_WRONG or not cause.failed))
            if row := tuple(islice(meant, cause.failed or cause.fruitless)):
                yield cause.q_name, row

    def _idle_runs(self) -> Iterator[tuple[str, Run]]:
        """Yields queues with messages that nobody reads, each with its last run, where that took no message.

        Of a shared queue a member does not know what the others took.
        """
        waiting = (q for q in self.standing.queues.values() if q.depth and not q.readers and q.shared is None)
        triggered = (queue.definition for queue in waiting if queue.definition.process_name)
        for definition in islice(triggered, MOST_CAUSES):
            if (run := took_none(self._runs({"q_name": definition.name}, "", LOOKED_AT))) is not None:
                yield definition.name, run

    def _about_ledger(self, facts: WideFacts, wants: LedgerWants) -> WideFacts:
        if wants.line_of is not None:
            return replace(facts, lines=tuple(self._lines(wants.line_of, wants.limit)), serves=self._serves())
        if wants.history is not None:
            ended, more_from_ms = self._history(*wants.history, wants.limit)
            return replace(facts, ended=ended, more_from_ms=more_from_ms)
        if wants.limit:
            where = wants.where or {}
            if wants.of_queue:
                where = {"q_name": facts.queue.definition.name if facts.queue is not None else ""}
            runs = tuple(self._runs(where, wants.before, wants.limit))
            causes, unread = tuple(self.standing.causes.values()), self.standing.unread(runs)
            lying = self._lying(runs)
            return replace(facts, runs=runs, serves=self._serves(), causes=causes, unread=unread, lying=lying)
        return replace(facts, outdated=tuple(self._outdated(wants.keep_count, wants.ended_before_ms)))

    def _lying(self, runs: Iterable[Run]) -> dict[str, int]:
        """Returns how many messages are on the queues of runs with programs, with those that are reserved."""
        queues = (self.standing.queues.get(name) for name in {run.trigger.q_name for run in runs if run.has_program})
        return {queue.definition.name: queue.depth + queue.reserved for queue in queues if queue is not None}

    def _history(self, since_ms: int, until_ms: int, limit: int) -> tuple[tuple[EndedRun, ...], int]:
        """Returns about ``limit`` runs in the order of their ends, and when the next ended; 0 for none.

        Of one millisecond all are returned or none, so that a reader goes on by a time.
        """
        ended = self._ended_runs(since_ms, until_ms, limit + 1)
        if len(ended) <= limit:
            return tuple(ended), 0
        next_ms = ended[-1].ended_ms
        if ended[0].ended_ms == next_ms:
            return tuple(self._ended_runs(next_ms, next_ms + 1, sys.maxsize)), next_ms + 1
        return tuple(run for run in ended if run.ended_ms < next_ms), next_ms

    def _about_run(self, facts: RunFacts, wants: RunWants) -> RunFacts:
        run = self._run(wants.run_id)
        facts = self.standing.about_run(facts, run, wants)
        line = (run or wants.run_of or NO_RUN).line
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
    def _run(self, run_id: str) -> Run | None:
        """Returns a recorded run; None if there is none of this id."""

    @abstractmethod
    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        """Returns the ids of the first, or last, held runs of a line (initiation queue, slot, queue), as recorded."""

    @abstractmethod
    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        """Returns runs whose record has every value of ``where``, newest first, behind the run ``before`` if named."""

    @abstractmethod
    def _ended(self, reservation: int) -> Reservation | None:
        """Returns an ended reservation, as long as it is remembered."""

    @abstractmethod
    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        """Returns the first slice of the runs that ended before this time or are too many; the oldest end first."""


def durability_of(changes: Iterable[Change]) -> Durability:
    """Returns how long the most durable of these must last."""
    longest = VOLATILE
    for change in changes:
        durability = change.durability
        if durability > longest:
            longest = durability
    return longest
