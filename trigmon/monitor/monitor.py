"""Runs the trigger monitor as a process: its registration, connections, signals and end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from trigmon import paths
from trigmon.client.address import connect, default_address
from trigmon.client.connection import Connection
from trigmon.client.link import Link, LinkDown
from trigmon.keeper import protocol, systemd_bus
from trigmon.launch import capabilities, unix
from trigmon.launch.keeper_client import Keepers
from trigmon.launch.launch_plan import LaunchPlan
from trigmon.launch.launchers import launchers
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.warm.connect_server import Serving, Shelf
from trigmon.log import logger, say_always
from trigmon.monitor.bridge_threads import BridgeThreads
from trigmon.monitor.child_process import Limits
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.output_cleanup import Sweeper
from trigmon.monitor.programs import Programs
from trigmon.monitor.registration import Registration
from trigmon.monitor.remote_looks import NO_BRIDGES, Bridges
from trigmon.monitor.run_traces import RunTraces
from trigmon.monitor.spark_servers.server_manager import Servers
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.monitor.watcher import Watcher
from trigmon.notify import ServiceManager

log = logger()
# How long a stopping monitor takes to release the sessions of runs that have ended.
_RELEASED_S = 5.0
DEFAULT_INITIATION_Q = "SYSTEM.DEFAULT.INITIATION.QUEUE"


class MonitorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a monitor is run with.

    ``limits`` hold for processes that define none, ``grants`` is what processes may ask for, ``data`` the queue
    manager's data directory (runs' output goes below it). Programs run on when the monitor ends, and the next monitor
    finds them; with ``stop_runs`` they are ended, unless the monitor ends because the process that started it has
    died. ``launcher`` is what programs are started as; ``class_archives`` is whether Spark jobs may have archives of
    classes made, ``connect`` holds the settings of its Spark Connect servers, ``traces`` is where spans are sent,
    ``bridges`` are the queue managers elsewhere whose trigger messages it serves as well.
    """

    initiation_q: str = DEFAULT_INITIATION_Q
    limits: Limits = Limits()
    grants: Grants | None = None
    data: str | Path | None = None
    stop_runs: bool = False
    launcher: str = protocol.PROCESS
    class_archives: bool = True
    connect: Serving = Serving()
    traces: str = ""
    bridges: Bridges = NO_BRIDGES


DEFAULTS = MonitorOptions()


