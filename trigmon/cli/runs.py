"""``trigmon runs``: what the monitors started, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trigmon.cli.command import command, group, invocation

STATES = ["held", "due", "started", "exited", "failed", "unknown"]
_COLUMNS = ["run_id", "state", "process_name", "q_name", "start_time", "duration_s", "exit_status", "why"]


@group("runs", example="trigmon runs list", later=("cancel", "retry"))
def runs() -> None:
    """The run ledger: every program a monitor started, or holds, or could not start."""


@command("list", "trigmon runs list --state held", runs)
@click.option("--queue", "q_name", metavar="QUEUE", help="Only runs for this queue.")
@click.option("--process", "process_name", metavar="PROCESS", help="Only runs of this process.")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--count", type=click.IntRange(1, 256), default=20, show_default=True, help="The newest so many.")
def list_(count: int, **where: str | None) -> None:
    """List runs, newest first."""
    from trigmon.cli import output

    found = _find({key: value for key, value in where.items() if value is not None}, count)
    if not output.listing(map(_shown, found), _COLUMNS):
        output.note("no such runs are on record")


@command("show", "trigmon runs show\ntrigmon runs show 0198c1f2a3b7e41c", runs)
@click.argument("run", required=False)
def show(run: str | None) -> None:
    """Show everything on record of a run (default: the newest): its cause, its command, its end."""
    from trigmon.cli import output

    output.one(_shown(_one(run)))


@command("logs", "trigmon runs logs\ntrigmon runs logs 0198c1f2a3b7e41c --stream stderr", runs)
@click.argument("run", required=False)
@click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this one (default: each to its own).")
def logs(run: str | None, stream: str | None) -> None:
    """Print what a run (default: the newest) wrote: output to standard output, errors to standard error.

    The files lie on the monitor's host; elsewhere only the end of its errors is known, from the record.
    """
    from trigmon.cli import output

    record = _one(run)
    directory = Path(record["directory"]) if record.get("directory") else None
    if directory is None or not directory.is_dir():
        there = f"{directory} is not on this host" if directory else "the run wrote no files"
        output.note(f"trigmon: {there}; from the record of {record.get('monitor') or 'its monitor'}:")
        click.echo(record.get("stderr_tail") or record.get("why") or "nothing is known", err=stream is None)
        return
    for name in [stream] if stream else ["stdout", "stderr"]:
        # One stream alone is what was asked for, so it is the data.
        _copy(directory / name, err=name == "stderr" and stream is None)


def _copy(path: Path, *, err: bool) -> None:
    if not path.exists():
        return
    with path.open("rb") as file:
        while piece := file.read(65_536):
            click.echo(piece, nl=False, err=err)


def _find(where: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    from trigmon.mq.calls import Listing, Runs

    with invocation().connected() as qm:
        return qm.ask(Runs(where=where, limit=limit), Listing).rows


def _one(run: str | None) -> dict[str, Any]:
    from trigmon.mq.errors import UnknownObjectName

    found = _find({"run_id": run} if run else {}, 1)
    if not found:
        raise UnknownObjectName(f"run {run}" if run else "a run: none is on record")
    return found[0]


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    """A record with words for its numbers and how long it took, in seconds: None while it runs or never began."""
    from trigmon.mq.enums import ApplType, word

    start, end = record.get("start_ms") or 0, record.get("end_ms") or 0
    kind: Any = record.get("appl_type")
    shown = {"appl_type": word(ApplType(kind))} if kind in ApplType._value2member_map_ else {}
    return {**record, **shown, "duration_s": (end - start) / 1000 if start and end else None}
