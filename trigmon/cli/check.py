"""``trigmon check --store``: verifies a store, or a backup, without changing it."""

from __future__ import annotations

from pathlib import Path

import click

from trigmon.cli.command import command


@command("check", "trigmon check --store /var/lib/trigmon/QM1\ntrigmon check --store QM1.backup --output json")
@click.option(
    "--store",
    "place",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="A data directory or a backup.",
)
@click.option("--repair", is_flag=True, help="Rebuild what can be rebuilt, and set aside what cannot; of a directory.")
@click.pass_context
def check(ctx: click.Context, place: Path, repair: bool) -> None:
    """Verify the data of a stopped queue manager, or a backup: checksums, indexes, references between rows.

    Nothing is changed without --repair. Each finding is a line; exit 1 if there is one. A backup is one file. To
    verify a queue manager that runs, back it up and check the backup.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED
    from trigmon.files import act_as_owner
    from trigmon.store.port import DirectoryInUse, StoreBroken, StoreLost
    from trigmon.store.sqlite.store import FILE_NAME
    from trigmon.store.sqlite.store_check import check_backup, check_directory, repair_directory

    if repair and not place.is_dir():
        raise click.UsageError("--repair is for a data directory; restore --accept-damage takes a damaged backup")
    try:
        if repair:
            act_as_owner(place)
            for text in repair_directory(place):
                output.done(f"repaired: {text}", {"repaired": text})
        count = 0
        for finding in check_directory(place / FILE_NAME) if place.is_dir() else check_backup(place):
            output.done(finding, {"finding": finding})
            count += 1
    except DirectoryInUse as error:
        remedy = "stop it, or back it up and check the backup"
        raise click.ClickException(f"{error}: {remedy}") from None
    except (StoreLost, StoreBroken) as error:
        raise click.ClickException(str(error)) from None
    if count:
        remedy = "restore a backup, or give --repair" if place.is_dir() and not repair else "restore a backup"
        output.note(f"trigmon: {place} is damaged: {remedy}")
        ctx.exit(FAILED)
    output.note(f"{place} is whole")
