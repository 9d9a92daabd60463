"""The flights of 2013 through the queue into the tables, as shipped, against figures that no Spark computed."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from datetime import UTC

import pyarrow.parquet
import pytest

from tests.acceptance import flights_figures
from tests.acceptance.dying import KILLED, MOMENTS, run
from trigmon import paths
from trigmon.demo import data
from trigmon.mq.calls import Clear, Display, Runs

PROCESS_DEFS = paths.shipped("process_defs")
PUT = PROCESS_DEFS / "flights_put.py"
JOB_S = 3000


class Pipeline:
    """A queue manager with its monitor and the flights' definitions, and where the job writes to."""

    def __init__(self, queue_manager, output):
        self.queue_manager = queue_manager
        self.output = output

    def put(self, *words):
        """Puts flights as a user would; what it printed."""
        argv = [sys.executable, str(PUT), *words]
        done = subprocess.run(
            argv, env=self.queue_manager.env, capture_output=True, text=True, check=False, timeout=JOB_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ended(self, count):
        """The runs, as soon as there are so many and all have ended and left nothing."""
        deadline = time.monotonic() + JOB_S
        with self.queue_manager.connect() as qm:
            while True:
                runs = qm.call(Runs(where={"q_name": "FLIGHTS.IN"})).rows
                if len(runs) >= count and all(run["state"] == "exited" for run in runs) and not depth(qm, "FLIGHTS.IN"):
                    return runs
                assert time.monotonic() < deadline, runs
                time.sleep(0.2)

    def table(self):
        """The rows of the table of flights."""
        found = pyarrow.parquet.read_table(self.output / "flights", coerce_int96_timestamp_unit="us")
        return found.to_pylist()

    def delays(self):
        """The rows of the small table."""
        return pyarrow.parquet.read_table(self.output / "delays.parquet").to_pylist()

    def files(self):
        """Every file of the table."""
        return sorted(str(path) for path in (self.output / "flights").rglob("*"))


def depth(qm, name):
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]


