"""``trigmon watch``: directories whose files become messages."""

from __future__ import annotations

import click

from trigmon.cli.command import command, complete_names, group, invocation, reason_option

watch_argument = click.argument("watch", shell_complete=complete_names("WATCH"))


@group("watch", example="trigmon watch list")
def watch() -> None:
    """Watches, which put a message for each file in a directory: list, show, define, alter, delete, pause, resume.

    Attributes are given as KEY=VALUE, by long name or MQSC word: directory=/srv/in, quiet=30s.
    """


@command("list", "trigmon watch list", watch)
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the watches whose name is PATTERN, or begins with it when it ends in *."""
    from trigmon.cli.objects import show_list

    show_list("WATCH", pattern, ["name", "directory", "pattern", "q_name", "content", "paused"], system=True)


@command("show", "trigmon watch show INCOMING", watch)
@watch_argument
def show(watch: str) -> None:
    """Show every attribute of a watch."""
    from trigmon.cli.objects import show_one

    show_one("WATCH", watch)


@command("define", "trigmon watch define INCOMING directory=/srv/in pattern='*.csv' queue=ORDERS", watch)
@click.argument("watch")
@click.argument("attributes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--like", default="", metavar="WATCH", help="Take what is not named from this watch.")
@click.option("--replace", is_flag=True, help="Replace one that exists: what is not named goes to its default.")
def define(watch: str, attributes: tuple[str, ...], like: str, replace: bool) -> None:
    """Define a watch."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    which = ObjectType.WATCH
    objects.define(which, watch, objects.attributes(which, watch, attributes), replace=replace, like=like)


@command("alter", "trigmon watch alter INCOMING quiet=30s", watch)
@watch_argument
@click.argument("attributes", nargs=-1, required=True, metavar="KEY=VALUE...")
def alter(watch: str, attributes: tuple[str, ...]) -> None:
    """Change the named attributes of a watch and no others."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    with invocation().connected() as qm:
        objects.alter(qm, ObjectType.WATCH, watch, attributes)


@command("delete", "trigmon watch delete INCOMING", watch)
@watch_argument
def delete(watch: str) -> None:
    """Delete a watch."""
    from trigmon.cli import objects

    with invocation().connected() as qm:
        objects.delete(qm, "WATCH", watch)


@command("pause", "trigmon watch pause INCOMING --reason 'the other side is down'", watch)
@watch_argument
@reason_option
def pause(watch: str, reason: str) -> None:
    """Leave the files of a watch where they are, until it is resumed."""
    from trigmon.cli import pause as pausing

    pausing.pause("watch", watch, reason)


@command("resume", "trigmon watch resume INCOMING", watch)
@watch_argument
def resume(watch: str) -> None:
    """Put messages for files again, first for those that came meanwhile."""
    from trigmon.cli import pause as pausing

    pausing.resume("watch", watch)
