"""Processes of this machine, by the run they belong to."""

from __future__ import annotations

from trigmon.launch import claims


def of_run(run_id: str) -> list[int]:
    """The process ids of all that a run's program has started and that still run."""
    return [pid for pid in claims.all_processes() if claims.run_of(pid) == run_id and claims.start_ticks(pid)]
