"""``trigmon grant``, ``revoke`` and ``rights``: authority records; and ``explain --as``, which says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])
_COLUMNS = ["profile", "of_type", "entity_type", "entity", "rights", "altered_time"]


def _about(function: F) -> F:
    """Adds the arguments that name a record and rights."""
    types = ("queue", "namelist", "process", "qmgr", "schedule", "watch")
    kind = click.option("--type", "of_type", type=click.Choice(types), default="queue", help="Of object.")
    profile = click.argument("profile", metavar="NAME", default="")
    rights = click.argument("rights", metavar="RIGHT,...")
    who = click.argument("who", metavar="USER|%GROUP|everyone")
    return who(rights(profile(kind(function))))


@command(
    "grant",
    "trigmon grant alice put,inquire ORDERS\ntrigmon grant %etl get,browse 'ORDERS.**'\n"
    "trigmon grant %operators inquire,pause --type qmgr",
)
@_about
@click.option("--first", is_flag=True, help="Make the first record, which ends that every user may put and get.")
def grant(who: str, rights: str, profile: str, of_type: str, first: bool) -> None:
    """Give a user or a group rights on the objects that NAME fits: put, get, browse, inquire, set, pause, administer.

    In NAME ? is one character, * any number in one part between dots, ** any number of parts. As soon as there is one
    record, users who are no administrators may do only what records give them; handles that are open stay.
    """
    from trigmon.cli.objects import rows

    # What is mistyped is refused before anything is asked.
    _words(rights)
    _record(who, of_type, profile)
    with invocation().connected() as qm:
        if not first and next(rows(qm, "AUTHREC"), None) is None:
            raise click.UsageError(
                "this is the first authority record: from then on a user who is no administrator may do only what "
                "records give. --first says that this is meant; trigmon grant everyone put,get,browse,inquire '**' "
                "--first gives all what they have now"
            )
        _set(qm, who, of_type, profile, add=rights)


@command("revoke", "trigmon revoke alice put ORDERS\ntrigmon revoke %etl all 'ORDERS.**' --delete")
@_about
@click.option("--delete", is_flag=True, help="Delete the record, so that a less specific one counts.")
def revoke(who: str, rights: str, profile: str, of_type: str, delete: bool) -> None:
    """Take rights back that a record of this NAME gives.

    A record that gives nothing any longer stays and hides those that fit more names. Handles that are open stay.
    """
    from trigmon.mq.calls import Delete

    with invocation().connected() as qm:
        _set(qm, who, of_type, profile, remove=rights)
        if delete:
            qm.call(Delete(object_type="AUTHREC", name=_record(who, of_type, profile)))


@command("rights", "trigmon rights\ntrigmon rights 'ORDERS*' --output json")
@click.argument("pattern", default="*")
def rights(pattern: str) -> None:
    """List the authority records whose profile is PATTERN, or begins with it when it ends in *.

    Without any, every user who comes in may put, get, browse and inquire. trigmon explain QUEUE --as USER shows what
    holds for one user.
    """
    from trigmon.cli import output
    from trigmon.cli.objects import rows
    from trigmon.mq.names import matches

    with invocation().connected() as qm:
        shown = [shown_record(row) for row in rows(qm, "AUTHREC")]
    if not output.listing((row for row in shown if matches(row["profile"], pattern)), _COLUMNS):
        output.note("no authority record" + (f" is named {pattern}" if shown else ": every user has the same rights"))


def shown_record(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of DISPLAY AUTHREC as a person reads it."""
    from trigmon.mq.rights import plain_words, read_record_name, read_rights

    about = read_record_name(row["name"])
    words = ", ".join(plain_words(read_rights(row["authorities"]))) or "none"
    named = {"profile": about.profile, "of_type": about.object_type}
    kind, entity = about.entity
    return named | {"entity_type": kind, "entity": entity, "rights": words, "altered_ms": row["altered_ms"]}


def _record(who: str, of_type: str, profile: str) -> str:
    """Returns the name of the record. Raises UsageError."""
    from trigmon.mq.errors import ObjectNameError
    from trigmon.mq.rights import EVERYONE, SELF, record_name

    kind, entity = ("group", who[1:]) if who.startswith("%") else ("user", who)
    if who == "everyone":
        kind, entity = "group", EVERYONE
    try:
        return str(record_name(of_type, profile or (SELF if of_type == "qmgr" else ""), kind, entity))
    except ObjectNameError as error:
        raise click.UsageError(error.about) from None


def _words(rights: str) -> list[str]:
    """Returns the plain words of rights with commas between them. Raises UsageError."""
    from trigmon.mq.errors import ParmValueError
    from trigmon.mq.rights import plain_words, read_rights

    try:
        return plain_words(read_rights(rights))
    except ParmValueError as error:
        raise click.UsageError(error.about) from None


def _set(qm: Connection, who: str, of_type: str, profile: str, *, add: str = "", remove: str = "") -> None:
    from trigmon.cli import output
    from trigmon.mq.calls import SetAuthority
    from trigmon.mq.replies import Values
    from trigmon.mq.rights import plain_words, read_rights

    words = _words(add) or _words(remove) or ["none"]
    call = SetAuthority(name=_record(who, of_type, profile), add=words if add else [], remove=words if remove else [])
    done = qm.ask(call, Values).values
    now = ", ".join(plain_words(read_rights(done["after"]))) or "nothing"
    output.done(f"{who} has {now} on {of_type} {profile}".rstrip(), dict(done))


def explain_user(queue: str, who: str, groups: Iterable[str]) -> bool:
    """Prints what a user may do with a queue, and why not; returns whether the user may put and get."""
    from trigmon.cli import output
    from trigmon.mq.calls import ExplainRights
    from trigmon.mq.replies import Values

    if who.startswith("%") or who == "everyone":
        raise click.UsageError(f"--as {who}: name a user, --as USER; --group GROUP puts that user into a group besides")
    with invocation().connected() as qm:
        call = ExplainRights(name=queue, user=who, groups=sorted({*groups, *groups_here(who)}))
        found = qm.ask(call, Values).values
    if invocation().is_json:
        click.echo(output.json_line(found))
    else:
        click.echo(f"{found['user']} (groups: {', '.join(found['groups']) or 'none'}) and {queue}:")
        for row in found["rights"]:
            holds = click.style(f"{'yes' if row['has'] else 'NO':<4}", fg="green" if row["has"] else "red")
            only = f" (only {', '.join(row['only'])})" if "only" in row else ""
            click.echo(f"  {row['right']:<11} {holds} {row['why']}{only}")
            if row["remedy"]:
                click.echo(f"{'':19}remedy: {row['remedy']}")
    return all(row["has"] for row in found["rights"] if row["right"] in ("put", "get"))


def groups_here(who: str) -> list[str]:
    """Returns the groups of a user of this machine; none where it has no such user."""
    import grp
    import os
    import pwd

    try:
        numbers = os.getgrouplist(who, pwd.getpwnam(who).pw_gid)
    except KeyError:
        return []
    return [group.gr_name for group in grp.getgrall() if group.gr_gid in numbers]
