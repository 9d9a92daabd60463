"""``trigmon spark reservations``: listed and released by an operator."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Trigmon, objects
from tests.daemons import define
from trigmon.console.cells import run_cells
from trigmon.console.overview import read_overview
from trigmon.mq.calls import ChangeRun, RecordRun


@pytest.fixture
def reserved(shared_daemon, qm):
    """A job's connection, and its reservation of three messages of queue BATCH."""
    if not any(row["name"] == "BATCH" for row in _queues(qm)):
        define(qm, "BATCH")
    qm.put_many("BATCH", [b"a", b"b", b"c"])
    job = shared_daemon.connect(application="a job")
    yield job, job.open("BATCH", "input_shared").reserve("JOB", token="7")
    job.drop()
    for row in qm.reservations():
        qm.release(row["reservation"])
    with qm.open("BATCH", "input_shared") as q:
        list(q.drain())


def _queues(qm):
    from trigmon.mq.calls import Display
    from trigmon.mq.replies import Listing

    return qm.ask(Display(object_type="QLOCAL", name="BATCH"), Listing).rows


def test_reservations_are_listed_as_a_table_and_as_json_of_the_same_values(trigmon: Trigmon, reserved):
    _, batch = reserved
    (row,) = objects(trigmon("spark", "reservations", "list", "--queue", "BATCH", "--output", "json"))
    shown = {key: row[key] for key in ("reservation", "q_name", "consumer", "left", "count", "offers", "held", "token")}
    assert shown == {
        "reservation": batch.number,
        "q_name": "BATCH",
        "consumer": "JOB",
        "left": 3,
        "count": 3,
        "offers": 0,
        "held": True,
        "token": "7",
    }
    assert row["since_time"].endswith("Z")
    line = trigmon("spark", "reservations", "list").stdout.splitlines()[-1]
    assert [str(batch.number), "BATCH", "JOB", "3", "3", "0", "yes", "0"] == line.split()[:8]
    nothing = trigmon("spark", "reservations", "list", "--queue", "NONE")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "nothing is reserved\n")


def test_what_a_running_job_holds_is_released_only_by_force(trigmon: Trigmon, qm, reserved):
    _, batch = reserved
    number = str(batch.number)
    refused = trigmon("spark", "reservations", "release", number)
    assert refused.exit_code == 5
    assert f"RESERVATION({number}) is held by a job" in refused.stderr
    (done,) = objects(trigmon("spark", "reservations", "release", number, "--force", "--no-count", "--output", "json"))
    assert done == {"action": "released", "reservation": batch.number, "messages": 3}
    again = trigmon("spark", "reservations", "release", number)
    assert (again.exit_code, again.stdout) == (0, f"{number}: was released already\n")
    with qm.open("BATCH", "input_shared") as q:
        assert [message.backout_count for message in q.get_many(10)] == [0, 0, 0]


def test_one_refusal_keeps_no_other_back_and_an_unknown_one_is_not_found(trigmon: Trigmon, qm, reserved):
    job, batch = reserved
    job.disconnect()
    done = trigmon("spark", "reservations", "release", "999999999", str(batch.number))
    assert done.exit_code == 3
    assert "RESERVATION(999999999)" in done.stderr
    assert "3 messages are back on their queue" in done.stdout
    with qm.open("BATCH", "input_shared") as q:
        assert [message.backout_count for message in q.get_many(10)] == [1, 1, 1]


def test_explain_and_queue_show_tell_what_is_reserved(trigmon: Trigmon, reserved):
    assert "3 reserved for JOB, held by a job" in trigmon("explain", "BATCH").stdout
    (shown,) = objects(trigmon("queue", "show", "BATCH", "--output", "json"))
    assert (shown["current_q_depth"], shown["uncommitted_msgs"]) == (0, 3)


def test_status_tells_what_is_reserved_and_for_how_long(trigmon: Trigmon, reserved):
    _, batch = reserved
    (row,) = objects(trigmon("status", "--output", "json"))[0]["reserved"]
    assert (row["reservation"], row["consumer"], row["left"]) == (batch.number, "JOB", 3)
    assert 0 <= row["age_s"] < 60
    assert "3 reserved for JOB, held by a job" in trigmon("status").stdout


def test_a_run_that_drains_shows_its_batches_its_rows_a_second_and_what_it_holds(trigmon: Trigmon, qm, shared_daemon):
    define(qm, "DRAINED")
    qm.put_many("DRAINED", [b"%d" % n for n in range(5)])
    record = {"state": "started", "q_name": "DRAINED", "start_ms": 1000, "recorded_ms": 1}
    qm.call(RecordRun(run_id="drains", record=record))
    with shared_daemon.connect(application="a job", run_id="drains") as job, job.open("DRAINED", "input_shared") as q:
        for _ in range(2):
            q.reserve("JOB", max_messages=2).settle()
        q.reserve("JOB")
        (shown,) = objects(trigmon("runs", "show", "drains", "--output", "json"))
        assert (shown["batches"], shown["committed"], shown["taken"]) == (2, 4, 5)
        assert shown["rows_per_s"] > 0
        assert shown["settled_time"].endswith("Z")
        assert shown["reserved"].startswith("1 reserved for JOB, held by a job")
        assert shown["left"] == 1  # it is reserved
        progress = r"2 batches, 4 rows, [0-9 ]+ rows/s, 1 left"
        assert re.search(progress, trigmon("runs", "show", "drains").stdout)
        (listed,) = (line for line in trigmon("runs", "list").stdout.splitlines() if line.startswith("drains"))
        assert re.search(progress, listed)
        (running,) = (run for run in read_overview(qm).running if run.run_id == "drains")
        assert re.search(progress, run_cells(running, running.since_ms, 200)[-1])
    qm.call(ChangeRun(run_id="drains", fields={"state": "exited", "exit_status": 0, "end_ms": 2000}))
    (shown,) = objects(trigmon("runs", "show", "drains", "--output", "json"))
    assert (shown["batches"], shown["committed"], "left" in shown) == (2, 4, False)
    assert re.search(r"2 batches, 4 rows, [0-9 ]+ rows/s\n", trigmon("runs", "show", "drains").stdout)
