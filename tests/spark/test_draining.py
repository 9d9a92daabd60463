"""``drain`` and ``batches`` with a real Spark: the usual job, and what becomes of messages that it cannot work off."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from functools import partial

import apsw
import pytest

import trigmon
from tests.daemons import define
from tests.spark.conftest import depth, row_of
from trigmon.mq.calls import Alter
from trigmon.mq.enums import MsgFlag
from trigmon.spark import batches, drain
from trigmon.spark.arrow_rows import UnfitRowError
from trigmon.spark.file_table import BatchRefusedError, refuse_batch, write_batch

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture
def aside(qm, q_name):
    """The backout queue of the test's queue."""
    name = f"{q_name}.ASIDE"
    define(qm, name, def_persistence="persistent")
    qm.call(alter(q_name, backout_requeue_q_name=name))
    return name


def alter(q_name, **attributes):
    return Alter(object_type="QLOCAL", name=q_name, attributes=attributes)


def fill(qm, q_name, count):
    qm.put_many(q_name, [b"%d" % n for n in range(count)])


def data_of(frame):
    return [bytes(row.data).decode() for row in frame.select("data").collect()]


def test_one_call_drains_a_queue_into_a_table_of_a_directory_a_batch(qm, q_name, here, spark, tmp_path):
    fill(qm, q_name, 250)
    reported, where = [], tmp_path / "a table, 100%"
    done = drain(
        spark,
        table=where,
        transform=lambda frame: frame.selectExpr("cast(data as string) as body", "priority"),
        progress=lambda batch: reported.append(batch.count),
        max_rows=100,
        **here,
    )
    assert (done.batches, done.rows, done.rejected, reported) == (3, 250, [], [100, 100, 50])
    table = spark.read.parquet(str(where))
    assert table.columns == ["body", "priority", "batch"]
    assert sorted(int(row.body) for row in table.collect()) == list(range(250))
    assert table.select("batch").distinct().count() == 3
    assert depth(qm, q_name) == 0
    assert drain(spark, table=where, **here).batches == 0


@pytest.mark.parametrize("count", [3, 1500], ids=["in the plan", "by the data source"])
def test_a_damaged_message_is_set_aside_and_hinders_no_job(daemon, spark, tmp_path, count):
    one = daemon()
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        fill(qm, "Q", count)
    assert one.stop() == 0
    with contextlib.closing(apsw.Connection(str(one.data / "qm.db"))) as db:
        db.execute("UPDATE message SET data = x'00' WHERE data = CAST('1' AS BLOB)")
    one.start()
    done = drain(spark, table=tmp_path / "table", queue="Q", qmgr=one.address)
    rows = data_of(spark.read.parquet(str(tmp_path / "table")))
    assert sorted(map(int, rows)) == [0, *range(2, count)]
    assert done.rejected == []
    with one.connect() as qm:
        assert depth(qm, "Q") == 0
        assert qm.reservations("Q") == []


def test_the_queue_whose_trigger_started_the_job_is_the_one_that_is_meant(qm, q_name, here, spark, monkeypatch):
    fill(qm, q_name, 3)
    monkeypatch.setenv("TRIGMON_QMGR", here["qmgr"])
    monkeypatch.setenv("TRIGMON_QNAME", q_name)
    monkeypatch.setenv("TRIGMON_PROCESS", "THE.PROCESS")
    seen = []
    drain(spark, lambda frame, batch: seen.append([r["consumer"] for r in qm.reservations(q_name)]))
    assert seen == [["THE.PROCESS"]]


def test_without_a_queue_and_without_a_trigger_the_job_gets_the_reason(spark):
    with pytest.raises(trigmon.UnknownObjectName, match="no queue was named"):
        drain(spark, lambda frame, batch: None)


def test_json_comes_as_the_columns_of_a_schema(qm, q_name, here, spark):
    qm.put_many(q_name, ['{"id": 1, "name": "one"}', '{"id": 2, "name": "two"}'])
    rows = []
    drain(
        spark,
        lambda frame, batch: rows.extend(tuple(row) for row in frame.collect()),
        options={"format": "json"},
        schema="id bigint, name string",
        **here,
    )
    assert rows == [(1, "one"), (2, "two")]


