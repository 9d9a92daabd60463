"""What a person sees of a value in a table: a moment with its age, an id as short as it is unique. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from trigmon.mq.quantities import span

SHORTENED = "…"
"""Stands for the beginning of an id that was left out; two dots are understood for it."""
_SHORTEST = 6


def age(moment: str, now: datetime) -> str:
    """Returns how long ago a moment in RFC 3339 was: ``40 s``, ``12 min``, ``3 h``, ``5 d``, or ``in 5 min``."""
    seconds = (now - datetime.fromisoformat(moment.replace("Z", "+00:00"))).total_seconds()
    text = span(abs(seconds) * 1000)
    return f"in {text}" if seconds < 0 else text


def with_age(moment: str, now: datetime | None = None) -> str:
    """Returns a moment with its age behind it."""
    return f"{moment} ({age(moment, now or datetime.now(UTC))})"


def to_the_second(moment: str) -> str:
    """Returns a moment in RFC 3339 without parts of a second."""
    return f"{moment[:19]}Z"


def short_ids(ids: Sequence[str]) -> list[str]:
    """Returns the ends of ids, as short as they differ from one another; ids of a queue manager begin alike."""
    length = _SHORTEST
    longest = max(map(len, ids), default=0)
    while length < longest and len({each[-length:] for each in ids}) < len(set(ids)):
        length += 2
    return [each if len(each) <= length + 2 else SHORTENED + each[-length:] for each in ids]
