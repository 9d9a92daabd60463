"""A Delta table, written by deltalake and read by it: each batch once."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from tests.spark.sinks.plays import CommitRaces, TablePlays, name
from trigmon.spark.sinks import delta_table
from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.sink import SinkError

pytestmark = [pytest.mark.spark]


@pytest.fixture
def table(tmp_path):
    return tmp_path / "the table"


def read(table):
    """Returns the rows of the newest version, by the table's own list of files."""
    found = DeltaTable(str(table))
    names = [field.name for field in found.schema().fields]
    actions = found.get_add_actions(flatten=False).to_struct_array().to_pylist()
    rows = []
    for action in actions:
        of = pyarrow.parquet.ParquetFile(Path(table, unquote(action["path"]))).read().to_pylist()
        at = action.get("partition") or {}
        rows += [{column: row.get(column, at.get(column)) for column in names} for row in of]
    return rows


class TestDelta(TablePlays, CommitRaces):
    @pytest.fixture
    def module(self):
        return delta_table

    @pytest.fixture
    def made(self, table):
        return lambda **options: DeltaSink(table, **options)

    @pytest.fixture
    def rows(self, table):
        return lambda: read(table)

    @pytest.fixture
    def files(self, table):
        return lambda: sorted(table.rglob("*.parquet"))


def test_the_commit_says_which_batch_it_was_and_what_delta_s_readers_skip_files_by(spark, table):
    DeltaSink(table).write(spark.range(5).coalesce(1), name(3))
    log = [json.loads(line) for line in Path(table, "_delta_log", f"{1:020}.json").read_text().splitlines()]
    said = {kind: of for line in log for kind, of in line.items()}
    assert said["txn"] == {"appId": "QM/Q/CONSUMER", "version": 6}
    assert said["commitInfo"]["trigmon.batch"] == "b3"
    statistics = json.loads(said["add"]["stats"])
    assert statistics == {"numRecords": 5, "minValues": {"id": 0}, "maxValues": {"id": 4}, "nullCount": {"id": 0}}


def test_files_of_attempts_that_were_killed_go_when_their_batch_is_written(spark, table):
    left = table / "b1" / "of a killed task.parquet"
    left.parent.mkdir(parents=True)
    left.touch()
    other = table / "b2" / "of another batch.parquet"
    other.parent.mkdir()
    other.touch()
    DeltaSink(table).write(spark.range(1), name(1))
    assert not left.exists()
    assert other.exists()


def test_a_table_of_which_a_writer_must_know_more_is_refused_before_anything_is_taken(spark, table):
    DeltaSink(table).write(spark.range(1), name(1))
    DeltaTable(str(table)).alter.add_constraint({"few": "id < 100"})
    with pytest.raises(SinkError, match=r"constraints.*each="):
        DeltaSink(table).check()


def test_what_was_refused_before_the_table_was_there_is_refused_when_it_is(spark, table):
    sink = DeltaSink(table)
    assert sink.refuse(name(1))
    assert sink.write(spark.range(1), name(1, "b1-0-1", (0, 1)))
    assert DeltaTable(str(table)).transaction_version("QM/Q/CONSUMER") == 3


def test_an_error_of_the_place_in_a_task_is_the_sink_s_fault_in_one_line(spark, table):
    DeltaSink(table).write(spark.range(1), name(1))
    (table / "b2").touch()
    with pytest.raises(SinkError, match=r"^writing the files of b2: .*b2'$"):
        DeltaSink(table).write(spark.range(1), name(2))
    assert DeltaSink(table).write(spark.range(1), name(3))


def test_a_place_that_cannot_be_written_is_the_sink_s_fault(spark, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="file/table"):
        DeltaSink(tmp_path / "file" / "table").write(spark.range(1), name(1))
