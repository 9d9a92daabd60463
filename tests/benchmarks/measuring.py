"""How figures are taken and shown: subjects in turns within one run, the median of each, ratios beside it.

A machine's noise moves everybody's figure of the same minute, so what is compared is measured in turns, and only ratios
are worth remembering.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Figures:
    """What was measured of one subject, a value a round, in ``unit``."""

    unit: str
    values: list[float] = field(default_factory=list)
    notes: list[float] = field(default_factory=list)
    """A second figure of each round, such as the server's CPU per message in microseconds."""

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def spread(self) -> str:
        """From the lowest to the highest."""
        low, high = min(self.values), max(self.values)
        return " to ".join(f"{value:,.0f}" if value >= 1000 else f"{value:,.4g}" for value in (low, high))


def in_turns(rounds: int, subjects: Mapping[str, Callable[[], tuple[float, float]]], unit: str) -> dict[str, Figures]:
    """Runs every subject ``rounds`` times, each round once; a subject returns its figure and its note."""
    figures = {name: Figures(unit) for name in subjects}
    for _ in range(rounds):
        for name, measure in subjects.items():
            value, note = measure()
            figures[name].values.append(value)
            figures[name].notes.append(note)
    return figures


def bars(figures: Mapping[str, Figures], width: int = 60) -> str:
    """The figures as a plot: a bar to the median, and the lowest and the highest value as ends of a line over it."""
    most = max(max(it.values) for it in figures.values())
    lines = []
    for name, it in figures.items():
        low, middle, high = (round(width * value / most) for value in (min(it.values), it.median, max(it.values)))
        drawn = ["#" if at < middle else "-" if at < high else " " for at in range(width)]
        for end in (low, high):
            drawn[max(0, end - 1)] = "|"
        lines.append(f"  {name:<34}{''.join(drawn)} {it.median:,.2f} {it.unit}")
    return "\n".join(lines)


def told(title: str, figures: Mapping[str, Figures], *, against: str, note: str = "") -> str:
    """The figures as a table; the ratio is to the subject named ``against``."""
    lines = [title]
    basis = figures[against].median if against in figures else None
    for name, it in figures.items():
        ratio = f"{it.median / basis:>8.{2 if it.median >= basis / 10 else 3}f} x" if basis else " " * 10
        beside = f"   {note} {statistics.median(it.notes):,.1f}" if note and any(it.notes) else ""
        lines.append(
            f"  {name:<34}{it.median:>12,.{1 if it.median >= 10 else 3}f} {it.unit:<10}{ratio}   ({it.spread}){beside}"
        )
    return "\n".join(lines)
