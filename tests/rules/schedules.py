"""A queue manager with a schedule, for the tests of what schedules start."""

from __future__ import annotations

from typing import Any

from trigmon.mq.calls import Display, Status
from trigmon.testing import INITIATION_Q, InMemory

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
OBJECTS = f"""
    DEFINE PROCESS(P) APPLICID('python total.py')
    DEFINE QLOCAL(Q) PROCESS(P) INITQ({INITIATION_Q}) DEFPSIST(YES)
"""


def with_schedule(mq: InMemory, *, name: str = "S", **attributes: Any) -> None:
    mq.mqsc(OBJECTS)
    mq.define(name, "SCHEDULE", **attributes)


def row(mq: InMemory, name: str = "S") -> dict[str, Any]:
    return next(row for row in mq._command(Display(object_type="SCHEDULE")).rows if row["name"] == name)


def started(mq: InMemory) -> int:
    return len(mq.triggers())


def set_wall_clock(mq: InMemory, ahead_ms: int) -> None:
    mq._stage._clock.wall_ahead_ms = ahead_ms


def away_from(mq: InMemory, ms: int) -> None:
    """Stops the queue manager for so long."""
    member = mq._stage._q_mgrs["QM1"]
    mq._cut_off()
    member.cut_off()
    mq._stage._clock.advance(ms)
    member.start()
    mq._stage._has_started("QM1")
    mq._come_back()


def needs_attention(mq: InMemory) -> list[tuple[str, str]]:
    found = mq._command(Status()).values["attention"]
    return [(each["kind"], each["name"]) for each in found if each["what"] == "schedule"]