UNREAD = [
    *("map<string,double>", "struct<of: array<map<string,int>>>", "interval day to second"),
    *("variant", "array<variant>", "geometry(4326)", "time"),
]
"""Types that no JSON is read as."""


@pytest.mark.parametrize(
    ("kind", "mode", "expected"),
    [(kind, "FAILFAST", "column of has a type that format json does not read: leave it out of") for kind in UNREAD]
    + [("int not null", "PERMISSIVE", "column of is NOT NULL, and mode PERMISSIVE makes a row of nulls")],
)
def test_a_schema_that_json_is_not_read_as_is_refused_before_anything_is_taken(
    qm, q_name, here, spark, tmp_path, kind, mode, expected
):
    qm.put_many(q_name, ['{"id": 1, "of": {}}'] * 3)
    how = {"options": {"format": "json", "mode": mode}, "schema": f"id bigint, of {kind}"}
    with pytest.raises(UnfitRowError, match=expected):
        drain(spark, table=tmp_path / "t", **how, **here)
    assert (depth(qm, q_name), qm.reservations(q_name), (tmp_path / "t").exists()) == (3, [], False)


class TestBatches:
    def test_a_frame_reads_the_same_rows_at_every_action_until_its_block_ends(self, qm, q_name, here, spark):
        fill(qm, q_name, 30)
        with batches(spark, max_rows=20, **here) as waiting:
            for batch in waiting:
                with batch:
                    frame = batch.frame
                    if batch.count == 20:
                        qm.put(q_name, b"-1", priority=9)
                    first, second = data_of(frame), data_of(frame)
                    assert first == second
                    assert len(first) == batch.count
                with pytest.raises(Exception, match=r"nothing of it is left|was settled"):
                    frame.count()
        assert depth(qm, q_name) == 0

    def test_the_queue_is_held_open_over_all_batches_and_the_messages_do_not_count(self, qm, q_name, here, spark):
        fill(qm, q_name, 30)
        seen = []
        with batches(spark, max_rows=10, **here) as waiting:
            for batch in waiting:
                with batch:
                    seen.append(row_of(qm, q_name)["open_input_count"])
        assert seen == [1, 1, 1]

    def test_a_batch_that_nobody_works_off_is_reported_and_comes_to_the_next_job(self, qm, q_name, here, spark):
        fill(qm, q_name, 3)
        with batches(spark, **here) as waiting:
            first = waiting.next()
            with pytest.raises(RuntimeError, match="say 'with batch:'"):
                waiting.next()
        with batches(spark, **here) as waiting, waiting.next() as again:
            assert (again.id, again.again, again.count) == (first.id, True, 3)
        assert depth(qm, q_name) == 0

    def test_an_interrupt_is_nobody_s_fault_and_leaves_the_batch_to_the_next_job(self, qm, q_name, here, spark):
        fill(qm, q_name, 3)
        with pytest.raises(KeyboardInterrupt), batches(spark, **here) as waiting, waiting.next():
            raise KeyboardInterrupt
        assert [row["left"] for row in qm.reservations(q_name)] == [3]
        assert depth(qm, q_name) == 3

    def test_a_second_job_of_the_consumer_is_refused_while_the_first_is_at_work(
        self, qm, q_name, here, spark, monkeypatch
    ):
        fill(qm, q_name, 3)
        monkeypatch.setattr("trigmon.spark.queue_batches.IN_USE_S", 0.2)
        with batches(spark, **here) as first, first.next():
            with pytest.raises(trigmon.ObjectInUse), batches(spark, **here) as second:
                second.next()
            with batches(spark, consumer="another", **here) as other:
                assert other.next() is None


