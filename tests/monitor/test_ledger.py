from __future__ import annotations

import json

import pytest

from trigmon.monitor import run_changes
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run import whole_trigger
from trigmon.rules.runs.new_run_record import new_run_id, recorded

TRIGGER = TriggerMessage(q_name="Q", process_name="P", trigger_data="t", appl_type=6, appl_id="a", user_data="u")


def test_run_ids_ascend_with_time_and_do_not_meet():
    ids = [new_run_id(1_700_000_000_000 + moment, b"x") for moment in range(100)]
    assert ids == sorted(ids)
    assert {len(run_id) for run_id in ids} == {16}
    last = new_run_id(5, b"x")
    assert all(last < (last := new_run_id(5, b"y", last)) for _ in range(1000))
    assert len({new_run_id(1, bytes([number])) for number in range(100)}) == 100


def test_a_record_is_plain_json_and_gives_the_trigger_message_back():
    run = recorded("1", TRIGGER, state="held", monitor="m", now_ms=5, why="full")
    record = run.json
    assert json.loads(json.dumps(record)) == record
    assert run.trigger == whole_trigger(record) == TRIGGER
    assert (record["state"], record["why"], record["recorded_ms"]) == ("held", "full", 5)


def test_an_exit_status_and_a_signal_are_distinguished():
    assert run_changes.exited(3, "", 9) == {
        "state": "exited",
        "end_ms": 9,
        "exit_status": 3,
        "signal": None,
        "stderr_tail": "",
        "why": "ended with status 3",
        "was_stopped": False,
    }
    killed = run_changes.exited(-9, "", 9)
    assert (killed["exit_status"], killed["signal"], killed["why"]) == (None, 9, "killed by SIGKILL")
    assert run_changes.how_it_ended(-40) == "killed by signal 40"


def test_a_status_of_128_and_a_signal_names_the_signal_before_what_was_written_last():
    """So end a shell and spark-submit whose program was killed, and a Java machine that got SIGTERM."""
    warning = "WARNING: Using incubator modules: jdk.incubator.vector\n"
    for status, name in ((137, "SIGKILL"), (143, "SIGTERM")):
        ended = run_changes.exited(status, warning, 9)
        assert (ended["exit_status"], ended["signal"]) == (status, None)
        assert ended["why"] == f"ended with status {status}, as after {name}; last output: {warning.strip()}"
        assert run_changes.exited(status, "", 9)["why"] == f"ended with status {status}, as after {name}"
    assert [run_changes.how_it_ended(status) for status in (128, 145, 255)] == [
        f"ended with status {status}" for status in (128, 145, 255)
    ]


def test_each_change_names_only_fields_of_the_record():
    record = recorded("1", TRIGGER, state="due", monitor="m", now_ms=5).json
    changes = [
        run_changes.held_again("w"),
        run_changes.started(1, 2, argv=["a"], directory="/d"),
        run_changes.failed("w", 3),
        run_changes.exited(0, "", 4),
        run_changes.unknown("w", "", 5),
    ]
    assert all(set(change) - {"was_stopped"} <= set(record) for change in changes)
    assert [change["state"] for change in changes] == ["held", "started", "failed", "exited", "unknown"]


def test_the_last_line_of_an_output_is_that_of_the_program_and_not_of_sparks_log():
    output = "Traceback\nValueError: bad\n\n26/11/23 12:00:00 INFO ShutdownHookManager: Shutdown hook called\n"
    assert run_changes.last_line(output) == "ValueError: bad"
    assert run_changes.last_line("") == run_changes.last_line("\n \n") == ""
    assert run_changes.last_line("bell\a\x1b[31m") == "bell  [31m"
    assert len(run_changes.last_line("x" * 1000)) == 203


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            "py4j.protocol.Py4JJavaError: An error occurred while calling o85.parquet.\n: a.SparkException: "
            "failed\n\tat a.b.C$.$anonfun$d$1(E.scala:1)\nCaused by: java.io.IOException: No space left on device\n"
            "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n\t... 43 more\n\n",
            "java.io.IOException: No space left on device",
        ),
        (
            "py4j.protocol.Py4JJavaError: An error of o1.save.\n: a.B: it is closed\n\tat a.b(C.java)\n",
            "a.B: it is closed",
        ),
        (
            "pyspark.errors.AnalysisException: [NO_COLUMN] nosuch\n\nJVM stacktrace:\n"
            "org.apache.spark.sql.AnalysisException: [NO_COLUMN] nosuch\n\tat org.apache.spark.a.B(C.scala:341)\n",
            "org.apache.spark.sql.AnalysisException: [NO_COLUMN] nosuch",
        ),
        (": a.B: executor lost\nDriver stacktrace:\n\tat a.b(C.java)\n\tSuppressed: q.C: z\n", "a.B: executor lost"),
        ("we were\n  at home (all of us)\n", "at home (all of us)"),
    ],
)
def test_the_last_line_of_a_java_trace_is_its_cause(output, line):
    assert run_changes.last_line(output) == line


def test_a_failure_names_the_last_line_and_a_signal_or_a_limit_does_not():
    assert run_changes.exited(1, "one\ntwo\n", 9)["why"] == "ended with status 1: two"
    assert run_changes.exited(0, "one\n", 9)["why"] == "ended with status 0"
    assert run_changes.exited(-15, "one\n", 9)["why"] == "killed by SIGTERM"
    assert run_changes.exited(1, "one\n", 9, "its monitor's stop")["why"] == (
        "ended by its monitor's stop: ended with status 1"
    )
