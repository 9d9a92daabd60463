"""The flights' job and the small table it makes of the large one: what if it ends just over that?"""

from __future__ import annotations

import argparse
import json
import re

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.conftest import depth
from trigmon import paths
from trigmon.demo import data
from trigmon.mq.calls import Alter, ChangeRun, RecordRun

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
ROWS = data.flights()[:60]


class Job:
    """The job for the test's queue, in the tests' Spark. ``fails`` is what its next look at the whole table raises."""

    def __init__(self, spark, q_name, output, monkeypatch):
        monkeypatch.syspath_prepend(str(paths.shipped("process_defs")))
        import flights_delays
        import flights_load

        self.fails = None
        self._run = flights_load.run
        self._spark = spark
        self._options = argparse.Namespace(queue=q_name, output=output, weather=data.weather(), batch=1000)
        self.output = output
        write = flights_delays.write
        monkeypatch.setattr(flights_delays, "write", lambda *of: self._raised() or write(*of))

    def sizes(self, most, monkeypatch, look):
        """Has batches of at most so many messages; ``look`` is called before each of them is written."""
        import flights_load

        self._options.batch = most
        write = flights_load.write_batch
        monkeypatch.setattr(flights_load, "write_batch", lambda *of, **how: look() or write(*of, **how))

    def _raised(self):
        error, self.fails = self.fails, None
        if error:
            raise error

    def run(self):
        return self._run(self._spark, self._options)

    def table(self):
        """How many flights are in the table, and how many messages they were."""
        found = pyarrow.parquet.read_table(self.output / "flights", columns=["msg_id"])["msg_id"].to_pylist()
        return len(found), len(set(found))

    def summed(self):
        """Returns how many flights the small table counts; None while there is none."""
        file = self.output / "delays.parquet"
        return sum(pyarrow.parquet.read_table(file)["flights"].to_pylist()) if file.exists() else None


@pytest.fixture
def job(spark, q_name, qm, shared_daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("TRIGMON_QMGR", shared_daemon.address)
    with qm.open(q_name, "output") as queue:
        queue.put_each(data.grouped(ROWS))
    return Job(spark, q_name, tmp_path / "out", monkeypatch)


def test_what_ends_it_over_the_small_table_leaves_the_batch_and_the_next_job_makes_both(job, qm, q_name):
    job.fails = KeyboardInterrupt()  # as a kill: nothing is done about it
    with pytest.raises(KeyboardInterrupt):
        job.run()
    assert (job.summed(), depth(qm, q_name)) == (None, 60)
    assert job.run().rows == 60
    assert (job.table(), job.summed(), depth(qm, q_name)) == ((60, 60), 60, 0)


def test_a_small_table_that_cannot_be_made_fails_the_job_and_doubles_nothing(job, qm, q_name):
    job.fails = OSError("no room")
    with pytest.raises(OSError, match="no room"):
        job.run()
    assert (job.table(), job.summed(), depth(qm, q_name)) == ((60, 60), None, 0)
    assert job.run().rows == 0
    assert (job.table(), job.summed()) == ((60, 60), 60)


def test_a_message_that_is_no_flight_goes_aside_with_the_aircrafts_day_it_is_of(job, qm, q_name):
    define(qm, f"{q_name}.ASIDE", def_persistence="persistent")
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"backout_requeue_q_name": f"{q_name}.ASIDE"}))
    leg = json.loads(ROWS[0]) | {"tailnum": "N00000"}
    day = [json.dumps(leg | {"sched_dep_time": 600 + n, "carrier": "XX" if n else None}).encode() for n in range(2)]
    with qm.open(q_name, "output") as queue:
        queue.put_each(data.grouped(day))
        queue.put(data.flights()[60])  # by its success the day before is to blame, and not the sink
    done = job.run()
    assert (done.rows, len(done.rejected)) == (61, 2)
    assert (job.table(), job.summed(), depth(qm, f"{q_name}.ASIDE")) == ((61, 61), 61, 2)


def test_runs_list_says_how_far_it_is_in_batches_rows_rows_a_second_and_rows_left(
    job, qm, q_name, shared_daemon, monkeypatch
):
    record = {"state": "started", "process_name": "FLIGHTS.LOAD", "q_name": q_name, "start_ms": 1000, "recorded_ms": 1}
    qm.call(RecordRun(run_id="flights", record=record))
    monkeypatch.setenv("TRIGMON_RUN", "flights")
    seen = []

    def look():
        (line,) = shared_daemon.trigmon("runs", "list", "--process", "FLIGHTS.LOAD").stdout.splitlines()[1:]
        seen.append(re.search(r"(\d+) batch(?:es)?, (\d+) rows, [\d ]+ rows/s(?:, (\d+) left)?", line))

    job.sizes(30, monkeypatch, look)
    done = job.run()
    qm.call(ChangeRun(run_id="flights", fields={"state": "exited", "exit_status": 0, "end_ms": 2000}))
    look()
    assert (done.rows, done.batches) == (60, len(seen) - 1)
    first, *under_way, last = seen
    assert first is None  # nothing was settled yet
    assert [int(of[1]) for of in under_way] == list(range(1, done.batches))
    assert all(int(of[2]) + int(of[3]) == 60 for of in under_way)
    assert last.groups() == (str(done.batches), "60", None)
