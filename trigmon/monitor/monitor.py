"""Runs the trigger monitor as a process: its registration, connections, signals and end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from trigmon import paths
from trigmon.client.address import connect, default_address
from trigmon.client.connection import Connection
from trigmon.keeper import protocol, systemd_bus
from trigmon.launch import capabilities, unix
from trigmon.launch.keeper_client import Keepers
from trigmon.launch.launch_plan import LaunchPlan
from trigmon.launch.launchers import launchers
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.warm.connect_server import Serving, Shelf
from trigmon.log import logger, say_always
from trigmon.monitor.child_process import Limits
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.output_cleanup import Sweeper
from trigmon.monitor.programs import Programs
from trigmon.monitor.reconnection import Link, LinkDown
from trigmon.monitor.registration import Registration
from trigmon.monitor.spark_servers.server_manager import Servers
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.monitor.watcher import Watcher
from trigmon.notify import ServiceManager

log = logger()
# How long a stopping monitor takes to release the sessions of runs that have ended.
_RELEASED_S = 5.0
DEFAULT_INITIATION_Q = "SYSTEM.DEFAULT.INITIATION.QUEUE"


def run(
    q_mgr: str | None = None,
    *,
    initiation_q: str = DEFAULT_INITIATION_Q,
    limits: Limits | None = None,
    grants: Grants | None = None,
    data: str | Path | None = None,
    stop_runs: bool = False,
    launcher: str = protocol.PROCESS,
    class_archives: bool = True,
    connect_settings: Serving | None = None,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Runs a trigger monitor until SIGTERM or SIGINT, or until ``stop`` is set (then signals are left alone).

    ``q_mgr`` is a queue manager's name or address, ``limits`` hold for processes that define none, ``grants`` is what
    processes may ask for, ``data`` the queue manager's data directory (runs' output goes below it). ``ready``
    is called once the initiation queue is open.
    Programs run on when the monitor ends, and the next monitor finds them; with ``stop_runs`` they are ended, unless
    the monitor ends because the process that started it has died. ``launcher`` is what programs are started as;
    ``class_archives`` is whether Spark jobs may have archives of classes made, ``connect_settings`` holds the settings
    of its Spark Connect servers. Raises MQError when the initiation queue cannot be served, and OSError when there is
    no systemd to start programs.
    """
    if launcher == protocol.SYSTEMD and (why := systemd_bus.why_not()):
        raise OSError(f"monitor.launcher is systemd, and {why}")
    capabilities.put_away()
    service = ServiceManager()
    address = _absolute(q_mgr or default_address())
    parent = os.getppid()

    def connected() -> Connection:
        return connect(address, application="trigmon monitor", run_id="")

    def opened() -> None:
        service.ready()
        service.status(f"serves {initiation_q}")
        if ready is not None:
            ready()

    with _stopping(stop) as stopped:
        service.status("waits for its queue manager")
        link = Link(connected)
        name = _q_mgr_name(link, stopped)
        if name is None:
            return
        say_always(qmgr=name)
        directory = paths.data_directory(name, data)
        with Registration(directory / "monitors", initiation_q) as registration:
            ledger = LedgerWriter(Link(connected), initiation_q, registration.name)
            keepers = Keepers(directory / "monitors", registration.keeper, launcher)
            serving = connect_settings or Serving()
            warm = SessionAdmission(Shelf(directory), registration.name, serving, name)
            programs = Programs(
                ledger,
                launchers(directory, grants, serving, class_archives=class_archives),
                directory / "runs",
                keepers,
                limits or Limits(),
                warm,
                q_mgr_name=name,
                address=address if ":" in address else "",
            )
            servers = Servers(
                *(warm, directory, address if ":" in address else name, programs.ask_keeper),
                lambda more: unix.environment(LaunchPlan(argv=[], environment=dict(more))),
                forks=launcher == protocol.PROCESS,
            )
            sweeper = Sweeper(connected, directory / "runs")
            watcher = Watcher(
                link,
                programs,
                initiation_q=initiation_q,
                registration=registration,
                ready=opened,
                alive=service.beat,
            )
            try:
                watcher.serve(stopped)
            except BaseException:
                link.drop()  # in order it would commit: a trigger message that was got and not served must come back
                raise
            finally:
                service.stopping()
                link.close()
                sweeper.stop()
                # A daemon that started this monitor and died has a successor: its monitor needs this number and these
                # runs now.
                in_time = os.getppid() == parent
                _stop(programs, stop_runs=stop_runs, in_time=in_time)
                servers.stop(_RELEASED_S if in_time else 0.0)
                keepers.close(for_good=in_time)


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


def _stop(programs: Programs, *, stop_runs: bool, in_time: bool) -> None:
    log.info("monitor stops", ends_programs=stop_runs and in_time)
    for child in programs.stop(end_runs=stop_runs, in_time=in_time):
        log.warning("program left running", run=child.run_id, pid=child.pid)


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
