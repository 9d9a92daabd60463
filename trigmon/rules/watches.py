"""Watches as they are: what the process reports that serves them, beside their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from trigmon.mq.calls import ReportWatches, WatchState
from trigmon.mq.quantities import counted
from trigmon.mq.replies import Done
from trigmon.rules.attention import Attention
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WorldFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found

START_MS = 30_000
"""So long after its start a queue manager may be without the process that serves its watches."""


def decide_report_watches(call: ReportWatches, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Accepts a report; :func:`complete_report_watches` notes it."""
    return Decision(Done())


def complete_report_watches(call: ReportWatches, reply: Done, manager: ManagerState) -> Done:
    """Notes how the watches are that this connection's process serves."""
    manager.reports.report_watches(call.watches)
    return reply


def with_state(row: dict[str, Any], reported: Mapping[str, WatchState] | None) -> dict[str, Any]:
    """Returns a row with its ``state``, watching, paused, hindered or unserved, and the fields that are reported."""
    name = row["name"]
    state = reported.get(name) if reported is not None else None
    word = "watching"
    if row["paused"]:
        word = "paused"
    elif state is None:
        word = "unserved"
    elif state.problem:
        word = "hindered"
    fields = asdict(state or WatchState(name=name))
    return {**row, "state": word, **fields}


def attention_of_watches(facts: WorldFacts, manager: ManagerState) -> Iterator[Attention]:
    """Yields watches that put no messages: nobody serves them, a directory or a queue hinders them, or some files."""
    reported = manager.reports.watches()
    if reported is None:
        if facts.world.watches and manager.now_ms - manager.started_ms >= START_MS:
            text = "no process serves the watches: no file becomes a message"
            remedy = "set server.watches, or run trigmon watch serve; the log says why it ended"
            yield Attention("watch", "", text, remedy, what="watch")
        return
    for state in reported.values():
        remedy = f"trigmon watch show {state.name}"
        if state.problem:
            waits = f"; {counted(state.files_taken, 'file')} on the way" if state.files_taken else ""
            text = f"{state.problem}{waits}"
            yield Attention("watch", state.name, text, remedy, state.problem_since_ms, what="watch")
        if state.files_failed:
            text = f"{counted(state.files_failed, 'file')} in its directory FAILED"
            yield Attention("bad_files", state.name, text, f"{remedy}; then move or remove them", what="watch")
