"""What no call changes and is reported nevertheless: monitors that are gone and back, the disk, lost members."""

from __future__ import annotations

from collections.abc import Iterator

from trigmon.mq.calls import Call
from trigmon.mq.replies import Values
from trigmon.rules.attention import unread_initiation_queues
from trigmon.rules.event_messages.event_put import Happened, json_event
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.internal_calls import LookAround
from trigmon.rules.model.stored_messages import Found


def decide_look_around(call: LookAround, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Reports what is not as it was. A monitor counts as gone when two looks in a row have not found it."""
    unread = set(unread_initiation_queues(facts))
    gone = (unread & {*call.unread}) | (unread & {*call.gone})
    read = {queue.definition.name for queue in facts.world.queues if queue.readers}
    happened = [*_of_disk(call), *_of_members(call), *_of_monitors({*call.gone}, gone, read)]
    reports: list[Call] = [json_event(each, facts.q_mgr.name, now) for each in happened if not each.is_about_events]
    values = {"unread": sorted(unread), "gone": sorted(gone)}
    return Decision(Values(values=values), internal_calls=reports if facts.q_mgr.trigmon_event else [])


def _of_monitors(reported: set[str], gone: set[str], read: set[str]) -> Iterator[Happened]:
    for name in sorted(gone - reported):
        yield Happened("monitor_gone", f"no monitor reads the initiation queue {name}", {"q_name": name})
    for name in sorted(reported & read):
        yield Happened("monitor_back", f"a monitor reads the initiation queue {name} again", {"q_name": name})


def _of_disk(call: LookAround) -> Iterator[Happened]:
    if call.are_puts_allowed == call.were_puts_allowed:
        return
    free_bytes, reserve_bytes = call.disk
    fields = {"free_bytes": free_bytes, "reserve_bytes": reserve_bytes}
    if call.are_puts_allowed:
        yield Happened("puts_allowed", f"puts are allowed again: {free_bytes >> 20} MiB are free", fields)
    else:
        yield Happened("puts_refused", f"puts are refused: {free_bytes >> 20} MiB are free on the disk", fields)


def _of_members(call: LookAround) -> Iterator[Happened]:
    for member, group in call.lost:
        text = f"member {member} of the group {group} died; its units of work are backed out"
        yield Happened("member_lost", text, {"member": member, "group": group})
