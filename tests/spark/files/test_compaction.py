"""Compaction of a table of files: each row once for every reader, wherever it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pyarrow
import pyarrow.parquet
import pytest

from tests.cli.conftest import run_cli
from tests.spark.conftest import ROOT
from trigmon.spark import read_table, refuse_batch, snapshot_of, write_batch
from trigmon.spark.files import compaction
from trigmon.spark.files.compaction import compact, planned
from trigmon.spark.files.staging import staging_of
from trigmon.spark.sinks.sink import BatchRefusedError, SinkError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
ALL = (
    "id",
    "string(id) s",
    "unhex('00ff') data",
    "timestamp_millis(id) at",
    "timestamp'0001-02-03 04:05:06.000007' old",
    "timestamp_ntz'2024-02-03 04:05:06.000007' plain",
    "date'1500-01-01' day",
    "cast(id as decimal(20,3)) d",
    "cast(id as decimal(5,2)) e",
    "array(named_struct('a', id, 'at', timestamp_millis(id))) l",
    "map('k', array(id)) m",
    "cast(null as int) nothing",
    "1.5d x",
    "id % 2 = 0 even",
)
"""Columns of all types that can be compacted."""


@pytest.fixture
def table(spark, tmp_path):
    """A table with four batches of three rows, one refused batch, and one without rows."""
    table = tmp_path / "orders"
    for n in range(4):
        write_batch(spark.range(3 * n, 3 * n + 3), table, f"b{n}")
    refuse_batch(table, "b4")
    write_batch(spark.range(0), table, "b5")
    return table


def ids(table):
    return sorted(pyarrow.parquet.read_table(table)["id"].to_pylist())


def directories(table):
    return sorted(path.name for path in table.glob("batch=*"))


def compacted(table, **options):
    return compact(table, planned(table), **options)


def test_small_batches_become_one_directory_with_the_same_rows_and_are_known_still(spark, table):
    done = compacted(table)
    assert (done.directories, done.made, done.files_after) == (5, 1, 1)
    assert ids(table) == list(range(12))
    assert spark.read.parquet(str(table)).count() == 12
    made, refused = sorted(directories(table), reverse=True)
    assert (made.startswith("batch=compacted-"), refused) == (True, "batch=b4")
    for n in (0, 1, 2, 3, 5):
        assert not write_batch(spark.range(99), table, f"b{n}")
        assert not refuse_batch(table, f"b{n}")
    assert refuse_batch(table, "b4")
    with pytest.raises(BatchRefusedError):
        write_batch(spark.range(99), table, "b4")
    assert refuse_batch(table, "b")
    assert ids(table) == list(range(12))
    assert list(staging_of(table).iterdir()) == []
    assert sorted(path.name for path in table.parent.iterdir()) == ["orders", "orders.staging"]


def test_what_was_compacted_is_known_after_it_was_compacted_again(spark, table):
    compacted(table)
    for n in range(6, 9):
        write_batch(spark.range(1000 * n, 1000 * n + 1000), table, f"b{n}")
    assert compacted(table).directories == 4
    assert not write_batch(spark.range(99), table, "b0")
    assert not write_batch(spark.range(99), table, "b8")
    assert len(ids(table)) == 3012
    assert planned(table) == []
    assert compact(table, []).directories == 0


def test_a_large_compacted_directory_is_not_written_again_for_a_little(spark, tmp_path):
    table = tmp_path / "orders"
    for n in range(2):
        write_batch(spark.range(20_000), table, f"b{n}")
    compacted(table)
    write_batch(spark.range(1), table, "b2")
    assert planned(table) == []
    write_batch(spark.range(1), table, "b3")
    (group,) = planned(table)
    assert [found.path.name for found in group] == ["batch=b2", "batch=b3"]


def test_files_have_the_target_size(spark, table):
    size = sum(file.stat().st_size for file in (table / "batch=b0").rglob("*.parquet"))
    assert [len(group) for group in planned(table, 2 * size)] == [2, 2]
    assert planned(table, size // 2) == []


def test_every_type_and_partition_comes_out_as_it_went_in(spark, tmp_path):
    table = tmp_path / "orders"
    for n in range(3):
        frame = spark.range(4 * n, 4 * n + 4).selectExpr(*ALL, "if(id % 2 = 0, 'a b/%', null) p")
        write_batch(frame, table, f"b{n}", partition_by=["p"])
    wider = spark.range(50, 51).selectExpr(*ALL, "'a b/%' p", "named_struct('n', 1) new")
    write_batch(wider, table, "b3", merge_schema=True)
    rows = {row["id"]: row for row in spark.read.parquet(str(table)).drop("batch").collect()}
    types = dict(spark.read.parquet(str(table)).dtypes)
    compacted(table)
    assert len(list(table.rglob("*.parquet"))) == 2
    after = spark.read.parquet(str(table))
    assert dict(after.dtypes) == types
    assert {row["id"]: row for row in after.drop("batch").collect()} == rows
    assert len(rows) == 13


def test_a_type_that_would_be_changed_is_refused_by_name(spark, tmp_path):
    table = tmp_path / "orders"
    for n in range(2):
        write_batch(spark.range(1).selectExpr("id", "interval '1' day i"), table, f"b{n}")
    with pytest.raises(SinkError, match="column i is interval day, which pyarrow writes in another way than Spark"):
        compacted(table)
    assert len(directories(table)) == 2


DYING = """
import importlib, os, signal, sys
from trigmon.spark.files.compaction import compact, planned
module, step, when, table = sys.argv[1:]
module = importlib.import_module(f"trigmon.spark.files.{module}")
real = getattr(module, step)

