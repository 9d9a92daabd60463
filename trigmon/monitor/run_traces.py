"""The spans of runs: how long a trigger message waited, and the program that was launched for it.

Their ids follow from the run's, so that whichever monitor sees a run end knows the span that its program was given as
its parent. Without an exporter a program is given the span of the put.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from trigmon.launch.launch_plan import Order
from trigmon.log import logger
from trigmon.mq.run import Run
from trigmon.mq.traceparent import is_traceparent, names_exporter, within

if TYPE_CHECKING:
    from trigmon.traces import SpanExporter

log = logger()


class RunTraces:
    """Sends the spans of one monitor's runs, where ``endpoint`` or the environment says where to."""

    def __init__(self, q_mgr_name: str, endpoint: str = "") -> None:
        self._q_mgr_name = q_mgr_name
        self._exporter = _exporter(endpoint) if endpoint or names_exporter(os.environ) else None

    def of_program(self, run: Run) -> str:
        """Returns the traceparent that a run's program is given: its launch's, else the put's; "" for none."""
        put = run.origin.traceparent
        if put and not is_traceparent(put):  # an administrator may have written the record
            put = ""
        return self._within(put, run.run_id, "launched") if self._exporter is not None else put

    def started(self, order: Order, start_ms: int) -> None:
        """Sends the span of the wait from the trigger message to the start of the program."""
        if self._exporter is not None and order.triggered_ms and start_ms:
            self._send("waited", order, order.put_traceparent, order.triggered_ms, start_ms)

    def ended(self, order: Order, start_ms: int, end_ms: int, error: str) -> None:
        """Sends the span of a program; ``error`` is how it failed, "" where it did not."""
        if self._exporter is not None and start_ms and end_ms:
            waited = self._within(order.put_traceparent, order.run_id, "waited") if order.triggered_ms else ""
            self._send("launched", order, waited or order.put_traceparent, start_ms, end_ms, error)

    def _within(self, put: str, run_id: str, span: str) -> str:
        """Returns the traceparent of a run's span, in the trace of the put, else in one of the run's own."""
        return within(put, self._id(run_id, "trace", 16), self._id(run_id, span, 8))

    def _id(self, run_id: str, of: str, size: int) -> str:
        return blake2b(f"{self._q_mgr_name} {run_id} {of}".encode(), digest_size=size).hexdigest()

    def _send(self, what: str, order: Order, parent: str, start_ms: int, end_ms: int, error: str = "") -> None:
        from trigmon.client.spans import context_of

        assert self._exporter is not None
        trigger = order.trigger
        self._exporter.span(
            f"{what} {order.shown_q_name}",
            self._within(order.put_traceparent, order.run_id, what),
            context_of(parent),
            start_ms,
            end_ms,
            {
                "messaging.system": "trigmon",
                "messaging.destination.name": order.shown_q_name,
                "trigmon.q_mgr": self._q_mgr_name,
                "trigmon.process": trigger.process_name,
                "trigmon.run_id": order.run_id,
                "trigmon.occasion": order.occasion,
            },
            error=error,
        )


def _exporter(endpoint: str) -> SpanExporter | None:
    """Returns the exporter, None where the extra is not installed: that is logged, and programs start as ever."""
    try:
        from trigmon.traces import SpanExporter
    except ImportError as error:
        log.error("no spans are sent", why=f"{error}; pip install 'trigmon[otel]'")
        return None
    return SpanExporter("trigmon monitor", endpoint)
