"""The CPU time of stages: what a thread spends is charged to the innermost probed function that runs.

A probe is two looks at the thread's own CPU clock. What the probes cost themselves is measured once and taken off.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

REST = "the rest"
_MANY = 20_000


class Probes:
    """Probes in the functions of stages, for one thread."""

    def __init__(self, stages: Sequence[str]) -> None:
        self.stages = (REST, *stages)
        self._spent = [0] * len(self.stages)
        self._calls = [0] * len(self.stages)
        self._inner = [0] * len(self.stages)
        self._now, self._mark = 0, time.thread_time_ns()
        self._cost_inside, self._cost_outside = 0.0, 0.0
        self._calibrate()

    def probed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with a probe around it."""
        number, clock = self.stages.index(stage), time.thread_time_ns

        def with_probe(*arguments: Any, **named: Any) -> Any:
            at = clock()
            outer = self._now
            self._spent[outer] += at - self._mark
            self._inner[outer] += 1
            self._calls[number] += 1
            self._now, self._mark = number, at
            try:
                return function(*arguments, **named)
            finally:
                at = clock()
                self._spent[number] += at - self._mark
                self._now, self._mark = outer, at

        return with_probe

    def _calibrate(self) -> None:
        """Measures what an empty function costs more with a probe, inside and outside of it."""

        def empty() -> None: ...

        probed = self.probed(self.stages[-1], empty)
        began = time.thread_time_ns()
        for _ in range(_MANY):
            empty()
        plain = time.thread_time_ns() - began
        began = self._mark = time.thread_time_ns()
        for _ in range(_MANY):
            probed()
        whole = time.thread_time_ns() - began
        inside = self._spent[-1]
        self._cost_inside = inside / _MANY
        self._cost_outside = max(0.0, (whole - inside - plain) / _MANY)
        for each in (self._spent, self._calls, self._inner):
            each[:] = [0] * len(self.stages)
        self._mark = time.thread_time_ns()

    def taken(self) -> dict[str, Any]:
        """Returns what was spent so far by stage in nanoseconds without the probes' own cost, and how often."""
        at = time.thread_time_ns()
        self._spent[self._now] += at - self._mark
        self._mark = at
        cost = [
            calls * self._cost_inside + inner * self._cost_outside
            for calls, inner in zip(self._calls, self._inner, strict=True)
        ]
        return {
            "spent": dict(zip(self.stages, map(float.__sub__, map(float, self._spent), cost), strict=True)),
            "calls": dict(zip(self.stages, self._calls, strict=True)),
            "probes": sum(cost),
        }


def put_in(probes: Probes, stages: Mapping[str, Sequence[str]]) -> None:
    """Puts probes into functions, named as ``module:Class.method``. Raises AttributeError where there is none."""
    for stage, places in stages.items():
        for place in places:
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            owner: Any = importlib.import_module(module)
            for each in owners:
                owner = getattr(owner, each)
            setattr(owner, name, probes.probed(stage, getattr(owner, name)))
