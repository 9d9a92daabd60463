"""The executor of turns that are trips to a database: the loop goes on while a piece of work waits for its session.

Work runs on the loop's own thread, in a greenlet that is left at each wait and resumed when the session's socket is
ready. So nothing is handed from thread to thread, and no two threads want the interpreter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from trigmon.server.executor import Work
from trigmon.store.postgres.socket_wait import Wait, WorkGreenlet

T = TypeVar("T")
_NONE = -1
"""No descriptor."""


class InGreenlets:
    """See :class:`trigmon.server.executor.Worker`. ``descriptor`` is that of a session that others may notify.

    ``was_notified`` is called behind each piece of work, and when the descriptor becomes readable while nothing is
    done; where it returns True, ``on_notification`` is called.
    """

    failed: Callable[[BaseException], None]

    def __init__(
        self,
        descriptor: int = _NONE,
        was_notified: Callable[[], bool] = lambda: False,
        on_notification: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._watched = _NONE
        self._was_notified = was_notified
        self._on_notification = on_notification
        self._given: deque[Callable[[], Work | None]] = deque()
        self._waiting: WorkGreenlet | None = None
        self._writes = False
        self._then: Callable[[Any], None]
        self._began = 0.0
        self._is_over = False
        self._watch(descriptor)

    @property
    def busy_s(self) -> float:
        """See :class:`trigmon.server.executor.Worker`."""
        return self._loop.time() - self._began if self._began else 0.0

    def do(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`trigmon.server.executor.Worker`."""
        self.give(lambda: (work, then))

    def give(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`trigmon.server.executor.Worker`."""
        if not self._is_over:
            self._given.append(begin)
            self._go_on()

    def give_next(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`trigmon.server.executor.Worker`."""
        if not self._is_over:
            self._given.appendleft(begin)

    def finish(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`trigmon.server.executor.Worker`."""

        def over(result: T) -> None:
            self.end()
            then(result)

        self.do(work, over)

    def end(self) -> None:
        """See :class:`trigmon.server.executor.Worker`."""
        self._is_over = True
        self._began = 0.0
        self._given.clear()
        self._watch(_NONE)  # work that waits is kept, so that it ends nowhere in the middle of a store

    # -- the work -----------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Begins the next piece of work that was given."""
        if self._began or not self._given:
            return
        self._began = self._loop.time()
        try:
            given = self._given.popleft()()
            if given is not None:
                work, self._then = given
                self._resume(WorkGreenlet(self._whole), work)
        finally:
            self._rest()

    def _rest(self) -> None:
        """Plans the next piece of work behind one that is done: until then the sockets of clients are read."""
        if self._waiting is None:
            self._began = 0.0
            if not self._is_over:
                self._watch(self._descriptor)
            if self._given:
                self._loop.call_soon(self._go_on)

    def _whole(self, work: Callable[[], Any]) -> tuple[Any, bool, Exception | None]:
        """Returns what the work has made, whether its session was notified, and the error that says it is lost."""
        result = work()
        try:
            return result, self._was_notified(), None
        except Exception as error:
            return result, False, error

    def _resume(self, work: WorkGreenlet, *arguments: object) -> None:
        """Lets work go on until it waits, or is done and what follows from it has happened."""
        self._waiting = None
        try:
            came = work.switch(*arguments)
            if not work.dead:
                self._wait(work, came)
                return
        except Exception as error:
            self._fail(error)
            return
        except BaseException:
            self.end()
            raise
        result, is_notified, lost = came
        if self._is_over:
            return
        try:
            self._then(result)
        finally:
            if lost is not None:
                self._fail(lost)
            elif is_notified:
                self._on_notification()

    def _fail(self, error: Exception) -> None:
        if not self._is_over:
            self.end()
            self.failed(error)

    # -- the sockets --------------------------------------------------------------------------------------------

    def _wait(self, work: WorkGreenlet, wait: Wait) -> None:
        self._waiting = work
        if self._is_over:
            return  # it was given up
        self._watch(wait.descriptor)
        if wait.writes:
            self._writes = True
            self._loop.add_writer(wait.descriptor, self._is_ready)

    def _watch(self, descriptor: int) -> None:
        """Watches this descriptor and no other: once it is closed its number may be somebody else's."""
        if self._writes:
            self._writes = False
            self._loop.remove_writer(self._watched)
        if descriptor == self._watched:
            return
        if self._watched != _NONE:
            self._loop.remove_reader(self._watched)
        self._watched = descriptor
        if descriptor != _NONE:
            self._loop.add_reader(descriptor, self._is_ready)

    def _is_ready(self) -> None:
        if self._waiting is not None:
            try:
                self._resume(self._waiting)
            finally:
                self._rest()
        elif not self._given:
            self.do(lambda: None, lambda _: None)
