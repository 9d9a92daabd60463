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

import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.spark.conftest import depth, spark_environment
from tests.waiting import until
from trigmon.spark.sinks.object_table import object_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000), pytest.mark.filterwarnings("ignore::ResourceWarning")]
JOB = Path(__file__).with_name("killed_job.py")
A_BATCH, KILLS = 20, 10


@pytest.fixture
def started(shared_daemon, q_name, tmp_path):
    """Starts the job; at the end of the test none is left."""
    jobs = []

    def started(kind, moment="never"):
        environment = shared_daemon.env | spark_environment(tmp_path)
        where = [str(tmp_path), q_name, shared_daemon.address, str(A_BATCH)]
        argv = [sys.executable, str(JOB), kind, *where, moment]
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


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("delta", "before the commit"),
        ("delta", "after the commit"),
        ("iceberg", "after the commit"),
        pytest.param("objects", "after the commit", marks=pytest.mark.slow),
        *(
            pytest.param(kind, moment, marks=pytest.mark.slow)
            for kind in ("delta", "iceberg", "objects")
            for moment in ("before the files", "before the commit")
            if (kind, moment) != ("delta", "before the commit")
        ),
    ],
)
def test_a_killed_job_s_batch_comes_again_and_each_message_is_in_the_table_once(
    qm, q_name, started, tmp_path, kind, moment
):
    qm.put_many(q_name, [b"%d" % n for n in range(3 * A_BATCH)])
    assert started(kind, moment).wait(600) == -signal.SIGKILL
    assert depth(qm, q_name) > A_BATCH
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
        assert depth(qm, q_name) > 0
    assert started(kind).wait(600) == 0, (tmp_path / "jobs.log").read_text()[-4000:]
    assert numbers_in(kind, tmp_path) == list(range(total))
    assert (depth(qm, q_name), qm.reservations(q_name)) == (0, [])
    assert len(urls_of(kind, tmp_path)) == files_in(tmp_path)
