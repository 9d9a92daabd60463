"""The runs that a monitor supervises, and the lock under which they and the keepers are changed."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator

from trigmon.launch.keeper_client import Keeper
from trigmon.monitor.child_process import Child


class ChildTable:
    """The children by run id, shared by the monitor's own thread and the reaper thread.

    ``lock`` also guards the keepers: a child is added in the same step that asks its keeper.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._children: dict[str, Child] = {}
        self._to_find: deque[Child] = deque()
        self._later: list[tuple[float, Child]] = []

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._children

    def get(self, run_id: str) -> Child | None:
        """Returns the child of a run, or None."""
        return self._children.get(run_id)

    def all(self) -> list[Child]:
        """Returns all children, in the order they were added."""
        with self.lock:
            return list(self._children.values())

    def add(self, child: Child) -> None:
        """Adds a child."""
        with self.lock:
            self._children[child.run_id] = child

    def remove(self, run_id: str) -> None:
        """Removes the child of a run, if there is one."""
        with self.lock:
            self._children.pop(run_id, None)

    # -- the children whose process is to be found ----------------------------------------------------------

    def find_later(self, child: Child, after_s: float = 0.0) -> None:
        """Notes that it is to be found out what became of a child, after so many seconds."""
        if after_s:
            self._later.append((time.monotonic() + after_s, child))
        else:
            self._to_find.append(child)

    def to_find(self) -> Iterator[Child]:
        """Yields and removes the children that are to be found now; those added meanwhile too."""
        now = time.monotonic()
        self._to_find.extend(child for at, child in self._later if at <= now)
        self._later = [(at, child) for at, child in self._later if at > now]
        while self._to_find:
            child = self._to_find.popleft()
            if self._children.get(child.run_id) is child:
                yield child

    @property
    def has_to_find(self) -> bool:
        """Whether a child is to be found now."""
        return bool(self._to_find)

    def find_times(self) -> list[float]:
        """Returns when children are to be found later, by time.monotonic()."""
        return [at for at, _ in self._later]

    def of_keeper(self, keeper: Keeper) -> list[Child]:
        """Returns the children that a keeper has."""
        return [child for child in self.all() if child.keeper is keeper]
