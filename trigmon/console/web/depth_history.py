"""The depths of queues over the last 24 hours: a sample a minute, in memory, from the start of this process."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

EVERY_S = 60.0
MOST_SAMPLES = 24 * 60
MOST_QUEUES = 1000
_NOT_THERE = -1


class Sample(NamedTuple):
    """The depth of a queue at a moment, in milliseconds since 1970."""

    at_ms: int
    depth: int


class DepthHistory:
    """Depths by queue: 8 bytes a sample, so 12 MB for as many queues as are kept."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=MOST_SAMPLES)
        self._depths: dict[str, array[int]] = {}

    def add(self, at_ms: int, depths: Mapping[str, int]) -> None:
        """Adds a sample of every queue; what is no longer there is forgotten."""
        before = len(self._times)
        self._times.append(at_ms)
        kept: dict[str, array[int]] = {}
        for name in sorted(depths)[:MOST_QUEUES]:
            line = self._depths.get(name) or array("q", [_NOT_THERE]) * before
            line.append(depths[name])
            kept[name] = line[-MOST_SAMPLES:] if len(line) > MOST_SAMPLES else line
        self._depths = kept

    def of(self, name: str) -> list[Sample]:
        """Returns the samples of a queue, the oldest first."""
        line = self._depths.get(name, array("q"))
        return [Sample(at_ms, depth) for at_ms, depth in zip(self._times, line, strict=False) if depth != _NOT_THERE]
