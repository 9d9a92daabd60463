"""Who does the queue manager's work: the daemon's loop, or a thread of its own where it is trips to a database.

Work is done one piece at a time, in the order in which it was given, so nothing that comes again and again keeps
anything else from its turn; what follows from it happens on the loop. A database that is slow, or gone, then holds up
the calls that need it, and not the sockets, the watchdog and the signals.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

SLOW_S = 3.0
"""Work that has lasted so long waits for a database."""

T = TypeVar("T")
Work = tuple[Callable[[], Any], Callable[[Any], None]]
"""What is to be done, and what follows with its result, on the loop."""


def aside(work: Callable[[], T]) -> asyncio.Future[T]:
    """Runs this in a thread of its own, for which the end of the process does not wait; returns its future."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody is there any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return done


class Worker(Protocol):
    """The executor of turns. After an error no further work is run."""

    failed: Callable[[BaseException], None]
    """Called with that error."""

    @property
    def busy_s(self) -> float:
        """How long the piece of work has lasted that is being done, 0 where none is."""

    def do(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Runs this, and then that with its result on the loop."""

    def give(self, begin: Callable[[], Work | None]) -> None:
        """Runs the work that ``begin`` returns, called on the loop when it is due; None for no work."""

    def give_next(self, begin: Callable[[], Work | None]) -> None:
        """Runs work as :meth:`give`, before all other that waits. Called by what follows from a piece of work."""

    def finish(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Runs the last work, as :meth:`do`: the session whose socket was watched may end with it."""

    def end(self) -> None:
        """Ends the executor; running work is not waited for."""


class OnTheLoop:
    """Work on the loop itself: what is given is done, and what follows has happened, when :meth:`do` returns."""

    failed: Callable[[BaseException], None]
    busy_s = 0.0

    def do(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`Worker`."""
        try:
            result = work()
        except Exception as error:
            self.failed(error)
        else:
            then(result)

    def give(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`Worker`."""
        if (work := begin()) is not None:
            self.do(*work)

    def give_next(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`Worker`."""
        self.give(begin)

    def finish(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`Worker`."""
        self.do(work, then)

    def end(self) -> None:
        """See :class:`Worker`."""


class InAThread:
    """Work in one thread. ``descriptor`` is the one of the thread's database session; -1 for none.

    ``was_notified`` is called in the thread behind each piece of work, and when the descriptor becomes readable while
    the thread is idle; where it returns True, ``on_notification`` is called on the loop.
    """

    failed: Callable[[BaseException], None]

    def __init__(
        self,
        descriptor: int = -1,
        was_notified: Callable[[], bool] = lambda: False,
        on_notification: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._is_watched = False  # the descriptor: once it is closed its number may be somebody else's
        self._was_notified = was_notified
        self._on_notification = on_notification
        self._given: deque[Callable[[], Work | None]] = deque()
        self._next: SimpleQueue[Work | None] = SimpleQueue()
        self._began = 0.0
        self._is_over = False
        threading.Thread(target=self._work, name="turns", daemon=True).start()
        self._watch()

    @property
    def busy_s(self) -> float:
        """See :class:`Worker`."""
        return self._loop.time() - self._began if self._began else 0.0

    def do(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`Worker`."""
        self.give(lambda: (work, then))

    def give(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`Worker`."""
        if self._is_over:
            return
        self._given.append(begin)
        if not self._began:
            self._go_on()

    def give_next(self, begin: Callable[[], Work | None]) -> None:
        """See :class:`Worker`."""
        if not self._is_over:
            self._given.appendleft(begin)

    def finish(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """See :class:`Worker`."""

        def finished() -> T:
            self._was_notified = lambda: False
            return work()

        def over(result: T) -> None:
            self.end()
            then(result)

        self.do(finished, over)

    def end(self) -> None:
        """See :class:`Worker`."""
        self._is_over = True
        self._given.clear()
        self._unwatch()
        self._next.put(None)

    def _go_on(self) -> None:
        while self._given and not self._is_over:
            self._began = self._loop.time()
            try:
                work = self._given.popleft()()
            except BaseException:
                self._began = 0.0
                raise
            if work is not None:
                self._unwatch()
                self._next.put(work)
                return
        self._began = 0.0
        if not self._is_over:
            self._watch()

    def _work(self) -> None:
        while (work := self._next.get()) is not None:
            call, then = work
            follows: Callable[[], None] | None = None
            error, is_notified = None, False
            try:
                follows = partial(then, call())
                is_notified = self._was_notified()
            except Exception as raised:
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nobody is there any more
                self._loop.call_soon_threadsafe(self._done, follows, error, is_notified)

    def _done(self, follows: Callable[[], None] | None, error: Exception | None, is_notified: bool) -> None:
        self._began = 0.0
        if self._is_over:
            return
        if error is not None:
            self._is_over = True
            self._given.clear()
        try:
            if follows is not None:
                follows()
        finally:
            self._followed(error, is_notified=is_notified)

    def _followed(self, error: Exception | None, *, is_notified: bool) -> None:
        if error is not None:
            self.failed(error)
            return
        if is_notified:
            self._on_notification()
        if not self._began:
            self._go_on()

    # -- the descriptor ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._descriptor >= 0 and not self._is_watched:
            self._is_watched = True
            self._loop.add_reader(self._descriptor, self.do, lambda: None, lambda _: None)

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.remove_reader(self._descriptor)
