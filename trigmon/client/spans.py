"""Traces in a client: a put carries the traceparent of its span; puts and drains have spans of their own.

The span is that of OpenTelemetry's API where the application uses it. Else it is one of ours, where the extra ``otel``
is installed and the variables OTEL_EXPORTER_OTLP_... say where it is to be sent. Else there is none, and a put carries
what the environment's TRACEPARENT says. Nothing of OpenTelemetry is imported where neither is so.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from trigmon.mq.traceparent import TRACEPARENT, is_traceparent, names_exporter

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

    from trigmon.client.message import Message
    from trigmon.traces import SpanExporter

M = TypeVar("M", bound="Message")
_API: Final = "opentelemetry.trace"
MOST_LINKS: Final = 128
"""So many links a span has, as by OpenTelemetry's own limit."""
_LOCKS: Final[dict[int, threading.Lock]] = {}  # by process: its threads make one exporter


class TraceEnvironment(NamedTuple):
    """What the environment says of traces: the span that this program belongs to, and whether spans are sent."""

    traceparent: str
    is_exporting: bool


def trace_environment(environ: Mapping[str, str]) -> TraceEnvironment | None:
    """Returns what the environment says of traces, None for nothing. A TRACEPARENT of another form is none."""
    text, is_exporting = environ.get(TRACEPARENT, ""), names_exporter(environ)
    traceparent = text if text and is_traceparent(text) else ""
    return TraceEnvironment(traceparent, is_exporting) if traceparent or is_exporting else None


class Got:
    """Messages that were got, which one span is of: since when, how many, and the spans of their puts."""

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self.count = 0
        self.puts: dict[str, None] = {}

    def add(self, message: Message) -> None:
        """Counts a message."""
        self.count += 1
        if len(self.puts) < MOST_LINKS and (put := message.traceparent):
            self.puts[put] = None


class SingleGets(dict[str, Got]):
    """What a triggered program got by single gets, by queue: each queue's has one span, when the connection ends."""

    def note(self, q_name: str, message: Message) -> None:
        """Counts a message that was got, in a triggered program."""
        if "TRIGMON_RUN" in os.environ:
            self.setdefault(q_name, Got()).add(message)

    def end(self, of: TraceEnvironment | None) -> None:
        """Makes the spans."""
        while self:
            q_name, got = self.popitem()
            drained(of, q_name, got.began_ns, got.count, got.puts)


def are_on(of: TraceEnvironment | None) -> bool:
    """Returns whether a put may belong to a trace: the environment says so, or the application uses OpenTelemetry."""
    return of is not None or _API in sys.modules


@contextmanager
def putting(of: TraceEnvironment | None, q_name: str, messages: int = 1) -> Iterator[str]:
    """Yields the traceparent for messages to put, "" for none; their span lasts as long as the block."""
    tracer = _tracer(of)
    if tracer is None:
        yield of.traceparent if of is not None else ""
        return
    from opentelemetry.trace import SpanKind

    attributes = _attributes(q_name, "send", messages)
    with tracer.start_as_current_span(
        f"put {q_name}", context=_parent(of), kind=SpanKind.PRODUCER, attributes=attributes
    ) as span:
        yield _traceparent(span)


def followed(of: TraceEnvironment | None, q_name: str, messages: Generator[M, None, None]) -> Iterator[M]:
    """Yields messages as they come, and makes the span of them all when no more are wanted."""
    got = Got()
    try:
        for message in messages:
            got.add(message)
            yield message
    finally:
        messages.close()
        drained(of, q_name, got.began_ns, got.count, got.puts)


def drained(
    of: TraceEnvironment | None, q_name: str, began_ns: int, messages: int, puts: Mapping[str, None] | None = None
) -> None:
    """Makes the span of a drain that ends now, with links to the spans of the puts that are known."""
    tracer = _tracer(of)
    if tracer is None:
        return
    from opentelemetry.trace import Link, SpanKind, get_current_span

    tracer.start_span(
        f"drained {q_name}",
        context=_parent(of),
        kind=SpanKind.CONSUMER,
        attributes=_attributes(q_name, "process", messages),
        links=[Link(get_current_span(context_of(put)).get_span_context()) for put in puts or ()],
        start_time=began_ns,
    ).end()


def _tracer(of: TraceEnvironment | None) -> Tracer | None:
    """Returns the application's tracer, or ours where it has none and spans are to be sent."""
    exporter = None
    if of is not None and of.is_exporting:
        process = os.getpid()
        # A forked process has a lock of its own: a thread that is not in it may have held the other.
        with _LOCKS.setdefault(process, threading.Lock()):
            exporter = _exporter(process)
    if _API not in sys.modules:
        return None
    from opentelemetry import trace

    if exporter is not None and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return exporter.tracer
    return trace.get_tracer("trigmon")


@cache
def _exporter(_process: int) -> SpanExporter | None:
    """Returns the exporter of this process, None where the extra is not installed."""
    try:
        from trigmon.traces import SpanExporter
    except ImportError:
        return None
    return SpanExporter(os.environ.get("TRIGMON_PROCESS") or "trigmon client")


def _parent(of: TraceEnvironment | None) -> Context | None:
    """Returns the context of a new span where the application has no current span; None where it has."""
    from opentelemetry import trace

    if of is None or not of.traceparent or trace.get_current_span().get_span_context().is_valid:
        return None
    return context_of(of.traceparent)


def context_of(traceparent: str) -> Context:
    """Returns the context of a traceparent; an empty one for ""."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())


def _traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}" if context.is_valid else ""


def _attributes(q_name: str, operation: str, messages: int) -> dict[str, str | int]:
    """Returns attributes by OpenTelemetry's conventions for messaging."""
    found: dict[str, str | int] = {"messaging.system": "trigmon", "messaging.destination.name": q_name}
    found |= {"messaging.operation.type": operation, "messaging.batch.message_count": messages}
    if run_id := os.environ.get("TRIGMON_RUN"):
        found["trigmon.run_id"] = run_id
    return found