class TestWhatFails:
    def refuse(self, written, *bad):
        def each(frame, batch):
            bodies = data_of(frame)
            if found := [body for body in bodies if body in bad]:
                raise ValueError(f"cannot read {found[0]}")
            written.extend(bodies)

        return each

    def test_the_bad_message_goes_to_the_backout_queue_and_the_rest_is_written_once(
        self, qm, q_name, here, spark, aside
    ):
        fill(qm, q_name, 100)
        written = []
        done = drain(spark, self.refuse(written, "37"), max_rows=64, **here)
        assert sorted(map(int, written)) == [n for n in range(100) if n != 37]
        assert [rejected.why for rejected in done.rejected] == ["ValueError: cannot read 37"]
        assert done.rows == 99
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 1)
        with qm.open(aside, "input_shared") as q:
            message = q.get()
        assert (message.body, message.msg_id) == (b"37", done.rejected[0].msg_id)
        assert (message.rejection.why, message.rejection.q_name) == ("ValueError: cannot read 37", q_name)

    def test_the_error_s_text_stands_in_the_queue_manager_s_log(self, qm, q_name, here, spark, aside, shared_daemon):
        fill(qm, q_name, 4)
        drain(spark, self.refuse([], "2"), **here)
        assert any("cannot read 2" in str(event) and aside in str(event) for event in shared_daemon.events())

    def test_without_a_backout_queue_it_goes_to_the_dead_letter_queue(self, qm, q_name, here, spark):
        define(qm, f"{q_name}.DEAD")
        qm.call(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": f"{q_name}.DEAD"}))
        fill(qm, q_name, 4)
        assert len(drain(spark, self.refuse([], "2"), **here).rejected) == 1
        assert depth(qm, f"{q_name}.DEAD") == 1

    def test_a_message_that_a_task_cannot_parse_is_found_by_the_same_search(
        self, qm, q_name, here, spark, aside, tmp_path
    ):
        qm.put_many(q_name, ['{"id": 1}', "nonsense", '{"id": 3}', '{"id": 4}'])
        bad = drain(
            spark, table=tmp_path / "table", options={"format": "json"}, schema="id bigint", max_rows=4, **here
        ).rejected
        assert len(bad) == 1
        assert "is no JSON object of the schema" in bad[0].why
        assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "table")).collect()) == [1, 3, 4]

    def test_a_message_that_kills_the_python_worker_of_a_task_is_found_by_the_same_search(
        self, qm, q_name, here, spark, aside, tmp_path
    ):
        qm.put_many(q_name, [b"bad" if n == 5 else b"%d" % n for n in range(12)])

        def work(tables):
            for table in tables:
                if any(bytes(data) == b"bad" for data in table["data"]):
                    os.kill(os.getpid(), signal.SIGKILL)
                yield table

        done = drain(
            spark,
            table=tmp_path / "table",
            transform=lambda frame: frame.select("data").mapInPandas(work, "data binary"),
            max_rows=12,
            attempts=1,
            **here,
        )
        (rejected,) = done.rejected
        assert "Python worker exited unexpectedly" in rejected.why
        written = [bytes(row.data) for row in spark.read.parquet(str(tmp_path / "table")).collect()]
        assert sorted(written) == sorted(b"%d" % n for n in range(12) if n != 5)
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 1)

    def test_where_the_sink_is_broken_nothing_is_set_aside_and_the_job_fails(self, qm, q_name, here, spark, aside):
        fill(qm, q_name, 40)

        def broken(frame, batch):
            raise OSError("no space left on the device")

        with pytest.raises(OSError, match="no space left"):
            drain(spark, broken, max_rows=20, **here)
        assert (depth(qm, q_name), depth(qm, aside)) == (40, 0)
        with qm.open(q_name, "input_shared") as q:
            got = [q.get() for _ in range(40)]
        assert [(message.data, message.backout_count) for message in got] == [(b"%d" % n, 0) for n in range(40)]

    def test_a_failure_that_passes_costs_nothing(self, qm, q_name, here, spark, aside):
        fill(qm, q_name, 10)
        written, failures = [], [OSError("busy")]

        def each(frame, batch):
            if failures:
                raise failures.pop()
            written.extend(data_of(frame))

        done = drain(spark, each, wait_interval_ms=100, **here)
        assert (done.batches, done.rows, len(written), depth(qm, aside)) == (1, 10, 10, 0)

    def test_the_only_message_is_set_aside_when_as_many_jobs_failed_on_it_as_bothresh_says(
        self, qm, q_name, here, spark, aside
    ):
        qm.call(alter(q_name, backout_threshold=2))
        qm.put(q_name, b"bad")
        for _ in range(2):
            with pytest.raises(ValueError, match="cannot read bad"):
                drain(spark, self.refuse([], "bad"), **here)
            assert depth(qm, aside) == 0
        assert len(drain(spark, self.refuse([], "bad"), **here).rejected) == 1
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 1)

    def test_a_group_is_halved_from_the_others_and_never_in_itself(self, qm, q_name, here, spark, aside):
        with qm.open(q_name, "output") as q:
            for group in range(6):
                for number in range(1, 4):
                    flag = MsgFlag.LAST_MSG_IN_GROUP if number == 3 else MsgFlag.MSG_IN_GROUP
                    body = b"%d-%d" % (group, number)
                    q.put(body, group_id=b"%d" % group, msg_seq_number=number, msg_flags=flag)
        written = []
        done = drain(spark, self.refuse(written, "4-2"), groups=True, max_rows=12, **here)
        assert sorted(written) == [f"{g}-{n}" for g in (0, 1, 2, 3, 5) for n in (1, 2, 3)]
        assert len(done.rejected) == 3
        assert depth(qm, aside) == 3


