"""APPLTYPE SPARK: which way a job is started, as its definition says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trigmon.launch.launch_plan import STDERR, STDOUT, Launcher, LaunchError, LaunchPlan, Lead, Order
from trigmon.mq.enums import SparkStart
from trigmon.rules.runs.check_spark import is_warm


class SparkLauncher:
    """Plans APPLTYPE SPARK by one of ``ways``. A job that wants a process to itself is started cold."""

    # A driver's traceback stands on stdout where SparkSubmit copies both streams of its Python there.
    errors = (STDERR, STDOUT)

    def __init__(self, ways: Mapping[SparkStart, Launcher]) -> None:
        self._ways = dict(ways)

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        start = _start(order)
        if start not in self._ways:
            raise LaunchError(f"SPKSTART({start.name}) is not started by this monitor: say SPKSTART(SUBMIT)")
        return self._ways[start].plan(order)

    def told(self, order: Order, directory: Path) -> dict[str, str]:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. A way reads only what its own programs wrote."""
        way = self._ways.get(_start(order))
        return way.told(order, directory) if way is not None else {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        way = self._ways.get(_start(order))
        return way.lead(order, directory, pid) if way is not None else None

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        way = self._ways.get(_start(order))
        return way.again(order, directory, ends=ends) if way is not None else None

    def tend(self) -> None:
        """Each way sees to its own."""
        for way in self._ways.values():
            way.tend()


def _start(order: Order) -> SparkStart:
    """How an order's job is started: warm only where its definition says nothing against it."""
    said = SparkStart(order.process.spark_start)
    return SparkStart.SUBMIT if said is SparkStart.CONNECT and not is_warm(order.process) else said
