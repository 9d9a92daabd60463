"""A keeper's fork server: a process with everything imported. A run is a fork of it, made in a few milliseconds.

It is started when a monitor asks for it (:mod:`trigmon.keeper.fork_servers`), reports when it is ready, and is used for
the runs that ask for it. Its program is :mod:`trigmon.spark.warm.job_fork_server` for jobs of Spark, and
:mod:`trigmon.keeper.warm_interpreter` for programs with WARM(YES). Runs are forked one after the other. A fork is a
child of the keeper, in a session of its own, and begins only when the keeper sends it the start byte: by then the claim
names it. So a run whose fork failed in any way has not begun, and is executed instead.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import time
from collections import deque
from contextlib import suppress
from typing import NamedTuple, Protocol

from trigmon.keeper import protocol, run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.process import ProgramProcess, output_files, start_process
from trigmon.keeper.run_directory import now_ms
from trigmon.keeper.spawn import limits_of_use, lower

LINK = "{link}"
"""The word of a server's arguments that stands for the descriptor of its socket."""

_READY_S = 120.0
_NOT_SOONER_S, _NOT_LATER_S = 5.0, 600.0
_MOST_FORKS = 1000
"""A server is replaced when it has made so many: no secret of its start, such as Python's hash seed, lasts for ever."""


