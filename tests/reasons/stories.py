"""How a story of a reason is kept, and how its end is read.

A story is the shortest way to a reason: it makes what is needed and ends with the call that has the reason. It is kept
under the reason and the way in which that comes, since some are a failure of one call and a warning of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.mq.descriptors import DeadLetterHeader
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import CompCode, Reason
from trigmon.mq.replies import Refused, Reply, Sifted
from trigmon.pcf.structures import PcfMessage

COMPLETED, FAILED, WARNING, TOLD = "Completed", "Failed", "Warning", "Told"
"""How a reason comes: ``TOLD`` is in a dead letter's header, in an event, or of one message in an answer about many."""

COMP_CODES = {COMPLETED: CompCode.OK, WARNING: CompCode.WARNING, FAILED: CompCode.FAILED}


class Stories(dict[tuple[Reason, str], Callable[[Any], object]]):
    """Stories by reason and way."""

    def of(self, reason: Reason, way: str = FAILED) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
        """Keeps a story."""

        def keep(story: Callable[[Any], object]) -> Callable[[Any], object]:
            assert (reason, way) not in self
            self[reason, way] = story
            return story

        return keep


def played(story: Callable[[Any], object], where: Any) -> tuple[int, str]:
    """A story's end: the reason's number, and how it came."""
    try:
        end = story(where)
    except MQError as error:
        assert COMP_CODES[FAILED] == error.comp_code
        return int(error.reason), FAILED
    if isinstance(end, Refused):
        return end.reason, FAILED
    if isinstance(end, DeadLetterHeader | PcfMessage):
        return end.reason, TOLD
    if isinstance(end, Sifted) and end.refused:
        return end.refused[0]["reason"], TOLD
    assert isinstance(end, Reply), end
    return end.warning, WARNING if end.warning else COMPLETED
