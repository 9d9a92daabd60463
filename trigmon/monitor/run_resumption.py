"""Supervises what a killed process left elsewhere, such as a driver in a cluster: another process of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trigmon.keeper import run_directory
from trigmon.launch.launch_plan import Launcher, LaunchError
from trigmon.log import logger
from trigmon.monitor.child_process import Child, now_ms
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.launch_requests import LaunchRequests
from trigmon.monitor.run_termination import RunTermination

log = logger()
# How many more processes a run may have to supervise what a killed one left elsewhere.
_MOST_AGAIN = 3
_LOOK_AGAIN_S = 1.0


class RunResumption:
    """Starts the further processes of runs."""

    def __init__(
        self,
        children: ChildTable,
        requests: LaunchRequests,
        termination: RunTermination,
        launchers: Mapping[int, Launcher],
    ) -> None:
        self._children = children
        self._requests = requests
        self._termination = termination
        self._launchers = launchers

    def resume(self, child: Child, message: Mapping[str, Any], *, ends: bool) -> bool:
        """Starts a process to supervise what a killed one left elsewhere, or to end it; returns whether it did.

        ``message`` is the end of the killed one as its keeper reported it, empty where none did.
        """
        launcher = self._launchers.get(child.trigger.appl_type)
        before = child.directory
        if launcher is None or child.ended_as is not None or len(run_directory.all_of(child.base)) > _MOST_AGAIN:
            return False
        ends = ends or self._termination.is_wanted(child.run_id)
        try:
            plan = launcher.again(child.order, child.base, ends=ends)
            if plan is None:
                return False
            limit_s = 0.0 if ends else self._left_s(child)
            child.directory = run_directory.next_after(before, child.base)
            child.plan, child.pid, child.kill_at, child.ends_by = plan, 0, 0.0, 0.0
            child.ended_as = {name: message[name] for name in ("status", "why") if name in message} if ends else None
            self._requests.start_process(child, plan, limit_s)
        except LaunchError as error:
            log.error("what a run left elsewhere is not supervised", run=child.run_id, error=str(error))
            return False
        except OSError as error:  # no keeper now
            self._requests.seldom.warning("no program can be started", error=str(error))
            child.directory, child.ended_as = before, None
            self._children.find_later(child, _LOOK_AGAIN_S)
            return True
        log.warning("a killed process is replaced to supervise what it left", run=child.run_id, ends=ends)
        return True

    def _left_s(self, child: Child) -> float:
        """Returns the rest of a run's time limit in seconds, at least 1; 0 where it has none."""
        limit_s = self._requests.time_limit_s(child)
        start_ms = (run_directory.read(child.base) or {}).get("start_ms", now_ms())
        return max(1.0, limit_s - (now_ms() - start_ms) / 1000) if limit_s else 0.0

    def try_later(self, child: Child, why: str) -> None:
        """Tries a start again later that failed for lack of disk space or the like."""
        self._requests.seldom.warning("no program can be started now, it is tried again", error=why)
        if child.directory == child.base:
            self._requests.hold_again(child.order, f"not started, tried again when there is room: {why}")
        else:  # its process is to supervise what an earlier one left
            child.directory = run_directory.all_of(child.base)[-1]
            self._children.find_later(child, _LOOK_AGAIN_S)
