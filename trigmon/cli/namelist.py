"""``trigmon namelist``: lists of names that programs inquire."""

from __future__ import annotations

import click

from trigmon.cli.command import command, complete_names, group, invocation

namelist_argument = click.argument("namelist", shell_complete=complete_names("NAMELIST"))


@group("namelist", example="trigmon namelist list")
def namelist() -> None:
    """Namelists: names of objects, which programs inquire; list, show, define, alter, delete.

    Attributes are given as KEY=VALUE, by long name or MQSC word; names have commas between them.
    """


@command("list", "trigmon namelist list\ntrigmon namelist list 'NIGHTLY.*'", namelist)
@click.argument("pattern", default="*")
@click.option("--system", is_flag=True, help="Show SYSTEM objects too.")
def list_(pattern: str, system: bool) -> None:
    """List the namelists whose name is PATTERN, or begins with it when it ends in *."""
    from trigmon.cli.objects import show_list

    show_list("NAMELIST", pattern, ["name", "name_count", "names", "description"], system=system)


@command("show", "trigmon namelist show NIGHTLY.QUEUES", namelist)
@namelist_argument
def show(namelist: str) -> None:
    """Show every attribute of a namelist."""
    from trigmon.cli.objects import show_one

    show_one("NAMELIST", namelist)


@command("define", "trigmon namelist define NIGHTLY.QUEUES names=ORDERS,PAYMENTS", namelist)
@click.argument("namelist")
@click.argument("attributes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--like", default="", metavar="NAMELIST", help="Take what is not named from this namelist.")
@click.option("--replace", is_flag=True, help="Replace one that exists: what is not named goes to its default.")
def define(namelist: str, attributes: tuple[str, ...], like: str, replace: bool) -> None:
    """Define a namelist."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    which = ObjectType.NAMELIST
    objects.define(which, namelist, objects.attributes(which, namelist, attributes), replace=replace, like=like)


@command("alter", "trigmon namelist alter NIGHTLY.QUEUES names=ORDERS,PAYMENTS,RETURNS", namelist)
@namelist_argument
@click.argument("attributes", nargs=-1, required=True, metavar="KEY=VALUE...")
def alter(namelist: str, attributes: tuple[str, ...]) -> None:
    """Change the named attributes of a namelist and no others. The names that are given replace all of before."""
    from trigmon.cli import objects
    from trigmon.mq.enums import ObjectType

    with invocation().connected() as qm:
        objects.alter(qm, ObjectType.NAMELIST, namelist, attributes)


@command("delete", "trigmon namelist delete NIGHTLY.QUEUES", namelist)
@namelist_argument
def delete(namelist: str) -> None:
    """Delete a namelist."""
    from trigmon.cli import objects

    with invocation().connected() as qm:
        objects.delete(qm, "NAMELIST", namelist)
