"""What becomes of a run that cannot be planned."""

from __future__ import annotations

from trigmon.launch.launch_plan import LaunchError
from trigmon.monitor.child_process import Limits
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.run_traces import RunTraces
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ApplType
from trigmon.mq.run import RunState, read_run
from trigmon.rules.runs.new_run_record import recorded

TRIGGER = TriggerMessage(q_name="Q", process_name="", appl_type=int(ApplType.UNIX), appl_id="/bin/true")


class Hindered:
    """A launcher whose files cannot be looked at, or whose job can never be started."""

    def __init__(self, error):
        self.error = error

    def plan(self, order):
        raise self.error


def planned(error):
    """The starter and its books, behind a run that could not be planned."""
    books = LedgerWriter(None, "I", "m")
    starter = Starter(books, {int(ApplType.UNIX): Hindered(error)}, Limits(), "QM1", "", RunTraces("QM1"))
    record = recorded("1", TRIGGER, state=RunState.DUE, monitor="m", now_ms=5)
    assert starter.planned(record) is None
    return starter, books


def test_one_whose_program_cannot_start_has_failed_and_the_ledger_is_asked_what_follows():
    starter, books = planned(LaunchError("no such program"))
    fields = books._pending["1"].fields
    assert (fields["state"], fields["why"]) == (RunState.FAILED, "no such program")
    assert starter.asks_at()


def test_one_that_a_full_disk_hinders_is_held_again_and_tried_later():
    starter, books = planned(OSError(28, "No space left on device"))
    fields = books._pending["1"].fields
    assert fields["state"] == RunState.HELD and starter.asks_at()
    assert "No space left" in fields["why"]


def test_a_traceparent_of_another_form_in_a_record_reaches_no_program():
    def given(traceparent):
        return RunTraces("QM1").of_program(read_run({"run_id": "1", "traceparent": traceparent}))

    span = f"00-{'a' * 32}-{'b' * 16}-01"
    assert given(span) == span
    assert [given(text) for text in ("x\0y", f"{span}\nLD_PRELOAD=x", "x" * 60_000)] == ["", "", ""]
