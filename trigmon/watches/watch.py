"""One watch: finish what was recorded, look, record what is complete, move it and put its messages; then wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from trigmon.client.link import LinkDown
from trigmon.log import logger
from trigmon.mq.calls import WatchState
from trigmon.mq.errors import MQError
from trigmon.watches import directory
from trigmon.watches.directory import Settled, Taken
from trigmon.watches.quiet_files import QuietFiles
from trigmon.watches.record_queue import OF_ONE_MESSAGE, RecordQueue
from trigmon.watches.watched import BODY, FileRecord, SeenFile, WatchDefinition

R = TypeVar("R")
BATCH = 100
"""Files a unit of work."""
LOOK_S = 10.0
"""A look is taken at least so often: inotify says nothing of what other machines do, and can lose events."""
SHORTEST_S = 0.1
LOOKS_SHARE, BUSY_SHARE = 100, 5
"""A look that took t is followed by the next one after 100 t when nothing happened, 5 t when something did."""
RETRY_S = (0.5, 10.0)
SLOW_S = {"look": 60.0, "take": 60.0, "settle": 900.0}
"""So long a step with files may take until it is reported: reading a large file takes its time."""

log = logger()


class Surroundings(Protocol):
    """What a watch uses of the process that it runs in."""

    records: RecordQueue

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """Returns what a call of ``records`` returns. Raises LinkDown, MQError."""

    def listen(self, directory: str) -> int | None:
        """Asks the kernel to say when something happens in a directory; returns its number. Raises OSError."""

    def wake(self, number: int | None, name: str) -> None:
        """Wakes the watch of this name from now on when something happens in the directory of this number."""


class Watch:
    """A watch under way. ``definition`` may be replaced at any time; None is one that was deleted."""

    def __init__(self, name: str, definition: WatchDefinition | None, around: Surroundings) -> None:
        self.name = name
        self.definition = definition
        self.woken = asyncio.Event()
        self._around = around
        self._files = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._quiet = QuietFiles()
        self._pause_s = RETRY_S[0]
        self._under_way: tuple[str, float] | None = None
        self._left: dict[str, str] = {}
        self._problem, self._since_ms = "", 0
        self._waiting = self._taken = self._failed = self._put = self._last_ms = 0
        self._last_file = ""

    @property
    def state(self) -> WatchState:
        """How it is now."""
        problem, since_ms = self._problem, self._since_ms
        if self._under_way is not None:
            step, began = self._under_way
            lasts_s = time.monotonic() - began
            if lasts_s > SLOW_S[step]:
                problem = f"{self._where()} does not answer: {step}ing at it has taken {lasts_s:.0f} s so far"
                since_ms = int((time.time() - lasts_s) * 1000)
        return WatchState(
            name=self.name,
            files_waiting=self._waiting,
            files_taken=self._taken,
            files_failed=self._failed,
            messages_put=self._put,
            last_file=self._last_file,
            last_put_ms=self._last_ms,
            problem=problem,
            problem_since_ms=since_ms,
        )

    def change(self, definition: WatchDefinition | None) -> None:
        """Goes on by another definition, at once."""
        if definition != self.definition:
            self.definition = definition
            self._pause_s = RETRY_S[0]
            self.woken.set()

    async def run(self) -> None:
        """Serves the watch until it is cancelled, or deleted and all that was recorded for it is finished."""
        while True:
            self.woken.clear()
            least_s, most_s, problem = await self._safe_step()
            self._note(problem)
            if self.definition is None and not self._taken and not problem:
                return
            await asyncio.sleep(least_s)
            try:
                await asyncio.wait_for(self.woken.wait(), max(0.0, most_s - least_s))
            except TimeoutError:
                continue

    # -- a step -------------------------------------------------------------------------------------------

    async def _safe_step(self) -> tuple[float, float, str]:
        """Takes a step; returns how long to wait at least and at most until the next, and what hinders it."""
        try:
            least_s, most_s, problem = await self._step()
        except LinkDown:
            return max(SHORTEST_S, self._around.records.pause_s()), LOOK_S, self._problem
        except MQError as error:
            problem = str(error)
            least_s = most_s = 0.0
        except OSError as error:
            problem = directory.sentence(error)
            least_s = most_s = 0.0
        if not problem:
            self._pause_s = RETRY_S[0]
            return least_s, most_s, ""
        # Something new in the directory does not help against what hinders: only time does, or another definition.
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, RETRY_S[1])
        return SHORTEST_S, max(pause_s, least_s), problem

    async def _step(self) -> tuple[float, float, str]:
        records = self._around.records
        self._left = {}
        if problem := await self._finish(await self._around.call(records.records, self.name)):
            return SHORTEST_S, SHORTEST_S, problem
        definition = self.definition
        if definition is None or definition.paused:
            return SHORTEST_S, LOOK_S, self._left_problem()
        self._around.wake(await self._at_files("look", self._around.listen, definition.directory), self.name)
        began = time.monotonic()
        seen = await self._at_files("look", directory.look, definition)
        self._failed = await self._at_files("look", directory.count, definition.failed)
        now = time.monotonic()
        complete, next_at = self._quiet.complete(seen, definition.quiet_s, now)
        self._waiting = len(seen)
        if problem := await self._take_all(definition, complete):
            return SHORTEST_S, SHORTEST_S, problem
        least_s = max(SHORTEST_S, BUSY_SHARE * (now - began))
        most_s = max(LOOK_S, LOOKS_SHARE * (now - began))
        if next_at is not None:
            most_s = min(most_s, next_at - time.monotonic())
        return least_s, max(least_s, most_s), self._left_problem()

    async def _take_all(self, definition: WatchDefinition, complete: list[SeenFile]) -> str:
        """Takes complete files a batch at a time, as long as the definition stays; returns what hinders it."""
        longest, at = 0, 0
        if complete and definition.content == BODY:
            longest = await self._around.call(self._around.records.longest, definition.q_name)
        while at < len(complete) and self.definition is definition:
            taken: Taken = await self._at_files("take", directory.take, definition, complete[at : at + BATCH], longest)
            self._note_aside(definition, taken)
            at += taken.count
            if taken.records:
                await self._around.call(self._around.records.add, taken.records)
                if problem := await self._finish(taken.records):
                    return problem
        return ""

    async def _finish(self, records: list[FileRecord]) -> str:
        """Moves recorded files and puts their messages; returns what hinders them, and with them all others."""
        self._taken = len(records)
        if not records:
            return ""
        q_names = {record.q_name for record in records if record.content == BODY}
        longest = {q_name: await self._around.call(self._around.records.longest, q_name) for q_name in q_names}
        settled: list[Settled] = await self._at_files("settle", directory.settle, records, longest)
        ready = [each for each in settled if not each.stays]
        self._left |= {each.record.path: each.problem for each in settled if each.is_alone}
        problem = next((each.problem for each in settled if each.stays and not each.is_alone), "")
        refused = await self._around.call(self._around.records.finish, ready)
        for each in ready:
            if (error := refused.get(each.record.correl_id)) is not None and error.reason in OF_ONE_MESSAGE:
                self._left[each.record.path] = str(error)
            elif error is not None:
                problem = str(error)
            elif each.data is None:
                log.warning("a file has changed before its message was put", watch=self.name, why=each.problem)
            else:
                self._put += 1
                self._waiting = max(0, self._waiting - 1)
                self._last_file, self._last_ms = each.record.name.decode("utf-8", "replace"), _now_ms()
        self._taken = len(await self._around.call(self._around.records.records, self.name))
        return problem

    async def _at_files(self, step: str, function: Callable[..., R], *arguments: Any) -> R:
        """Returns what a function of files returns, which may take as long as a file system likes."""
        self._under_way = step, time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._files, function, *arguments)
        finally:
            self._under_way = None

    # -- what is reported ---------------------------------------------------------------------------------

    def _note(self, problem: str) -> None:
        if problem == self._problem:
            return
        if problem:
            log.warning("a watch is hindered", watch=self.name, why=problem)
        else:
            log.info("a watch goes on", watch=self.name)
        self._problem, self._since_ms = problem, _now_ms() if problem else 0

    def _note_aside(self, definition: WatchDefinition, taken: Taken) -> None:
        self._left |= taken.left
        for name, why in taken.failed.items():
            self._failed += 1
            self._waiting -= 1
            log.warning("a file was moved aside", watch=self.name, file=name, to=definition.failed, why=why)

    def _left_problem(self) -> str:
        """Returns the sentence on files that hinder no other one, blank where there are none."""
        if not self._left:
            return ""
        name, why = min(self._left.items())
        more = f"; and {len(self._left) - 1} more" if len(self._left) > 1 else ""
        return f"{name}: {why}{more}"

    def _where(self) -> str:
        return self.definition.directory if self.definition is not None else "its directory"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
