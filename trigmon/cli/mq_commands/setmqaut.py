"""``setmqaut``: gives and takes rights, as SET AUTHREC and DELETE AUTHREC do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import object_authority
from trigmon.cli.mq_commands.mq_options import connected
from trigmon.cli.mq_commands.object_authority import Asked, RefusedError
from trigmon.mq.calls import SetAuthority
from trigmon.mq.errors import MQError, UnknownObjectName

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.mqsc.commands import Command


def setmqaut(arguments: Sequence[str]) -> int:
    """Changes the records, word after word from the left; the statuses are MQ's."""
    from trigmon.cli.objects import rows
    from trigmon.mqsc.reply_text import skipped_line

    try:
        asked = object_authority.asked(arguments)
        commands = list(_commands(asked))
    except RefusedError as refused:
        click.echo(f"setmqaut: {refused}", err=True)
        return refused.status
    try:
        with connected(asked.q_mgr_name, "setmqaut") as qm:
            is_first = next(rows(qm, "AUTHREC"), None) is None
            for command in commands:
                _perform(qm, command)
    except MQError as error:
        return object_authority.failed("setmqaut", error)
    for text in dict.fromkeys(skipped_line(each).partition(": ")[2] for c in commands for each in c.skipped):
        click.echo(f"setmqaut: skipped: {text}", err=True)
    if is_first and any(command.calls for command in commands):
        click.echo(
            "setmqaut: this was the first authority record: from now on a user who is no administrator may do only "
            "what records give",
            err=True,
        )
    click.echo("The setmqaut command completed successfully.")
    return object_authority.DONE


def _perform(qm: Connection, command: Command) -> None:
    for call in command.calls:
        try:
            qm.call(call)
        except UnknownObjectName:
            # Rights are taken from a record that is not there: -all before the first right is usual.
            if not isinstance(call, SetAuthority):
                raise


def _commands(asked: Asked) -> Iterator[Command]:
    """Yields the MQSC commands. Raises RefusedError."""
    if not asked.rights:
        raise RefusedError(object_authority.NO_RIGHTS, "no right is given: +WORD, -WORD or -remove")
    for word in asked.rights:
        if word[1:] not in object_authority.RIGHT_WORDS or word == "+remove":
            raise RefusedError(object_authority.BAD_RIGHTS, f"{word} is no right")
    about = f"PROFILE({_quoted(asked.profile or 'SELF')}) OBJTYPE({asked.of_type})"
    for kind, name in asked.who:
        whom = f"{about} {kind}({_quoted(name)})"
        for sign, words in groupby(asked.rights, lambda word: word if word == "-remove" else word[0]):
            if sign == "-remove":
                yield _read(f"DELETE AUTHREC {whom}")
                continue
            keyword = "AUTHADD" if sign == "+" else "AUTHRMV"
            yield _read(f"SET AUTHREC {whom} {keyword}({','.join(word[1:] for word in words)})")


def _read(text: str) -> Command:
    """Returns the command of a text. Raises RefusedError."""
    from trigmon.mqsc.commands import read_script

    (command,) = read_script(text)
    if command.error is not None:
        raise RefusedError(object_authority.INVALID_ARGUMENTS, command.error.about)
    return command


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
