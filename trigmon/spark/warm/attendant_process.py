"""The attendant process: sends a monitor's requests to Spark Connect servers, since the monitor has no Spark itself.

``python -m trigmon.spark.warm.attendant_process``: a JSON object a line on its standard input, an answer for each on
its standard output, in the order in which they are done; it ends with its input.

=======  ===============================================================================================
wait     ``url``, ``deadline_s``: answered when the server answers
heat     ``url``, ``directory``, ``queue``, ``address``: runs one query of each kind, a read of that queue among
         them, and repeats in sessions of their own the usual beginning of a job; ``missed`` are those that
         failed, ``took_ms`` how long each took
check    ``url``, ``remote``: one query that needs the server and none of its cores
release  ``url``, ``user_id``, ``session_id``, ``deadline_s``: interrupts the session's queries and closes it
forget   ``url``, ``remote``: the server is gone, or with ``remote`` only this session of it
=======  ===============================================================================================

Each has an ``id``, which its answer has too, with ``error`` where it failed. ``remote`` is the address of a session on
an external server ("": a session that this module chooses).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.proto import ReleaseSessionRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from trigmon.spark import small_batch

USER = "trigmon-attendant"
_AT_ONCE = 8
# A check of a server that does not answer occupies its thread until gRPC gives up, and is repeated meanwhile.
_CHECKS_AT_ONCE = 64
# A Java machine compiles code that it has run often: the first run took four times as long as the tenth.
_BEGINNINGS = 8
_KINDS = (pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", tz="UTC"))
# After this time gRPC gives up a server that has stopped in the middle of a query.
_KEEPALIVE = "grpc_keepalive_time_ms=10000;grpc_keepalive_timeout_ms=20000"
Message = dict[str, Any]


class Attendant:
    """The channels and sessions, by the servers' addresses."""

    def __init__(self) -> None:
        self._sessions: dict[str, SparkSession] = {}
        self._channels: dict[str, tuple[DefaultChannelBuilder, grpc.Channel]] = {}
        self._gone: set[str] = set()
        self._begun: set[tuple[str, str]] = set()
        self._is_over = False
        self._lock = threading.Lock()

    def wait(self, asked: Message) -> Message:
        """See the module."""
        by = time.monotonic() + asked["deadline_s"]
        while True:
            try:
                return self.check(asked)
            except Exception:
                if time.monotonic() >= by or asked["url"] in self._gone:
                    raise
                self._drop(asked["url"])
                time.sleep(0.1)

    def heat(self, asked: Message) -> Message:
        """See the module."""
        answer = heat(self._session(asked["url"]), asked)
        began = time.monotonic()
        try:
            for _ in range(_BEGINNINGS):
                self._begin(asked)
        except Exception as error:
            answer["missed"].append(f"beginnings: {_one_line(error)}")
        answer["took_ms"]["beginnings"] = round(1000 * (time.monotonic() - began))
        return answer

    def _begin(self, asked: Message) -> None:
        url, session_id = asked["url"], str(uuid.uuid4())
        with self._lock:
            if self._is_over:
                return
            self._begun.add((url, session_id))
        begin(asked, session_id)
        self._begun.remove((url, session_id))

    def end(self) -> None:
        """Releases the sessions of unfinished beginnings, which their server would keep for an hour."""
        with self._lock:
            self._is_over = True
        for url, session_id in self._begun:
            self.release({"url": url, "user_id": USER, "session_id": session_id, "deadline_s": 1})

    def check(self, asked: Message) -> Message:
        """See the module."""
        self._session(asked["url"], asked.get("remote", "")).sql("VALUES (1)").collect()
        return {}

    def release(self, asked: Message) -> Message:
        """See the module. A session that does not exist counts as released."""
        builder, channel = self._channel(asked["url"])
        request = ReleaseSessionRequest(session_id=asked["session_id"], client_type="trigmon")
        request.user_context.user_id = asked["user_id"]
        stub = SparkConnectServiceStub(channel)
        stub.ReleaseSession(request, timeout=asked["deadline_s"], metadata=list(builder.metadata()))
        return {}

    def forget(self, asked: Message) -> Message:
        """See the module."""
        remote = asked.get("remote", "")
        if not remote:
            self._gone.add(asked["url"])
        self._drop(asked["url"], remote)
        return {}

    def _drop(self, url: str, remote: str = "") -> None:
        with self._lock:
            session = self._sessions.pop(remote or url, None)
            _, channel = self._channels.pop(url, (None, None))
        if channel is not None:
            channel.close()
        if session is not None:
            session.client._channel.close()

    def _session(self, url: str, remote: str = "") -> SparkSession:
        key = remote or url
        with self._lock:
            if key not in self._sessions:
                # The same session for every attendant of a server, so that none is left behind.
                session_id = uuid.uuid5(uuid.NAMESPACE_URL, url)
                mine = remote or f"{url.rstrip('/')};user_id={USER};session_id={session_id}"
                session = SparkSession.builder.remote(f"{mine};{_KEEPALIVE}").create()
                session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
                self._sessions[key] = session
            return self._sessions[key]

    def _channel(self, url: str) -> tuple[DefaultChannelBuilder, grpc.Channel]:
        with self._lock:
            if url not in self._channels:
                builder = DefaultChannelBuilder(url)
                self._channels[url] = builder, builder.toChannel()
            return self._channels[url]