class TestByAStream:
    def into(self, directory):
        return lambda rows: rows.writeStream.format("parquet").option("path", str(directory))

    def test_a_stream_drains_to_the_last_message_into_a_sink_of_spark_s_own(self, qm, q_name, here, spark, tmp_path):
        fill(qm, q_name, 100)
        done = drain(
            spark,
            stream=self.into(tmp_path / "sink"),
            checkpoint=tmp_path / "checkpoint",
            transform=lambda rows: rows.selectExpr("cast(cast(data as string) as int) as number"),
            max_rows=40,
            **here,
        )
        assert (done.batches, done.rows, done.rejected) == (3, 100, [])
        assert sorted(row.number for row in spark.read.parquet(str(tmp_path / "sink")).collect()) == list(range(100))
        assert (depth(qm, q_name), qm.reservations(q_name)) == (0, [])

    @pytest.mark.parametrize(
        "quoted", ["java.net.ConnectException: refused", "java.io.IOException: No space left on device"]
    )
    def test_a_message_whose_text_looks_like_an_error_of_the_sink_s_is_set_aside(
        self, qm, q_name, here, spark, aside, tmp_path, quoted
    ):
        qm.put_many(q_name, ['{"a": "2020-01-01"}', json.dumps({"a": quoted}), '{"a": "2020-01-02"}'])
        as_date = "from_json(cast(data as string), 'a date', map('mode', 'FAILFAST')) as row"
        done = drain(
            spark,
            stream=self.into(tmp_path / "sink"),
            checkpoint=tmp_path / "checkpoint",
            transform=lambda rows: rows.selectExpr(as_date),
            attempts=1,
            **here,
        )
        assert len(done.rejected) == depth(qm, aside) == 1
        assert depth(qm, q_name) == 0
        assert sorted(str(row.a) for row in spark.read.parquet(str(tmp_path / "sink")).select("row.a").collect()) == [
            "2020-01-01",
            "2020-01-02",
        ]

    def test_its_bad_message_is_found_by_halving_and_the_rest_is_in_the_sink_once(
        self, qm, q_name, here, spark, aside, tmp_path
    ):
        fill(qm, q_name, 6)
        bad = qm.put(q_name, b"bad").msg_id
        fill(qm, q_name, 2)
        checked = "if(data = cast('bad' as binary), raise_error('cannot read it'), cast(data as string)) as body"
        done = drain(
            spark,
            stream=self.into(tmp_path / "sink"),
            checkpoint=tmp_path / "checkpoint",
            transform=lambda rows: rows.selectExpr(checked),
            max_rows=8,
            attempts=1,
            **here,
        )
        assert [rejected.msg_id for rejected in done.rejected] == [bad]
        assert "cannot read it" in done.rejected[0].why
        rows = [row.body for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
        assert sorted(rows) == sorted(["0", "1", "2", "3", "4", "5", "0", "1"])
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 1)
        assert row_of(qm, q_name)["open_input_count"] == 0