def dies(*arguments, **named):
    if when == "behind":
        real(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, step, dies)
compact(table, planned(table))
"""
STEPS = [
    ("compaction", "_merged"),
    ("compaction", "link_tree"),
    ("compaction", "preserve"),
    ("table_snapshot", "_linked"),
    ("table_snapshot", "force"),
    ("compaction", "sync_file_system"),
    ("compaction", "exchange"),
    ("compaction", "force"),
]
"""What a compaction calls, in its order."""


def test_a_table_that_there_is_not_has_no_snapshot_and_gets_no_directory(spark, tmp_path):
    for read in (snapshot_of, lambda table: read_table(spark, table)):
        with pytest.raises(FileNotFoundError, match=f"there is no table {tmp_path}/t: no batch was written"):
            read(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["before", pytest.param("behind", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("module", "step"), STEPS)
def test_killed_at_each_step_the_table_and_its_snapshots_read_right_and_the_next_compaction_ends_the_work(
    spark, table, module, step, when
):
    early = snapshot_of(table)
    argv = [sys.executable, "-c", DYING, module, step, when, str(table)]
    assert subprocess.run(argv, cwd=ROOT).returncode == -signal.SIGKILL
    late = snapshot_of(table)
    assert [ids(path) for path in (table, early, late)] == [list(range(12))] * 3
    write_batch(spark.range(12, 15), table, "b6")
    assert [ids(path) for path in (table, snapshot_of(table))] == [list(range(15))] * 2
    compacted(table)
    assert [ids(path) for path in (table, snapshot_of(table))] == [list(range(15))] * 2
    assert ids(early) in (list(range(12)), list(range(15)))
    assert not write_batch(spark.range(99), table, "b0")
    assert len(directories(table)) <= 3
    assert list(staging_of(table).iterdir()) == []


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from trigmon.spark.files.compaction import compact, planned
print(compact(sys.argv[1], planned(sys.argv[1])).files)
"""


def test_hundreds_of_files_are_not_open_at_once(tmp_path):
    table = tmp_path / "orders"
    for n in range(200):
        (table / f"batch=b{n}").mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table({"id": [n]}), table / f"batch=b{n}" / "part.parquet")
    done = subprocess.run([sys.executable, "-c", FEW_FILES, str(table)], cwd=ROOT, capture_output=True)
    assert done.stdout == b"200\n", done.stderr
    assert ids(table) == list(range(200))


