"""All watches of a queue manager, in one process: one thread for calls, one for the files of each watch."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from trigmon.client.address import connect
from trigmon.client.connection import Connection
from trigmon.client.link import LinkDown
from trigmon.log import Seldom, logger
from trigmon.mq.calls import WatchState
from trigmon.mq.errors import MQError
from trigmon.watches.inotify import EVERYWHERE, Inotify
from trigmon.watches.record_queue import RecordQueue
from trigmon.watches.watch import Watch

R = TypeVar("R")
TURN_S = 1.0
"""Definitions are read and states reported so often."""
CALL_S = 60.0
STOP_S = 5.0
NO_EVENTS = "no events of files; directories are looked at every few seconds"

log = logger()


def run(address: str | None) -> None:
    """Serves the watches until SIGTERM or SIGINT, and ends the process: a thread may hang in a file system for ever."""
    asyncio.run(_run(address))


async def _run(address: str | None) -> None:
    await WatchService(address).run()
    os._exit(0)


class WatchService:
    """The watches under way, by name."""

    def __init__(self, address: str | None) -> None:
        def connected() -> Connection:
            return connect(address, application="trigmon watch", run_id="", call_timeout_s=CALL_S, reconnect_s=0.0)

        self.records = RecordQueue(connected)
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="calls")
        self._watches: dict[str, Watch] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._inotify: Inotify | None = None
        self._listeners: dict[int, set[str]] = defaultdict(set)
        self._seldom = Seldom(log)
        self._reported: list[WatchState] | None = None

    async def run(self) -> None:
        """Serves until it is asked to stop."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        try:
            self._inotify = Inotify()
            loop.add_reader(self._inotify.fd, self._happened)
        except OSError as error:
            log.warning(NO_EVENTS, why=str(error))
        while not stopped.is_set():
            pause_s = await self._turn()
            try:
                await asyncio.wait_for(stopped.wait(), pause_s)
            except TimeoutError:
                continue
        for task in self._tasks.values():
            task.cancel()
        try:
            await asyncio.wait_for(self.call(self.records.close), STOP_S)
        except TimeoutError:
            return

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """Returns what a call to the queue manager returns: in the thread that has the connection."""
        return await asyncio.get_running_loop().run_in_executor(self._calls, function, *arguments)

    def listen(self, directory: str) -> int | None:
        """Returns the kernel's number of a directory, None where it tells no events of it.

        Called in the threads of files. Raises OSError where there is no such directory.
        """
        if self._inotify is None:
            return None
        try:
            return self._inotify.add(directory)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._seldom.warning(NO_EVENTS, why="fs.inotify.max_user_watches is reached")
            return None

    def wake(self, number: int | None, name: str) -> None:
        """Wakes the watch of this name from now on when something happens in the directory of this number."""
        if number is not None:
            self._listeners[number].add(name)

    # -- a turn -------------------------------------------------------------------------------------------

    async def _turn(self) -> float:
        """Reads definitions, starts and ends watches by them, and reports; returns how long to wait for the next."""
        try:
            defined = {each.name: each for each in await self.call(self.records.definitions)}
            unfinished = await self.call(self.records.watches)
            for name in {*defined, *unfinished, *self._watches}:
                self._serve(name, defined.get(name))
            states = [watch.state for watch in self._watches.values()]
            if states != self._reported:
                await self.call(self.records.report, states)
                self._reported = states
        except LinkDown as down:
            self._reported = None
            self._seldom.warning("queue manager not reachable", error=str(down))
            return max(0.1, self.records.pause_s())
        except MQError as error:
            self._seldom.warning("the watches cannot be served", why=str(error))
        return TURN_S

    def _serve(self, name: str, definition: Any) -> None:
        """Starts a watch, or tells it its definition; forgets one that has ended."""
        task = self._tasks.get(name)
        if task is not None and task.done():
            del self._tasks[name], self._watches[name]
            if (error := task.exception()) is not None:
                log.error("a watch failed and is begun anew", watch=name, exc_info=error)
            return
        if task is not None:
            self._watches[name].change(definition)
            return
        watch = Watch(name, definition, self)
        self._watches[name] = watch
        self._tasks[name] = asyncio.get_running_loop().create_task(watch.run())

    def _happened(self) -> None:
        assert self._inotify is not None
        for number in self._inotify.happened():
            names = self._watches.keys() if number == EVERYWHERE else self._listeners[number]
            for name in names & self._watches.keys():
                self._watches[name].woken.set()
