"""The process that starts a monitor's programs and sees them end, whatever becomes of the monitor.

``python -m trigmon.keeper.main NAME [RUNS]`` with a listening socket as descriptor 3, as
:mod:`trigmon.launch.keeper_client` starts it: small, in a session of its own, told what to do in the words of
:mod:`trigmon.keeper.protocol`. It ends by itself when it has nothing to keep and nobody has been there for a while.

A process above it (:mod:`trigmon.keeper.subreaper`) sees to it that to kill a keeper loses nothing. A program that has
ended is waited for only when its end is written: until then it is left as it is, for that process and the next keeper,
also while a disk is full. The monitor is told at once.

One wait for all children instead of a pidfd for each: as their subreaper (prctl(2)) it becomes the parent of what its
programs leave behind too, of which it never heard, and a descriptor a run would bound how many may run. What a program
left behind is ended when the program has: SIGTERM, and SIGKILL after the run's grace. While the program runs, whatever
it made is its own business.

A run may be a copy of a process that is kept ready for it (:mod:`trigmon.keeper.fork_server`). A helper is a program
that serves others: it is kept as long as a monitor says so now and then (its lease) or there are programs, and it keeps
no keeper.

What it is told to start as a unit of systemd's is no child of its own (:mod:`trigmon.keeper.systemd_units`): it only
tells what systemd says, and writes it down. With the directory RUNS it first takes up the units of an earlier keeper of
its name.

Standard library only, and little of it: it is started while a launch waits.
"""

from __future__ import annotations

import ctypes
import math
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trigmon.keeper import protocol, run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.process import NO_ROOM, Kept, NotExecutedError, may_change_users, run_behind
from trigmon.keeper.run_directory import now_ms
from trigmon.keeper.subreaper import Known, Parent, Subreaper, children, open_process, parent_of, status_of, used_s
from trigmon.keeper.systemd_units import Unit, Units
from trigmon.keeper.termination import Run

if TYPE_CHECKING:
    from trigmon.keeper.fork_server import Fork, Forks

LINGER_S = 5.0
"""How long a keeper with nothing to keep waits for the next monitor."""

_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_TRY_AGAIN_S, _TRY_AGAIN_AT_MOST_S = 1.0, 60.0
_GRACE_S = 10.0


