"""Spans sent to OpenTelemetry by OTLP over HTTP. It needs the extra ``otel``: only who sends spans imports it.

A batch is sent by a thread of its own every few seconds. Where nobody takes it, it is dropped: no caller waits for it,
and the end of the process waits ``AT_END_S`` at most.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Status, StatusCode

AT_END_S: Final = 1.0
SCOPE: Final = "trigmon"
"""The name of the instrumentation, by which a backend knows who made a span."""
_NS: Final = 1_000_000
"""Nanoseconds in a millisecond."""


class _Ids(RandomIdGenerator):
    """Hands out the ids that were set for the next span, else random ones."""

    trace_id = span_id = 0

    def generate_trace_id(self) -> int:
        """Returns the id of a new trace."""
        given, self.trace_id = self.trace_id, 0
        return given or super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Returns the id of a new span."""
        given, self.span_id = self.span_id, 0
        return given or super().generate_span_id()


class SpanExporter:
    """Makes spans and sends them, to ``endpoint`` or where the variables OTEL_EXPORTER_OTLP_... say.

    ``service`` is what made them, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES name it.
    """

    def __init__(self, service: str, endpoint: str = "") -> None:
        # An exporter that nobody hears must not fill the standard error of a program that has no log of its own.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        self._ids = _Ids()
        self._lock = threading.Lock()
        self._processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint or None))
        is_named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        resource = Resource.create({} if is_named else {"service.name": service})
        provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        self.tracer = provider.get_tracer(SCOPE)
        self._process = os.getpid()
        self._is_ending, self._is_flushed = threading.Event(), threading.Event()
        # It is there from the beginning: at its end a process of Python 3.12 starts no thread any more.
        threading.Thread(target=self._flush, name="trigmon spans", daemon=True).start()
        atexit.register(self.end)

    def span(
        self,
        name: str,
        traceparent: str,
        parent: Context,
        start_ms: int,
        end_ms: int,
        attributes: Mapping[str, str | int],
        *,
        error: str = "",
    ) -> None:
        """Sends the span that ``traceparent`` names, a child of the one that ``parent`` holds, if any."""
        _, trace_id, span_id, _ = traceparent.split("-")
        with self._lock:
            self._ids.trace_id, self._ids.span_id = int(trace_id, 16), int(span_id, 16)
            span = self.tracer.start_span(name, context=parent, attributes=attributes, start_time=start_ms * _NS)
            self._ids.trace_id = self._ids.span_id = 0
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(max(start_ms, end_ms) * _NS)

    def end(self) -> None:
        """Sends what was not sent yet, and waits for that for AT_END_S at most; in a forked process it does nothing."""
        if os.getpid() == self._process:
            self._is_ending.set()
            self._is_flushed.wait(AT_END_S)

    def _flush(self) -> None:
        self._is_ending.wait()
        self._processor.force_flush()
        self._is_flushed.set()
