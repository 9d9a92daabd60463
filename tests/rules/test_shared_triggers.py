"""What a member need not judge of a shared queue, or in a short way: what moved there could bring nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue, Process, QueueManagerDefinition
from trigmon.mq.enums import QsgDisp, TriggerControl, TriggerType
from trigmon.qmgr.ids import Counter
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.internal_calls import JudgeShared
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import Reader, Shared
from trigmon.rules.shared_triggers import decide_judge_shared, decide_untriggered, is_quiet

INITIATION = QueueFacts(LocalQueue(name="I"), open_input_count=1)
ONE = (1, *[0] * 9)


def queue(trigger_type: TriggerType, readers: int, others: int) -> QueueFacts:
    """A shared queue that triggers whenever a put lets it."""
    definition = LocalQueue(
        name="Q",
        qsg_disp=QsgDisp.SHARED,
        trigger_control=TriggerControl.ON,
        trigger_type=trigger_type,
        trigger_depth=1,
        initiation_q_name="I",
        process_name="P",
    )
    shared = Shared((Reader("QM2", others),) if others else ())
    return QueueFacts(definition, open_input_count=readers, shared=shared)


def facts_of(now: QueueFacts | None, before: QueueFacts | None) -> WideFacts:
    connection = ConnectionFacts(1, "c", "a", "u", 1)
    q_mgr = QueueManagerDefinition(name="QM1")
    return WideFacts(q_mgr, connection, queue=now, judged=before, process=Process(name="P"), initiation=INITIATION)


def judged(now: QueueFacts, before: QueueFacts, *, acted: bool = True) -> Decision:
    call = JudgeShared(q_name="Q", acted=acted)
    return decide_judge_shared(call, facts_of(now, before), None, 0, Counter("QM1", 1))


def off(of: QueueFacts) -> QueueFacts:
    """The queue with its triggers off."""
    return replace(of, definition=replace(of.definition, trigger_control=TriggerControl.OFF))


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("readers", [0, 1])
@pytest.mark.parametrize("trigger_type", [TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH])
def test_where_it_is_quiet_the_judgement_would_bring_nothing(trigger_type, readers, others):
    before = queue(trigger_type, readers, others)
    quiet = [
        replace(before, uncommitted_puts=1),
        replace(before, depths=ONE),  # what was got is back
        replace(before, uncommitted_gets=1, open_count=2, open_output_count=1),
    ]
    for now in quiet:
        assert is_quiet(now, before)
        assert judged(now, before) == Decision()


def test_what_came_by_a_put_is_never_quiet():
    before = queue(TriggerType.FIRST, 0, 0)
    now = replace(before, depths=ONE, shared=Shared(put_totals=ONE, rises=ONE))
    assert not is_quiet(now, before)
    assert judged(now, before).judged


def test_a_close_a_definition_and_a_queue_that_is_new_or_gone_are_never_quiet():
    before = queue(TriggerType.FIRST, 1, 1)
    closed, elsewhere = replace(before, open_input_count=0), replace(before, shared=Shared())
    changed = replace(before, definition=replace(before.definition, trigger_control=TriggerControl.OFF))
    assert not any(is_quiet(now, before) for now in (closed, elsewhere, changed, None))
    assert not is_quiet(before, None)


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("readers", [0, 1])
@pytest.mark.parametrize("trigger_type", list(TriggerType))
def test_where_triggers_are_off_the_short_way_decides_the_same(trigger_type, readers, others, acted):
    before = off(queue(trigger_type, readers, others))
    assert before.shared is not None
    came = [
        replace(before.shared, put_totals=ONE, rises=ONE),
        replace(before.shared, put_totals=(2, 0, 3, *[0] * 7), rises=ONE, crossings=1),
        before.shared,
    ]
    for shared in came:
        now = replace(before, depths=shared.put_totals, shared=shared)
        decision = decide_untriggered(facts_of(now, before), 0, acted=acted)
        assert decision == judged(now, before, acted=acted)
        assert decision.judged or not acted or shared is before.shared


def test_the_short_way_judges_nothing_else():
    before = off(queue(TriggerType.FIRST, 1, 1))
    assert before.shared is not None
    came = replace(before, depths=ONE, shared=replace(before.shared, put_totals=ONE, rises=ONE))
    assert came.shared is not None
    others = [
        (None, before),
        (came, None),
        (replace(came, shared=None), before),
        (replace(came, definition=queue(TriggerType.FIRST, 1, 1).definition), before),
        (came, queue(TriggerType.FIRST, 1, 1)),
        (replace(came, open_input_count=0), before),
        (replace(came, shared=replace(came.shared, readers=())), before),
        (replace(came, shared=replace(came.shared, triggers=1)), before),
        (replace(came, shared=replace(came.shared, disarms=1)), before),
    ]
    assert decide_untriggered(facts_of(came, before), 0, acted=True) is not None
    for now, judged_last in others:
        assert decide_untriggered(facts_of(now, judged_last), 0, acted=True) is None
