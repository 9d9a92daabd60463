"""Finds the message that kills jobs: which part of a batch to try next, and which message is bad. Pure.

A message that kills its reader (out of memory, a crash in native code, an exit) raises no error in the batch: the batch
is left to the next job, which dies too. So a batch over which two jobs died is processed in parts, of a sixteenth each.
A job records its part in the reservation before it begins, so the next job knows where it died. The next job takes all
other parts first, then the parts of that part, and so on, until one unit is left: a message or, where groups come
whole, a group.

A single unit is bad when jobs died over it alone as often as BOTHRESH, at least twice, and other messages of its batch
were settled: a job that dies over everything is broken, and must not set aside the whole queue. Where the batch has no
other message, the unit is bad only by BOTHRESH.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trigmon.rules.model.reservation import Death, Ordinals

WHOLE = 2
"""After so many jobs died over the whole batch, the next job processes it in parts."""
WAYS = 16
"""The number of parts of a part over which a job died. A part costs less than a second, a death a job's start."""
_ALONE = 2
"""One death may be a kill from outside. Two such kills over the same single unit are unlikely."""


class Part(NamedTuple):
    """Ordinals to process together. ``is_lone``: a single unit, over which so many jobs died (``deaths``)."""

    first: int
    end: int
    is_lone: bool = False
    deaths: int = 0


def all_deaths(deaths: Sequence[Death], offers: int, count: int) -> list[Death]:
    """Returns the deaths with those over the whole batch, which no job records: each caused a further offer."""
    parts = [death for death in deaths if death[:2] != (0, count)]
    return [(0, count, max(0, offers - sum(times for _, _, times in parts))), *parts]


def next_part(units: Sequence[Ordinals], deaths: Sequence[Death]) -> Part:
    """Returns the part of the remaining units that is least likely to kill.

    ``deaths`` are those of :func:`all_deaths`. The smaller the part with the unit over which a job died, the likelier
    the unit is bad.
    """
    parts = _parts(units, deaths)
    return max(parts, key=lambda part: (part[0], -part[1].deaths, -part[1].first))[1]


def is_bad(part: Part, settled: int, threshold: int) -> bool:
    """Returns whether to set it aside: ``settled`` messages of its batch were settled, ``threshold`` is BOTHRESH."""
    if not part.is_lone or part.deaths < max(_ALONE, threshold):
        return False
    return settled > 0 or threshold > 0


def _parts(units: Sequence[Ordinals], deaths: Sequence[Death]) -> list[tuple[int, Part]]:
    """Returns all parts, each with the size of the smallest part around it over which a job died."""
    found: list[tuple[int, Part]] = []
    at = 0
    while at < len(units):
        around = _around(units[at], deaths)
        end = at + 1
        while end < len(units) and units[end][0] == units[end - 1][1] and _around(units[end], deaths) == around:
            end += 1
        first, behind, times = around
        size = behind - first
        if end == at + 1 and (units[at] == (first, behind)):
            found.append((0, Part(*units[at], is_lone=True, deaths=times)))
        else:
            found += [(size, part) for part in _shares(units[at:end], math.ceil(size / WAYS))]
        at = end
    return found


def _shares(units: Sequence[Ordinals], share: int) -> list[Part]:
    """Returns neighbours in parts of so many messages at most, but one unit at least."""
    parts: list[Part] = []
    for first, end in units:
        if parts and end - parts[-1].first <= share:
            parts[-1] = Part(parts[-1].first, end)
        else:
            parts.append(Part(first, end))
    return parts


def _around(unit: Ordinals, deaths: Sequence[Death]) -> Death:
    return min((d for d in deaths if d[0] <= unit[0] and unit[1] <= d[1]), key=lambda d: d[1] - d[0])
