"""What a console shows of a queue manager: one value, read by a client with a few calls, however many queues there are.

``trigmon top`` and ``trigmon web`` show the same. Times are milliseconds since 1970 by the queue manager's clock, 0 for
what has not happened.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from trigmon.client.connection import Connection
from trigmon.console.run_text import work_text
from trigmon.mq.calls import QueueStatus, RunHistory, Runs, Status
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Listing, Values
from trigmon.mq.run import WENT_WRONG, WITH_PROGRAM, Ending, read_run
from trigmon.rules.attention import Attention, database_waits
from trigmon.rules.runs.run_history import HOUR_MS, last_24_hours_ms

RATE_MS = 60_000
"""The puts and gets a minute are counted over about so long."""
LATE_MS = 10 * 60_000
"""The end of a run may be recorded so much later than it was: runs of an hour are counted again until then."""
MOST_RUNS = 256
"""So many runs are shown that have a program, of each state."""


class Counts(msgspec.Struct):
    """How runs ended: well or not, and how and when the last of them did."""

    ok: int = 0
    failed: int = 0
    last_ms: int = 0
    last_outcome: str = ""

    def add(self, outcome: str, runs: int, last_ms: int) -> None:
        """Counts runs. Cancelled, stopped and joined ones are neither well nor failed."""
        self.ok += runs if outcome == Ending.OK else 0
        self.failed += runs if outcome in WENT_WRONG else 0
        if last_ms >= self.last_ms and outcome != Ending.JOINED:
            self.last_ms, self.last_outcome = last_ms, outcome


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A local queue. A rate is None until it was measured; the counts of runs are of the last 24 hours."""

    name: str
    depth: int
    max_depth: int
    oldest_ms: int
    readers: int
    puts_a_minute: float | None
    gets_a_minute: float | None
    trigger_type: str
    trigger_control: str
    process_name: str
    paused: str
    held: bool
    running: int
    last_run_ms: int
    last_outcome: str
    ok: int
    failed: int


class RunningRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has, or may have, a program. ``left``: how many messages are on its queue; ``work``: how far it is.

    ``progress`` is what Spark reported last: stages, stages_done, tasks, tasks_done, tasks_failed, rows_read,
    rows_written.
    """

    run_id: str
    state: str
    process_name: str
    q_name: str
    since_ms: int
    taken: int
    committed: int
    left: int
    work: str
    progress: dict[str, Any] | None
    ui: str
    is_being_cancelled: bool


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A queue manager at a glance. ``oldest_ms`` is of the oldest message of all queues shown.

    ``runs_ok`` and ``runs_failed`` count the runs that ended in the last 24 hours: this hour and the 23 before it.
    ``copies`` of queues elsewhere, and ``bridges``, the initiation queues elsewhere, are rows of the status.
    SYSTEM queues are not among the ``queues``. ``disk_free_bytes`` is None where the store is on no disk of its own.
    Where the queue manager answers no call ``started_ms`` is 0, and ``attention`` alone is known.
    """

    q_mgr_name: str
    group: str
    now_ms: int
    started_ms: int
    monitors: int
    messages: int
    oldest_ms: int
    runs_now: int
    runs_held: int
    runs_ok: int
    runs_failed: int
    disk_free_bytes: int | None
    warnings: list[str]
    attention: list[Attention]
    queues: list[QueueRow]
    running: list[RunningRun]
    copies: list[dict[str, Any]] = []
    bridges: list[dict[str, Any]] = []


