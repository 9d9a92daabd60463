"""The programs that run, the runs that wait for a slot, and the thread that sees them end.

The monitor's own thread starts programs and goes straight back to its waiting get. Everything after that belongs to
the reaper thread, which has a connection of its own: it writes down that a program was started and how it ended, and
starts held runs when a slot frees. While the queue manager is away what it has to write waits, and held runs wait too.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trigmon.launch import process
from trigmon.launch.port import STDERR, Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.monitor.books import Books
from trigmon.monitor.dead_letters import AS_WRITTEN
from trigmon.monitor.link import LinkDown
from trigmon.monitor.plan import DeadLetter, slot_of
from trigmon.mq.descriptors import TriggerMessage, pack_tm
from trigmon.mq.enums import Feedback

log = logger()


class Child(msgspec.Struct, frozen=True):
    """A program that runs. ``popen`` is None for one that an earlier monitor started: its status is not ours to see."""

    run_id: str
    slot: str
    pid: int
    pidfd: int
    directory: Path
    started_ms: int
    errors: tuple[str, ...]
    popen: subprocess.Popen[bytes] | None = None


class Programs:
    """What this monitor started, or has promised to start."""

    def __init__(
        self, books: Books, launchers: Mapping[int, Launcher], runs_directory: Path, default_instances: int
    ) -> None:
        self.launchers = launchers
        self.runs_directory = runs_directory
        self.default_instances = default_instances
        self._books = books
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._held: dict[str, deque[Order]] = {}
        self._known: set[str] = set()
        self._inbox: deque[Child] = deque()
        self._children: dict[int, Child] = {}
        self._stalled = False
        self._stop_at: float | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)
        self._thread.start()

    # -- for the monitor's thread ---------------------------------------------------------------------------

    def before(self, slot: str) -> int:
        """How many runs of a slot are running or held."""
        with self._lock:
            return self._running[slot] + len(self._held.get(slot, ()))

    def knows(self, run_id: str) -> bool:
        """Whether a run is in these hands, so that nobody resumes it a second time."""
        with self._lock:
            return run_id in self._known

    def directory(self, run_id: str) -> Path:
        """Where a run's output goes."""
        return self.runs_directory / run_id

    def start(self, order: Order, plan: LaunchPlan) -> None:
        """Starts a planned run that is in the ledger as due. Raises OSError when it cannot be executed."""
        with self._lock:
            self._running[slot_of(order.trigger)] += 1
            self._known.add(order.run_id)
        try:
            self._hand_over(self._launch(order, plan))
        except OSError:
            self._forget(order.run_id, slot_of(order.trigger))
            raise

    def hold(self, order: Order) -> None:
        """Keeps a run that is in the ledger as held until its slot frees."""
        with self._lock:
            self._known.add(order.run_id)
            self._held.setdefault(slot_of(order.trigger), deque()).append(order)
        self.wake()

    def adopt(self, run_id: str, trigger: TriggerMessage, pid: int, pidfd: int, started_ms: int) -> None:
        """Watches over a program that an earlier monitor started."""
        slot = slot_of(trigger)
        with self._lock:
            self._running[slot] += 1
            self._known.add(run_id)
        errors = self.errors_of(trigger)
        self._hand_over(Child(run_id, slot, pid, pidfd, self.directory(run_id), started_ms, errors))

    def errors_of(self, trigger: TriggerMessage) -> tuple[str, ...]:
        """Which output files tell why such a program failed."""
        launcher = self.launchers.get(trigger.appl_type)
        return launcher.errors if launcher else (STDERR,)

    def wake(self) -> None:
        """Makes the reaper look round."""
        os.eventfd_write(self._wake, 1)

    def check(self) -> None:
        """Raises what ended the reaper, if anything did: without it the monitor is blind."""
        if self._failure is not None:
            raise RuntimeError("the monitor's reaper has ended") from self._failure

    def stop(self, grace_s: float) -> list[Child]:
        """Starts nothing more, waits up to ``grace_s`` seconds for what runs, and returns what runs on."""
        self._stop_at = time.monotonic() + grace_s
        self.wake()
        self._thread.join()
        os.close(self._wake)
        return sorted(self._children.values(), key=lambda child: child.run_id)

    # -- for both -------------------------------------------------------------------------------------------

    def _launch(self, order: Order, plan: LaunchPlan) -> Child:
        directory = self.directory(order.run_id)
        popen = process.start(plan, directory)
        log.info("program started", run=order.run_id, pid=popen.pid, queue=order.trigger.q_name, program=plan.argv[0])
        try:
            pidfd = os.pidfd_open(popen.pid)
        except OSError:  # no descriptor left: a program that nobody could see end is not let run
            os.killpg(popen.pid, signal.SIGKILL)
            popen.wait()
            raise
        return Child(
            run_id=order.run_id,
            slot=slot_of(order.trigger),
            pid=popen.pid,
            pidfd=pidfd,
            directory=directory,
            started_ms=now_ms(),
            errors=self.errors_of(order.trigger),
            popen=popen,
        )

    def _hand_over(self, child: Child) -> None:
        self._inbox.append(child)
        self.wake()

    def _forget(self, run_id: str, slot: str) -> None:
        with self._lock:
            self._running[slot] -= 1
            self._known.discard(run_id)

    # -- the reaper's thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._reap()
        except BaseException as error:
            self._failure = error
            log.exception("the reaper ended")
        finally:
            self._books.close()

    def _reap(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        while not self._is_over():
            ready = [descriptor for descriptor, _ in poll.poll(self._pause_ms())]
            if self._wake in ready:
                os.eventfd_read(self._wake)
            while self._inbox:
                child = self._inbox.popleft()
                self._children[child.pidfd] = child
                poll.register(child.pidfd, select.POLLIN)
                self._books.note(child.run_id, ledger.started(child.pid, child.started_ms))
            for descriptor in ready:
                if descriptor != self._wake:
                    poll.unregister(descriptor)
                    self._ended(self._children.pop(descriptor))
            if self._books.write() and self._stop_at is None:
                self._start_held()

    def _is_over(self) -> bool:
        if self._stop_at is None or self._inbox:
            return False
        return time.monotonic() >= self._stop_at or not (self._children or self._books.behind)

    def _pause_ms(self) -> float | None:
        pauses = [self._books.pause_s] if self._books.behind or self._stalled else []
        if self._stop_at is not None:
            pauses.append(max(0.0, self._stop_at - time.monotonic()))
        return 1 + 1000 * min(pauses) if pauses else None

    def _ended(self, child: Child) -> None:
        os.close(child.pidfd)
        tail = process.tail(child.directory, child.errors)
        if child.popen is None:
            fields = ledger.unknown("ended under another monitor than the one that started it", tail, now_ms())
        else:
            fields = ledger.exited(child.popen.wait(), tail, now_ms())
        log.info("program ended", run=child.run_id, pid=child.pid, how=fields["why"])
        self._books.note(child.run_id, fields)
        self._forget(child.run_id, child.slot)

    def _start_held(self) -> None:
        """Starts what waits, as far as slots are free, the oldest first; stalls when the queue manager is away."""
        self._stalled = False
        for slot in list(self._held):
            while (order := self._next_held(slot)) is not None:
                try:
                    self._start_one(order)
                except LinkDown:
                    with self._lock:
                        self._running[slot] -= 1
                        self._held[slot].appendleft(order)
                    self._stalled = True
                    return

    def _next_held(self, slot: str) -> Order | None:
        with self._lock:
            waiting = self._held[slot]
            if not waiting:
                del self._held[slot]
                return None
            if self._running[slot] >= (waiting[0].process.instances or self.default_instances):
                return None
            self._running[slot] += 1
            return waiting.popleft()

    def _start_one(self, order: Order) -> None:
        """Starts a held run, or writes it off with a dead letter. Raises LinkDown, and then it is still held."""
        try:
            plan = self.launchers[order.trigger.appl_type].plan(order)
            self._books.change(order.run_id, ledger.due(plan.argv, str(self.directory(order.run_id))))
            child = self._launch(order, plan)
        except (LaunchError, OSError) as error:
            verdict = DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, str(error))
            self._books.dead_letter(order.run_id, verdict, AS_WRITTEN, pack_tm(order.trigger))
            self._forget(order.run_id, slot_of(order.trigger))
            return
        self._hand_over(child)


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
