"""The log: events with fields, on standard error, in the form its reader wants.

One JSON object a line, for programs; text on a terminal, for people; the journal's own fields under systemd
(``journalctl TRIGMON_Q_NAME=ORDERS``). What other libraries say through :mod:`logging` takes the same road. An event is
a sentence of fixed words, and what varies is a field, so that lines can be counted. No message's data is ever logged.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog

from trigmon.log_events import EVENT_NAMES

JOURNAL_SOCKET = "/run/systemd/journal/socket"

_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
"""Levels as syslog(3) numbers them, which is what the journal sorts by."""

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

Event = MutableMapping[str, Any]
_COMMON: dict[str, Any] = {}


def configure(level: str = "info", form: str = "auto", stream: TextIO | None = None) -> None:
    """Sends every later event at or above ``level`` to ``stream`` (standard error).

    ``form`` is json, text, journal, or auto: the journal when systemd reads the stream, text when a terminal does.
    """
    _COMMON.clear()
    out = sys.stderr if stream is None else stream
    chosen = _form_for(out) if form == "auto" else form
    make_sink, renderers = _SINKS[chosen](out)
    structlog.configure(
        processors=[_with_common, _with_name, structlog.processors.add_log_level, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=make_sink,
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=max(_LEVELS[level], logging.WARNING), force=True)


def say_always(**fields: Any) -> None:
    """Adds these fields to every line, of whatever thread, until the next :func:`configure`."""
    _COMMON.update(fields)


def _with_common(_logger: Any, _method: str, event: Event) -> Event:
    return {**_COMMON, **event}


def _with_name(_logger: Any, _method: str, event: Event) -> Event:
    """Adds the stable name of an event whose sentence has one; what carries its name keeps it."""
    if (name := EVENT_NAMES.get(event.get("event", ""))) is not None:
        event.setdefault("event_name", name)
    return event


def logger(**fields: Any) -> Any:
    """Returns a logger whose events carry these fields."""
    return structlog.get_logger(**fields)


class Seldom:
    """Says an event at most ``times`` an interval, with the number of times it was left out: no peer fills a disk.

    Only the event's words tell one from another, so what varies must be a field.
    """

    def __init__(
        self, log: Any, times: int = 1, interval_s: float = 1.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._times = times
        self._interval_s = interval_s
        self._now = now
        self._intervals: dict[str, tuple[float, int]] = {}

    def warning(self, event: str, **fields: Any) -> None:
        """Logs a warning, unless its interval is full."""
        self._say(self._log.warning, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Logs a line at level info, unless its interval is full."""
        self._say(self._log.info, event, fields)

    def _say(self, say: Callable[..., Any], event: str, fields: dict[str, Any]) -> None:
        now = self._now()
        began, count = self._intervals.get(event, (float("-inf"), 0))
        if now - began >= self._interval_s:
            if count > self._times:
                fields["left_out"] = count - self._times
            began, count = now, 0
        self._intervals[event] = began, count + 1
        if count < self._times:
            say(event, **fields)


def _form_for(stream: TextIO) -> str:
    if is_the_journal(stream):
        return "journal"
    return "text" if stream.isatty() else "json"


def is_the_journal(stream: TextIO) -> bool:
    """Returns whether this stream is the one systemd says it reads (``JOURNAL_STREAM``, systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


# -- forms --------------------------------------------------------------------------------------------------

_STAMP = structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")
Sink = tuple[Callable[..., Any], list[Any]]
"""What makes the wrapped logger, and the processors that end in what it takes."""


def _json(stream: TextIO) -> Sink:
    render = structlog.processors.JSONRenderer(default=str)
    return structlog.PrintLoggerFactory(stream), [_STAMP, structlog.processors.format_exc_info, render]


def _text(stream: TextIO) -> Sink:
    render = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
    )
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False, key="time")
    return structlog.PrintLoggerFactory(stream), [stamp, render]


def _journal(stream: TextIO) -> Sink:
    return lambda *_: _Journal(stream), [structlog.processors.format_exc_info, _as_fields]


_SINKS: dict[str, Callable[[TextIO], Sink]] = {"json": _json, "text": _text, "journal": _journal}


def _as_fields(_logger: Any, _method: str, event: Event) -> tuple[tuple[str, bytes], dict[str, Any]]:
    """Returns an event as a line and as the journal's datagram: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/."""
    sentence = str(event.pop("event", ""))
    level = str(event.pop("level", "info"))
    trace = event.pop("exception", None)
    shown = " ".join([sentence, *(f"{key}={value}" for key, value in event.items())])
    fields = {
        "MESSAGE": f"{shown}\n{trace}" if trace else shown,
        "PRIORITY": str(_PRIORITIES.get(level, 6)),
        "SYSLOG_IDENTIFIER": "trigmon",
        "TRIGMON_EVENT": sentence,
        **{"TRIGMON_" + re.sub(r"[^A-Z0-9_]", "_", key.upper()): str(value) for key, value in event.items()},
    }
    datagram = b"".join(_field(name, text.encode(errors="replace")) for name, text in fields.items())
    return (fields["MESSAGE"], datagram), {}


def _field(name: str, value: bytes) -> bytes:
    if b"\n" not in value:
        return name.encode() + b"=" + value + b"\n"
    return name.encode() + b"\n" + len(value).to_bytes(8, "little") + value + b"\n"


class _Journal:
    """Sends datagrams to journald; what it does not take goes to the stream it reads anyway."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str, datagram: bytes) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
                journal.sendto(datagram, JOURNAL_SOCKET)
        except OSError:
            # No journald at its place, or a datagram over its size: a line is better than none.
            self._stream.write(line + "\n")
            self._stream.flush()

    log = debug = info = warning = error = critical = msg


class _Forward(logging.Handler):
    """Hands what a library logs to structlog, under the library's name.

    OpenTelemetry says for each batch, and each try, that it was not sent: one a minute is logged.
    """

    def __init__(self) -> None:
        super().__init__()
        self._spans = Seldom(structlog.get_logger(), interval_s=60)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("opentelemetry."):
            self._spans.warning("no spans are sent", why=record.getMessage(), library=record.name)
            return
        say = structlog.get_logger().log
        say(record.levelno, record.getMessage(), library=record.name, exc_info=record.exc_info or None)
