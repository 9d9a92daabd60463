"""A table of a real PostgreSQL by JDBC: each batch once, by insert or by key; the driver found among Spark's jars."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.daemons import define
from tests.postgres import Server
from tests.spark.conftest import depth, postgres_jar
from tests.spark.sinks.plays import name
from trigmon.mq.calls import Alter
from trigmon.spark import batches, drain
from trigmon.spark.jdbc_table import Database
from trigmon.spark.load import load
from trigmon.spark.load_options import parsed
from trigmon.spark.sinks.jdbc_connection import DatabaseError
from trigmon.spark.sinks.postgres_table import PostgresSink
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
    pytest.mark.skipif(postgres_jar() is None, reason="no PostgreSQL driver: TRIGMON_TESTS_POSTGRES_JAR"),
]


@pytest.fixture(scope="module")
def database():
    """A connection to a server on an address of its own, since its port is everybody's."""
    one = Server(fsync=False, address="127.{}.{}.{}".format(*(random.randint(1, 250) for _ in range(3))))
    with psycopg.connect(one.dsn, autocommit=True) as connection:
        yield connection
    one.end()


@pytest.fixture
def url(database):
    return f"jdbc:postgresql://{database.info.host}/postgres"


@pytest.fixture
def sql(database):
    return lambda text: database.execute(text).fetchall() if text.startswith("SELECT") else database.execute(text)


@pytest.fixture
def table(sql):
    """A table of somebody's with columns of PostgreSQL's own types."""
    sql("DROP SCHEMA public CASCADE")
    sql("CREATE SCHEMA public")
    sql('CREATE TABLE orders (id bigint PRIMARY KEY, "Name" text NOT NULL, more jsonb, at timestamptz DEFAULT now())')
    return "orders"


@pytest.fixture
def made(spark, url, table):
    return lambda *key, **of: PostgresSink(spark, url, of.pop("table", table), upsert_key=key, options=USER | of)


USER = {"user": "postgres"}


def rows(spark, *of):
    return spark.createDataFrame(list(of), "id long, name string")


def content(sql, table="orders"):
    return sql(f'SELECT id, "Name" FROM {table} ORDER BY id, 2')


def left(sql):
    return sorted(row[0] for row in sql("SELECT relname FROM pg_class WHERE relname LIKE 'mq\\_staging\\_%'"))


def test_rows_of_one_key_replace_each_other_and_the_last_of_the_queue_is_there(spark, made, sql):
    sink = made("id")
    assert sink.write(rows(spark, (1, "a"), (2, "b"), (1, "c")).repartition(1), name(1))
    assert content(sql) == [(1, "c"), (2, "b")]
    assert sink.write(rows(spark, (2, "d"), (3, "e")), name(2))
    assert content(sql) == [(1, "c"), (2, "d"), (3, "e")]
    assert not made("id").write(rows(spark, (2, "again")), name(2))
    with pytest.raises(BatchRefusedError, match=r"takes batch 1 \(b1\) of QM/Q/CONSUMER no more: it has a later one"):
        made("id").write(rows(spark, (2, "late")), name(1))
    assert content(sql) == [(1, "c"), (2, "d"), (3, "e")]
    assert left(sql) == []


def test_without_a_key_each_row_is_added_once(spark, made, sql):
    sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    assert made().write(rows(spark, (1, "a"), (1, "a")), name(1))
    assert not made().write(rows(spark, (1, "a"), (1, "a")), name(1))
    assert content(sql) == [(1, "a"), (1, "a")]


def test_a_text_goes_into_a_column_of_any_type_and_a_column_that_is_left_out_has_its_default(spark, made, sql):
    frame = spark.sql("""SELECT 1L AS id, 'x' AS name, '{"a": [1, 2]}' AS more""")
    assert made("id").write(frame, name(1))
    assert sql("SELECT more->'a'->1, at IS NOT NULL FROM orders") == [(2, True)]


