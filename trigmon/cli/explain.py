"""``trigmon explain``: whether a put would trigger now, condition by condition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation, queue_argument

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.mq.explanation import Explanation
    from trigmon.mq.replies import Explained

WOULD_NOT_FIRE = 10
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COLOURS = {"yes": "green", "NO": "red", "not seen": "yellow"}


@command(
    "explain",
    "trigmon explain ORDERS\ntrigmon explain ORDERS --why-not\ntrigmon explain ORDERS --priority 5 --exit-status\n"
    "trigmon explain ORDERS --with TRIGTYPE=DEPTH --with TRIGDPTH=50\ntrigmon explain ORDERS --as alice\n"
    "trigmon explain PAYMENTS@QM2\ntrigmon explain PAYMENTS --display display.txt --with TRIGTYPE=EVERY",
)
@queue_argument
@click.option("--priority", type=click.IntRange(0, 9), help="Of the message (default: the queue's).")
@click.option("--why-not", is_flag=True, help="Show the last verdict for a put, a close, a change and so on.")
@click.option("--exit-status", is_flag=True, help="Exit 10 when the put would not fire, or the user may not.")
@click.option("--as", "user", metavar="USER", help="Show what this user may do with QUEUE, and why not.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="With --as: a group of that user besides.")
@click.option("--with", "words", multiple=True, metavar="KEY=VALUE", help="As if the queue had this attribute.")
@click.option("--display", type=_FILE, metavar="FILE", help="Take QUEUE from the output of runmqsc's DISPLAY.")
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    queue: str,
    exit_status: bool,
    user: str | None,
    groups: tuple[str, ...],
    display: Path | None,
    **put: Any,
) -> None:
    """Show whether a put on QUEUE would write a trigger message now, and why, and what else feeds or starts it.

    Its schedules are shown with their next moment, the watches that put files' messages to it with how they are.

    QUEUE may also be the name of a schedule: then its next moment is shown, and what came of the last.

    The verdict is the queue manager's own, the one a put would get. Nothing is put. With --why-not: the last verdict
    for each kind of event of QUEUE since the queue manager started, with its application and its time.

    --with rehearses a change of a local queue: the verdict of a put after it, and whether the change itself would
    write a trigger message. Nothing is changed.

    QUEUE@QM is a queue of a queue manager elsewhere, QM a bridge of the settings or its queue manager. Each of the
    fourteen conditions is shown as it is there, or as not seen with the reason; behind them stands what this side
    says: whether the bridge reads its initiation queue, the process here, its last runs. With --display, QUEUE is taken
    from a file with the output of runmqsc's DISPLAY instead: QLOCAL, QSTATUS, PROCESS, QMGR, each ALL.

    --as shows the rights of a user instead, as the queue manager decides: the groups are those of this machine's user
    database, of an account of TLS, and of --group.
    """
    if "@" in queue or display is not None:
        if user is not None or put["why_not"]:
            raise click.UsageError("--as and --why-not are about a queue of this queue manager")
        from trigmon.cli.explain_elsewhere import explain_elsewhere

        as_asked = explain_elsewhere(queue, put["priority"], put["words"], display)
    elif user is None:
        as_asked = _explain_put(queue, **put)
    else:
        from trigmon.cli.rights import explain_user

        as_asked = explain_user(queue, user, groups)
    if exit_status and not as_asked:
        ctx.exit(WOULD_NOT_FIRE)


def _explain_put(queue: str, priority: int | None, why_not: bool, words: tuple[str, ...]) -> bool:
    """Prints the verdict on a put, and returns whether it would fire."""
    from trigmon.cli import output
    from trigmon.cli.objects import rows

    if words and why_not:
        raise click.UsageError("--with is about a put to come, --why-not about what has happened: not both")
    given = -1 if priority is None else priority
    with invocation().connected() as qm:
        if words:
            from trigmon.cli.objects import attributes
            from trigmon.mq.enums import ObjectType

            explained = qm.rehearse(queue, given, **attributes(ObjectType.QLOCAL, queue, words))
        else:
            if (about := _schedule(qm, queue)) is not None:
                _print_schedules([about])
                return True
            explained = qm.explain(queue, given, why_not=why_not)
        schedules = [row for row in rows(qm, "SCHEDULE") if row["q_name"] == explained.q_name]
        watches = [row for row in rows(qm, "WATCH") if row["q_name"] in (queue, explained.q_name)]
    if invocation().is_json:
        shown = {**as_dict(explained), "schedules": schedules, "watches": watches}
        click.echo(output.json_line(output.presentable(shown)))
    else:
        for line in looks(explained) if why_not else lines(explained):
            click.echo(line)
        _print_schedules(schedules)
        _print_watches(watches)
    return bool(explained.fires)


def _schedule(qm: Connection, name: str) -> dict[str, Any] | None:
    """Returns the schedule of this name, where no queue has it."""
    from trigmon.cli.objects import rows

    named = next((row for row in rows(qm, "SCHEDULE", f"{name}*") if row["name"] == name), None)
    return named if named is not None and not any(row["name"] == name for row in rows(qm, "queue", name)) else None


def _print_schedules(found: list[dict[str, Any]]) -> None:
    from trigmon.cli import output
    from trigmon.console.schedule_text import lines, with_next

    wall_ms = time.time_ns() // 1_000_000
    for row in found:
        if invocation().is_json:
            output.one(with_next(row, wall_ms))
            continue
        click.echo()
        for line in lines(row, wall_ms):
            click.echo(line)


def _print_watches(found: list[dict[str, Any]]) -> None:
    from trigmon.console.watch_text import line

    for row in found:
        click.echo(f"\n{line(row)}")


def lines(explained: Explained) -> Iterator[str]:
    """Yields a verdict as lines of text, coloured and wrapped."""
    yield headline(explained)
    if "saving" in explained.values:
        yield saving(explained)
    yield from _beside(explained)
    yield ""
    yield from explained.counts()
    yield ""
    for condition in explained.conditions:
        yield from condition_lines(condition)


def saving(explained: Explained) -> str:
    """Returns what a rehearsed change itself would do, as a sentence."""
    verdict = explained.values["saving"]
    if verdict["fires"] is None:
        return "Whether the change itself would write a trigger message could not be seen."
    if not verdict["fires"]:
        return "The change itself would write no trigger message."
    return f"The change itself would write a trigger message (by condition {verdict['occasion']})."


def looks(explained: Explained) -> Iterator[str]:
    """Yields the last verdicts as lines of text, and after them the verdict for a put now."""
    if not explained.last:
        yield from explained.looks()
    for look in explained.last:
        yield click.style(look.headline, fg="green" if look.fires and not look.fate else "red", bold=True)
        if look.repeated:
            yield look.repeated
        for condition in look.failing:
            yield from condition_lines(condition)
        yield ""
    yield headline(explained)
    yield from _beside(explained)


def headline(explained: Explained) -> str:
    """Returns the verdict in one coloured sentence."""
    return click.style(explained.headline, fg="green" if explained.fires else "red", bold=True)


def _beside(explained: Explained) -> Iterator[str]:
    """Yields what stands beside the verdict: who paused it, and that its last run took nothing."""
    for line in (*explained.paused(), *explained.idle()):
        yield click.style(line, fg="yellow")


def condition_lines(condition: Explanation) -> Iterator[str]:
    """Yields a condition as lines of text, coloured and wrapped."""
    holds = click.style(f"{condition.holds:<14}", fg=_COLOURS.get(condition.holds), bold=condition.holds == "NO")
    answer, *evidence = condition.lines()
    yield answer.replace(f"{condition.holds:<14}", holds, 1)
    for line in evidence:
        yield from wrap(line.strip(), width=100, initial_indent=" " * 22, subsequent_indent=" " * 24)


def as_dict(explained: Explained) -> dict[str, object]:
    """Returns a verdict as JSON shows it."""
    import msgspec

    shown = msgspec.structs.asdict(explained)
    shown.pop("warning")
    shown["conditions"] = [msgspec.structs.asdict(condition) for condition in explained.conditions]
    shown["last"] = [
        msgspec.structs.asdict(look) | {"conditions": [msgspec.structs.asdict(c) for c in look.conditions]}
        for look in explained.last
    ]
    return shown
