"""``trigmon.spark.load``: a queue into files and into a database by options alone; the database is real, a Derby."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.conftest import depth, writers
from trigmon.mq.calls import Alter
from trigmon.mq.enums import MsgFlag
from trigmon.spark import drain
from trigmon.spark.arrow_rows import COLUMNS
from trigmon.spark.jdbc_table import Database
from trigmon.spark.load import load
from trigmon.spark.load_options import LoadError, parsed
from trigmon.spark.sinks.jdbc_connection import DatabaseError

spark_test = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


class TestOptions:
    def test_a_queue_alone_goes_with_all_its_fields_into_parquet_below_the_home(self, monkeypatch):
        monkeypatch.setenv("HOME", "/users/ours")
        plan = parsed(["--queue", "A/B"])
        assert (plan.queue, plan.to, plan.form, plan.columns) == ("A/B", "parquet", "raw", tuple(COLUMNS))
        assert plan.path == Path("/users/ours/queues/A&B")
        assert (plan.batch, plan.wait_interval_ms, plan.groups) == (50_000, 1000, False)

    @pytest.mark.parametrize("queue", ["..", ".", "../../ETC", "/ETC/PASSWD", ".SSH"])
    def test_no_queues_name_leads_out_of_its_directory(self, monkeypatch, queue):
        monkeypatch.setenv("HOME", "/users/ours")
        path = parsed(["--queue", queue]).path
        assert path.parent == Path("/users/ours/queues")
        assert not path.name.startswith(".")

    def test_the_queue_is_that_of_the_trigger_where_none_is_named(self, monkeypatch):
        monkeypatch.setenv("TRIGMON_QNAME", "TRIGGERED")
        assert parsed([]).queue == "TRIGGERED"

    def test_a_password_is_a_secret_of_the_process_and_no_word_of_a_command_line(self, monkeypatch, tmp_path):
        (tmp_path / "db.password").write_text("s3cret\n")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        words = ["--queue", "Q", "--to", "jdbc", "--url", "jdbc:x:y", "--table", "t", "--user", "u", "--secret"]
        assert parsed([*words, "db.password"]).options == {"user": "u", "password": "s3cret"}

    def test_user_password_and_brokers_of_kafka_have_its_names(self, monkeypatch, tmp_path):
        (tmp_path / "kafka").write_text("s3cret")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        words = ["--queue", "Q", "--to", "kafka", "--topic", "t", "--bootstrap-server", "b:9092", "--user", "u"]
        servers = {"bootstrap.servers": "b:9092"}
        assert parsed([*words, "--secret", "kafka"]).options == servers | {
            "sasl.username": "u",
            "sasl.password": "s3cret",
        }

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ([], "--queue: which one? No trigger started this job"),
            (["--queue", "no queue"], "--queue: 'no queue' is no queue's name"),
            (["--queue", "Q", "--to", "csv"], "--to: invalid choice: 'csv'"),
            (
                ["--queue", "Q", "--to", "jdbc"],
                "--to jdbc needs --url, as jdbc:postgresql://host/database, and --table",
            ),
            (["--queue", "Q", "--to", "jdbc", "--url", "db", "--table", "t"], "--url: 'db' does not begin with jdbc:"),
            (
                ["--queue", "Q", "--to", "jdbc", "--url", "jdbc:x", "--table", "t", "--upsert-key", "id"],
                "--upsert-key is for PostgreSQL, jdbc:postgresql://host/database",
            ),
            (["--queue", "Q", "--upsert-key", "id"], "--upsert-key means nothing with --to parquet"),
            (["--queue", "Q", "--to", "jdbc", "--path", "/x"], "--path means nothing with --to jdbc"),
            (["--queue", "Q", "--table", "t"], "--table means nothing with --to parquet"),
            (["--queue", "Q", "--to", "json", "--merge-schema"], "--merge-schema means nothing with --to json"),
            (["--queue", "Q", "--to", "delta", "--table", "t"], "--table means nothing with --to delta"),
            (["--queue", "Q", "--to", "iceberg", "--table", "t"], "--to iceberg needs --table, as shop.orders"),
            (["--queue", "Q", "--to", "kafka", "--topic", "t"], "--to kafka needs --bootstrap-server, as broker:9092"),
            (["--queue", "Q", "--topic", "t"], "--topic means nothing with --to parquet"),
            (
                ["--queue", "Q", "--to", "kafka", "--topic", "t", "--bootstrap-server", "b", "--columns", "data"],
                "--columns: data is the value of each message",
            ),
            (
                ["--queue", "Q", "--to", "kafka", "--topic", "t", "--bootstrap-server", "b", "--key", "body"],
                "--key: there is no column body; there are data, ",
            ),
            (["--queue", "Q", "--format", "json"], '--format json needs --schema, as "id bigint, name string"'),
            (["--queue", "Q", "--schema", "a int"], "--schema means nothing with --format raw"),
            (["--queue", "Q", "--format", "json", "--schema", "a int", "--columns", "data"], "--columns means nothing"),
            (["--queue", "Q", "--columns", "body"], "messages have no column 'body'; they have data, "),
            (["--queue", "Q", "--partition-by", "month"], "--partition-by: there is no column month; there are data, "),
            (["--queue", "Q", "--option", "compression"], "--option: 'compression' is not KEY=VALUE"),
            (["--queue", "Q", "--batch", "0"], "--batch: '0' is not a whole number from 1"),
            (
                ["--queue", "Q", "--to", "jdbc", "--url", "jdbc:x", "--table", "t", "--secret", "db"],
                "--secret: no 'db' in $CREDENTIALS_DIRECTORY: name it in the process's SECRETS",
            ),
        ],
    )
    def test_what_cannot_be_meant_is_reported_with_the_option_and_the_remedy(
        self, words, expected, capsys, monkeypatch
    ):
        monkeypatch.delenv("TRIGMON_QNAME", raising=False)
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
        with pytest.raises(SystemExit) as ended:
            parsed(words)
        assert ended.value.code == 2
        assert expected in capsys.readouterr().err


@pytest.fixture
def planned(shared_daemon, q_name):
    """The plan of these options for the test's queue."""
    return lambda *words: parsed(["--queue", q_name, "--qmgr", shared_daemon.address, "--wait", "0", *words])


