"""Ends programs: on a stop, when they were cancelled, and over a limit. SIGTERM first, SIGKILL after the grace."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from trigmon.client.link import LinkDown
from trigmon.keeper import protocol
from trigmon.launch.keeper_client import KeeperGone
from trigmon.log import logger
from trigmon.monitor.child_process import Child, Limits
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.remote_looks import RemoteLooks
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.spark_servers.session_admission import SessionAdmission

log = logger()


class RunTermination:
    """Decides which programs are to end, and ends them.

    ``cancelled`` are the runs that the ledger wants ended. ``starts_nothing`` is set on a stop of the monitor,
    ``ends_all`` where that also ends all programs.
    """

    def __init__(
        self,
        children: ChildTable,
        ledger: LedgerWriter,
        starter: Starter,
        admission: SessionAdmission,
        limits: Limits,
        looks: RemoteLooks,
    ) -> None:
        self.cancelled: frozenset[str] = frozenset()
        self.starts_nothing = False
        self.ends_all = False
        self._children = children
        self._ledger = ledger
        self._starter = starter
        self._admission = admission
        self._limits = limits
        self._looks = looks

    def is_wanted(self, run_id: str) -> bool:
        """Returns whether a run was cancelled, or is to end with its monitor."""
        return self.ends_all or run_id in self.cancelled

    def end_programs(self) -> None:
        """Ends every program on a stop, else those that were cancelled or are over a limit."""
        now = time.monotonic()
        dropped = self._admission.drop_all() if self.starts_nothing else self._admission.drop(self.cancelled)
        for waiting in dropped:
            self._starter.put_back(waiting.order, "it was not started before its monitor ended")
        for child in self._children.all():
            if (why := self._why_ended(child, now)) is not None:
                self._end(child, why, now)

    def _why_ended(self, child: Child, now: float) -> str | None:
        """Returns the protocol's word for why a program is to end, None where it goes on."""
        if self.ends_all:
            return protocol.STOPPED
        if child.run_id in self.cancelled:
            return protocol.CANCELLED
        if self._admission.server_loss(child.run_id):
            return protocol.SERVER_LOST
        if child.ends_by and child.ends_by <= now:
            return protocol.TIME_LIMIT
        if child.kill_at or (0 < child.opens_by <= now and not self._has_opened(child)):
            return protocol.NOT_OPENED
        return None

    def _has_opened(self, child: Child) -> bool:
        """Returns whether a run has opened its queue, asked once when the time is over.

        While the queue manager is away no program can open a queue, so the time begins again.
        """
        if child.order.bridge:
            return self._has_opened_there(child)
        try:
            has_opened = self._ledger.has_opened(child.run_id)
        except LinkDown:
            child.opens_by = time.monotonic() + child.order.process.open_wait_s
            return True
        child.opens_by = 0.0
        return has_opened

    def _has_opened_there(self, child: Child) -> bool:
        """Returns whether a queue elsewhere may have been opened; the first time that is looked for, and not known."""
        if not child.is_unopened_there:
            child.opens_by = 0.0
            self._looks.ask(child, None)
        return not child.is_unopened_there

    def _end(self, child: Child, why: str, now: float) -> None:
        """Sends SIGTERM to its group, SIGKILL after the grace; without a keeper its pidfd shows that it exists."""
        is_first, is_due = not child.kill_at, 0 < child.kill_at <= now
        if (child.keeper is None and child.pidfd < 0) or child.ended_as is not None:
            return  # it is being looked for, or being ended
        child.kill_at = child.kill_at or now + self._limits.grace_s
        if child.keeper is None and (is_first or is_due):
            send_signal(child, signal.SIGTERM if is_first else signal.SIGKILL)
        elif child.keeper is not None and is_first:
            with suppress(KeeperGone):
                child.keeper.stop(child.run_id, why, self._limits.grace_s)


def send_signal(child: Child, number: signal.Signals) -> None:
    """Signals the group of a program without a keeper: its claim names it, and its user may write claims."""
    if child.is_of_another_user:
        log.warning("a run's process is another user's: it is not signalled", run=child.run_id, pid=child.pid)
        return
    with suppress(OSError):
        os.killpg(child.pid, number)
