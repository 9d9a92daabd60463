"""``trigmon spark compact``: makes few large files of the many small ones of a table of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command
from trigmon.mq.quantities import counted, number, size

if TYPE_CHECKING:
    from trigmon.spark.files.compaction import Compacted, Directory

_MIB = 1 << 20


@command("compact", "trigmon spark compact --dry-run /srv/orders\ntrigmon spark compact /srv/orders")
@click.argument("table", type=click.Path(file_okay=False, path_type=Path))
@click.option("--target", type=click.IntRange(min=1), default=128, show_default=True, help="MiB of a large file.")
@click.option(
    "--keep", type=click.IntRange(min=0), default=24, show_default=True, help="Hours for which snapshots stay readable."
)
@click.option("--dry-run", is_flag=True, help="Print what would be compacted and change nothing.")
@click.pass_context
def compact(ctx: click.Context, table: Path, target: int, keep: int, dry_run: bool) -> None:
    """Make few large files of the small ones of a table that a drain writes: the directory TABLE.

    Drains may go on. A reader who is amidst the files when they change needs a snapshot to see each row once:
    read_table() or snapshot_of() of trigmon.spark. No batch is written again.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED

    try:
        from trigmon.spark.files import compaction
    except ImportError as error:
        raise click.ClickException(f"{error}") from None
    from trigmon.spark.sinks.sink import SinkError

    try:
        groups = compaction.planned(table, target * _MIB)
        if dry_run:
            done = compaction.before(groups)
        else:
            done = compaction.compact(table, groups, keep_s=keep * 3600.0, progress=_progress(len(groups)))
    except SinkError as error:
        output.note(f"trigmon: {error}")
        ctx.exit(FAILED)
    output.done(_sentence(table, done, dry_run=dry_run), {"table": str(table), "dry_run": dry_run, **done._asdict()})


def _progress(count: int) -> Callable[[int, Sequence[Directory]], None]:
    """Returns what prints a line for each group of directories before it is compacted."""
    from trigmon.cli import output

    def show(at: int, group: Sequence[Directory]) -> None:
        bytes_ = sum(found.size for found in group)
        output.note(f"{at + 1} of {count}: {number(len(group))} directories, {size(bytes_)}")

    return show


def _sentence(table: Path, done: Compacted, *, dry_run: bool) -> str:
    """Returns what was done, or would be."""
    if not done.directories:
        return f"{table}: nothing to compact"
    what = f"{number(done.directories)} directories with {counted(done.files, 'file')}, {size(done.size)}"
    if dry_run:
        return f"{table}: {what}, would become {number(done.made)}; nothing was changed (--dry-run)"
    after = f"{number(done.made)} with {counted(done.files_after, 'file')}, {size(done.size_after)}"
    return f"{table}: {what}, became {after}"
