"""APPLTYPE SPARK: chooses the launcher of a job by SPKSTART of its definition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trigmon.launch.launch_plan import STDERR, STDOUT, Launcher, LaunchError, LaunchPlan, Lead, Order
from trigmon.mq.enums import SparkStart
from trigmon.rules.runs.check_spark import is_warm


class SparkLauncher:
    """Plans APPLTYPE SPARK by one of ``ways``. A job that needs a driver of its own is started cold."""

    # SparkSubmit may copy both streams of its Python to stdout: then a driver's traceback is there.
    errors = (STDERR, STDOUT)

    def __init__(self, ways: Mapping[SparkStart, Launcher]) -> None:
        self._ways = dict(ways)

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        start = _start(order)
        if start not in self._ways:
            raise LaunchError(f"SPKSTART({start.name}) is not started by this monitor: say SPKSTART(SUBMIT)")
        return self._ways[start].plan(order)

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. A launcher reads only the output of its own programs."""
        way = self._ways.get(_start(order))
        return way.record_fields(order, directory) if way is not None else {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        way = self._ways.get(_start(order))
        return way.lead(order, directory, pid) if way is not None else None

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        way = self._ways.get(_start(order))
        return way.again(order, directory, ends=ends) if way is not None else None

    def tend(self) -> None:
        """Calls each launcher's own."""
        for way in self._ways.values():
            way.tend()


def _start(order: Order) -> SparkStart:
    """Returns how an order's job is started: warm only where nothing in its definition prevents that."""
    start = SparkStart(order.process.spark_start)
    return SparkStart.SUBMIT if start is SparkStart.CONNECT and not is_warm(order.process) else start
