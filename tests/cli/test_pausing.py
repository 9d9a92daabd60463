"""Pausing, cancelling and repeating on the command line, and one machine where all of it happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import Trigmon, objects
from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import RecordRun, Resume
from trigmon.mq.errors import MQError

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
ME = "root" if os.geteuid() == 0 else ""


@pytest.fixture
def paused(trigmon: Trigmon, qm):
    """A queue and its process, both resumed again behind the test."""
    for name, kind, more in (("PQ", "QLOCAL", {"process_name": "PP"}), ("PP", "PROCESS", {"appl_id": "/bin/true"})):
        try:
            define(qm, name, kind, **more)
        except MQError:
            assert trigmon("queue", "show", "PQ").exit_code == 0
    yield trigmon
    for what, name in (("queue", "PQ"), ("process", "PP"), ("everything", "")):
        try:
            qm.call(Resume(what=what, name=name))
        except MQError:
            continue


def test_the_user_the_time_and_the_reason_of_a_pause_are_shown(paused: Trigmon):
    done = paused("queue", "pause", "PQ", "--reason", "the database is down")
    assert (done.exit_code, done.stdout) == (0, "PQ is paused\n")
    (row,) = objects(paused("queue", "list", "PQ", "--output", "json"))
    reported = row["paused"]
    assert reported.startswith(f"queue PQ paused by {ME}")
    assert reported.endswith(" UTC: the database is down")
    assert reported in paused("queue", "list", "PQ").stdout
    assert reported in paused("queue", "show", "PQ").stdout
    assert reported in paused("status").stdout
    assert reported in objects(paused("status", "--output", "json"))[0]["pauses"][0]["paused"]
    found = paused("explain", "PQ")
    assert found.stdout.splitlines()[1] == f"What it starts would be held: {reported}."
    assert found.stdout.splitlines()[0].startswith("A put on PQ with priority 0 would NOT write a trigger message")
    assert f"held: {reported}" in paused("explain", "PQ", "--why-not").stdout
    explained = json.loads(paused("explain", "PQ", "--output", "json").stdout)
    assert explained["values"]["pauses"][0]["reason"] == "the database is down"


def test_a_process_and_everything_are_paused_by_their_own_words(paused: Trigmon):
    assert paused("process", "pause", "PP").stdout == "PP is paused\n"
    assert paused("queue", "pause", "--all", "--reason", "upkeep").stdout == "everything is paused\n"
    (row,) = objects(paused("process", "list", "PP", "--output", "json"))
    assert [part.split(" by ")[0] for part in row["paused"].split("; ")] == ["process PP paused", "everything paused"]
    resumed = paused("process", "resume", "PP", "--output", "json")
    assert objects(resumed) == [{"action": "resumed", "what": "process", "name": "PP"}]
    assert resumed.stderr.startswith("still: everything paused by ")
    assert paused("queue", "resume", "--all").exit_code == 0


def test_a_wrong_state_is_5_no_such_object_3_and_half_a_command_2(paused: Trigmon):
    assert paused("queue", "resume", "PQ").exit_code == 5
    paused("queue", "pause", "PQ")
    again = paused("queue", "pause", "PQ")
    assert (again.exit_code, "queue PQ paused by " in again.stderr) == (5, True)
    assert paused("queue", "pause", "NONE").exit_code == 3
    assert paused("process", "pause", "NONE").exit_code == 3
    assert paused("queue", "pause").exit_code == 2
    assert paused("queue", "pause", "PQ", "--all").exit_code == 2


def test_what_runs_already_is_reported_when_its_queue_is_paused_and_what_was_held_when_it_is_resumed(
    paused: Trigmon, qm
):
    for run_id, state in (("runs-on", "started"), ("waits", "held")):
        qm.call(RecordRun(run_id=run_id, record={"state": state, "q_name": "PQ", "process_name": "PP"}))
    assert "started already: 1, and it runs on" in paused("queue", "pause", "PQ").stderr
    (waits,) = objects(paused("runs", "list", "--queue", "PQ", "--state", "held", "--output", "json"))
    assert waits["why"].startswith("queue PQ paused by ")
    assert objects(paused("runs", "show", "waits", "--output", "json"))[0]["why"] == waits["why"]
    assert paused("queue", "resume", "PQ").stdout == "PQ is resumed; held until now: 1\n"


def test_runs_are_cancelled_each_by_itself(paused: Trigmon, qm):
    for run_id, state in (("c-held", "held"), ("c-started", "started"), ("c-ended", "exited")):
        qm.call(RecordRun(run_id=run_id, record={"state": state, "q_name": "PQ", "monitor": "nobody"}))
    done = paused("runs", "cancel", "c-ended", "c-held", "nope", "c-started", "--reason", "the wrong day")
    assert done.exit_code == 5
    assert "RUN(c-ended) has ended: exited" in done.stderr
    assert "RUN(nope); trigmon runs list --all shows what there is" in done.stderr
    held, started = done.stdout.splitlines()
    assert held.endswith(": the wrong day; its trigger message was not started")
    assert started == "c-started: its monitor was asked to end it: see trigmon runs show"
    shown = objects(paused("runs", "show", "c-started", "--output", "json"))[0]
    assert (shown["state"], shown["cancel_reason"]) == ("started", "the wrong day")
    assert shown["cancelled_time"].endswith("Z")
    assert [r["run_id"] for r in objects(paused("runs", "list", "--state", "cancelled", "--output", "json"))] == [
        "c-held"
    ]
    assert paused("runs", "retry", "c-ended").exit_code == 5
    assert paused("runs", "retry", "nope").exit_code == 3


def test_runs_are_listed_by_how_long_ago_they_were(paused: Trigmon, qm):
    now = time.time_ns() // 1_000_000
    for run_id, age_ms in (("s-old", 7_200_000), ("s-hour", 3_000_000), ("s-new", 1000)):
        qm.call(RecordRun(run_id=run_id, record={"state": "exited", "q_name": "SINCE", "recorded_ms": now - age_ms}))

    def since(*words: str) -> list[str]:
        found = objects(paused("runs", "list", "--queue", "SINCE", "--output", "json", *words))
        return [row["run_id"] for row in found]

    assert since() == ["s-new", "s-hour", "s-old"]
    assert since("--since", "1h") == ["s-new", "s-hour"]
    assert since("--since", "60") == ["s-new"]
    assert paused("runs", "list", "--since", "long").exit_code == 2


@pytest.fixture
def machine(daemon, tmp_path):
    """A queue manager with its monitor, and a job that prints until it is let go."""
    one = daemon(start=False)
    one.with_monitor = True
    one.start()
    one.wait_for_event("monitor serves")
    one.gate = tmp_path / "gate"
    job = tmp_path / "job"
    job.write_text(f"#!/bin/sh\necho begun\nwhile [ ! -e {one.gate} ]; do sleep 0.05; done\necho done\n")
    job.chmod(0o755)
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id=str(job))
        define(qm, "Q", process_name="P", initiation_q_name=INITQ, trigger_control="on", trigger_type="every")
    return one


def ledger(one, **where):
    words = [word for name, value in where.items() for word in (f"--{name}", value)]
    return [json.loads(line) for line in one.trigmon("runs", "list", "--output", "json", *words).stdout.splitlines()]


def test_it_pauses_resumes_cancels_repeats_and_follows(machine):
    assert machine.trigmon("queue", "pause", "--all", "--reason", "upkeep").returncode == 0
    assert machine.trigmon("put", "Q", "one").returncode == 0
    (held,) = until(lambda: ledger(machine, state="held"))
    assert held["why"].endswith(": upkeep")
    machine.kill()
    machine.start()
    assert ledger(machine, state="held")[0]["why"] == held["why"]
    follower = subprocess.Popen(
        [sys.executable, "-m", "trigmon", "runs", "logs", "-f", held["run_id"]],
        env=machine.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "is held: everything paused by " in follower.stderr.readline()
        assert machine.trigmon("queue", "resume", "--all").returncode == 0
        until(lambda: ledger(machine, state="started"))
        assert follower.stdout.readline() == "begun\n"
        assert machine.trigmon("runs", "cancel", held["run_id"], "--reason", "enough").returncode == 0
        (ended,) = until(lambda: ledger(machine, state="cancelled"))
        assert ended["why"].endswith(": enough; killed by SIGTERM")
        out, err = follower.communicate(timeout=20)
        assert (out, follower.returncode) == ("", 0)
        assert err == f"trigmon: run {held['run_id']}: {ended['why']}\n"
    finally:
        if follower.poll() is None:
            follower.send_signal(signal.SIGKILL)
            follower.communicate()
    machine.gate.touch()
    assert machine.trigmon("runs", "retry", held["run_id"]).returncode == 0
    (again,) = until(lambda: [run for run in ledger(machine, state="exited") if run["repeats"]])
    assert again["repeats"] == held["run_id"]
    assert machine.trigmon("runs", "logs", "-f", again["run_id"]).stdout == "begun\ndone\n"
    reported = {event: machine.events(event) for event in ("starting paused", "starting resumed", "run cancelled")}
    assert [reported[event][0]["by"] for event in reported] == [reported["run cancelled"][0]["by"]] * 3
    assert reported["starting paused"][0]["reason"] == "upkeep"


def test_the_ledger_keeps_as_many_runs_and_as_long_as_the_settings_say(daemon):
    one = daemon(settings={"runs.keep_count": 3, "runs.keep_days": 0.5})
    now = time.time_ns() // 1_000_000
    with one.connect() as qm:
        for number, hours in enumerate((0, 5, 4, 13, 2, 1)):
            record = {"state": "exited" if number else "held", "end_ms": now - hours * 3_600_000}
            qm.call(RecordRun(run_id=f"r{number}", record=record))
        until(lambda: [run["run_id"] for run in ledger(one)] == ["r5", "r4", "r2", "r0"])
