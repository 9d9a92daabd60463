"""``trigmon run``: a queue manager behind its sockets, from the first file opened to the last reply sent.

One process and one loop, whose thread performs the turns. What asks the system (users, passwords) has threads of its
own. What the daemon consists of is put together here; what each part does stands in its own file: turns (calls and
replies), executor and greenlet_executor (who performs them), connection, listeners, daemon_children (the monitor),
timers, notify (the service manager).
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from functools import partial
from importlib.metadata import version
from typing import Any

from trigmon import log, paths
from trigmon.notify import ServiceManager, inherited_sockets
from trigmon.process_memory import give_back_freed_memory, tune_for_server
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.timed_work import JOBS
from trigmon.server.arrivals import Arrivals
from trigmon.server.connection_limits import Clients, Shares, room_for
from trigmon.server.daemon_children import Children, children_of
from trigmon.server.event_log import Logged
from trigmon.server.event_loop import EventLoop
from trigmon.server.executor import SLOW_S, OnTheLoop, Worker
from trigmon.server.exit_status import STOPPED, STORE_BROKEN, CannotStart
from trigmon.server.group_duties import Duties
from trigmon.server.listeners import Acceptor, UnixListener, is_local, open_to_all, tcp_listener
from trigmon.server.listeners import where as address_of
from trigmon.server.peer_identity import Authority
from trigmon.server.queue_manager_setup import QueueManagerSetup
from trigmon.server.store_setup import where
from trigmon.server.timers import Chore, Timers
from trigmon.server.turns import Turns
from trigmon.settings import Settings
from trigmon.store.port import Fenced, Lost

STATUS_S = 5.0
CLOCKS_S = 10.0
TLS_S = 2.0
DISK_S = 1.0
FAR_OFF_MS = 1000
"""A wall clock that is so far from the queue manager's own time is worth a line in the log."""


def run(settings: Settings, *, with_monitor: bool = True, accept_loss: bool = False) -> int:
    """Runs the queue manager in the foreground until it is asked to stop, and returns the exit status.

    0 after an orderly stop; 2 when the settings or definitions cannot work; 5 when another process has the data or
    the socket; 6 when the store has less than was acknowledged, unless ``accept_loss``; 70 when the store failed, and
    what became of the last calls is known only after the next start.
    """
    log.configure(settings.log.level, settings.log.format)
    tune_for_server()
    try:
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            return runner.run(Daemon(settings, with_monitor=with_monitor, accept_loss=accept_loss).serve())
    except CannotStart as error:
        log.logger(qmgr=settings.qmgr.name).error("the queue manager cannot start", why=str(error))
        return error.exit_status


