"""Drains a queue in batches without streaming: a batch is a reservation and a DataFrame, settled after its block.

>>> with batches(spark, "ORDERS") as waiting:  # doctest: +SKIP
...     for batch in waiting:
...         with batch:  # settled at its end; a batch that fails is tried again, then halved
...             write_batch(batch.frame, "/data/orders", batch.id)

Delivery: a batch is written at least once. It is delivered again, with the same messages and the same ``id``, when the
job died between the sink's commit and the settling. It is in the sink exactly once when the sink takes a batch of one
id once. :func:`~trigmon.spark.file_table.write_batch` does; a Delta table does with ``txnAppId`` and
``txnVersion=batch.number``; a database does with the id in the transaction. A sink that fails must keep nothing of the
batch, since the messages of a halved batch come again in other batches.

A message that kills the job that reads it is found too (:mod:`trigmon.spark.poison_search.crash_search`), where the
sink can ``refuse`` a batch, as :func:`~trigmon.spark.file_table.refuse_batch` does. The messages of a batch over which
jobs died are then written in parts, with other ids and all with the same ``number``. Without ``refuse`` the batch comes
as it is, again and again, until the breaker holds the queue.

The driver has one connection for the whole drain: it holds the reservation, and the queue is open for input from the
first batch to the last. So the queue is closed once, when it is empty.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trigmon.client import spans
from trigmon.client.address import connect, default_address
from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.client.reservation import Reservation
from trigmon.client.triggered import triggered
from trigmon.mq.calls import Display, Ping
from trigmon.mq.errors import MQError, NoMsgAvailable, UnknownObjectName
from trigmon.mq.replies import Listing
from trigmon.rules.model.reservation import Ordinals, cut
from trigmon.spark import small_batch
from trigmon.spark.classic_session import context_of
from trigmon.spark.drain_arguments import check_kinds, check_session
from trigmon.spark.frame_source import Source
from trigmon.spark.options import MAX_BYTES, MAX_ROWS, concrete
from trigmon.spark.plan_errors import remedy
from trigmon.spark.poison_search.bisect import Search
from trigmon.spark.poison_search.crash_search import is_bad
from trigmon.spark.poison_search.failed_batches import FailedBatches, Rejected
from trigmon.spark.poison_search.parts import Parting, Refuse, why_bad
from trigmon.spark.progress import Line
from trigmon.spark.retry import IN_USE_S, when_free
from trigmon.spark.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@contextmanager
def batches(
    spark: SparkSession,
    queue: str | None = None,
    *,
    qmgr: str | None = None,
    consumer: str | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    groups: bool = False,
    attempts: int = 2,
    refuse: Callable[[str], bool] | None = None,
    sink: Sink | None = None,
    wait_interval_ms: int = 0,
    options: dict[str, Any] | None = None,
    schema: str | StructType | None = None,
    shows_progress: bool = True,
    in_plan: bool = False,
) -> Iterator[Batches]:
    """Yields the batches of a queue until it is empty; without a name, of the queue whose trigger started this job.

    ``consumer`` is the name by which the job finds the reservation that an earlier run did not settle (default: the
    process's name, else the program's): two jobs at a time need two names. ``wait_interval_ms`` is how long to wait
    for a message before the queue counts as empty. ``attempts`` is how often a batch is tried before it is halved.
    ``refuse(id)`` returns False when the place has that batch already, True when it never takes it; ``sink`` does so.
    ``options`` and ``schema`` go to the frame's reader: ``{"columns": "data,msg_id"}``, ``{"format": "json"}``.
    ``shows_progress``: on a terminal. ``in_plan``: a small batch is read here (:mod:`trigmon.spark.small_batch`) and is
    there behind its block, too. Raises MQError: ObjectInUse where another job has the consumer's name.
    """
    check_session(spark)
    named = {"queue": queue, "qmgr": qmgr, "consumer": consumer, "options": options, "schema": schema, "groups": groups}
    numbers = {"max_rows": max_rows, "max_bytes": max_bytes, "attempts": attempts, "wait_interval_ms": wait_interval_ms}
    check_kinds(named | numbers)
    name, who = _names(queue, consumer)
    with _opened(qmgr, name) as (where, connection, opened):
        source = Source(spark, where, opened.q_name, options or {}, schema, os.urandom(16).hex(), in_plan).checked()
        search = Search(max_rows, attempts, seed=time.time_ns())
        application = f"{connection.q_mgr_name}/{opened.q_name}/{who}"
        parting = Parting(connection, application, whole_groups=groups, refuse=_by_name(refuse, sink))
        line, began_ns = Line(opened.q_name, is_wanted=shows_progress), time.time_ns()
        made = Batches(connection, opened, source, who, search, parting, max_bytes, groups, wait_interval_ms, line)
        try:
            yield made
        finally:
            made.end(began_ns)


def _names(queue: str | None, consumer: str | None) -> tuple[str, str]:
    """Returns the names of the queue and of the consumer. Raises UnknownObjectName where no queue is meant."""
    cause = triggered()
    name = queue or (cause.q_name if cause else "")
    if not name:
        raise UnknownObjectName("no queue was named, as queue='ORDERS', and no trigger started this job")
    return name, consumer or (cause.process_name if cause and cause.process_name else f"spark {name}")


@contextmanager
def _opened(qmgr: str | None, q_name: str) -> Iterator[tuple[str, Connection, Queue]]:
    """Yields the address, a connection, and the queue open to drain it. Raises MQError with what helps."""
    with ExitStack() as stack:
        with remedy(q_name):
            where = concrete(qmgr or default_address())
            connection = stack.enter_context(connect(where))
            opened = stack.enter_context(connection.open(q_name, "input_shared", "browse"))
        yield where, connection, opened


class Batches:
    """An iterator of batches. ``settled`` and ``rows`` are how many batches and messages were settled so far.

    ``rejected`` are the messages that were set aside on the way.
    """

    def __init__(
        self,
        connection: Connection,
        queue: Queue,
        source: Source,
        consumer: str,
        search: Search,
        parting: Parting,
        max_bytes: int,
        groups: bool,
        wait_interval_ms: int,
        line: Line,
    ) -> None:
        self.settled = self.rows = 0
        self._failures = FailedBatches(
            connection, queue, consumer, search, line, whole_groups=groups, secret=source.secret
        )
        self.source = source
        self.consumer = consumer
        self.groups = groups
        self.search = search
        self.parting = parting
        self._before: str | None = None
        self._connection = connection
        self._queue = queue
        self._max_bytes = max_bytes
        self._wait_ms = wait_interval_ms
        self.line = line
        self._at_work: Batch | None = None

    @property
    def rejected(self) -> list[Rejected]:
        """The messages that were set aside."""
        return self._failures.rejected

    def __iter__(self) -> Iterator[Batch]:
        while (batch := self.next()) is not None:
            yield batch

    def next(self) -> Batch | None:
        """Returns the next batch, or the one that failed once more, or None when the queue is empty."""
        if self._at_work is not None and not self._at_work.ended:
            raise RuntimeError("the batch before was not worked off: say 'with batch:' around its work")
        self._at_work = None
        try:
            while (batch := self._begun()) is None:
                pass
        except NoMsgAvailable:
            self.tell()
            return None
        self._at_work = batch
        self.tell(batch.number, batch.count)
        return batch

    def _begun(self) -> Batch | None:
        """Reserves and returns a batch, or None after the reservation was settled or a message was set aside."""
        if self._before is None:
            self._before = next((row["by"] for row in self.reservations()), "")
        made = self._reserved()
        if not self.parting.is_due(made):
            self._failures.choose(made)
            return Batch(self, made)
        there = self.parting.written(made)
        if there is not None:
            left = made.left
            made.settle(there[0], there[1] - there[0])
            self.done(left - made.left, is_part=True)
            return None
        part = self.parting.next(made)
        if is_bad(part, made.settled, self._failures.threshold()):
            cause = triggered()
            process_name = cause.process_name if cause else ""
            why = why_bad(self._connection, part, self._queue.q_name, process_name, self._before)
            self._failures.log(made.number, part.end - part.first, f"set aside: {why}")
            self._failures.reject(made.number, dict.fromkeys(range(part.first, part.end), why))
            return None
        made.attempt(part.first, part.end - part.first)
        return Batch(self, made, (part.first, part.end))

    def done(self, rows: int, *, is_part: bool = False) -> None:
        """Counts a settled batch of so many rows. The size of a part does not limit the size of the next batch."""
        self._failures.succeeded(self.search.max_rows if is_part else rows)
        self.settled, self.rows = self.settled + 1, self.rows + rows

    def interrupted(self, made: Reservation, part: Ordinals) -> bool:
        """Ends a part after an interrupt, which blames no message; returns whether the sink has the part.

        Then it is settled. Else the sink never takes it any more, and it goes back to the queue, to come again in a
        batch of another id. Where that fails too, it is left to the next job, as if this one had died over it.
        """
        with suppress(Exception):  # the interrupt is what is raised
            left = made.left
            if self.parting.is_there(made, part):
                made.settle(part[0], part[1] - part[0])
                self.done(left - made.left, is_part=True)
                return True
            made.release(part[0], part[1] - part[0], counts=False)
        return False

    def end(self, began_ns: int) -> None:
        """Ends the progress line, and the span of a drain that began so."""
        self.line.end()
        if spans.are_on(self._connection.traces):
            spans.drained(self._connection.traces, self._queue.q_name, began_ns, self.rows)

    def tell(self, reservation: int = 0, reserved: int = 0) -> None:
        """Shows the progress and the reservation on a terminal."""
        if self.line.is_shown:
            self.line.show(self.settled, self.rows, self._row()["current_q_depth"], reservation, reserved)

    def _reserved(self) -> Reservation:
        try:
            return when_free(self._reserve, IN_USE_S)
        except NoMsgAvailable:
            if not self._wait_ms:
                raise
        self._queue.get(browse_first=True, wait_interval_ms=self._wait_ms)
        return when_free(self._reserve, IN_USE_S)

    def _reserve(self) -> Reservation:
        return self._queue.reserve(
            self.consumer,
            max_messages=self.search.limit,
            max_bytes=self._max_bytes,
            whole_groups=self.groups,
            token=new_id(),
        )

    def stream(self) -> DataFrame:
        """Returns a streaming frame of the queue. The search for bad messages limits its first batch."""
        limit = self.search.limit
        more = {"consumer": self.consumer, "groups": self.groups, "maxBytes": self._max_bytes}
        rows = {"maxRows": max(limit, self.search.max_rows), "firstRows": limit}
        return self.source.reader(self.source.spark.readStream, **more, **rows).load()

    def unheld(self) -> int | None:
        """Waits until no process holds the reservation and returns its number; None where nothing is reserved."""
        until = time.monotonic() + IN_USE_S
        while (found := self.reservations()) and found[0]["held"] and time.monotonic() < until:
            time.sleep(0.05)
        return int(found[0]["reservation"]) if found else None

    def reservations(self) -> list[dict[str, Any]]:
        """Returns the reservation of the consumer on the queue, or an empty list."""
        found = self._connection.reservations(self._queue.q_name)
        return [row for row in found if row["consumer"] == self.consumer and row["own"]]

    def is_there(self) -> bool:
        """Returns whether the queue manager answers, on this link or on the next one."""
        with suppress(MQError):
            self._connection.call(Ping())
            return True
        return False

    def failed(self, number: int, error: BaseException, part: Ordinals | None = None) -> bool:
        """Handles a batch, or a part of one, that failed; returns False when the error must be raised.

        Where Spark is gone, the batch is left to the next job, as if this one had been killed.
        """
        if not answers(self.source.spark, error):
            return False
        row = next((r for r in self.reservations() if r["reservation"] == number), None)
        if row is None:
            return True  # an operator gave it back, or all of it has been settled
        left = cut(row["left_ordinals"], *(part or (0, row["count"])))
        if not left:
            return True
        if part is not None:
            self.parting.failed(part)
        return self._failures.handle(number, left, error)

    def _row(self) -> dict[str, Any]:
        return self._connection.ask(Display(object_type="QLOCAL", name=self._queue.q_name), Listing).rows[0]


class Batch:
    """A fixed batch of messages. The end of its block settles it; an error in the block is handled first.

    An Exception in the block is suppressed while it can be handled: the batch comes again, or a half of it, under the
    same ``id``, or a message is set aside. Else it is raised. ``id`` is unique and fit for a file's name. ``number``
    rises from batch to batch of one queue manager. ``name`` has both, as a sink takes them. ``count`` messages are in
    it, and ``again`` says that an earlier run had it and did not settle it. ``part`` are the ordinals of a part of a
    batch over which jobs died; the other parts have the same ``number``.
    """

    def __init__(self, of: Batches, made: Reservation, part: Ordinals | None = None) -> None:
        self.name = of.parting.name(made, part)
        self.id = self.name.id
        self.number = made.number
        self.part = part
        self.count = made.left if part is None else part[1] - part[0]
        self.again = made.again
        self.ended = self.settled = False
        self._of = of
        self._made = made
        self._link = made.connection.client_id

    @property
    def frame(self) -> DataFrame:
        """The messages as rows; every action reads the same ones, until the block ends."""
        source = self._of.source
        if self._is_new and self._is_small:
            rows = small_batch.frame(source, self.number, self._made.count)
            if rows is not None:
                return rows
        of = {} if self.part is None else {"ordinals": f"{self.part[0]}-{self.part[1]}"}
        return source.reader(source.spark.read, reservation=self.number, **of).load()

    @property
    def is_for_tasks(self) -> bool:
        """Whether tasks may write it without Java (:mod:`trigmon.spark.task_files`)."""
        return self._is_new and not self._is_small

    @property
    def _is_new(self) -> bool:
        """Whether nothing of it has failed. What has is read by Spark, so that a shorter way is not the reason."""
        return self.part is None and not self.again and self._of.search.is_at_rest

    @property
    def _is_small(self) -> bool:
        """Whether its rows may come in the plan."""
        return self._of.source.in_plan and small_batch.is_small(self._made)

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.ended = True
        if error is None:
            first, end = self.part or (0, self._made.count)
            self._made.settle(first, end - first)
            self.settled = True
            self._of.done(self.count, is_part=self.part is not None)
            return False
        if isinstance(error, KeyboardInterrupt) and self.part is not None and self._made.connection.alive:
            self.settled = self._of.interrupted(self._made, self.part)
        if not isinstance(error, Exception) or not self._of.is_there():
            return False
        # A queue manager that was gone may have been the error: the batch comes once more, under its id.
        return self._made.connection.client_id != self._link or self._of.failed(self.number, error, self.part)


# -- parts of the above -------------------------------------------------------------------------------------


def new_id() -> str:
    """Returns a unique name; names sort by time."""
    return f"b{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(6).hex()}"


def answers(spark: SparkSession, error: BaseException) -> bool:
    """Returns whether the session still has a Spark: its Java process may have died."""
    context = context_of(spark)
    if context is None:  # a session of Spark Connect, where a further query would wait again
        return "StatusCode.UNAVAILABLE" not in str(error)
    try:
        return not context._jsc.sc().isStopped()
    except Exception:
        return False


def _by_name(refuse: Callable[[str], bool] | None, sink: Sink | None) -> Refuse | None:
    if sink is not None:
        return sink.refuse
    return None if refuse is None else lambda name: refuse(name.id)
