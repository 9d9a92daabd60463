"""Readers of the data source: a batch read browses a queue, a stream drains it by reservations.

A batch read takes nothing: each action reads the queue as it is then. A stream's batch is one reservation, and its
offset is the reservation's number. So a batch that is read again, in a restarted query too, has the same messages.

Spark calls ``commit`` for a batch only while it plans the next one, and so never for the last. But it calls
``latestOffset`` after every finished batch, also the last, with the batch's end as the start: there the batch is
settled. Spark does not document this order; ``tests/spark/test_streaming.py`` tests it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from trigmon.client.browse import Range, browse, plan
from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.client.reservation import read_rows, reserve
from trigmon.mq.calls import Display, ReadReserved, Reserve, Settle
from trigmon.mq.errors import BackedOut, NoMsgAvailable, UnknownObjectName
from trigmon.mq.replies import Listing, ReservedRows, Settled
from trigmon.process_memory import keep_freed_memory
from trigmon.rules.model.reservation import cut
from trigmon.spark import arrow_rows
from trigmon.spark.messages import Messages, PackedMessages
from trigmon.spark.options import MAX_ROWS, Options
from trigmon.spark.plan_errors import one_line
from trigmon.spark.poison_search.blame import marked
from trigmon.spark.retry import when_free
from trigmon.spark.task_ticket import TaskTicket, task_ticket

ROWS_A_PARTITION = 1000
"""With fewer rows, a further partition costs more than it gains."""
_UNREADABLE = (
    "with option mode DROPMALFORMED such messages are left out, with PERMISSIVE a column keeps their texts, and "
    "trigmon.spark.drain sets them aside"
)
PART_BITS = 33
"""The ordinals of a browse in several parts: the part's number stands above these bits, as Spark's own ids have it."""


Offset = dict[str, Any]
"""Of a stream: the number of a reservation, its queue, and its queue manager; 0 alone where nothing was read yet."""


class Stretch(InputPartition):
    """Ordinals of a reservation, with the ticket by which a task on another machine reads it."""

    def __init__(self, reservation: int, parts: list[tuple[int, int]], ticket: TaskTicket | None = None) -> None:
        self.reservation = reservation
        self.parts = parts
        self.ticket = ticket


class Part(InputPartition):
    """A range of the messages on a queue, the ``number``-th of the plan."""

    def __init__(self, number: int, of: Range) -> None:
        self.number = number
        self.of = of


class QueueReader(DataSourceReader):
    """A batch read: browses, or reads a reservation where the option names one."""

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Returns the stretches of a reservation, or the ranges of a browse."""
        with one_line(self.options.queue):
            return self._partitions()

    def _partitions(self) -> list[InputPartition]:
        if not self.options.reservation:
            return [Part(number, of) for number, of in enumerate(self._ranges())]
        return list(planned(self.options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the partition's messages, in their order."""
        keep_freed_memory()
        if isinstance(partition, Stretch):
            return read_stretch(self.options, partition, self.schema)
        assert isinstance(partition, Part)
        return self._browse(partition)

    def _ranges(self) -> list[Range]:
        options = self.options

        def parts(rows: int) -> int:
            usual = min(os.cpu_count() or 1, math.ceil(rows / ROWS_A_PARTITION))
            return 1 if options.max_rows else options.partitions or max(options.min_partitions, usual)

        with options.connect("planning") as connection, connection.open(options.queue, "browse") as queue:
            return plan(connection, queue.handle, parts)

    def _browse(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yields the messages of a part, a batch for each reply."""
        first = part.number << PART_BITS
        with self.options.connect("browsing") as connection, connection.open(self.options.queue, "browse") as queue:
            for got in browse(connection, queue.handle, part.of, self.options.max_rows or None):
                yield to_batch(self.options, Messages.of_got(got, range(first, first + len(got))), self.schema)
                first += len(got)


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that drains a queue, each message once; with AvailableNow until the queue is found empty.

    Spark has one of these, in one process, for a query's whole run. It has the connection that holds the reservation,
    and the queue open for input, so that the queue is closed once, empty, at the end. The readers in tasks are copies
    without a connection.
    """

    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self.options = options
        self.schema = schema
        self._rows = options.first_rows or options.max_rows or MAX_ROWS
        self._planned = 0
        self._settled: int | None = None
        self._held: tuple[Connection, Queue] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_held": None}

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name, as those below
        """Returns the offset before the first reservation."""
        return {"reservation": 0, "queue": self.options.queue}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Returns the option ``maxRows``."""
        return ReadMaxRows(self.options.max_rows or MAX_ROWS)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Opens the queue. AvailableNow lasts until it is empty: an earlier end would trigger the job again at once."""
        with one_line(self.options.queue):
            self._hold()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Settles the batch that ended and reserves the next; returns its offset, or ``start`` for an empty queue."""
        with one_line(self.options.queue):
            return self._next(start, limit)

    def _next(self, start: Offset, limit: ReadLimit) -> Offset:
        self._settle(start)
        most = self.options.max_rows or MAX_ROWS
        if isinstance(limit, ReadMaxRows):
            most = min(limit.max_rows, self._rows)
        elif isinstance(limit, ReadAllAvailable):
            most = self._rows
        connection, queue = self._hold()
        call = Reserve(
            handle=queue.handle,
            consumer=self.options.consumer,
            max_messages=most,
            max_bytes=self.options.max_bytes,
            whole_groups=self.options.groups,
        )
        try:
            made = when_free(lambda: reserve(connection, call))
        except NoMsgAvailable:
            return start
        return {"reservation": made.number, "queue": self.options.queue, "qmgr": connection.q_mgr_name}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Returns how many messages wait on the queue: the lag, in the progress of the query."""
        rows = self._hold()[0].ask(Display(object_type="QLOCAL", name=self.options.queue), Listing).rows
        depth = int(rows[0]["current_q_depth"]) if rows else 0
        return {"queue": self.options.queue, "current_q_depth": depth}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Returns what is left of the reservation; nothing for example after its release by an operator."""
        self._check(end)
        number = end["reservation"]
        connection = self._hold()[0]
        row = reservation_row(connection, self.options.queue, number)
        self._planned = number if row else 0
        if row is None:
            return [Stretch(number, [])]
        ticket = task_ticket(connection, self.options, number)
        return stretches(row, self.options.partitions, self.options.min_partitions, ticket)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the partition's messages, read by a connection of the task's own."""
        assert isinstance(partition, Stretch)
        keep_freed_memory()
        return read_stretch(self.options, partition, self.schema)

    def commit(self, end: Offset) -> None:
        """Settles the batch, as :meth:`latestOffset` does, in case Spark calls this method first."""
        self._settle(end)

    def stop(self) -> None:
        """Closes the queue in order. Spark 4.3 kills this process instead; then the lost connection closes it."""
        if self._held is not None:
            (connection, _), self._held = self._held, None
            connection.disconnect()

    def _hold(self) -> tuple[Connection, Queue]:
        if self._held is None:
            connection = self.options.connect("stream")
            try:
                self._held = connection, connection.open(self.options.queue, "input_shared")
            except BaseException:
                connection.drop()
                raise
        return self._held

    def _check(self, offset: Offset) -> None:
        """Raises OffsetOfAnotherError for the offset of another queue, or of that queue of another queue manager.

        One of before 2026-11-24 names no queue, one of before 2026-11-29 no queue manager.
        """
        queue = self.options.queue
        if offset.get("queue", queue) != queue:
            self._refuse(offset["queue"], queue)
        name = self._hold()[0].q_mgr_name
        if offset.get("qmgr", name) != name:
            self._refuse(f"{queue} of queue manager {offset['qmgr']}", f"that of {name}")

    def _refuse(self, of: str, reads: str) -> NoReturn:
        raise OffsetOfAnotherError(
            f"the checkpoint is of the queue {of}, and this query reads {reads}: name another checkpointLocation, one "
            "for each query"
        )

    def _settle(self, offset: Offset) -> None:
        """Settles the offset's batch, once. Raises OffsetOfAnotherError."""
        number = offset["reservation"]
        if number == self._settled:
            return
        self._check(offset)
        if number:  # 0 is the offset before the first
            self._settle_reservation(number)
        self._settled = number

    def _settle_reservation(self, number: int) -> None:
        connection = self._hold()[0]
        row = reservation_row(connection, self.options.queue, number)
        if row is not None and row["consumer"] != self.options.consumer:
            raise OffsetOfAnotherError(
                f"the checkpoint names RESERVATION({number}), which is {row['consumer']}'s and not "
                f"{self.options.consumer}'s: the checkpoint is another queue manager's or another query's"
            )
        if row is not None or number == self._planned:
            try:
                done = connection.ask(Settle(reservation=number), Settled)
            except UnknownObjectName:
                done = Settled(count=0, already=True)
            except BackedOut:
                raise OffsetOfAnotherError(
                    f"RESERVATION({number}) was given back to {self.options.queue} while its batch was being written"
                ) from None
            if not done.already:
                self._rows = min(self.options.max_rows or MAX_ROWS, max(self._rows, 2 * done.count))


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that cannot be read: its first call raises why. Spark 4.3 loses what is raised before that."""

    def __init__(self, why: Exception) -> None:
        self._why = why

    def _refuse(self, *_: Any) -> NoReturn:
        with one_line():
            raise self._why

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark reads its parameters
        """Raises the reason."""
        self._refuse()

    initialOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815
    reportLatestOffset = partitions = read = commit = _refuse  # noqa: N815


class OffsetOfAnotherError(RuntimeError):
    """A checkpoint that does not belong to this queue any more. The text has the reason."""


# -- used by both -------------------------------------------------------------------------------------------


def to_batch(options: Options, messages: Messages, schema: pa.Schema) -> pa.RecordBatch:
    """Returns messages as an Arrow batch, in the format of the options."""
    if options.is_json:
        return arrow_rows.from_json(messages, schema, options.malformed)
    return arrow_rows.to_batch(messages, schema)


def read_stretch(options: Options, stretch: Stretch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the messages that are left of a stretch of a reservation, a batch for each reply.

    Where some cannot be read as asked, the rest is looked through for others, and the error names all of them.
    """
    bad: dict[int, str] = {}
    for reply in _replies(options, stretch):
        try:
            rows = to_batch(options, PackedMessages(reply), schema)
        except arrow_rows.UnreadableError as error:
            bad |= error.reasons
        else:
            if not bad:
                yield rows
    if bad and options.secret:
        raise arrow_rows.UnfitRowError(marked(stretch.reservation, bad, options.secret))
    if bad:
        raise arrow_rows.UnfitRowError(f"{options.queue}: {arrow_rows.UnreadableError(bad)}; {_UNREADABLE}")


def _replies(options: Options, stretch: Stretch) -> Iterator[ReservedRows]:
    """Yields the replies that have messages of a stretch.

    None is asked for while one is worked on: a reply that waits unread for ``reply_timeout_s`` costs its connection.
    """
    if not stretch.parts:
        return
    with _reading(options, stretch.ticket) as connection:
        for first, end in stretch.parts:
            at = first
            while at < end:
                call = ReadReserved(reservation=stretch.reservation, ordinal=at, count=end - at, packed=True)
                reply = read_rows(connection, call)
                if reply.ordinals:
                    yield reply
                if not reply.more:
                    break
                at = reply.ordinal


@contextmanager
def _reading(options: Options, ticket: TaskTicket | None) -> Iterator[Connection]:
    """Yields the connection of a task: by its ticket, or as the driver's."""
    if ticket is None:
        with options.connect("reading") as connection:
            yield connection
        return
    connection = ticket.connect()
    try:
        yield connection
    finally:
        connection.drop()  # a ticket does not even disconnect


def reservation_row(connection: Connection, q_name: str, number: int) -> dict[str, Any] | None:
    """Returns the row of a reservation of which messages are left, else None."""
    return next((row for row in connection.reservations(q_name) if row["reservation"] == number), None)


def planned(options: Options) -> list[Stretch]:
    """Returns what is left of the reservation that the options name. Raises UnknownObjectName where that is nothing."""
    with options.connect("planning") as connection:
        row = reservation_row(connection, options.queue, options.reservation)
        if row is None:
            raise UnknownObjectName(f"RESERVATION({options.reservation}): nothing of it is left")
        ticket = task_ticket(connection, options, options.reservation)
    if options.ordinals is not None:
        row = row | {"left_ordinals": cut(row["left_ordinals"], *options.ordinals)}
    return stretches(row, options.partitions, options.min_partitions, ticket)


def stretches(row: dict[str, Any], partitions: int, least: int = 0, ticket: TaskTicket | None = None) -> list[Stretch]:
    """Returns what is left of a reservation in parts of about the same size; at least one."""
    left = sum(end - first for first, end in row["left_ordinals"])
    wanted = partitions or max(least, min(os.cpu_count() or 1, math.ceil(left / ROWS_A_PARTITION)))
    share = max(1, math.ceil(left / max(1, wanted)))
    made: list[Stretch] = [Stretch(row["reservation"], [], ticket)]
    room = share
    for begin, end in row["left_ordinals"]:
        first = begin
        while first < end:
            if not room:
                made.append(Stretch(row["reservation"], [], ticket))
                room = share
            taken = min(room, end - first)
            made[-1].parts.append((first, first + taken))
            first, room = first + taken, room - taken
    return made
