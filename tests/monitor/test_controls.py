"""What operators want of a running monitor: paused starts, ended runs, repeated runs, forgotten output."""

from __future__ import annotations

import time

from tests.processes import is_there
from tests.waiting import until
from trigmon.monitor.output_cleanup import SLICE, Sweep
from trigmon.mq.calls import CancelRun, Pause, RecordRun, Resume, RetryRun
from trigmon.mq.descriptors import FORMAT_TRIGGER, TriggerMessage, pack_tm
from trigmon.mq.replies import Listing


def pause(stage, what, name):
    stage.qm.call(Pause(what=what, name=name, reason="upkeep"))


def test_what_is_put_on_a_paused_queue_is_held_in_order_and_started_when_it_is_resumed(stage):
    q_name, other = stage.queue(stage.program("true")), stage.queue(stage.program("true", "other"), "OTHER")
    stage.watch()
    pause(stage, "queue", q_name)
    for name in (q_name, q_name, q_name, other):
        stage.qm.put(name, b"one")
    stage.wait_for(q_name=other, state="exited")
    held = stage.wait_for(3, q_name=q_name, state="held")
    assert all(run["why"].startswith(f"queue {q_name} paused by ") for run in held)
    assert all(run["why"].endswith(": upkeep") for run in held)
    assert not (stage.data / "runs" / held[0]["run_id"]).exists()
    assert (stage.depth(q_name), stage.depth(stage.initq)) == (3, 0)
    began = time.monotonic()
    stage.qm.call(Resume(what="queue", name=q_name))
    ended = stage.wait_for(3, q_name=q_name, state="exited")
    assert [run["run_id"] for run in ended] == [run["run_id"] for run in held]
    assert [run["why"] for run in ended] == ["ended with status 0"] * 3
    assert time.monotonic() - began < 2


def test_a_pause_holds_for_every_monitor_and_for_one_that_starts_later(stage):
    q_name = stage.queue(stage.program("true"))
    end = stage.watch()
    stage.watch()
    pause(stage, "process", f"{q_name}.P")
    for _ in range(4):
        stage.qm.put(q_name, b"one")
    stage.wait_for(4, q_name=q_name, state="held")
    end()
    stage.watch()
    stage.qm.put(q_name, b"one")
    stage.wait_for(5, q_name=q_name, state="held")
    time.sleep(1.2)
    assert not stage.runs(q_name=q_name, state="started")
    stage.qm.call(Resume(what="process", name=f"{q_name}.P"))
    stage.wait_for(5, q_name=q_name, state="exited")


def test_runs_that_wait_for_a_slot_do_not_start_while_everything_is_paused(stage):
    gate = stage.directory / "gate"
    q_name = stage.queue(stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done"), instances=1)
    stage.watch()
    for _ in range(2):
        stage.qm.put(q_name, b"one")
    (held,) = stage.wait_for(q_name=q_name, state="held")
    assert "may run at a time" in held["why"]
    pause(stage, "everything", "")
    try:
        gate.touch()
        stage.wait_for(q_name=q_name, state="exited")
        (held,) = stage.runs(q_name=q_name, state="held")
        assert held["why"].startswith("everything paused by ")
        time.sleep(0.3)
        assert stage.runs(q_name=q_name, state="held")
    finally:
        stage.qm.call(Resume(what="everything"))
    stage.wait_for(2, q_name=q_name, state="exited")


def test_a_cancelled_run_ends_with_its_whole_process_group(stage):
    child = stage.directory / "child"
    q_name = stage.queue(stage.program(f"sleep 300 & echo $! > {child}.new; mv {child}.new {child}; sleep 300"))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="started")
    until(child.exists)
    began = time.monotonic()
    stage.qm.call(CancelRun(run_id=run["run_id"], reason="wrong day"))
    (ended,) = stage.wait_for(q_name=q_name, state="cancelled")
    assert time.monotonic() - began < 2
    assert ended["why"].startswith(f"cancelled by {ended['cancelled_by']} at ")
    assert ended["why"].endswith(" UTC: wrong day; killed by SIGTERM")
    assert (ended["signal"], ended["exit_status"]) == (15, None)
    assert ended["cancelled_ms"] <= ended["end_ms"]
    until(lambda: not is_there(int(child.read_text())))


def test_a_run_that_ignores_being_asked_is_killed_after_the_grace_with_what_it_started(stage):
    child = stage.directory / "child"
    stubborn = f"trap '' TERM; sleep 300 & echo $! > {child}.new; mv {child}.new {child}; while :; do sleep 1; done"
    q_name = stage.queue(stage.program(stubborn))
    stage.watch(grace_s=0.5)
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="started")
    until(child.exists)
    stage.qm.call(CancelRun(run_id=run["run_id"]))
    (ended,) = stage.wait_for(q_name=q_name, state="cancelled")
    assert ended["signal"] == 9
    assert ended["end_ms"] - ended["cancelled_ms"] >= 500
    until(lambda: not is_there(int(child.read_text())))


