"""A trace from the put over the run to the drain, received by OTLP over HTTP as a collector would."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import RetryRun, Runs

pytest.importorskip("opentelemetry.sdk")

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

DRAIN = """\
import trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    for message in queue.drain():
        pass
"""
GET = """\
import trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared", "browse") as queue:
    queue.get(browse_first=True)
    try:
        while True:
            queue.get(syncpoint=True)
            qm.commit()
    except trigmon.NoMsgAvailable:
        pass
"""
SPARK_DRAIN = """\
from pyspark.sql import SparkSession
from trigmon.spark import drain
drain(SparkSession.builder.getOrCreate(), lambda frame, batch: frame.count())
"""
PUT = """\
import sys, trigmon
with trigmon.connect() as qm:
    for queue in sys.argv[1:]:
        print(qm.put(queue, b"one").msg_id.hex())
"""
PUT_TWO = """\
import sys, trigmon
with trigmon.connect() as qm:
    for _ in range(2):
        qm.put(sys.argv[1], b"one", syncpoint=True)
"""
PUT_IN_A_SPAN = """\
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
import trigmon
trace.set_tracer_provider(TracerProvider())
with trigmon.connect() as qm, trace.get_tracer("mine").start_as_current_span("mine") as span:
    qm.put("IN", b"one")
    print(f"{span.get_span_context().trace_id:032x}")
