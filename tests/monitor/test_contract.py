"""The launch contract with a real monitor and real programs: who opens its queue, who does not, and what follows."""

from __future__ import annotations

import os
import pwd
import sys
import time

import pytest

from tests.waiting import until
from trigmon.mq.calls import Alter, Delete, Display, Pause, Pauses, RecordRun, Resume, Runs
from trigmon.mq.descriptors import unpack_dlh

DRAIN = """\
import sys, time, trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as q:
    for message in q.drain(batch=2):
        pass
time.sleep(float(sys.argv[1]))
"""


def python(stage, text, name="job.py", arguments=""):
    """A program in Python, as APPLICID says it."""
    file = stage.directory / name
    file.write_text(text)
    return f"{sys.executable} {file} {arguments}".strip()


def test_a_run_is_seen_from_its_start_over_serving_to_its_end_with_what_it_took(stage):
    q_name = stage.queue(python(stage, DRAIN, arguments="1"), trigger_type="first")
    stage.watch()
    stage.qm.put_many(q_name, [b"x"] * 5)
    (run,) = stage.wait_for(q_name=q_name, state="drained")
    assert (run["taken"], run["committed"], run["backed_out"]) == (5, 5, 0)
    assert run["start_ms"] <= run["first_open_ms"] <= run["first_get_ms"]
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert (run["committed"], run["exit_status"], run["user"]) == (5, 0, pwd.getpwuid(os.geteuid()).pw_name)
    assert run["argv"][0] == sys.executable


def test_a_second_trigger_waits_until_the_first_program_reads_and_then_starts_at_once(stage):
    gate = stage.directory / "gate"
    text = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)\n" + DRAIN
    q_name = stage.queue(python(stage, text, arguments="60"), trigger_type="first")
    stage.watch()
    stage.qm.put(q_name, b"one")
    (first,) = stage.wait_for(q_name=q_name, state="started")
    with stage.qm.open(q_name, "input_shared") as q:
        q.get()  # another reader empties the queue, so that the next put triggers again
    stage.qm.put(q_name, b"two")
    (held,) = stage.wait_for(q_name=q_name, state="held")
    assert held["why"] == f"run {first['run_id']} was started for {q_name} and has not opened it yet"
    gate.touch()
    began = time.monotonic()
    until(lambda: not stage.runs(run_id=held["run_id"], state="held"))
    assert time.monotonic() - began < 5


def test_a_program_that_does_not_open_its_queue_in_time_is_ended_and_another_tried(stage):
    mark = stage.directory / "mark"
    text = (
        f"import os, time\nif not os.path.exists({str(mark)!r}):\n    open({str(mark)!r}, 'w'); time.sleep(60)\n"
        + DRAIN
    )
    q_name = stage.queue(python(stage, text, arguments="0"), trigger_type="first", open_wait_s=1)
    stage.watch()
    stage.qm.put(q_name, b"one")
    first, second = stage.wait_for(2, q_name=q_name, state="exited")
    expected = "ended by its monitor, since it had not opened its queue in 1 s: killed by SIGTERM"
    assert (first["why"], first["signal"], first["first_open_ms"]) == (expected, 15, 0)
    assert (second["retries"], second["attempt"]) == (first["run_id"], 2)
    assert (second["exit_status"], second["committed"]) == (0, 1)


def test_a_program_that_has_opened_its_queue_may_take_as_long_as_it_likes(stage):
    q_name = stage.queue(python(stage, DRAIN, arguments="2.5"), trigger_type="first", open_wait_s=2)
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="exited")
    assert (run["exit_status"], run["why"]) == (0, "ended with status 0")


def test_a_program_that_fails_before_it_opens_its_queue_is_tried_again_without_a_trigger(stage):
    mark = stage.directory / "mark"
    q_name = stage.queue(
        stage.program(f"[ -e {mark} ] && exec {python(stage, DRAIN, arguments='0')}; touch {mark}; exit 3")
    )
    stage.watch()
    stage.qm.put(q_name, b"one")
    first, second = stage.wait_for(2, q_name=q_name, state="exited")
    assert (first["exit_status"], second["exit_status"], second["retries"]) == (3, 0, first["run_id"])
    assert second["start_ms"] - first["end_ms"] >= 1000
    assert stage.depth(q_name) == 0


