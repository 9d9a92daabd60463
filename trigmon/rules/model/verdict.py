"""The verdict on a queue: each condition with its evidence, and the occasion that fires (seed 001)."""

from __future__ import annotations

import msgspec

REQUIREMENTS = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "14")


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What one condition found. ``saw`` and ``wanted`` are the values it compared."""

    number: str
    holds: bool
    saw: object
    wanted: object
    applies: bool = True


class Verdict(msgspec.Struct, frozen=True):
    """What was found, and the number of the occasion that fires; empty when none does."""

    occasion: str
    findings: tuple[Finding, ...]

    @property
    def fires(self) -> bool:
        """Whether a trigger message is due."""
        return self.occasion != ""

    @property
    def fails(self) -> list[str]:
        """The requirements that do not hold, in order; 3 only when 11 does not let the put through either."""
        eleven = any(f.number == "11" and f.holds for f in self.findings)
        failing = {f.number for f in self.findings if not f.holds and not (f.number == "3" and eleven)}
        return [number for number in REQUIREMENTS if number in failing]
