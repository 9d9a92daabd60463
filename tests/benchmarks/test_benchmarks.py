"""The benchmarks run; what they measure is for a quiet machine and a person's eyes."""

import subprocess
import sys

import pytest

from tests.benchmarks.__main__ import WORKS
from tests.benchmarks.heads import WAYS


def test_every_benchmark_runs_and_prints_its_ratios():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    titles = ["deciding one put, all evidence", "deciding one put, facts of the store", "one put, decided and stored"]
    titles += [f"one get {way}" for way in WAYS]
    titles += [
        "from a start to the first answer",
        "a program starts: sh",
        "a program starts: python",
        "programs that end at once",
    ]
    titles += [f"{title}, {who}" for title, _ in WORKS.values() for who in ("1 client", "16 clients")]
    assert [title for title in titles if title not in done.stdout] == []
    assert done.stdout.count(" x ") >= 2 * len(titles)


def test_messages_on_postgresql_are_measured_beside_a_plain_queue_there():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--postgres"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert "put and get while a unit of work stays open, 16 clients" in done.stdout
    assert done.stdout.count(" x ") == 12


@pytest.mark.spark
def test_draining_by_spark_is_measured_beside_a_loop_of_gets():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--spark"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert "messages of 1 KiB into Parquet" in done.stdout
    assert done.stdout.count(" x ") == 3
