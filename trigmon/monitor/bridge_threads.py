"""The threads of a monitor that serve initiation queues elsewhere, one for each."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trigmon.bridge.intake import RemoteIntake
from trigmon.client.connection import Connection
from trigmon.client.link import Link
from trigmon.log import logger
from trigmon.monitor.bridge_watcher import BridgeWatcher
from trigmon.monitor.programs import Programs
from trigmon.monitor.remote_looks import Bridges
from trigmon.mq.calls import BridgeState

log = logger()
# How much longer than a get waits a stop waits for a thread: its end is then that of its process.
_STOP_S = 5.0


class BridgeThreads:
    """Serves every initiation queue of every bridge, from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        bridges: Bridges,
        connect: Callable[[], Connection],
        programs: Programs,
        initiation_q: str,
        monitor: str,
    ) -> None:
        self._bridges = bridges
        self._connect = connect
        self._programs = programs
        self._initiation_q = initiation_q
        self._monitor = monitor
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._watchers: list[BridgeWatcher] = []
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Starts the threads, the first time that it is called."""
        if self._threads:
            return
        for name, settings in self._bridges.by_name.items():
            for initiation_q in settings.initiation_queues:
                watcher = BridgeWatcher(
                    name,
                    RemoteIntake(self._bridges.connection(name), initiation_q),
                    Link(self._connect),
                    self._programs,
                    initiation_q=self._initiation_q,
                    monitor=self._monitor,
                )
                thread = threading.Thread(target=self._run, args=(watcher,), name=f"bridge {name}", daemon=True)
                self._watchers.append(watcher)
                self._threads.append(thread)
                thread.start()

    def states(self) -> list[BridgeState]:
        """Returns how the initiation queues are, for the queue manager's status."""
        return [watcher.state for watcher in self._watchers]

    def check(self) -> None:
        """Raises RuntimeError if a thread has failed: its trigger messages would wait unseen."""
        if self._failure is not None:
            raise RuntimeError("a bridge of the monitor has ended") from self._failure

    def stop(self) -> None:
        """Ends the threads, each behind the get that it waits in."""
        self._over.set()
        longest_s = max((settings.wait_s for settings in self._bridges.by_name.values()), default=0.0)
        for thread in self._threads:
            thread.join(longest_s + _STOP_S)
            if thread.is_alive():
                log.warning("a bridge does not end, and is left", thread=thread.name)

    def _run(self, watcher: BridgeWatcher) -> None:
        try:
            watcher.serve(self._over)
        except BaseException as error:
            self._failure = error
            log.exception("a bridge ended")