def test_the_monitors_cap_over_all_processes_holds_what_is_beyond_it(stage):
    gate = stage.directory / "gate"
    names = [
        stage.queue(stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done", name), name)
        for name in ("A", "B", "C")
    ]
    stage.watch(runs=2)
    for name in names:
        stage.qm.put(name, b"one")
    held = until(lambda: [run for name in names for run in stage.runs(q_name=name, state="held")])
    assert held[0]["why"] == "2 programs of this monitor run, and 2 may run at a time (monitor.max_runs)"
    gate.touch()
    for name in names:
        stage.wait_for(q_name=name, state="exited")


def test_a_flood_of_triggers_starts_no_more_than_may_run_and_every_one_is_on_record(stage):
    q_name = stage.queue(stage.program("sleep 60"), instances=2)
    stage.watch()
    stage.qm.put_many(q_name, [b"x"] * 2000)
    until(lambda: stage.depth(stage.initq) == 0)
    stage.wait_for(2, q_name=q_name, state="started")
    status = stage.qm.call(Runs(where={"q_name": q_name, "state": "held"}, limit=256))
    assert (len(status.rows), status.more) == (256, True)
    time.sleep(1.5)
    assert len(stage.runs(q_name=q_name, state="started")) == 2


def test_identical_triggers_that_wait_are_one_run_where_the_definition_says_so(stage):
    gate = stage.directory / "gate"
    q_name = stage.queue(stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done"), instances=1, coalesce="yes")
    stage.watch()
    stage.qm.put_many(q_name, [b"x"] * 20)
    joined = stage.wait_for(18, q_name=q_name, state="joined")
    gate.touch()
    ended = stage.wait_for(2, q_name=q_name, state="exited")
    assert {run["joins"] for run in joined} == {ended[1]["run_id"]}
    assert len(stage.runs(q_name=q_name)) == 20


def test_programs_that_remove_nothing_open_the_breaker_and_resume_closes_it(stage):
    healed = stage.directory / "healed"
    loop = (
        f"import os, sys, trigmon\n"
        f"with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, 'input_shared') as q:\n"
        f"    q.get(syncpoint=True)\n"
        f"    qm.commit() if os.path.exists({str(healed)!r}) else qm.backout()\n"
    )
    q_name = stage.queue(python(stage, loop), trigger_type="first", breaker=3)
    stage.watch()
    stage.qm.put(q_name, b"poison", persistence="persistent")
    (pause,) = until(lambda: [row for row in stage.qm.call(Pauses()).rows if row["name"] == q_name])
    assert "does not drain: 3 runs of " in pause["paused"]
    assert len([run for run in stage.runs(q_name=q_name) if run["state"] == "exited"]) in (3, 4)
    time.sleep(1)
    (held,) = stage.wait_for(q_name=q_name, state="held")
    assert held["why"].startswith(f"queue {q_name} held since ")
    healed.touch()
    stage.qm.call(Resume(what="queue", name=q_name))
    until(lambda: stage.depth(q_name) == 0)
    until(lambda: not stage.runs(q_name=q_name, state="held"))


def test_a_process_that_was_deleted_meanwhile_has_nothing_started_in_its_name(stage, dead_letters):
    q_name = stage.queue(stage.program("true"))
    with stage.qm.open(stage.initq, "input_shared"):
        stage.qm.put(q_name, b"one")
    stage.qm.call(Delete(object_type="PROCESS", name=f"{q_name}.P"))
    stage.watch()
    (failed,) = stage.wait_for(q_name=q_name, state="failed")
    assert failed["why"].startswith(f"process {q_name}.P is not defined any more; its trigger message is on ")
    assert unpack_dlh(dead_letters.get(wait_interval_ms=5000).data)[0].reason == 265


def test_a_record_that_nothing_can_be_started_from_fails_and_hinders_no_other(stage):
    q_name = stage.queue(stage.program("true"))
    odd = {"state": "held", "q_name": q_name, "process_name": f"{q_name}.P", "initiation_q": stage.initq}
    stage.qm.call(RecordRun(run_id="odd", record=odd))
    stage.watch()
    (failed,) = stage.wait_for(run_id="odd", state="failed")
    assert failed["why"] == "its record does not hold what it was to be started by"
    stage.qm.put(q_name, b"one")
    stage.wait_for(q_name=q_name, state="exited")


@pytest.mark.slow
def test_a_queue_with_ten_thousand_triggers_that_wait_keeps_no_other_queue_waiting(stage):
    flooded, other = stage.queue("/bin/true", "FLOODED"), stage.queue("/bin/true", "OTHER")
    for name in (flooded, stage.initq):
        stage.qm.call(Alter(object_type="QLOCAL", name=name, attributes={"max_q_depth": 20_000}))
    stage.qm.call(Pause(what="queue", name=flooded))
    stage.watch()
    for _ in range(11):
        stage.qm.put_many(flooded, [b"x"] * 1000)
    until(lambda: not stage.qm.call(Display(object_type="QLOCAL", name=stage.initq)).rows[0]["current_q_depth"])
    stage.qm.put(other, b"one")
    stage.wait_for(q_name=other, state="exited")
