"""The situation that is judged: what happened to a queue, with all that the conditions look at."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from trigmon.mq.attributes import Process, Schedule
from trigmon.rules.model.facts import recovers_all
from trigmon.rules.model.queue_facts import QueueFacts


class Happened(StrEnum):
    """The kinds of happening, each judged by its own occasions. A key for each put: text has a fast hash."""

    PUT = "a message was put"
    CLOSE = "a reader closed"
    CHANGE = "trigger attributes changed"
    INITIATION_PUT_ALLOWED = "puts became allowed on the initiation queue"
    GET_ALLOWED = "gets became allowed on the queue"
    MONITOR_OPENED = "a monitor opened the initiation queue"
    BACKSTOP = "the backstop looked"
    MAX_WAIT = "the longest wait was looked at"
    RESERVATION_LOST = "a reservation lost its last connection"
    MOMENT = "a moment of a schedule has come"


class Situation(msgspec.Struct, frozen=True):
    """The queue as it is when judged.

    For a put ``queue`` is as it was before the message, ``put_priority`` what the message was put with and
    ``priority`` what it counts as; ``arriving`` is how many messages it brings, more than one where the queue manager
    cuts it into segments. ``was`` holds the values that a change replaced, by attribute name.
    ``had_readers`` and ``had_monitor`` are the open-input counts before a close or an open. ``oldest_ms`` is when the
    oldest qualifying message arrived, where that was looked for. ``silenced_by`` is the queue manager through which a
    shared queue is open exclusively: no member triggers for it then. ``under_way`` is how many trigger messages and
    runs of the queue there are already, where RECOVER(ALL) asks. ``moment_ms`` is the moment of the ``schedule``; the
    queue of a schedule that names a process alone has no name, and nothing lies on it.
    """

    happened: Happened
    queue: QueueFacts
    process: Process | None
    initiation: QueueFacts | None
    trigger_interval_ms: int
    now: int
    priority: int = 0
    put_priority: int = 0
    arriving: int = 1
    was: dict[str, object] = {}
    had_readers: int = 0
    had_monitor: int = 0
    oldest_ms: int | None = None
    silenced_by: str = ""
    under_way: int = 0
    schedule: Schedule | None = None
    moment_ms: int = 0

    @property
    def recovers_all(self) -> bool:
        """Whether each message that is due a trigger message gets one, and not the queue one in all."""
        return self.happened is Happened.MONITOR_OPENED and recovers_all(self.queue, self.process)

    @property
    def due(self) -> int:
        """How many trigger messages are written when it fires: one in all, but with RECOVER(ALL)."""
        if not self.recovers_all:
            return 1
        return max(0, self.queue.waiting(self.queue.definition.trigger_msg_priority) - self.under_way)
