"""Processes of this machine, by the run they belong to."""

from __future__ import annotations

from trigmon.keeper import run_directory


def of_run(run_id: str) -> list[int]:
    """Returns the process ids of all that a run's program has started and that still run."""
    return [
        pid
        for pid in run_directory.all_processes()
        if run_directory.run_of(pid) == run_id and run_directory.start_ticks(pid)
    ]
