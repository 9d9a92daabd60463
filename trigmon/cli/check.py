"""``trigmon check``: whether something is wrong, by exit status; with ``--store`` it verifies a store, or a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trigmon.cli.command import age, command, complete_names, invocation

_LEVELS = ("OK", "WARNING", "CRITICAL")


@command(
    "check",
    "trigmon check\n"
    "trigmon check --queue ORDERS --max-depth 1000 --max-age 5m\n"
    "trigmon check --store /var/lib/trigmon/QM1\n"
    "trigmon check --store QM1.backup --output json",
)
@click.option("--queue", shell_complete=complete_names("queue"), help="Only what concerns this local queue.")
@click.option("--max-depth", type=click.IntRange(min=0), help="With --queue: more messages are critical.")
@click.option("--max-age", "max_age_ms", callback=age, metavar="AGE", help="With --queue: an older one is critical.")
@click.option("--store", "place", type=click.Path(exists=True, path_type=Path), help="A data directory or a backup.")
@click.option("--repair", is_flag=True, help="Rebuild what can be rebuilt, and set aside what cannot; of a directory.")
@click.pass_context
def check(
    ctx: click.Context, queue: str | None, max_depth: int | None, max_age_ms: int, place: Path | None, repair: bool
) -> None:
    """Say in one line whether something needs attention: exit 0 if nothing does, 1 for a warning, 2 if it is critical.

    Critical is also a queue manager that does not answer. trigmon status lists everything.

    With --store, verify the data of a stopped queue manager, or a backup: checksums, indexes, references between rows.
    Nothing is changed without --repair. Each finding is a line; exit 1 if there is one. A backup is one file. To
    verify a queue manager that runs, back it up and check the backup.
    """
    if place is not None:
        if queue is not None:
            raise click.UsageError("--store verifies a whole store: without --queue")
        _check_store(ctx, place, repair=repair)
    elif repair:
        raise click.UsageError("--repair goes with --store")
    elif queue is None and (max_depth is not None or max_age_ms):
        raise click.UsageError("--max-depth and --max-age go with --queue")
    else:
        _check_health(ctx, queue, max_depth, max_age_ms)


def _check_health(ctx: click.Context, queue: str | None, max_depth: int | None, max_age_ms: int) -> None:
    from trigmon.cli import output
    from trigmon.console.error_text import sentence
    from trigmon.mq.errors import MQError, UnknownObjectName

    try:
        found = _found(queue, max_depth, max_age_ms)
    except UnknownObjectName:
        raise
    except MQError as error:
        found = [(2, sentence(error))]
    level = max((each for each, _ in found), default=0)
    texts = [text for each, text in sorted(found, key=lambda each: -each[0])]
    more = f"; and {len(texts) - 1} more: trigmon status" if len(texts) > 1 else ""
    text = f"{texts[0]}{more}" if texts else "nothing needs attention"
    output.done(f"{_LEVELS[level]}: {text}", {"level": _LEVELS[level].lower(), "found": texts})
    ctx.exit(level)


def _found(queue: str | None, max_depth: int | None, max_age_ms: int) -> list[tuple[int, str]]:
    """Returns what is wrong: 1 for a warning or 2 for what is critical, and a sentence."""
    from trigmon.mq.calls import QueueStatus, Status
    from trigmon.mq.errors import UnknownObjectName
    from trigmon.mq.replies import Listing, Values
    from trigmon.rules.attention import URGENT

    with invocation().connected() as qm:
        attention: list[dict[str, Any]] = qm.ask(Status(), Values).values["attention"]
        rows = [] if queue is None else qm.ask(QueueStatus(q_name=queue), Listing).rows
    if queue is not None and not rows:
        raise UnknownObjectName(queue)
    found = [
        (2 if each["kind"] in URGENT else 1, f"{each['name']}: {each['text']}".removeprefix(": "))
        for each in attention
        if queue is None or each["name"] == queue
    ]
    for row in rows:
        if max_depth is not None and row["current_q_depth"] > max_depth:
            found.append((2, f"{queue}: {row['current_q_depth']} messages, more than {max_depth}"))
        if max_age_ms and row["oldest_age_s"] * 1000 > max_age_ms:
            found.append((2, f"{queue}: its oldest message waits for {row['oldest_age_s']} s"))
    return found


def _check_store(ctx: click.Context, place: Path, *, repair: bool) -> None:
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
