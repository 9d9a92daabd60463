"""Writers of the data source: the rows of a whole job, or of a stream's batch, are one unit of work.

A unit of work ends with its connection, and a task's connection ends with the task. So tasks put nothing. Each sends
its messages to the driver with its commit message, or in a file where they are many, and the driver puts those of the
tasks that succeeded. An attempt that failed, or that Spark discarded, has put nothing. It can leave only a file, which
is removed by its age.

A stream's batch is put once, however often Spark commits it: the same unit of work puts a note with the query and the
batch's number on a system queue, and a batch with a note is not put again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from trigmon.client.connection import Connection
from trigmon.mq.calls import Define, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import PutOption, UnitOutcome
from trigmon.mq.errors import (
    ConnectionBroken,
    NoMsgAvailable,
    ObjectAlreadyExists,
    SyncpointLimitReached,
    UnknownObjectName,
)
from trigmon.spark import arrow_rows, json_rows
from trigmon.spark.options import Options
from trigmon.spark.plan_errors import one_line
from trigmon.spark.retry import when_free

BATCHES_Q = "SYSTEM.SPARK.BATCHES"
"""The queue of notes: one message for each query and queue (CorrelId) with the number of the last batch put."""
INLINE_BYTES = 8 << 20
"""Bytes of a task's messages that are sent with its commit message at most; more go into a file."""
STAGED_S = 24 * 3600
"""The age in seconds at which an uncommitted file is removed."""
_FRAME, _FRAME_BYTES = 256, 1 << 20
_SYNCPOINT = PutOption.SYNCPOINT.value
_QUERY_ID = "sql.streaming.queryId"


class Frame(msgspec.Struct, array_like=True):
    """Consecutive messages with the same descriptor."""

    descriptor: MessageDescriptor
    bodies: list[bytes]


_decoder = msgspec.msgpack.Decoder(list[Frame])


class Staged(WriterCommitMessage):
    """The commit message of a task: its messages, or the file with them."""

    def __init__(self, partition: int, count: int, query: str, data: bytes, file: str) -> None:
        self.partition = partition
        self.count = count
        self.query = query
        self.data = data
        self.file = file

    def frames(self) -> list[Frame]:
        """Returns the messages, in their order."""
        return _decoder.decode(Path(self.file).read_bytes() if self.file else self.data)


class _Appending:
    """The base of both writers: the part in a task, and the removal of files."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Returns the messages of a task's rows, for the driver; puts nothing. Raises UnfitRowError."""
        frames: list[Frame] = []
        count = size = 0
        for batch in iterator:
            for descriptor, body in arrow_rows.to_puts(as_json(batch) if self.options.is_json else batch):
                last = frames[-1] if frames else None
                if last is None or last.descriptor != descriptor or size > _FRAME_BYTES or len(last.bodies) == _FRAME:
                    frames.append(last := Frame(descriptor, []))
                    size = 0
                last.bodies.append(body)
                count, size = count + 1, size + len(body)
        data = msgspec.msgpack.encode(frames)
        task = TaskContext.get()
        assert task is not None
        query = task.getLocalProperty(_QUERY_ID) or ""
        if len(data) <= INLINE_BYTES:
            return Staged(task.partitionId(), count, query, data, "")
        return Staged(task.partitionId(), count, query, b"", str(stage(self.options.staging, data)))

    def discard(self, messages: list[Staged | None]) -> None:
        """Removes the files of these tasks, and old files of others."""
        for message in messages:
            if message is not None and message.file:
                Path(message.file).unlink(missing_ok=True)
        sweep(self.options.staging)


class QueueWriter(_Appending, DataSourceArrowWriter):
    """Appends the rows of a job."""

    def commit(self, messages: list[Staged | None]) -> None:
        """Puts the messages of all tasks, in the order of the partitions, in one unit of work."""
        with one_line(self.options.queue):
            self._put(messages)
        self.discard(messages)

    def _put(self, messages: list[Staged | None]) -> None:
        with self.options.connect("writing") as connection:
            unit = connection.unit
            put_all(connection, self.options.queue, messages)
            try:
                connection.commit()
            except ConnectionBroken:
                with self.options.connect("writing") as again:
                    if again.outcome(unit, connection.client_id) is not UnitOutcome.COMMITTED:
                        raise

    def abort(self, messages: list[Staged | None]) -> None:
        """Removes the files; nothing was put."""
        self.discard(messages)


