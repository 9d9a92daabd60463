"""``trigmon schedule``: when programs are started without a put."""

from __future__ import annotations

import click

from trigmon.cli.command import command, complete_names, group, invocation, reason_option

schedule_argument = click.argument("schedule", shell_complete=complete_names("SCHEDULE"))


@group("schedule", example="trigmon schedule list")
def schedule() -> None:
    """Schedules, which start programs at moments: list, show, define, alter, delete, pause, resume.

    Attributes are given as KEY=VALUE, by long name or MQSC word: cron="0 2 * * *", or every=15m.
    """


@command("list", "trigmon schedule list", schedule)
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the schedules whose name is PATTERN, or begins with it when it ends in *."""
    from trigmon.cli.objects import show_list

    show_list(
        "SCHEDULE", pattern, ["name", "cron", "every_s", "timezone", "q_name", "process_name", "paused"], system=True
    )


@command("show", "trigmon schedule show NIGHTLY", schedule)
@schedule_argument
def show(schedule: str) -> None:
    """Show every attribute of a schedule."""
    from trigmon.cli.objects import show_one

    show_one("SCHEDULE", schedule)


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
