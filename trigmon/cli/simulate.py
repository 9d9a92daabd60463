"""``trigmon simulate``: runs scenarios of definitions and steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.bridge.seen_queue import SeenQueue


@command(
    "simulate",
    "trigmon simulate scenario.yaml\ntrigmon simulate --store sqlite --output json scenarios/*.yaml\n"
    "trigmon simulate --from display.txt change.yaml\ntrigmon simulate --from PAYMENTS@QM2 change.yaml",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--store",
    default="memory",
    show_default=True,
    metavar="memory|sqlite|postgres",
    help="The store of the simulation.",
)
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="FILE|QUEUE@QM",
    help="Begin as a real queue is: the output of DISPLAY, or what its queue manager shows.",
)
@click.pass_context
def simulate(ctx: click.Context, files: tuple[str, ...], store: str, places: tuple[str, ...]) -> None:
    """Run scenarios with the real rules and a simulated clock; no program is started.

    With --from each scenario begins with real queues as they are: definitions, number of messages, readers, monitors.
    FILE holds the output of runmqsc DISPLAY: QLOCAL, PROCESS and QMGR, each ALL, of the queue and its initiation queue.
    QUEUE@QM is asked itself, over the bridge QM of the settings. Nothing is changed there; a step with mqsc rehearses
    the change.

    Exit 0 when every expectation held, 1 when some did not, 2 when a file is no scenario.
    """
    from trigmon.cli import output
    from trigmon.simulate.run_files import play_files

    postgres = invocation().settings().store.postgres or "" if store == "postgres" else ""
    state = [seen for place in places for seen in _queues(place)]
    ctx.exit(play_files(files, store, invocation().output, click.echo, output.note, postgres, state))


def _queues(place: str) -> list[SeenQueue]:
    """Returns the real queues that a place leads to. Raises ClickException for a text that shows none."""
    if "@" in place and not Path(place).exists():
        from trigmon.bridge.remote_facts import look_at_queue
        from trigmon.cli.bridge_names import bridge_of, connected_bridge

        queue, _, there = place.partition("@")
        with connected_bridge(bridge_of(there)) as connection:
            return [look_at_queue(connection, queue)]
    from trigmon.bridge.displayed_queue import read_all_displayed

    found = read_all_displayed(Path(place))
    if not found:
        raise click.ClickException(f"{place}: it shows no local queue: DISPLAY QLOCAL(NAME) ALL")
    return found
