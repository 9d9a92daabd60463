"""What a member hands the conditions of a shared queue, and how explain names who holds it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Explain
from trigmon.mq.enums import QsgDisp, TriggerControl, TriggerType
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_queue import SharedQueue, came, counts_of, has_fired, left, lies
from trigmon.rules.model.shared_view import NO_DEPTH, Reader, Shared
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.triggers.sharing import HERE, criteria, in_force, in_group
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.scenario_files import read_scenarios

FIRST, EVERY, DEPTH, NONE = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH, TriggerType.NONE
SHARED_Q = LocalQueue(name="Q", qsg_disp=QsgDisp.SHARED, trigger_control=TriggerControl.ON, trigger_msg_priority=5)


def situation(queue):
    return Situation(Happened.PUT, queue, None, None, 0, 0)


@pytest.mark.parametrize("kind", [FIRST, EVERY, DEPTH])
def test_a_reader_on_another_member_makes_it_first_from_priority_zero(kind):
    definition = replace(SHARED_Q, trigger_type=kind)
    applied = criteria(definition, Shared((Reader("QM2", 1),)))
    assert (applied.trigger_type, applied.trigger_msg_priority) == (FIRST, 0)
    assert criteria(definition, Shared()) is definition
    assert criteria(definition, Shared((Reader("QM2", 1, True),))) is definition


def test_a_queue_that_is_not_to_trigger_is_not_made_to():
    definition = replace(SHARED_Q, trigger_type=NONE)
    assert criteria(definition, Shared((Reader("QM2", 1),))) is definition


def test_a_private_queue_is_judged_as_it_is():
    one = situation(QueueFacts(LocalQueue(name="Q"), open_exclusive=True, open_input_count=1))
    assert in_group(one) is one


def test_who_holds_it_exclusively_is_named():
    elsewhere = QueueFacts(SHARED_Q, open_exclusive=True, shared=Shared((Reader("QM2", 1, True),)))
    here = QueueFacts(SHARED_Q, open_exclusive=True, open_input_count=1, shared=Shared())
    assert in_group(situation(elsewhere)).silenced_by == "QM2"
    assert in_group(situation(here)).silenced_by == HERE
    assert in_group(situation(QueueFacts(SHARED_Q, shared=Shared((Reader("QM2", 1),))))).silenced_by == ""


def test_control_that_another_members_firing_has_switched_off_was_on_when_it_happened():
    off = replace(SHARED_Q, trigger_control=TriggerControl.OFF)
    now, before = QueueFacts(off, shared=Shared(disarms=1)), QueueFacts(SHARED_Q, shared=Shared())
    assert in_force(now, before).trigger_control is TriggerControl.ON
    assert in_force(replace(now, shared=Shared()), before).trigger_control is TriggerControl.OFF


def test_what_came_counts_up_and_what_only_lies_there_does_not():
    queue = came(SharedQueue(SHARED_Q), counts_of([5, 5, 0]))
    assert (queue.depths, queue.put_totals) == (counts_of([5, 5, 0]), counts_of([5, 5, 0]))
    assert queue.rises == (1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    back = lies(queue, counts_of([9]))
    assert (back.depths[9], back.put_totals, back.rises) == (1, queue.put_totals, queue.rises)
    assert came(queue, counts_of([7])).rises == (1, 1, 1, 1, 1, 1, 1, 1, 0, 0)


def test_the_depth_is_reached_once_by_however_many():
    depth = SharedQueue(replace(SHARED_Q, trigger_type=DEPTH, trigger_depth=3))
    assert came(depth, counts_of([5, 5])).crossings == 0
    assert came(came(depth, counts_of([5, 5])), counts_of([5, 5])).crossings == 1
    assert came(depth, counts_of([4, 4, 4])).crossings == 0
    assert came(SharedQueue(SHARED_Q), counts_of([5])).crossings == 0


def test_the_first_to_fire_depth_switches_it_off_and_no_other_counts():
    on = SharedQueue(SHARED_Q)
    assert has_fired(on, is_for_group=False, is_disarmed=True).disarms == 1
    off = SharedQueue(replace(SHARED_Q, trigger_control=TriggerControl.OFF))
    assert has_fired(off, is_for_group=True, is_disarmed=True) == replace(off, triggers=1)


def test_a_member_that_left_has_nothing_open():
    queue = SharedQueue(SHARED_Q)
    assert left(queue, "QM1") == queue
    seen = queue.seen_by("QM1", 7)
    assert (seen.depths, seen.trigger_stamp_ms, seen.readers, seen.shared) == (NO_DEPTH, 7, 0, Shared())


STAGE = """
scenario: s
qmgrs: [QM1, QM2, QM3]
setup: |
  DEFINE QLOCAL(Q) QSGDISP(SHARED) TRIGGER TRIGTYPE(DEPTH) TRIGMPRI(5)
steps:
- {open: {queue: Q, for: [%s]}, as: srv, on: QM2}
- {put: {queue: Q, data: m, options: [syncpoint]}}
"""


@pytest.fixture
def explained():
    stages = []

    def ask(how, on):
        (scenario,) = read_scenarios(STAGE % how, "s.yaml")
        stage = InProcess(scenario.q_mgrs, "memory")
        stages.append(stage)
        close, stage.close = stage.close, lambda: None
        assert play(scenario, stage).passed
        stage.close = close
        return stage.command(on, Explain(q_name="Q"))

    yield ask
    for stage in stages:
        stage.close()


def test_explain_says_which_member_makes_it_first(explained):
    text = str(explained("input_shared", "QM1"))
    assert "TRIGTYPE(FIRST) and TRIGMPRI(0), whatever it is defined with, while QM2 reads it" in text
    assert "QM2 of the group has it open for input, IPPROCS(1) there" in text
    assert "IPPROCS(0) on this queue manager" in text
    assert "0 count for the trigger: priority 0 or more, the expired among them" in text


def test_explain_says_which_member_holds_it_exclusively(explained):
    text = str(explained("input_exclusive", "QM3"))
    assert "open exclusively through QM2" in text
    assert "DISPLAY QSTATUS(Q) TYPE(HANDLE) on QM2" in text
    assert "QM2 of the group has it open exclusively" in text


def test_explain_on_the_reading_member_speaks_of_its_own_handle(explained):
    answer = explained("input_shared", "QM2")
    assert answer.fails == ["2", "4", "6", "7", "8"]
    assert answer.values["readers"] == []
    assert "IPPROCS(1)" in str(answer)
    assert "on this queue manager" not in str(answer)
