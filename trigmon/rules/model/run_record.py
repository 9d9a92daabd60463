"""The change that writes a run's record, with the time of its end."""

from __future__ import annotations

from trigmon.mq.run import Run
from trigmon.rules.model.changes import WriteRun


def written(run: Run, now: int, before: Run | None = None) -> WriteRun:
    """Returns the change. A run whose end was not seen ended when that was written."""
    end_ms = run.outcome.end_ms
    ended_ms = (end_ms if 0 < end_ms < 2**63 else now) if run.is_ended else 0
    return WriteRun(run.run_id, run, ended_ms, before=before)
