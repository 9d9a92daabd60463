"""Spans of time as people read them. Pure."""

from __future__ import annotations

_UNITS = ((86_400, "d", 36 * 3600), (3600, "h", 90 * 60), (60, "min", 90))
"""A unit's seconds, its word, and the age in seconds from which it is used."""


def span(seconds: float) -> str:
    """Returns a span of time: ``40 s``, ``12 min``, ``3 h``, ``5 d``."""
    for size, unit, first in _UNITS:
        if seconds >= first:
            return f"{round(seconds / size)} {unit}"
    return f"{int(seconds)} s"
