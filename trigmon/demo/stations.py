"""The demo from start to end: every station a message passes, seen from outside while the real thing happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trigmon import paths
from trigmon.client.connection import Connection
from trigmon.definitions.apply_plan import plan
from trigmon.definitions.definition_files import read_files
from trigmon.demo import data
from trigmon.demo.demo_page import demo_page
from trigmon.demo.demo_queue_manager import DemoFailed, DemoQueueManager, demo_queue_manager, queue_row, runs
from trigmon.demo.screen import Screen
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.spark.cold.java import find_java
from trigmon.launch.spark.cold.submit import spark_home
from trigmon.mq.attributes import EVERY_TYPE
from trigmon.mq.calls import Display
from trigmon.mq.replies import Explained, Listing

Q_NAME = "FLIGHTS.IN"
PROCESS = "FLIGHTS.LOAD"
JOB_S = 300.0
NO_PAGE = "in a browser, once the extra web is installed: pip install 'trigmon[web]'"
_UNIT = 100
_POLL_S = 0.05
_OVER = ("exited", "failed", "unknown")


class Report(msgspec.Struct, kw_only=True):
    """What the demo did. ``seconds`` is how long each station took, ``delays`` a row a carrier, worst first.

    ``page`` is the address at which a browser could watch it; blank without the extra web.
    """

    output: str
    page: str
    java: str
    messages: int
    verdict: Explained
    run: dict[str, Any]
    delays: list[dict[str, Any]]
    left_on_queue: int
    seconds: dict[str, float]


def run(screen: Screen, output: Path | None = None) -> Report:
    """Plays it, says so on ``screen``, and returns what happened. Results go to ``output`` (a new directory in /tmp).

    Nothing it started runs on behind it, whether it returns or raises. Raises DemoFailed, and KeyboardInterrupt for
    Ctrl-C and SIGTERM, after a line that names what it ended.
    """
    rows = data.flights()
    screen.line(f"The {len(rows)} flights of 1 January 2013 from New York: a queue, a trigger, a PySpark job.\n")
    began = time.monotonic()
    stations = _Stations(screen)
    ended: list[str] = []
    with _ended_by_sigterm():
        try:
            java = _java()
            with _results(output) as where, demo_queue_manager(where, ended) as daemon:
                report = _play(daemon, stations, rows, where)
                stations.begin("queue manager and monitor end")
            stations.done("everything that was started has ended")
        except KeyboardInterrupt:
            what = f"ended: {', '.join(ended)}" if ended else "nothing ran"
            screen.line(f"Interrupted while: {stations.name or 'it began'}. {what[:1].upper()}{what[1:]}.")
            raise
    report.java = java
    report.seconds = stations.seconds | {"all": round(time.monotonic() - began, 1)}
    _tell(screen, report)
    return report


def _java() -> str:
    """Returns which Java the job will run on, known before anything is started.

    Raises DemoFailed, also without a Spark.
    """
    with tempfile.TemporaryDirectory(prefix="trigmon-java-") as scratch:
        try:
            spark_home(os.environ)
            java = find_java(Path(scratch))
        except LaunchError as error:
            raise DemoFailed(str(error)) from None
    return f"Java {java.version} ({java.origin})"


@contextmanager
def _results(output: Path | None) -> Iterator[Path]:
    """Yields the directory for the results; without an end of the demo, what was made for them goes again."""
    where = Path(tempfile.mkdtemp(prefix="trigmon-flights-")) if output is None else output.absolute()
    is_ours = output is None or not where.exists()
    where.mkdir(parents=True, exist_ok=True)
    try:
        yield where
    except BaseException:
        if is_ours:
            shutil.rmtree(where, ignore_errors=True)
        raise


def _play(daemon: DemoQueueManager, stations: _Stations, rows: list[bytes], where: Path) -> Report:
    stations.begin("queue manager starts")
    with daemon.ready() as qm, demo_page(daemon.environment, daemon.address) as page:
        stations.done(f"queue manager {qm.q_mgr_name} and its trigger monitor are up")
        stations.screen.line(f"{'':11}watch it: {page or NO_PAGE}")
        stations.begin("definitions are applied")
        stations.done(f"defined: {', '.join(_apply(qm))}")
        verdict = qm.explain(Q_NAME)
        if not verdict.fires:
            raise DemoFailed(f"a put on {Q_NAME} would not start anything", str(verdict))
        stations.begin("messages are put")
        fired_ms = _put(qm, stations.screen, rows)
        stations.done(f"{len(rows)} messages put on {Q_NAME}; the first one fired the trigger")
        record = _follow(daemon, qm, stations, len(rows), fired_ms)
        left = int(queue_row(qm, Q_NAME)["current_q_depth"])
    delays = json.loads((where / "delay_by_carrier.json").read_text())
    return Report(
        output=str(where),
        page=page,
        java="",
        messages=len(rows),
        verdict=verdict,
        run=record,
        delays=delays,
        left_on_queue=left,
        seconds={},
    )


def _apply(qm: Connection) -> list[str]:
    """Makes the objects of the shipped definition files; their names."""
    wanted = read_files([paths.shipped("config") / "queues.yaml", paths.shipped("process_defs")])
    existing = [row for kind in EVERY_TYPE for row in qm.ask(Display(object_type=kind, limit=10_000), Listing).rows]
    steps = plan(wanted, existing)
    for step in steps:
        qm.call(step.call)
    return [step.name for step in steps]


def _put(qm: Connection, screen: Screen, rows: list[bytes]) -> int:
    """Puts a message a flight, a hundred a unit of work. Returns when the first commit was sent (ms since 1970)."""
    committed_ms = 0
    messages = list(data.grouped(rows))
    with qm.open(Q_NAME, "output") as queue:
        for start in range(0, len(rows), _UNIT):
            queue.put_each(messages[start : start + _UNIT], syncpoint=True, format="MQSTR")
            committed_ms = committed_ms or time.time_ns() // 1_000_000
            qm.commit()
            screen.progress("messages are put", min(start + _UNIT, len(rows)), len(rows))
    return committed_ms


def _follow(daemon: DemoQueueManager, qm: Connection, stations: _Stations, total: int, fired_ms: int) -> dict[str, Any]:
    """Watches the run from the trigger message to its end; its record. Raises DemoFailed."""
    stations.begin("monitor starts the job")
    record = _await_run(daemon, qm, stations, lambda run: run["start_ms"] > 0 or run["state"] in _OVER)
    after_ms = record["start_ms"] - fired_ms
    stations.done(f"the monitor had started {PROCESS} {after_ms} ms after the first commit: run {record['run_id']}")
    stations.begin("Spark starts")
    opened = lambda run: run["state"] in _OVER or queue_row(qm, Q_NAME)["open_input_count"] > 0  # noqa: E731
    _await_run(daemon, qm, stations, opened)
    stations.done("the job's Spark is up and has opened the queue")
    stations.begin("job works")

    def over(run: dict[str, Any]) -> bool:
        left = int(queue_row(qm, Q_NAME)["current_q_depth"])
        if left:
            stations.screen.progress("messages are taken", total - left, total)
        else:
            stations.doing = f"all {total} messages are taken, Spark writes their rows"
        return run["state"] in _OVER

    record = _await_run(daemon, qm, stations, over)
    if record["state"] != "exited" or record["exit_status"] != 0:
        raise DemoFailed(f"the job failed: {record['why']} (run {record['run_id']})", record["stderr_tail"])
    stations.done(f"{total} messages taken, Parquet and delays written, committed; the job ended")
    return record


def _await_run(daemon: DemoQueueManager, qm: Connection, stations: _Stations, is_so: Any) -> dict[str, Any]:
    """Returns the first run for the queue, as soon as ``is_so`` of it. Raises DemoFailed."""
    until = time.monotonic() + JOB_S
    while True:
        found = runs(qm, q_name=Q_NAME)
        if found and is_so(found[-1]):
            return found[-1]
        daemon.check()
        stations.waiting()
        if time.monotonic() > until:
            raise DemoFailed(f"{stations.name}: not within {JOB_S:g} s", daemon.log_tail())
        time.sleep(_POLL_S)


class _Stations:
    """Tells of each station when it is reached, and how long after the start."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.seconds: dict[str, float] = {}
        self.name = self.doing = ""
        self._first = self._began = time.monotonic()

    def begin(self, name: str) -> None:
        self.name = self.doing = name
        self._began = time.monotonic()

    def waiting(self) -> None:
        self.screen.moving(f"{time.monotonic() - self._first:7.1f} s  {self.doing} ...")

    def done(self, text: str) -> None:
        took = time.monotonic() - self._began
        self.seconds[self.name] = round(took, 3)
        self.screen.line(f"{time.monotonic() - self._first:7.2f} s  {text}")


