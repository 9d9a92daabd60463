from __future__ import annotations

import pytest

from trigmon.launch.port import Order
from trigmon.monitor.plan import process_for
from trigmon.monitor.slots import Slots
from trigmon.mq.descriptors import TriggerMessage

NOBODY: set[str] = set()


def order(run_id, process="P", q_name="Q", instances=1):
    trigger = TriggerMessage(q_name=q_name, process_name=process, appl_type=6, appl_id="a")
    definition = {"instances": instances}
    return Order(run_id=run_id, q_mgr_name="QM1", trigger=trigger, process=process_for(trigger, definition))


@pytest.fixture
def slots():
    return Slots(4)


def test_held_runs_start_oldest_first_as_slots_free(slots):
    first, second, third = (order(str(number), instances=2) for number in range(3))
    for one in (first, second, third):
        slots.hold(one)
    assert [slots.next(0.0, NOBODY), slots.next(0.0, NOBODY), slots.next(0.0, NOBODY)] == [first, second, None]
    assert slots.before("P") == 3
    slots.end(first.run_id, first.trigger)
    assert not slots.knows(first.run_id)
    assert slots.next(0.0, NOBODY) == third


def test_a_run_that_was_put_back_is_the_first_again(slots):
    slots.hold(order("1"))
    slots.hold(order("2"))
    taken = slots.next(0.0, NOBODY)
    slots.put_back(taken)
    assert slots.next(0.0, {"P"}) is None
    assert slots.next(0.0, NOBODY).run_id == "1"


def test_a_run_that_pauses_holds_no_other_queues_run_up(slots):
    failed = order("0", q_name="BAD")
    slots.begin("0", failed.trigger)
    slots.end("0", failed.trigger)
    slots.judged(failed.trigger, False, 100.0)
    slots.hold(order("1", q_name="BAD"))
    slots.hold(order("2", q_name="GOOD"))
    assert slots.next(100.5, NOBODY).run_id == "2"
    assert slots.next_pause_s(100.5) == 0.5
    slots.end("2", order("2", q_name="GOOD").trigger)
    assert slots.next(100.9, NOBODY) is None
    assert slots.next(101.0, NOBODY).run_id == "1"
    assert slots.next_pause_s(101.0) is None


def test_a_success_ends_the_pause_and_an_unseen_end_changes_nothing(slots):
    trigger = order("0").trigger
    for _ in range(3):
        slots.judged(trigger, False, 100.0)
    slots.judged(trigger, None, 100.0)
    assert slots.paused(trigger, 100.0) == "failed 3 times in a row; next start in 4 s"
    slots.judged(trigger, True, 100.0)
    assert slots.paused(trigger, 100.0) == ""
