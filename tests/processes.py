"""Processes of this machine, by the run they belong to."""

from __future__ import annotations

from pathlib import Path

from trigmon.keeper import run_directory


def of_run(run_id: str) -> list[int]:
    """Returns the process ids of all that a run's program has started and that still run."""
    return [
        pid
        for pid in run_directory.all_processes()
        if run_directory.run_of(pid) == run_id and run_directory.start_ticks(pid)
    ]


def is_there(pid: int) -> bool:
    """Returns whether a process still runs; one that has ended and is not waited for does not."""
    return bool(run_directory.start_ticks(pid))


def stat_of(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat from the state on, which proc(5) numbers from 3."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def parent_of(pid: int) -> int:
    """Returns the process id of a process's parent."""
    return int(stat_of(pid)[1])
