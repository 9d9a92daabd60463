"""Each condition, in the seed's order: when it holds, when it fails, when it does not apply, what it saw."""

from __future__ import annotations

import pytest

from tests.build import a_queue, a_situation, an_initiation_queue
from trigmon.mq.enums import Inhibit, MsgDeliverySequence, TriggerControl, TriggerType, Usage
from trigmon.rules.model.situation import Happened
from trigmon.rules.triggers import conditions as c

FIRST, EVERY, DEPTH, NONE = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH, TriggerType.NONE


def found(condition, **given):
    finding = condition(a_situation(**given))
    return finding.holds, finding.applies


class TestCondition01AMessageWasPut:
    def test_a_put_is_one(self):
        assert found(c.condition_01_a_message_was_put) == (True, True)

    def test_a_close_is_none(self):
        assert found(c.condition_01_a_message_was_put, happened=Happened.CLOSE) == (False, True)


class TestCondition02PrioritySuffices:
    @pytest.mark.parametrize(("priority", "holds"), [(4, False), (5, True), (9, True)])
    def test_it_is_at_least_the_threshold(self, priority, holds):
        queue = a_queue(trigger_msg_priority=5)
        assert found(c.condition_02_priority_suffices, queue=queue, priority=priority) == (holds, True)


class TestCondition03DepthWasJustBelow:
    @pytest.mark.parametrize(
        ("kind", "before", "expected"),
        [
            (FIRST, 0, (True, True)),
            (FIRST, 1, (False, True)),
            (EVERY, 0, (True, False)),
            (EVERY, 7, (True, False)),
            (DEPTH, 1, (False, True)),
            (DEPTH, 2, (True, True)),
            (DEPTH, 3, (False, True)),
            (NONE, 3, (True, False)),
        ],
    )
    def test_each_type_wants_its_own_number(self, kind, before, expected):
        queue = a_queue(waiting=before, trigger_type=kind, trigger_depth=3)
        assert found(c.condition_03_depth_was_just_below, queue=queue) == expected

    def test_messages_below_the_threshold_do_not_count(self):
        queue = a_queue(waiting=5, at_priority=2, trigger_msg_priority=3)
        finding = c.condition_03_depth_was_just_below(a_situation(queue=queue))
        assert (finding.holds, finding.saw) == (True, 0)


class TestCondition04NobodyReadsTheQueue:
    @pytest.mark.parametrize(
        ("kind", "expected"),
        [(FIRST, (False, True)), (DEPTH, (False, True)), (EVERY, (True, False)), (NONE, (True, False))],
    )
    def test_a_reader_silences_first_and_depth(self, kind, expected):
        queue = a_queue(open_input_count=1, trigger_type=kind)
        assert found(c.condition_04_nobody_reads_the_queue, queue=queue) == expected

    def test_without_readers_it_holds(self):
        assert found(c.condition_04_nobody_reads_the_queue) == (True, True)


class TestCondition05GetIsAllowed:
    @pytest.mark.parametrize("usage", list(Usage))
    def test_inhibited_gets_fail_whatever_the_usage(self, usage):
        queue = a_queue(inhibit_get=Inhibit.INHIBITED, usage=usage)
        assert found(c.condition_05_get_is_allowed, queue=queue) == (False, True)

    def test_allowed_gets_hold(self):
        assert found(c.condition_05_get_is_allowed) == (True, True)


class TestCondition06ProcessIsDefined:
    def test_a_defined_process_holds(self):
        assert found(c.condition_06_process_is_defined) == (True, True)

    def test_a_missing_process_fails(self):
        assert found(c.condition_06_process_is_defined, process=None) == (False, True)

    @pytest.mark.parametrize(("usage", "holds"), [(Usage.NORMAL, False), (Usage.TRANSMISSION, True)])
    def test_only_a_transmission_queue_may_name_none(self, usage, holds):
        queue = a_queue(process_name="", usage=usage)
        assert found(c.condition_06_process_is_defined, queue=queue, process=None) == (holds, True)

    def test_a_transmission_queue_that_names_a_missing_one_fails(self):
        queue = a_queue(usage=Usage.TRANSMISSION)
        assert found(c.condition_06_process_is_defined, queue=queue, process=None) == (False, True)