class QueueStreamWriter(_Appending, DataSourceStreamArrowWriter):
    """Appends a stream's batches, each once."""

    def commit(self, messages: list[Staged | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Puts the batch, unless it was put already by a commit that Spark does not know of."""
        with one_line(self.options.queue):
            self._put(messages, batchId)
        self.discard(messages)

    def _put(self, messages: list[Staged | None], batch: int) -> None:
        query = next((message.query for message in messages if message is not None), "")
        with self.options.connect("writing") as connection:
            note = noted(connection, self.options.queue, query)
            # Exclusively, so that two drivers of one query cannot both find their batch not yet put.
            with when_free(lambda: open_notes(connection)) as notes:
                try:
                    last = int(notes.get(match={"correl_id": note}, syncpoint=True).data)
                except NoMsgAvailable:
                    last = -1
                if batch > last:
                    put_all(connection, self.options.queue, messages)
                    number = str(batch).encode()
                    notes.put(number, correl_id=note, persistence="persistent", syncpoint=True)
                    connection.commit()
                else:
                    connection.backout()

    def abort(self, messages: list[Staged | None], batchId: int) -> None:  # noqa: N803
        """Removes the files; nothing was put, or all of it by a commit whose reply was lost."""
        self.discard(messages)


# -- parts of the above -------------------------------------------------------------------------------------


def put_all(connection: Connection, q_name: str, messages: list[Staged | None]) -> None:
    """Puts the messages of all tasks under syncpoint. Raises MQError, with the remedy for a unit that is too large."""
    sent = sorted((m for m in messages if m is not None), key=lambda message: message.partition)
    with connection.open(q_name, "output") as queue:
        calls = (
            PutMany(
                bodies=frame.bodies,
                handle=queue.handle,
                descriptor=frame.descriptor,
                options=_SYNCPOINT,
                unit=connection.unit,
            )
            for message in sent
            for frame in message.frames()
        )
        try:
            connection.pipeline(calls)
        except SyncpointLimitReached as error:
            count = sum(message.count for message in sent)
            raise SyncpointLimitReached(
                f"{count} messages are one unit of work, and the queue manager's MAXUMSGS is less: {error.about}"
            ) from None


def open_notes(connection: Connection) -> Any:
    """Opens and returns the queue of notes; defines it where it is missing."""
    try:
        return connection.open(BATCHES_Q, "input_exclusive", "output")
    except UnknownObjectName:
        attributes = {"def_persistence": "persistent", "description": "Which batch of which Spark stream was put last"}
        with suppress(ObjectAlreadyExists):
            connection.call(Define(object_type="QLOCAL", name=BATCHES_Q, attributes=attributes))
        return connection.open(BATCHES_Q, "input_exclusive", "output")


def noted(connection: Connection, q_name: str, query: str) -> bytes:
    """Returns the CorrelId of a query's note."""
    return hashlib.sha256(f"{query} {q_name}".encode()).digest()[:24]


def as_json(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a column ``data`` with each row as a JSON object, and the columns ``mq_...`` under their own names."""
    own = [name for name in batch.schema.names if arrow_rows.is_of_message(name)]
    fields = batch.select([name for name in batch.schema.names if name not in own])
    bodies = json_rows.objects(fields)
    described = {arrow_rows.raw_name(name): batch.column(name) for name in own}
    return pa.RecordBatch.from_pydict({arrow_rows.DATA: pa.array(bodies, pa.string()), **described})


def stage(directory: str, data: bytes) -> Path:
    """Writes a task's messages into a new file and returns its path; leaves no file on failure."""
    where = _staging(directory)
    descriptor, name = tempfile.mkstemp(prefix="attempt-", dir=where)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def sweep(directory: str, older_s: float = STAGED_S) -> None:
    """Removes uncommitted files of attempts, by their age."""
    for file in _staging(directory).glob("attempt-*"):
        try:
            if time.time() - file.stat().st_mtime > older_s:
                file.unlink()
        except FileNotFoundError:
            continue  # another job has removed it


def _staging(directory: str) -> Path:
    where = Path(directory or Path(tempfile.gettempdir()) / f"trigmon-staging-{os.getuid()}")
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    if where.stat().st_uid != os.getuid():
        raise PermissionError(f"{where} is another user's: name one by the option staging")
    return where


__all__ = ["BATCHES_Q", "QueueStreamWriter", "QueueWriter", "Staged", "stage", "sweep"]
