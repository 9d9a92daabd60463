"""``trigmon explain QUEUE@QM`` and ``--display``: the verdict on a queue of a queue manager elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.bridge_names import bridge_of, connected_bridge
from trigmon.cli.command import invocation

if TYPE_CHECKING:
    from trigmon.bridge.seen_queue import SeenQueue
    from trigmon.mq.replies import Explained

_LAST_RUNS = 3
_MONITOR = "trigmon monitor"
"""The name by which a monitor's connection to a queue manager elsewhere is known there (APPLTAG)."""


def explain_elsewhere(name: str, priority: int | None, words: Sequence[str], display: Path | None) -> bool:
    """Prints the verdict on a put to a queue elsewhere, and returns whether it would fire for certain.

    ``name`` is ``QUEUE@QM``, or with the text of a DISPLAY the queue alone.
    """
    from trigmon.bridge.remote_verdict import explain_seen, rehearse_seen
    from trigmon.cli.objects import attributes
    from trigmon.mq.enums import ObjectType

    queue, at, there = name.partition("@")
    if at and display is not None:
        raise click.UsageError("--display is the output of DISPLAY, QUEUE@QM asks the queue manager: not both")
    changed = attributes(ObjectType.QLOCAL, queue, words) if words else {}
    seen, side = _displayed(queue, display), None
    if seen is None:
        seen, side = _asked(queue, there, changed)
    given, now = -1 if priority is None else priority, time.time_ns() // 1_000_000
    explained = rehearse_seen(seen, changed, given, now) if words else explain_seen(seen, given, now)
    _show(explained, side)
    return explained.fires


def _displayed(queue: str, display: Path | None) -> SeenQueue | None:
    """Returns the queue as the text of a DISPLAY has it; None without such a text."""
    if display is None:
        return None
    from trigmon.bridge.displayed_queue import read_displayed

    return read_displayed(display, queue)


def _asked(queue: str, there: str, changed: Mapping[str, Any]) -> tuple[SeenQueue, dict[str, Any]]:
    """Returns the queue as its queue manager tells it, and what this side says of the bridge."""
    from trigmon.bridge.remote_facts import look_at_queue

    bridge = bridge_of(there)
    with connected_bridge(bridge) as connection:
        seen = look_at_queue(connection, queue, also=changed)
    side = _this_side(seen, bridge)
    last_ms = max((run["triggered_ms"] for run in side["runs"]), default=0)
    return seen.triggered_at(last_ms) if last_ms else seen, side


def _this_side(seen: SeenQueue, bridge: str) -> dict[str, Any]:
    """Returns what is known here of the queue's triggers: whether they are read, the process, pauses, its last runs."""
    from trigmon.mq.errors import MQError

    definition = seen.queue.definition
    settings = invocation().settings().bridges[bridge]
    # None: nobody has it open, or the handles could not be seen; conditions 7 and 8 show which.
    is_open = any(handle.application.startswith(_MONITOR) for handle in seen.monitors)
    side: dict[str, Any] = {
        "bridge": bridge,
        "initiation_q_is_read": definition.initiation_q_name in settings.initiation_queues,
        "initiation_q_is_open": is_open if seen.monitors else None,
        "process_name": definition.process_name,
        "process_is_defined": None,
        "paused": [],
        "runs": [],
    }
    try:
        return side | _ledger_of(f"{definition.name}@{settings.queue_manager}", definition.process_name)
    except MQError as error:
        return side | {"not_seen": str(error)}


def _ledger_of(q_name: str, process: str) -> dict[str, Any]:
    """Returns what this queue manager has of a queue elsewhere and of its process: definition, pauses, last runs."""
    from trigmon.cli.objects import rows
    from trigmon.mq.calls import Runs, Status
    from trigmon.mq.replies import Listing, Values

    with invocation().connected() as qm:
        is_defined = bool(process) and any(row["name"] == process for row in rows(qm, "PROCESS", process))
        pauses = qm.ask(Status(), Values).values["pauses"]
        listed = qm.ask(Runs(where={"q_name": q_name}, limit=_LAST_RUNS), Listing).rows
    concerned = ("", q_name, process)
    shown = ("run_id", "state", "why", "exit_status", "recorded_ms", "triggered_ms")
    return {
        "process_is_defined": is_defined,
        "paused": [pause["paused"] for pause in pauses if pause["name"] in concerned],
        "runs": [{key: run[key] for key in shown} for run in listed],
    }


def _show(explained: Explained, side: dict[str, Any] | None) -> None:
    from trigmon.cli import output
    from trigmon.cli.explain import as_dict, condition_lines, headline, saving

    if invocation().is_json:
        shown = as_dict(explained) | ({"bridge": side} if side is not None else {})
        click.echo(output.json_line(output.presentable(shown)))
        return
    click.echo(headline(explained))
    if "saving" in explained.values:
        click.echo(saving(explained))
    for line in ("", *_seen_lines(explained.values), ""):
        click.echo(line)
    for condition in explained.conditions:
        for line in condition_lines(condition):
            click.echo(line)
    if side is not None:
        click.echo()
        for line in _side_lines(side):
            click.echo(line)


def _seen_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields what was seen beside the conditions, and of what was not why."""
    shown = (
        ("CURDEPTH", "current_q_depth"),
        ("IPPROCS", "open_input_count"),
        ("OPPROCS", "open_output_count"),
        ("UNCOM", "uncommitted_msgs"),
        ("TRIGINT", "trigger_interval_ms"),
    )
    counts = [f"{word}({'?' if values[name] is None else values[name]})" for word, name in shown]
    yield f"queue {values['base_q_name']} at {values['q_mgr_name']}: {' '.join(counts)}"
    for what, handles in (("the queue", values["handles"]), ("its initiation queue", values["monitors"])):
        for handle in handles:
            ways = " and ".join(way for way in ("input", "output") if handle[f"for_{way}"])
            yield f"{what} is open for {ways}: {handle['application']}, pid {handle['pid']}, user {handle['user']}"
    for text in values["unseen"].values():
        yield click.style(f"not seen: {text}", fg="yellow")


def _side_lines(side: Mapping[str, Any]) -> Iterator[str]:
    """Yields what this side of the bridge says."""
    from trigmon.cli.output import instant

    reads = "reads" if side["initiation_q_is_read"] else "does NOT read"
    yield f"Bridge {side['bridge']} {reads} the queue's initiation queue, by its settings."
    if side["initiation_q_is_open"] is not None:
        yield f"{'A' if side['initiation_q_is_open'] else 'No'} monitor of trigmon's has it open now."
    if "not_seen" in side:
        yield f"What is defined here could not be seen: {side['not_seen']}"
        return
    process = side["process_name"]
    if process:
        state = "is defined here" if side["process_is_defined"] else "is NOT defined here"
        yield f"Process {process} {state}."
    for paused in side["paused"]:
        yield f"What it starts would be held: {paused}."
    for run in side["runs"]:
        ended = "" if run["exit_status"] is None else f", exit status {run['exit_status']}"
        why = f": {run['why']}" if run["why"] else ""
        yield f"Run {run['run_id']} of {instant(run['recorded_ms'])}: {run['state']}{ended}{why}"
    if not side["runs"]:
        yield "No run of it is recorded here."
