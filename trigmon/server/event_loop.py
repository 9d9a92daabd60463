"""The daemon's event loop: asyncio's, which also calls back at the end of a pass, and polls before it sleeps.

A pass is what the loop does between two looks at the sockets. asyncio itself begins what is called soon only after the
next look: a turn would cost two system calls that wait for sockets instead of one.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import time
from collections.abc import Callable

Ready = list[tuple[selectors.SelectorKey, int]]
MOST_IN_VAIN = 10
"""Behind so many busy polls in vain, 1023 waits go by without one."""


class _Selector(selectors.DefaultSelector):
    """Reports one more descriptor behind those that are ready, so that its reader is called last in the pass.

    ``busy_poll_s``: where one descriptor alone was ready twice, it polls for so long before it sleeps. A client that is
    alone sends its next call at once, and to wake a process from sleep takes as long as the call. Where others need the
    processor that call comes late: a poll in vain doubles the waits without one, one that finds something halves them.
    """

    last: int = -1
    is_pass: bool = False
    busy_poll_s: float = 0.0
    _alone: int = -1
    _is_alone: bool = False
    _in_vain: int = 0
    _skipped: int = 0

    def select(self, timeout: float | None = None) -> Ready:
        """Returns what is ready, and the last descriptor if anything is."""
        ready: Ready = []
        if self._is_alone and self._is_poll_due(timeout):
            ready = self._poll()
            timeout = None if timeout is None else timeout - self.busy_poll_s
        ready = ready or super().select(timeout)
        alone = ready[0][0].fd if len(ready) == 1 else -1
        self._is_alone = alone == self._alone >= 0
        self._alone = alone
        if ready:
            self.is_pass = True
            ready.append((self.get_key(self.last), selectors.EVENT_READ))
        return ready

    def _is_poll_due(self, timeout: float | None) -> bool:
        if not self.busy_poll_s or (timeout is not None and timeout < self.busy_poll_s):
            return False
        self._skipped -= 1
        return self._skipped < 0

    def _poll(self) -> Ready:
        """Returns what becomes ready while it polls."""
        end = time.monotonic() + self.busy_poll_s
        while not (ready := super().select(0)) and time.monotonic() < end:
            pass
        self._in_vain = max(0, self._in_vain - 1) if ready else min(self._in_vain + 1, MOST_IN_VAIN)
        self._skipped = (1 << self._in_vain) - 1
        return ready


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on the selector of this platform."""

    def __init__(self) -> None:
        self._ordered = _Selector()
        super().__init__(self._ordered)
        self._ordered.last = os.eventfd(0)  # never readable: it only stands for the end of the pass
        self.add_reader(self._ordered.last, self._end_pass)
        self._at_end: list[Callable[[], object]] = []

    def poll_busily(self, seconds: float) -> None:
        """Polls for up to so long where one descriptor alone was ready twice, before the process sleeps; 0: never."""
        self._ordered.busy_poll_s = seconds

    def call_at_end_of_pass(self, callback: Callable[[], object]) -> None:
        """Calls back when the sockets that are ready have been read; soon, where none was."""
        if self._ordered.is_pass:
            self._at_end.append(callback)
        else:
            self.call_soon(callback)

    def _end_pass(self) -> None:
        self._ordered.is_pass = False
        due, self._at_end = self._at_end, []
        for callback in due[1:]:
            self.call_soon(callback)
        if due:
            due[0]()

    def close(self) -> None:
        """Closes the loop and its descriptor."""
        if not self.is_closed():
            self.remove_reader(self._ordered.last)
            os.close(self._ordered.last)
        super().close()
