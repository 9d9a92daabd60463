"""The runs of a keeper: by their ids, by the processes that lead them, and the leases of the helpers among them.

A helper is a program that serves others: it is kept as long as a monitor renews its lease or there are programs, and
no keeper goes on for its sake. Standard library only: the keeper imports it.
"""

from __future__ import annotations

import math
import time

from trigmon.keeper import protocol
from trigmon.keeper.process import ProgramProcess, run_behind
from trigmon.keeper.termination import Run


class Runs:
    """``by_id`` are the runs that have not ended; ``leaders`` those with processes, by process id."""

    def __init__(self) -> None:
        self.by_id: dict[str, Run] = {}
        self.leaders: dict[int, ProgramProcess] = {}
        self._leases: dict[str, float] = {}
        self.removed_at = 0.0
        """When a run was removed last, by the monotonic clock."""

    def add_process(self, run: ProgramProcess) -> None:
        """Adds a run that has a process."""
        self.by_id[run.run_id] = self.leaders[run.pid] = run

    def remove(self, run_id: str) -> None:
        """Removes a run with its lease."""
        self.by_id.pop(run_id, None)
        self._leases.pop(run_id, None)
        self.removed_at = time.monotonic()

    def processes(self) -> list[ProgramProcess]:
        """Returns the runs that are, or are about to be, processes of this keeper."""
        return [run for run in self.by_id.values() if isinstance(run, ProgramProcess)]

    @property
    def has_programs(self) -> bool:
        """Whether there is anything but helpers."""
        return len(self.by_id) > len(self._leases)

    def ended_run_of(self, pid: int) -> str | None:
        """Returns the ended run that a process belongs to, "" when nothing tells; None while it may have a program."""
        run_id = run_behind(pid, self.leaders)
        is_kept = run_id in self.by_id if run_id else self.has_programs
        return None if is_kept else run_id

    # -- leases ---------------------------------------------------------------------------------------------

    def lease(self, order: protocol.Message) -> None:
        """Keeps a helper for so long from now on, or until the next lease."""
        if order["run"] in self.by_id and (lease_s := float(order.get("lease_s", 0))):
            self._leases[order["run"]] = time.monotonic() + lease_s

    def end_helpers(self, now: float, *, at_once: bool) -> None:
        """Ends helpers whose lease is over (``at_once``: all), but none while there are programs."""
        if self.has_programs:
            return
        for run_id, until in self._leases.items():
            if at_once or now >= until:
                self._leases[run_id] = math.inf
                self.by_id[run_id].end(protocol.KEEPER_ENDED, self.by_id[run_id].grace_s)

    def due_times(self) -> list[float]:
        """Returns when time is to be kept for runs and leases, by the monotonic clock."""
        leases = () if self.has_programs else self._leases.values()
        return [run.due_at for run in self.by_id.values() if run.due_at] + [each for each in leases if each < math.inf]