def heat(spark: SparkSession, asked: Message) -> Message:
    """Runs one query of each kind, so that no run's is the first. Returns the times, and the failures with reasons."""
    target = Path(asked["directory"]) / "heat"

    def same(batches: Any) -> Any:
        yield from batches

    def rows() -> DataFrame:
        return spark.createDataFrame([(1, "a"), (2, "b")], "a int, b string")

    def file() -> None:
        spark.range(10).write.mode("overwrite").parquet(f"file:{target}")
        spark.read.parquet(f"file:{target}").count()

    kinds: dict[str, Callable[[], Any]] = {
        "range": lambda: spark.range(10).collect(),
        "local rows": lambda: rows().groupBy("b").count().collect(),
        "join": lambda: spark.range(9).join(spark.range(9), "id").count(),
        "sql": lambda: spark.sql("SELECT count(*), max(id) FROM range(100) GROUP BY id % 3 ORDER BY 1").collect(),
        "python": lambda: spark.range(4).mapInPandas(same, "id bigint").collect(),
        "file": file,
        "queue": lambda: queue(spark, asked).count(),
    }
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    answer: Message = {"missed": [], "took_ms": {}}
    for name, query in kinds.items():
        began = time.monotonic()
        try:
            query()
        except Exception as error:
            answer["missed"].append(f"{name}: {_one_line(error)}")
        answer["took_ms"][name] = round(1000 * (time.monotonic() - began))
    shutil.rmtree(target, ignore_errors=True)
    return answer


def begin(asked: Message, session_id: str) -> None:
    """Runs in a session of its own what jobs begin with: a setting, queries, rows into files; ends the session.

    The rows are those of a plan and those of the queue.
    """
    target = Path(asked["directory"]) / f"heat-{session_id}"
    # Not by its builder: that would make it the default session of this process.
    spark = SparkSession(f"{asked['url'].rstrip('/')};user_id={USER};session_id={session_id};{_KEEPALIVE}")
    try:
        spark.client.set_retry_policies([DefaultPolicy(max_retries=0)])
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        rows = spark.createDataFrame([(n % 7, n) for n in range(1000)], ["k", "n"])
        rows.groupBy("k").sum("n").collect()
        spark.range(1).collect()
        for at, messages in enumerate((rows_in_plan(spark), queue(spark, asked))):
            assert messages.schema
            messages.write.parquet(f"file:{target}/{at}")
    finally:
        spark.stop()
        shutil.rmtree(target, ignore_errors=True)


def queue(spark: SparkSession, asked: Message) -> DataFrame:
    """Returns messages of the queue that is asked for, not more than a few."""
    reader = spark.read.format("trigmon").option("queue", asked["queue"]).option("address", asked["address"])
    return reader.option("columns", "msg_id,put_time,data").option("maxRows", 100).load()


def rows_in_plan(spark: SparkSession) -> DataFrame:
    """Returns rows of the usual types as a drain has those of a small batch."""
    numbers = pa.array(range(1000), pa.int64())
    rows = pa.table({f"c{at}": numbers.cast(kind) for at, kind in enumerate(_KINDS)})
    return small_batch.in_plan(spark, rows, from_arrow_schema(rows.schema))


def _one_line(error: Exception) -> str:
    """Returns an error in one line: Spark's errors contain a Java stack, gRPC's the whole channel."""
    text = str(error)
    details = re.search(r'details = "([^"]*)"', text)
    return (details[1] if details else text.partition("\n")[0] or repr(error))[:300]


def main() -> None:
    """Answers the requests on standard input until its end."""
    attendant, lock = Attendant(), threading.Lock()
    # Output of libraries must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr

    def do(asked: Message) -> None:
        try:
            answer = getattr(attendant, asked["do"])(asked)
        except Exception as error:
            answer = {"error": _one_line(error)}
        with lock:
            answers.write(json.dumps(answer | {"id": asked["id"]}) + "\n")
            answers.flush()

    # Checks have threads of their own: a late one would count as a failure and end a healthy server.
    checks, others = ThreadPoolExecutor(_CHECKS_AT_ONCE), ThreadPoolExecutor(_AT_ONCE)
    for line in sys.stdin:
        asked = json.loads(line)
        (checks if asked["do"] == "check" else others).submit(do, asked)
    with suppress(Exception):
        attendant.end()
    os._exit(0)  # the monitor has gone, and the exit handlers of a client would send a query to its server


if __name__ == "__main__":
    main()