def test_a_table_that_is_not_there_is_made_with_its_key(spark, made, sql):
    sink = made("id", table="public.made")
    for number, text in ((1, "a"), (2, "b")):
        assert sink.write(rows(spark, (1, text)), name(number))
    assert sql("SELECT id, name FROM made") == [(1, "b")]


def test_a_refused_batch_is_never_written_and_a_written_one_is_not_refused(spark, made, sql):
    sink = made("id", table="made")
    assert sink.refuse(name(1, "b1-early"))
    assert sink.write(rows(spark, (1, "a")), name(2))
    assert not sink.refuse(name(2))
    assert sink.refuse(name(3))
    assert sink.refuse(name(3))
    for number in (1, 3):
        with pytest.raises(BatchRefusedError):
            made("id", table="made").write(rows(spark, (1, "late")), name(number))
    parts = [name(7, f"b7-{at}-{at + 1}", (at, at + 1)) for at in (2, 0, 1)]
    for at, part in enumerate(parts):
        assert sink.write(rows(spark, (at, "part")), part)
        assert not sink.write(rows(spark, (at, "again")), part)
        assert not sink.refuse(part)
    assert sql("SELECT count(*) FROM made WHERE name = 'part'") == [(3,)]


def test_a_job_that_was_given_up_and_still_writes_changes_nothing(spark, made, sql, monkeypatch):
    late, plain = made("id"), PostgresSink._save

    def save(self, frame, table):
        plain(self, frame, table)
        if self is late:
            assert made("id").write(rows(spark, (1, "first")), BatchName("QM/Q/CONSUMER", 1, "b1"))

    monkeypatch.setattr(PostgresSink, "_save", save)
    assert not late.write(rows(spark, (1, "late")), name(1))
    assert content(sql) == [(1, "first")]
    assert left(sql) == []


def test_writers_of_other_queues_hold_nobody_up(spark, made, sql):
    others = [BatchName(f"QM/OTHER{n}/CONSUMER", 1, f"other{n}") for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        frames = [rows(spark, (n, "x")) for n in range(4)]
        assert all(threads.map(lambda n: made("id").write(frames[n], others[n]), range(4)))
    assert content(sql) == [(n, "x") for n in range(4)]


def test_a_row_that_a_repeated_task_wrote_twice_is_there_once(spark, made, sql, monkeypatch):
    sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    plain = PostgresSink._save

    def twice(self, frame, table):
        plain(self, frame, table)
        plain(self, frame, table)

    monkeypatch.setattr(PostgresSink, "_save", twice)
    assert made().write(rows(spark, (1, "a"), (2, "b")), name(1))
    assert content(sql) == [(1, "a"), (2, "b")]


def test_what_a_killed_job_left_is_dropped_by_the_next_batch_of_its_consumer(spark, made, sql, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PostgresSink, "_save", killed)
        patched.setattr("trigmon.spark.sinks.postgres_table.do", undropped)
        for batch in (name(1), BatchName("QM/OTHER/CONSUMER", 1, "other")):
            with pytest.raises(KeyboardInterrupt):
                made("id").write(rows(spark, (1, "a")), batch)
    assert len(left(sql)) == 2
    assert made("id").write(rows(spark, (1, "a")), name(2))
    assert len(left(sql)) == 1


def undropped(connection, order, *values):
    from trigmon.spark.sinks.jdbc_connection import do

    return 0 if order.startswith("DROP") else do(connection, order, *values)


@pytest.mark.parametrize(
    ("key", "columns", "expected"),
    [
        (["Name"], "id long, name string", r'orders has no unique index over "Name".* CREATE UNIQUE INDEX ON orders'),
        (["id"], "id long, colour string", "orders has no column colour; it has id, Name, more, at"),
        (["id"], "name string, at timestamp", "upsert_key: there is no column id; there are name, at"),
    ],
)
def test_what_does_not_fit_is_the_sink_s_error(spark, made, sql, key, columns, expected):
    with pytest.raises(SinkError, match=expected):
        made(*key).write(spark.createDataFrame([], columns), name(1))
    assert content(sql) == []


class TestLoad:
    @pytest.fixture
    def words(self, shared_daemon, q_name, url):
        where = ["--queue", q_name, "--qmgr", shared_daemon.address, "--wait", "0"]
        json_ = ["--format", "json", "--schema", "id bigint, name string"]
        return [*where, *json_, "--to", "jdbc", "--url", url, "--table", "orders", "--user", "postgres"]

    def test_the_driver_among_spark_s_jars_is_found_by_the_url(self, qm, q_name, spark, words, url, sql, table):
        sql("DROP TABLE orders")
        qm.put_many(q_name, [b'{"id": %d, "name": "x"}' % n for n in range(5)])
        assert load(spark, parsed(words)).rows == 5
        assert sql("SELECT count(*), count(DISTINCT mq_ordinal) FROM orders") == [(5, 5)]
        Database(spark, url, "orders", USER | {"driver": "org.postgresql.Driver"}).check()

    def test_options_alone_write_rows_by_key(self, qm, q_name, spark, words, sql, table):
        texts = [b'{"id": %d, "name": "n%d"}' % (n % 3, n) for n in range(7)]
        qm.put_many(q_name, texts)
        plan = parsed([*words, "--upsert-key", "id", "--batch", "2"])
        assert (load(spark, plan).rows, depth(qm, q_name)) == (7, 0)
        assert content(sql) == [(0, "n6"), (1, "n4"), (2, "n5")]

    def test_a_row_that_the_database_refuses_goes_aside_and_the_others_are_there(
        self, qm, q_name, spark, words, sql, table
    ):
        define(qm, f"{q_name}.ASIDE", def_persistence="persistent")
        attributes = {"backout_requeue_q_name": f"{q_name}.ASIDE"}
        qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=attributes))
        qm.put_many(q_name, [b'{"id": 1, "name": "a"}', b'{"id": 2}', b'{"id": 3, "name": "c"}'])
        done = load(spark, parsed([*words, "--upsert-key", "id"]))
        assert (done.rows, len(done.rejected)) == (2, 1)
        assert content(sql) == [(1, "a"), (3, "c")]
        assert left(sql) == []


