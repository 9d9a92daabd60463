"""DISPLAY of the queue-sharing group: its members, the recovered ones, and which member has its queues."""

from __future__ import annotations

from typing import Any

from trigmon.mq.calls import DisplayGroup
from trigmon.mq.replies import Values
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.group_members import Holding, Member
from trigmon.rules.model.stored_messages import Found


def decide_display_group(call: DisplayGroup, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the group as this member sees it: its members, the recovered ones, the last first, and its queues."""
    values: dict[str, Any] = {"q_mgr_name": facts.q_mgr.name, "group": facts.group, "now_ms": now}
    group = facts.members
    if group is not None:
        recovered = sorted(
            (member for member in group.members if member.recovered_ms is not None), key=lambda m: m.recovered_ms or 0
        )
        values["members"] = [member_row(member) for member in group.members]
        values["recovered"] = [recovery_row(member) for member in recovered]
        values["queues"] = [
            {
                "name": queue.definition.name,
                "current_q_depth": queue.depth,
                "uncommitted_puts": queue.uncommitted_puts,
                "uncommitted_gets": queue.uncommitted_gets,
                "members": [holding_row(each) for each in group.holdings if each.q_name == queue.definition.name],
            }
            for queue in facts.world.queues
            if queue.shared is not None
        ]
    return Decision(Values(values=values))


def state_of(member: Member) -> str:
    """Returns ``serving``, ``silent`` (lease over, not recovered yet), ``dead`` (recovered since) or ``away``.

    Of one that ended in order the last heartbeat is later than its last recovery, if there was one.
    """
    if not member.is_serving:
        is_dead = member.recovered_ms is not None and member.recovered_ms <= member.silent_ms
        return "dead" if is_dead else "away"
    return "silent" if member.silent_ms > member.lease_ms else "serving"


def member_row(member: Member) -> dict[str, Any]:
    """Returns a member as a row."""
    return {
        "name": member.name,
        "state": state_of(member),
        "epoch": member.epoch,
        "silent_ms": member.silent_ms,
        "lease_ms": member.lease_ms,
        "host": member.host,
        "pid": member.pid,
        "roles": list(member.roles),
    }


def recovery_row(member: Member) -> dict[str, Any]:
    """Returns the last recovery of a member as a row."""
    return {
        "name": member.name,
        "by": member.recovered_by,
        "ago_ms": member.recovered_ms,
        "puts": member.puts,
        "gets": member.gets,
        "opens": member.opens,
        "locks": member.locks,
    }


def holding_row(holding: Holding) -> dict[str, Any]:
    """Returns what a member has of a queue as a row."""
    use = holding.use
    return {
        "member": holding.member,
        "opens": use.opens,
        "open_input_count": use.inputs,
        "exclusive": use.is_exclusive,
        "open_output_count": use.outputs,
        "uncommitted_puts": use.puts,
        "uncommitted_gets": use.gets,
    }
