"""``trigmon runs``: what the monitors started, and how it ended."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import click

from trigmon.cli.command import command, group, invocation

STATES = ["held", "due", "started", "exited", "failed", "unknown"]
PAGE = 256
"""So many runs the queue manager lists in one answer."""
_COLUMNS = ["run_id", "state", "process_name", "q_name", "start_time", "duration_s", "exit_status", "why"]


@group("runs", example="trigmon runs list", later=("cancel", "retry"))
def runs() -> None:
    """The run ledger: every program a monitor started, or holds, or could not start."""


@command("list", "trigmon runs list --state held", runs)
@click.option("--queue", "q_name", metavar="QUEUE", help="Only runs for this queue.")
@click.option("--process", "process_name", metavar="PROCESS", help="Only runs of this process.")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many.")
@click.option("--all", "everything", is_flag=True, help="Every run on record.")
def list_(count: int, everything: bool, **where: str | None) -> None:
    """List runs, newest first."""
    from trigmon.cli import output

    said = {key: value for key, value in where.items() if value is not None}
    found = _find(said, sys.maxsize if everything else count)
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
@click.pass_context
def logs(ctx: click.Context, run: str | None, stream: str | None) -> None:
    """Print what a run (default: the newest) wrote: output to standard output, errors to standard error.

    The files lie on the monitor's host and are its user's; elsewhere, and for others, only the end of its errors is
    known, from the record.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED

    record = _one(run)
    with ExitStack() as open_files:
        try:
            files = _files(record, [stream] if stream else ["stdout", "stderr"], open_files)
        except OSError as error:
            why = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
            output.note(f"trigmon: {why}; from the record of {record.get('monitor') or 'its monitor'}:")
            if stream == "stdout":
                output.note("trigmon: the record holds the end of its errors only: say --stream stderr")
                ctx.exit(FAILED)
            known = record.get("stderr_tail") or record.get("why") or "nothing is known"
            click.echo(known, err=stream is None, nl=not known.endswith("\n"))
            return
        for name, file in files.items():
            # One stream alone is what was asked for, so it is the data.
            while piece := file.read(65_536):
                click.echo(piece, nl=False, err=name == "stderr" and stream is None)


def _files(record: dict[str, Any], names: list[str], until: ExitStack) -> dict[str, IO[bytes]]:
    """What a run wrote, open until the stack's end. Raises OSError when it is not here, or not for this user."""
    if not record.get("directory"):
        raise OSError("the run wrote no files")
    directory = Path(record["directory"])
    try:
        directory.stat()
    except FileNotFoundError:
        raise OSError(f"{directory} is not on this host") from None
    files: dict[str, IO[bytes]] = {}
    for name in names:
        with suppress(FileNotFoundError):
            files[name] = until.enter_context((directory / name).open("rb"))
    return files


def _find(where: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The newest runs that fit, at most ``count``, a page after the other."""
    from trigmon.mq.calls import Listing, Runs

    found: list[dict[str, Any]] = []
    with invocation().connected() as qm:
        while True:
            before = found[-1]["run_id"] if found else ""
            page = qm.ask(Runs(where=where, limit=min(count - len(found), PAGE), before=before), Listing)
            found += page.rows
            if len(found) >= count or not page.more or not page.rows:
                return found


def _one(run: str | None) -> dict[str, Any]:
    from trigmon.mq.errors import UnknownObjectName

    found = _find({"run_id": run} if run else {}, 1)
    if not found:
        raise UnknownObjectName(f"RUN({run})" if run else "RUN(): none is on record")
    return found[0]


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    """A record with words for its numbers and how long it took, in seconds: None while it runs or never began."""
    from trigmon.mq.enums import ApplType, word

    start, end = record.get("start_ms") or 0, record.get("end_ms") or 0
    kind: Any = record.get("appl_type")
    shown = {"appl_type": word(ApplType(kind))} if kind in ApplType._value2member_map_ else {}
    return {**record, **shown, "duration_s": (end - start) / 1000 if start and end else None}
