"""``trigmon top``: a full-screen console."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

CALL_TIMEOUT_S = 15.0
"""A call that has no answer so long ends the connection, which is then made again."""


@command("top", "trigmon top\ntrigmon top --every 5")
@click.option("--every", "every_s", type=click.FloatRange(min=0.2), default=2.0, show_default=True, help="Seconds.")
def top(every_s: float) -> None:
    """Show what happens, full-screen: what needs attention, queues, what runs; keys act on the line of the cursor.

    l logs, e explain, p pause, r resume, s start, x cancel, d dead letters, tab the next table, q quit. 100 columns
    suffice. Counts of runs are of the last 24 hours. Without a terminal, use trigmon status.
    """
    from trigmon.client.address import connect

    try:
        from trigmon.console.top import Top
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("textual", "rich"):
            raise
        raise click.ClickException("the console needs Textual: pip install 'trigmon[console]'") from None
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("trigmon top needs a terminal; trigmon status --output json is for programs")
    address = invocation().qmgr

    def connected() -> Connection:
        return connect(
            address, application="trigmon top", timeout_s=5.0, call_timeout_s=CALL_TIMEOUT_S, reconnect_s=0.0
        )

    with invocation().connected():
        pass  # a queue manager that is not there is an error of this command, and not of the screen
    console = Top(connected, every_s)
    console.run()
    click.get_current_context().exit(console.return_code or 0)
