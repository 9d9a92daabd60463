"""What a run's record tells whoever decides about it: where it waits, whether it has ended, that it is to be ended."""

from __future__ import annotations

from trigmon.mq.run_states import OPEN, WITH_PROGRAM
from trigmon.rules.model.changes import WriteRun


def line_of(record: dict[str, object]) -> tuple[str, str, str]:
    """The line a run waits in: its initiation queue, its slot, its queue."""
    return str(record.get("initiation_q", "")), slot_of(record), str(record.get("q_name", ""))


def slot_of(record: dict[str, object]) -> str:
    """What instances are counted by: the process, or the program where a trigger message names no process."""
    return str(record.get("process_name") or record.get("appl_id") or "")


def is_being_cancelled(record: dict[str, object]) -> bool:
    """Whether a run's monitor is still to end it."""
    return record.get("state") in WITH_PROGRAM and bool(record.get("cancelled_by"))


def has_ended(record: dict[str, object]) -> bool:
    """Whether it is over; a record without a state is not."""
    return bool(record.get("state")) and record["state"] not in OPEN


def written(record: dict[str, object], now: int, before: dict[str, object] | None = None) -> WriteRun:
    """The change. Where nobody saw when it ended, it ended when that was written down."""
    end = record.get("end_ms")
    ended_ms = (end if isinstance(end, int) and 0 < end < 2**63 else now) if has_ended(record) else 0
    return WriteRun(str(record["run_id"]), record, ended_ms, before=before)