class TestInParts:
    """What jobs died over; a SystemExit leaves to the next job what a death does."""

    @pytest.fixture
    def table(self, tmp_path):
        return tmp_path / "table"

    @pytest.fixture
    def how(self, here, table):
        return {"refuse": partial(refuse_batch, table), **here}

    def die(self, spark, how, times):
        for _ in range(times):
            with pytest.raises(SystemExit), batches(spark, **how) as waiting, waiting.next():
                raise SystemExit

    def numbers_in(self, spark, table):
        return sorted(int(body) for body in data_of(spark.read.parquet(str(table))))

    @pytest.mark.parametrize("deaths", [1, 3])
    def test_a_message_at_which_jobs_were_killed_by_chance_is_in_the_table_like_all_others_and_nothing_fails(
        self, qm, q_name, here, how, spark, table, deaths, capsys
    ):
        fill(qm, q_name, 4)
        self.die(spark, how, 2 + deaths)  # two over all of it, the others over one message alone each
        done = drain(spark, table=table, **here)
        assert (done.rejected, done.rows) == ([], 4)
        assert self.numbers_in(spark, table) == [0, 1, 2, 3]
        assert "BatchRefusedError" not in capsys.readouterr().err

    def test_what_a_job_had_written_when_it_died_is_settled_and_a_part_bears_the_number_of_its_deaths(
        self, qm, q_name, how, spark, table
    ):
        fill(qm, q_name, 2)
        self.die(spark, how, 2)
        ids = []
        for writes in (False, False, True):  # a death over each of the two, and one more over the first
            with pytest.raises(SystemExit), batches(spark, **how) as waiting, waiting.next() as batch:
                ids.append(batch.id)
                if writes:
                    write_batch(batch.frame, table, batch.id)
                raise SystemExit
        whole = ids[0].removesuffix("-0-1")
        assert ids == [f"{whole}-0-1", f"{whole}-1-2", f"{whole}-0-1-1"]
        with batches(spark, **how) as waiting, waiting.next() as batch:
            assert (batch.id, waiting.rows) == (f"{whole}-1-2-1", 1)
            write_batch(batch.frame, table, batch.id)
        assert self.numbers_in(spark, table) == [0, 1]

    def test_an_interrupt_behind_the_sink_s_commit_writes_nothing_twice_though_the_parts_are_cut_anew(
        self, qm, q_name, here, how, spark, table
    ):
        fill(qm, q_name, 20)
        self.die(spark, how, 2)
        parts = []
        with pytest.raises(KeyboardInterrupt), batches(spark, attempts=1, **how) as waiting:
            for batch in waiting:
                with batch:
                    parts.append(batch.part)
                    if batch.part != (3, 4):
                        raise ValueError("something else is wrong")
                    write_batch(batch.frame, table, batch.id)
                    raise KeyboardInterrupt
        assert parts == [(0, 2), (0, 1), (2, 4), (3, 4)]
        assert (batch.settled, waiting.rows) == (True, 1)
        assert drain(spark, table=table, **here).rows == 19
        assert self.numbers_in(spark, table) == list(range(20))

    def test_interrupts_set_nothing_aside_and_what_still_writes_then_is_refused(
        self, qm, q_name, here, how, spark, table
    ):
        fill(qm, q_name, 4)
        self.die(spark, how, 2)
        for left in (3, 2, 1):
            with pytest.raises(KeyboardInterrupt), batches(spark, **how) as waiting, waiting.next() as batch:
                rows = spark.createDataFrame([("late",)], "data string")
                raise KeyboardInterrupt
            assert [row["left"] for row in qm.reservations(q_name)] == [left]
            with pytest.raises(BatchRefusedError):
                write_batch(rows, table, batch.id)
        done = drain(spark, table=table, **here)
        assert (done.rejected, done.rows, depth(qm, q_name)) == ([], 4, 0)
        assert self.numbers_in(spark, table) == [0, 1, 2, 3]
