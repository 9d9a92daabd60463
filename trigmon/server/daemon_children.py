"""The daemon's children: monitor, metrics exporter, watches and copies. One that dies is started again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any, NamedTuple

from trigmon.keeper.parent_death import end_with_parent
from trigmon.settings import Settings

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
GOOD_RUN_S = 60.0
"""A child that lived this long is started again without delay when it dies."""

PATIENCE_S = 10.0
"""How long an ending child may take, in seconds, beside the grace of programs that a monitor ends."""


class Child(NamedTuple):
    """A command of trigmon that runs beside the queue manager, and what the log says of its life."""

    words: tuple[str, ...]
    started: str
    not_started: str
    ended: str
    killed: str


MONITOR = Child(
    ("monitor",),
    "monitor started",
    "the monitor cannot be started",
    "the monitor ended",
    "the monitor does not end and is killed",
)
EXPORTER = Child(
    ("metrics", "--serve"),
    "metrics exporter started",
    "the metrics exporter cannot be started",
    "the metrics exporter ended",
    "the metrics exporter does not end and is killed",
)

WATCHES = Child(
    ("watch", "serve"),
    "the process of the watches started",
    "the process of the watches cannot be started",
    "the process of the watches ended",
    "the process of the watches does not end and is killed",
)

COPIES = Child(
    ("bridge", "copy", "--configured"),
    "the process of the copies started",
    "the process of the copies cannot be started",
    "the process of the copies ended",
    "the process of the copies does not end and is killed",
)


class ChildProcess:
    """Keeps one child running beside the queue manager."""

    def __init__(self, child: Child, settings: Settings, log: Any, grace_s: float = 0.0) -> None:
        self._argv = [sys.executable, "-m", "trigmon", "--qmgr", settings.qmgr.name, *child.words]
        self._child = child
        self._settings = settings
        self._patience_s = PATIENCE_S + grace_s
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._started = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._again: asyncio.TimerHandle | None = None
        self._gone: asyncio.Future[None] | None = None
        self.is_wanted = False

    def start(self) -> None:
        """Starts it now, and again whenever it ends, until :meth:`stop`."""
        self.is_wanted = True
        self._again = None
        self._started = self._loop.time()
        environment = os.environ | self._settings.as_environment()
        try:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=environment,
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            self._log.error(self._child.not_started, why=str(error))
            self._start_later()
            return
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        self._log.info(self._child.started, pid=self._process.pid)

    async def stop(self) -> None:
        """Ends it: asked first, and killed when it does not listen."""
        if self._again is not None:
            self._again.cancel()
        if self._process is None:
            return
        self._gone = self._loop.create_future()
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(self._gone), self._patience_s)
        except TimeoutError:
            self._log.warning(self._child.killed, pid=self._process.pid)
            self._process.kill()
            await self._gone

    def _ended(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        status = process.wait()
        if self._gone is not None:
            self._gone.set_result(None)
            return
        lived_s = self._loop.time() - self._started
        self._log.warning(self._child.ended, exit_status=status, after_s=round(lived_s, 1))
        if lived_s >= GOOD_RUN_S:
            self._pause_s = FIRST_PAUSE_S
        self._start_later()

    def _start_later(self) -> None:
        self._again = self._loop.call_later(self._pause_s, self.start)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


class Children(NamedTuple):
    """The children of a daemon, None for one that is not wanted. The watches are started when one is defined."""

    monitor: ChildProcess | None = None
    exporter: ChildProcess | None = None
    watches: ChildProcess | None = None
    copies: ChildProcess | None = None

    def serve_watches(self, are_defined: bool) -> None:
        """Starts the process of the watches where there are any. It stays until the daemon ends."""
        if are_defined and self.watches is not None and not self.watches.is_wanted:
            self.watches.start()


def children_of(settings: Settings, log: Any, *, with_monitor: bool) -> Children:
    """Returns the children that the settings ask for; none of them is started."""
    monitor = exporter = watches = copies = None
    if with_monitor:
        grace_s = settings.monitor.grace_s if settings.monitor.stop_runs else 0.0
        monitor = ChildProcess(MONITOR, settings, log, grace_s)
    if settings.metrics.listen or settings.metrics.textfile:
        exporter = ChildProcess(EXPORTER, settings, log)
    if settings.server.watches:
        watches = ChildProcess(WATCHES, settings, log)
    if any(each.copy_queues for each in settings.bridges.values()):
        copies = ChildProcess(COPIES, settings, log)
    return Children(monitor, exporter, watches, copies)
