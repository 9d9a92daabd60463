"""The last run of a queue, where it did nothing: it ended with status 0 and took no message of those that waited.

A FIRST queue starts nothing more for them until TRIGINT has passed (condition 11), and its run alone looks well. It is
claimed only where it is known that nothing was taken. The ledger knows what a program took under the name of its run;
the queue manager's process knows when a message last left the queue by any call. A run that never opened the queue may
have read it under no name: after a restart of the queue manager nothing is known of such a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import TriggerType
from trigmon.mq.quantities import span
from trigmon.mq.run import Ending, Run


class Seen(msgspec.Struct, frozen=True):
    """What is known of a queue's messages: when the oldest was put, when one last left, since when that is noted.

    Milliseconds since 1970; 0 where there is no message, or none has left since.
    """

    oldest_ms: int
    left_ms: int
    since_ms: int


def took_none(runs: Iterable[Run]) -> Run | None:
    """Returns the last of a queue's runs, given the newest first, where it ended with status 0 and took nothing."""
    last = next((run for run in runs if run.ending is not Ending.JOINED), None)
    if last is None or last.ending is not Ending.OK or last.work.taken or last.work.put_aside:
        return None
    return last if last.origin.recorded_ms and last.outcome.end_ms else None


def left_all(run: Run, seen: Seen) -> bool:
    """Returns whether messages waited when such a run ended, and it is known that none was taken since it was due."""
    is_known = bool(run.work.first_open_ms) or seen.since_ms <= run.origin.recorded_ms
    return is_known and seen.left_ms <= run.origin.recorded_ms and 0 < seen.oldest_ms <= run.outcome.end_ms


def how_it_ended(run: Run) -> str:
    """Returns what the run did, as the end of a sentence."""
    unopened = "" if run.work.first_open_ms else " without having opened the queue for input"
    return f"the last run ended with status 0{unopened} and took no message"


def when_next(definition: LocalQueue, trigger_interval: int) -> str:
    """Returns when a program is started for what is left."""
    if definition.trigger_type is TriggerType.FIRST:
        return f"type FIRST starts nothing for what is left until TRIGINT ({span(trigger_interval)}) has passed"
    if definition.trigger_type is TriggerType.DEPTH:
        return "type DEPTH starts nothing for what is left until trigger control is on again"
    return "type EVERY starts nothing for what is left: each message had its start"


def remedies(definition: LocalQueue) -> Iterator[str]:
    """Yields what helps, a line each."""
    name = definition.name
    yield "in the program: get until no message is left (2033); in a Spark job: trigmon.spark.drain"
    yield f"then start it for what is left: trigmon process start {definition.process_name} --queue {name}"
    if definition.trigger_type is TriggerType.FIRST:
        yield f"or a program for each message: trigmon queue alter {name} TRIGTYPE=EVERY"
        yield f"or one for so many: trigmon queue alter {name} TRIGTYPE=DEPTH TRIGDPTH=NUMBER"
    if definition.trigger_type is TriggerType.DEPTH:
        yield f"or switch it on whenever it has triggered: trigmon queue alter {name} REARM=AUTO"
    yield "a change of a trigger attribute triggers for what waits, at once (condition 13)"
