"""Copies of queues elsewhere as they are: what the processes report that do them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from trigmon.mq.calls import ReportCopy
from trigmon.mq.quantities import counted
from trigmon.mq.replies import Done
from trigmon.rules.attention import Attention
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found


def decide_report_copy(call: ReportCopy, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Accepts a report; :func:`complete_report_copy` notes it."""
    return Decision(Done())


def complete_report_copy(call: ReportCopy, reply: Done, manager: ManagerState) -> Done:
    """Notes how the copy is that this connection does."""
    manager.reports.report_copy(call.state)
    return reply


def copy_rows(manager: ManagerState) -> list[dict[str, Any]]:
    """Returns how the copies are, by name, each with its ``state``: copying or hindered."""
    return [asdict(each) | {"state": "hindered" if each.problem else "copying"} for each in manager.reports.copies()]


def attention_of_copies(manager: ManagerState) -> Iterator[Attention]:
    """Yields copies that are hindered, and those that put messages on the dead-letter queue."""
    for each in manager.reports.copies():
        if each.problem:
            remedy = "it goes on by itself when that has passed; trigmon status shows it"
            yield Attention("copy", each.name, each.problem, remedy, each.problem_since_ms, what="copy")
        if each.put_aside:
            text = f"{counted(each.put_aside, 'message')} that {each.q_name} never takes went to the dead-letter queue"
            yield Attention("put_aside", each.name, text, "trigmon dlq list", what="copy")
