"""A queue's messages for a Spark job, on its driver: taken in units of work, and in the table exactly once.

>>> from trigmon.spark import jobs
>>> with jobs.queue() as messages:  # doctest: +SKIP
...     messages.settle("/data/orders")  # what a job left that was killed
...     while unit := messages.take(10_000, wait_interval_ms=1000):
...         with unit:  # commits at its end, backs out when anything in it fails
...             unit.frame(spark).write.parquet(unit.staged("/data/orders"))

A batch is staged beside the table and safe on the disk before its messages are committed, and moved into the table by
one rename behind the commit. Its name is its unit of work's, of which the queue manager remembers the outcome, so what
a killed job left staged is known for what it is: committed, and it is moved now; or not, and its messages lie on the
queue again, so it goes. Nothing is told by message ids, which two messages may share.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from trigmon.client.connecting import connect
from trigmon.client.connection import Connection
from trigmon.client.message import Message
from trigmon.client.queue import Queue
from trigmon.client.triggered import triggered
from trigmon.mq.calls import Display, Put
from trigmon.mq.enums import PutOption, UnitOutcome
from trigmon.mq.errors import NoMsgAvailable, UnknownObjectName
from trigmon.mq.replies import Listing
from trigmon.spark.table import batch_of, move, staging_of, sync_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAME = 256
_NAME = re.compile(r"unit-([0-9a-f]+)-([0-9]+)")


@contextmanager
def queue(q_name: str | None = None, *, q_mgr: str | None = None) -> Iterator[JobQueue]:
    """Opens a queue for input, shared, until the end of the block; an exception backs out what is not committed.

    Without a name it is the queue whose trigger started this job, on its queue manager. Raises MQError.
    """
    cause = triggered()
    name = q_name or (cause.q_name if cause else "")
    if not name:
        raise UnknownObjectName("no queue was named, and no trigger started this job")
    with connect(q_mgr) as connection, connection.open(name, "input_shared") as opened:
        yield JobQueue(connection, opened)


class JobQueue:
    """An open queue that is drained unit by unit.

    BOTHRESH and BOQNAME are kept here as MQ asks of every application: a message that was backed out as often as the
    threshold says goes to the queue's backout queue, in the unit it was taken in, instead of failing another job.
    """

    def __init__(self, connection: Connection, opened: Queue) -> None:
        row = connection.ask(Display(object_type="QLOCAL", name=opened.q_name), Listing).rows[0]
        self.name = opened.q_name
        self.backout_queue = str(row["backout_requeue_q_name"])
        self._threshold = int(row["backout_threshold"]) if self.backout_queue else 0
        self._connection = connection
        self._queue = opened

    def take(self, limit: int, *, wait_interval_ms: int = 0) -> Unit | None:
        """Up to ``limit`` messages as one unit of work, or None when none comes within ``wait_interval_ms``."""
        while messages := self._gather(limit, wait_interval_ms):
            failed = [message for message in messages if 0 < self._threshold <= message.backout_count]
            self.set_aside(failed)
            if len(failed) < len(messages):
                return Unit(self._connection, [message for message in messages if message not in failed])
            self._connection.commit()
        return None

    def settle(self, table: str | Path) -> list[str]:
        """Ends what killed jobs left staged beside ``table``; the names of batches whose outcome nobody remembers.

        The queue manager forgets outcomes after a week, and another one never knew them: such a batch stays where it
        is, with a warning, for dropping it could lose its rows and moving it could double them. A batch whose job is
        still at work is left alone.
        """
        forgotten = []
        for staged in sorted(staging_of(table).glob("unit-*")):
            named = _NAME.fullmatch(staged.name)
            if not named:
                continue
            outcome = self._connection.outcome(int(named[2]), named[1])
            if outcome is UnitOutcome.COMMITTED:
                move(staged, batch_of(table, staged.name))
            elif outcome is UnitOutcome.BACKED_OUT:
                shutil.rmtree(staged, ignore_errors=True)
            elif outcome is UnitOutcome.UNKNOWN:
                warnings.warn(f"{staged}: nobody remembers whether its messages were committed", stacklevel=2)
                forgotten.append(staged.name)
        return forgotten

    def set_aside(self, messages: list[Message]) -> None:
        """Puts messages on the queue's backout queue, as they are, in the unit of work they were taken in.

        Raises MQError: UnknownObjectName when the queue names no backout queue.
        """
        if messages and not self.backout_queue:
            raise UnknownObjectName(f"{self.name} names no backout queue (BOQNAME) for what no job can read")
        for message in messages:
            put = Put(
                q_name=self.backout_queue,
                descriptor=message.descriptor,
                data=message.data,
                options=int(PutOption.SYNCPOINT),
                unit=self._connection.unit,
            )
            self._connection.call(put)

    def _gather(self, limit: int, wait_interval_ms: int) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < limit:
            count = min(_FRAME, limit - len(messages))
            wait_ms = 0 if messages else wait_interval_ms
            try:
                messages += self._queue.get_many(count, wait_interval_ms=wait_ms, syncpoint=True)
            except NoMsgAvailable:
                break
        return messages


class Unit:
    """Messages taken together, and consumed together or not at all: the block commits, or backs out and re-raises.

    ``name`` is no other unit's: the connection's id, which no two have, and the number of its unit of work.
    """

    def __init__(self, connection: Connection, messages: list[Message]) -> None:
        self.messages = messages
        self.name = f"unit-{connection.client_id}-{connection.unit}"
        self._connection = connection
        self._batches: list[tuple[Path, Path]] = []

    def staged(self, table: str | Path) -> str:
        """Where this unit's batch of ``table`` is to be written; behind the commit it is ``batch=NAME`` of the table.

        Call it once the block has something to write: a directory that is not there fails the unit.
        """
        staged = staging_of(table) / self.name
        staged.parent.mkdir(parents=True, exist_ok=True)
        self._batches.append((staged, batch_of(table, self.name)))
        return str(staged)

    def again(self) -> list[Message]:
        """The messages that were taken before and came back: the job that had them failed or died."""
        return [message for message in self.messages if message.backout_count > 0]

    def frame(self, spark: SparkSession) -> DataFrame:
        """The messages as rows, see :func:`frame`."""
        return frame(spark, self.messages)

    def __enter__(self) -> Unit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._back_out()
            return
        try:
            for staged, _ in self._batches:
                sync_tree(staged)
        except BaseException:
            self._back_out()
            raise
        self._connection.commit()
        for staged, final in self._batches:
            move(staged, final)

    def _back_out(self) -> None:
        if self._connection.alive:
            self._connection.backout()
        for staged, _ in self._batches:
            shutil.rmtree(staged, ignore_errors=True)


def frame(spark: SparkSession, messages: list[Message]) -> DataFrame:
    """Messages as a DataFrame, in their order: msg_id (hexadecimal), priority, put_time (UTC), data (binary).

    They travel from the driver as one Arrow table, so no Python worker is started for them.
    """
    import pyarrow as pa

    table = pa.table(
        {
            "msg_id": pa.array([m.msg_id.hex() for m in messages], pa.string()),
            "priority": pa.array([m.priority for m in messages], pa.int32()),
            "put_time": pa.array([m.put_ms for m in messages], pa.timestamp("ms", tz="UTC")),
            "data": pa.array([bytes(m.data) for m in messages], pa.binary()),
        }
    )
    return spark.createDataFrame(table)
