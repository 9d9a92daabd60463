"""``trigmon schedule``: when programs are started without a put."""

from __future__ import annotations

import time

import click

from trigmon.cli.command import command, complete_names, group, invocation, reason_option

schedule_argument = click.argument("schedule", shell_complete=complete_names("SCHEDULE"))


@group("schedule", example="trigmon schedule list")
def schedule() -> None:
    """Schedules, which start programs at moments: list, show, define, alter, delete, pause, resume, run.

    Attributes are given as KEY=VALUE, by long name or MQSC word: cron="0 2 * * *", or every=15m.
    """


@command("list", "trigmon schedule list", schedule)
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the schedules: when, what is started, the next moment, and what came of the last.

    PATTERN is a name, or its beginning with * at the end.
    """
    from trigmon.cli import output
    from trigmon.cli.objects import rows
    from trigmon.console.schedule_text import with_next

    with invocation().connected() as qm:
        found = [with_next(row, _now_ms()) for row in rows(qm, "SCHEDULE", pattern)]
    columns = ["name", "when", "starts", "next_time", "last_moment_time", "outcome", "paused"]
    if not output.listing(found, columns, lambda row: row["not_started"]):
        output.note("there is no schedule" if pattern == "*" else f"no schedule is named {pattern}")


@command("show", "trigmon schedule show NIGHTLY", schedule)
@schedule_argument
def show(schedule: str) -> None:
    """Show every attribute of a schedule, and its next moment."""
    from trigmon.cli import output
    from trigmon.cli.objects import row
    from trigmon.console.schedule_text import with_next

    with invocation().connected() as qm:
        output.one(with_next(row(qm, "SCHEDULE", schedule), _now_ms()))


@command("run", "trigmon schedule run NIGHTLY", schedule)
@schedule_argument
def run(schedule: str) -> None:
    """Start what a schedule starts now, besides its moments, whatever its pause and only_if say."""
    from trigmon.cli import output
    from trigmon.cli.objects import row
    from trigmon.mq.calls import RunSchedule

    with invocation().connected() as qm:
        q_name = row(qm, "SCHEDULE", schedule)["q_name"]
        qm.call(RunSchedule(name=schedule, q_name=q_name))
    output.done(f"{schedule}: a trigger message was written; trigmon runs list", {"action": "run", "name": schedule})


def _now_ms() -> int:
    """Returns the wall clock's time: what schedules go by."""
    return time.time_ns() // 1_000_000


@command(
    "define",
    "trigmon schedule define NIGHTLY cron='0 2 * * *' timezone=Europe/Berlin queue=ORDERS only_if=messages",
    schedule,
)
@click.argument("schedule")
@click.argument("attributes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--like", default="", metavar="SCHEDULE", help="Take what is not named from this schedule.")
@click.option("--replace", is_flag=True, help="Replace one that exists: what is not named goes to its default.")
def define(schedule: str, attributes: tuple[str, ...], like: str, replace: bool) -> None:
    """Define a schedule."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    which = ObjectType.SCHEDULE
    objects.define(which, schedule, objects.attributes(which, schedule, attributes), replace=replace, like=like)


@command("alter", "trigmon schedule alter NIGHTLY missed=skip", schedule)
@schedule_argument
@click.argument("attributes", nargs=-1, required=True, metavar="KEY=VALUE...")
def alter(schedule: str, attributes: tuple[str, ...]) -> None:
    """Change the named attributes of a schedule and no others."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    with invocation().connected() as qm:
        objects.alter(qm, ObjectType.SCHEDULE, schedule, attributes)


@command("delete", "trigmon schedule delete NIGHTLY", schedule)
@schedule_argument
def delete(schedule: str) -> None:
    """Delete a schedule."""
    from trigmon.cli import objects

    with invocation().connected() as qm:
        objects.delete(qm, "SCHEDULE", schedule)


@command("pause", "trigmon schedule pause NIGHTLY --reason 'the other side is down'", schedule)
@schedule_argument
@reason_option
def pause(schedule: str, reason: str) -> None:
    """Let the moments of a schedule pass without a start, until it is resumed."""
    from trigmon.cli import pause as pausing

    pausing.pause("schedule", schedule, reason)


@command("resume", "trigmon schedule resume NIGHTLY", schedule)
@schedule_argument
def resume(schedule: str) -> None:
    """Start at the moments of a schedule again, from the next one on."""
    from trigmon.cli import pause as pausing

    pausing.resume("schedule", schedule)