def run(
    q_mgr: str | None = None,
    options: MonitorOptions = DEFAULTS,
    *,
    stop: threading.Event | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Runs a trigger monitor until SIGTERM or SIGINT, or until ``stop`` is set (then signals are left alone).

    ``q_mgr`` is a queue manager's name or address. ``ready`` is called whenever the initiation queue has been opened.
    Raises MQError when the initiation queue cannot be served, and OSError when there is no systemd to start programs.
    """
    if options.launcher == protocol.SYSTEMD and (why := systemd_bus.why_not()):
        raise OSError(f"monitor.launcher is systemd, and {why}")
    capabilities.put_away()
    service = ServiceManager()
    address = _absolute(q_mgr or default_address())
    parent = os.getppid()
    with _stopping(stop) as stopped:
        service.status("waits for its queue manager")
        link = Link(_connecting(address))
        name = _q_mgr_name(link, stopped)
        if name is None:
            return
        say_always(qmgr=name)
        directory = paths.data_directory(name, options.data)
        with Registration(directory / "monitors", options.initiation_q) as registration:
            monitor = Monitor(options, address, name, directory, registration)
            try:
                monitor.serve(link, service, stopped, ready)
            finally:
                service.stopping()
                link.close()
                # A daemon that started this monitor and died has a successor: its monitor needs this number and these
                # runs now.
                monitor.end(in_time=os.getppid() == parent)


class Monitor:
    """One registered monitor: its keepers, its programs, its Spark Connect servers, and the cleanup of output.

    All of them work, each in its thread or process, from the start of the object until :meth:`end`.
    """

    def __init__(
        self, options: MonitorOptions, address: str, q_mgr: str, directory: Path, registration: Registration
    ) -> None:
        self._options = options
        self._registration = registration
        # An address, where it is none of a queue manager by its name.
        given = address if ":" in address else ""
        warm = SessionAdmission(Shelf(directory), registration.name, options.connect, q_mgr)
        self._keepers = Keepers(directory / "monitors", registration.keeper, options.launcher)
        self._programs = Programs(
            LedgerWriter(Link(_connecting(address)), options.initiation_q, registration.name),
            launchers(directory, options.grants, options.connect, class_archives=options.class_archives),
            directory / "runs",
            self._keepers,
            options.limits,
            warm,
            RunTraces(q_mgr, options.traces),
            q_mgr_name=q_mgr,
            address=given,
            bridges=options.bridges,
        )
        self._bridges = BridgeThreads(
            options.bridges, _connecting(address), self._programs, options.initiation_q, registration.name
        )
        self._servers = Servers(
            *(warm, directory, given or q_mgr, self._programs.ask_keeper),
            lambda more: unix.environment(LaunchPlan(argv=[], environment=dict(more))),
            forks=options.launcher == protocol.PROCESS,
        )
        self._sweeper = Sweeper(_connecting(address), directory / "runs")

    def serve(self, link: Link, service: ServiceManager, stopped: threading.Event, ready: Callable[[], None]) -> None:
        """Serves the initiation queue until ``stopped``. Raises MQError where waiting would not help."""

        def opened() -> None:
            self._bridges.start()  # behind the runs that are on record
            service.ready()
            service.status(f"serves {self._options.initiation_q}")
            ready()

        def alive() -> None:
            service.beat()
            self._bridges.check()

        watcher = Watcher(
            link,
            self._programs,
            initiation_q=self._options.initiation_q,
            registration=self._registration,
            ready=opened,
            alive=alive,
            bridges=self._bridges.states,
        )
        try:
            watcher.serve(stopped)
        except BaseException:
            link.drop()  # in order it would commit: a trigger message that was got and not served must come back
            raise

    def end(self, *, in_time: bool) -> None:
        """Ends it; ``in_time``: no other monitor waits for its number and its runs, so they may be ended in order."""
        self._sweeper.stop()
        self._bridges.stop()
        end_runs = self._options.stop_runs
        log.info("monitor stops", ends_programs=end_runs and in_time)
        for child in self._programs.stop(end_runs=end_runs, in_time=in_time):
            log.warning("program left running", run=child.run_id, pid=child.pid)
        self._servers.stop(_RELEASED_S if in_time else 0.0)
        self._keepers.close(for_good=in_time)


def _connecting(address: str) -> Callable[[], Connection]:
    return lambda: connect(address, application="trigmon monitor", run_id="")


def _absolute(address: str) -> str:
    """Returns the address as a program in another directory may use it."""
    if not address.startswith("unix:"):
        return address
    return f"unix:{Path(address.removeprefix('unix:').removeprefix('//')).absolute()}"


def _q_mgr_name(link: Link, stop: threading.Event) -> str | None:
    """Waits for the queue manager and returns its name as it reports it; None when stopped before."""
    while not stop.is_set():
        try:
            return link.connection().q_mgr_name
        except LinkDown as down:
            if not down.may_pass:
                raise down.error from None
            log.warning("queue manager not reachable", error=str(down), again_in_s=round(link.pause_s, 1))
            stop.wait(link.pause_s)
    return None


@contextmanager
def _stopping(stop: threading.Event | None) -> Iterator[threading.Event]:
    """Yields the event that ends the monitor: the given one, else one that SIGTERM and SIGINT set."""
    if stop is not None:
        yield stop
        return
    event = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        # Not here: the signal may have come in the middle of this thread's own wait, which has the event's lock.
        threading.Thread(target=event.set, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