class TestReaders:
    def test_a_frame_that_was_planned_before_reads_each_row_once_behind_it(self, spark, table):
        early = read_table(spark, table)
        assert compacted(table).made == 1
        assert sorted(row["id"] for row in early.collect()) == list(range(12))
        late = read_table(spark, table)
        assert sorted(row["id"] for row in late.collect()) == list(range(12))
        write_batch(spark.range(12, 13), table, "b6")
        write_batch(spark.range(13, 14), table, "b7")
        again = read_table(spark, table)
        assert compacted(table).made == 1
        assert [frame.count() for frame in (early, again, read_table(spark, table))] == [12, 14, 14]

    def test_readers_all_the_time_of_many_compactions_see_each_row_once(self, spark, tmp_path):
        """By a snapshot always; by the table no row twice, but pyarrow passes over a directory that has just gone."""
        table, stop, failed = tmp_path / "orders", threading.Event(), []
        write_batch(spark.range(10), table, "b0")
        by_snapshot, by_table = [], []

        def read(path_of, into):
            while not stop.is_set():
                path = path_of()
                try:
                    found = ids(path)
                except (OSError, KeyError) as error:  # a KeyError where all directories have gone
                    failed.append((path, error))
                    continue
                into.append(found)

        reads = [(lambda: snapshot_of(table), by_snapshot), (lambda: table, by_table)]
        threads = [threading.Thread(target=read, args=of) for of in reads]
        for thread in threads:
            thread.start()
        try:
            for n in range(1, 13):
                write_batch(spark.range(10 * n, 10 * n + 10), table, f"b{n}")
                if n % 3 == 0:
                    compacted(table)
                    counts = (len(by_snapshot), len(by_table))
                    until = time.monotonic() + 60
                    while min(len(by_snapshot) - counts[0], len(by_table) - counts[1]) < 2 and time.monotonic() < until:
                        time.sleep(0.01)
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        assert {path for path, _ in failed} <= {table}
        assert [found for found in by_snapshot if found != list(range(len(found))) or len(found) % 10] == []
        assert [found for found in by_table if len(set(found)) < len(found)] == []
        assert len(by_snapshot[-1]) == 130

    def test_the_files_of_before_are_removed_when_their_time_is_over(self, spark, table):
        early = snapshot_of(table)
        compacted(table)
        compact(table, [], keep_s=3600)
        assert ids(early) == list(range(12))
        compact(table, [], keep_s=0)
        assert not early.exists()
        assert ids(snapshot_of(table)) == list(range(12))

    def test_a_table_behind_a_link_stays_one(self, spark, table):
        link = table.with_name("link")
        link.symlink_to(table)
        compacted(link)
        assert link.is_symlink()
        assert ids(link) == list(range(12))
        write_batch(spark.range(12, 13), link, "b6")
        assert ids(table) == list(range(13))


def test_drains_that_write_meanwhile_lose_nothing(spark, tmp_path):
    table = tmp_path / "orders"
    write_batch(spark.range(0), table, "first")
    ended = threading.Event()

    def write():
        for n in range(12):
            assert write_batch(spark.range(n, n + 1), table, f"b{n}")
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not ended.is_set():
        compacted(table)
    writer.join()
    compacted(table)
    assert ids(table) == list(range(12))
    assert not any(write_batch(spark.range(9), table, f"b{n}") for n in range(12))


def test_of_two_compactions_at_once_the_second_is_refused_and_changes_nothing(spark, table):
    groups = planned(table)
    compact(table, groups)
    there = directories(table)
    with pytest.raises(SinkError, match=r"orders was not compacted: .*|was compacted by another process meanwhile"):
        compact(table, groups)
    assert directories(table) == there


def test_a_file_system_that_cannot_is_named(table, monkeypatch):
    def refused(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(compaction, "exchange", refused)
    with pytest.raises(SinkError, match=r"orders was not compacted: Invalid argument\. It needs room"):
        compacted(table)
    assert ids(table) == list(range(12))


class TestCommand:
    def run(self, *words):
        return run_cli("spark", "compact", *map(str, words))

    def test_it_says_what_it_would_do_does_it_and_says_what_it_did(self, table):
        there = directories(table)
        plan = self.run("--dry-run", table)
        assert plan.output.startswith(f"{table}: 5 directories with ")
        assert plan.output.endswith("would become 1; nothing was changed (--dry-run)\n")
        assert directories(table) == there
        done = self.run(table)
        assert done.stderr.startswith("1 of 1: 5 directories, ")
        assert ", became 1 with 1 file, " in done.stdout
        assert self.run(table).stdout == f"{table}: nothing to compact\n"
        assert ids(table) == list(range(12))

    def test_what_is_no_table_is_named(self, tmp_path):
        missing = self.run(tmp_path / "none")
        assert (missing.exit_code, missing.stderr) == (
            1,
            f"trigmon: {tmp_path / 'none'} is no table: there is no such directory\n",
        )
        (tmp_path / "some").mkdir()
        assert "has no Parquet files of a drain" in self.run(tmp_path / "some").stderr