class ServerStart(NamedTuple):
    """What a fork server is started by; ``answer_s`` is how long it may take to fork."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    working_directory: str = "/"
    answer_s: float = 10.0


class ForkEvents(Protocol):
    """Receives what became of the runs that the fork server was to make."""

    def forks_are_ready(self, pid: int) -> None:
        """Reports that the fork server, which has this process id, has its imports done."""

    def fork_starts(self, run: Fork) -> None:
        """Reports a run that is about to be executed without the fork server."""

    def fork_started(self, run: Fork) -> None:
        """Reports a run that has a process, which waits for :meth:`Fork.go`."""

    def fork_failed(self, run: Fork, error: Exception) -> None:
        """Reports a run that could neither be forked nor executed."""


class Fork(ProgramProcess):
    """A run that the fork server makes, or is to make; ``pid`` is 0 until then."""

    def __init__(self, order: protocol.Message) -> None:
        super().__init__(order)
        self._null = -1
        self._handed: list[int] = []
        self._go = -1

    def _made(self, null: int, out: int, err: int) -> tuple[int, int]:
        self._null = null
        wanted = {name: self.order[name] for name in ("argv", "environment", "working_directory")}
        wanted["words"], wanted["argv"] = wanted["argv"], self.order["fork"]
        wanted["mark"] = str(self.directory / run_directory.BEGUN)
        file = os.memfd_create("order", os.MFD_CLOEXEC)
        os.write(file, json.dumps(wanted).encode())
        os.lseek(file, 0, os.SEEK_SET)
        waits, self._go = os.pipe2(os.O_CLOEXEC)
        self._handed = [file, os.dup(out), os.dup(err), waits]
        return 0, 0

    def hand(self, link: socket.socket) -> None:
        """Sends the order and its descriptors to the fork server. Raises OSError."""
        try:
            socket.send_fds(link, [b"j"], self._handed)
        finally:
            self._drop_handed()

    def forked(self, pid: int) -> None:
        """Records the process and sets its limits before it begins. Raises OSError when it has ended already."""
        os.kill(pid, 0)
        self.pid, self.start_ms, self.is_forked = pid, now_ms(), True
        limits = self.order.get("limits") or {}
        for which, wanted in limits_of_use(limits):
            lower(pid, which, wanted)
        if files := limits.get("open_files", 0):
            lower(pid, resource.RLIMIT_NOFILE, (files, files))

    def go(self) -> None:
        """Lets the process begin. One that was to end meanwhile gets SIGTERM first."""
        if self.why:
            self.signal(signal.SIGTERM)
        with suppress(OSError):
            os.write(self._go, b"g")
        self.abandon()

    def execute(self) -> None:
        """Executes the program without the fork server; as :meth:`go` does, SIGTERM follows if it was to end meanwhile.

        Raises as start_process does.
        """
        self.abandon()
        self.is_forked = False
        with output_files(self.directory, os.O_APPEND) as (out, err):
            self.pid, self.ticks = start_process(self.order, self._null, out, err)
        self.start_ms = now_ms()
        if self.why:
            self.signal(signal.SIGTERM)

    def abandon(self) -> None:
        """Closes the pipe: a process that still waits for it ends."""
        self._drop_handed()
        if self._go >= 0:
            os.close(self._go)
            self._go = -1

    def _drop_handed(self) -> None:
        handed, self._handed = self._handed, []
        for descriptor in handed:
            os.close(descriptor)


class Forks:
    """One fork server, kept until :meth:`close`, and the runs that wait for it, the one that it is making first."""

    def __init__(self, wanted: ServerStart, events: ForkEvents, selector: selectors.BaseSelector) -> None:
        self.wanted = wanted
        self._events = events
        self._selector = selector
        self._server: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._lines = protocol.Lines()
        self._waiting: deque[Fork] = deque()
        self._answers_by = 0.0
        self._start_at = 0.0
        self._pause_s = _NOT_SOONER_S
        self._forks_made = 0
        self.is_ready = False

    @property
    def pid(self) -> int:
        """Its process, 0 when there is none."""
        return self._server.pid if self._server is not None else 0

    @property
    def due_at(self) -> float:
        """When :meth:`keep_time` is due next, by the monotonic clock; 0 when it is not."""
        return self._answers_by or (self._start_at if self._server is None else 0.0)

    @property
    def is_busy(self) -> bool:
        """Whether runs wait for it."""
        return bool(self._waiting)

    def start(self, run: Fork) -> None:
        """Asks for a process for a run. The run is forked, or executed instead, or fails: the events report which."""
        self._waiting.append(run)
        if len(self._waiting) == 1:
            self._hand_next()

    def keep_time(self, now: float) -> None:
        """Gives up a server that does not answer; starts one where it is wanted."""
        if self._answers_by and now >= self._answers_by:
            self._fail("the fork server does not answer")
        if self._server is None and now >= self._start_at:
            try:
                self._start()
            except OSError as error:
                self._fail(f"no fork server could be started: {error}")

    def ended(self, pid: int) -> bool:
        """Returns whether this child, which has ended, was the server; it is waited for then."""
        if self._server is None or pid != self._server.pid:
            return False
        self._fail(f"the fork server ended with {self._server.wait()}")
        return True

    def close(self) -> None:
        """Ends the server."""
        self._fail("")

    def _start(self) -> None:
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        link, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        number = str(its.fileno())
        try:
            self._server = subprocess.Popen(
                [number if word == LINK else word for word in self.wanted.argv],
                stdin=null,
                stdout=subprocess.DEVNULL,
                cwd=self.wanted.working_directory,
                env=dict(self.wanted.environment),
                start_new_session=True,
                pass_fds=(its.fileno(),),
            )
        except BaseException:
            link.close()
            raise
        finally:
            its.close()
            os.close(null)
        self._link = link
        self._lines = protocol.Lines()
        self._answers_by = time.monotonic() + _READY_S
        self._selector.register(link, selectors.EVENT_READ, self._receive)

    def _receive(self) -> None:
        if self._link is None:
            return  # given up since the selector named it
        try:
            data = self._link.recv(1 << 16)
            messages = self._lines.feed(data)
        except (OSError, ValueError):
            data, messages = b"", []
        if not data:
            self._fail("the fork server has closed its connection")
        for message in messages:
            self._handle(message)

    def _handle(self, message: protocol.Message) -> None:
        self._answers_by = 0.0
        if message.get("ready"):
            self.is_ready, self._forks_made, self._pause_s = True, 0, _NOT_SOONER_S
            self._events.forks_are_ready(self.pid)
        elif self._waiting and message.get("pid"):
            self._begin(self._waiting.popleft(), int(message["pid"]))
            self._forks_made += 1
        elif self._waiting and not message.get("old"):
            report(f"not forked: {message.get('error')}")
            self._execute(self._waiting.popleft())
        if message.get("old") or self._forks_made >= _MOST_FORKS:
            self._fail(str(message.get("old") or f"it has made {self._forks_made} processes"))
            self._start_at = time.monotonic()
        self._hand_next()

    def _begin(self, run: Fork, pid: int) -> None:
        try:
            run.forked(pid)
        except (OSError, ValueError):  # its limits could not be set
            report()
            self._execute(run)
            return
        self._events.fork_started(run)
        run.go()

    def _execute(self, run: Fork) -> None:
        self._events.fork_starts(run)
        try:
            run.execute()
        except (OSError, ValueError) as error:
            self._events.fork_failed(run, error)
            return
        self._events.fork_started(run)

    def _hand_next(self) -> None:
        if not self._waiting or not self.is_ready or self._answers_by:
            return
        assert self._link is not None
        self._answers_by = time.monotonic() + self.wanted.answer_s
        try:
            self._waiting[0].hand(self._link)
        except OSError as error:
            self._fail(f"the fork server accepts no order: {error}")

    def _fail(self, why: str) -> None:
        """Ends the server and executes the runs that waited for it; another is started by :meth:`keep_time`, later."""
        if why:
            report(f"{' '.join(self.wanted.argv)}: {why}")
        server, self._server = self._server, None
        if self._link is not None:
            self._selector.unregister(self._link)
            self._link.close()
            self._link = None
        if server is not None and server.returncode is None:
            server.kill()  # what it made has left its session
            server.wait()
        if not self.is_ready:  # it may never become so
            self._pause_s = min(2 * self._pause_s, _NOT_LATER_S)
        self.is_ready, self._answers_by = False, 0.0
        self._start_at = time.monotonic() + self._pause_s
        waiting, self._waiting = list(self._waiting), deque()
        for run in waiting:
            self._execute(run)
