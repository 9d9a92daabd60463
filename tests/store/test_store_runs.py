"""What every store must do with the ledger of runs."""

from __future__ import annotations

from tests.store.reading import IN, SYNC, depth
from trigmon.mq.calls import (
    ChangeRun,
    Get,
    RecordRun,
    Runs,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused


def test_runs_are_found_by_state_and_queue_newest_first_and_survive_a_crash(world):
    for number, state in enumerate(("exited", "started", "exited")):
        record = {"state": state, "q_name": f"Q{number % 2}"}
        world.did(RecordRun(run_id=f"R{number}", record=record))
    world.did(ChangeRun(run_id="R1", fields={"state": "failed", "exit_status": 3}))
    world.crash()

    def found(**where):
        return [run["run_id"] for run in world.did(Runs(where=where)).rows]

    assert found() == ["R2", "R1", "R0"]
    assert found(state="exited") == ["R2", "R0"]
    assert found(q_name="Q1", state="failed") == ["R1"]
    assert world.do(ChangeRun(run_id="R9", fields={})).reason == Reason.UNKNOWN_OBJECT_NAME


def test_recording_a_run_commits_the_get_of_its_trigger_message(world):
    world.define("INITQ")
    world.put("INITQ", b"tm")
    handle = world.open("INITQ", IN, as_="monitor")
    world.did(Get(handle=handle, options=SYNC, unit=1), "monitor")
    world.did(RecordRun(run_id="R", record={"state": "due"}, unit=1), "monitor")
    world.qm.lost([world.session("monitor")])
    assert depth(world, "INITQ") == 0


def test_the_ledger_pages_on_behind_a_run(world):
    for number in range(7):
        world.did(RecordRun(run_id=f"r{number}", record={"state": "held" if number % 2 else "ended"}))
    first = world.did(Runs(limit=3))
    assert [[run["run_id"] for run in first.rows], first.more] == [["r6", "r5", "r4"], True]
    rest = world.did(Runs(before="r4", where={"state": "held"}))
    assert [[run["run_id"] for run in rest.rows], rest.more] == [["r3", "r1"], False]
    assert world.did(Runs(before="nobody")).rows == []


def test_a_run_record_has_its_limit(world):
    assert isinstance(world.do(RecordRun(run_id="r", record={"a": "x" * 70_000})), Refused)
