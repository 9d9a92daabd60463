"""``trigmon spark``: what Spark jobs have of the queue manager, what an operator may take from them, their archives."""

from __future__ import annotations

import click

from trigmon.cli.archive import archive
from trigmon.cli.command import command, complete_names, group, invocation

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
    """What Spark jobs have reserved, and what they start from."""


@group("reservations", example="trigmon spark reservations list --queue FLIGHTS.IN")
def reservations() -> None:
    """Batches of messages that jobs have reserved: list, release.

    A reservation outlives its job: the next job of the same consumer is given the same batch. One whose consumer will
    not come again keeps its messages from everybody until it is released.
    """


spark.add_command(reservations)
spark.add_command(archive)


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
@click.option("--force", is_flag=True, help="Also what a running job holds; it cannot settle it then.")
@click.pass_context
def release(ctx: click.Context, numbers: tuple[int, ...], no_count: bool, force: bool) -> None:
    """Give reserved messages back to their queue, each to its place, for whoever gets them next.

    A job that has written them somewhere and not settled them yet has written them for nothing: release what no job
    will settle. Nothing is triggered by it, as nothing is by a backout.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import exit_code, sentence
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
            said = "was given back already" if done.already else f"{done.count} messages are back on their queue"
            output.done(f"{number}: {said}", {"action": "released", "reservation": number, "messages": done.count})
    ctx.exit(code)
