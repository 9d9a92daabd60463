"""Who does the queue manager's work: the daemon's loop, at once or, where it is trips to a database, beside the rest.

Work is done one piece at a time, in the order in which it was given, so nothing that comes again and again keeps
anything else from its turn. A PostgreSQL that is slow, or gone, holds up the calls that need it, and not the sockets,
the watchdog and the signals: :mod:`trigmon.server.greenlet_executor`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
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