@pytest.fixture
def pipeline(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("FLIGHTS_OUTPUT", str(tmp_path / "out"))
    queue_manager = daemon(with_monitor=True, settings={"monitor.environment": "FLIGHTS_OUTPUT"})
    applied = queue_manager.trigmon("apply", str(paths.shipped("config") / "queues.yaml"), str(PROCESS_DEFS))
    assert applied.returncode == 0, applied.stderr
    return Pipeline(queue_manager, tmp_path / "out")


OURS = ("batch", "msg_id", "put_time")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("until", "count"),
    [
        pytest.param("2013-01-03", 2699, id="three days", marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
        pytest.param("2013-12-31", 336_776, id="the year", marks=[pytest.mark.slow, pytest.mark.timeout(2 * JOB_S)]),
    ],
)
def test_the_tables_hold_what_the_csv_says_and_a_second_run_leaves_them_as_they_are(pipeline, until, count):
    began = time.monotonic()
    print(pipeline.put("--until", until))
    runs = pipeline.ended(1)
    print(f"from the first put to the last run's end {time.monotonic() - began:.1f} s")
    for one in runs:
        took = (one["end_ms"] - one["start_ms"]) / 1000
        print(f"a run: {one['committed']} flights in {one['batches']} batches, {took:.1f} s with Spark's start")
    assert {one["exit_status"] for one in runs} == {0}
    listed = pipeline.queue_manager.trigmon("runs", "list", "--process", "FLIGHTS.LOAD").stdout
    progress = re.findall(r"(\d+) batch(?:es)?, ([\d ]+) rows, [\d ]+ rows/s", listed)
    told = [(int(batches), int(rows.replace(" ", ""))) for batches, rows in progress]
    assert told == [(one["batches"], one["committed"]) for one in runs]

    wanted = flights_figures.flights(until)
    table = pipeline.table()
    assert len(table) == len(wanted) == count
    assert Counter(map(content, table)) == Counter(map(content, wanted))
    assert len({row["msg_id"] for row in table}) == count
    batches = {(row["tailnum"], row["month"], row["day"], row["batch"]) for row in table if row["leg"]}
    assert len(batches) == len({of[:3] for of in batches}), "a group is in one batch alone"
    delays = pipeline.delays()
    assert delays == flights_figures.delays(wanted)
    assert sum(row["flights"] for row in delays) == count

    gold, files = (pipeline.output / "delays.parquet").read_bytes(), pipeline.files()
    assert pipeline.put("--until", until).startswith("0 flights of 0 days put")
    started = pipeline.queue_manager.trigmon("process", "start", "FLIGHTS.LOAD", "--queue", "FLIGHTS.IN")
    assert started.returncode == 0, started.stderr
    assert pipeline.ended(len(runs) + 1)[0]["exit_status"] == 0
    assert (pipeline.output / "delays.parquet").read_bytes() == gold
    assert pipeline.files() == files


def content(row):
    """What a flight is, whatever has carried it."""
    values = {name: value for name, value in row.items() if name not in OURS}
    values["time_hour"] = values["time_hour"].replace(tzinfo=UTC)  # as Spark writes it, an instant has no zone
    return tuple(sorted(values.items()))


# -- the program that puts them -----------------------------------------------------------------------------

ROWS = data.flights()[:40]
DAYS = {"2013-01-01": ROWS[:20], "2013-01-02": ROWS[20:21], "2013-01-03": ROWS[21:]}


@pytest.fixture
def put(shared_daemon, monkeypatch):
    """Runs the program over a year of three days, to be killed at a call; its exit status."""
    monkeypatch.setattr(data, "year", lambda: DAYS)
    applied = shared_daemon.trigmon("apply", str(paths.shipped("config") / "queues.yaml"), str(PROCESS_DEFS))
    assert applied.returncode == 0, applied.stderr
    return lambda *words, **dies: run(PUT, *words, env=shared_daemon.env, **dies)


def taken(qm):
    """What was put, by its data and its place in its group; and then it is forgotten."""
    with qm.open("FLIGHTS.IN", "input_shared") as queue:
        found = [(m.data, m.group_id.rstrip(b"\0").decode(), m.msg_seq_number) for m in queue.drain()]
    qm.call(Clear(q_name="FLIGHTS.PUT.STATUS"))
    return found


@pytest.mark.parametrize("step", [pytest.param(6, id="some points"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_killed_at_any_point_it_puts_every_flight_once(qm, put, step):
    wanted = sorted(
        (row, own.get("group_id", ""), own.get("msg_seq_number", 1))
        for rows in DAYS.values()
        for row, own in data.grouped(rows)
    )
    points = ((at, moment) for at in itertools.count(1) for moment in MOMENTS)
    for number, (at, moment) in enumerate(itertools.islice(points, 0, None, step)):  # noqa: B007 - how many there were
        ended = put(at=at, moment=moment)
        assert ended in (0, KILLED)
        assert put() == 0
        assert (at, moment, sorted(taken(qm))) == (at, moment, wanted)
        if ended == 0:
            break
    assert number > 80 / step


def test_it_goes_on_behind_the_last_day_and_begins_again_only_when_asked_to(qm, put):
    counts = []
    for words in (("--until", "2013-01-02"), ("--until", "2013-01-02"), (), (), ("--again",)):
        assert put(*words) == 0
        counts.append(depth(qm, "FLIGHTS.IN"))
    assert counts == [21, 21, 40, 40, 80]
    taken(qm)


def test_the_demos_day_is_the_first_of_the_year_byte_for_byte():
    year = data.year()
    assert (len(year), sum(map(len, year.values()))) == (365, 336_776)
    assert year["2013-01-01"] == data.flights()


def test_a_group_is_what_one_aircraft_does_in_a_day_in_the_order_of_its_plan():
    messages = list(data.grouped(data.flights()))
    assert sorted(row for row, _ in messages) == sorted(data.flights())
    groups = defaultdict(list)
    for row, own in messages:
        groups[own.get("group_id")].append((json.loads(row), own))
    assert all(row["tailnum"] is None for row, _ in groups.pop(None, []))
    for name, legs in groups.items():
        assert {f"{row['tailnum']} 2013-01-01" for row, _ in legs} == {name}
        assert [own["msg_seq_number"] for _, own in legs] == list(range(1, len(legs) + 1))
        assert [own["msg_flags"] for _, own in legs] == [*["msg_in_group"] * (len(legs) - 1), "last_msg_in_group"]
        assert [row["sched_dep_time"] for row, _ in legs] == sorted(row["sched_dep_time"] for row, _ in legs)
    assert max(map(len, groups.values())) == 4
