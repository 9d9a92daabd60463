"""The exporter of an application's spans."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from trigmon.client import spans


def test_the_first_puts_of_several_threads_make_one_exporter(monkeypatch):
    traces = pytest.importorskip("trigmon.traces")
    made: list[object] = []
    together = threading.Barrier(4)

    class Slow(traces.SpanExporter):
        def __init__(self, service: str) -> None:
            made.append(self)
            time.sleep(0.1)
            super().__init__(service, "http://127.0.0.1:9/v1/traces")

    def put() -> object:
        together.wait()
        return spans._tracer(spans.TraceEnvironment("", is_exporting=True))

    monkeypatch.setattr(traces, "SpanExporter", Slow)
    spans._exporter.cache_clear()
    try:
        with ThreadPoolExecutor(4) as pool:
            tracers = [each.result() for each in [pool.submit(put) for _ in range(4)]]
        assert len(made) == 1
        assert len({id(tracer) for tracer in tracers}) == 1
    finally:
        spans._exporter.cache_clear()
