"""Kill -9 of jobs that drain into a lake, with all of their Spark: each message is in the table once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.postgres import Server
from tests.spark.conftest import depth, postgres_jar, spark_environment, writers
from tests.waiting import until
from trigmon.spark.files.staging import staging_of
from trigmon.spark.sinks.object_table import object_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000), pytest.mark.filterwarnings("ignore::ResourceWarning")]
JOB = Path(__file__).with_name("killed_job.py")
TABLE_JOB = Path(__file__).with_name("killed_table_job.py")
A_BATCH, KILLS = 20, 10


@pytest.fixture
def started(shared_daemon, q_name, tmp_path):
    """Starts the job; at the end of the test none is left."""
    jobs = []

    def started(kind, moment="never", job=JOB, rows=A_BATCH):
        environment = shared_daemon.env | spark_environment(tmp_path)
        where = [str(tmp_path), q_name, shared_daemon.address, str(rows)]
        argv = [sys.executable, str(job), kind, *where, *([moment] if job == JOB else [])]
        with (tmp_path / "jobs.log").open("ab") as log:
            jobs.append(subprocess.Popen(argv, env=environment, stdout=log, stderr=log, start_new_session=True))
        return jobs[-1]

    (tmp_path / "table").mkdir()
    yield started
    for job in jobs:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def urls_of(kind, directory):
    """Returns the files that belong to the table, by the table's own word."""
    table = directory / "table"
    if kind == "delta":
        return DeltaTable(str(table)).file_uris()
    if kind == "objects":
        return object_files(str(table))
    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{directory}/catalog.db")
    return [task.file.file_path for task in catalog.load_table("shop.orders").scan().plan_files()]


def numbers_in(kind, directory):
    paths = [url.removeprefix("file://") for url in urls_of(kind, directory)]
    return sorted(int(data) for path in paths for data in pyarrow.parquet.read_table(path)["data"].to_pylist())


def files_in(directory):
    """Returns how many files of batches lie there; Delta's own checkpoints are Parquet, too."""
    return len(list((directory / "table").glob("b*/**/*.parquet")))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before the files", "before the commit", "after the commit"])
@pytest.mark.parametrize("kind", ["delta", "iceberg", "objects"])
def test_a_killed_job_s_batch_comes_again_and_each_message_is_in_the_table_once(
    qm, q_name, started, tmp_path, kind, moment
):
    qm.put_many(q_name, [b"%d" % n for n in range(3 * A_BATCH)])
    assert started(kind, moment).wait(600) == -signal.SIGKILL
    until(lambda: depth(qm, q_name) > A_BATCH)  # what a job has reserved counts again when its end has been noticed
    assert started(kind).wait(600) == 0, (tmp_path / "jobs.log").read_text()[-4000:]
    assert numbers_in(kind, tmp_path) == list(range(3 * A_BATCH))
    assert depth(qm, q_name) == 0
    if kind != "iceberg":
        assert len(urls_of(kind, tmp_path)) == files_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["delta"])
def test_a_hundred_kills_at_any_moment_of_a_drain(qm, q_name, started, tmp_path, kind, seed):
    """Ten a seed. The job is killed when it has written something, so each kill is in mid-drain."""
    chance = random.Random(seed)
    total = 0
    log = tmp_path / "table" / "_delta_log"
    for _ in range(KILLS):
        count = 30 * A_BATCH
        qm.put_many(q_name, [b"%d" % n for n in range(total, total + count)])
        total += count
        before = len(list(log.glob("*.json")))
        job = started(kind)
        until(lambda job=job, before=before: len(list(log.glob("*.json"))) > before + 1 or job.poll() is not None)
        time.sleep(chance.uniform(0, 1.0))
        assert job.poll() is None, (tmp_path / "jobs.log").read_text()[-4000:]
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        until(lambda: depth(qm, q_name) > 0)
    assert started(kind).wait(600) == 0, (tmp_path / "jobs.log").read_text()[-4000:]
    assert numbers_in(kind, tmp_path) == list(range(total))
    assert (depth(qm, q_name), qm.reservations(q_name)) == (0, [])
    assert len(urls_of(kind, tmp_path)) == files_in(tmp_path)