"""


class Receiver:
    """A collector on a port of its own: ``spans`` are those that came, each with the service that made it."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        spans = self.spans = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for of_resource in request.resource_spans:
                    names = {each.key: each.value.string_value for each in of_resource.resource.attributes}
                    for scope in of_resource.scope_spans:
                        spans.extend((names["service.name"], span) for span in scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def named(self, *names):
        """Returns the spans of these names when each has come, the newest of each."""
        until(lambda: set(names) <= {span.name for _, span in self.spans})
        found = {span.name: span for _, span in self.spans}
        return [found[name] for name in names]

    def end(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.end()


@pytest.fixture
def traced(daemon, receiver, monkeypatch):
    """A queue manager with a monitor that sends spans to the receiver, soon after they end."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    return daemon(with_monitor=True, settings={"traces.endpoint": receiver.endpoint})


def prepare(queue_manager, tmp_path, name, text=DRAIN, **process):
    program = tmp_path / f"{name}.py"
    program.write_text(text)
    with queue_manager.connect() as qm:
        kind = {"appl_id": f"{sys.executable} {program}"} if "appl_type" not in process else {"appl_id": str(program)}
        define(qm, f"P.{name}", "PROCESS", tmc_argument="no", **kind, **process)
        define(qm, name, process_name=f"P.{name}", trigger_control="on", initiation_q_name=INITQ)
    queue_manager.wait_for_event("monitor serves")


def put(queue_manager, text, *arguments, **variables):
    """Runs a program that puts, with these variables; returns what it printed."""
    argv = [sys.executable, "-c", text, *arguments]
    env = queue_manager.env | variables
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def ended_run(queue_manager, q_name):
    with queue_manager.connect() as qm:
        (run,) = until(lambda: qm.call(Runs(where={"q_name": q_name, "state": "exited"})).rows)
    assert run["exit_status"] == 0, run["stderr_tail"]
    return run


def is_child(span, parent):
    return (span.trace_id, span.parent_span_id) == (parent.trace_id, parent.span_id)


def test_a_loop_of_single_gets_has_one_span_as_a_drain_has(traced, receiver, tmp_path):
    prepare(traced, tmp_path, "IN", GET)
    put(traced, PUT_TWO, "IN", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=receiver.endpoint, TRACEPARENT=CALLER)
    run = ended_run(traced, "IN")
    launched, drained = receiver.named("launched IN", "drained IN")
    assert is_child(drained, launched)
    puts = [(span.trace_id, span.span_id) for _, span in receiver.spans if span.name == "put IN"]
    assert len(puts) == 2
    assert [(link.trace_id, link.span_id) for link in drained.links] == puts
    values = {each.key: each.value for each in drained.attributes}
    assert values["messaging.batch.message_count"].int_value == 2
    assert values["trigmon.run_id"].string_value == run["run_id"]


def test_put_wait_launch_and_drain_are_one_trace_each_the_parent_of_the_next(traced, receiver, tmp_path):
    prepare(traced, tmp_path, "IN")
    put(traced, PUT, "IN", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=receiver.endpoint, TRACEPARENT=CALLER)
    run = ended_run(traced, "IN")
    put_, waited, launched, drained = receiver.named("put IN", "waited IN", "launched IN", "drained IN")
    assert (put_.trace_id.hex(), put_.parent_span_id.hex()) == tuple(CALLER.split("-")[1:3])
    assert is_child(waited, put_)
    assert is_child(launched, waited)
    assert is_child(drained, launched)
    assert [(link.trace_id, link.span_id) for link in drained.links] == [(put_.trace_id, put_.span_id)]
    assert run["traceparent"] == f"00-{put_.trace_id.hex()}-{put_.span_id.hex()}-01"
    assert waited.start_time_unix_nano == run["triggered_ms"] * 1_000_000
    assert waited.end_time_unix_nano == launched.start_time_unix_nano == run["start_ms"] * 1_000_000
    assert launched.end_time_unix_nano == run["end_ms"] * 1_000_000
    services = {span.name: service for service, span in receiver.spans}
    assert services["put IN"] == "trigmon client"
    assert (services["launched IN"], services["drained IN"]) == ("trigmon monitor", "P.IN")


def test_a_put_in_a_span_of_the_application_belongs_to_its_trace(traced, receiver, tmp_path):
    prepare(traced, tmp_path, "IN")
    trace_id = put(traced, PUT_IN_A_SPAN)
    waited, launched, drained = receiver.named("waited IN", "launched IN", "drained IN")
    assert {span.trace_id.hex() for span in (waited, launched, drained)} == {trace_id}


def test_a_run_without_a_traced_put_has_a_trace_of_its_own_and_a_failed_one_says_so(traced, receiver, tmp_path):
    prepare(traced, tmp_path, "IN", "import sys; sys.exit('no such column')", retry=0)
    put(traced, PUT, "IN")
    waited, launched = receiver.named("waited IN", "launched IN")
    assert waited.parent_span_id == b""
    assert is_child(launched, waited)
    assert launched.status.code == launched.status.STATUS_CODE_ERROR
    assert launched.status.message == "ended with status 1"  # what the program wrote may be of its messages


def test_a_repeated_run_belongs_to_the_trace_of_the_put(traced, receiver, tmp_path):
    prepare(traced, tmp_path, "IN")
    put(traced, PUT, "IN", TRACEPARENT=CALLER)
    run = ended_run(traced, "IN")
    with traced.connect() as qm:
        qm.call(RetryRun(run_id=run["run_id"]))
    until(lambda: sum(span.name == "launched IN" for _, span in receiver.spans) == 2)
    launched = [span for _, span in receiver.spans if span.name == "launched IN"]
    assert {span.trace_id.hex() for span in launched} == {CALLER.split("-")[1]}
    assert len({span.span_id for span in launched}) == 2


def test_without_a_named_endpoint_the_traceparent_travels_and_nothing_is_sent(daemon, tmp_path):
    queue_manager = daemon(with_monitor=True)
    text = "import os, sys; print(os.environ['TRACEPARENT'], 'opentelemetry' in sys.modules)\n" + DRAIN
    prepare(queue_manager, tmp_path, "IN", text + "print('opentelemetry' in sys.modules)")
    put(queue_manager, PUT, "IN", TRACEPARENT=CALLER)
    run = ended_run(queue_manager, "IN")
    logs = queue_manager.trigmon("runs", "logs", run["run_id"], "--stream", "stdout").stdout
    assert logs.split() == [CALLER, "False", "False"]
    with queue_manager.connect() as qm:
        define(qm, "PLAIN")
        qm.put("PLAIN", b"one", traceparent=CALLER)
        qm.put("PLAIN", b"two")
        with qm.open("PLAIN", "input_shared") as queue:
            assert [message.traceparent for message in queue.drain()] == [CALLER, ""]


@pytest.mark.parametrize("answers", ["refuses", "hangs"])
def test_a_collector_that_is_down_delays_no_put_and_the_end_of_a_program_by_a_second_at_most(daemon, answers):
    queue_manager = daemon()
    with queue_manager.connect() as qm, socket.create_server(("127.0.0.1", 0)) as silent:
        define(qm, "PLAIN")
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        if answers == "refuses":
            silent.close()
        began = time.monotonic()
        put(queue_manager, PUT, *["PLAIN"] * 200, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=endpoint)
        assert time.monotonic() - began < 30  # an exporter's own patience is 10 s for each try
        assert qm.open("PLAIN", "inquire").inquire("current_q_depth") == {"current_q_depth": 200}


@pytest.mark.spark
@pytest.mark.parametrize("connect", [pytest.param("no", marks=pytest.mark.slow), "yes"])
def test_a_spark_job_is_in_the_trace_of_the_put(traced, receiver, tmp_path, connect):
    kind = {"spark_start": "connect"} if connect == "yes" else {"spark_master": "local[2]"}
    prepare(traced, tmp_path, "IN", SPARK_DRAIN, appl_type="spark", **kind)
    put(traced, PUT, "IN", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=receiver.endpoint)
    with traced.connect() as qm:
        (run,) = until(lambda: qm.call(Runs(where={"q_name": "IN", "state": "exited"})).rows, 300)
    assert run["exit_status"] == 0, run["stderr_tail"]
    put_, waited, launched, drained = receiver.named("put IN", "waited IN", "launched IN", "drained IN")
    assert is_child(waited, put_)
    assert is_child(launched, waited)
    assert is_child(drained, launched)
