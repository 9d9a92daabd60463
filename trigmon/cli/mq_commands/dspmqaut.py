"""``dspmqaut``: the rights of a user, of all its groups together, or of a group on an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import object_authority
from trigmon.cli.mq_commands.mq_options import connected
from trigmon.cli.mq_commands.object_authority import Asked, RefusedError
from trigmon.mq.errors import MQError, UnknownObjectName
from trigmon.mq.rights import SELF, Right, rights_explained, rights_of_group

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

_ORDER = (
    *(Right.GET, Right.BROWSE, Right.PUT, Right.INQ, Right.SET, Right.CRT, Right.DLT, Right.CHG, Right.DSP),
    *(Right.CLR, Right.CTRL),
)
"""The order in which MQ prints rights."""


def dspmqaut(arguments: Sequence[str]) -> int:
    """Prints the rights; the statuses are MQ's."""
    try:
        asked = object_authority.asked(arguments)
        if asked.rights or len(asked.who) > 1:
            raise RefusedError(object_authority.INVALID_ARGUMENTS, "it takes one -p or -g, and no rights")
        if asked.of_type not in object_authority.HERE:
            raise RefusedError(object_authority.UNKNOWN_OBJECT, f"there are no objects of type {asked.of_type} here")
    except RefusedError as refused:
        click.echo(f"dspmqaut: {refused}", err=True)
        return refused.status
    ((kind, name),) = asked.who
    try:
        with connected(asked.q_mgr_name, "dspmqaut") as qm:
            rights = _of_user(qm, asked, name) if kind == "PRINCIPAL" else _of_group(qm, asked, name)
            about = asked.profile or qm.q_mgr_name
    except MQError as error:
        return object_authority.failed("dspmqaut", error)
    click.echo(f"Entity {name} has the following authorizations for object {about}:")
    for right in _ORDER:
        if right & rights:
            click.echo(f"\t{str(right.name).lower()}")
    return object_authority.DONE


def _of_user(qm: Connection, asked: Asked, user: str) -> Right:
    """Returns what the user may do by records of its own and of its groups. Raises UnknownObjectName."""
    from trigmon.cli.rights import groups_here
    from trigmon.mq.calls import ExplainRights
    from trigmon.mq.replies import Values

    _check_object(qm, asked)
    kind = asked.of_type.lower()
    call = ExplainRights(name=asked.profile or SELF, object_type=kind, user=user, groups=groups_here(user))
    return rights_explained(qm.ask(call, Values).values["rights"])


def _of_group(qm: Connection, asked: Asked, group: str) -> Right:
    """Returns what the most specific record of a group gives on the object. Raises UnknownObjectName."""
    from trigmon.cli.objects import rows

    _check_object(qm, asked)
    return rights_of_group(rows(qm, "AUTHREC"), asked.of_type.lower(), asked.profile or SELF, group)


def _check_object(qm: Connection, asked: Asked) -> None:
    from trigmon.cli.objects import rows

    kind = "queue" if asked.of_type == "QUEUE" else asked.of_type
    if kind != "QMGR" and all(row["name"] != asked.profile for row in rows(qm, kind, asked.profile)):
        raise UnknownObjectName(f"{asked.of_type}({asked.profile})")
