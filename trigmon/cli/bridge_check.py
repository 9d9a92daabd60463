"""``trigmon bridge check``: whether a bridge can work with the user's own queue manager, a line a check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.bridge.checks import Checked
    from trigmon.bridge.connection import RemoteConnection

_STEP_S = 60.0
_COLOURS = {"ok": "green", "failed": "red", "not tried": "yellow"}


@command(
    "check",
    "trigmon bridge check PROD\ntrigmon bridge check PROD --output json --timeout 20\ntrigmon bridge check PLAY --play",
)
@click.argument("name", metavar="NAME")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1, max=600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest wait for an answer of the command server.",
)
@click.option("--play", "plays", is_flag=True, help="Put 20 messages there: each must start a program here once.")
@click.pass_context
def check(ctx: click.Context, name: str, timeout_s: float, plays: bool) -> None:
    """Connect to the queue manager of bridge NAME and try what the bridge needs: ok, failed or not tried, and a remedy.

    It opens the initiation queues for input and browse, the dead-letter queue for output, asks the command server and
    compares the clocks. NAME may also be the queue manager. No message is taken. Where nobody reads an initiation
    queue, its opening lets MQ write trigger messages for queues with messages, as the start of a monitor does.

    --play tries the whole way with the running monitor instead: 20 messages for queue TRIGMON.PLAY there, which
    config/ibm-mq/play.mqsc defines; each has one run here of process TRIGMON.PLAY; bad trigger messages become dead
    letters there. config/ibm-mq/play.sh does all of it, with IBM's image for developers in a container.

    Exit 0 when no check failed, else 1.
    """
    from trigmon.bridge.checks import Outcome, check_bridge
    from trigmon.bridge.connection import RemoteConnection
    from trigmon.cli import output
    from trigmon.cli.bridge_names import bridge_of

    settings = invocation().settings()
    which = bridge_of(name)
    secrets = settings.monitor.secrets_directory
    connection = RemoteConnection(which, settings.bridges[which], secrets, application="trigmon bridge check")
    failed = 0
    try:
        for one in _played(connection, which) if plays else check_bridge(connection, timeout_s):
            failed += one.outcome is Outcome.FAILED
            outcome = click.style(f"{one.outcome.value:<10}", fg=_COLOURS[one.outcome.value])
            text = f"{outcome}{one.what}: {one.seen}" + (f"\n{'':10}remedy: {one.remedy}" if one.remedy else "")
            shown = {"check": one.what, "outcome": one.outcome.value, "seen": one.seen, "remedy": one.remedy}
            output.done(text, shown)
    finally:
        connection.drop()
    if failed:
        ctx.exit(1)


def _played(connection: RemoteConnection, which: str) -> Iterator[Checked]:
    """Yields the steps of a play with the monitor of this side."""
    from trigmon.bridge.play import PROCESS, play
    from trigmon.mq.calls import Runs
    from trigmon.mq.replies import Listing

    with invocation().connected() as qm:
        where = {"process_name": PROCESS, "bridge": which}
        yield from play(connection, lambda: qm.ask(Runs(where=where), Listing).rows, _STEP_S)
