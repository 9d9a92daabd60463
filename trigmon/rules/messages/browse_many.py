"""A browse of many messages a call, and its division into ranges that can be read side by side. Both are ours.

What is seen is what MQGET with a browse option sees. The range is in the call, not at the handle's cursor, so several
connections read ranges of one plan. A message belongs to the range of its place. A queue with groups is not divided:
the messages of a group stay together.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import BrowseMany, Get, PlanBrowse
from trigmon.mq.enums import GetOption
from trigmon.mq.errors import HobjError, OptionsError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import BrowsePlanned, Refused, WereBrowsed
from trigmon.rules.messages.context import saved
from trigmon.rules.messages.get import MOST_BYTES, MOST_MESSAGES, carried, given, look_for_get
from trigmon.rules.messages.reports import expiration_reports
from trigmon.rules.model.changes import met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.stored_messages import Cursor, Found, Selection, Summary

MOST_SKIPPED = 65_536
"""What one plan call looks over at most: some milliseconds' work."""
_LARGEST = 2**63 - 1
_FIRST = GetOption.BROWSE_FIRST.value


def look_for_browse_many(call: BrowseMany, facts: Facts, now: int) -> Selection:
    """Selects the next messages of the range."""
    if call.count < 1 or not 0 <= call.newest <= _LARGEST:
        raise OptionsError(f"count {call.count}, newest {call.newest}: 1 or more, and 0 or a plan's newest")
    return replace(
        _browsed(call.handle, facts, now),
        after=_place("after", call.after),
        until=_place("until", call.until),
        limit=min(call.count, MOST_MESSAGES),
        limit_bytes=MOST_BYTES + 1,  # so that messages of the own unit behind the last one read are not carried
    )


def decide_browse_many(call: BrowseMany, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns what one reply can carry; 2033 for none."""
    if found is None or facts.handle is None:
        raise HobjError(f"handle {call.handle}")
    discards, reports = met_on_the_way(found), expiration_reports(found.expired, facts, now)
    if not found.messages:
        nothing = Refused(reason=Reason.NO_MSG_AVAILABLE.value, about=facts.handle.object_name)
        return Decision(nothing, discards, reports)
    messages = carried(found.messages)
    last = messages[-1]
    wanted = [message for message in messages if not 0 < call.newest < message.number]
    reply = WereBrowsed(
        messages=[given(message, now, -1, False) for message in wanted], after=[last.priority, last.number]
    )
    return Decision(reply, [*discards, *saved(facts.handle, None)], reports)


def look_for_plan_browse(call: PlanBrowse, facts: Facts, now: int) -> Selection | None:
    """Selects the place that is asked for; the first, where none is."""
    if call.skip < 0:
        raise OptionsError(f"skip {call.skip}: 0 or more")
    selection = replace(_browsed(call.handle, facts, now), after=_place("after", call.after))
    return replace(selection, summary=Summary(skip=min(call.skip, MOST_SKIPPED) or 1))


def decide_plan_browse(call: PlanBrowse, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the place, and the number of the newest message."""
    if found is None or facts.queue is None:
        raise HobjError(f"handle {call.handle}")
    place = found.place if call.skip else None
    reply = BrowsePlanned(
        newest=found.newest or ids.message(),  # a shared queue's messages have numbers of the group
        depth=facts.queue.depth,
        skipped=min(call.skip, MOST_SKIPPED),
        after=[] if place is None else [place.priority, place.number],
    )
    return Decision(reply)


def _browsed(handle: int, facts: Facts, now: int) -> Selection:
    """Returns what a browse of the first message selects, after its checks."""
    selection = look_for_get(Get(handle=handle, options=_FIRST), facts, now)
    assert selection is not None
    return selection


def _place(name: str, place: list[int]) -> Cursor | None:
    if not place:
        return None
    if len(place) != 2 or not all(0 <= number <= _LARGEST for number in place):
        raise OptionsError(f"{name} {place}: a place of a plan's or an answer's")
    return Cursor(*place)
