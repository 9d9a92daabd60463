"""``drain`` with a real Spark: full sinks, bursts of bad messages, and JSON that cannot be read as asked."""

from __future__ import annotations

import os
import subprocess

import pytest
from pyspark.errors import StreamingQueryException

from tests.daemons import define
from tests.spark.conftest import depth, row_of
from trigmon.mq.calls import Alter
from trigmon.spark import drain
from trigmon.spark.files.staging import staging_of
from trigmon.spark.sinks.sink import SinkError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
JSON = {"options": {"format": "json"}, "schema": "id bigint, name string"}


@pytest.fixture
def here(shared_daemon, q_name, spark):
    """What says to drain which queue."""
    return {"queue": q_name, "qmgr": shared_daemon.address}


@pytest.fixture
def aside(qm, q_name):
    """The backout queue of the test's queue."""
    name = f"{q_name}.ASIDE"
    define(qm, name, def_persistence="persistent")
    attributes = {"backout_requeue_q_name": name, "backout_threshold": 3}
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=attributes))
    return name


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of so many KiB, and grows it."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    where = tmp_path / "disk"
    where.mkdir()

    def size(kib):
        again = "remount," if os.path.ismount(where) else ""
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"{again}size={kib}k", "tmpfs", where], capture_output=True, text=True
        )
        if mounted.returncode:
            pytest.skip(f"no tmpfs can be mounted: {mounted.stderr}")
        return where

    yield size
    if os.path.ismount(where):
        subprocess.run(["umount", "--lazy", where], check=True)


def jobs_of(spark):
    """How many Spark jobs there were so far."""
    return spark.sparkContext._jsc.sc().dagScheduler().nextJobId()


BY_SPARK, BY_TASKS = 500, 1500
"""Messages of a batch: those of a small one come in the plan, and Spark writes them; of a larger one tasks write."""


@pytest.mark.parametrize(
    ("rows", "kib"),
    [
        (BY_SPARK, 900),
        (BY_TASKS, 900),
        *(
            pytest.param(rows, kib, marks=pytest.mark.slow)
            for rows in (BY_SPARK, BY_TASKS)
            for kib in (100, 200, 300, 500, 700, 1200, 1400, 1800, 1900)
        ),
    ],
)
def test_a_full_disk_sets_nothing_aside_and_all_comes_once_when_there_is_room(
    qm, q_name, aside, here, spark, small_disk, rows, kib
):
    count = 4 * rows
    qm.put_many(q_name, [b"%06d " % n + os.urandom(1000) for n in range(count)])  # no compression helps
    where = small_disk(kib) / "table"
    for _ in range(2):
        with pytest.raises(Exception, match=r"(?s)No space left|Mkdirs failed"):
            drain(spark, table=where, max_rows=rows, **here)
        assert depth(qm, aside) == 0
    small_disk(200_000)
    done = drain(spark, table=where, max_rows=rows, **here)
    assert done.rejected == []
    assert depth(qm, aside) == depth(qm, q_name) == 0
    found = spark.read.parquet(str(where)).selectExpr("cast(left(cast(data as string), 6) as int) as id").collect()
    assert sorted(row.id for row in found) == list(range(count))


@pytest.mark.parametrize("count", [4, 300])
def test_a_full_disk_of_a_stream_sets_nothing_aside_and_all_comes_once_when_there_is_room(
    qm, q_name, aside, here, spark, small_disk, tmp_path, capsys, count
):
    qm.put_many(q_name, [b"%06d " % n + os.urandom(100_000 if n == 0 else 1000) for n in range(count)])
    where = small_disk(96) / "sink"
    given = {
        "stream": lambda rows: rows.writeStream.format("parquet").option("path", str(where)),
        "checkpoint": tmp_path / "checkpoint",
        **here,
    }
    for _ in range(2):
        with pytest.raises(StreamingQueryException):
            drain(spark, **given)
        assert depth(qm, aside) == 0
    tried = capsys.readouterr().err.splitlines()  # of the second drain nothing, where the disk has no room for its log
    assert len(tried) in (2, 4)
    assert all("the sink failed: StreamingQueryException: " in line and "No space left" in line for line in tried)
    with qm.open(q_name, "browse") as queue:
        assert {message.backout_count for message in queue.browse()} == {0}
    small_disk(200_000)
    drain(spark, **given)
    assert depth(qm, aside) == depth(qm, q_name) == 0
    found = spark.read.parquet(str(where)).selectExpr("cast(left(cast(data as string), 6) as int) as id").collect()
    assert sorted(row.id for row in found) == list(range(count))


def test_a_sink_that_says_so_gives_up_and_no_message_gets_a_backout_count(qm, q_name, aside, here, spark):
    qm.put_many(q_name, [b"x"] * 3)

    def each(frame, batch):
        raise SinkError("the table is locked")

    for _ in range(4):
        with pytest.raises(SinkError):
            drain(spark, each, max_rows=1, **here)
    assert (depth(qm, q_name), depth(qm, aside)) == (3, 0)
    with qm.open(q_name, "browse") as queue:
        assert [queue.get(browse_next=True).backout_count for _ in range(3)] == [0] * 3


