"""A queue's messages for a Spark job, on its driver: taken in units of work that end only when the rows are safe.

>>> from trigmon.spark import jobs
>>> with jobs.queue() as messages:  # doctest: +SKIP
...     while unit := messages.take(10_000, wait_interval_ms=1000):
...         with unit:  # commits at its end, backs out when anything in it fails
...             unit.frame(spark).write.mode("overwrite").parquet(f"/data/staged/{unit.name}")
...             jobs.publish(f"/data/staged/{unit.name}", f"/data/orders/batch={unit.name}")

A unit that is backed out, or whose job is killed, lies on the queue again with a higher backout count. What a job that
died between its write and its commit had written is therefore met again: :meth:`Unit.again` tells those messages.
"""

from __future__ import annotations

import os
import shutil
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
from trigmon.mq.calls import Display, Listing, Put
from trigmon.mq.enums import PutOption
from trigmon.mq.errors import NoMsgAvailable, UnknownObjectName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAME = 256


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
    """Messages taken together, and consumed together or not at all: the block commits, or backs out and re-raises."""

    def __init__(self, connection: Connection, messages: list[Message]) -> None:
        self.messages = messages
        self._connection = connection

    @property
    def name(self) -> str:
        """A name no other unit has as long as a message is consumed once: by its first message's id."""
        return f"unit-{self.messages[0].msg_id.hex()}"

    def again(self) -> list[Message]:
        """The messages that were taken before and came back: their rows may have been written already."""
        return [message for message in self.messages if message.backout_count > 0]

    def frame(self, spark: SparkSession) -> DataFrame:
        """The messages as rows, see :func:`frame`."""
        return frame(spark, self.messages)

    def __enter__(self) -> Unit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._connection.commit()
        elif self._connection.alive:
            self._connection.backout()


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


def publish(staged: str | Path, final: str | Path) -> None:
    """Moves a written directory to its place, whole or not at all, and safe from a power cut when this returns.

    Both lie on one local file system. A ``final`` that exists is replaced: it can only be the same unit's.
    """
    staged, final = Path(staged), Path(final)
    for folder, _, files in os.walk(staged):
        for file in files:
            _sync(Path(folder, file))
        _sync(Path(folder))
    if final.exists():
        shutil.rmtree(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    staged.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
