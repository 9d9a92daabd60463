"""What schedules cost on SQLite: a put beside them, a look at them, and all of their moments at one time."""

from __future__ import annotations

import time
from pathlib import Path

from tests.worlds import World
from trigmon.mq.calls import Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.rules.model.stored_messages import SLICE

NIGHT_MS = 86_400_000


class Scheduling:
    """A queue manager with ``count`` schedules, all of which have a moment at the same time each night."""

    def __init__(self, directory: Path, count: int) -> None:
        directory.mkdir()
        self.count = count
        self.world = World("sqlite", directory)
        self.world.define("P", "PROCESS", appl_id="/bin/true")
        self.world.define("I", max_q_depth=999_999_999)
        common = {"initiation_q_name": "I", "process_name": "P", "max_q_depth": 999_999_999}
        self.world.define("QUIET", **common)
        self.world.define("FIRING", trigger_control="on", trigger_type="every", **common)
        for number in range(count):
            self.world.define(f"S{number}", "SCHEDULE", cron="0 2 * * *", timezone="Europe/Berlin", q_name="QUIET")
        self.world.open("I", OpenOption.INPUT_SHARED, as_="monitor")
        self.session = self.world.session("app")
        self.handles = {name: self.world.open(name, OpenOption.OUTPUT) for name in ("QUIET", "FIRING")}

    def end(self) -> None:
        self.world.qm.stop()

    def puts(self, count: int) -> tuple[float, float]:
        """Microseconds of a put in a turn of its own, with a look at the schedules a hundred puts."""
        call = self._put("QUIET")
        began = time.perf_counter()
        for number in range(count):
            self.world.qm.turn([(self.session, 1, call)])
            if number % 100 == 0:
                self.world.qm.housekeeping.reach_moments()
        return (time.perf_counter() - began) / count * 1e6, 0.0

    def looks(self, count: int) -> tuple[float, float]:
        """Microseconds of a look at schedules none of which is due, as the daemon does once a second."""
        began = time.perf_counter()
        for _ in range(count):
            self.world.qm.housekeeping.reach_moments()
        return (time.perf_counter() - began) / count * 1e6, 0.0

    def moments(self) -> tuple[float, float]:
        """Milliseconds of a night's moments, all at one time, each with its trigger message."""
        self.world.clock.advance(NIGHT_MS)
        began = time.perf_counter()
        self.world.qm.housekeeping.reach_moments()
        return (time.perf_counter() - began) * 1e3, 0.0

    def firing_puts(self, count: int) -> tuple[float, float]:
        """Milliseconds of persistent puts that fire, as many in a turn as moments are judged in one."""
        calls = [(self.session, number, self._put("FIRING")) for number in range(1, count + 1)]
        began = time.perf_counter()
        for start in range(0, count, SLICE):
            self.world.qm.turn(calls[start : start + SLICE])
        return (time.perf_counter() - began) * 1e3, 0.0

    def _put(self, q_name: str) -> Put:
        return Put(handle=self.handles[q_name], descriptor=MessageDescriptor(persistence=1), data=b"m" * 1024)