class Daemon:
    """One queue manager, its sockets, and its monitor."""

    def __init__(self, settings: Settings, *, with_monitor: bool, accept_loss: bool = False) -> None:
        self._settings = settings
        self._with_monitor = with_monitor
        self._log = log.logger(qmgr=settings.qmgr.name)
        self._service = ServiceManager()
        self._over: asyncio.Future[int]
        self._children = Children()
        self._seldom = log.Seldom(self._log)
        server = settings.server
        self._authority = Authority(
            server.administrators, server.monitors, server.setters, has_accounts=settings.tls.listen is not None
        )
        self._arrivals = Arrivals(self._authority, self._seldom)
        self._unix: UnixListener | None = None
        self._off_wall_ms = 0
        self._open_to_all: list[str] = []
        event_log = Logged(self._log, lambda session: self._turns.session_failed(session), server.audit_file)
        self._setup = QueueManagerSetup(settings, self._service, self._log, event_log, accept_loss=accept_loss)
        self._worker: Worker
        self._stopped: asyncio.Future[bool]
        self._waited_s = 0.0
        self._lost: asyncio.Future[BaseException]

    async def serve(self) -> int:
        """Serves from the start to the end and returns the exit status. Raises CannotStart."""
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        # First of all: a daemon that is asked to stop while it starts stops in order as soon as it has started.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._asked_to_stop, number)
        self._children = children_of(self._settings, self._log, with_monitor=self._with_monitor)
        exporter = self._children.exporter
        # It reports a queue manager that waits for its database, too, and one that stops.
        if exporter:
            exporter.start()
        try:
            return await self._serve()
        finally:
            if exporter:
                await exporter.stop()

    async def _serve(self) -> int:
        manager = await self._setup.take_up(self._over, self._away)
        if manager is None:
            self._log.info("stopped", exit_status=STOPPED)
            return STOPPED
        try:
            self._turns = self._make_turns(manager)
            self._acceptor = Acceptor(self._sockets(), self._arrivals.welcome, self._seldom)
        except BaseException:
            if self._unix:
                self._unix.socket.close()
                self._unix.remove()
            manager.stop()
            raise
        timers = self._begin_life()
        self._acceptor.start()
        for child in (self._children.monitor, self._children.copies):
            if child:
                child.start()
        self._say_ready()
        status, timers = await self._live(timers)
        status = await self._end(status)
        timers.stop()
        return status

    # -- lives --------------------------------------------------------------------------------------------

    def _begin_life(self) -> Timers:
        """Looks after what was taken up from now on."""
        self._lost = self._loop.create_future()
        self._stopped = self._loop.create_future()
        self._arrivals.why_away = ""
        self._waited_s = 0.0
        chores = self._chores()
        if self._setup.half is not None:
            on_lost = self._manager.event_messages.lost_members.append
            chores += Duties(self._setup.half, self._turns, self._log, on_lost).chores()
        timers = Timers(chores)
        timers.start()
        self._compare_clocks()
        self._turns.go_on_scanning()
        return timers

    async def _live(self, timers: Timers) -> tuple[int, Timers]:
        """Serves until the end, the exit status. A member that has lost its group comes back as a new one."""
        while True:
            ends: list[asyncio.Future[Any]] = [self._over, self._lost]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not self._lost.done():
                return self._over.result(), timers
            timers.stop()
            self._let_go()
            try:
                manager = await self._setup.take_up(self._over, self._away)
            except CannotStart as error:
                self._log.error("the queue manager cannot come back", why=str(error))
                return error.exit_status, timers
            if manager is None:
                return self._over.result(), timers
            self._turns = self._make_turns(manager)
            timers = self._begin_life()
            self._say_ready()

    def _let_go(self) -> None:
        """Ends what belongs to the queue manager as it was taken up; none of it is used again."""
        self._worker.end()
        self._setup.let_go()

    def _group_lost(self, error: BaseException) -> None:
        """Leaves the group: another member backs out what was not committed, or this one when it comes back."""
        name, group = self._settings.qmgr.name, self._settings.group.name
        reason = str(error)
        if isinstance(error, Fenced):
            why = f"{name} was given up for dead by the group {group} and comes back as a new member: {reason}"
            self._log.error("fenced from the group; it comes back as a new member", group=group, why=reason)
        else:
            why = f"{name} has lost the database of the group {group} and comes back when that does: {reason}"
            self._log.error("the group's database is lost; it comes back with that", group=group, why=reason)
        self._turns.dismiss(why)
        self._away(why)
        if not self._lost.done():
            self._lost.set_result(error)

    def _away(self, why: str) -> None:
        """Reports to new clients why they cannot be served."""
        self._arrivals.why_away = why

    def _look_after_the_work(self) -> None:
        """Reports to new clients that calls wait for a database that does not answer."""
        if self._lost.done() or self._over.done():
            return
        busy_s = self._turns.busy_s
        if busy_s < SLOW_S:
            if self._waited_s:
                self._log.info("the database answers again", waited_s=round(self._waited_s, 1))
                self._waited_s = 0.0
                self._away("")
                self._say_status()
            return
        name, group = self._settings.qmgr.name, self._settings.group.name
        why = self._setup.waits_for()
        if not self._waited_s:
            self._log.warning("the database does not answer; calls wait for it", why=why, waited_s=round(busy_s, 1))
        self._waited_s = busy_s
        database = f"the database of the group {group}" if group else "its database"
        waits = f"{name} has been waiting for {database} for {busy_s:.0f} s{why and f' ({why})'}"
        self._away(f"{waits}, and so do its clients")
        self._service.status(self._arrivals.why_away)

    # -- the start ----------------------------------------------------------------------------------------

    def _make_turns(self, manager: QueueManager) -> Turns:
        server = self._settings.server
        room = room_for(server.max_connections, by_tls=self._settings.tls.address is not None)
        self._clients = Clients(manager, room, version("trigmon"), Shares.of(server))
        self._manager = manager
        manager.known_user, manager.sign_ticket = self._authority.known_user, self._arrivals.sign_ticket
        self._worker = self._make_worker()
        turns = Turns(
            manager,
            self._setup.clock,
            self._settings.server,
            self._clients,
            log=self._log,
            on_broken=self._broken,
            worker=self._worker,
            shared=self._setup.half,
        )
        self._arrivals.serve(turns, self._clients)
        return turns

    def _make_worker(self) -> Worker:
        half = self._setup.half
        if half is not None or self._setup.remote is not None:
            from trigmon.server.greenlet_executor import InGreenlets  # only with PostgreSQL its package is there

            if half is None:
                return InGreenlets()
            return InGreenlets(half.fileno(), half.was_notified, lambda: self._turns.look())
        if isinstance(self._loop, EventLoop):
            self._loop.poll_busily(self._settings.server.busy_poll_us / 1e6)
        return OnTheLoop()

    def _sockets(self) -> list[socket.socket]:
        """Returns the listening sockets: what a socket unit opened, and what is missing of our own."""
        server = self._settings.server
        listening = inherited_sockets()
        for one in listening:
            if not is_local(one):
                raise CannotStart(f"the socket unit listens on {address_of(one)}, and there is no authentication there")
        if not any(one.family == socket.AF_UNIX for one in listening):
            path = paths.socket_path(self._settings.qmgr.name)
            self._unix = UnixListener(path, server.socket_mode, server.socket_group, self._settings.qmgr.directory)
            listening.append(self._unix.socket)
        if server.tcp_address:
            listening.append(tcp_listener(server.tcp_address))
        if self._settings.tls.address:
            from trigmon.server.tls_arrivals import tls_arrivals  # only who listens by TLS pays for it

            self._arrivals.tls = tls_arrivals(self._settings, self._authority, self._log, self._seldom)
            listening.append(self._arrivals.tls.listening)
        return listening

    def _chores(self) -> list[Chore]:
        turns = self._turns
        chores = [Chore("look after connections", 1.0, turns.look_after)]
        chores.append(Chore("look after the work", 1.0, self._look_after_the_work))
        chores.append(Chore("serve the watches", 1.0, self._serve_watches))
        chores.append(Chore("compare the clocks", CLOCKS_S, self._compare_clocks))
        if self._arrivals.tls is not None:
            chores.append(Chore("look at the files of TLS", TLS_S, self._look_at_tls))
        chores.append(Chore("look at the disk", DISK_S, partial(turns.keep, self._setup.look_at_the_disk)))
        chores.append(Chore("give back memory", 60.0, give_back_freed_memory))
        if (remote := self._setup.remote) is not None:
            chores.append(Chore("say that it lives", remote.beat_s, partial(turns.keep, remote.beat)))
        chores += [Chore(job.name, job.period_ms / 1000, partial(turns.work, job)) for job in JOBS]
        if self._service.listens:
            chores.append(Chore("tell the service manager", STATUS_S, self._say_status))
        if self._service.watchdog_s:
            # On the loop that serves: a loop that hangs feeds nobody.
            chores.append(Chore("feed the watchdog", self._service.watchdog_s, self._service.alive))
        return chores

    def _say_ready(self) -> None:
        listens = [address_of(one) for one in self._acceptor.sockets]
        of_group = {"group": self._settings.group.name} if self._settings.group.name else {}
        tls = self._arrivals.tls
        tcp = [one for one in self._acceptor.sockets if one.family != socket.AF_UNIX]
        self._open_to_all = [open_to_all(one) for one in tcp if tls is None or one is not tls.listening]
        for why in self._open_to_all:
            self._log.warning("TCP is open to every local user", why=why)
        self._look_at_tls()
        self._log.info("ready", listens=listens, data=where(self._settings), pid=os.getpid(), **of_group)
        self._service.ready()
        self._say_status()

    def _look_at_tls(self) -> None:
        """Reads changed files of TLS, and says in status and log what an operator should know of them."""
        tls = self._arrivals.tls
        if tls is not None:
            tls.files.look()
        warnings = tls.warnings() if tls is not None else []
        for why in warnings:
            if why not in self._manager.warnings:
                self._log.warning("TLS needs attention", why=why)
        self._manager.warnings = [*self._open_to_all, *warnings]

    def _compare_clocks(self) -> None:
        """Says when the wall clock has moved: deadlines did not, and times shown are the queue manager's own."""
        off_ms = self._setup.clock.off_wall_ms()
        if abs(off_ms - self._off_wall_ms) < FAR_OFF_MS:
            return
        self._off_wall_ms = off_ms if abs(off_ms) >= FAR_OFF_MS else 0
        if self._off_wall_ms:
            self._log.warning("the wall clock is not where the queue manager's own time is", own_time_ahead_ms=off_ms)
        else:
            self._log.info("the wall clock is where the queue manager's own time is")

    def _serve_watches(self) -> None:
        self._children.serve_watches(self._manager.housekeeping.has_watches)

    def _say_status(self) -> None:
        if self._waited_s:
            return
        here, performed = len(self._clients.connections), self._turns.performed
        self._service.status(f"{here} connections, {performed} calls performed")

    # -- the end ------------------------------------------------------------------------------------------

    def _asked_to_stop(self, number: int) -> None:
        self._log.info("stopping", signal=signal.Signals(number).name)
        if not self._over.done():
            self._over.set_result(STOPPED)

    def _broken(self, error: BaseException) -> None:
        """Ends the service: the store failed, so the outcome of the turn is unknown and no call is answered."""
        if self._setup.half is not None and isinstance(error, Lost):
            self._group_lost(error)
            return
        if isinstance(error, Fenced):
            self._log.critical("another process took over; nothing of the last calls was done", why=str(error))
        else:
            self._log.critical("the store failed; what became of the last calls is unknown", exc_info=error)
        self._turns.drop()
        if not self._stopped.done():
            self._stopped.set_result(False)
        if not self._over.done():
            self._over.set_result(STORE_BROKEN)

    async def _end(self, status: int) -> int:
        """Lets go of everything, in order: the sockets, the children while they can still speak to us, the clients.

        The exit status: the store may fail at its very end, too.
        """
        self._service.stopping()
        self._acceptor.close()
        self._arrivals.close()
        for child in (self._children.monitor, self._children.watches, self._children.copies):
            if child:
                await child.stop()
        if status == STOPPED and not self._lost.done():
            until = self._loop.time() + self._settings.server.stop_timeout_s
            if await self._has_stopped():
                await self._see_off(until)
            else:
                status = STORE_BROKEN
        if self._unix:
            self._unix.remove()
        self._log.info("stopped", exit_status=status)
        self._service.close()
        return status

    async def _has_stopped(self) -> bool:
        """Returns whether the queue manager has come to its orderly end: a database may not answer any more."""
        stopped = self._stopped
        if not stopped.done():
            self._turns.stop(lambda: stopped.set_result(True))
        patience_s = max(1.0, self._settings.server.stop_timeout_s)
        ends: list[asyncio.Future[Any]] = [stopped, self._lost]
        await asyncio.wait(ends, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.done() and not self._lost.done():
            self._log.error("the database does not answer: units of work are backed out later", waited_s=patience_s)
            self._turns.drop()
        return stopped.done() and stopped.result()

    async def _see_off(self, until: float) -> None:
        """Gives the peers time to take the replies they are owed, what the database has left of it."""
        while self._clients.connections and self._loop.time() < until:
            await asyncio.sleep(0.01)
        self._turns.drop()
