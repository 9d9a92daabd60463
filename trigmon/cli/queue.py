"""``trigmon queue``: defines, shows and changes queues of every type."""

from __future__ import annotations

import click

from trigmon.cli.command import command, complete_names, group, invocation, queue_argument, reason_option

_COLUMNS = [
    *("name", "object_type", "current_q_depth", "open_input_count", "open_output_count"),
    *("trigger_control", "trigger_type", "process_name", "paused"),
]
SLICE = 256
"""Messages that the queue manager moves in one call."""
_STATUS = [
    *("name", "current_q_depth", "oldest_time", "uncommitted_msgs", "open_input_count", "open_output_count"),
    *("puts", "gets", "high_q_depth", "last_put_time", "last_get_time", "since_time"),
]
_COUNTS = [
    *("available_msgs", "uncommitted_puts", "uncommitted_gets", "expired_msgs", "expired_is_capped"),
    "qualifying_depth",
]


@group("queue", example="trigmon queue list 'ORDERS*'")
def queue() -> None:
    """Queues of every type: list, status, show, define, alter, delete, clear, move, pause, resume.

    Attributes are given as KEY=VALUE, by long name (trigger_type=first) or MQSC word (TRIGTYPE=FIRST); TRIGGER,
    NOTRIGGER and their like stand alone.
    """


@command("list", "trigmon queue list 'ORDERS*' --output json", queue)
@click.argument("pattern", default="*")
@click.option("--system", is_flag=True, help="The SYSTEM queues too.")
def list_(pattern: str, system: bool) -> None:
    """List the queues whose name is PATTERN, or begins with it when it ends in *."""
    from trigmon.cli.objects import show_list

    show_list("queue", pattern, _COLUMNS, system=system)


@command("status", "trigmon queue status\ntrigmon queue status 'ORDERS*' --reset --output json", queue)
@click.argument("pattern", default="*")
@click.option("--system", is_flag=True, help="The SYSTEM queues too.")
@click.option("--reset", is_flag=True, help="Count anew from now on; what is shown was counted until now.")
def status(pattern: str, system: bool, reset: bool) -> None:
    """Show the traffic of local queues: depth, oldest message, puts, gets and greatest depth since a moment.

    Counting begins with the queue manager. Messages that were backed out are counted too.
    """
    from trigmon.cli import output
    from trigmon.mq.calls import QueueStatus, ResetQueueStatistics
    from trigmon.mq.errors import UnknownObjectName
    from trigmon.mq.paging import all_rows

    call = ResetQueueStatistics(q_name=pattern) if reset else QueueStatus(q_name=pattern)
    with invocation().connected() as qm:
        rows = list(all_rows(qm.call, call))
    if not rows and "*" not in pattern:
        raise UnknownObjectName(pattern)
    is_meant = system or pattern.startswith("SYSTEM.")
    output.listing((row for row in rows if is_meant or not row["name"].startswith("SYSTEM.")), _STATUS)


@command("show", "trigmon queue show ORDERS", queue)
@queue_argument
def show(queue: str) -> None:
    """Show every attribute of a queue, and how many messages are on it and how they count."""
    from trigmon.cli import output
    from trigmon.cli.objects import row

    with invocation().connected() as qm:
        shown = row(qm, "queue", queue)
        values = qm.explain(queue).values if shown["object_type"] == "QLOCAL" else {}
    output.one(shown | {name: values[name] for name in _COUNTS if name in values})


@command(
    "define",
    "trigmon queue define ORDERS TRIGGER trigger_type=first process_name=LOAD \\\n"
    "    initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE def_persistence=persistent\n"
    "trigmon queue define ORDERS.ALIAS --alias-of ORDERS\n"
    "trigmon queue define TO.QM2 --type qremote RNAME=ORDERS RQMNAME=QM2 XMITQ=QM2.XMITQ\n"
    "trigmon queue define REPLIES.MODEL --type qmodel DEFTYPE=TEMPDYN",
    queue,
)
@click.argument("queue")
@click.argument("attributes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--alias-of", metavar="QUEUE", help="Define an alias of this queue instead of a local queue.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(["qlocal", "qalias", "qremote", "qmodel"]),
    help="The type of the queue; otherwise a local queue.",
)
@click.option("--like", default="", metavar="QUEUE", help="Take what is not named from this queue.")
@click.option("--replace", is_flag=True, help="Replace a queue that exists: what is not named goes to its default.")
def define(
    queue: str, attributes: tuple[str, ...], alias_of: str | None, kind: str | None, like: str, replace: bool
) -> None:
    """Define a local queue, an alias, a remote queue or a model queue."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    if alias_of is not None and kind not in (None, "qalias"):
        raise click.UsageError(f"--alias-of defines an alias, not a {kind}")
    which = ObjectType.QALIAS if alias_of is not None else ObjectType[(kind or "qlocal").upper()]
    words = attributes if alias_of is None else (f"base_q_name={alias_of}", *attributes)
    objects.define(which, queue, objects.attributes(which, queue, words), replace=replace, like=like)


@command("alter", "trigmon queue alter ORDERS TRIGGER TRIGDPTH=50", queue)
@queue_argument
@click.argument("attributes", nargs=-1, required=True, metavar="KEY=VALUE...")
def alter(queue: str, attributes: tuple[str, ...]) -> None:
    """Change the named attributes of a queue and no others."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    with invocation().connected() as qm:
        which = ObjectType[objects.row(qm, "queue", queue)["object_type"]]
        objects.alter(qm, which, queue, attributes)


