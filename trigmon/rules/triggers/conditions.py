"""The fourteen conditions of seed 001, one function each, IBM's order, one signature.

A condition returns what it saw and what was wanted, as plain values; :mod:`wording` makes sentences of them for a
person. It never decides: the table does. ``applies`` is False where the seed limits a condition to other
trigger types or queues; such a condition holds.
"""

from __future__ import annotations

from collections.abc import Callable

from trigmon.mq.enums import Inhibit, MsgDeliverySequence, TriggerControl, TriggerType, Usage
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.verdict import Finding

Condition = Callable[[Situation], Finding]

FIRST, EVERY, DEPTH, NONE = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH, TriggerType.NONE
ALLOWED = Inhibit.ALLOWED


def enough_wait(s: Situation) -> tuple[bool, int, int]:
    """Returns whether messages of sufficient priority wait: one, or TriggerDepth for type DEPTH."""
    definition = s.queue.definition
    wanted = definition.trigger_depth if definition.trigger_type is DEPTH else 1
    waiting = s.queue.waiting(definition.trigger_msg_priority)
    return waiting >= wanted, waiting, wanted


def condition_01_a_message_was_put(s: Situation) -> Finding:
    """Finds whether a message is put on a queue."""
    return Finding("1", s.happened is Happened.PUT, s.happened, Happened.PUT)


def condition_02_priority_suffices(s: Situation) -> Finding:
    """Finds whether the message's counted priority reaches TriggerMsgPriority."""
    wanted = s.queue.definition.trigger_msg_priority
    return Finding("2", s.priority >= wanted, s.priority, wanted)


def condition_03_depth_was_just_below(s: Situation) -> Finding:
    """Finds whether the number of such messages before it was 0 (FIRST), any (EVERY), or depth minus one (DEPTH).

    A put that arrives in several segments carries the number to the depth or past it: it was less by so many at most.
    """
    definition = s.queue.definition
    kind = definition.trigger_type
    before = s.queue.waiting(definition.trigger_msg_priority)
    if kind is FIRST:
        return Finding("3", before == 0, before, 0)
    if kind is DEPTH:
        below = definition.trigger_depth - 1
        return Finding("3", below - s.arriving < before <= below, before, below)
    return Finding("3", True, before, None, False)


def condition_04_nobody_reads_the_queue(s: Situation) -> Finding:
    """Finds whether no reader silences the queue: FIRST and DEPTH any open for input, all types an exclusive one."""
    count = s.queue.open_input_count
    if s.silenced_by:
        return Finding("4", False, s.silenced_by, 0)
    if s.queue.definition.trigger_type is FIRST or s.queue.definition.trigger_type is DEPTH:
        return Finding("4", count == 0, count, 0)
    return Finding("4", True, count, None, False)


def condition_05_get_is_allowed(s: Situation) -> Finding:
    """Finds whether gets from the queue are not inhibited, whatever its usage (the rule of z/OS, taken for all)."""
    inhibit = s.queue.definition.inhibit_get
    return Finding("5", inhibit is ALLOWED, inhibit, ALLOWED)


def condition_06_process_is_defined(s: Situation) -> Finding:
    """Finds whether the process is named and defined; a transmission queue may do without a name."""
    name = s.queue.definition.process_name
    if name:
        return Finding("6", s.process is not None, name, s.process is not None)
    return Finding("6", s.queue.definition.usage is Usage.TRANSMISSION, "", s.queue.definition.usage)


def condition_07_initiation_queue_is_usable(s: Situation) -> Finding:
    """Finds whether INITQ is a local queue of normal usage that takes puts and gets and is not deleted."""
    q = s.initiation
    if q is None:
        return Finding("7", False, None, s.queue.definition.initiation_q_name)
    d = q.definition
    holds = d.inhibit_get is ALLOWED and d.inhibit_put is ALLOWED and d.usage is Usage.NORMAL and not q.is_deleted
    saw = (d.inhibit_get, d.inhibit_put, d.usage)
    return Finding("7", holds, (*saw, "deleted") if q.is_deleted else saw, d.name)


def condition_08_a_monitor_listens(s: Situation) -> Finding:
    """Finds whether some application has the initiation queue open for removing messages."""
    count = s.initiation.readers if s.initiation is not None else 0
    return Finding("8", count > 0, count, 1)


