"""A job that is killed at the worst moments, with all of its Spark: no message is lost, and none is there twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.spark.conftest import depth, spark_environment

pytestmark = [pytest.mark.spark]
JOB = Path(__file__).with_name("dying_job.py")
COUNT = 70


@pytest.fixture
def job(shared_daemon, q_name, tmp_path):
    def job(how, moment):
        environment = shared_daemon.env | spark_environment(tmp_path)
        arguments = [how, moment, str(tmp_path / "died"), str(tmp_path / "table"), q_name, shared_daemon.address]
        argv = [sys.executable, str(JOB), *arguments]
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, start_new_session=True, check=False, timeout=600
        )

    return job


@pytest.mark.parametrize(
    ("how", "moment"),
    [
        ("drain", "before settling"),
        pytest.param("drain", "before the sink", marks=pytest.mark.slow),
        pytest.param("drain", "after settling", marks=pytest.mark.slow),
        pytest.param("stream", "before the sink", marks=pytest.mark.slow),
        pytest.param("stream", "after the sink", marks=pytest.mark.slow),
    ],
)
def test_a_killed_job_s_batch_comes_again_and_each_message_is_in_the_table_once(qm, q_name, job, tmp_path, how, moment):
    qm.put_many(q_name, [b"%d" % n for n in range(COUNT)])
    killed = job(how, moment)
    assert killed.returncode == -9, killed.stderr
    assert depth(qm, q_name) > 0
    qm.put_many(q_name, [b"%d" % n for n in range(COUNT, COUNT + 10)], priority=9)
    again = job(how, moment)
    assert again.returncode == 0, again.stderr
    rows = pyarrow.parquet.read_table(tmp_path / "table", columns=["data"]).to_pylist()
    assert sorted(int(row["data"]) for row in rows) == list(range(COUNT + 10))
    assert depth(qm, q_name) == 0
    assert qm.reservations(q_name) == []