class TestFiles:
    pytestmark = spark_test

    def test_every_field_of_the_messages_is_in_parquet_and_each_is_there_once(
        self, qm, q_name, spark, planned, tmp_path
    ):
        bodies = [b"%d \xff" % n for n in range(50)]
        ids = [qm.put(q_name, body, priority=n % 10).msg_id for n, body in enumerate(bodies)]
        plan = planned("--path", str(tmp_path / "t"), "--batch", "20", "--option", "compression=gzip")
        done = load(spark, plan)
        assert (done.batches, done.rows, done.rejected) == (3, 50, [])
        table = pyarrow.parquet.read_table(tmp_path / "t")
        assert table.column_names == [*COLUMNS, "batch"]
        assert {row["msg_id"]: row["data"] for row in table.to_pylist()} == dict(zip(ids, bodies, strict=True))
        assert list((tmp_path / "t").rglob("*.gz.parquet"))
        assert (load(spark, plan).rows, depth(qm, q_name)) == (0, 0)

    def test_text_is_text_ids_are_hex_and_what_is_no_text_goes_aside(self, qm, q_name, spark, planned, tmp_path):
        define(qm, f"{q_name}.ASIDE", def_persistence="persistent")
        attributes = {"backout_requeue_q_name": f"{q_name}.ASIDE"}
        qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=attributes))
        one = qm.put(q_name, "grüße").msg_id
        bad = qm.put(q_name, b"\xff\xfe").msg_id
        qm.put(q_name, "zwei")
        columns = ("--columns", "msg_id,data,priority", "--partition-by", "priority")
        done = load(spark, planned("--to", "json", "--path", str(tmp_path / "t"), "--format", "text", *columns))
        assert [rejected.msg_id for rejected in done.rejected] == [bad]
        files = (tmp_path / "t").rglob("part-*")
        found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert sorted(row["data"] for row in found) == ["grüße", "zwei"]
        assert one.hex() in {row["msg_id"] for row in found}
        assert [path.name for path in (tmp_path / "t").glob("batch=*/priority=*")] == ["priority=0"] * done.batches

    @pytest.mark.parametrize(
        ("words", "writer"),
        [
            ([], "parquet-cpp-arrow"),
            (["--format", "json", "--schema", "id int"], "parquet-cpp-arrow"),
            (["--format", "text"], "parquet-mr"),
            (["--option", "x=y"], "parquet-mr"),
            (["--partition-by", "priority"], "parquet-mr"),
        ],
    )
    def test_tasks_write_the_parquet_files_where_rows_stay_as_they_were_read(
        self, qm, q_name, spark, planned, tmp_path, words, writer
    ):
        qm.put_many(q_name, [b"{}"] * 1500)
        assert load(spark, planned("--path", str(tmp_path / "t"), *words)).rows == 1500
        assert writers(tmp_path / "t") == {writer}

    def test_json_comes_as_the_columns_of_the_schema_and_whole_groups_in_one_batch(
        self, qm, q_name, spark, planned, tmp_path
    ):
        for group in range(4):
            for number in (1, 2, 3):
                flag = MsgFlag.LAST_MSG_IN_GROUP if number == 3 else MsgFlag.MSG_IN_GROUP
                text = json.dumps({"id": group, "name": f"n{number}"})
                qm.put(q_name, text, group_id=b"g%d" % group, msg_seq_number=number, msg_flags=flag)
        qm.put(q_name, "{}", group_id=b"g9", msg_seq_number=1, msg_flags=MsgFlag.MSG_IN_GROUP)
        schema = ("--format", "json", "--schema", "id bigint, name string, mq_msg_seq_number int")
        done = load(spark, planned("--path", str(tmp_path / "t"), *schema, "--groups", "--batch", "7"))
        assert (done.batches, done.rows) == (2, 12)
        rows = pyarrow.parquet.read_table(tmp_path / "t").to_pylist()
        assert sorted((row["id"], row["name"], row["mq_msg_seq_number"]) for row in rows) == [
            (group, f"n{number}", number) for group in range(4) for number in (1, 2, 3)
        ]
        assert len({(row["id"], row["batch"]) for row in rows}) == 4
        assert depth(qm, q_name) == 1

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["--schema", "id biginteger"], r"(?i)--schema: .*biginteger.* It is written as"),
            (
                ["--schema", "id int, mq_color int"],
                "--schema: column mq_color is to .* no column 'color'",
            ),
            (["--schema", "id int, of map<string,int>"], "--schema: column of .*: leave it out of the schema, or read"),
            (["--schema", "id int, mq_priority string"], "--schema: column mq_priority is int, not string"),
            (["--schema", "id int not null", "--mode", "permissive"], "--schema: column id is NOT NULL, and mode"),
            (["--schema", "id int", "--partition-by", "day"], "--partition-by: there is no column day; there are id"),
        ],
    )
    def test_a_schema_that_is_none_is_reported_before_anything_is_taken(
        self, qm, q_name, spark, planned, words, expected
    ):
        qm.put(q_name, "{}")
        with pytest.raises(LoadError, match=expected):
            load(spark, planned("--format", "json", *words))
        assert (depth(qm, q_name), qm.reservations(q_name)) == (1, [])


