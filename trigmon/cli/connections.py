"""``trigmon connections``: who is connected, and the end of a connection."""

from __future__ import annotations

import click

from trigmon.cli.command import command, group, invocation

_COLUMNS = ["connection", "application", "user", "pid", "run_id", "since_time", "open", "in_unit"]


@group("connections", example="trigmon connections list")
def connections() -> None:
    """The connections of applications to the queue manager: list, end."""


@command("list", "trigmon connections list\ntrigmon connections list --queue ORDERS --output json", connections)
@click.option("--queue", metavar="QUEUE", help="Only those that have this queue open.")
def list_(queue: str | None) -> None:
    """List who is connected, the oldest first: since when, what is open, and whether a unit of work is."""
    from trigmon.cli import output
    from trigmon.mq.calls import DisplayConnections
    from trigmon.mq.paging import all_rows

    with invocation().connected() as qm:
        rows = list(all_rows(qm.call, DisplayConnections()))
    shown = [row for row in rows if queue is None or queue in row["open"]]
    if not output.listing(shown, _COLUMNS):
        output.note(f"nobody has {queue} open")


@command("end", "trigmon connections end 4711", connections)
@click.argument("connection", type=click.IntRange(min=1))
def end(connection: int) -> None:
    """End the connection of this number, as list shows it; its unit of work is backed out.

    A program that a monitor started connects again by itself: to end the program, cancel its run.
    """
    from trigmon.cli import output
    from trigmon.mq.calls import EndConnection
    from trigmon.mq.replies import Done

    with invocation().connected() as qm:
        qm.ask(EndConnection(connection=connection), Done)
    output.done(f"connection {connection} is ended", {"connection": connection, "action": "ended"})
