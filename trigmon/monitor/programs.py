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
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trigmon.launch import process
from trigmon.launch.port import STDERR, Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.monitor.books import Books
from trigmon.monitor.controls import Heeded
from trigmon.monitor.dead_letters import AS_WRITTEN
from trigmon.monitor.link import LinkDown
from trigmon.monitor.plan import DeadLetter, slot_of
from trigmon.monitor.slots import Slots
from trigmon.mq.descriptors import TriggerMessage, pack_tm
from trigmon.mq.enums import Feedback
from trigmon.rules.facts import Paused

log = logger()

# How soon a run that other monitors' runs keep waiting is looked at again, in seconds: nobody tells when they end.
_LOOK_AGAIN_S = 1.0


class Child(msgspec.Struct, frozen=True):
    """A program that runs. ``popen`` is None for one that an earlier monitor started: its status is not ours to see."""

    run_id: str
    trigger: TriggerMessage
    pid: int
    pidfd: int
    directory: Path
    started_ms: int
    errors: tuple[str, ...]
    popen: subprocess.Popen[bytes] | None = None


class Programs:
    """What this monitor started, or has promised to start."""

    def __init__(
        self,
        books: Books,
        launchers: Mapping[int, Launcher],
        runs_directory: Path,
        default_instances: int,
        grace_s: float = 10.0,
    ) -> None:
        self.launchers = launchers
        self.runs_directory = runs_directory
        self.default_instances = default_instances
        self._books = books
        self._lock = threading.Lock()
        self._heeded = Heeded(grace_s)
        self._slots = Slots(default_instances, self._heeded.is_paused)
        self._unstartable: dict[str, DeadLetter] = {}
        self._inbox: deque[Child] = deque()
        self._children: dict[int, Child] = {}
        self._stalled = False
        self._waits_for_others = False
        self._stop_at: float | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)
        self._thread.start()

    # -- for the monitor's thread ---------------------------------------------------------------------------

    def before(self, slot: str) -> int:
        """How many runs of a slot are running or held."""
        with self._lock:
            return self._slots.before(slot)

    def paused(self, trigger: TriggerMessage) -> str:
        """Why a run of this cause must wait for the failures before it; "" when it need not."""
        with self._lock:
            return self._slots.paused(trigger, time.monotonic())

    def knows(self, run_id: str) -> bool:
        """Whether a run is in these hands, so that nobody resumes it a second time."""
        with self._lock:
            return self._slots.knows(run_id)

    def directory(self, run_id: str) -> Path:
        """Where a run's output goes."""
        return self.runs_directory / run_id

    def start(self, order: Order, plan: LaunchPlan) -> None:
        """Starts a planned run that is in the ledger as due. Raises LaunchError or OSError when it cannot be."""
        with self._lock:
            self._slots.begin(order.run_id, order.trigger)
        try:
            self._hand_over(self._launch(order, plan))
        except (LaunchError, OSError):
            self._forget(order.run_id, order.trigger)
            raise

    def hold(self, order: Order) -> None:
        """Keeps a run that is in the ledger as held until its slot frees."""
        with self._lock:
            self._slots.hold(order)
        self.wake()

    def heed(self, pauses: list[Paused], cancel: list[str]) -> None:
        """What operators want now: nothing of this is started, and these runs are ended."""
        self._heeded.heard(pauses, cancel)
        self.wake()

    def held(self) -> list[str]:
        """The ids of the runs held here."""
        with self._lock:
            return self._slots.held()

    def drop(self, run_id: str) -> None:
        """A held run was cancelled."""
        with self._lock:
            self._slots.drop(run_id)

    def adopt(self, run_id: str, trigger: TriggerMessage, pid: int, pidfd: int, started_ms: int) -> None:
        """Watches over a program that an earlier monitor started."""
        with self._lock:
            self._slots.begin(run_id, trigger)
        errors = self.errors_of(trigger)
        self._hand_over(Child(run_id, trigger, pid, pidfd, self.directory(run_id), started_ms, errors))

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
            trigger=order.trigger,
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

    def _forget(self, run_id: str, trigger: TriggerMessage) -> None:
        with self._lock:
            self._slots.end(run_id, trigger)

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
            if self._heeded.ends_any:
                for child in self._children.values():
                    self._heeded.see_to(child.run_id, child.pid, child.pidfd)
            if self._books.write() and self._stop_at is None:
                self._start_held()

    def _is_over(self) -> bool:
        if self._stop_at is None or self._inbox:
            return False
        return time.monotonic() >= self._stop_at or not (self._children or self._books.behind)

    def _pause_ms(self) -> float | None:
        pauses = [self._books.pause_s] if self._books.behind or self._stalled else []
        if (grace_s := self._heeded.next_s()) is not None:
            pauses.append(grace_s)
        if self._stop_at is not None:
            pauses.append(max(0.0, self._stop_at - time.monotonic()))
        else:
            pauses += [_LOOK_AGAIN_S] if self._waits_for_others else []
            with self._lock:
                pause_s = self._slots.next_pause_s(time.monotonic())
            pauses += [pause_s] if pause_s is not None else []
        return 1 + 1000 * min(pauses) if pauses else None

    def _ended(self, child: Child) -> None:
        os.close(child.pidfd)
        is_cancelled = self._heeded.over(child.run_id, child.pid)
        tail = process.tail(child.directory, child.errors)
        if child.popen is None:
            succeeded = None
            fields = ledger.unknown("ended under another monitor than the one that started it", tail, now_ms())
        else:
            code = child.popen.wait()
            succeeded = None if is_cancelled else code == 0
            fields = ledger.exited(code, tail, now_ms())
        log.info("program ended", run=child.run_id, pid=child.pid, how=fields["why"])
        self._books.note(child.run_id, fields)
        with self._lock:
            self._slots.end(child.run_id, child.trigger)
            self._slots.judged(child.trigger, succeeded, time.monotonic())
            why = self._slots.paused(child.trigger, time.monotonic())
            first = next(self._slots.held_of(child.trigger), None)
        if why and first is not None:
            self._books.note(first.run_id, {"why": why})

    def _start_held(self) -> None:
        """Starts what waits, as far as slots are free, the oldest first; stalls when the queue manager is away."""
        self._stalled = False
        passed_over: set[str] = set()
        while (order := self._next_held(passed_over)) is not None:
            slot = slot_of(order.trigger)
            try:
                if self._has_room(order) and self._start_one(order):
                    continue
                passed_over.add(slot)
            except LinkDown:
                self._stalled = True
            with self._lock:
                self._slots.put_back(order)
            if self._stalled:
                break
        self._waits_for_others = bool(passed_over)

    def _next_held(self, passed_over: set[str]) -> Order | None:
        with self._lock:
            return self._slots.next(time.monotonic(), passed_over)

    def _has_room(self, order: Order) -> bool:
        """Whether the cap has room for a run that is counted here already, beside other monitors' runs."""
        cap = order.process.instances or self.default_instances
        with self._lock:
            here = self._slots.running(slot_of(order.trigger))
        return here + self._books.running_elsewhere(order.trigger.process_name) <= cap

    def _start_one(self, order: Order) -> bool:
        """Starts a held run, or writes it off: with a dead letter, or since it was cancelled.

        False where the ledger still holds it. Raises LinkDown, and then it is still held too.
        """
        verdict = self._unstartable.get(order.run_id)
        if verdict is None:
            try:
                plan = self.launchers[order.trigger.appl_type].plan(order)
                state = self._books.change(order.run_id, ledger.due(plan.argv, str(self.directory(order.run_id))))
                if state == ledger.HELD:
                    return False
                if state == ledger.CANCELLED:
                    self._forget(order.run_id, order.trigger)
                else:
                    self._hand_over(self._launch(order, plan))
                return True
            except (LaunchError, OSError) as error:
                verdict = DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, str(error))
        # Kept until the dead letter lies where it should: when the link fails now, trying again must not start again.
        self._unstartable[order.run_id] = verdict
        self._books.dead_letter(order.run_id, verdict, AS_WRITTEN, pack_tm(order.trigger))
        del self._unstartable[order.run_id]
        self._forget(order.run_id, order.trigger)
        return True


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
