"""What becomes of a batch that failed: tried again, cut, released, or messages of it set aside.

Who is to blame says :mod:`trigmon.spark.poison_search.blame`, what to try next
:mod:`trigmon.spark.poison_search.bisect`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import NamedTuple

from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.client.reservation import Reservation
from trigmon.mq.calls import Display, Reject
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing, Settled
from trigmon.rules.model.reservation import Ordinals, cut
from trigmon.spark.poison_search import blame, failure_text
from trigmon.spark.poison_search.bisect import Search, Step
from trigmon.spark.poison_search.parts import Unit, keyed_units, units_of
from trigmon.spark.progress import Line


class Rejected(NamedTuple):
    """A message that was set aside: onto the backout queue, or the dead-letter queue where there is none."""

    msg_id: bytes
    why: str


class FailedBatches:
    """The failures of a drain. ``rejected`` are the messages that were set aside on the way."""

    def __init__(
        self,
        connection: Connection,
        queue: Queue,
        consumer: str,
        search: Search,
        line: Line,
        *,
        whole_groups: bool,
        secret: str,
    ) -> None:
        self.rejected: list[Rejected] = []
        self._connection = connection
        self._queue = queue
        self._consumer = consumer
        self._search = search
        self._line = line
        self._whole_groups = whole_groups
        self._secret = secret
        self._of_sink = 0

    def succeeded(self, count: int) -> None:
        """Takes note of a batch of so many messages that succeeded."""
        self._of_sink = 0
        self._search.succeeded(count)

    def handle(self, number: int, left: list[Ordinals], error: BaseException) -> bool:
        """Handles the failure of what is left of a batch or a part; returns False where the error must be raised."""
        found = blame.unreadable(error, self._secret)
        named = found.reasons if found is not None and found.reservation == number else {}
        if bad := {at: why for at, why in named.items() if cut(left, at, at + 1)}:
            self.log(number, len(bad), f"set aside, unreadable: {next(iter(bad.values()))}")
            self.reject(number, bad)
            return True
        if blame.is_of_sink(error):
            return self._sink_failed(number, left, error)
        return self._search_on(number, left, error)

    def choose(self, made: Reservation) -> None:
        """Releases all of a batch but the unit that the search wants to try."""
        if self._search.is_choosing:
            units = keyed_units(self._connection, made.number, made.left_ordinals, self._whole_groups)
            self._keep_chosen(made.number, units)
            made.left = sum(end - first for first, end in self._left(made.number))

    def reject(self, number: int, reasons: Mapping[int, str]) -> None:
        """Sets messages aside, each with its reason, in one exchange."""
        ids: dict[int, bytes] = {}
        for first, end in _stretches(reasons):
            ids |= {at: m.msg_id for at, m in self._connection.read_reserved(number, first, end - first)}
        calls = [Reject(reservation=number, ordinal=at, why=reasons[at][:1000]) for at in ids]
        for call, reply in zip(calls, self._connection.pipeline(calls), strict=True):
            assert isinstance(reply, Settled)
            self.rejected.append(Rejected(ids[call.ordinal], call.why))

    def threshold(self) -> int:
        """Returns BOTHRESH of the queue."""
        listed = self._connection.ask(Display(object_type="QLOCAL", name=self._queue.q_name), Listing)
        return int(listed.rows[0]["backout_threshold"])

    def log(self, number: int, count: int, what: str) -> None:
        """Writes a line about a batch to the job's standard error."""
        self._line.clear()
        text = f"trigmon: batch {number} of {self._queue.q_name}, {count} messages: {what}"
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - a job's stderr is its log

    def _sink_failed(self, number: int, left: list[Ordinals], error: BaseException) -> bool:
        """Tries once more, then gives all back to the queue: no message is to blame, and none gets a backout count."""
        self._of_sink += 1
        is_last = self._of_sink >= self._search.attempts
        what = "given back: the sink failed" if is_last else "once more: the sink failed"
        self.log(number, _size(left), f"{what}: {failure_text.why(error)}")
        if is_last:
            self._search.gave_back()
            self._release(number, left)
        return not is_last

    def _search_on(self, number: int, left: list[Ordinals], error: BaseException) -> bool:
        if self._search.is_choosing:  # of a stream, whose batches are reserved elsewhere
            units = keyed_units(self._connection, number, left, self._whole_groups)
            if len(units) > 1 and self._keep_chosen(number, units):
                return True
        plain = units_of(self._connection, number, left, self._whole_groups)
        is_lone = len(plain) == 1
        (lone,) = keyed_units(self._connection, number, left, self._whole_groups) if is_lone else (None,)
        threshold = self.threshold() if is_lone else 0
        is_over = lone is not None and 0 < threshold <= lone.backouts
        key = None if lone is None else lone.key
        step = self._search.failed(len(plain), key, is_over_threshold=is_over)
        why = failure_text.why(error)
        self.log(number, _size(left), f"{step.name}: {why}")
        if step is Step.REJECT:
            self.reject(number, dict.fromkeys(range(*plain[0]), why))
        elif step is Step.KEEP_FIRST:
            self._release(number, cut(left, plain[len(plain) // 2][0], left[-1][1]))
        elif step is Step.PUT_BACK:
            self._release(number, left)
        elif step is Step.GIVE_UP:
            first = self._search.first_suspect if self._search.is_all_suspect else None
            self._release(number, left, counts=key == first)
            if first not in (None, key):
                self._count_backout(first)
        return step is not Step.GIVE_UP

    def _keep_chosen(self, number: int, units: list[Unit]) -> bool:
        """Releases all units but the chosen one; returns False where the search wants them all."""
        at = self._search.choose([unit.key for unit in units])
        if at is None:
            return False
        kept = units[at].ordinals
        self._release(number, [unit.ordinals for unit in units if unit.ordinals != kept])
        return True

    def _count_backout(self, key: Hashable) -> None:
        """Adds a backout to the message that failed alone first, as by the backout of a program.

        It comes first still, unless another program has got it.
        """
        with suppress(MQError):
            made = self._queue.reserve(self._consumer, max_messages=1, whole_groups=self._whole_groups)
            units = keyed_units(self._connection, made.number, made.left_ordinals, self._whole_groups)
            made.release(counts=[unit.key for unit in units] == [key])

    def _release(self, number: int, left: list[Ordinals], *, counts: bool = False) -> None:
        for first, end in _joined(left):
            self._connection.release(number, first, end - first, counts=counts)

    def _left(self, number: int) -> list[Ordinals]:
        rows = self._connection.reservations(self._queue.q_name)
        return next((row["left_ordinals"] for row in rows if row["reservation"] == number), [])


def _size(left: list[Ordinals]) -> int:
    return sum(end - first for first, end in left)


def _joined(left: list[Ordinals]) -> list[Ordinals]:
    """Returns neighbours as one stretch."""
    joined: list[Ordinals] = []
    for first, end in left:
        if joined and joined[-1][1] == first:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((first, end))
    return joined


def _stretches(ordinals: Mapping[int, str]) -> list[Ordinals]:
    return _joined([(at, at + 1) for at in sorted(ordinals)])
