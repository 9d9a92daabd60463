"""The run record: typed parts in memory, one flat JSON object at the edge."""

from __future__ import annotations

from typing import get_type_hints

import msgspec

from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run import (
    NO_RUN,
    Bridged,
    Cancellation,
    Origin,
    Outcome,
    Program,
    RunFields,
    RunState,
    SparkJob,
    Work,
    decode_run,
    encode_run,
    read_run,
)

PARTS = (TriggerMessage, Origin, Bridged, Program, Outcome, Cancellation, SparkJob, Work)
OLD = {"run_id": "1", "state": "held", "q_name": "Q", "appl_id": "/bin/true", "of_another_release": {"a": [1]}}


def test_the_fields_of_the_json_object_are_those_of_the_parts():
    names = [name for part in PARTS for name in part.__struct_fields__]
    assert sorted(get_type_hints(RunFields)) == sorted([*names, "run_id", "state", "why"])


def test_a_record_comes_back_as_it_was_stored():
    text = msgspec.json.encode(OLD).decode()
    assert encode_run(decode_run(text)) == text


def test_a_field_that_is_not_known_survives_a_change_and_no_other_is_added():
    after = read_run(OLD).changed(state=RunState.DUE, pid=5)
    assert after.json == {**OLD, "state": "due", "pid": 5}
    assert type(after.json["state"]) is str
    assert read_run(OLD).state is RunState.HELD


def test_a_change_is_seen_in_the_parts_that_were_read_before():
    run = read_run(OLD)
    assert (run.program.pid, run.trigger.q_name, run.work.taken) == (0, "Q", 0)
    after = run.changed(pid=5, taken=2)
    assert (after.program.pid, after.trigger.q_name, after.work.taken) == (5, "Q", 2)
    assert (run.program.pid, run.work.taken) == (0, 0)


def test_a_value_of_another_type_reads_as_missing_and_stays():
    odd = {"state": None, "q_name": 7, "appl_id": "/bin/true", "attempt": "x", "retries": "r", "why": 5}
    run = read_run(odd)
    assert (run.state, run.trigger, run.why) == ("", TriggerMessage(q_name="", appl_id="/bin/true"), "")
    assert (run.origin.attempt, run.origin.retries) == (1, "r")
    assert run.json == odd


def test_a_state_of_another_release_is_an_end():
    assert read_run({"state": "archived"}).is_ended
    assert not NO_RUN.is_ended
