"""The programs that run, the runs that wait for a slot, and the thread that hears of their ends.

The monitor's own thread asks the keeper for a start and goes straight back to its waiting get. Everything after that
belongs to the reaper thread, which has a connection of its own: it hears what the keeper tells, writes down that a
program was started and how it ended, and starts held runs when a slot frees. While the queue manager is away what it
has to write waits, and held runs wait too.

A keeper outlives its monitor, and what it saw is written in the runs' directories: so a run that an earlier monitor
started is found, in the keeper's hands or by its exit. Only when the keeper itself has died is the process looked for,
and then nobody knows how it ends.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trigmon.launch import credentials, process, talk
from trigmon.launch.keeping import Keeper, KeeperGone, Keepers
from trigmon.launch.port import STDERR, Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import Seldom, logger
from trigmon.monitor import ledger
from trigmon.monitor.books import Books
from trigmon.monitor.children import Child, Exited, KeptBy, Letter, Limits, Lost, NotStarted, Stray, WriteOff, find
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
# How long a stopping monitor takes to write down what it knows; and how much longer than the grace it waits for ends.
_FLUSH_S = 5.0
_SAY_AGAIN_S = 60.0


class Programs:
    """What this monitor started, or has promised to start."""

    def __init__(
        self,
        books: Books,
        launchers: Mapping[int, Launcher],
        runs_directory: Path,
        keepers: Keepers,
        limits: Limits,
    ) -> None:
        self.launchers = launchers
        self.runs_directory = runs_directory
        self.limits = limits
        self._books = books
        self._keepers = keepers
        self._lock = threading.Lock()
        self._heeded = Heeded()
        self._slots = Slots(limits.instances, self._heeded.is_paused)
        self._children: dict[str, Child] = {}
        self._strays: dict[int, Child] = {}
        self._polled: tuple[Keeper, ...] = ()
        self._to_find: deque[Child] = deque()
        self._write_offs: dict[str, WriteOff] = {}
        self._stalled = False
        self._waits_for_others = False
        self._ends_runs = False
        self._stop_at: float | None = None
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)
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

    def start(self, order: Order, plan: LaunchPlan, letter: Letter) -> None:
        """Has a planned run started that is in the ledger as due; ``letter`` is its trigger message as it came."""
        with self._lock:
            self._slots.begin(order.run_id, order.trigger)
            is_asked = self._ask_for(order, plan, letter)
            if not is_asked:
                self._slots.put_back(order)
        if not is_asked:
            self.wake()

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

    def take_up(self, run_id: str, trigger: TriggerMessage, kept_by: str, order: Order | None) -> None:
        """A run that an earlier monitor started, or may have: what became of it is found out, and then written.

        ``kept_by`` is the keeper of the monitor that had it, ``order`` what it takes to start it if it was not.
        """
        child = Child(run_id=run_id, trigger=trigger, directory=self.directory(run_id), kept_by=kept_by, order=order)
        with self._lock:
            self._slots.begin(run_id, trigger)
            self._children[run_id] = child
        self._to_find.append(child)
        self.wake()

    def wake(self) -> None:
        """Makes the reaper look round."""
        os.eventfd_write(self._wake, 1)

    def check(self) -> None:
        """Raises what ended the reaper, if anything did: without it the monitor is blind."""
        if self._failure is not None:
            raise RuntimeError("the monitor's reaper has ended") from self._failure

    def stop(self, *, end_runs: bool = False, in_time: bool = True) -> list[Child]:
        """Starts nothing more, writes down what is known, and returns the programs that run on.

        ``end_runs``: they are ended, SIGTERM and after the grace SIGKILL, and that is waited for. ``in_time`` False:
        nothing is waited for.
        """
        self._ends_runs = end_runs and in_time
        patience_s = _FLUSH_S + (self.limits.grace_s if self._ends_runs else 0.0)
        self._stop_at = time.monotonic() + (patience_s if in_time else 0.0)
        self.wake()
        self._thread.join()
        os.close(self._wake)
        return sorted(self._children.values(), key=lambda child: child.run_id)

    # -- for both, under the lock ---------------------------------------------------------------------------

    def _ask_for(self, order: Order, plan: LaunchPlan, letter: Letter) -> bool:
        """Asks the keeper for a start. False: there is no keeper to be had now, and the run waits."""
        child = Child(
            run_id=order.run_id,
            trigger=order.trigger,
            directory=self.directory(order.run_id),
            order=order,
            plan=plan,
            letter=letter,
        )
        try:
            child.keeper = self._keepers.own()
            self._children[child.run_id] = child
            child.keeper.start(
                child.run_id,
                plan,
                process.environment(plan),
                child.directory,
                time_limit_s=order.process.time_limit_s or self.limits.time_limit_s,
                grace_s=self.limits.grace_s,
            )
        except KeeperGone:
            pass  # the reaper hears of that too, and finds what became of the run
        except OSError as error:
            self._seldom.warning("no program can be started", error=str(error))
            self._stalled = True
            return False
        if child.keeper not in self._polled:
            self.wake()
        return True

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
        while not self._is_over():
            self._wait()
            while self._to_find:
                self._find(self._to_find.popleft())
            if self._ends_runs or self._heeded.cancel:
                self._end_runs()
            # What is to be started is written down with all that has happened, in one turn and one sync.
            chosen = self._choose_held() if self._stop_at is None else []
            for order, plan in chosen:
                self._books.note(order.run_id, ledger.due(plan.argv, str(self.directory(order.run_id))))
            self._start_chosen(chosen, is_written=self._books.write())
            self._write_off()

    def _wait(self) -> None:
        """Waits until something has happened, and takes it in."""
        with self._lock:
            self._polled = tuple(self._keepers.all())
            keepers = {keeper.fileno(): keeper for keeper in self._polled}
        poll = select.poll()
        for descriptor in (self._wake, *keepers, *self._strays):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(self._pause_ms()):
            if descriptor in keepers:
                self._hear(keepers[descriptor])
            elif descriptor in self._strays:
                self._stray_ended(self._strays.pop(descriptor))
            else:
                os.eventfd_read(self._wake)

    def _is_over(self) -> bool:
        if self._stop_at is None:
            return False
        if time.monotonic() >= self._stop_at:
            return True
        with self._lock:
            unknown = any(not child.pid for child in self._children.values())
            open_ = self._children if self._ends_runs else unknown
        return not (open_ or self._to_find or self._books.behind or self._write_offs)

    def _pause_ms(self) -> float | None:
        pauses = [self._books.pause_s] if self._books.behind or self._write_offs else []
        if self._stop_at is not None:
            pauses.append(max(0.0, self._stop_at - time.monotonic()))
            pauses += [_LOOK_AGAIN_S] if self._strays else []
        else:
            pauses += [_LOOK_AGAIN_S] if self._waits_for_others or (self._strays and self._heeded.cancel) else []
            pauses += [max(_LOOK_AGAIN_S, self._books.pause_s)] if self._stalled else []
            with self._lock:
                pause_s = self._slots.next_pause_s(time.monotonic())
            pauses += [pause_s] if pause_s is not None else []
        return 1 + 1000 * min(pauses) if pauses else None

    # -- what the keeper tells ------------------------------------------------------------------------------

    def _hear(self, keeper: Keeper) -> None:
        try:
            heard = keeper.hear()
        except KeeperGone:
            self._lost(keeper)
            return
        for said in heard:
            child = self._children.get(said.get("run", ""))
            if child is None:
                continue  # another monitor's: every monitor of a keeper hears all
            if said["say"] == "started":
                self._started(child, said)
            elif said["say"] == "ended":
                self._ended(child, said)
            elif said["say"] == "failed":
                self._failed(child, said)
            elif said["say"] == "taken":
                child.keeper = None
                self._to_find.append(child)

    def _lost(self, keeper: Keeper) -> None:
        with self._lock:
            self._keepers.lose(keeper)
            kept = [child for child in self._children.values() if child.keeper is keeper]
        log.error("the keeper has ended", keeper=keeper.name, runs=[child.run_id for child in kept])
        for child in kept:
            child.keeper, child.kept_by = None, keeper.name
            self._to_find.append(child)

    def _started(self, child: Child, said: Mapping[str, Any]) -> None:
        child.pid = said["pid"]
        self._books.note(child.run_id, ledger.started(child.pid, said["start_ms"]))
        argv = child.plan.argv if child.plan else [""]
        log.info("program started", run=child.run_id, pid=child.pid, queue=child.trigger.q_name, program=argv[0])

    def _ended(self, child: Child, said: Mapping[str, Any]) -> None:
        tail = process.tail(child.directory, self._errors_of(child.trigger))
        code, by = int(said["status"]), str(said["why"])
        begun = ledger.started(said["pid"], said["start_ms"]) if not child.pid else {}
        child.pid = said["pid"]
        ended_by = {
            talk.TIME_LIMIT: f"its time limit of {said.get('limit_s', 0):g} s",
            talk.STOPPED: "its monitor's stop",
            talk.KEEPER_ENDED: "its keeper's stop",
            talk.CANCELLED: "",  # the ledger says by whom
        }.get(by, by)
        # Whom a stop ended neither failed nor succeeded.
        succeeded = None if by in (talk.STOPPED, talk.KEEPER_ENDED, talk.CANCELLED) else code == 0
        self._close(child, begun | ledger.exited(code, tail, said["end_ms"], ended_by), succeeded)

    def _failed(self, child: Child, said: Mapping[str, Any]) -> None:
        """No program came of it: the trigger message goes to the dead-letter queue."""
        why = said["error"]
        if said["errno"] and child.plan is not None:
            why = process.why_not(said["errno"], child.plan.argv[0], child.plan.working_directory)
        with self._lock:
            del self._children[child.run_id]
        self._begin_write_off(child.run_id, child.trigger, why, child.letter)

    def _close(self, child: Child, fields: ledger.Fields, succeeded: bool | None) -> None:
        log.info("program ended", run=child.run_id, pid=child.pid, how=fields["why"])
        self._books.note(child.run_id, fields)
        with self._lock:
            self._children.pop(child.run_id, None)
            self._slots.end(child.run_id, child.trigger)
            self._slots.judged(child.trigger, succeeded, time.monotonic())
            why = self._slots.paused(child.trigger, time.monotonic())
            first = next(self._slots.held_of(child.trigger), None)
        if why and first is not None:
            self._books.note(first.run_id, {"why": why})

    def _errors_of(self, trigger: TriggerMessage) -> tuple[str, ...]:
        """Which output files tell why such a program failed."""
        launcher = self.launchers.get(trigger.appl_type)
        return launcher.errors if launcher else (STDERR,)

    # -- what nobody tells ----------------------------------------------------------------------------------

    def _find(self, child: Child) -> None:
        """Finds out what became of a run, and goes on from there."""
        if self._children.get(child.run_id) is not child:
            return
        match find(child, self._there):
            case Exited(said):
                (self._ended if "status" in said else self._failed)(child, said)
            case KeptBy(keeper, pid, start_ms):
                child.keeper = keeper
                if pid:
                    self._runs_on(child, pid, start_ms)
            case Stray(pid, pidfd, start_ms):
                child.pidfd = pidfd
                self._strays[pidfd] = child
                self._runs_on(child, pid, start_ms or now_ms())
            case NotStarted():
                assert child.order is not None
                with self._lock:
                    del self._children[child.run_id]
                    self._slots.put_back(child.order)
                log.info("run taken up", run=child.run_id, state=ledger.DUE)
            case Lost(why):
                self._lose_sight(child, why)

    def _there(self, name: str) -> Keeper | None:
        try:
            with self._lock:
                return self._keepers.there(name)
        except OSError as error:
            log.error("a keeper cannot be asked", keeper=name, error=str(error))
            return None

    def _runs_on(self, child: Child, pid: int, start_ms: int) -> None:
        child.pid = pid
        self._books.note(child.run_id, ledger.started(pid, start_ms))
        log.info("program found running", run=child.run_id, pid=pid)

    def _stray_ended(self, child: Child) -> None:
        os.close(child.pidfd)
        child.pidfd = -1
        self._lose_sight(child, "its keeper had ended before it", now_ms())

    def _lose_sight(self, child: Child, why: str, end_ms: int = 0) -> None:
        with suppress(OSError):  # no keeper was there to do it
            credentials.remove(child.directory)
        tail = process.tail(child.directory, self._errors_of(child.trigger))
        self._close(child, ledger.unknown(f"{why}: how it ended is not known", tail, end_ms), None)

    # -- what is to be done ---------------------------------------------------------------------------------

    def _end_runs(self) -> None:
        """Ends every program, or those that were cancelled.

        For one without a keeper the group is signalled here: its pidfd says that it is there.
        """
        now, why = time.monotonic(), talk.STOPPED if self._ends_runs else talk.CANCELLED
        with self._lock:
            children = list(self._children.values())
        for child in children if self._ends_runs else [c for c in children if c.run_id in self._heeded.cancel]:
            is_first, is_due = not child.kill_at, 0 < child.kill_at <= now
            if child.keeper is None and child.pidfd < 0:
                continue  # it is being looked for
            child.kill_at = child.kill_at or now + self.limits.grace_s
            if child.keeper is None and (is_first or is_due):
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGTERM if is_first else signal.SIGKILL)
            elif child.keeper is not None and is_first:
                with suppress(KeeperGone):
                    child.keeper.stop(child.run_id, why, self.limits.grace_s)

    def _choose_held(self) -> list[tuple[Order, LaunchPlan]]:
        """What waits and may start now, as far as slots are free, the oldest first; counted as running from here on.

        Stalls when the queue manager is away.
        """
        self._stalled = False
        chosen: list[tuple[Order, LaunchPlan]] = []
        passed_over: set[str] = set()
        elsewhere: dict[str, int] = {}
        while (order := self._next_held(passed_over)) is not None:
            try:
                has_room = self._has_room(order, elsewhere)
            except LinkDown:
                self._stalled = True
                has_room = False
            if not has_room:
                passed_over.add(slot_of(order.trigger))
                with self._lock:
                    self._slots.put_back(order)
            elif (plan := self._plan(order)) is not None:
                chosen.append((order, plan))
            if self._stalled:
                break
        self._waits_for_others = bool(passed_over)
        return chosen

    def _start_chosen(self, chosen: list[tuple[Order, LaunchPlan]], *, is_written: bool) -> None:
        """Starts them. Where one is not written down, is paused, or no keeper is to be had, it is held as before."""
        with self._lock:
            not_now = []
            for order, plan in chosen:
                state = self._books.state_of_due(order.run_id) if is_written else ledger.HELD
                if state == ledger.CANCELLED:
                    self._slots.end(order.run_id, order.trigger)
                elif state == ledger.HELD or not self._ask_for(order, plan, (AS_WRITTEN, pack_tm(order.trigger))):
                    not_now.append(order)
            for order in reversed(not_now):
                self._slots.put_back(order)
        self._stalled = self._stalled or bool(not_now)

    def _next_held(self, passed_over: set[str]) -> Order | None:
        with self._lock:
            return self._slots.next(time.monotonic(), passed_over)

    def _has_room(self, order: Order, elsewhere: dict[str, int]) -> bool:
        """Whether the cap has room for a run that is counted here already, beside other monitors' runs.

        ``elsewhere`` keeps what was asked before. Raises LinkDown.
        """
        cap = order.process.instances or self.limits.instances
        name = order.trigger.process_name
        if name not in elsewhere:
            elsewhere[name] = self._books.running_elsewhere(name)
        with self._lock:
            here = self._slots.running(slot_of(order.trigger))
        return here + elsewhere[name] <= cap

    def _plan(self, order: Order) -> LaunchPlan | None:
        """The plan; None where there is none and the run begins to be written off."""
        try:
            return self.launchers[order.trigger.appl_type].plan(order)
        except LaunchError as error:
            self._begin_write_off(order.run_id, order.trigger, str(error), None)
            return None

    def _begin_write_off(self, run_id: str, trigger: TriggerMessage, why: str, letter: Letter | None) -> None:
        verdict = DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, why)
        self._write_offs[run_id] = WriteOff(trigger, verdict, letter or (AS_WRITTEN, pack_tm(trigger)))
        self.wake()

    def _write_off(self) -> None:
        """Puts the dead letters of runs that never became programs, as far as the queue manager is there."""
        while self._write_offs and not self._books.behind:
            run_id, it = next(iter(self._write_offs.items()))
            try:
                self._books.dead_letter(run_id, it.verdict, *it.letter)
            except LinkDown:
                return
            del self._write_offs[run_id]
            with self._lock:
                self._slots.end(run_id, it.trigger)
            self._books.write()
            self.wake()


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
