"""Pause and resume, for queues, processes, schedules, watches and everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trigmon.cli import output
from trigmon.cli.command import invocation
from trigmon.mq.calls import Pause, Pauses, Resume, Runs
from trigmon.mq.replies import Listing
from trigmon.mq.run import WITH_PROGRAM, RunState

if TYPE_CHECKING:
    from trigmon.client.connection import Connection


def pause(what: str, name: str, reason: str) -> None:
    """Pauses, and prints how many runs go on."""
    with invocation().connected() as qm:
        qm.call(Pause(what=what, name=name, reason=reason))
        running = _runs(qm, what, name, WITH_PROGRAM)
    if running:
        which = "it runs on" if running == "1" else "they run on"
        output.note(f"started already: {running}, and {which}; trigmon runs list, trigmon runs cancel")
    output.done(f"{_subject(what, name)} is paused", {"action": "paused", "what": what, "name": name})


def resume(what: str, name: str) -> None:
    """Resumes, and prints what is still paused."""
    with invocation().connected() as qm:
        qm.call(Resume(what=what, name=name))
        held = _runs(qm, what, name, [RunState.HELD])
        left = qm.ask(Pauses(), Listing).rows
    for row in left:
        output.note(f"still: {row['paused']}")
    waits = f"; held until now: {held}" if held else ""
    output.done(f"{_subject(what, name)} is resumed{waits}", {"action": "resumed", "what": what, "name": name})


def _runs(qm: Connection, what: str, name: str, states: Iterable[str]) -> str:
    """Returns how many runs are in these states, as text; blank for none, and where a pause keeps none back."""
    if what in ("schedule", "watch"):
        return ""
    of = {"queue": {"q_name": name}, "process": {"process_name": name}}.get(what, {})
    found = [qm.ask(Runs(where={**of, "state": state}), Listing) for state in states]
    count = sum(len(listing.rows) for listing in found)
    return f"{count} or more" if any(listing.more for listing in found) else str(count or "")


def _subject(what: str, name: str) -> str:
    return name or what
