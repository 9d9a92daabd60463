"""The fork servers of one keeper: the one of Spark's jobs, and a warm interpreter for each way that programs need one.

A warm interpreter is started for the first run that could use it, which is executed meanwhile, or when a monitor
announces such runs. Runs share one where Python, its options, the modules, the working directory and the environment
are the same, but for the variables that each run has for itself. So an altered definition gets another one. One that
was neither used nor announced for a while ends.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Mapping
from pathlib import Path

from trigmon.keeper import protocol
from trigmon.keeper.fork_server import LINK, ForkEvents, Forks, ServerStart

_KEPT_S = 90.0
_MOST = 16
_ANSWER_S = 2.0
_PROGRAM = str(Path(__file__).with_name("warm_interpreter.py"))


class ForkServers:
    """The fork servers of one keeper; ``events`` receives what becomes of the runs that they are to make."""

    def __init__(self, events: ForkEvents, selector: selectors.BaseSelector) -> None:
        self._events = events
        self._selector = selector
        self._of_spark: Forks | None = None
        self._interpreters: dict[ServerStart, Forks] = {}
        self._kept_until: dict[ServerStart, float] = {}

    def warm(self, argv: list[str], environment: Mapping[str, str]) -> None:
        """Keeps a server of Spark's jobs with these arguments; one with others ends."""
        wanted = ServerStart((*argv, LINK), _sorted(environment))
        if self._of_spark is None or self._of_spark.wanted != wanted:
            self.cool()
            self._of_spark = Forks(wanted, self._events, self._selector)
            self._of_spark.keep_time(time.monotonic())

    def cool(self) -> None:
        """Ends the server of Spark's jobs; what it has made runs on."""
        if self._of_spark is not None:
            self._of_spark.close()
            self._of_spark = None

    def ready(self, order: protocol.Message) -> Forks | None:
        """Returns the server that can fork a run at once; None where none can."""
        found = self._interpreters.get(_start_of(order)) if order.get("interpreter") else self._of_spark
        return found if found is not None and found.is_ready else None

    def keep(self, order: protocol.Message) -> None:
        """Keeps the warm interpreter of such runs for a while; it is started where there is none."""
        wanted, now = _start_of(order), time.monotonic()
        self._kept_until[wanted] = now + _KEPT_S
        if wanted not in self._interpreters:
            if len(self._interpreters) >= _MOST:
                self._end(min(self._interpreters, key=self._kept_until.__getitem__))
            self._interpreters[wanted] = Forks(wanted, self._events, self._selector)
            self._interpreters[wanted].keep_time(now)

    @property
    def pids(self) -> set[int]:
        """Their processes."""
        return {each.pid for each in self._all() if each.pid}

    @property
    def due_at(self) -> float | None:
        """When :meth:`keep_time` is due next, by the monotonic clock; None when it is not."""
        due = [each.due_at for each in self._all() if each.pid == 0 or each.due_at]
        return min([*due, *self._kept_until.values()], default=None)

    def keep_time(self, now: float) -> None:
        """Ends what has not been needed for a while, gives up servers that do not answer, starts those that are due."""
        for wanted in [each for each, until in self._kept_until.items() if now >= until]:
            if self._interpreters[wanted].is_busy:
                self._kept_until[wanted] = now + _KEPT_S
            else:
                self._end(wanted)
        for each in self._all():
            each.keep_time(now)

    def ended(self, pid: int) -> bool:
        """Returns whether this child, which has ended, was a server; it is waited for then."""
        return any(each.ended(pid) for each in self._all())

    def close(self) -> None:
        """Ends all of them; what they have made runs on."""
        self.cool()
        for wanted in list(self._interpreters):
            self._end(wanted)

    def _all(self) -> list[Forks]:
        return [*self._interpreters.values(), *([self._of_spark] if self._of_spark else [])]

    def _end(self, wanted: ServerStart) -> None:
        del self._kept_until[wanted]
        self._interpreters.pop(wanted).close()


def _start_of(order: protocol.Message) -> ServerStart:
    """Returns how the warm interpreter of such runs is started."""
    asked = order["interpreter"]
    common = {name: value for name, value in order["environment"].items() if name not in asked["without"]}
    argv = (*asked["argv"], _PROGRAM, LINK, *asked["modules"])
    return ServerStart(argv, _sorted(common), order["working_directory"], _ANSWER_S)


def _sorted(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))