def test_a_run_that_ends_well_within_its_grace_says_so_and_what_it_left_is_killed(stage):
    child = stage.directory / "child"
    polite = "trap 'exit 0' TERM; (trap '' TERM; sleep 300) & echo $! > {0}.new; mv {0}.new {0}\n"
    polite += "while :; do sleep 0.05; done"
    q_name = stage.queue(stage.program(polite.format(child)))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="started")
    until(child.exists)
    stage.qm.call(CancelRun(run_id=run["run_id"]))
    (ended,) = stage.wait_for(q_name=q_name, state="cancelled")
    assert (ended["exit_status"], ended["why"].split("; ")[1]) == (0, "ended with status 0")
    until(lambda: not is_there(int(child.read_text())))


def test_a_cancelled_run_is_no_failure_that_the_next_waits_for(stage):
    gate = stage.directory / "gate"
    q_name = stage.queue(stage.program(f"[ -e {gate} ] || sleep 300"))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (run,) = stage.wait_for(q_name=q_name, state="started")
    gate.touch()
    stage.qm.call(CancelRun(run_id=run["run_id"]))
    stage.wait_for(q_name=q_name, state="cancelled")
    stage.qm.put(q_name, b"two")
    (after,) = stage.wait_for(q_name=q_name, state="exited")
    assert after["start_ms"] - after["recorded_ms"] < 500


def test_a_cancelled_held_run_frees_its_place_and_is_never_started(stage):
    gate = stage.directory / "gate"
    q_name = stage.queue(stage.program(f"while [ ! -e {gate} ]; do sleep 0.02; done"), instances=1)
    stage.watch()
    for _ in range(3):
        stage.qm.put(q_name, b"one")
    first, last = stage.wait_for(2, q_name=q_name, state="held")
    stage.qm.call(CancelRun(run_id=first["run_id"]))
    gate.touch()
    ended = stage.wait_for(2, q_name=q_name, state="exited")
    assert last["run_id"] in [run["run_id"] for run in ended]
    (cancelled,) = stage.runs(q_name=q_name, state="cancelled")
    assert (cancelled["run_id"], cancelled["pid"]) == (first["run_id"], 0)
    assert cancelled["why"].endswith("its trigger message was not started")


def test_a_run_is_repeated_with_the_same_trigger_message_and_names_the_one_it_repeats(stage):
    job = stage.program('echo "$TRIGMON_QNAME $TRIGMON_TRIGDATA $TRIGMON_OCCASION"; exit 1')
    q_name = stage.queue(job, trigger_data="t1", retry=0)
    stage.watch()
    stage.qm.put(q_name, b"one")
    (first,) = stage.wait_for(q_name=q_name, state="exited")
    assert (first["initiation_q"], first["repeats"]) == (stage.initq, "")
    stage.qm.call(RetryRun(run_id=first["run_id"]))
    _, again = stage.wait_for(2, q_name=q_name, state="exited")
    assert again["repeats"] == first["run_id"] != again["run_id"]
    same = ("q_name", "process_name", "trigger_data", "appl_id", "occasion", "argv")
    assert [again[name] for name in same] == [first[name] for name in same]
    outputs = [stage.data / "runs" / run["run_id"] / "stdout" for run in (first, again)]
    assert outputs[0].read_text() == outputs[1].read_text() == f"{q_name} t1 1\n"


def test_an_application_cannot_say_that_its_trigger_message_repeats_a_run(stage):
    q_name = stage.queue(stage.program("true"))
    stage.watch()
    stage.qm.put(q_name, b"one")
    (first,) = stage.wait_for(q_name=q_name, state="exited")
    message = pack_tm(TriggerMessage(q_name=q_name, process_name=f"{q_name}.P", appl_type=6))
    correl_id = b"RUN " + first["run_id"].encode() + bytes(4)
    stage.qm.put(stage.initq, message, format=FORMAT_TRIGGER, correl_id=correl_id)
    assert stage.wait_for(2, q_name=q_name, state="exited")[1]["repeats"] == ""


# -- the output of forgotten runs ---------------------------------------------------------------------------


def test_the_output_of_forgotten_runs_goes_and_nothing_else(stage):
    runs = stage.data / "runs"
    known, gone = f"{1:016x}", [f"{n:016x}" for n in range(2, SLICE * 2 + 2)]
    half_made = [f".{known}.77", f".{gone[0]}.77", f".{gone[1]}"]  # by keepers that were killed
    for name in (known, *gone, *half_made, "not-a-run"):
        (runs / name).mkdir(parents=True)
        (runs / name / "stdout").write_text("x")
    stage.qm.call(RecordRun(run_id=known, record={"state": "exited"}))
    assert Sweep(runs).go(stage.qm.call) == 2 * SLICE + 2
    assert sorted(entry.name for entry in runs.iterdir()) == [f".{known}.77", known, "not-a-run"]


def test_a_sweep_comes_round_behind_runs_that_stay(stage, tmp_path):
    stays = [f"{n:016x}" for n in range(3 * SLICE)]
    gone = f"{4 * SLICE:016x}"
    for name in (*stays, gone):
        (tmp_path / "runs" / name).mkdir(parents=True)
    asked = []

    def call(question):
        asked.append(question)
        return Listing(rows=[] if question.where["run_id"] == gone else [{}])

    sweep = Sweep(tmp_path / "runs")
    assert [sweep.go(call), sweep.go(call), sweep.go(call), sweep.go(call)] == [0, 0, 1, 0]
    assert len(asked) <= 4 * 2 * SLICE


def test_no_directory_is_nothing_to_sweep(tmp_path):
    assert Sweep(tmp_path / "none").go(lambda call: Listing(rows=[])) == 0
