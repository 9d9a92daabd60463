"""``trigmon audit``: the file of denials and administrative acts."""

from __future__ import annotations

from pathlib import Path

import click

from trigmon.cli.command import command, group

BROKEN = 1


@group("audit", example="trigmon audit verify /var/log/trigmon/audit.jsonl")
def audit() -> None:
    """The audit file, which server.audit_file names: verify."""


@command("verify", "trigmon audit verify audit.jsonl\ntrigmon audit verify audit.jsonl.1 audit.jsonl", audit)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.pass_context
def verify(ctx: click.Context, files: tuple[Path, ...]) -> None:
    """Check the chain of hashes of FILE; several are parts of one chain, the oldest first.

    Prints the numbers of the first and last line, and the last one's hash: compare them with audit_number and
    audit_hash in the log, since lines that are taken off the end break no chain. Exit 1 where a line was changed,
    taken out, put in or moved.
    """
    from trigmon.audit import AuditError
    from trigmon.audit import verify as verify_files
    from trigmon.cli import output

    try:
        count, last = verify_files(files)
    except AuditError as error:
        click.echo(f"trigmon: {error}", err=True)
        ctx.exit(BROKEN)
    first = last.number - count + 1
    which = f"number {first} to {last.number}; the last has hash {last.hash}" if count else "for there are none"
    text = f"{count} lines are as they were written, {which}"
    text += f". Lines 1 to {first - 1} are not in these files" if first > 1 else ""
    output.done(text, {"lines": count, "first": first, "number": last.number, "hash": last.hash})