class Peer:
    """A monitor's connection. What it is told waits here when it does not listen: the keeper never waits for it."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.may_change_users = may_change_users(link)
        self.lines = protocol.Lines()
        self.out = b""
        link.setblocking(False)

    def tell(self, said: bytes) -> None:
        """Sends as much as it takes."""
        self.out += said
        with suppress(BlockingIOError):
            sent = self.link.send(self.out, socket.MSG_NOSIGNAL)
            self.out = self.out[sent:]

    def hear(self) -> tuple[list[protocol.Said], bool]:
        """All that it has said, and whether it is still there. What one that was killed said last counts as well."""
        heard: list[protocol.Said] = []
        try:
            while data := self.link.recv(1 << 16):
                heard += self.lines.feed(data)
        except BlockingIOError:
            return heard, True
        except OSError:  # it died with something unread
            pass
        except ValueError:  # it makes no sense
            report()
        return heard, False


class Keeper:
    """The runs in its keeping, and the monitors it tells of them."""

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        linger_s: float = LINGER_S,
        parent: Parent | None = None,
        known: Known | None = None,
    ) -> None:
        """``known`` are the runs that its ``parent`` has of an earlier keeper."""
        self._name = name
        self._listener = listener
        self._linger_s = linger_s
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, Peer] = {}
        self._asked: list[protocol.Said] = []
        self._runs: dict[str, Run] = {}
        self._units = Units(self, self._selector)
        self._forks: Forks | None = None
        self._leases: dict[str, float] = {}
        self._leaders: dict[int, Kept] = {}
        # Ends that could not be written yet; their processes are left unwaited for.
        self._unwritten: dict[str, tuple[Run, run_directory.Fields]] = {}
        self._write_again_at, self._write_pause_s = 0.0, _TRY_AGAIN_S
        self._parent = parent
        self._is_orphan = False
        self._graces: dict[str, float] = {}
        self._left: dict[int, float] = {}
        self._look_again_at = 0.0
        self._ends = False
        self._idle_since = time.monotonic()
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        if parent is not None:
            self._selector.register(parent.link, selectors.EVENT_READ, self._hear_parent)
        for pid, left in (known or {}).items():
            run = Kept(left, is_left=True)
            if "ended" in left:
                self._unwritten[run.run_id] = run, left["ended"]
                continue
            self._runs[run.run_id] = self._leaders[pid] = run
            self._lease(left)

    def take_up(self, runs_directory: Path) -> None:
        """Finds the units of an earlier keeper of this name; those that have ended by now are written down."""
        try:
            self._runs |= {run.run_id: run for run in self._units.adopt(runs_directory, self._name)}
            self._units.look_at_all()
        except OSError:
            report()

    def serve(self, signals: int) -> bool:
        """Works until there is nothing more to do. ``signals`` is readable when a signal has come.

        False: its parent has gone, and it is to be the next keeper's.
        """
        self._selector.register(signals, selectors.EVENT_READ, lambda: self._signalled(os.read(signals, 4096)))
        while not (self._is_orphan or self._is_over()):
            for key, _ in self._selector.select(self._pause_s()):
                key.data()
            self._do_asked()
            self._reap()
            self._keep_time()
        return not self._is_orphan

    def close(self) -> Known:
        """Lets go of everything but its runs, which are returned; ends that were not written the next keeper sees."""
        for peer in list(self._peers.values()):
            self._lose(peer)
        if self._forks:
            self._forks.close()
        self._units.close()
        self._selector.close()
        if self._parent is not None:
            self._parent.link.close()
        os.close(self._null)
        known = {run.pid: run.known for run in self._leaders.values() if not run.is_left}
        for run, fields in self._unwritten.values():
            if isinstance(run, Kept):
                known[run.pid] = run.known | ({"ended": fields} if run.is_left else {})
        return known

    # -- its parent -----------------------------------------------------------------------------------------

    def _hear_parent(self) -> None:
        heard = self._parent.hear() if self._parent is not None else None
        if heard is None:
            self._is_orphan = True
            return
        for said in heard:
            if run := self._leaders.get(int(said["pid"])):
                self._has_ended(run, int(said["status"]), float(said["cpu_s"]))

    def _say(self, say: str, **fields: Any) -> None:
        """What its parent is to know."""
        if self._parent is not None:
            self._parent.tell(say, **fields)

    # -- monitors -------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        # A monitor that died may have said something yet unheard: the next one's hello is an answer to that as well.
        for peer in list(self._peers.values()):
            self._hear(peer)
        self._do_asked()
        try:
            link, _ = self._listener.accept()
        except OSError:
            return
        peer = Peer(link)
        self._peers[link.fileno()] = peer
        self._selector.register(link, selectors.EVENT_READ, lambda: self._hear(peer))
        self._tell(protocol.line("hello", pid=os.getpid(), runs=[*self._runs, *self._unwritten]), peer)
        for _, fields in self._unwritten.values():
            self._tell(protocol.line("ended", **fields), peer)

    def _hear(self, peer: Peer) -> None:
        if peer.link.fileno() < 0:
            return  # lost since the selector named it
        heard, is_there = peer.hear()
        self._asked += [{**said, "may_change_users": peer.may_change_users} for said in heard]
        if not is_there:
            self._lose(peer)

    def _lose(self, peer: Peer) -> None:
        if self._peers.pop(peer.link.fileno(), None) is not None:
            self._selector.unregister(peer.link)
            peer.link.close()
            self._idle_since = time.monotonic()

    def _tell(self, said: bytes, *peers: Peer) -> None:
        for peer in peers or tuple(self._peers.values()):
            try:
                peer.tell(said)
            except OSError:
                self._lose(peer)
                continue
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.out else 0)
            key = self._selector.get_key(peer.link)
            if key.events != wanted:
                self._selector.modify(peer.link, wanted, lambda peer=peer: self._serve(peer))

    def _serve(self, peer: Peer) -> None:
        self._hear(peer)
        if peer.link.fileno() in self._peers:
            self._tell(b"", peer)

    # -- what they ask --------------------------------------------------------------------------------------

    def _do_asked(self) -> None:
        """All starts that have come in together are claimed with one sync; then the rest is done."""
        if not self._asked:
            return
        asked, self._asked = self._asked, []
        starts = [order for order in asked if order.get("say") == "start"]
        self._start_all([order for order in starts if self._guarded(self._claim, order)])
        for order in asked:
            if order.get("say") == "stop" and (run := self._runs.get(order["run"])):
                run.end(order["why"], float(order["grace_s"]))
            elif order.get("say") == "keep":
                self._lease(order)
            elif order.get("say") == "warm":
                self._warm(order)
            elif order.get("say") == "cool" and self._forks:
                self._forks.close()
        if any(order.get("say") == "bye" for order in asked):
            self._linger_s = 0.0 if len(self._peers) <= 1 else self._linger_s

    def _start_all(self, claimed: list[protocol.Said]) -> None:
        for runs_directory in {Path(order["directory"]).parent for order in claimed}:
            these = [order for order in claimed if Path(order["directory"]).parent == runs_directory]
            try:
                run_directory.make_durable(runs_directory)
            except OSError as error:
                for order in these:
                    self._fail(order, error)
                continue
            for order in these:
                self._guarded(self._start, order)

    def _guarded(self, act: Callable[[protocol.Said], bool], order: protocol.Said) -> bool:
        """Whether it could be done; what hinders one run hinders no other."""
        try:
            return act(order)
        except OSError as error:
            self._fail(order, error)
        except Exception as error:
            report()
            self._fail(order, error)
        return False

    def _claim(self, order: protocol.Said) -> bool:
        if self._ends:
            raise OSError("the keeper was told to end")
        if order.get("user") and not order["may_change_users"]:
            raise OSError("who asks for a program of another user must have the right to become that user itself")
        try:
            run_directory.make(Path(order["directory"]), self._name, marks=order.get("launcher") != protocol.SYSTEMD)
        except FileExistsError:
            self._tell(protocol.line("taken", run=order["run"]))
            return False
        return True

    def _start(self, order: protocol.Said) -> bool:
        if order.get("launcher") == protocol.SYSTEMD:
            self._runs[order["run"]] = self._units.start(order)
            return True
        if order.get("fork") and not order.get("user") and self._forks and self._forks.is_ready:
            from trigmon.keeper.fork_server import Fork

            fork = Fork(order)
            fork.start(self._null)
            self._runs[fork.run_id] = fork  # before it is begun: that may fail at once
            self._forks.start(fork)
            return True
        run = Kept(order)
        self._say("starts", **run.known)
        run.start(self._null)
        self._began(run)
        self._lease(order)
        return True

    def _began(self, run: Kept) -> None:
        """It has a process: its parent, the monitor and the claim are told."""
        self._runs[run.run_id] = self._leaders[run.pid] = run
        self._say("known", **run.known)
        self._tell(protocol.line("started", run=run.run_id, pid=run.pid, start_ms=run.start_ms))
        try:
            run_directory.note_start(run.directory, run.pid, run.start_ms, run.order["argv"])
        except OSError:  # it runs, and the next keeper is told; only who comes after two kills would have read it
            report()

    def _warm(self, order: protocol.Said) -> None:
        if self._forks is None:
            from trigmon.keeper.fork_server import Forks

            self._forks = Forks(self, self._selector)
        self._forks.warm(order["argv"], order["environment"])

    def _lease(self, order: protocol.Said) -> None:
        """A helper is kept for so long from now on, unless that is said again."""
        if order["run"] in self._runs and (lease_s := float(order.get("lease_s", 0))):
            self._leases[order["run"]] = time.monotonic() + lease_s

    def _fail(self, order: protocol.Said, error: Exception) -> None:
        if order["run"] in self._runs:
            return  # it runs; only its claim could not be completed
        directory = Path(order["directory"])
        self._say("failed")
        is_refused = isinstance(error, NotExecutedError)
        if not is_refused and isinstance(error, OSError) and error.errno in NO_ROOM and self._takes_back(directory):
            self._tell(protocol.line("later", run=order["run"], error=str(error)))
            return
        errno = (error.errno or 0) if is_refused and isinstance(error, OSError) else 0
        fields = {"run": order["run"], "errno": errno, "error": str(error), "end_ms": now_ms()}
        try:
            run_directory.note_exit(directory, fields)
        except OSError:  # a claim without a program: it is started again by who finds that
            report()
        self._tell(protocol.line("failed", **fields))

    def _takes_back(self, directory: Path) -> bool:
        """Whether nothing of a start is left."""
        return not directory.exists() or run_directory.withdraw(directory)

    # -- what the fork server makes -------------------------------------------------------------------------

    def forks_are_ready(self, pid: int) -> None:
        """See :class:`trigmon.keeper.fork_server.Heeds`."""
        self._tell(protocol.line("warm", pid=pid))

    def fork_starts(self, run: Fork) -> None:
        """See :class:`trigmon.keeper.fork_server.Heeds`."""
        self._say("starts", **run.known)

    def fork_started(self, run: Fork) -> None:
        """See :class:`trigmon.keeper.fork_server.Heeds`. It is known before it begins."""
        self._began(run)

    def fork_failed(self, run: Fork, error: Exception) -> None:
        """See :class:`trigmon.keeper.fork_server.Heeds`."""
        self._runs.pop(run.run_id, None)
        self._fail(run.order, error)
        self._idle_since = time.monotonic()

    # -- what systemd keeps ---------------------------------------------------------------------------------

    def unit_started(self, run: Unit) -> None:
        """See :class:`trigmon.keeper.systemd_units.Heeds`."""
        self._tell(protocol.line("started", run=run.run_id, pid=run.pid, start_ms=run.start_ms))
        with suppress(OSError):
            run_directory.note_start(run.directory, run.pid, run.start_ms, run.argv)

    def unit_failed(self, run: Unit, why: str) -> None:
        """See :class:`trigmon.keeper.systemd_units.Heeds`."""
        self._runs.pop(run.run_id, None)
        self._fail({"run": run.run_id, "directory": run.directory}, OSError(why))
        self._idle_since = time.monotonic()

    def unit_ended(self, run: Unit) -> None:
        """See :class:`trigmon.keeper.systemd_units.Heeds`."""
        self._ended(run, run.ended())

    def unit_lost(self, run: Unit) -> None:
        """See :class:`trigmon.keeper.systemd_units.Heeds`. Who asks what became of it finds that it is gone."""
        self._runs.pop(run.run_id, None)
        self._tell(protocol.line("taken", run=run.run_id))

    # -- ends -----------------------------------------------------------------------------------------------

    def _signalled(self, numbers: bytes) -> None:
        if signal.SIGTERM in numbers:
            self._ends = True
            for run in self._kept():  # units go on: the next keeper finds them
                run.end(protocol.KEEPER_ENDED, run.grace_s)

    def _reap(self) -> None:
        """Takes note of every child that has ended, its own and those it was left with."""
        has_ended = False
        for found in self._ended_children():
            has_ended = True
            run = self._leaders.get(found.si_pid)
            if run is not None:
                self._has_ended(run, status_of(found), used_s(found.si_pid))
            elif not (self._forks and self._forks.ended(found.si_pid)):
                os.waitpid(found.si_pid, os.WNOHANG)
                self._left.pop(found.si_pid, None)
        if has_ended:
            self._clear_up()

    def _ended_children(self) -> Iterator[Any]:
        """Each child that is to be waited for, but for those whose end is still to be written."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with suppress(ChildProcessError):
            while not self._unwritten and (found := os.waitid(os.P_ALL, 0, how)):
                yield found
        if self._unwritten:
            kept = {run.pid for run, _ in self._unwritten.values()}
            for pid in [pid for pid in children() if pid not in kept]:
                if found := os.waitid(os.P_PID, pid, how):
                    yield found

    def _has_ended(self, run: Kept, status: int, cpu_s: float) -> None:
        """A program has ended, and is still to be waited for."""
        self._leaders.pop(run.pid, None)
        self._graces[run.run_id] = time.monotonic() + run.grace_s
        if run.is_left and run.directory.exists() and not run_directory.has_begun(run.directory):
            self._runs.pop(run.run_id, None)  # a fork whose keeper died before it let it begin
            self._wait_for(run)
            self._tell(protocol.line("taken", run=run.run_id))
        else:
            self._ended(run, run.ended(status, cpu_s))
        if run.is_left:
            self._clear_up()

    def _ended(self, run: Run, fields: run_directory.Fields) -> None:
        self._runs.pop(run.run_id, None)
        self._leases.pop(run.run_id, None)
        if not self._is_written(run, fields):
            self._write_again_at = time.monotonic() + self._write_pause_s
        self._tell(protocol.line("ended", **fields))
        self._idle_since = time.monotonic()

    def _is_written(self, run: Run, fields: run_directory.Fields) -> bool:
        """Writes how a run ended; what could not be written is kept, and its process is not waited for."""
        try:
            run_directory.note_exit(run.directory, fields)
        except FileNotFoundError:
            pass  # somebody removed the directory: nothing is to be kept
        except OSError as error:
            report(f"how run {run.run_id} ended could not be written: {error}")
            self._unwritten[run.run_id] = run, fields
            return False
        self._wait_for(run)
        self._units.let_go(run.run_id)
        return True

    def _write_again(self, now: float) -> None:
        """Writes what could not be written; the pauses grow as long as it cannot."""
        unwritten, self._unwritten = self._unwritten, {}
        for run, fields in unwritten.values():
            if self._unwritten:
                self._unwritten[run.run_id] = run, fields  # one that cannot tells enough
            else:
                self._is_written(run, fields)
        grown = min(2 * self._write_pause_s, _TRY_AGAIN_AT_MOST_S)
        self._write_pause_s = grown if self._unwritten else _TRY_AGAIN_S
        self._write_again_at = now + self._write_pause_s

    def _wait_for(self, run: Run) -> None:
        """The process of a run whose end is written goes, by this one's hand or its parent's."""
        if isinstance(run, Kept):
            with suppress(ChildProcessError):
                os.waitpid(run.pid, os.WNOHANG)
            self._say("reap", pid=run.pid)

    def _kept(self) -> list[Kept]:
        """The runs that are, or are about to be, processes of this one's."""
        return [run for run in self._runs.values() if isinstance(run, Kept)]

    def _orphans(self) -> list[int]:
        """What programs have left behind."""
        server = self._forks.pid if self._forks else 0
        kept = {server, os.getpid(), *self._leaders, *(run.pid for run, _ in self._unwritten.values())}
        left = children(self._parent.pid) if self._parent is not None else ()
        return [pid for pid in (*children(), *left) if pid not in kept]

    def _clear_up(self) -> None:
        """Ends what ended programs left behind. What names no run is ended when none is left that could be its own."""
        now = time.monotonic()
        found = self._orphans()
        for pid in found:
            run_id = run_behind(pid, self._leaders)
            if run_id in self._runs or (not run_id and self._has_programs()):
                continue
            is_new = pid not in self._left
            kill_at = self._left.setdefault(pid, self._graces.get(run_id, now + _GRACE_S))
            if now >= kill_at:
                self._signal(pid, signal.SIGKILL)
            elif is_new:
                self._signal(pid, signal.SIGTERM)
                self._signal(pid, signal.SIGCONT)
        self._left = {pid: kill_at for pid, kill_at in self._left.items() if pid in found}
        if not found:
            self._graces.clear()
        self._look_again_at = now + _TRY_AGAIN_S

    def _signal(self, pid: int, number: signal.Signals) -> None:
        """To an orphan, for as long as it is one: this one's, or its parent's, who waits for those when it likes."""
        with suppress(OSError), open_process(pid) as process:
            if parent_of(pid) in (os.getpid(), self._parent.pid if self._parent else 0):
                signal.pidfd_send_signal(process, number)

    # -- time -----------------------------------------------------------------------------------------------

    def _keep_time(self) -> None:
        now = time.monotonic()
        for run in list(self._runs.values()):
            run.keep_time(now)
            if run.why and isinstance(run, Kept) and run.order.get("why") != run.why and run.pid:
                run.order = {**run.order, "why": run.why}
                self._say("why", pid=run.pid, why=run.why)
        if self._unwritten and now >= self._write_again_at:
            self._write_again(now)
        self._units.keep_up(now)
        if self._forks and self._forks.due_at and now >= self._forks.due_at:
            self._forks.keep_time(now)
        self._end_helpers(now)
        if now < self._look_again_at:
            return
        self._look_again_at = now + _TRY_AGAIN_S
        if self._graces or self._left:
            self._clear_up()

    def _end_helpers(self, now: float) -> None:
        """Helpers nobody asks for any more end, but not under the hands of programs."""
        if self._has_programs():
            return
        is_left = self._is_idle() and self._linger_s == 0
        for run_id, until in self._leases.items():
            if is_left or now >= until:
                self._leases[run_id] = math.inf
                self._runs[run_id].end(protocol.KEEPER_ENDED, self._runs[run_id].grace_s)

    def _pause_s(self) -> float | None:
        now = time.monotonic()
        pauses = [run.due_at - now for run in self._runs.values() if run.due_at]
        pauses += [until - now for until in self._leases.values() if until < math.inf and not self._has_programs()]
        pauses += [self._forks.due_at - now] if self._forks and self._forks.due_at else []
        if self._unwritten:
            pauses.append(self._write_again_at - now)
        if self._graces or self._left:
            pauses.append(self._look_again_at - now)
            pauses += [kill_at - now for kill_at in self._left.values() if kill_at > now]
        if self._units.try_again_at:
            pauses.append(self._units.try_again_at - now)
        if unheard_until := self._units.unheard_until:
            pauses.append(unheard_until - now)
        elif self._is_idle() and not self._runs:
            pauses.append(self._idle_since + self._linger_s - now)
        return max(0.0, min(pauses)) if pauses else None

    def _has_programs(self) -> bool:
        """Whether it keeps anything but helpers."""
        return len(self._runs) > len(self._leases)

    def _is_idle(self) -> bool:
        return not (self._has_programs() or self._peers or self._left or self._unwritten)

    def _is_over(self) -> bool:
        if self._units.unheard_until:
            return False
        if self._ends:
            return not (self._kept() or self._left or self._unwritten)
        return self._is_idle() and not self._runs and time.monotonic() >= self._idle_since + self._linger_s