@command("delete", "trigmon queue delete ORDERS.OLD", queue)
@queue_argument
@click.option("--purge", is_flag=True, help="Delete the messages on it too.")
def delete(queue: str, purge: bool) -> None:
    """Delete a queue; refused while it is open, or holds messages."""
    from trigmon.cli import objects

    with invocation().connected() as qm:
        objects.delete(qm, objects.row(qm, "queue", queue)["object_type"], queue, purge=purge)


@command("clear", "trigmon queue clear ORDERS.TEST", queue)
@queue_argument
def clear(queue: str) -> None:
    """Delete every message of a queue; refused while it is open or has uncommitted messages."""
    from trigmon.cli import output
    from trigmon.mq.calls import Clear
    from trigmon.mq.replies import Counted

    count = 0
    with invocation().connected() as qm:
        while True:
            counted = qm.ask(Clear(q_name=queue), Counted)
            count += counted.count
            if not counted.more:
                break
    output.done(f"{count} messages deleted from {queue}", {"q_name": queue, "messages": count})


@command("move", "trigmon queue move ORDERS.FAILED ORDERS --count 100", queue)
@queue_argument
@click.argument("to", shell_complete=complete_names("queue"))
@click.option("--count", type=click.IntRange(min=1), help="At most so many; otherwise all that are there.")
def move(queue: str, to: str, count: int | None) -> None:
    """Move messages to another queue, oldest first, in slices that are each done whole or not at all."""
    from trigmon.cli import output
    from trigmon.cli.objects import row
    from trigmon.mq.calls import Move
    from trigmon.mq.replies import Counted

    moved = 0
    with invocation().connected() as qm:
        # Messages that are put meanwhile are left out: on a busy queue the command would never end.
        left = min(count or 1 << 62, row(qm, "queue", queue).get("current_q_depth", 1 << 62))
        while True:
            # An empty queue is asked too: a user without the right, or an unknown target, is an error, not "0 moved".
            counted = qm.ask(Move(q_name=queue, to_q_name=to, count=max(1, min(left, SLICE))), Counted)
            moved += counted.count
            left -= counted.count
            if left <= 0 or not counted.more:
                break
    output.done(f"{moved} messages moved from {queue} to {to}", {"q_name": queue, "to_q_name": to, "messages": moved})


_everything = click.option(
    "--all", "everything", is_flag=True, help="Everything that is triggered at this queue manager."
)


@command(
    "pause",
    "trigmon queue pause ORDERS --reason 'the database is down'\ntrigmon queue pause --all --reason upkeep",
    queue,
)
@click.argument("queue", required=False, shell_complete=complete_names("queue"))
@_everything
@reason_option
def pause(queue: str | None, everything: bool, reason: str) -> None:
    """Start no program for QUEUE until it is resumed; the user, the time and the reason are shown by other commands.

    Puts and gets go on, and trigger messages are written. The runs that they ask for are held, and started at resume.
    A run that has started goes on; trigmon runs cancel ends it.
    """
    from trigmon.cli import pause as pausing

    pausing.pause(*_meant(queue, everything), reason)


@command("resume", "trigmon queue resume ORDERS\ntrigmon queue resume --all", queue)
@click.argument("queue", required=False, shell_complete=complete_names("queue"))
@_everything
def resume(queue: str | None, everything: bool) -> None:
    """Start programs for QUEUE again, held runs first; --all ends the pause that was made by --all, and no other."""
    from trigmon.cli import pause as pausing

    pausing.resume(*_meant(queue, everything))


def _meant(queue: str | None, everything: bool) -> tuple[str, str]:
    if everything is (queue is not None):
        raise click.UsageError("give a QUEUE, or --all for everything")
    return ("everything", "") if queue is None else ("queue", queue)
