"""What trigmon adds to MQ's triggering: REARM, BACKSTOP and MAXWAIT of a local queue, off by default, and rows R and S.

BACKSTOP(seconds), row B: a FIRST queue on which messages wait is triggered again when so long has passed since its
last trigger message, without a new put. MAXWAIT(seconds), row M: a queue is triggered when its oldest qualifying
message has waited so long, whatever its depth, and again when so long has passed since that trigger. REARM(AUTO): the
control that DEPTH switched off when it fired comes back on. Where messages that were not committed kept it off when
the last reader closed, it comes back once enough of them are: that reader has read what it could see, and
nothing else would start another.

Row R: a reservation, which MQ does not have, lost its last connection, so its messages count as waiting again.

Row S: a moment of a schedule has come. A schedule is switched on and off by itself, so neither TRIGGER nor TRIGTYPE is
asked for: a queue that no put is to trigger may have one.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import Rearm, TriggerControl, TriggerType
from trigmon.mq.timed_enums import OnlyIf
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.verdict import Finding
from trigmon.rules.triggers import conditions
from trigmon.rules.triggers.conditions import Condition, enough_wait


def backstop_passed(s: Situation) -> Finding:
    """Finds B: FIRST, messages wait, and BACKSTOP has passed since the last trigger message; none counts as passed."""
    definition = s.queue.definition
    wanted = definition.backstop_s * 1000
    passed = None if s.queue.trigger_stamp_ms is None else s.now - s.queue.trigger_stamp_ms
    applies = definition.trigger_type is TriggerType.FIRST and wanted > 0
    waiting = s.queue.waiting(definition.trigger_msg_priority)
    holds = applies and s.happened is Happened.BACKSTOP and waiting > 0 and (passed is None or passed >= wanted)
    return Finding("B", holds, (waiting, passed), (1, wanted), applies)


def oldest_has_waited(s: Situation) -> Finding:
    """Finds M: MAXWAIT has passed since the oldest qualifying message arrived, and since the last trigger message."""
    wanted = s.queue.definition.max_wait_s * 1000
    waited = None if s.oldest_ms is None else s.now - max(s.oldest_ms, s.queue.trigger_stamp_ms or 0)
    holds = s.happened is Happened.MAX_WAIT and 0 < wanted <= (waited or 0)
    return Finding("M", holds, waited, wanted, wanted > 0)


def reservation_lost(s: Situation) -> Finding:
    """Finds R: no connection holds a reservation any more, and enough messages wait, the reserved among them."""
    enough, waiting, wanted = enough_wait(s)
    return Finding("R", enough and s.happened is Happened.RESERVATION_LOST, waiting, wanted)


def moment_came(s: Situation) -> Finding:
    """Finds S: a moment of a schedule has come, and with ONLYIF(MESSAGES) a message of TRIGMPRI or above waits."""
    wanted = int(s.schedule is not None and s.schedule.only_if is OnlyIf.MESSAGES)
    waiting = s.queue.waiting(s.queue.definition.trigger_msg_priority)
    return Finding("S", s.happened is Happened.MOMENT and waiting >= wanted, waiting, wanted)


_REQUIRED = (
    conditions.condition_04_nobody_reads_the_queue,
    conditions.condition_05_get_is_allowed,
    conditions.condition_06_process_is_defined,
    conditions.condition_07_initiation_queue_is_usable,
    conditions.condition_08_a_monitor_listens,
    conditions.condition_09_trigger_control_is_on,
    conditions.condition_10_trigger_type_is_set,
)
EXTENSIONS: dict[Condition, tuple[Condition, ...]] = {
    backstop_passed: _REQUIRED,
    oldest_has_waited: _REQUIRED,
    reservation_lost: _REQUIRED,
    moment_came: _REQUIRED[:-2],
}
OUR_OCCASIONS: dict[Happened, tuple[Condition, ...]] = {
    Happened.BACKSTOP: (backstop_passed,),
    Happened.MAX_WAIT: (oldest_has_waited,),
    Happened.RESERVATION_LOST: (reservation_lost,),
    Happened.MOMENT: (moment_came,),
}


def disarmed(definition: LocalQueue) -> LocalQueue:
    """Returns a DEPTH queue that has fired. That firing switched it off is recorded where REARM(AUTO) turns it on."""
    is_remembered = definition.rearm is Rearm.AUTO
    return replace(definition, trigger_control=TriggerControl.OFF, is_disarmed=is_remembered, is_drained=False)


def rearmed(definition: LocalQueue) -> LocalQueue:
    """Returns a DEPTH queue whose control has come back on."""
    return replace(definition, trigger_control=TriggerControl.ON, is_disarmed=False, is_drained=False)


def comes_back(queue: QueueFacts) -> bool:
    """Returns whether REARM(AUTO) turns control on now: fewer wait than the depth, and nobody reads."""
    definition = queue.definition
    return _may_come_back(queue) and queue.waiting(definition.trigger_msg_priority) < definition.trigger_depth


def is_missed(queue: QueueFacts) -> bool:
    """Returns whether control comes back and enough wait: they were uncommitted when the last reader closed."""
    return _may_come_back(queue) and queue.definition.is_drained and _can_see_enough(queue)


def left_by_readers(queue: QueueFacts) -> LocalQueue:
    """Returns a queue that was closed, and whether its last reader left only what it could not see."""
    if not queue.definition.is_disarmed:
        return queue.definition
    is_drained = _may_come_back(queue) and not _can_see_enough(queue)
    return replace(queue.definition, is_drained=is_drained)


def _may_come_back(queue: QueueFacts) -> bool:
    definition = queue.definition
    return definition.is_disarmed and definition.rearm is Rearm.AUTO and not queue.readers


def _can_see_enough(queue: QueueFacts) -> bool:
    """Returns whether as many as the depth are committed.

    Uncommitted puts are not counted by priority: at least so many.
    """
    definition = queue.definition
    return queue.waiting(definition.trigger_msg_priority) - queue.unseen >= definition.trigger_depth


def watches_the_clock(definition: LocalQueue) -> bool:
    """Returns whether a queue has to be looked at when nothing happens to it but time."""
    return definition.backstop_s > 0 or definition.max_wait_s > 0 or definition.is_disarmed
