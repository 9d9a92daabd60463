"""Taking up what the ledger says is this monitor's: after its own restart, or after the queue manager was away.

A process id alone could be anybody's by now, so a process is only taken for a run's program when the environment it was
started with names the run and it leads its session; whatever the program started itself carries the same variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trigmon.launch import process
from trigmon.launch.port import Order
from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.monitor.link import Link
from trigmon.monitor.programs import Programs, now_ms
from trigmon.monitor.reading import recorded
from trigmon.mq.calls import ChangeRun

log = logger()
_PROC = Path("/proc")


def resume(
    link: Link, programs: Programs, monitor: str, order_of: Callable[[ledger.Fields], Order], *, of: str = ""
) -> None:
    """Goes through the open runs of ``monitor``, oldest first, but for those that ``programs`` has in hand.

    What runs is watched again, what waits is held again (a due run that was never started waits too). What ended
    unseen becomes unknown. ``of`` names another monitor, which is gone: its runs become this one's. Raises LinkDown.
    """
    for state in (ledger.STARTED, ledger.DUE, ledger.HELD):
        for record in reversed(list(recorded(link.call, {"monitor": of or monitor, "state": state}))):
            run_id = str(record["run_id"])
            if programs.knows(run_id):
                continue
            if of:
                link.call(ChangeRun(run_id=run_id, fields={"monitor": monitor}))
            if state == ledger.STARTED or (state == ledger.DUE and programs.directory(run_id).exists()):
                _watch(link, programs, record)
            else:
                programs.hold(order_of(record))
                log.info("run taken up", run=run_id, state=state)


def _watch(link: Link, programs: Programs, record: ledger.Fields) -> None:
    """Watches a program that an earlier monitor started, or writes down that it is gone."""
    run_id, trigger = str(record["run_id"]), ledger.trigger_of(record)
    pid = int(record["pid"]) or find_program_of(run_id)
    pidfd = open_pid(pid, run_id) if pid else None
    if pid and pidfd is not None:
        programs.adopt(run_id, trigger, pid, pidfd, int(record["start_ms"]) or now_ms())
        log.info("program found running", run=run_id, pid=pid)
        return
    tail = process.tail(programs.directory(run_id), programs.errors_of(trigger))
    why = "ended while its monitor was away" if pid else "its monitor ended in the moment of starting it"
    link.call(ChangeRun(run_id=run_id, fields=ledger.unknown(f"{why}: how is not known", tail)))
    log.warning("program not found", run=run_id, why=why)


def is_program_of(pid: int, run_id: str) -> bool:
    """Whether this process is alive, is the run's program, and may be looked at by us."""
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return f"TRIGMON_RUN={run_id}".encode() in variables and os.getsid(pid) == pid
    except OSError:
        return False


def find_program_of(run_id: str) -> int | None:
    """The process id of the run's program, None when it does not run."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return next((pid for pid in pids if is_program_of(pid, run_id)), None)


def open_pid(pid: int, run_id: str) -> int | None:
    """A file descriptor that becomes readable when the run's program ends; None when it has ended already."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if is_program_of(pid, run_id):
        return descriptor
    os.close(descriptor)
    return None
