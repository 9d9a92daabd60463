"""An Iceberg table in a catalog on SQLite, written by pyiceberg and read by it: each batch once."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import load_catalog

from tests.spark.sinks.plays import CommitRaces, TablePlays, name
from trigmon.spark.sinks import iceberg_table
from trigmon.spark.sinks.iceberg_table import IcebergSink
from trigmon.spark.sinks.sink import SinkError

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]
TABLE = "shop.orders"


@pytest.fixture
def options(tmp_path):
    (tmp_path / "warehouse").mkdir()
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }


@pytest.fixture
def loaded(options):
    return lambda: load_catalog("default", **options).load_table(TABLE)


class TestIceberg(TablePlays, CommitRaces):
    """pyiceberg's own repetition of a commit would append the batch a second time."""

    @pytest.fixture
    def module(self):
        return iceberg_table

    @pytest.fixture
    def made(self, options):
        return lambda **more: IcebergSink(TABLE, options=options, **more)

    @pytest.fixture
    def rows(self, loaded):
        return lambda: loaded().scan().to_arrow().to_pylist()

    @pytest.fixture
    def files(self, tmp_path):
        return lambda: sorted((tmp_path / "warehouse").rglob("*.parquet"))


def test_what_a_table_knows_of_a_batch_outlives_the_expiry_of_its_snapshots(spark, options, loaded):
    sink = IcebergSink(TABLE, options=options)
    for number in (1, 2):
        assert sink.write(spark.range(1), name(number))
    assert [one.summary["trigmon.batch"] for one in loaded().snapshots()] == ["b1", "b2"]
    sink.write(spark.range(1), name(1, "other", (0, 1)))  # the newest snapshot stays
    old = [one.snapshot_id for one in loaded().snapshots()[:2]]
    loaded().maintenance.expire_snapshots().by_ids(old).commit()
    assert not IcebergSink(TABLE, options=options).write(spark.range(1), name(2))
    assert loaded().properties["trigmon.mark.QM/Q/CONSUMER"] == "4"


def test_a_table_that_is_partitioned_by_more_than_a_column_s_values_is_refused_before_anything_is_taken(
    spark, options, loaded
):
    IcebergSink(TABLE, options=options).write(spark.range(1), name(1))
    with loaded().update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    with pytest.raises(SinkError, match=r"bucket\[4\]"):
        IcebergSink(TABLE, options=options).check()


def test_a_catalog_that_does_not_answer_is_the_sink_s_fault(options, tmp_path):
    (tmp_path / "no database").mkdir()
    with pytest.raises(SinkError, match=TABLE):
        IcebergSink(TABLE, options=options | {"uri": f"sqlite:///{tmp_path}/no database"}).check()
