"""``trigmon spark archive``: the class data archives from which Spark's Java virtual machines start."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, group, invocation
from trigmon.mq.quantities import size

if TYPE_CHECKING:
    from trigmon.launch.spark.cold.class_archive import Archives, Note

_COLUMNS = ["key", "state", "java", "size_mib", "age", "took_s", "made_time", "why"]
_data = click.option("--data", type=click.Path(file_okay=False), help="The data directory of the monitor.")


@group("archive", example="trigmon spark archive show")
def archive() -> None:
    """Class data archives, from which a job's Java virtual machine starts twice as fast: show, make, remove.

    The monitor makes one by itself (monitor.class_archives), after the first run that finds none. The archives lie in
    java/ in the data directory. Each fits one Java and one set of jars; an archive that fits neither is removed when
    the next one is made. A job of another user (RUNAS) uses an archive only where that user may pass through the
    directories above it (chmod o+x).
    """


@command("show", "trigmon spark archive show\ntrigmon spark archive show --output json", archive)
@_data
def show(data: str | None) -> None:
    """Show each archive: for which Java, how large, how old, and whether jobs started here now would use it."""
    from trigmon.cli import output
    from trigmon.launch.spark.cold.class_archive import key

    archives = _archives(data)
    wanted = _found(archives, key)
    rows = [_row(archives, note, wanted) for note in archives.notes()]
    if not output.listing(rows, _COLUMNS):
        output.note("there is no archive: the monitor makes one after the next run, or use trigmon spark archive make")


@command("make", "trigmon spark archive make --data /var/lib/trigmon-monitor/QM1", archive)
@_data
@click.option("--again", is_flag=True, help="Make it even if one that fits is there.")
@click.pass_context
def make(ctx: click.Context, data: str | None, again: bool) -> None:
    """Make the archive for the Java and the Spark that jobs started here would use; about half a minute."""
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED
    from trigmon.launch.launch_plan import LaunchError
    from trigmon.launch.spark.cold import make_archive
    from trigmon.launch.spark.cold.class_archive import key

    archives = _archives(data)
    try:
        home, java = _spark(archives)
    except LaunchError as error:
        raise click.ClickException(str(error)) from None
    if archives.usable(key(home, java)) and not again:
        output.done("there is one that fits", {"action": "none", "key": key(home, java)})
        return
    note = make_archive.make(archives, home, java)
    if note is None:
        output.note("trigmon: another process is making one")
        ctx.exit(FAILED)
    if note.failed:
        output.note(f"trigmon: {note.failed}")
        ctx.exit(FAILED)
    output.done(
        f"made in {note.took_s:g} s: {archives.file(note.key)}, {size(note.size)}",
        {"action": "made", "key": note.key, "size": note.size, "took_s": note.took_s},
    )


@command("remove", "trigmon spark archive remove", archive)
@_data
def remove(data: str | None) -> None:
    """Remove all archives and the records of failures; jobs that run keep the archive that they use."""
    from trigmon.cli import output

    archives = _archives(data)
    freed = sum(archives.remove(note.key) for note in archives.notes())
    output.done(f"{size(freed)} are free again", {"action": "removed", "bytes": freed})


def _archives(data: str | None) -> Archives:
    from trigmon.launch.spark.cold.class_archive import Archives

    return Archives(invocation().settings(qmgr__data=data).qmgr.directory / "java")


def _spark(archives: Archives) -> tuple[Path, Any]:
    import os

    from trigmon.launch.spark.cold.java import find_java
    from trigmon.launch.spark.cold.submit import spark_home

    return spark_home(os.environ), find_java(archives.directory)


def _found(archives: Archives, key: Callable[[Path, Any], str]) -> str:
    """Returns the key of what jobs started here would use; "" where no job could be."""
    from trigmon.launch.launch_plan import LaunchError

    try:
        return key(*_spark(archives))
    except (LaunchError, OSError):
        return ""


def _row(archives: Archives, note: Note, wanted: str) -> dict[str, Any]:
    usable = archives.usable(note.key) is not None
    state = "failed" if note.failed else "damaged" if not usable else "used" if note.key == wanted else "other"
    age_s = max(0, time.time_ns() // 1_000_000 - note.made_ms) // 1000
    return {
        "key": note.key,
        "state": state,
        "java": f"{note.version} {note.image}",
        "size_mib": note.size >> 20,
        "age": f"{age_s // 86_400} d" if age_s >= 86_400 else f"{age_s // 60} min",
        "took_s": note.took_s,
        "made_ms": note.made_ms,
        "why": note.failed,
        "file": str(archives.file(note.key)),
    }