class Memory:
    """What a console keeps between two readings: puts and gets of the last minute, and runs of hours that are over."""

    def __init__(self) -> None:
        self._traffic: deque[tuple[int, dict[str, tuple[int, int]]]] = deque()
        self._hours: dict[int, dict[str, Counts]] = {}
        self._counted_ms = 0

    def rates(self, now: int, rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
        """Returns the puts and gets a minute by queue, of those that were seen before."""
        counted = {row["name"]: (row["puts"], row["gets"]) for row in rows}
        while len(self._traffic) > 1 and self._traffic[1][0] <= now - RATE_MS:
            self._traffic.popleft()
        rates: dict[str, tuple[float, float]] = {}
        if self._traffic and (passed_ms := now - self._traffic[0][0]) > 0:
            before = self._traffic[0][1]
            for name in counted.keys() & before.keys():
                since = zip(before[name], counted[name], strict=True)
                puts, gets = (_more(*pair) * 60_000 / passed_ms for pair in since)
                rates[name] = puts, gets
        if not self._traffic or now > self._traffic[-1][0]:
            self._traffic.append((now, counted))
        return rates

    def counted_from(self, now: int) -> int:
        """Returns from when on runs are to be counted again; what was counted of that time before is forgotten."""
        first = last_24_hours_ms(now)
        anew = max(first, (self._counted_ms - LATE_MS) // HOUR_MS * HOUR_MS)
        self._hours = {hour: counts for hour, counts in self._hours.items() if first <= hour < anew}
        self._counted_ms = now
        return anew

    def count(self, rows: Iterable[dict[str, Any]]) -> None:
        """Adds rows of RunHistory by hour, queue and outcome."""
        for row in rows:
            of_hour = self._hours.setdefault(row["since_ms"], {})
            of_hour.setdefault(row["q_name"], Counts()).add(row["outcome"], row["runs"], row["last_ms"])

    def runs(self) -> dict[str, Counts]:
        """Returns the counts of all hours by queue."""
        found: dict[str, Counts] = {}
        for _, of_hour in sorted(self._hours.items()):
            for name, counts in of_hour.items():
                total = found.setdefault(name, Counts())
                total.ok += counts.ok
                total.failed += counts.failed
                if counts.last_ms >= total.last_ms:
                    total.last_ms, total.last_outcome = counts.last_ms, counts.last_outcome
        return found


def _more(before: int, now: int) -> int:
    """Returns how many were counted since: the counters may have begun anew."""
    return now - before if now >= before else now


def read_overview(connection: Connection, memory: Memory | None = None) -> Overview:
    """Reads an overview: five calls, one for each 256 queues, and one for each 2000 runs that ended since the last.

    With a ``memory`` that is kept from reading to reading there are rates, and only new runs are counted. Raises
    MQError.
    """
    memory = Memory() if memory is None else memory
    under_way = [Runs(where={"state": state}, limit=MOST_RUNS) for state in sorted(WITH_PROGRAM)]
    status, *listings = connection.pipeline([Status(), *under_way])
    assert isinstance(status, Values)
    values = status.values
    now: int = values["now_ms"]
    rows = [row for row in all_rows(connection.call, QueueStatus()) if not row["name"].startswith("SYSTEM.")]
    _count_runs(connection, memory, now)
    runs = [row for listing in listings if isinstance(listing, Listing) for row in listing.rows]
    running = _running(runs, {row["name"]: row["current_q_depth"] for row in rows})
    counts = memory.runs()
    initiation_queues = values["initiation_queues"]
    return Overview(
        q_mgr_name=values["q_mgr_name"],
        group=values.get("group", ""),
        now_ms=now,
        started_ms=values["started_ms"],
        monitors=sum(queue["monitors"] for queue in initiation_queues),
        messages=values["messages"],
        oldest_ms=min((row["oldest_ms"] for row in rows if row["oldest_ms"]), default=0),
        runs_now=values["runs_under_way"],
        runs_held=sum(queue["runs_held"] for queue in initiation_queues),
        runs_ok=sum(each.ok for each in counts.values()),
        runs_failed=sum(each.failed for each in counts.values()),
        disk_free_bytes=values.get("disk_free_bytes"),
        warnings=values["warnings"],
        attention=[msgspec.convert(each, Attention) for each in values["attention"]],
        queues=_queues(rows, running, memory.rates(now, rows), counts),
        running=running,
        copies=values["copies"],
        bridges=values["bridges"],
    )


def waiting_overview(q_mgr_name: str, why: str) -> Overview:
    """Returns what is known of a member of a group that waits for its database, which connecting (2345) tells."""
    return Overview(
        q_mgr_name=q_mgr_name,
        group="",
        now_ms=time.time_ns() // 1_000_000,
        started_ms=0,
        monitors=0,
        messages=0,
        oldest_ms=0,
        runs_now=0,
        runs_held=0,
        runs_ok=0,
        runs_failed=0,
        disk_free_bytes=None,
        warnings=[],
        attention=[database_waits(why)],
        queues=[],
        running=[],
    )


def _count_runs(connection: Connection, memory: Memory, now: int) -> None:
    since_ms = memory.counted_from(now)
    while True:
        call = RunHistory(since_ms=since_ms, by=["hour", "queue", "outcome"])
        counted = connection.ask(call, Values).values
        memory.count(counted["rows"])
        if not counted["more"]:
            return
        since_ms = counted["next_ms"]


def _queues(
    rows: list[dict[str, Any]],
    running: list[RunningRun],
    rates: dict[str, tuple[float, float]],
    counts: dict[str, Counts],
) -> list[QueueRow]:
    of_queue: dict[str, int] = {}
    for run in running:
        of_queue[run.q_name] = of_queue.get(run.q_name, 0) + 1
    queues = []
    for row in rows:
        name = row["name"]
        puts, gets = rates.get(name, (None, None))
        ended = counts.get(name, Counts())
        queues.append(
            QueueRow(
                name=name,
                depth=row["current_q_depth"],
                max_depth=row["max_q_depth"],
                oldest_ms=row["oldest_ms"],
                readers=row["open_input_count"],
                puts_a_minute=puts,
                gets_a_minute=gets,
                trigger_type=row["trigger_type"],
                trigger_control=row["trigger_control"],
                process_name=row["process_name"],
                paused=row["paused"],
                held=row["held"],
                running=of_queue.get(name, 0),
                last_run_ms=ended.last_ms,
                last_outcome=ended.last_outcome,
                ok=ended.ok,
                failed=ended.failed,
            )
        )
    return queues


def _running(rows: list[dict[str, Any]], depths: dict[str, int]) -> list[RunningRun]:
    """Returns the runs, the oldest first; one that changed its state between two calls stands once."""
    runs = {run.run_id: run for run in map(read_run, rows)}
    return [
        RunningRun(
            run_id=run_id,
            state=str(run.state),
            process_name=run.trigger.process_name,
            q_name=run.trigger.q_name,
            since_ms=run.program.start_ms or run.origin.recorded_ms,
            taken=run.work.taken,
            committed=run.work.committed,
            left=depths.get(run.trigger.q_name, 0),
            work=work_text(run) if run.work.batches else "",
            progress=run.spark.progress,
            ui=run.spark.ui,
            is_being_cancelled=run.is_being_cancelled,
        )
        for run_id, run in sorted(runs.items())
    ]
