"""The demo without its Spark: what it needs, how it fails, and that it leaves nothing behind."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.processes import is_there
from trigmon import demo
from trigmon.demo import data, demo_page
from trigmon.launch.spark.cold import java


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """Makes a Spark whose spark-submit is this shell script, and a Java for it to be content with."""
    java_home = tmp_path / "java"
    (java_home / "bin").mkdir(parents=True)
    (java_home / "bin" / "java").write_text("#!/bin/sh\n")
    (java_home / "bin" / "java").chmod(0o755)
    (java_home / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(java_home))

    def make(script, shell="/bin/sh"):
        home = tmp_path / "spark"
        (home / "bin").mkdir(parents=True)
        submit = home / "bin" / "spark-submit"
        submit.write_text(f"#!{shell}\n{script}\n")
        submit.chmod(0o755)
        monkeypatch.setenv("SPARK_HOME", str(home))

    return make


@pytest.fixture
def small_tmp(tmp_path_factory, monkeypatch):
    """A TMPDIR of the test's own, to see what stays in it."""
    directory = tmp_path_factory.mktemp("t")
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr("tempfile.tempdir", None)
    return directory


def test_the_data_is_the_842_flights_of_one_day_and_every_carrier_has_a_name():
    flights = [json.loads(row) for row in data.flights()]
    assert len(flights) == 842
    assert {(row["year"], row["month"], row["day"]) for row in flights} == {(2013, 1, 1)}
    assert {row["origin"] for row in flights} == {"EWR", "JFK", "LGA"}
    assert {row["carrier"] for row in flights} <= set(data.airlines())


def test_a_missing_java_is_reported_before_anything_is_started(monkeypatch, small_tmp):
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_bundled_home", lambda: None)
    with pytest.raises(demo.DemoFailed, match=r"Spark needs Java 17, 21 or 25.*pip install 'trigmon\[java\]'"):
        demo.run(demo.Screen(io.StringIO()))
    assert list(small_tmp.iterdir()) == []


def test_a_job_that_fails_fails_the_demo_with_the_end_of_its_stderr(spark, small_tmp):
    spark("echo 'Traceback: it broke' >&2; exit 7")
    screen = io.StringIO()
    with pytest.raises(demo.DemoFailed, match="the job failed: ended with status 7") as raised:
        demo.run(demo.Screen(screen))
    assert raised.value.detail == "Traceback: it broke\n"
    assert "842 messages put on FLIGHTS.IN" in screen.getvalue()
    assert re.search(r"\n +watch it: http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\n", screen.getvalue())
    assert list(small_tmp.iterdir()) == []


def test_without_the_extra_the_page_is_named_and_missing(spark, small_tmp, monkeypatch):
    monkeypatch.setattr(demo_page, "NEEDED", ("no_such_package",))
    spark("exit 7")
    screen = io.StringIO()
    with pytest.raises(demo.DemoFailed):
        demo.run(demo.Screen(screen))
    assert "watch it: in a browser, once the extra web is installed: pip install 'trigmon[web]'" in screen.getvalue()


# A job as spark-submit's: a shell that leads the group, a Java that outlives it, a Python that has the queue open and
# has written something.
JOB = """\
echo $$ >> {pids}
(trap '' TERM; echo $BASHPID >> {pids}; exec sleep 300) &
mkdir -p "$FLIGHTS_OUTPUT/flights/deep"; touch "$FLIGHTS_OUTPUT/flights/deep/part"
{python} -c '
import os, time, trigmon
with trigmon.connect() as qm, qm.open("FLIGHTS.IN", "input_shared") as q:
    q.get(syncpoint=True)
    with open("{pids}", "a") as file: file.write(str(os.getpid()) + chr(10))
    time.sleep(300)'
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_ends_everything_it_started_and_says_what(spark, small_tmp, number):
    pids = small_tmp / "pids"
    spark(JOB.format(pids=pids, python=sys.executable), shell="/bin/bash")
    playing = subprocess.Popen(
        [sys.executable, "-m", "trigmon", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 600
    while not (pids.exists() and len(pids.read_text().splitlines()) == 3):
        assert playing.poll() is None, playing.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    playing.send_signal(number)
    output, _ = playing.communicate(timeout=60)
    assert playing.returncode == 1, output
    assert len(pids.read_text().splitlines()) == 3, "a second job was started"
    for pid in map(int, pids.read_text().split()):
        assert not is_there(pid)
    assert [file.name for file in small_tmp.iterdir()] == ["pids"]
    said = output.splitlines()[-1]
    assert re.fullmatch(
        r"Interrupted while: .*\. Ended: run \w+ of FLIGHTS\.LOAD \(pid \d+\), the monitor, the queue manager .*", said
    )


def test_a_directory_of_the_users_own_stays_when_the_demo_fails(spark, small_tmp):
    spark('touch "$FLIGHTS_OUTPUT/new"; exit 7')
    theirs = small_tmp / "theirs"
    theirs.mkdir()
    (theirs / "old").touch()
    with pytest.raises(demo.DemoFailed):
        demo.run(demo.Screen(io.StringIO()), theirs)
    assert (theirs / "old").exists()
    with pytest.raises(demo.DemoFailed):
        demo.run(demo.Screen(io.StringIO()), small_tmp / "new")
    assert [file.name for file in small_tmp.iterdir()] == ["theirs"]


def test_the_machines_own_queue_manager_and_its_settings_are_left_alone(spark, small_tmp, monkeypatch):
    monkeypatch.setenv("TRIGMON_HOME", "/nowhere/of/ours")
    monkeypatch.setenv("TRIGMON_QMGR_NAME", "PRODUCTION")
    spark('echo "$TRIGMON_QMGR $TRIGMON_HOME" >&2; exit 1')
    with pytest.raises(demo.DemoFailed) as raised:
        demo.run(demo.Screen(io.StringIO()))
    assert raised.value.detail.startswith(f"DEMO {small_tmp}")