def _tell(screen: Screen, report: Report) -> None:
    """Prints the result."""
    names = data.airlines()
    screen.line(f"\nWhy the first put fired: condition {report.verdict.occasion}, and all that it asks for:")
    for condition in report.verdict.conditions:
        if condition.holds == "yes":
            screen.line(f"  {condition.number:>3}  {condition.fact}: {condition.seen}")
    screen.line("\nDelay by carrier, minutes on average:")
    screen.line(f"  {'carrier':<30}{'flights':>8}{'cancelled':>11}{'departure':>11}{'arrival':>9}{'over 15 late':>14}")
    for row in report.delays:
        departure, arrival = _number(row["mean_departure_delay"]), _number(row["mean_arrival_delay"])
        late = "-" if row["late_share"] is None else f"{row['late_share']:.0%}"
        carrier = f"{row['carrier']} {names.get(row['carrier'], '')}"
        screen.line(f"  {carrier:<30}{row['flights']:>8}{row['cancelled']:>11}{departure:>11}{arrival:>9}{late:>14}")
    screen.line(f"\nParquet ({sum(row['flights'] for row in report.delays)} rows) and delays: {report.output}")
    screen.line(f"Left on {Q_NAME}: {report.left_on_queue}. {report.java}. All of it took {report.seconds['all']:g} s.")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM end the demo as Ctrl-C does, with everything cleaned up."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread, which no signal reaches
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
