"""Requests to the keepers: the start of a run, and of a process that supervises what a killed one left elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trigmon.keeper import protocol
from trigmon.launch import unix
from trigmon.launch.keeper_client import Keeper, KeeperGone, Keepers
from trigmon.launch.launch_plan import LaunchPlan, Order
from trigmon.log import Seldom, logger
from trigmon.monitor.child_process import Child, Limits
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.spark_servers.session_admission import SessionAdmission, Waiting

log = logger()
_LOG_AGAIN_S = 60.0


class LaunchRequests:
    """Asks the keepers for starts. Its methods are called from the monitor's own thread and the reaper thread."""

    def __init__(
        self,
        keepers: Keepers,
        children: ChildTable,
        starter: Starter,
        admission: SessionAdmission,
        limits: Limits,
        runs_directory: Path,
    ) -> None:
        self.runs_directory = runs_directory
        self.seldom = Seldom(log, interval_s=_LOG_AGAIN_S)
        self._keepers = keepers
        self._children = children
        self._starter = starter
        self._admission = admission
        self._limits = limits

    def start(self, order: Order, plan: LaunchPlan) -> Child | None:
        """Asks the keeper for a start. Returns None when the run waits for its session, or is held again.

        It is held again when no keeper can be had now.
        """
        directory = self.runs_directory / order.run_id
        with self._children.lock:
            try:
                admitted = plan if plan.session is None else self._admission.admit(Waiting(order, plan))
                if admitted is None:
                    return None
                child = Child(order=order, directory=directory, base=directory, plan=admitted)
                self._children.add(child)
                self.start_process(child, admitted, self.time_limit_s(child))
            except OSError as error:
                self.seldom.warning("no program can be started", error=str(error))
                self.hold_again(order, str(error))
                return None
        return child

    def start_process(self, child: Child, plan: LaunchPlan, time_limit_s: float) -> None:
        """Asks the keeper for a process of a run. Raises OSError when no keeper can be had now."""
        with self._children.lock:
            child.keeper = self._keepers.own()
            with suppress(KeeperGone):  # the reaper sees that too, and finds what became of the run
                child.keeper.start(
                    child.run_id,
                    plan,
                    unix.environment(plan),
                    child.directory,
                    time_limit_s=time_limit_s,
                    grace_s=self._limits.grace_s,
                )

    def hold_again(self, order: Order, why: str) -> None:
        """Holds a run again that never became a process, so that it is started in its turn."""
        self._children.remove(order.run_id)
        self._admission.ended(order.run_id)
        self._starter.put_back(order, why)

    def time_limit_s(self, child: Child) -> float:
        """Returns how long a run may take, in seconds (0: no limit)."""
        return child.order.process.time_limit_s or self._limits.time_limit_s

    def expect(self, plan: LaunchPlan) -> None:
        """Announces runs with such a plan. Raises KeeperGone, OSError when no keeper can be started."""
        if plan.interpreter and not plan.user and self._keepers.launcher == protocol.PROCESS:
            self.ask_keeper(lambda keeper: keeper.warm_interpreter(plan, unix.environment(plan)))

    # -- the keepers ----------------------------------------------------------------------------------------

    def keepers(self) -> tuple[Keeper, ...]:
        """Returns the keepers that this monitor is connected to."""
        with self._children.lock:
            return tuple(self._keepers.all())

    def ask_keeper(self, request: Callable[[Keeper], None]) -> None:
        """Calls ``request`` with this monitor's keeper. Raises KeeperGone, OSError when no keeper can be started."""
        with self._children.lock:
            request(self._keepers.own())

    def running_keeper(self, name: str) -> Keeper | None:
        """Returns the keeper of a name where it runs, else None."""
        try:
            with self._children.lock:
                return self._keepers.there(name)
        except OSError as error:
            log.error("a keeper cannot be asked", keeper=name, error=str(error))
            return None

    def lose_keeper(self, keeper: Keeper) -> list[Child]:
        """Removes a keeper that has ended, and returns the children that it had."""
        with self._children.lock:
            self._keepers.lose(keeper)
            return self._children.of_keeper(keeper)