class TestLakes:
    pytestmark = spark_test

    @pytest.mark.parametrize("to", ["delta", "iceberg", "objects"])
    def test_a_queue_is_moved_into_a_table_of_a_lake_by_options_alone(self, qm, q_name, spark, planned, tmp_path, to):
        qm.put_many(q_name, [b'{"id": %d}' % n for n in range(7)])
        where = ["--path", f"{tmp_path}/t"]
        if to == "iceberg":
            options = ["type=sql", f"uri=sqlite:///{tmp_path}/c.db", f"warehouse=file://{tmp_path}/t"]
            where = ["--table", "shop.orders", *(word for option in options for word in ("--option", option))]
        columns = ["--format", "json", "--schema", "id bigint"]
        plan = planned("--to", to, *where, *columns, "--batch", "5", "--merge-schema")
        assert load(spark, plan).rows == 7
        found = [pyarrow.parquet.read_table(path)["id"].to_pylist() for path in (tmp_path / "t").rglob("*.parquet")]
        assert sorted(id_ for ids in found for id_ in ids) == list(range(7))


@pytest.fixture
def url(spark, tmp_path):
    """A new database of Derby's, in the process of Spark."""
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    return f"jdbc:derby:{tmp_path}/db;create=true"


def rows_of(spark, url, table):
    return spark.read.jdbc(url, table).collect()


