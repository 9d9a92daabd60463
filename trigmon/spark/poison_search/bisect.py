"""Finds the message that makes batches fail: tries a batch again, halves it, sets aside the last message. Pure.

A batch fails as a whole, and the error does not name the bad message. So half of the batch is released to the queue and
the other half is tried, and so on, until one unit is left: a message or, where groups come whole, a group. The released
messages come again with a later batch. A single unit that fails is bad only if others did not fail: while nothing
succeeds the sink is broken, or the job, and a job that went on would set aside the whole queue, message by message.
"""

from __future__ import annotations

from enum import Enum, auto

_OF_JAVA, _CAUSE = "An error occurred while calling", "Caused by: "
_REACH = 8
"""The factor by which each search for a batch that succeeds is larger. Few steps, since each may fail slowly."""


class Step(Enum):
    """The next step of the search."""

    AGAIN = auto()
    """The same batch once more."""
    KEEP_FIRST = auto()
    """Release the second half, and try the first."""
    KEEP_LAST = auto()
    """Release all but the last unit, and try that: does anything succeed?"""
    PUT_BACK = auto()
    """Release all of it; the next batch is larger and so has other messages too."""
    REJECT = auto()
    """Set it aside, onto the backout queue."""
    GIVE_UP = auto()
    """Fail: nothing succeeds, so no message is to blame."""


class Search:
    """The search for bad messages over one drain. ``limit`` is the largest size of the next batch."""

    def __init__(self, max_rows: int, attempts: int = 2) -> None:
        if attempts < 1 or max_rows < 1:
            raise ValueError("attempts and max_rows are 1 or more")
        self.limit = self.max_rows = max_rows
        self._attempts = attempts
        self._failures = 0
        self._halves = False
        self._succeeded = self._succeeded_before = False
        self._reach = self._reached = 0

    def succeeded(self, count: int) -> None:
        """Takes note of a batch of so many messages that succeeded: the next may be twice as large."""
        self._failures = self._reach = self._reached = 0
        self._succeeded = self._succeeded_before = True
        self.limit = min(self.max_rows, max(2 * count, 1))
        if self.limit == self.max_rows:
            self._halves = False

    def failed(self, units: int, *, is_over_threshold: bool = False) -> Step:
        """Returns the next step after a batch of so many units failed.

        ``is_over_threshold``: a single unit is bad by BOTHRESH.
        """
        if self._reach:
            return self._found_none(units, is_over_threshold)
        if not self._halves:
            if self._failures == 0:
                self._succeeded = False
            self._failures += 1
            if self._failures < self._attempts:
                return Step.AGAIN
            self._halves = True
        elif units == 1:
            self._failures += 1
            if self._failures < self._attempts:
                return Step.AGAIN
        self._failures = 0
        if units > 1:
            return Step.KEEP_FIRST
        if self._succeeded or is_over_threshold:
            return self._reject()
        return self._reach_further(_REACH)

    def _found_none(self, units: int, is_over_threshold: bool) -> Step:
        """Returns the next step while nothing has succeeded, neither the first messages of the queue nor later ones."""
        if units > 1:
            self._reached = units
            return Step.KEEP_LAST
        is_all_alone = self._reached <= 1 and self._succeeded_before
        if is_over_threshold or is_all_alone:
            return self._reject()
        is_all = self._reached < self._reach or self._reach >= self.max_rows
        return Step.GIVE_UP if is_all else self._reach_further(self._reach * _REACH)

    def _reach_further(self, reach: int) -> Step:
        self.limit = self._reach = reach
        self._reached = 0
        return Step.PUT_BACK

    def _reject(self) -> Step:
        self._halves = self._succeeded = self._succeeded_before = False
        self._reach = self._reached = 0
        self.limit = self.max_rows
        return Step.REJECT


def why(error: BaseException, most: int = 1000) -> str:
    """Returns the most telling line of an error: the exception of a Python worker, or the root cause of Java."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    inner = [line for line in lines if _is_exception(line.partition(":")[0]) and ":" in line]
    causes = [line for line in lines if line.startswith(_CAUSE) and ": " in line.removeprefix(_CAUSE)]
    text = inner[-1] if inner and "Traceback" in str(error) else (lines[0] if lines else "")
    if text.startswith(_OF_JAVA) and causes:
        text = causes[-1].removeprefix(_CAUSE)
    return f"{name}: {text}"[:most] if not text.startswith(name) else text[:most]


def _is_exception(word: str) -> bool:
    last = word.rpartition(".")[2]
    return word.replace(".", "").isidentifier() and last.endswith(("Error", "Exception", "Failure"))
