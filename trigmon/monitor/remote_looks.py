"""Looks at queues elsewhere for the reaper, which itself waits for no network: a thread and a connection a bridge.

A look that takes too long is answered as if the queue could not be seen. What a program has in flight counts as left: a
look behind its end waits, for some time, until its handles are closed there.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from trigmon.bridge.connection import BridgeError, RemoteConnection, RemoteError, environment
from trigmon.bridge.queue_look import QueueLook
from trigmon.keeper import run_directory
from trigmon.log import Seldom, logger
from trigmon.monitor.child_process import Child
from trigmon.mq.enums import ApplType
from trigmon.mq.run import RunFields
from trigmon.mq.run_parts import QueueThere
from trigmon.setting_sections import BridgeSettings

log = logger()
_LONGEST_S: Final = 5.0
_SAY_AGAIN_S: Final = 60.0
# So often it is looked again whether a program's handles are closed, and so long before the end of a look for the last.
_AGAIN_S, _LAST_S = 0.1, 1.0


class Bridges(msgspec.Struct, frozen=True, kw_only=True):
    """The bridges of a monitor by name, and the directory of ``monitor.secrets_directory``."""

    by_name: Mapping[str, BridgeSettings] = {}
    secrets: str | None = None

    def connection(self, name: str) -> RemoteConnection:
        """Returns a new connection of this bridge, which is not made yet."""
        return RemoteConnection(name, self.by_name[name], self.secrets, application="trigmon monitor")

    def variables(self) -> dict[str, dict[str, str]]:
        """Returns the variables of programs whose queue is elsewhere, by bridge."""
        return {name: environment(settings) for name, settings in self.by_name.items()}


NO_BRIDGES: Final = Bridges()


class Look(msgspec.Struct, frozen=True, eq=False):
    """What is looked for: the queue behind the end of a program (``end``), or whether it has been opened (None)."""

    child: Child
    end: RunFields | None
    until: float

    @property
    def is_own(self) -> Callable[[int], bool] | None:
        """What tells whether a process is one of the run's program; None where processes do not tell.

        What reads a queue for Spark may be another process than the run's: a server, an executor.
        """
        child = self.child
        if not child.pid or child.trigger.appl_type == ApplType.SPARK:
            return None
        return lambda pid: is_process_of(child, pid, if_gone=self.end is not None)


def is_process_of(child: Child, pid: int, *, if_gone: bool = False) -> bool:
    """Returns whether this process is of a run's program: in its session, or by the run that its environment names.

    ``if_gone`` is the answer for a process that has ended: behind the end of a program it may have been the program's,
    and what it had in flight has not come back while its handle is open.
    """
    try:
        return pid == child.pid or os.getsid(pid) == child.pid or run_directory.run_of(pid) == child.run_id
    except OSError:
        return if_gone


class RemoteLooks:
    """The looks of one monitor. ``wake`` is called when one is answered; :meth:`answers` is the reaper's."""

    def __init__(self, bridges: Bridges, wake: Callable[[], None]) -> None:
        self._bridges = bridges
        self._wake = wake
        self._wanted: dict[str, queue.SimpleQueue[Look | None]] = {}
        self._pending: dict[int, Look] = {}
        self._answered: deque[tuple[Look, QueueThere | None]] = deque()
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)

    def ask(self, child: Child, end: RunFields | None) -> None:
        """Asks for a look at the queue of a child. It is answered in any case."""
        wanted = Look(child, end, time.monotonic() + _LONGEST_S)
        self._pending[id(wanted)] = wanted
        name = child.order.bridge
        if name not in self._bridges.by_name:  # it was taken out of the settings
            self._answer(wanted, None)
            return
        if name not in self._wanted:
            self._wanted[name] = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(name,), name=f"looks over {name}", daemon=True).start()
        self._wanted[name].put(wanted)

    def answers(self, *, at_once: bool = False) -> Iterator[tuple[Look, QueueThere | None]]:
        """Yields what was answered, and what took too long; ``at_once``: nothing is waited for any more."""
        while self._answered:
            wanted, seen = self._answered.popleft()
            if self._pending.pop(id(wanted), None) is not None:
                yield wanted, seen
        now = time.monotonic()
        for wanted in list(self._pending.values()):
            if at_once or wanted.until <= now:
                del self._pending[id(wanted)]
                yield wanted, None

    def due_at(self) -> list[float]:
        """Returns when looks have taken too long, by time.monotonic()."""
        return [wanted.until for wanted in self._pending.values()]

    def stop(self) -> None:
        """Ends the threads; one that waits for a network ends with its process."""
        for wanted in self._wanted.values():
            wanted.put(None)

    def _answer(self, wanted: Look, seen: QueueThere | None) -> None:
        self._answered.append((wanted, seen))
        self._wake()

    def _run(self, name: str) -> None:
        connection = self._bridges.connection(name)
        looks = QueueLook(connection)
        while (wanted := self._wanted[name].get()) is not None:
            seen = None
            try:
                if wanted.until > time.monotonic():
                    seen = looks.look(wanted.child.order.trigger.q_name, wanted.is_own)
            except (RemoteError, BridgeError) as error:
                self._seldom.warning("a queue elsewhere cannot be seen", bridge=name, error=str(error))
            except Exception:
                log.exception("a look at a queue elsewhere failed", bridge=name)
            if seen is not None and _is_reading(wanted, seen):
                time.sleep(_AGAIN_S)
                self._wanted[name].put(wanted)
            else:
                self._answer(wanted, seen)
        connection.drop()


def _is_reading(wanted: Look, seen: QueueThere) -> bool:
    """Returns whether a program that has ended has its queue open yet, and it can be waited for."""
    is_left = wanted.end is not None and seen.own_readers > 0
    return is_left and time.monotonic() < wanted.until - _LAST_S