class Files:
    """A table of files that Spark writes, as the story of the kills sees it."""

    where, a_batch = "files", A_BATCH

    def __init__(self, directory):
        self._table = directory / "table"

    def batches(self):
        return len(list(self._table.glob("batch=*")))

    def numbers(self):
        return sorted(map(int, pyarrow.parquet.read_table(self._table)["data"].to_pylist()))

    def left(self):
        return list(staging_of(self._table).iterdir())

    def end(self):
        pass


class TaskFiles(Files):
    """One that tasks write, but for batches that come again. They are too large for the plan."""

    where, a_batch = "task files", 1200

    def numbers(self):
        assert "parquet-cpp-arrow" in writers(self._table)
        return super().numbers()


class Postgres:
    """A table of a PostgreSQL that syncs, likewise."""

    a_batch = A_BATCH

    def __init__(self, _directory):
        self._server = Server(address="127.{}.{}.{}".format(*(random.randint(1, 250) for _ in range(3))))
        self._connection = psycopg.connect(self._server.dsn, autocommit=True)
        self._connection.execute("CREATE TABLE orders (data text)")
        self.where = f"jdbc:postgresql://{self._connection.info.host}/postgres"

    def _rows(self, text):
        return [row[0] for row in self._connection.execute(text).fetchall()]

    def batches(self):
        return self._rows("SELECT count(*) FROM orders")[0] // A_BATCH

    def numbers(self):
        return sorted(map(int, self._rows("SELECT data FROM orders")))

    def left(self):
        return self._rows("SELECT relname FROM pg_class WHERE relname LIKE 'mq\\_staging%'")

    def end(self):
        self._connection.close()
        self._server.end()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", [Files, TaskFiles, Postgres], ids=["files", "task files", "postgres"])
def test_a_hundred_kills_in_mid_drain_leave_each_message_once_and_nothing_in_staging(
    qm, q_name, started, tmp_path, kind, seed
):
    """Ten a seed, each at any moment of a batch that is not the first. At half of them the driver alone is killed."""
    if kind is Postgres and postgres_jar() is None:
        pytest.skip("no PostgreSQL driver: TRIGMON_TESTS_POSTGRES_JAR")
    table, chance, total = kind(tmp_path), random.Random(seed), 0
    dirty = 0
    for _ in range(KILLS):
        count = 16 * table.a_batch - depth(qm, q_name)
        qm.put_many(q_name, [b"%d" % n for n in range(total, total + count)])
        total += count
        wanted = table.batches() + chance.randint(2, 10)
        job = started(table.where, job=TABLE_JOB, rows=table.a_batch)
        moments = []
        for number in (wanted - 1, wanted):
            until(lambda job=job, number=number: table.batches() >= number or job.poll() is not None)
            moments.append(time.monotonic())
        # A batch takes about as long as the one before; where it is faster, the kill meets its end or the next begin.
        kill_s = time.monotonic() + chance.uniform(0, 1) * (moments[1] - moments[0])
        until(lambda kill_s=kill_s, wanted=wanted: time.monotonic() >= kill_s or table.batches() > wanted)
        assert job.poll() is None, (tmp_path / "jobs.log").read_text()[-4000:]
        (os.killpg if chance.random() < 0.5 else os.kill)(job.pid, signal.SIGKILL)
        job.wait()
        dirty += bool(table.left())
        until(lambda: depth(qm, q_name) > 0)
    assert started(table.where, job=TABLE_JOB, rows=50 * table.a_batch).wait(600) == 0, (
        tmp_path / "jobs.log"
    ).read_text()[-4000:]
    assert table.numbers() == list(range(total))
    assert (depth(qm, q_name), qm.reservations(q_name), table.left()) == (0, [], [])
    assert dirty or kind is Postgres, "no kill has met an attempt"
    print(f"{KILLS} kills, {total} messages once each, {dirty} kills left staging, which is gone")
    table.end()