def condition_09_trigger_control_is_on(s: Situation) -> Finding:
    """Finds whether TriggerControl is on."""
    control = s.queue.definition.trigger_control
    return Finding("9", control is TriggerControl.ON, control, TriggerControl.ON)


def condition_10_trigger_type_is_set(s: Situation) -> Finding:
    """Finds whether TriggerType is not NONE."""
    kind = s.queue.definition.trigger_type
    return Finding("10", kind is not NONE, kind, None)


def condition_11_put_while_others_wait(s: Situation) -> Finding:
    """Finds whether others waited and TriggerInterval is over (FIRST), or the depth was reached already (DEPTH)."""
    definition = s.queue.definition
    kind = definition.trigger_type
    before = s.queue.waiting(definition.trigger_msg_priority)
    if s.happened is not Happened.PUT:
        return Finding("11", False, before, None, False)
    if kind is FIRST:
        stamp = s.queue.trigger_stamp_ms
        passed = None if stamp is None else s.now - stamp
        holds = before > 0 and (passed is None or passed >= s.trigger_interval_ms)
        return Finding("11", holds, (before, passed), (1, s.trigger_interval_ms))
    if kind is DEPTH:
        return Finding("11", before >= definition.trigger_depth, (before, None), (definition.trigger_depth, None))
    return Finding("11", False, (before, None), None, False)


def condition_12_last_reader_closed(s: Situation) -> Finding:
    """Finds whether the last reader of a queue of FIRST or DEPTH closed it and enough messages wait."""
    kind = s.queue.definition.trigger_type
    enough, waiting, wanted = enough_wait(s)
    closed = s.happened is Happened.CLOSE and s.had_readers > 0 and s.queue.open_input_count == 0
    applies = kind is FIRST or kind is DEPTH
    return Finding("12", closed and enough and applies, (s.queue.open_input_count, waiting), (0, wanted), applies)


def condition_13_criteria_changed(s: Situation) -> Finding:
    """Finds whether control came on, or type, priority or depth (DEPTH) changed while on, and enough messages wait."""
    definition = s.queue.definition
    changed = [
        name
        for name in ("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth")
        if name in s.was and (name != "trigger_depth" or definition.trigger_type is DEPTH)
    ]
    enough, waiting, wanted = enough_wait(s)
    holds = bool(changed) and definition.trigger_control is TriggerControl.ON and enough
    return Finding("13", holds and s.happened is Happened.CHANGE, (tuple(changed), waiting), wanted)


def condition_13a_initiation_put_allowed(s: Situation) -> Finding:
    """Finds whether puts became allowed on the initiation queue, and enough messages wait."""
    enough, waiting, wanted = enough_wait(s)
    return Finding("13a", enough and s.happened is Happened.INITIATION_PUT_ALLOWED, waiting, wanted)


def condition_13b_get_allowed(s: Situation) -> Finding:
    """Finds whether gets became allowed on the queue, and enough messages wait."""
    enough, waiting, wanted = enough_wait(s)
    return Finding("13b", enough and s.happened is Happened.GET_ALLOWED, waiting, wanted)


def condition_13c_monitor_opened(s: Situation) -> Finding:
    """Finds whether the first monitor opened the initiation queue for input, and enough messages wait.

    With RECOVER(ALL), which is ours, enough are more than have a trigger message or a run already.
    """
    enough, waiting, wanted = enough_wait(s)
    if s.recovers_all:
        enough, wanted = s.due > 0, s.under_way + 1
    first = s.happened is Happened.MONITOR_OPENED and s.had_monitor == 0
    return Finding("13c", enough and first, (s.had_monitor, waiting), (0, wanted))


def condition_14_priority_as_counted(s: Situation) -> Finding:
    """Finds whether the counted priority can trigger: a FIFO queue counts every message at DEFPRTY."""
    definition = s.queue.definition
    if definition.msg_delivery_sequence is MsgDeliverySequence.FIFO:
        holds = definition.def_priority >= definition.trigger_msg_priority
        return Finding("14", holds, definition.def_priority, definition.trigger_msg_priority)
    return Finding("14", True, s.put_priority, None, False)
