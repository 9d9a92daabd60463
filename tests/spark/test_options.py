"""The options of the data source: what is refused with which remedy, and what SQL makes of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.conftest import depth
from trigmon.spark import options
from trigmon.spark.arrow_rows import schema_of
from trigmon.spark.reader import QueueStreamReader, stretches

QUEUE = {"queue": "Q", "address": "unix:/x"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"maxRow": "1"}, "there is no option maxrow: is maxRows meant"),
        ({"Partition": "1"}, "is partitions meant"),
        ({"zzz": "1"}, "there are queue, path, qmgr"),
        ({"startingOffsets": "earliest"}, "a queue has no history"),
        ({"failOnDataLoss": "false"}, "never lost"),
        ({"subscribe": "Q"}, "option queue"),
        ({"maxRows": "1", "maxOffsetsPerTrigger": "2"}, "one option, and have two values: 1 and 2"),
        ({"minPartitions": "x"}, "whole number"),
        ({"path": "OTHER"}, "two queues are named, Q by the option queue and OTHER by the argument"),
        ({"ordinals": "1-5"}, "ordinals is for a reservation"),
        ({"columnNameOfCorruptRecord": "bad"}, "columnNameOfCorruptRecord is for format json"),
        ({"mode": "PERMISSIVE"}, "mode is for format json"),
        ({"format": "json", "columns": "data"}, "columns is for format raw"),
        ({"partitions": "2", "minPartitions": "2"}, "name one of them"),
    ],
)
def test_an_option_that_there_is_not_is_refused_with_the_nearest(given, why):
    with pytest.raises(options.OptionError, match=why):
        options.read(QUEUE | given)


def test_the_options_that_drain_alone_gives_are_offered_to_nobody():
    with pytest.raises(options.OptionError, match="there are queue, path") as refused:
        options.read(QUEUE | {"zzz": "1"})
    assert not {"firstRows", "secret"} & set(re.findall(r"\w+", str(refused.value)))
    with pytest.raises(options.OptionError, match="there is no option secrets; there are"):
        options.read(QUEUE | {"secrets": "1"})
    assert options.read(QUEUE | {"path": "Q"}).queue == "Q"
    assert options.read(QUEUE | {"path": "file:/tmp/location"}).queue == "Q", "the LOCATION of a table"


def test_every_option_is_known_in_any_case_and_so_is_what_spark_passes():
    more = {"queryName": "n", "checkpointLocation": "/c"}
    read = options.read(QUEUE | more | {"MAXOFFSETSPERTRIGGER": "7", "minpartitions": "3", "Groups": "yes"})
    assert (read.max_rows, read.min_partitions, read.groups) == (7, 3, True)


def test_a_name_that_the_client_s_file_has_is_an_address_of_tls_for_every_process(tmp_path, monkeypatch):
    file = tmp_path / "client.ini"
    file.write_text("[FAR1]\naddress = tls://mq1, tls://mq2\nauthority = ca.crt\n")
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(file))
    each = [f"tls://mq{number}/FAR1?authority={tmp_path}/ca.crt" for number in (1, 2)]
    assert options.read({"queue": "Q", "qmgr": "FAR1"}).address == ",".join(each)
    assert options.read(QUEUE | {"taskAddress": "FAR1"}).task_address == ",".join(each)


def test_tasks_come_by_tls_and_by_nothing_else(monkeypatch):
    for address in ("unix:/x", "tcp://127.0.0.1", "QM1", "tls://mq1,unix:/x"):
        with pytest.raises(options.OptionError, match="option taskAddress is tls://"):
            options.read(QUEUE | {"taskAddress": address})
    monkeypatch.setenv("TRIGMON_TASK_ADDRESS", "tls://mq1?authority=/ca.crt")
    assert options.read(QUEUE).task_address == "tls://mq1?authority=/ca.crt"
    assert options.read(QUEUE | {"taskaddress": "tls://mq2"}).task_address == "tls://mq2"


def test_the_page_lists_every_option():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "data-source.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(options.SHOWN)


def test_min_partitions_is_the_least_and_partitions_the_number():
    row = {"reservation": 1, "left_ordinals": [(0, 100)]}
    assert len(stretches(row, 0, 5)) == 5
    assert len(stretches(row, 2, 5)) == 2


@pytest.mark.spark
class TestSql:
    @pytest.fixture(autouse=True)
    def tables(self, spark):
        yield
        for name in ("of_queue", "of_columns"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")

    def test_a_table_is_created_read_and_written(self, qm, q_name, shared_daemon, spark):
        where = f"queue '{q_name}', address '{shared_daemon.address}', columns 'data'"
        spark.sql(f"CREATE TABLE of_queue USING trigmon OPTIONS({where})")
        spark.sql("INSERT INTO of_queue VALUES (X'6f6e65'), (X'74776f')")
        assert depth(qm, q_name) == 2
        rows = spark.sql("SELECT cast(data as string) AS text FROM of_queue").collect()
        assert [row.text for row in rows] == ["one", "two"]
        assert depth(qm, q_name) == 2

    def test_a_typing_error_in_a_table_s_options_is_refused(self, q_name, spark):
        with pytest.raises(Exception, match="is maxRows meant"):
            spark.sql(f"CREATE TABLE of_queue USING trigmon OPTIONS(queue '{q_name}', maxRow '1')")

    def test_a_table_with_columns_of_its_own_says_what_to_do(self, q_name, spark):
        spark.sql(f"CREATE TABLE of_columns (data binary) USING trigmon OPTIONS(queue '{q_name}')")
        with pytest.raises(Exception, match="leave the columns out, or use CREATE TEMPORARY VIEW"):
            spark.sql("SELECT * FROM of_columns").collect()


@pytest.mark.parametrize("step", ["next", "read", "settle"])
def test_an_offset_of_another_queue_manager_is_refused_by_both_names(qm, q_name, shared_daemon, step):
    reader = QueueStreamReader(options.read({"queue": q_name, "address": shared_daemon.address}), schema_of())
    qm.put(q_name, b"x")
    made = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert made["qmgr"] == qm.q_mgr_name
    old = {name: value for name, value in made.items() if name != "qmgr"}
    assert len(reader.partitions(old, old)) == 1, "an offset of before has no queue manager"
    other = made | {"qmgr": "ELSEWHERE"}
    steps = {
        "next": lambda: reader.latestOffset(other, ReadAllAvailable()),
        "read": lambda: reader.partitions(other, other),
        "settle": lambda: reader.commit(other),
    }
    why = rf"{q_name} of queue manager ELSEWHERE, and this query reads that of {qm.q_mgr_name}"
    with pytest.raises(Exception, match=why):
        steps[step]()
    reader.commit(old)
    assert qm.reservations(q_name) == []
    reader.stop()
    reader.commit(old)
    assert reader._held is None, "what is settled needs no connection"


@pytest.mark.spark
class TestStream:
    def test_a_checkpoint_of_another_queue_is_refused_by_both_names_and_the_lag_is_in_the_progress(
        self, qm, q_name, shared_daemon, spark, tmp_path
    ):
        def query(queue):
            reader = spark.readStream.format("trigmon").option("queue", queue).option("address", shared_daemon.address)
            writer = reader.option("maxOffsetsPerTrigger", "2").load().writeStream.format("noop")
            return writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()

        qm.put_many(q_name, [b"x"] * 5)
        first = query(q_name)
        assert first.awaitTermination(600)
        sources = [progress["sources"][0] for progress in first.recentProgress if progress["numInputRows"]]
        assert [source["numInputRows"] for source in sources] == [2, 2, 1]
        assert all(f'"queue":"{q_name}"' in str(source["latestOffset"]).replace(" ", "") for source in sources)
        assert [json.loads(source["latestOffset"])["current_q_depth"] for source in sources] == [3, 1, 0]
        with pytest.raises(Exception, match=rf"the checkpoint is of the queue {q_name}, and this query reads SYSTEM"):
            query("SYSTEM.DEFAULT.LOCAL.QUEUE").awaitTermination(600)
