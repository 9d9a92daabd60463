"""The depth of a queue over the last hours as a drawing, made by the server: lines in a box of 720 by 120."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trigmon.console.web.depth_history import Sample

WIDTH, HEIGHT = 720, 120


class DepthChart(NamedTuple):
    """The outline of the depths, the area below it, and what the ends of the axes are."""

    line: str
    area: str
    most: int
    since_ms: int
    until_ms: int


def depth_chart(samples: Sequence[Sample]) -> DepthChart | None:
    """Returns the drawing; None where there are fewer than two samples. A depth holds until the next sample."""
    if len(samples) < 2:
        return None
    first, last = samples[0].at_ms, samples[-1].at_ms
    most = max(sample.depth for sample in samples)
    span_ms = max(1, last - first)
    points: list[str] = []
    before = None
    for at_ms, depth in samples:
        x, y = (at_ms - first) * WIDTH / span_ms, HEIGHT - depth * HEIGHT / max(1, most)
        if before is not None and before != y:
            points.append(f"{x:.1f},{before:.1f}")
        points.append(f"{x:.1f},{y:.1f}")
        before = y
    line = " ".join(points)
    return DepthChart(line, f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}", most, first, last)
