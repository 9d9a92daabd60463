"""``trigmon status``: a summary of the queue manager's state."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from msgspec.structs import asdict

from trigmon.cli.command import command, invocation
from trigmon.mq.quantities import size

FIRST = 3
"""So many findings stand in the first line."""
TABLES = {
    "reserved": ["reservation", "q_name", "consumer", "left", "count", "offers", "age_s", "summary"],
    "bridges": ["bridge", "initiation_q", "state", "since_time", "problem"],
    "copies": ["name", "q_name", "state", "copied", "rate", "left", "lag_s", "last_copy_time", "put_aside", "problem"],
}
"""The tables behind the summary, by the key of the status, and their columns."""


@command("status", "trigmon status --output json\ntrigmon status --watch")
@click.option("--watch", is_flag=True, help="Repeat it, with the runs in progress, until Ctrl-C.")
@click.option("--every", "every_s", type=click.FloatRange(min=0.1), default=2.0, show_default=True, help="Seconds.")
@click.option("--count", type=click.IntRange(min=1), help="With --watch: so many times.")
def status(watch: bool, every_s: float, count: int | None) -> None:
    """Show what needs attention, and a summary: connections, messages, units of work, reservations, monitors.

    Its attributes are shown by trigmon qmgr show.
    With --watch the runs in progress are shown too, with their progress.
    """
    import sys

    from trigmon.cli.run_selection import under_way
    from trigmon.cli.runs import print_runs

    if not watch:
        with _waiting_shown():
            _show()
        return
    for number in itertools.count(1):
        runs = under_way()
        if sys.stdout.isatty():
            click.clear()
        _show()
        if runs:
            if not invocation().is_json:
                click.echo()
            print_runs(runs)
        sys.stdout.flush()
        if number == count:
            return
        time.sleep(every_s)


@contextmanager
def _waiting_shown() -> Iterator[None]:
    """Shows that a member of a group waits for its database, as what needs attention, before the error of the block."""
    from trigmon.cli import output
    from trigmon.mq.errors import CfNotAvailable
    from trigmon.rules.attention import database_waits

    try:
        yield
    except CfNotAvailable as error:
        found = [asdict(database_waits(error.about))]
        if invocation().is_json:
            output.one({"attention": found})
        else:
            _print_attention(found)
        raise


def _show() -> None:
    from trigmon.cli import output
    from trigmon.mq.attributes import ATTRIBUTES
    from trigmon.mq.calls import Status
    from trigmon.mq.enums import ObjectType
    from trigmon.mq.replies import Values

    with invocation().connected() as qm:
        answer, version = qm.ask(Status(), Values).values, qm.server_version
    # The identity comes first, the attributes last; the name would stand there twice.
    attributes = {a.name for a in ATTRIBUTES[ObjectType.QMGR].values()}
    drop = {"object_type", "name", "created_ms", "altered_ms"}
    first = {"q_mgr_name": answer["q_mgr_name"], "version": version, "started_ms": answer["started_ms"]}
    rest = {key: value for key, value in answer.items() if key not in attributes | drop | first.keys()}
    values: dict[str, Any] = first | rest | {key: answer[key] for key in answer if key in attributes}
    values["reserved"] = [
        {key: value for key, value in row.items() if key != "age_ms"} | {"age_s": row["age_ms"] / 1000}
        for row in answer.get("reserved", [])
    ]
    values["copies"] = [
        {key: value for key, value in row.items() if key != "lag_ms"} | {"lag_s": row["lag_ms"] / 1000}
        for row in answer.get("copies", [])
    ]
    if invocation().is_json:
        output.one(values)
        return
    for warning in values.pop("warnings", []):
        output.note(f"warning: {warning}")
    _print_attention(values.pop("attention", []))
    queues = values.pop("initiation_queues", [])
    tables = {key: values.pop(key, []) for key in TABLES}
    values = {key: value for key, value in values.items() if key not in attributes}
    if (free := values.pop("disk_free_bytes", None)) is not None:
        values["disk_free"] = size(free)
    values["paused"] = "\n".join(pause["paused"] for pause in values.pop("pauses", [])) or "nothing"
    output.one(values)
    for key, rows in tables.items():
        if rows:
            click.echo()
            output.listing(rows, TABLES[key], lambda row: row.get("state") == "hindered")
    if queues:
        print_initiation_queues(queues)


def _print_attention(found: list[dict[str, Any]]) -> None:
    """Prints what needs attention, the first of it in the first line, or that nothing does."""
    from trigmon.cli import output
    from trigmon.rules.attention import URGENT

    if not found:
        click.echo(f"{click.style('needs attention', bold=True)}  nothing\n")
        return
    first = ", ".join(f"{each['kind']} {each['name']}".strip() for each in found[:FIRST])
    more = f" and {len(found) - FIRST} more" if len(found) > FIRST else ""
    click.echo(f"{click.style('needs attention', bold=True)}  {len(found)}: {first}{more}")
    output.listing(found, ["name", "kind", "since_time", "text", "remedy"], lambda row: row["kind"] in URGENT)
    click.echo()


def print_initiation_queues(queues: list[dict[str, object]]) -> None:
    """Prints the initiation queues, and a remark for each that no monitor reads."""
    from trigmon.cli import output

    click.echo()
    output.listing(queues, ["name", "monitors", "current_q_depth", "queues", "runs_held"])
    for queue in queues:
        if not queue.get("monitors"):
            output.note(f"no monitor reads {queue['name']}: trigmon monitor --initq {queue['name']}")
