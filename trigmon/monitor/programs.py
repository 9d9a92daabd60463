"""Supervises the programs of a monitor: the reaper thread records their ends and has held runs started.

The monitor's own thread asks the keeper for a start and goes straight back to its waiting get. Everything after that
belongs to the reaper thread, which has its own connection: it reads the keeper's messages, records that a program was
started and how it ended, and asks the ledger what may be started then. While the queue manager is away, its changes
of run records wait, and held runs wait too.

A keeper outlives its monitor, and writes what it saw into the runs' directories: so a run that an earlier monitor
started is found, at the keeper or by its exit. Only when the keeper itself has died is the process looked for, and
then its exit status is not known.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from trigmon.keeper import credentials, protocol, run_directory
from trigmon.launch import unix
from trigmon.launch.keeper_client import Keeper, KeeperGone, Keepers
from trigmon.launch.launch_plan import STDERR, Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import Seldom, logger
from trigmon.monitor import run_changes
from trigmon.monitor.child_process import Child, Exited, KeptBy, Letter, Limits, Lost, NotStarted, Unowned, find
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.reconnection import LinkDown
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.spark_servers.progress_poller import ProgressPoller
from trigmon.monitor.spark_servers.session_admission import SessionAdmission, Waiting
from trigmon.mq.calls import Caps
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ApplType
from trigmon.mq.run import Run, RunFields, RunState

log = logger()

# How soon a program whose keeper has died is looked at again, in seconds: its limits are
# checked here. After the same time a start is tried again for what a run left elsewhere.
_LOOK_AGAIN_S = 1.0
# How long a stopping monitor takes to write its changes, and how much longer than the grace it waits for ends.
_FLUSH_S = 5.0
# That a program has started may be written a little later: its first instructions matter more than its record,
# and of one that ends at once both is written together.
_MAY_WAIT_S = 0.02
_SAY_AGAIN_S = 60.0
# How far an application is may be written together with something else.
_SEEN_MAY_WAIT_S = 0.2
# How many more processes a run may have to supervise what a killed one left elsewhere.
_MOST_AGAIN = 3


class Programs:
    """The programs that this monitor started or is to start."""

    def __init__(
        self,
        ledger: LedgerWriter,
        launchers: Mapping[int, Launcher],
        runs_directory: Path,
        keepers: Keepers,
        limits: Limits,
        warm: SessionAdmission,
        *,
        q_mgr_name: str,
        address: str = "",
    ) -> None:
        """Starts the reaper thread; ``address`` is what started programs connect to ("": the queue manager's name)."""
        self.warm = warm
        warm.wake = self.wake
        self.launchers = launchers
        self.runs_directory = runs_directory
        self.limits = limits
        self._ledger = ledger
        self._starter = Starter(ledger, launchers, limits, q_mgr_name, address)
        self._keepers = keepers
        self._lock = threading.Lock()
        # Held while due runs are taken: one that is just being started is not to be looked for.
        self.taking = threading.Lock()
        self._children: dict[str, Child] = {}
        self._unowned: dict[int, Child] = {}
        self._polled: tuple[Keeper, ...] = ()
        self._to_find: deque[Child] = deque()
        self._later: list[tuple[float, Child]] = []
        self._cancel: frozenset[str] = frozenset()
        self._ends_runs = False
        self._stop_at: float | None = None
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._failure: BaseException | None = None
        self._poller = ProgressPoller(self.wake)
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)
        self._thread.start()

    # -- for the monitor's thread ---------------------------------------------------------------------------

    @property
    def caps(self) -> Caps:
        """The limits that the ledger applies where a definition sets none."""
        return self._starter.caps

    @property
    def waiting(self) -> int:
        """How many runs are held, as far as is known."""
        return self._starter.waiting

    def knows(self, run_id: str) -> bool:
        """Returns whether a run is supervised here, so that it is not resumed a second time."""
        with self._lock:
            return run_id in self._children or self.warm.knows(run_id) or self._starter.writes_off(run_id)

    def directory(self, run_id: str) -> Path:
        """Returns the directory of a run's output."""
        return self.runs_directory / run_id

    def start(self, run: Run, letter: Letter) -> None:
        """Starts a run that is due in the ledger; ``letter`` is its trigger message as it came."""
        planned = self._starter.planned(run, letter)
        with self._lock:
            is_asked = planned is not None and self._ask_for(*planned, letter)
        if not is_asked:
            self.wake()

    def held(self, count: int) -> None:
        """Counts so many more held runs."""
        self._starter.held(count)
        self.wake()

    def apply_controls(self, cancel: list[str]) -> None:
        """Notes the runs to cancel, and looks at held runs again: what they wait for may have changed."""
        self._cancel = frozenset(cancel)
        self._starter.look_again()
        self.wake()

    def take_up(self, run: Run, kept_by: str) -> None:
        """Takes over a run that an earlier monitor may have started; what became of it is found out and recorded.

        ``kept_by`` is the keeper of the monitor that had it.
        """
        if not self._starter.can_read(run):
            self.wake()
            return
        order = self._starter.order_of(run)
        base = self.directory(order.run_id)
        child = Child(
            order=order,
            directory=run_directory.all_of(base)[-1],
            base=base,
            may_be_unstarted=run.state == RunState.DUE,
            kept_by=kept_by,
        )
        self.warm.take_up(order.run_id)
        with self._lock:
            self._children[child.run_id] = child
        self._to_find.append(child)
        self.wake()

    def ask_keeper(self, what: Callable[[Keeper], None]) -> None:
        """Calls ``what`` with this monitor's keeper. Raises KeeperGone, and OSError when no keeper can be started."""
        with self._lock:
            what(self._keepers.own())
        self.wake()

    def wake(self) -> None:
        """Wakes the reaper thread."""
        os.eventfd_write(self._wake, 1)

    def check(self) -> None:
        """Raises RuntimeError if the reaper thread has failed: without it no end of a program is seen."""
        if self._failure is not None:
            raise RuntimeError("the monitor's reaper has ended") from self._failure

    def stop(self, *, end_runs: bool = False, in_time: bool = True) -> list[Child]:
        """Starts nothing more, writes what is known, and returns the programs that run on.

        ``end_runs``: they are ended, SIGTERM and after the grace SIGKILL, and that is waited for. ``in_time`` False:
        nothing is waited for.
        """
        self._ends_runs = end_runs and in_time
        patience_s = _FLUSH_S + (self.limits.grace_s if self._ends_runs else 0.0)
        self._stop_at = time.monotonic() + (patience_s if in_time else 0.0)
        self.wake()
        self._thread.join()
        self._poller.stop()
        os.close(self._wake)
        return sorted(self._children.values(), key=lambda child: child.run_id)

    # -- for both, under the lock ---------------------------------------------------------------------------

    def _ask_for(self, order: Order, plan: LaunchPlan, letter: Letter) -> bool:
        """Asks the keeper for a start. Returns False when no keeper can be had now, and the run is held again."""
        directory = self.directory(order.run_id)
        try:
            admitted = plan if plan.session is None else self.warm.admit(Waiting(order, plan, letter))
            if admitted is None:
                return False
            child = Child(order=order, directory=directory, base=directory, plan=admitted, letter=letter)
            self._children[child.run_id] = child
            self._have_started(child, admitted, self._limit_s(child))
        except OSError as error:
            self._seldom.warning("no program can be started", error=str(error))
            self._children.pop(order.run_id, None)
            self.warm.ended(order.run_id)
            self._starter.put_back(order, str(error))
            return False
        if child.keeper not in self._polled:
            self.wake()
        return True

    def _have_started(self, child: Child, plan: LaunchPlan, time_limit_s: float) -> None:
        """Asks the keeper for a start. Raises OSError when no keeper can be had now."""
        child.keeper = self._keepers.own()
        with suppress(KeeperGone):  # the reaper sees that too, and finds what became of the run
            child.keeper.start(
                child.run_id,
                plan,
                unix.environment(plan),
                child.directory,
                time_limit_s=time_limit_s,
                grace_s=self.limits.grace_s,
            )

    # -- the reaper's thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._reap()
        except BaseException as error:
            self._failure = error
            log.exception("the reaper ended")
        finally:
            self._ledger.close()

    def _reap(self) -> None:
        while not self._is_over():
            self._wait()
            for run_id, seen in self._poller.notes():
                if run_id in self._children:
                    self._ledger.note(run_id, seen, _SEEN_MAY_WAIT_S)
            now = time.monotonic()
            self._to_find.extend(child for at, child in self._later if at <= now)
            self._later = [(at, child) for at, child in self._later if at > now]
            while self._to_find:
                self._find(self._to_find.popleft())
            self._end_what_is_to_end()
            # What has happened is written in one turn; by then the ledger knows what may be started.
            is_written = self._ledger.write(all_of_it=self._stop_at is not None)
            if is_written and self._stop_at is None:
                with self.taking:
                    for order, plan, letter in self._starter.due():
                        with self._lock:
                            self._ask_for(order, plan, letter)
                    for waiting in self.warm.ready():
                        with self._lock:
                            self._ask_for(*waiting)
                for run_id, why in self.warm.reasons():
                    self._ledger.note(run_id, {"why": why})
            self._starter.write_off()

    def _wait(self) -> None:
        """Waits until something has happened, and handles it."""
        with self._lock:
            self._polled = tuple(self._keepers.all())
            keepers = {keeper.fileno(): keeper for keeper in self._polled}
        poll = select.poll()
        for descriptor in (self._wake, *keepers, *self._unowned):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(self._pause_ms()):
            if descriptor in keepers:
                self._read_messages(keepers[descriptor])
            elif descriptor in self._unowned:
                self._unowned_ended(self._unowned.pop(descriptor))
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
        return not (open_ or self._to_find or self._ledger.behind or self._starter.is_writing_off)

    def _pause_ms(self) -> float | None:
        now = time.monotonic()
        is_behind = self._ledger.behind or self._starter.is_writing_off
        pauses = [self._ledger.writes_in_s] if is_behind else []
        pauses += [_LOOK_AGAIN_S] if self._unowned else []
        pauses += [at - now for at, _ in self._later]
        if self._stop_at is not None:
            pauses.append(self._stop_at - now)
        else:
            pauses += [max(at - now, self._ledger.pause_s) for at in self._starter.asks_at()]
            with self._lock:
                pauses += [child.opens_by - now for child in self._children.values() if child.opens_by]
        return 1 + 1000 * max(0.0, min(pauses)) if pauses else None

    # -- messages of the keeper -----------------------------------------------------------------------------

    def _read_messages(self, keeper: Keeper) -> None:
        try:
            heard = keeper.read_messages()
        except KeeperGone:
            self._lose_keeper(keeper)
            return
        for message in heard:
            child = self._children.get(message.get("run", ""))
            if child is None:
                continue  # another monitor's: a keeper sends all its messages to all its monitors
            if message["say"] == "started":
                self._started(child, message)
            elif message["say"] == "ended":
                self._ended(child, message)
            elif message["say"] == "failed":
                self._failed(child, message)
            elif message["say"] == "later":
                self._start_later(child, message["error"])
            elif message["say"] == "taken":
                child.keeper = None
                self._to_find.append(child)

    def _start_later(self, child: Child, why: str) -> None:
        """Tries a start again later that failed for lack of disk space or the like."""
        self._seldom.warning("no program can be started now, it is tried again", error=why)
        if child.directory != child.base:  # its process is to supervise what an earlier one left
            child.directory = run_directory.all_of(child.base)[-1]
            self._later.append((time.monotonic() + _LOOK_AGAIN_S, child))
        else:
            self._start_again(child, f"not started, tried again when there is room: {why}")

    def _start_again(self, child: Child, why: str) -> None:
        """Holds a run again that never became a process, so that it is started in its turn."""
        with self._lock:
            self._children.pop(child.run_id, None)
        self.warm.ended(child.run_id)
        self._starter.put_back(child.order, why)

    def _lose_keeper(self, keeper: Keeper) -> None:
        with self._lock:
            self._keepers.lose(keeper)
            kept = [child for child in self._children.values() if child.keeper is keeper]
        log.error("the keeper has ended", keeper=keeper.name, runs=[child.run_id for child in kept])
        for child in kept:
            child.keeper, child.kept_by, child.may_be_unstarted = None, keeper.name, not child.pid
            self._to_find.append(child)

    def _started(self, child: Child, message: Mapping[str, Any]) -> None:
        argv = child.plan.argv if child.plan else []
        self._runs(child, message["pid"], message["start_ms"], argv)
        program = argv[0] if argv else ""
        log.info("program started", run=child.run_id, pid=child.pid, queue=child.trigger.q_name, program=program)

    def _runs(self, child: Child, pid: int, start_ms: int, argv: list[str]) -> None:
        """Records that a run has a process; from here on it is to open its queue in time."""
        child.pid = pid
        launcher = self.launchers.get(child.trigger.appl_type)
        if launcher is not None and child.trigger.appl_type == ApplType.SPARK:
            self._poller.follow(child.run_id, lambda: launcher.lead(child.order, child.base, child.pid))
        if child.directory != child.base:  # it began with its first process
            self._ledger.note(child.run_id, {"pid": pid}, _MAY_WAIT_S)
            return
        if child.order.process.open_wait_s:
            child.opens_by = time.monotonic() + child.order.process.open_wait_s
        known: RunFields = {"argv": argv, "directory": str(child.base)}
        known["user"] = child.order.process.run_as or own_user()
        self._ledger.note(child.run_id, run_changes.started(pid, start_ms, **known), _MAY_WAIT_S)

    def _ended(self, child: Child, message: Mapping[str, Any]) -> None:
        if int(message["status"]) < 0 and self._continues(child, message, ends=bool(message["why"])):
            return
        message = {**message, **(child.ended_as or {})}
        tail = unix.tail(child.directory, self._errors_of(child.trigger))
        code, by = int(message["status"]), str(message["why"])
        begun: RunFields = (
            {} if child.pid else run_changes.started(message["pid"], message["start_ms"], directory=str(child.base))
        )
        child.pid = message["pid"]
        limit_s = message.get("limit_s", 0) if child.directory == child.base else self._limit_s(child)
        lost = self.warm.server_loss(child.run_id)
        ended_by = {
            protocol.TIME_LIMIT: f"its time limit of {limit_s:g} s",
            protocol.NOT_OPENED: "its monitor, since it had not opened its queue in "
            f"{child.order.process.open_wait_s} s",
            protocol.STOPPED: "its monitor's stop",
            protocol.SERVER_LOST: f"the loss of its Spark Connect server{lost and f': {lost}'}",
            protocol.KEEPER_ENDED: "its keeper's stop",
            protocol.CANCELLED: "",  # the ledger holds the user that cancelled it
        }.get(by, by)
        was_stopped = by in (protocol.STOPPED, protocol.KEEPER_ENDED, protocol.CANCELLED)
        reported, unknown, _ = self._launcher_fields(child)
        fields = run_changes.exited(code, tail, message["end_ms"], ended_by, was_stopped=was_stopped)
        if unknown:
            fields |= run_changes.unknown(f"{fields['why']}; {unknown}", tail, message["end_ms"])
        self._close(child, begun | reported | fields)
        if (launcher := self.launchers.get(child.trigger.appl_type)) is not None:
            launcher.tend()

    def _launcher_fields(self, child: Child) -> tuple[RunFields, str, str]:
        """Returns what its launcher read from its output: record fields, why its end is not known, its status."""
        launcher = self.launchers.get(child.trigger.appl_type)
        fields = dict(launcher.record_fields(child.order, child.base)) if launcher is not None else {}
        unknown, status = fields.pop("unknown", ""), fields.pop("status", "")
        return cast("RunFields", fields), unknown, status

    def _continues(self, child: Child, message: Mapping[str, Any], *, ends: bool) -> bool:
        """Starts a process to supervise what a killed one left elsewhere, or to end it; returns whether it did."""
        launcher = self.launchers.get(child.trigger.appl_type)
        before = child.directory
        if launcher is None or child.ended_as is not None or len(run_directory.all_of(child.base)) > _MOST_AGAIN:
            return False
        ends = ends or child.run_id in self._cancel or self._ends_runs
        try:
            plan = launcher.again(child.order, child.base, ends=ends)
            if plan is None:
                return False
            limit_s = self._limit_s(child)
            start_ms = (run_directory.read(child.base) or {}).get("start_ms", now_ms())
            left_s = max(1.0, limit_s - (now_ms() - start_ms) / 1000) if limit_s and not ends else 0.0
            child.directory = run_directory.next_after(before, child.base)
            child.plan, child.pid, child.kill_at, child.ends_by = plan, 0, 0.0, 0.0
            child.ended_as = {name: message[name] for name in ("status", "why") if name in message} if ends else None
            with self._lock:
                self._have_started(child, plan, left_s)
        except LaunchError as error:
            log.error("what a run left elsewhere is not supervised", run=child.run_id, error=str(error))
            return False
        except OSError as error:  # no keeper now
            self._seldom.warning("no program can be started", error=str(error))
            child.directory, child.ended_as = before, None
            self._later.append((time.monotonic() + _LOOK_AGAIN_S, child))
            return True
        log.warning("a killed process is replaced to supervise what it left", run=child.run_id, ends=ends)
        return True

    def _limit_s(self, child: Child) -> float:
        """Returns how long a run may take, in seconds (0: no limit)."""
        return child.order.process.time_limit_s or self.limits.time_limit_s

    def _failed(self, child: Child, message: Mapping[str, Any]) -> None:
        """Notes that no program could be started: the trigger message goes to the dead-letter queue."""
        if child.directory != child.base:  # one had run before
            self._end_unknown(child, f"no process could be started for what it left elsewhere ({message['error']})")
            return
        why = message["error"]
        if message["errno"] and child.plan is not None:
            why = unix.why_not(message["errno"], child.plan.argv[0], child.plan.working_directory)
        self._starter.begin_write_off(child.order, why, child.letter)
        with self._lock:
            del self._children[child.run_id]
        self.warm.ended(child.run_id)

    def _close(self, child: Child, fields: RunFields) -> None:
        log.info("program ended", run=child.run_id, pid=child.pid, how=fields["why"])
        self._poller.forget(child.run_id)
        self._ledger.note(child.run_id, fields)
        self._starter.look_again()
        with self._lock:
            self._children.pop(child.run_id, None)
        self.warm.ended(child.run_id)

    def _errors_of(self, trigger: TriggerMessage) -> tuple[str, ...]:
        """Returns the output files that show why such a program failed."""
        launcher = self.launchers.get(trigger.appl_type)
        return launcher.errors if launcher else (STDERR,)

    # -- without a keeper -----------------------------------------------------------------------------------

    def _find(self, child: Child) -> None:
        """Finds out what became of a run, and records it or supervises it."""
        if self._children.get(child.run_id) is not child:
            return
        match find(child, self._there):
            case Exited(message):
                (self._ended if "status" in message else self._failed)(child, message)
            case KeptBy(keeper, pid, start_ms, argv):
                child.keeper = keeper
                if pid:
                    self._runs_on(child, pid, start_ms, argv)
            case Unowned(pid, pidfd, start_ms, argv):
                child.pidfd = pidfd
                child.is_of_another_user = not is_its_own(pid, child.order.process.run_as)
                self._unowned[pidfd] = child
                child.ends_by = self._ends_by(child, start_ms or now_ms())
                self._runs_on(child, pid, start_ms or now_ms(), argv)
            case NotStarted():
                log.info("run taken up", run=child.run_id, state=RunState.DUE.value)
                self._start_again(child, "its program had not been started when its monitor or its keeper ended")
            case Lost(why):
                self._end_unknown(child, why)

    def _there(self, name: str) -> Keeper | None:
        try:
            with self._lock:
                return self._keepers.there(name)
        except OSError as error:
            log.error("a keeper cannot be asked", keeper=name, error=str(error))
            return None

    def _ends_by(self, child: Child, start_ms: int) -> float:
        """Returns when the time limit of a program ends whose keeper has died, by time.monotonic()."""
        limit_s = self._limit_s(child)
        return time.monotonic() + limit_s - (now_ms() - start_ms) / 1000 if limit_s else 0.0

    def _runs_on(self, child: Child, pid: int, start_ms: int, argv: list[str]) -> None:
        self._runs(child, pid, start_ms, argv)
        log.info("program found running", run=child.run_id, pid=pid)

    def _unowned_ended(self, child: Child) -> None:
        self._signal(child, signal.SIGTERM)  # what it left in its process group; its keeper would have ended that
        os.close(child.pidfd)
        child.pidfd = -1
        self._end_unknown(child, "its keeper had ended before it", now_ms())

    def _end_unknown(self, child: Child, why: str, end_ms: int = 0) -> None:
        with suppress(OSError):  # no keeper was there to do it
            credentials.remove(child.directory)
        if self._continues(child, {}, ends=bool(child.kill_at)):
            return
        tail = unix.tail(child.directory, self._errors_of(child.trigger))
        reported, unknown, status = self._launcher_fields(child)
        if status:  # the run went on elsewhere, and its end there is known
            self._close(child, reported | run_changes.exited(int(status), tail, end_ms or now_ms()))
            return
        reason = f"{why}: {unknown or 'how it ended is not known'}"
        self._close(child, reported | run_changes.unknown(reason, tail, end_ms))

    # -- what is to end -------------------------------------------------------------------------------------

    def _end_what_is_to_end(self) -> None:
        """Ends every program on a stop, else those that were cancelled or are over a limit."""
        now = time.monotonic()
        with self._lock:
            children = list(self._children.values())
        for waiting in self.warm.drop_all() if self._stop_at is not None else self.warm.drop(self._cancel):
            self._starter.put_back(waiting.order, "it was not started before its monitor ended")
        for child in children:
            if self._ends_runs:
                self._end(child, protocol.STOPPED, now)
            elif child.run_id in self._cancel:
                self._end(child, protocol.CANCELLED, now)
            elif self.warm.server_loss(child.run_id):
                self._end(child, protocol.SERVER_LOST, now)
            elif child.ends_by and child.ends_by <= now:
                self._end(child, protocol.TIME_LIMIT, now)
            elif child.kill_at or (0 < child.opens_by <= now and not self._has_opened(child)):
                self._end(child, protocol.NOT_OPENED, now)

    def _has_opened(self, child: Child) -> bool:
        """Returns whether a run has opened its queue, asked once when the time is over.

        While the queue manager is away no program can open a queue, so the time begins again.
        """
        try:
            has_opened = self._ledger.has_opened(child.run_id)
        except LinkDown:
            child.opens_by = time.monotonic() + child.order.process.open_wait_s
            return True
        child.opens_by = 0.0
        return has_opened

    def _end(self, child: Child, why: str, now: float) -> None:
        """Sends SIGTERM to its group, SIGKILL after the grace; without a keeper its pidfd shows that it exists."""
        is_first, is_due = not child.kill_at, 0 < child.kill_at <= now
        if (child.keeper is None and child.pidfd < 0) or child.ended_as is not None:
            return  # it is being looked for, or being ended
        child.kill_at = child.kill_at or now + self.limits.grace_s
        if child.keeper is None and (is_first or is_due):
            self._signal(child, signal.SIGTERM if is_first else signal.SIGKILL)
        elif child.keeper is not None and is_first:
            with suppress(KeeperGone):
                child.keeper.stop(child.run_id, why, self.limits.grace_s)

    def _signal(self, child: Child, number: signal.Signals) -> None:
        """Signals the group of a program without a keeper: its claim names it, and its user may write claims."""
        if child.is_of_another_user:
            log.warning("a run's process is another user's: it is not signalled", run=child.run_id, pid=child.pid)
            return
        with suppress(OSError):
            os.killpg(child.pid, number)


@cache
def own_user() -> str:
    """Returns the user of programs whose definition names none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def is_its_own(pid: int, run_as: str) -> bool:
    """Returns whether a process belongs to the user that its definition names."""
    try:
        return run_directory.is_of_user(pid, pwd.getpwnam(run_as).pw_uid if run_as else os.geteuid())
    except KeyError:
        return False


def now_ms() -> int:
    """Returns milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
