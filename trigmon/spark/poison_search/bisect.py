"""Finds the messages that make batches fail: what to try next, and which message is to blame. Pure.

A batch fails as a whole, and the error does not name the bad message. So half of the batch is released to the queue and
the other half is tried, and so on, until one unit is left: a message or, where groups come whole, a group. The released
messages come again with a later batch.

A unit that failed alone is a suspect, no more: the sink may have failed, or the job. So other units are tried alone,
from later and later places of the queue. When one of them succeeds, the suspects are accused: each is tried alone once
more, and one that fails again is set aside. Before a message is blamed, something else has succeeded after it failed.
Where nothing succeeds the sink is broken, or the job, and the drain gives up: a job that went on would set aside the
whole queue, message by message.

Where all that is left on the queue has failed alone, the first of it gets a backout count when the drain gives up, as
by the backout of any program. A suspect whose backout count has reached BOTHRESH is set aside at once.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from enum import Enum, auto

_REACH = 8
"""The factor by which each search for a unit that succeeds is larger. Few steps, since each may fail slowly."""
_MOST_PROBES = 16
"""Units that are tried alone, one after the other, until one succeeds."""
_EVEN_PROBES = 8
"""Those of the probes that are spread evenly; behind them chance decides."""
_FAR = 512
"""The search looks at least so far, however small the batches are."""
_AFTER = 64
"""Messages of the first batch behind a message that was set aside: bad ones often come together."""


class Step(Enum):
    """The next step of the search."""

    AGAIN = auto()
    """The same batch once more."""
    KEEP_FIRST = auto()
    """Release the second half, and try the first."""
    PUT_BACK = auto()
    """Release all of it; of the next batch :meth:`Search.choose` says which unit is tried."""
    REJECT = auto()
    """Set it aside, onto the backout queue."""
    GIVE_UP = auto()
    """Fail: nothing succeeds, so no message is to blame."""


class Search:
    """The search for bad messages over one drain. ``limit`` is the largest size of the next batch.

    A unit's key tells it from others for as long as it lies on the queue: its message id, or its group's.
    """

    def __init__(self, max_rows: int, attempts: int = 2, seed: int = 0) -> None:
        if attempts < 1 or max_rows < 1:
            raise ValueError("attempts and max_rows are 1 or more")
        self.limit = self.max_rows = max_rows
        self.attempts = attempts
        # Each drain looks elsewhere, so that those that are repeated find what succeeds.
        self._random = random.Random(seed)  # noqa: S311 - nothing secret
        self._failures = 0
        self._halves = False
        # In the order in which they failed alone.
        self._suspects: dict[Hashable, None] = {}
        self._accused: dict[Hashable, None] = {}
        self._chosen: Hashable = None
        # Of the search for a unit that succeeds: how far it looks, how much there was, and how many were tried.
        self._reach = self._seen = self._probes = 0

    @property
    def is_all_suspect(self) -> bool:
        """Whether every unit that the search saw failed alone, and it saw all there are."""
        return self._seen < max(2, self._reach) and self._seen <= len(self._suspects)

    @property
    def first_suspect(self) -> Hashable:
        """The key of the unit that failed alone first, and so began a search that found nothing; None for none."""
        return next(iter(self._suspects), None)

    @property
    def is_choosing(self) -> bool:
        """Whether one unit of the next batch is to be tried, and not all of it."""
        return bool(self._accused) or self._reach > 0

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing has failed of late: the next batch is as large as a batch may be."""
        return self.limit == self.max_rows and not self._failures and not self._suspects and not self.is_choosing

    def choose(self, keys: Sequence[Hashable]) -> int | None:
        """Returns the place of the unit to try of a batch with these units, or None to try all of it."""
        at = self._choice(keys)
        self._chosen = None if at is None else keys[at]
        return at

    def _choice(self, keys: Sequence[Hashable]) -> int | None:
        for at, key in enumerate(keys):
            if key in self._accused:
                return at
        self._accused.clear()  # somebody else has got those that are left
        if not self._reach or not keys:
            return None
        self._seen = len(keys)
        others = [at for at, key in enumerate(keys) if key not in self._suspects]
        if not others:
            return 0
        # The last one first: what makes a message bad is often its neighbours' fault too.
        if self._seen >= self._reach:
            return others[-1]
        if self._probes <= _EVEN_PROBES:
            return others[_spread(self._probes, len(others))]
        return self._random.choice(others)

    def succeeded(self, count: int) -> None:
        """Takes note of a batch of so many messages that succeeded: the next may be twice as large."""
        self._failures = self._probes = 0
        self._accused.pop(self._chosen, None)
        if self._suspects:
            self._accused |= self._suspects
            self._suspects.clear()
            self.limit, self._reach = max(self._reach, 1), 0
        if self._accused:
            return
        self.limit = min(self.max_rows, max(2 * count, 1))
        if self.limit == self.max_rows:
            self._halves = False

    def failed(self, units: int, key: Hashable = None, *, is_over_threshold: bool = False) -> Step:
        """Returns the next step after a batch of so many units failed; ``key`` is that of a single one.

        ``is_over_threshold``: a single unit is bad by BOTHRESH.
        """
        if units == 1 and key in self._accused:
            return self._reject(key)
        self._failures += 1
        if self._failures < self.attempts and not self._reach and (units == 1 or not self._halves):
            return Step.AGAIN
        self._failures, self._halves = 0, True
        if units > 1:
            return Step.KEEP_FIRST
        if is_over_threshold:
            return self._reject(key)
        self._suspects[key] = None
        return self._look_further()

    def gave_back(self) -> None:
        """Takes note of a failure that no message is to blame for: what was suspected before is no more."""
        self._suspects.clear()
        self._accused.clear()
        self._failures = self._reach = self._probes = 0

    def _look_further(self) -> Step:
        """Returns the next step of the search for a unit that succeeds."""
        self._probes += 1
        if not self._reach:
            self._reach = _REACH
        elif self._seen >= self._reach and self._reach < max(self.max_rows, _FAR):
            self._reach *= _REACH
        elif self._probes > _MOST_PROBES or self._seen <= len(self._suspects):
            return Step.GIVE_UP
        self.limit = self._reach
        return Step.PUT_BACK

    def _reject(self, key: Hashable) -> Step:
        self._accused.pop(key, None)
        self._suspects.pop(key, None)
        self._failures = self._probes = 0
        if not self._accused:
            self._reach = 0
            self.limit = min(self.max_rows, _AFTER)
        return Step.REJECT


def _spread(number: int, among: int) -> int:
    """Returns the place of the probe of this number: the middle, the quarters, the eighths and so on."""
    at, part = 0.0, 0.5
    while number:
        at += part * (number & 1)
        number, part = number >> 1, part / 2
    return int(at * among)
