"""``trigmon explain``: what a put would meet now, condition by condition."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation, queue_argument

if TYPE_CHECKING:
    from trigmon.mq.calls import Explained

WOULD_NOT_FIRE = 10
_COLOURS = {"yes": "green", "NO": "red"}


@command("explain", "trigmon explain ORDERS\ntrigmon explain ORDERS --priority 5 --exit-status")
@queue_argument
@click.option("--priority", type=click.IntRange(0, 9), help="Of the message (default: the queue's).")
@click.option("--exit-status", is_flag=True, help="Exit 10 when the put would not fire.")
@click.pass_context
def explain(ctx: click.Context, queue: str, priority: int | None, exit_status: bool) -> None:
    """Show whether a put on QUEUE would write a trigger message now, and why.

    The verdict is the queue manager's own, the one a put would get. Nothing is put.
    """
    from trigmon.cli import output

    with invocation().connected() as qm:
        explained = qm.explain(queue, -1 if priority is None else priority)
    if invocation().is_json:
        click.echo(output.json_line(output.presentable(as_dict(explained))))
    else:
        for line in lines(explained):
            click.echo(line)
    if exit_status and not explained.fires:
        ctx.exit(WOULD_NOT_FIRE)


def lines(explained: Explained) -> Iterator[str]:
    """A verdict as text, its answers coloured, its evidence wrapped."""
    yield click.style(explained.headline, fg="green" if explained.fires else "red", bold=True)
    yield ""
    for condition in explained.conditions:
        holds = click.style(f"{condition.holds:<14}", fg=_COLOURS.get(condition.holds), bold=condition.holds == "NO")
        answer, *evidence = condition.lines()
        yield answer.replace(f"{condition.holds:<14}", holds, 1)
        for line in evidence:
            yield from wrap(line.strip(), width=100, initial_indent=" " * 22, subsequent_indent=" " * 24)


def as_dict(explained: Explained) -> dict[str, object]:
    """A verdict as JSON shows it."""
    import msgspec

    shown = msgspec.structs.asdict(explained)
    shown.pop("warning")
    shown["conditions"] = [msgspec.structs.asdict(condition) for condition in explained.conditions]
    return shown