class TestDrain:
    @staticmethod
    def transform(frame):
        return frame.selectExpr("cast(cast(data as string) as bigint) id", "cast(data as string) name")

    def test_a_database_that_is_not_there_ends_the_drain_and_blames_no_message(self, qm, q_name, here, spark, table):
        qm.put(q_name, "1")
        sink = PostgresSink(spark, "jdbc:postgresql://127.0.0.1:1/none", "orders", options=USER)
        with pytest.raises(DatabaseError, match=r"cannot connect to jdbc:postgresql://127\.0\.0\.1:1/none: Connection"):
            drain(spark, to=sink, **here)
        assert (depth(qm, q_name), qm.reservations(q_name)) == (1, [])

    def test_a_queue_is_drained_once_though_jobs_died_over_a_batch(self, qm, q_name, here, spark, made, sql):
        qm.put_many(q_name, [b"%d" % n for n in range(8)])
        for _ in range(2):
            with (
                pytest.raises(SystemExit),
                batches(spark, max_rows=4, sink=made("id"), **here) as waiting,
                waiting.next(),
            ):
                raise SystemExit
        done = drain(spark, to=made("id"), transform=self.transform, max_rows=4, **here)
        assert (done.rows, done.rejected, depth(qm, q_name)) == (8, [], 0)
        assert content(sql) == [(n, str(n)) for n in range(8)]

    def test_a_batch_whose_commit_was_not_answered_is_found_and_not_written_again(
        self, qm, q_name, here, spark, made, sql
    ):
        sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
        qm.put_many(q_name, [b"%d" % n for n in range(8)])
        sink, wrote = made(), []
        plain = sink.write

        def write(frame, batch):
            wrote.append(plain(frame, batch))
            if len(wrote) == 1:
                raise ConnectionResetError("the answer was lost")
            return wrote[-1]

        sink.write = write
        assert drain(spark, to=sink, transform=self.transform, **here).rows == 8
        assert wrote == [True, False]
        assert content(sql) == [(n, str(n)) for n in range(8)]
