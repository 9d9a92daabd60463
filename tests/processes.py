"""Processes of this machine, by the run they belong to."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from trigmon.keeper import run_directory

CLOCK_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def of_run(run_id: str) -> list[int]:
    """Returns the process ids of all that a run's program has started and that still run."""
    return [
        pid
        for pid in run_directory.all_processes()
        if run_directory.run_of(pid) == run_id and run_directory.start_ticks(pid)
    ]


def end_all_of(home: Path) -> None:
    """Kills the programs and keepers of this TRIGMON_HOME: a run goes on where its queue manager has ended."""
    for pid in run_directory.all_processes():
        if run_directory.variable_of(pid, "TRIGMON_HOME") == str(home):
            with suppress(ProcessLookupError):  # one that ended meanwhile
                os.kill(pid, signal.SIGKILL)


def is_there(pid: int) -> bool:
    """Returns whether a process still runs; one that has ended and is not waited for does not."""
    return bool(run_directory.start_ticks(pid))


def stat_of(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat from the state on, which proc(5) numbers from 3."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def parent_of(pid: int) -> int:
    """Returns the process id of a process's parent."""
    return int(stat_of(pid)[1])


def cpu_seconds(pid: int) -> float:
    """Returns what a process has spent so far, in user and kernel."""
    return sum(map(int, stat_of(pid)[11:13])) * CLOCK_TICK_S


def cpu_seconds_of_all(root: int) -> float:
    """Returns what a process and all below it have spent so far, those that have ended included."""
    fields: dict[int, list[int]] = {}
    for pid in run_directory.all_processes():
        with suppress(OSError):  # one that ended meanwhile
            words = stat_of(pid)
            fields[pid] = [int(words[1]), *map(int, words[11:15])]
    family = {root}
    while more := {pid for pid, (parent, *_) in fields.items() if parent in family} - family:
        family |= more
    return sum(sum(fields[pid][1:]) for pid in family & fields.keys()) * CLOCK_TICK_S
