"""A picture of what was measured with Spark, as SVG: a panel for each comparison, a bar for each way.

A bar ends at the median; the line over it reaches from the lowest value to the highest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from tests.benchmarks.measuring import Figures

_WIDTH, _LABELS, _BARS, _ROW, _TITLE = 860, 240, 420, 26, 44
_INK, _GREY, _OURS, _THEIRS = "#0f172a", "#475569", "#2563eb", "#94a3b8"


class Panel(NamedTuple):
    """A comparison: its title, the figures by their names, the one that ratios are to, and the names that are ours."""

    title: str
    figures: Mapping[str, Figures]
    against: str
    ours: Sequence[str]


def drawn(panels: Sequence[Panel], caption: str) -> str:
    """Returns the picture. ``caption`` says on what machine the figures were measured."""
    height = sum(_TITLE + _ROW * len(panel.figures) for panel in panels) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="14" role="img">',
        f"  <title>{escape(caption)}</title>",
        f'  <rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    top = 0
    for panel in panels:
        parts += _panel(panel, top)
        top += _TITLE + _ROW * len(panel.figures)
    parts.append(f'  <text x="20" y="{top + 26}" font-size="12" fill="{_GREY}">{escape(caption)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: int) -> list[str]:
    most = max(max(it.values) for it in panel.figures.values())
    basis = panel.figures[panel.against].median
    lines = [f'  <text x="20" y="{top + 30}" font-weight="bold" fill="{_INK}">{escape(panel.title)}</text>']
    for row, (name, it) in enumerate(panel.figures.items()):
        y = top + _TITLE + _ROW * row
        low, middle, high = (_LABELS + _BARS * value / most for value in (min(it.values), it.median, max(it.values)))
        fill = _OURS if name in panel.ours else _THEIRS
        lines += [
            f'  <text x="{_LABELS - 10}" y="{y + 13}" text-anchor="end" fill="{_INK}">{escape(name)}</text>',
            f'  <rect x="{_LABELS}" y="{y}" width="{middle - _LABELS:.1f}" height="18" fill="{fill}"/>',
            f'  <path d="M{low:.1f} {y + 9}H{high:.1f}" stroke="{_INK}" stroke-width="1.5"/>',
            f'  <text x="{_LABELS + _BARS + 10}" y="{y + 13}" fill="{_INK}">{_told(it)}'
            f'<tspan fill="{_GREY}"> {escape(_ratio(it, basis, name == panel.against))}</tspan></text>',
        ]
    return lines


def _told(it: Figures) -> str:
    digits = 0 if it.median >= 100 else 2
    return f"{it.median:,.{digits}f} {it.unit}"


def _ratio(it: Figures, basis: float, is_basis: bool) -> str:
    """Returns how a way compares: of times, where it is faster, how many times."""
    if is_basis:
        return ""
    is_faster = it.unit == "s" and basis > it.median
    return f"{basis / it.median:.1f} times faster" if is_faster else f"{it.median / basis:.2f} x"


def table(panels: Sequence[Panel]) -> str:
    """Returns the same figures as a table in Markdown."""
    lines = ["| what | way | median | from, to | ratio |", "|---|---|---|---|---|"]
    for panel in panels:
        basis = panel.figures[panel.against].median
        lines += [
            f"| {panel.title} | {name} | {_told(it)} | {it.spread} | {it.median / basis:.3g} |"
            for name, it in panel.figures.items()
        ]
    return "\n".join(lines)
