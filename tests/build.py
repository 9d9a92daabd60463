"""Valid defaults for tests: name only what matters."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue, Process
from trigmon.mq.enums import TriggerControl
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import NO_DEPTH
from trigmon.rules.model.situation import Happened, Situation


def a_queue(waiting: int = 0, at_priority: int = 0, open_input_count: int = 0, **attributes: Any) -> QueueFacts:
    """Returns a queue armed for FIRST, empty, without a reader."""
    depths = list(NO_DEPTH)
    depths[at_priority] = waiting
    given = {
        "name": "APP",
        "trigger_control": TriggerControl.ON,
        "process_name": "PROC",
        "initiation_q_name": "INITQ",
    } | attributes
    stamp = given.pop("trigger_stamp_ms", None)
    return QueueFacts(LocalQueue(**given), tuple(depths), open_input_count=open_input_count, trigger_stamp_ms=stamp)


def an_initiation_queue(open_input_count: int = 1, **attributes: Any) -> QueueFacts:
    """Returns an initiation queue that one monitor reads."""
    return QueueFacts(LocalQueue(**({"name": "INITQ"} | attributes)), open_input_count=open_input_count)


def a_situation(happened: Happened = Happened.PUT, **given: Any) -> Situation:
    """Returns a put of priority 0 that meets every condition, unless something is given."""
    base = Situation(happened, a_queue(), Process(name="PROC"), an_initiation_queue(), 1000, 50_000)
    return replace(base, **given)