def test_a_burst_of_bad_json_drains_in_few_jobs(qm, q_name, aside, here, spark, tmp_path):
    bad, good = [b"no json"] * 8, [b'{"id": 1, "name": "n"}'] * 3
    qm.put_many(q_name, [*bad, *good, b'{"id": "one"}'])
    before = jobs_of(spark)
    done = drain(spark, table=tmp_path / "table", **JSON, **here)
    assert (done.rows, len(done.rejected)) == (3, 9)
    assert depth(qm, aside) == 9
    assert jobs_of(spark) - before <= 4
    assert all("is no JSON object of the schema" in why for _, why in done.rejected)
    assert len({msg_id.hex() in why for msg_id, why in done.rejected}) == 1  # each has its own reason


def test_three_bad_of_five_thousand_cost_a_job_a_partition_and_leave_no_staging(
    qm, q_name, aside, here, spark, tmp_path
):
    bodies = [b'{"id": %d, "name": "n"}' % n for n in range(5000)]
    for at in (7, 2500, 4999):
        bodies[at] = b'{"id": [1]}'
    qm.put_many(q_name, bodies)
    before = jobs_of(spark)
    done = drain(spark, table=tmp_path / "table", **JSON, **here)
    assert (done.rows, len(done.rejected), done.batches) == (4997, 3, 1)
    assert jobs_of(spark) - before <= 6
    rows = spark.read.parquet(str(tmp_path / "table")).select("id").collect()
    assert sorted(row.id for row in rows) == sorted(set(range(5000)) - {7, 2500, 4999})
    assert not any(staging_of(tmp_path / "table").glob("*"))


@pytest.mark.slow
def test_a_burst_that_the_job_s_own_code_fails_for_drains_too(qm, q_name, aside, here, spark):
    bodies = [*(b"bad %d" % n for n in range(8)), *(b"%d" % n for n in range(12)), b"bad 9", b"12"]
    qm.put_many(q_name, bodies)
    written = []

    def each(frame, batch):
        found = [bytes(row.data).decode() for row in frame.select("data").collect()]
        if any(body.startswith("bad") for body in found):
            raise ValueError("a bad one is among them")
        written.extend(found)

    done = drain(spark, each, **here)
    assert sorted(map(int, written)) == list(range(13))
    assert len(done.rejected) == depth(qm, aside) == 9
    assert row_of(qm, q_name)["current_q_depth"] == 0


class TestModes:
    @pytest.fixture(autouse=True)
    def two(self, qm, q_name):
        qm.put_many(q_name, [b'{"id": 1}', b"no json"])

    def read(self, spark, here, mode, schema="id bigint, bad string"):
        reader = spark.read.format("trigmon").option("queue", here["queue"]).option("qmgr", here["qmgr"])
        reader = reader.option("format", "json").option("mode", mode).option("columnNameOfCorruptRecord", "bad")
        return [tuple(row) for row in reader.schema(schema).load().collect()]

    def test_permissive_has_a_row_of_nulls_and_the_text(self, spark, here):
        assert self.read(spark, here, "permissive") == [(1, None), (None, "no json")]
        assert self.read(spark, here, "PERMISSIVE", "id bigint") == [(1,), (None,)]

    def test_dropmalformed_leaves_it_out(self, spark, here):
        assert self.read(spark, here, "DROPMALFORMED") == [(1, None)]

    def test_failfast_names_the_message(self, spark, here):
        with pytest.raises(Exception, match="is no JSON object of the schema"):
            self.read(spark, here, "FAILFAST")

    def test_a_stream_names_the_queue_the_message_and_what_helps(self, q_name, spark, here, tmp_path):
        reader = spark.readStream.format("trigmon").options(**here, format="json").schema("id bigint")
        writer = reader.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        why = rf"{q_name}: message \w+ \(ordinal 1\) is no JSON object .*; with option mode DROPMALFORMED"
        with pytest.raises(Exception, match=why):
            writer.trigger(availableNow=True).start().awaitTermination(600)

    def test_another_mode_is_refused_with_those_there_are(self, spark, here):
        with pytest.raises(Exception, match="one of PERMISSIVE, DROPMALFORMED, FAILFAST"):
            self.read(spark, here, "STRICT")

    def test_a_drain_takes_the_mode_for_its_rows(self, qm, q_name, aside, spark, here):
        rows = []
        options = {"format": "json", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
        drain(
            spark,
            lambda frame, batch: rows.extend(map(tuple, frame.collect())),
            options=options,
            schema="id bigint, bad string",
            **here,
        )
        assert rows == [(1, None), (None, "no json")]
        assert depth(qm, aside) == 0

    @pytest.mark.parametrize("more", [{}, {"partitions": 2}], ids=["rows in the plan", "rows from the data source"])
    def test_a_drain_drops_what_is_malformed_from_the_queue_and_writes_the_others_once(
        self, qm, q_name, aside, spark, here, tmp_path, more
    ):
        qm.put_many(q_name, [b'{"id": 2}', b"no object", b'["a list"]', b'{"id": "no number"}', b'{"id": 3}'])
        options = {"format": "json", "mode": "DROPMALFORMED", **more}
        done = drain(spark, table=tmp_path / "table", options=options, schema="id bigint", **here)
        assert (done.batches, done.rows, done.rejected) == (1, 7, [])  # what is dropped counts as written
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 0)
        assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "table")).collect()) == [1, 2, 3]
