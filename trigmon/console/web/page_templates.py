"""The templates of the pages, and how values are written in them: all that is written is escaped."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from trigmon.mq.quantities import counted, size, span


def ago(ms: int, now_ms: int | None = None) -> str:
    """Returns how long ago a moment was, "" for never; milliseconds since 1970."""
    if not ms:
        return ""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return span(max(0, now_ms - ms))


def moment(ms: int) -> str:
    """Returns a moment in UTC, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if ms else ""


def clock(ms: int) -> str:
    """Returns the time of a day in UTC, to the minute."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M") if ms else ""


def number(value: float | None) -> str:
    """Returns a number with thin gaps between thousands; a dash for one that is not known."""
    if value is None:
        return "-"
    rounded = f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.1f}"
    return rounded.replace(",", "\u202f")


def seconds(value: float | None) -> str:
    """Returns a duration; a dash for one that is not known."""
    return "-" if value is None else span(value * 1000)


def shown(value: object) -> str:
    """Returns the value of an attribute: blank for nothing, yes and no for a truth."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={inner}" for key, inner in value.items())
    return str(value)


def queue_path(name: str) -> str:
    """Returns the path of the page of a queue."""
    return f"/queues/{quote(name, safe='')}"


def run_path(run_id: str) -> str:
    """Returns the path of the page of a run."""
    return f"/runs/{quote(run_id, safe='')}"


def with_query(path: str, **values: object) -> str:
    """Returns a path with a query of the values that are there."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


class PageTemplates:
    """The templates of the package; ``common`` are values that every page has."""

    def __init__(self, **common: Any) -> None:
        self._environment = Environment(
            loader=PackageLoader("trigmon.console.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters = (ago, moment, clock, number, seconds, size, counted, shown, queue_path, run_path, with_query)
        self._environment.filters |= {each.__name__: each for each in filters}
        self._environment.globals |= common

    def render(self, template: str, /, **values: Any) -> str:
        """Returns a template filled in."""
        return self._environment.get_template(template).render(**values)