class TestCondition07InitiationQueueIsUsable:
    @pytest.mark.parametrize(
        "attributes",
        [
            {"inhibit_get": Inhibit.INHIBITED},
            {"inhibit_put": Inhibit.INHIBITED},
            {"usage": Usage.TRANSMISSION},
        ],
    )
    def test_inhibited_or_of_another_usage_it_is_not(self, attributes):
        initiation = an_initiation_queue(**attributes)
        assert found(c.condition_07_initiation_queue_is_usable, initiation=initiation) == (False, True)

    def test_a_missing_one_is_not(self):
        assert found(c.condition_07_initiation_queue_is_usable, initiation=None) == (False, True)

    def test_a_full_one_is(self):
        initiation = an_initiation_queue(max_q_depth=0)
        assert found(c.condition_07_initiation_queue_is_usable, initiation=initiation) == (True, True)


class TestCondition08AMonitorListens:
    @pytest.mark.parametrize(("count", "holds"), [(0, False), (1, True), (2, True)])
    def test_it_is_an_open_for_input(self, count, holds):
        initiation = an_initiation_queue(open_input_count=count)
        assert found(c.condition_08_a_monitor_listens, initiation=initiation) == (holds, True)


class TestCondition09TriggerControlIsOn:
    @pytest.mark.parametrize(("control", "holds"), [(TriggerControl.ON, True), (TriggerControl.OFF, False)])
    def test_it_is_the_switch(self, control, holds):
        queue = a_queue(trigger_control=control)
        assert found(c.condition_09_trigger_control_is_on, queue=queue) == (holds, True)


class TestCondition10TriggerTypeIsSet:
    @pytest.mark.parametrize("kind", list(TriggerType))
    def test_none_is_the_one_that_fails(self, kind):
        queue = a_queue(trigger_type=kind)
        assert found(c.condition_10_trigger_type_is_set, queue=queue) == (kind is not NONE, True)


class TestCondition11PutWhileOthersWait:
    @pytest.mark.parametrize(
        ("before", "stamp", "holds"),
        [
            (0, None, False),
            (1, None, True),
            (1, 50_000 - 999, False),
            (1, 50_000 - 1000, True),
        ],
    )
    def test_first_waits_for_the_interval(self, before, stamp, holds):
        queue = a_queue(waiting=before, trigger_stamp_ms=stamp)
        assert found(c.condition_11_put_while_others_wait, queue=queue) == (holds, True)

    @pytest.mark.parametrize(("before", "holds"), [(1, False), (2, False), (3, True), (4, True)])
    def test_depth_looks_at_the_depth_and_not_at_the_clock(self, before, holds):
        queue = a_queue(waiting=before, trigger_type=DEPTH, trigger_depth=3, trigger_stamp_ms=50_000)
        assert found(c.condition_11_put_while_others_wait, queue=queue) == (holds, True)

    def test_every_has_no_such_occasion(self):
        queue = a_queue(waiting=2, trigger_type=EVERY)
        assert found(c.condition_11_put_while_others_wait, queue=queue) == (False, False)


