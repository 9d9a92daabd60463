"""``trigmon spark``: the reservations of Spark jobs, their tables, and class data archives for their start."""

from __future__ import annotations

import click

from trigmon.cli.archive import archive
from trigmon.cli.command import command, complete_names, group, invocation
from trigmon.cli.compact import compact

_COLUMNS = [
    "reservation",
    "q_name",
    "consumer",
    "left",
    "count",
    "offers",
    "held",
    "readers",
    "since_time",
    "user",
    "by",
]


@group("spark", example="trigmon spark reservations list")
def spark() -> None:
    """Reservations of Spark jobs, tables of files, and class data archives for their start."""


@group("reservations", example="trigmon spark reservations list --queue FLIGHTS.IN")
def reservations() -> None:
    """Batches of messages that jobs have reserved: list, release.

    A reservation stays when its job ends: the next job of the same consumer gets the same batch. If no job of that
    consumer starts again, no other consumer gets the messages until the reservation is released.
    """


spark.add_command(reservations)
spark.add_command(archive)
spark.add_command(compact)


@command("list", "trigmon spark reservations list\ntrigmon spark reservations list --output json", reservations)
@click.option(
    "--queue",
    "q_name",
    metavar="QUEUE",
    default="*",
    shell_complete=complete_names("queue"),
    help="Of this queue.",
)
def list_(q_name: str) -> None:
    """List reservations of which anything is left, by queue and consumer."""
    from trigmon.cli import output

    with invocation().connected() as qm:
        found = qm.reservations(q_name)
    if not output.listing(found, _COLUMNS):
        output.note("nothing is reserved")


@command("release", "trigmon spark reservations release 4711", reservations)
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(min=1, max=2**63 - 1), metavar="RESERVATION...")
@click.option("--no-count", is_flag=True, help="Leave the backout counts as they were before it was reserved.")
@click.option(
    "--force", is_flag=True, help="Release it even if a running job holds it; that job cannot settle it then."
)
@click.pass_context
def release(ctx: click.Context, numbers: tuple[int, ...], no_count: bool, force: bool) -> None:
    """Return reserved messages to their places on the queue, where any consumer may get them.

    The messages are delivered again even if a job has written their results and not settled them yet. Release only
    what no job will settle. As a backout, a release triggers nothing.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import exit_code
    from trigmon.console.error_text import sentence
    from trigmon.mq.calls import Release
    from trigmon.mq.errors import CommandFailed, MQError
    from trigmon.mq.replies import Settled

    code = 0
    with invocation().connected() as qm:
        held = {row["reservation"]: row["by"] for row in qm.reservations() if row["held"]}
        for number in numbers:
            try:
                if number in held and not force:
                    raise CommandFailed(f"RESERVATION({number}) is held by {held[number]}; --force takes it from there")
                done = qm.ask(Release(reservation=number, counts=not no_count), Settled)
            except MQError as error:
                if not qm.alive:
                    raise
                output.note(f"trigmon: {sentence(error)}")
                code = code or exit_code(error)
                continue
            result = "was released already" if done.already else f"{done.count} messages are back on their queue"
            output.done(f"{number}: {result}", {"action": "released", "reservation": number, "messages": done.count})
    ctx.exit(code)