def sql(spark, url, statement):
    connection = spark._jvm.java.sql.DriverManager.getConnection(url)
    connection.createStatement().execute(statement)
    connection.close()


class TestDatabase:
    pytestmark = spark_test
    TEXT = ("--format", "text", "--columns", "data,priority")

    def test_the_table_is_made_and_each_message_is_in_it_once(self, qm, q_name, spark, planned, url):
        qm.put_many(q_name, [str(n) for n in range(50)], priority=3)
        plan = planned("--to", "jdbc", "--url", url, "--table", "orders", *self.TEXT, "--batch", "20")
        done = load(spark, plan)
        assert (done.batches, done.rows) == (3, 50)
        rows = rows_of(spark, url, "orders")
        assert sorted((int(row.data), row.priority) for row in rows) == [(n, 3) for n in range(50)]
        assert len({row.mq_batch for row in rows}) == 3
        assert len({(row.mq_batch, row.mq_ordinal) for row in rows}) == 50
        qm.put(q_name, "50", priority=3)
        assert (load(spark, plan).rows, len(rows_of(spark, url, "orders"))) == (1, 51)
        assert depth(qm, q_name) == 0

    def test_json_is_columns_of_the_table_with_every_type_that_it_had(self, qm, q_name, spark, planned, url):
        qm.put_many(q_name, ['{"id": 1, "at": "2013-01-01T10:00:00Z"}', '{"id": 2}'])
        schema = ("--format", "json", "--schema", "id bigint, at timestamp")
        load(spark, planned("--to", "jdbc", "--url", url, "--table", "orders", *schema))
        found = {row.id: row for row in rows_of(spark, url, "orders")}
        assert found.keys() == {1, 2}
        assert (found[1]["at"].timestamp(), found[2]["at"]) == (1357034400, None)

    def test_a_batch_that_was_committed_and_not_settled_is_found_and_not_written_again(
        self, qm, q_name, spark, url, shared_daemon
    ):
        qm.put_many(q_name, [str(n) for n in range(10)])
        database, wrote = Database(spark, url, "orders"), []

        def each(frame, batch):
            wrote.append(database.write(frame, batch))
            if len(wrote) == 1:
                raise OSError("the link was lost behind the commit")

        drain(spark, each, transform=as_rows, queue=q_name, qmgr=shared_daemon.address)
        assert wrote == [True, False]
        assert sorted(int(row.data) for row in rows_of(spark, url, "orders")) == list(range(10))

    def test_what_was_committed_of_a_batch_that_is_then_halved_is_there_once(
        self, qm, q_name, spark, url, shared_daemon
    ):
        qm.put_many(q_name, [str(n) for n in range(10)])
        database, counts = Database(spark, url, "orders"), []

        def each(frame, batch):
            database.write(frame, batch)
            counts.append(batch.count)
            if len(counts) == 1:
                raise OSError("the link was lost behind the commit")

        drain(spark, each, transform=as_rows, queue=q_name, qmgr=shared_daemon.address, attempts=1)
        assert counts[:2] == [10, 5]
        assert sorted(int(row.data) for row in rows_of(spark, url, "orders")) == list(range(10))

    def test_the_index_refuses_a_task_that_writes_a_batch_a_second_time(self, qm, q_name, spark, url, shared_daemon):
        qm.put(q_name, "one")
        seen = []

        def each(frame, batch):
            Database(spark, url, "orders").write(frame, batch)
            rows = frame.selectExpr("*", f"'{batch.id}' as mq_batch")
            with pytest.raises(Exception, match=r"(?i)duplicate key"):
                rows.write.jdbc(url, "orders", mode="append")
            seen.append(batch.count)

        drain(spark, each, transform=as_rows, queue=q_name, qmgr=shared_daemon.address)
        assert (seen, len(rows_of(spark, url, "orders"))) == ([1], 1)

    def test_a_table_of_ones_own_gets_the_index_and_keeps_its_columns(self, qm, q_name, spark, planned, url):
        sql(spark, url, "CREATE TABLE OWN (MQ_BATCH VARCHAR(64), MQ_ORDINAL BIGINT, PRIORITY INT, DATA VARCHAR(99))")
        qm.put(q_name, "one")
        load(spark, planned("--to", "jdbc", "--url", url, "--table", "own", *self.TEXT))
        assert [(row.DATA, row.PRIORITY) for row in rows_of(spark, url, "own")] == [("one", 0)]
        with pytest.raises(Exception, match=r"(?i)duplicate key"):
            sql(spark, url, "INSERT INTO own SELECT * FROM own")

    @pytest.mark.parametrize(
        ("prepared", "expected"),
        [
            (
                ["CREATE TABLE t (DATA VARCHAR(99))"],
                "no column mq_batch and no column mq_ordinal: add mq_batch VARCHAR",
            ),
            (
                [
                    "CREATE TABLE t (MQ_BATCH VARCHAR(64), MQ_ORDINAL BIGINT)",
                    "INSERT INTO t VALUES ('a', 1), ('a', 1)",
                ],
                "needs a unique index over mq_batch and mq_ordinal.*Have it made: CREATE UNIQUE INDEX mq_batches_t",
            ),
        ],
    )
    def test_a_table_that_cannot_take_a_batch_once_is_reported_before_anything_is_taken(
        self, qm, q_name, spark, planned, url, prepared, expected
    ):
        for statement in prepared:
            sql(spark, url, statement)
        qm.put(q_name, "one")
        with pytest.raises(DatabaseError, match=expected):
            load(spark, planned("--to", "jdbc", "--url", url, "--table", "t", *self.TEXT))
        assert (depth(qm, q_name), qm.reservations(q_name)) == (1, [])

    def test_a_database_that_is_not_there_is_reported_without_what_may_be_its_password(
        self, q_name, spark, planned, url, tmp_path
    ):
        where = f"jdbc:derby:{tmp_path}/none;password=s3cret"
        with pytest.raises(
            DatabaseError, match=rf"cannot connect to jdbc:derby:{tmp_path}/none: Database .* not found"
        ):
            load(spark, planned("--to", "jdbc", "--url", where, "--table", "t"))
        with pytest.raises(
            DatabaseError, match=r"no JDBC driver for jdbc:nobody: is among Spark's jars: name it, --conf"
        ):
            load(spark, planned("--to", "jdbc", "--url", "jdbc:nobody:x", "--table", "t"))
        with pytest.raises(DatabaseError, match="'t; DROP TABLE t' is no name of a table"):
            load(spark, planned("--to", "jdbc", "--url", url, "--table", "t; DROP TABLE t"))


def as_rows(frame):
    return frame.selectExpr("cast(data as string) as data", "ordinal as mq_ordinal")
