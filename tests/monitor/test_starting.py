"""What becomes of a run that cannot be planned."""

from __future__ import annotations

from trigmon.launch.launch_plan import LaunchError
from trigmon.monitor import run_changes
from trigmon.monitor.child_process import Limits
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.undeliverable import AS_WRITTEN
from trigmon.mq.descriptors import TriggerMessage, pack_tm
from trigmon.mq.enums import ApplType
from trigmon.mq.run import RunState

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
    starter = Starter(books, {int(ApplType.UNIX): Hindered(error)}, Limits(), "QM1", "")
    record = run_changes.recorded("1", TRIGGER, state=RunState.DUE, monitor="m", now_ms=5)
    assert starter.planned(record, (AS_WRITTEN, pack_tm(TRIGGER))) is None
    return starter, books


def test_one_that_could_never_be_started_is_written_off():
    starter, books = planned(LaunchError("no such program"))
    assert starter.writes_off("1") and not books.behind


def test_one_that_a_full_disk_hinders_is_held_again_and_tried_later():
    starter, books = planned(OSError(28, "No space left on device"))
    assert not starter.writes_off("1") and starter.asks_at()
    assert books._pending["1"]["state"] == RunState.HELD
    assert "No space left" in books._pending["1"]["why"]
