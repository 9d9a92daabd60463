"""What needs an operator's attention, as a list: what it is, since when, one sentence, and the command that helps.

A pure function of what the queue manager knows: a queue manager that works as it should has an empty list.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec

from trigmon.mq.enums import TriggerControl, TriggerType
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.run_facts import Cause
from trigmon.rules.runs.pause import pauses_of, sentence

NEARLY_FULL = 0.8
"""Of MAXDEPTH."""


class Attention(msgspec.Struct, frozen=True):
    """One thing that needs attention. ``since_ms`` is 0 where it is not recorded; ``last_line`` is of a run's errors.

    ``kind``: disk, held, no_monitor, failing, stuck, dead_letters, put_aside, nearly_full or paused.
    """

    kind: str
    name: str
    text: str
    remedy: str
    since_ms: int = 0
    last_line: str = ""


PUTS_REFUSED = Attention(
    "disk",
    "",
    "puts are refused: the disk is nearly full (2192)",
    "make room: gets go on, and puts come back by themselves",
)


def needs_attention(facts: WorldFacts) -> list[dict[str, Any]]:
    """Returns the list, the most urgent kind first, by name within each kind."""
    parts = (_held, _unread, _waiting, _aside, _nearly_full, _paused)
    found = (each for part in parts for each in sorted(part(facts), key=attrgetter("kind", "name")))
    return [msgspec.structs.asdict(each) for each in found]


def _held(facts: WorldFacts) -> Iterator[Attention]:
    for pause in facts.pauses:
        if pause.is_breaker:
            remedy = f"trigmon runs logs --queue {pause.name}, then trigmon queue resume {pause.name}"
            yield Attention("held", pause.name, f"nothing is started: {pause.reason}", remedy, pause.since_ms)


def _paused(facts: WorldFacts) -> Iterator[Attention]:
    for pause in facts.pauses:
        if not pause.is_breaker:
            how = f"trigmon {pause.what} resume {pause.name}" if pause.name else "trigmon queue resume --all"
            yield Attention("paused", pause.name or pause.what, sentence(pause), how, pause.since_ms)


def _unread(facts: WorldFacts) -> Iterator[Attention]:
    """Yields initiation queues of triggering queues that no monitor reads."""
    there = {queue.definition.name: queue for queue in facts.world.queues}
    for name in sorted({q.definition.initiation_q_name for q in facts.world.queues if _triggers(q)}):
        if name in there and not there[name].readers:
            count = there[name].depth
            waits = f"; {_wait(count, 'trigger message')} there" if count else ""
            yield Attention("no_monitor", name, f"no monitor reads it{waits}", f"trigmon monitor --initq {name}")


def _waiting(facts: WorldFacts) -> Iterator[Attention]:
    """Yields queues with messages that count, which nobody reads and for which nothing runs, is due or waits."""
    there = {queue.definition.name: queue for queue in facts.world.queues}
    busy = {serving.q_name for serving in facts.serves} | facts.world.held_queues
    causes = {cause.q_name: cause for cause in facts.causes if cause.failed or cause.fruitless}
    for queue in facts.world.queues:
        definition = queue.definition
        name, initiation = definition.name, there.get(definition.initiation_q_name)
        if not _counts(queue) or queue.readers or name in busy or pauses_of(facts, name, definition.process_name):
            continue
        if initiation is None or not initiation.readers or initiation.depth:
            continue  # that is the finding, or its trigger message is on its way
        waits = f"{_wait(_counts(queue), 'message')}, and nobody reads"
        explain = f"trigmon explain {name} --why-not"
        if (cause := causes.get(name)) is not None:
            yield Attention("failing", name, f"{waits}: {_failed(cause)}", f"trigmon runs logs --queue {name}")
        else:
            start = f"trigmon process start {definition.process_name} --queue {name}"
            yield Attention("stuck", name, f"{waits}; nothing is to be started for them", f"{explain}; {start}")


def _failed(cause: Cause) -> str:
    if cause.failed:
        return "the last run failed" if cause.failed == 1 else f"the last {cause.failed} runs failed"
    return f"the last {cause.fruitless} runs removed no message"


def _aside(facts: WorldFacts) -> Iterator[Attention]:
    """Yields the dead-letter queue and the backout queues that hold messages."""
    dead = facts.q_mgr.dead_letter_q_name
    backout = {queue.definition.backout_requeue_q_name for queue in facts.world.queues} - {"", dead}
    for queue in facts.world.queues:
        name = queue.definition.name
        if queue.depth and name == dead:
            yield Attention("dead_letters", name, _messages(queue.depth, "dead letter"), "trigmon dlq list")
        elif queue.depth and name in backout:
            text = f"{_messages(queue.depth, 'message')} put aside"
            yield Attention("put_aside", name, text, f"trigmon dlq list --queue {name}")


def _nearly_full(facts: WorldFacts) -> Iterator[Attention]:
    for queue in facts.world.queues:
        most, name = queue.definition.max_q_depth, queue.definition.name
        if most and queue.lying >= NEARLY_FULL * most:
            text = f"{queue.lying} of at most {most} messages (MAXDEPTH)"
            yield Attention("nearly_full", name, text, f"trigmon queue alter {name} MAXDEPTH=NUMBER")


def _triggers(queue: QueueFacts) -> bool:
    definition = queue.definition
    is_meant = definition.trigger_type is not TriggerType.NONE and bool(definition.process_name)
    return is_meant and definition.trigger_control is TriggerControl.ON and not queue.is_deleted


def _counts(queue: QueueFacts) -> int:
    """Returns how many waiting messages should have started something: 0 where the queue is not to trigger for them.

    A DEPTH queue turns trigger control off when it has triggered: then nothing starts for what is left.
    """
    definition = queue.definition
    waiting = queue.waiting(definition.trigger_msg_priority) - queue.unseen
    if definition.trigger_type is TriggerType.DEPTH:
        is_over = waiting >= definition.trigger_depth and bool(definition.process_name) and not queue.is_deleted
        return waiting if is_over else 0
    return max(0, waiting) if _triggers(queue) else 0


def _wait(count: int, noun: str) -> str:
    return f"{_messages(count, noun)} {'waits' if count == 1 else 'wait'}"


def _messages(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