def main() -> None:
    """The process: the parent of a keeper, which is a copy of it, or that keeper."""
    prctl = ctypes.CDLL(None).prctl
    # A monitor's unit may give it the right to change users. It is the keeper's then, and no program's.
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o077)
    listener = socket.socket(fileno=protocol.LISTENER)
    listener.set_inheritable(False)
    os.chdir("/")  # it keeps no file system busy
    # Handled and not ignored: what is ignored here would be ignored in every program too.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _hears)
    known: Known = {}
    while True:
        above, below = socket.socketpair()
        keeper = os.fork()
        (below if keeper else above).close()
        if keeper:
            status, known = _watch(keeper, above, known)
            if status == 0:
                return
            if status > 0:  # it failed, and may again
                time.sleep(_TRY_AGAIN_S)
        else:
            prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # no fork has it
            left = _keep(listener, below, known)
            if left is None:
                return
            known = left


def _watch(keeper: int, link: socket.socket, known: Known) -> tuple[int, Known]:
    """Watches a keeper; how it ended, and what is known of the runs that it leaves."""
    with _signals() as signals, link:
        parent = Subreaper(keeper, link, known)
        return parent.watch(signals), parent.known


def _keep(listener: socket.socket, link: socket.socket, known: Known) -> Known | None:
    """Is the keeper until that is over; when it is to be the next one's parent, what is known of its runs."""
    with _signals() as signals:
        keeper = Keeper(sys.argv[1], listener, parent=Parent(link), known=known)
        if sys.argv[2:]:
            keeper.take_up(Path(sys.argv[2]))
        return None if keeper.serve(signals) else keeper.close()


@contextmanager
def _signals() -> Iterator[int]:
    """What is readable when a signal has come, for this process alone."""
    signals, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    os.write(woken, bytes([signal.SIGCHLD]))  # for what came before
    try:
        yield signals
    finally:
        signal.set_wakeup_fd(-1)
        os.close(signals)
        os.close(woken)


def _hears(_number: int, _frame: Any) -> None:
    """The wake-up descriptor tells."""


if __name__ == "__main__":
    main()
