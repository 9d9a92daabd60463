"""``trigmon bridge check``: whether a bridge can work with the user's own queue manager, a line a check."""

from __future__ import annotations

import click

from trigmon.cli.command import command, invocation

_COLOURS = {"ok": "green", "failed": "red", "not tried": "yellow"}


@command(
    "check",
    "trigmon bridge check PROD\ntrigmon bridge check PROD --output json --timeout 20",
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
@click.pass_context
def check(ctx: click.Context, name: str, timeout_s: float) -> None:
    """Connect to the queue manager of bridge NAME and try what the bridge needs: ok, failed or not tried, and a remedy.

    It opens the initiation queues for input and browse, the dead-letter queue for output, asks the command server and
    compares the clocks. NAME may also be the queue manager. No message is taken. Where nobody reads an initiation
    queue, its opening lets MQ write trigger messages for queues with messages, as the start of a monitor does.

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
        for one in check_bridge(connection, timeout_s):
            failed += one.outcome is Outcome.FAILED
            outcome = click.style(f"{one.outcome.value:<10}", fg=_COLOURS[one.outcome.value])
            text = f"{outcome}{one.what}: {one.seen}" + (f"\n{'':10}remedy: {one.remedy}" if one.remedy else "")
            shown = {"check": one.what, "outcome": one.outcome.value, "seen": one.seen, "remedy": one.remedy}
            output.done(text, shown)
    finally:
        connection.drop()
    if failed:
        ctx.exit(1)