class TestCondition12LastReaderClosed:
    @pytest.mark.parametrize(
        ("kind", "waiting", "expected"),
        [
            (FIRST, 1, (True, True)),
            (FIRST, 0, (False, True)),
            (DEPTH, 2, (False, True)),
            (DEPTH, 3, (True, True)),
            (EVERY, 3, (False, False)),
        ],
    )
    def test_enough_must_wait(self, kind, waiting, expected):
        queue = a_queue(waiting=waiting, trigger_type=kind, trigger_depth=3)
        given = {"happened": Happened.CLOSE, "queue": queue, "had_readers": 1}
        assert found(c.condition_12_last_reader_closed, **given) == expected

    def test_another_reader_left_is_no_occasion(self):
        queue = a_queue(waiting=1, open_input_count=1)
        given = {"happened": Happened.CLOSE, "queue": queue, "had_readers": 2}
        assert found(c.condition_12_last_reader_closed, **given) == (False, True)


class TestCondition13CriteriaChanged:
    @pytest.mark.parametrize(
        ("changed", "kind", "holds"),
        [
            ("trigger_control", FIRST, True),
            ("trigger_type", EVERY, True),
            ("trigger_msg_priority", FIRST, True),
            ("trigger_depth", DEPTH, True),
            ("trigger_depth", FIRST, False),
            ("trigger_data", FIRST, False),
        ],
    )
    def test_only_the_criteria_in_use_count(self, changed, kind, holds):
        queue = a_queue(waiting=1, trigger_type=kind)
        given = {"happened": Happened.CHANGE, "queue": queue, "was": {changed: None}}
        assert found(c.condition_13_criteria_changed, **given) == (holds, True)

    def test_with_control_off_nothing_happens(self):
        queue = a_queue(waiting=1, trigger_control=TriggerControl.OFF)
        given = {"happened": Happened.CHANGE, "queue": queue, "was": {"trigger_type": EVERY}}
        assert found(c.condition_13_criteria_changed, **given) == (False, True)

    @pytest.mark.parametrize(("waiting", "holds"), [(0, False), (2, False), (3, True)])
    def test_depth_wants_its_depth(self, waiting, holds):
        queue = a_queue(waiting=waiting, trigger_type=DEPTH, trigger_depth=3)
        given = {"happened": Happened.CHANGE, "queue": queue, "was": {"trigger_control": None}}
        assert found(c.condition_13_criteria_changed, **given) == (holds, True)


@pytest.mark.parametrize(
    ("condition", "happened"),
    [
        (c.condition_13a_initiation_put_allowed, Happened.INITIATION_PUT_ALLOWED),
        (c.condition_13b_get_allowed, Happened.GET_ALLOWED),
        (c.condition_13c_monitor_opened, Happened.MONITOR_OPENED),
    ],
)
class TestConditions13aTo13c:
    @pytest.mark.parametrize(
        ("kind", "waiting", "holds"),
        [(FIRST, 0, False), (FIRST, 1, True), (EVERY, 1, True), (DEPTH, 2, False), (DEPTH, 3, True)],
    )
    def test_enough_must_wait(self, condition, happened, kind, waiting, holds):
        queue = a_queue(waiting=waiting, trigger_type=kind, trigger_depth=3)
        assert found(condition, happened=happened, queue=queue) == (holds, True)

    def test_it_is_its_own_happening(self, condition, happened):
        assert found(condition, happened=Happened.PUT, queue=a_queue(waiting=1)) == (False, True)


def test_13c_is_only_the_first_monitor():
    given = {"happened": Happened.MONITOR_OPENED, "queue": a_queue(waiting=1), "had_monitor": 1}
    assert found(c.condition_13c_monitor_opened, **given) == (False, True)


class TestCondition14PriorityAsCounted:
    @pytest.mark.parametrize(("default", "holds"), [(2, False), (3, True), (4, True)])
    def test_a_fifo_queue_counts_at_its_default(self, default, holds):
        queue = a_queue(msg_delivery_sequence=MsgDeliverySequence.FIFO, def_priority=default, trigger_msg_priority=3)
        assert found(c.condition_14_priority_as_counted, queue=queue) == (holds, True)

    def test_by_priority_it_does_not_apply(self):
        assert found(c.condition_14_priority_as_counted, queue=a_queue(trigger_msg_priority=9)) == (True, False)
