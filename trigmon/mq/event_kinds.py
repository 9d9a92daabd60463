"""Event messages: the attributes that ask for them, the queues they come to, and the one table of trigmon's events.

MQ's performance events are PCF on SYSTEM.ADMIN.PERFM.EVENT. trigmon's events are JSON objects on SYSTEM.TRIGMON.EVENT:
the fields of :data:`COMMON`, and those of the event's row in :data:`EVENTS`.
Sources: the manual's pages of queue depth events, queue service interval events, and ALTER QMGR.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from trigmon.mq.reasons import Reason

PERFORMANCE_EVENT_QUEUE: Final = "SYSTEM.ADMIN.PERFM.EVENT"
EVENT_QUEUE: Final = "SYSTEM.TRIGMON.EVENT"
EVENT_QUEUES: Final = frozenset({PERFORMANCE_EVENT_QUEUE, EVENT_QUEUE})
"""No event is about these queues: it would lead to the next."""
FORMAT_EVENT: Final = "MQEVENT"
LONGEST_TEXT: Final = 1024
"""Characters of each text of an event."""


class EventRule(IntEnum):
    """``MQEVR_*``: whether events of a kind are reported."""

    DISABLED = 0
    ENABLED = 1


class ServiceIntervalEvent(IntEnum):
    """``MQQSIE_*``: which service interval event of a queue is reported next, if any."""

    NONE = 0
    HIGH = 1
    OK = 2


class EventKind(NamedTuple):
    """One event: what it means, its fields beside the common ones, and the reason of MQ's event where there is one."""

    name: str
    means: str
    fields: tuple[str, ...]
    reason: Reason | None = None


COMMON: Final = {
    "event": "the name of the event",
    "at_ms": "when it happened, in milliseconds since 1970",
    "q_mgr_name": "the queue manager",
    "text": "one sentence for a person",
}
"""The fields that every event has."""

_OF_RUN = ("run_id", "q_name", "process_name", "attempt", "why")
_OF_PAUSE = ("what", "name", "by")
_OF_MOVED = ("q_name", "to_q_name", "msg_id", "backout_count", "why")
_OF_DEPTH = (
    *("q_name", "depth", "max_depth", "limit", "time_since_reset_s", "high_q_depth", "msg_enq_count", "msg_deq_count"),
)
_OF_INTERVAL = (
    *("q_name", "service_interval_ms", "time_since_reset_s", "high_q_depth", "msg_enq_count", "msg_deq_count"),
)

EVENTS: Final = {
    kind.name: kind
    for kind in (
        EventKind(
            "run_failed",
            "a program ended with a status other than 0, or by a signal",
            (*_OF_RUN, "exit_status", "signal", "last_line"),
        ),
        EventKind("run_could_not_start", "no program could be started", _OF_RUN),
        EventKind("run_end_unknown", "a program ended, and nobody saw how", _OF_RUN),
        EventKind(
            "moment_not_started",
            "a moment of a schedule came, and a condition did not hold",
            ("name", "moment_ms", "why"),
        ),
        EventKind("queue_held", "the breaker holds a queue: nothing is started for it", ("q_name", "why")),
        EventKind("queue_resumed", "a queue that the breaker held is resumed", ("q_name", "by")),
        EventKind("starting_paused", "an operator paused a queue, a process or everything", (*_OF_PAUSE, "reason")),
        EventKind("starting_resumed", "an operator resumed it", _OF_PAUSE),
        EventKind("message_put_aside", "a message that was backed out too often, or rejected, was moved", _OF_MOVED),
        EventKind("message_discarded", "such a message was discarded, as its sender had asked", _OF_MOVED),
        EventKind(
            "dead_letter",
            "messages came to the dead-letter queue in another way; why the last of them did",
            ("q_name", "count", "reason_name", "why"),
        ),
        EventKind("trigger_message_dropped", "a trigger message found no place", ("q_name", "why")),
        EventKind("message_dropped", "a report, or a dead letter, found no place", ("q_name", "why")),
        EventKind("message_damaged", "a damaged message was set aside", ("q_name", "msg_id")),
        EventKind("queue_depth_high", "a put made a queue as deep as QDEPTHHI says", _OF_DEPTH, Reason.Q_DEPTH_HIGH),
        EventKind("queue_depth_low", "a get made a queue as empty as QDEPTHLO says", _OF_DEPTH, Reason.Q_DEPTH_LOW),
        EventKind("queue_full", "a put was refused: the queue is full", _OF_DEPTH, Reason.Q_FULL),
        EventKind(
            "service_interval_high",
            "no get came within QSVCINT",
            _OF_INTERVAL,
            Reason.Q_SERVICE_INTERVAL_HIGH,
        ),
        EventKind("service_interval_ok", "a get came within QSVCINT", _OF_INTERVAL, Reason.Q_SERVICE_INTERVAL_OK),
        EventKind("puts_refused", "the disk is nearly full: puts are refused", ("free_bytes", "reserve_bytes")),
        EventKind("puts_allowed", "puts are allowed again", ("free_bytes", "reserve_bytes")),
        EventKind("monitor_gone", "no monitor reads the initiation queue of a queue that triggers", ("q_name",)),
        EventKind("monitor_back", "a monitor reads it again", ("q_name",)),
        EventKind(
            "member_lost", "a member of the group died, and another one backed out its work", ("member", "group")
        ),
    )
}
"""By name."""
