"""What to work on next where jobs died over a batch and told no error: which part, and which message is bad. Pure.

A message that kills its reader (out of memory, a crash in native code, an exit) fails no batch: it leaves it to the
next job, which it kills too. So a batch that two jobs died over is worked off in parts, of a sixteenth each. What a job
works on stands in the reservation before it begins, and so the next one knows where it died. It takes everything else
first, then the parts of that part, and so on, until one unit stands alone: a message or, where groups come whole, a
group.

A lone unit is bad when jobs died over it alone as often as BOTHRESH says, at least twice, and other messages of its
batch were settled: who dies over everything is a broken job, and must not set aside the whole queue. Where there was no
other, only BOTHRESH says that it is bad.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trigmon.rules.model.reservation import Death, Ordinals

WHOLE = 2
"""So many jobs that died had all of the batch at work; the next works it off in parts."""
WAYS = 16
"""Into so many parts one falls that a job died over. A part costs a part of a second, a death the start of a job."""
_ALONE = 2
"""One death may be an outside kill. So may two, but not likely of two jobs over the same one, which comes last."""


class Part(NamedTuple):
    """Ordinals to be worked on at once. ``is_lone``: one unit, over which alone so many jobs died (``deaths``)."""

    first: int
    end: int
    is_lone: bool = False
    deaths: int = 0


def all_deaths(deaths: Sequence[Death], offers: int, count: int) -> list[Death]:
    """With those that had all of the batch at work, which nobody wrote down: it was offered anew behind each."""
    parts = [death for death in deaths if death[:2] != (0, count)]
    return [(0, count, max(0, offers - sum(times for _, _, times in parts))), *parts]


def next_part(units: Sequence[Ordinals], deaths: Sequence[Death]) -> Part:
    """What to work on of these units, which are left: what is least likely to kill.

    ``deaths`` are those of :func:`all_deaths`. A unit is the likelier to be bad the smaller the stretch that somebody
    died over with it in.
    """
    parts = _parts(units, deaths)
    return max(parts, key=lambda part: (part[0], -part[1].deaths, -part[1].first))[1]


def is_bad(part: Part, settled: int, threshold: int) -> bool:
    """Whether it is to be set aside: ``settled`` messages of its batch were settled, ``threshold`` is BOTHRESH."""
    if not part.is_lone or part.deaths < max(_ALONE, threshold):
        return False
    return settled > 0 or threshold > 0


def _parts(units: Sequence[Ordinals], deaths: Sequence[Death]) -> list[tuple[int, Part]]:
    """All parts, each with the size of the smallest stretch around it that somebody died over."""
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
    """Neighbours in parts of so many messages at most, but one unit at least."""
    parts: list[Part] = []
    for first, end in units:
        if parts and end - parts[-1].first <= share:
            parts[-1] = Part(parts[-1].first, end)
        else:
            parts.append(Part(first, end))
    return parts


def _around(unit: Ordinals, deaths: Sequence[Death]) -> Death:
    return min((d for d in deaths if d[0] <= unit[0] and unit[1] <= d[1]), key=lambda d: d[1] - d[0])
