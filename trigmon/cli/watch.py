"""``trigmon watch``: directories whose files become messages."""

from __future__ import annotations

import click

from trigmon.cli.command import command, complete_names, group, invocation, reason_option

watch_argument = click.argument("watch", shell_complete=complete_names("WATCH"))


@group("watch", example="trigmon watch list")
def watch() -> None:
    """Watches: a message for each file in a directory; list, show, define, alter, delete, pause, resume, serve.

    Attributes are given as KEY=VALUE, by long name or MQSC word: directory=/srv/in, quiet=30s.
    """


@command("list", "trigmon watch list", watch)
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the watches whose name is PATTERN, or begins with it when it ends in *, and how they are."""
    from trigmon.cli.objects import show_list

    columns = ["name", "state", "directory", "q_name", "files_waiting", "files_taken", "last_put_time", "problem"]
    show_list("WATCH", pattern, columns, system=True)


@command("show", "trigmon watch show INCOMING", watch)
@watch_argument
def show(watch: str) -> None:
    """Show a watch: every attribute, what waits, the last file and what hinders it."""
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


@command("serve", "trigmon watch serve", watch)
def serve() -> None:
    """Serve the watches until Ctrl-C: put the messages, and move the files.

    trigmon run does this itself unless the setting server.watches is false. One process serves all watches of a queue
    manager. Its user reads and moves the files, and is an administrator.
    """
    from trigmon import log
    from trigmon.keeper.private_memory import keep_memory_private
    from trigmon.watches.service import run

    keep_memory_private()
    ours = invocation()
    ours.announce_config()
    settings = ours.settings()
    log.configure(settings.log.level, settings.log.format)
    log.say_always(qmgr=settings.qmgr.name)
    run(ours.qmgr)
