"""The daemon's event loop: asyncio's, which also calls back at the end of a pass.

A pass is what the loop does between two looks at the sockets. asyncio itself begins what is called soon only after the
next look: a turn would cost two system calls that wait for sockets instead of one.
"""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Callable


class _Selector(selectors.DefaultSelector):
    """Reports one more descriptor behind those that are ready, so that its reader is called last in the pass."""

    last: int = -1
    is_pass: bool = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns what is ready, and the last descriptor if anything is."""
        ready = super().select(timeout)
        if ready:
            self.is_pass = True
            ready.append((self.get_key(self.last), selectors.EVENT_READ))
        return ready


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on the selector of this platform."""

    def __init__(self) -> None:
        self._ordered = _Selector()
        super().__init__(self._ordered)
        self._ordered.last = os.eventfd(0)  # never readable: it only stands for the end of the pass
        self.add_reader(self._ordered.last, self._end_pass)
        self._at_end: list[Callable[[], object]] = []

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
