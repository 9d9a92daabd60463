"""Enumerations of schedules and watches, which are ours; as those of :mod:`trigmon.mq.enums`."""

from __future__ import annotations

from enum import IntEnum


class OnlyIf(IntEnum):
    """Ours: what a schedule asks of its queue besides."""

    NONE = 0
    MESSAGES = 1


class Missed(IntEnum):
    """Ours: what is started for a schedule's moments that passed while nothing could be started."""

    ONCE = 0
    SKIP = 1
    ALL = 2


class Content(IntEnum):
    """Ours: what the message of a file that arrived holds: where the file is, or its bytes."""

    REFERENCE = 0
    BODY = 1
