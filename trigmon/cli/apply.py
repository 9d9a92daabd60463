"""``trigmon apply``: makes the objects equal to definition files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.definitions.apply_plan import Step
    from trigmon.definitions.definition_files import Wanted

AT_ONCE = 256
"""Calls sent before the first reply is awaited: as many as one turn of the queue manager takes."""
_SIGNS = {"define": ("+", "green"), "alter": ("~", "yellow"), "delete": ("-", "red")}
_DONE = {"define": "defined", "alter": "altered", "delete": "deleted"}


@command(
    "apply", "trigmon apply --dry-run config/queues.yaml process_defs\ntrigmon apply config/queues.yaml process_defs"
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Print the difference and change nothing.")
@click.option("--prune", is_flag=True, help="Delete the objects that no file names, except SYSTEM objects.")
def apply(paths: tuple[Path, ...], dry_run: bool, prune: bool) -> None:
    """Make the objects equal to the definition files, touching only attributes that the files name.

    A PATH is a file, or a directory of files. Nothing is changed when any file holds a mistake.
    """
    from trigmon.cli import output
    from trigmon.cli.objects import rows
    from trigmon.definitions.apply_plan import plan
    from trigmon.definitions.definition_files import read_files
    from trigmon.mq.attributes import EVERY_TYPE

    wanted = read_files(paths)
    with invocation().connected() as qm:
        existing = [row for kind in EVERY_TYPE for row in rows(qm, kind)]
        steps = plan(wanted, existing, prune=prune)
        for warning in _warnings(wanted, existing):
            output.note(f"trigmon: {warning}")
        for step in steps if dry_run else _made(qm, steps):
            _print(step, dry_run=dry_run)
    if not steps:
        output.note(f"nothing to do: {len(wanted)} objects are as the files define them")
    elif dry_run:
        output.note(f"{len(steps)} change{'s' * (len(steps) != 1)}; nothing was changed (--dry-run)")


def _made(qm: Connection, steps: list[Step]) -> Iterator[Step]:
    """Makes the steps and yields each one that was made; many are sent at once, so that they share turns.

    Raises the first refusal, after all steps that were sent with it: each of those was made or is named.
    """
    from trigmon.cli import output
    from trigmon.mq.errors import MQError
    from trigmon.mq.replies import Refused

    made = 0
    for start in range(0, len(steps), AT_ONCE):
        some = steps[start : start + AT_ONCE]
        refused: list[tuple[Step, MQError]] = []
        try:
            replies = qm.answers([step.call for step in some], AT_ONCE)
        except MQError:
            output.note(f"trigmon: {made} of {len(steps)} changes were made, and of the next {len(some)} perhaps some")
            raise
        for step, reply in zip(some, replies, strict=True):
            if isinstance(reply, Refused):
                refused.append((step, MQError.of(reply.reason, reply.about)))
                continue
            made += 1
            yield step
        if refused:
            names = ", ".join(_what(step) for step, _ in refused)
            output.note(f"trigmon: {made} of {len(steps)} changes were made, then {names} was refused")
            for _, error in refused[1:]:
                output.note(f"trigmon: {error}")
            raise refused[0][1]


def _warnings(wanted: list[Wanted], existing: list[dict[str, Any]]) -> Iterator[str]:
    """Yields warnings: a process without a program, and what the rules warn of."""
    from trigmon.rules.runs.process_warnings import warnings

    there = {row["name"]: row for row in existing if row["object_type"] == "PROCESS"}
    for one in wanted:
        if one.object_type != "PROCESS" or one.name.startswith("SYSTEM."):
            continue
        if not one.attributes.get("appl_id", there.get(one.name, {}).get("appl_id")):
            yield f"{one.where}: PROCESS {one.name} has a blank APPLICID (appl_id): there is no program to start"
        for text in warnings(one.name, {**there.get(one.name, {}), **one.attributes}):
            yield f"{one.where}: {text}"


def _what(step: Step) -> str:
    where = f" ({step.where})" if step.where else ""
    return f"{step.action} {step.object_type} {step.name}{where}"


def _print(step: Step, *, dry_run: bool) -> None:
    from trigmon.cli import output

    if invocation().is_json:
        click.echo(output.json_line(_row(step)))
        return
    sign, colour = _SIGNS[step.action]
    action = step.action if dry_run else _DONE[step.action]
    click.echo(click.style(f"{sign} {step.object_type} {step.name} {action}", fg=colour))
    for change in step.changes:
        if step.action == "alter":
            click.echo(f"    {change.attribute}: {_shown(change.before)} -> {_shown(change.after)}")
        else:
            click.echo(f"    {change.attribute}: {_shown(change.after)}")


def _row(step: Step) -> dict[str, Any]:
    return {
        "action": step.action,
        "object_type": step.object_type,
        "name": step.name,
        "changes": [{"attribute": c.attribute, "before": c.before, "after": c.after} for c in step.changes],
        "where": step.where,
    }


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) and (not value or " " in value) else str(value)
