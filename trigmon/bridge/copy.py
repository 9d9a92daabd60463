"""A copy under way: connects to both sides, copies, and waits where one is away or takes nothing; says how it is.

One thread runs a copy. What is recorded decides after each loss (:mod:`trigmon.bridge.copy_protocol`), so the answer to
every error is the same: give back there, wait, open what was lost, resolve.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from trigmon.bridge.connection import BridgeError, RemoteError
from trigmon.bridge.copy_here import LocalQueue
from trigmon.bridge.copy_protocol import QueueCopy
from trigmon.bridge.copy_there import IN_USE, WAITS, RemoteQueue
from trigmon.client.link import LinkDown
from trigmon.log import logger
from trigmon.mq.calls import CopyState
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason

WAIT_MS = 1000
"""So long a get waits, and a stop with it."""
REPORT_S = 1.0
RATE_S = 10.0
"""The rate is that of so many seconds."""
PAUSE_S = (0.5, 10.0)
"""The first and the longest pause after a refusal."""

log = logger()


class CopyLoop:
    """One copy, until it is stopped, or the queue there is empty where ``until_empty`` says so.

    ``is_patient``: it waits for whatever is wrong; else what is wrong at the beginning is raised.
    """

    def __init__(
        self,
        there: RemoteQueue,
        here: LocalQueue,
        *,
        until_empty: bool = False,
        is_patient: bool = False,
        stopped: threading.Event | None = None,
    ) -> None:
        self.there = there
        self.here = here
        self.stopped = threading.Event() if stopped is None else stopped
        self.copied = self.batches = 0
        self._until_empty = until_empty
        self._is_patient = is_patient
        self._copy: QueueCopy | None = None
        self._pause_s = PAUSE_S[0]
        self._problem, self._since_ms = "", 0
        self._depth, self._last_ms, self._lag_ms = -1, 0, 0
        self._counts: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._reported_at, self._reported = 0.0, CopyState(name="", q_name="")

    @property
    def state(self) -> CopyState:
        """How it is now."""
        (since, before), now = self._counts[0], time.monotonic()
        return CopyState(
            name=self.here.source,
            q_name=self.here.q_name,
            copied=self.copied,
            put_aside=self.here.put_aside,
            rate=round((self.copied - before) / max(now - since, 1.0), 1),
            left=self._depth,
            lag_ms=self._lag_now_ms(),
            last_copy_ms=self._last_ms,
            problem=self._problem,
            problem_since_ms=self._since_ms,
            batches=self.batches,
        )

    def run(self) -> None:
        """Copies until it is stopped. Raises MQError, RemoteError, BridgeError for what does not pass."""
        try:
            while not self.stopped.is_set():
                pause_s = self._step()
                if pause_s is None:
                    break
                self._report()
                if pause_s:
                    self.stopped.wait(pause_s)
            self._settle()
            self.here.close()
        finally:  # whatever ends it: disconnecting commits, so what was got and put is given back first
            self.there.drop()
            self.here.drop()

    # -- a step ---------------------------------------------------------------------------------------------

    def _step(self) -> float | None:
        """Takes the next step; returns the seconds to wait before the next step, None where the copy is at its end."""
        try:
            if self._copy is None:
                self._copy = QueueCopy(self.there, self.here, self.here.open())
            if not self.there.is_open:
                self.there.open()
            self._count(self._copy.resolve())
            if self._batch(self._copy):
                return None
        except LinkDown as down:
            return self._here_is_away(down.error, may_pass=down.may_pass)
        except MQError as error:
            return self._refused_here(error)
        except (RemoteError, BridgeError) as error:
            return self._refused_there(error)
        self._note("")
        self._pause_s = PAUSE_S[0]
        self._is_patient = True
        return 0.0

    def _batch(self, copy: QueueCopy) -> bool:
        """Copies a batch; returns whether the copy is at its end. A queue that is empty has no record."""
        count = copy.copy_batch(0 if self._until_empty else WAIT_MS)
        if not count:
            copy.settle()
            self._lag_ms = 0
            return self._until_empty
        self._count(count)
        self._lag_ms = max(0, self._last_ms - copy.last_put_ms) if copy.last_put_ms else 0
        return False

    def _count(self, messages: int) -> None:
        """Counts the messages of a unit of work that was committed here; 0 where there was none."""
        if messages:
            self.copied += messages
            self.batches += 1
            self._last_ms = time.time_ns() // 1_000_000

    def _here_is_away(self, error: MQError, *, may_pass: bool) -> float:
        """Notes that the queue manager here is away: what was got is given back, and the record is read anew."""
        if not may_pass and error.reason != Reason.BACKED_OUT and not self._is_patient:
            raise error
        self._copy = None
        self.there.drop()
        self._note(f"the queue manager here: {error}")
        return max(0.1, self.here.pause_s)

    def _refused_here(self, error: MQError) -> float:
        """Notes a refusal here. Where it is one of opening, the connection goes: the record queue may be open."""
        if self._copy is None:
            self.here.drop()
            if error.reason == Reason.OBJECT_IN_USE:
                self._note(f"another copy of {self.here.source} is under way here, or has not ended yet: {error}")
                return self._pause()
            if not self._is_patient:
                raise error
        self._note(str(error))
        return self._pause()

    def _refused_there(self, error: RemoteError | BridgeError) -> float:
        """Notes a refusal there. The connection goes, and with it the unit of work."""
        self.there.drop()
        reason = error.reason if isinstance(error, RemoteError) else 0
        passes = isinstance(error, RemoteError) and (error.may_pass or reason in WAITS)
        if not passes and not self._is_patient:
            raise error
        text = str(error)
        if reason == IN_USE:
            text += "; another program has it open for input, or a connection that was lost has not ended yet"
        self._note(text)
        return max(self._pause(), self.there.pause_s)

    def _settle(self) -> None:
        """Takes the record away at an orderly end; where that cannot be, the next copy looks for what it names."""
        if self._copy is None:
            return
        try:
            self._copy.settle()
            self._report(is_due=True)
        except (MQError, LinkDown):
            return

    def _pause(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, PAUSE_S[1])
        return pause_s

    # -- what is reported -----------------------------------------------------------------------------------

    def _note(self, problem: str) -> None:
        if problem == self._problem:
            return
        if problem:
            log.warning("a copy is hindered", copy=self.here.source, why=problem)
        else:
            log.info("a copy goes on", copy=self.here.source)
        if problem:  # it may be another one: the lag grows on
            self._lag_ms = self._lag_now_ms()
        self._problem, self._since_ms = problem, time.time_ns() // 1_000_000 if problem else 0

    def _lag_now_ms(self) -> int:
        """Returns the lag of the last message; while nothing can be copied it grows with the clock."""
        hindered_ms = time.time_ns() // 1_000_000 - self._since_ms if self._problem else 0
        return self._lag_ms + max(0, hindered_ms)

    def _report(self, *, is_due: bool = False) -> None:
        """Reports how it is, once a second, to the queue manager here, where that can be reached."""
        now = time.monotonic()
        if not is_due and now - self._reported_at < REPORT_S:
            return
        self._reported_at = now
        self._counts.append((now, self.copied))
        while len(self._counts) > 2 and now - self._counts[1][0] >= RATE_S:
            self._counts.popleft()
        self._quietly(self._look_there)
        if self._copy is not None and (is_due or self.state != self._reported):
            self._reported = self.state
            self._quietly(lambda: self.here.report(self._reported))

    def _look_there(self) -> None:
        if self.there.is_open:
            self._depth = self.there.depth()

    def _quietly(self, look: Callable[[], None]) -> None:
        """Looks or reports; an error of it is met again by the next step."""
        try:
            look()
        except (MQError, LinkDown, RemoteError) as error:
            if isinstance(error, LinkDown):
                self._copy = None
                self.there.drop()
