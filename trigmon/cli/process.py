"""``trigmon process``: the definitions of the programs that a monitor starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, group, invocation, process_argument, reason_option

if TYPE_CHECKING:
    from trigmon.client.connection import Connection


@group("process", example="trigmon process show FLIGHTS.LOAD")
def process() -> None:
    """Process definitions: list, show, define, alter, delete, start, pause, resume.

    Attributes are given as KEY=VALUE, by long name (appl_type=spark) or MQSC word (APPLTYPE=SPARK).
    """


@command("list", "trigmon process list", process)
@click.argument("pattern", default="*")
@click.option("--system", is_flag=True, help="The SYSTEM processes too.")
def list_(pattern: str, system: bool) -> None:
    """List the processes whose name is PATTERN, or begins with it when it ends in *."""
    from trigmon.cli.objects import show_list

    show_list("PROCESS", pattern, ["name", "appl_type", "appl_id", "user_data", "instances", "paused"], system=system)


@command("show", "trigmon process show FLIGHTS.LOAD", process)
@process_argument
def show(process: str) -> None:
    """Show every attribute of a process."""
    from trigmon.cli.objects import show_one

    show_one("PROCESS", process)


@command("define", "trigmon process define LOAD appl_type=unix appl_id='/opt/shop/load.sh --all' instances=1", process)
@click.argument("process")
@click.argument("attributes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--like", default="", metavar="PROCESS", help="Take what is not named from this process.")
@click.option("--replace", is_flag=True, help="Replace one that exists: what is not named goes to its default.")
def define(process: str, attributes: tuple[str, ...], like: str, replace: bool) -> None:
    """Define a process. Its program gets no MQTMC2 as an argument unless TMCARG=YES asks for it."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    which = ObjectType.PROCESS
    values = objects.attributes(which, process, attributes)
    if not like:
        values.setdefault("tmc_argument", "no")
    objects.define(which, process, values, replace=replace, like=like)


@command("alter", "trigmon process alter LOAD instances=2", process)
@process_argument
@click.argument("attributes", nargs=-1, required=True, metavar="KEY=VALUE...")
def alter(process: str, attributes: tuple[str, ...]) -> None:
    """Change the named attributes of a process and no others."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    with invocation().connected() as qm:
        objects.alter(qm, ObjectType.PROCESS, process, attributes)


@command("delete", "trigmon process delete LOAD.OLD", process)
@process_argument
def delete(process: str) -> None:
    """Delete a process."""
    from trigmon.cli import objects

    with invocation().connected() as qm:
        objects.delete(qm, "PROCESS", process)


@command("pause", "trigmon process pause FLIGHTS.LOAD --reason 'a new version is being installed'", process)
@process_argument
@reason_option
def pause(process: str, reason: str) -> None:
    """Start no run of a process, for any queue, until it is resumed; a run that has started goes on."""
    from trigmon.cli import pause as pausing

    pausing.pause("process", process, reason)


@command("resume", "trigmon process resume FLIGHTS.LOAD", process)
@process_argument
def resume(process: str) -> None:
    """Start runs of a process again, first those that were held."""
    from trigmon.cli import pause as pausing

    pausing.resume("process", process)


@command("start", "trigmon process start FLIGHTS.LOAD", process)
@process_argument
@click.option(
    "--queue", "q_name", metavar="QUEUE", help="The queue of the run (default: the one that names the process)."
)
@click.option("--trigger-data", metavar="TEXT", help="TRIGDATA for this run (default: the queue's).")
@click.option("--initq", metavar="QUEUE", help="The initiation queue (default: the queue's).")
def start(process: str, q_name: str | None, trigger_data: str | None, initq: str | None) -> None:
    """Run a process now, without regard to the trigger conditions.

    A trigger message is put on the initiation queue. A monitor must read there, and it records the run as any other.
    The definition at the time when the monitor reads the message is used.
    """
    from trigmon.cli import objects, output
    from trigmon.console.actions import put_trigger_message

    with invocation().connected() as qm:
        definition = objects.row(qm, "PROCESS", process)
        if not definition["appl_id"]:
            problem = f"PROCESS({process}) has a blank APPLICID, so there is no program to start"
            raise click.UsageError(f"{problem}: trigmon process alter {process} APPLICID=PROGRAM")
        queue = _queue_of(qm, process, q_name)
        initiation_q = initq or queue["initiation_q_name"]
        if not initiation_q:
            raise click.UsageError(f"{queue['name']} names no initiation queue; give --initq")
        put_trigger_message(qm, definition, queue, initiation_q, trigger_data)
        monitors = objects.row(qm, "queue", initiation_q).get("open_input_count", 0)
        paused = objects.row(qm, "QLOCAL", queue["name"])["paused"] or definition["paused"]
    if not monitors:
        output.note(f"no monitor reads {initiation_q} now; the run begins when one does: trigmon monitor")
    if paused:
        output.note(f"it is held until it is resumed: {paused}")
    output.done(
        f"{process} is to run for {queue['name']}: see trigmon runs list",
        {"process_name": process, "q_name": queue["name"], "initiation_q_name": initiation_q},
    )


def _queue_of(qm: Connection, process: str, q_name: str | None) -> dict[str, Any]:
    from trigmon.cli import objects

    if q_name is not None:
        queue = objects.row(qm, "QLOCAL", q_name)
        if queue["process_name"] != process:
            problem = f"QLOCAL({q_name}) names process {queue['process_name'] or 'none'}, not {process}"
            raise click.UsageError(f"{problem}: trigmon queue alter {q_name} PROCESS={process}")
        return queue
    found = [row for row in objects.rows(qm, "QLOCAL") if row["process_name"] == process]
    if len(found) != 1:
        names = ", ".join(row["name"] for row in found) or "no queue"
        raise click.UsageError(f"{names} names process {process}; give --queue")
    return found[0]
