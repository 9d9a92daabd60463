"""``crtmqm``: makes the store of a queue manager, by a first start and an orderly end."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trigmon.cli.mq_commands import qmgr_process
from trigmon.cli.mq_commands.mq_options import MqUsageError, connected, read

_LOG_FLAGS = ("-lc", "-ll", "-lla", "-lln")
_LOG_VALUES = ("-lp", "-ls", "-lf", "-ld")


def crtmqm(arguments: Sequence[str]) -> int:
    """Makes a queue manager; 0, 8 where it is there already, 72 for a wrong name. Raises MqUsageError."""
    given = read(_without_log(list(arguments)), "qu:c:z", words=1, least=1)
    name = given.word(0)
    if not qmgr_process.is_name(name):
        click.echo(f"crtmqm: {name!r} is no name of a queue manager", err=True)
        return qmgr_process.NAME_ERROR
    if qmgr_process.is_running(name) or qmgr_process.has_store(name):
        click.echo(f"AMQ8110E: trigmon queue manager already exists: {name}.", err=True)
        return qmgr_process.EXISTS
    if status := qmgr_process.start(name):
        click.echo(f"crtmqm: it could not be started ({status}); see {qmgr_process.log_file(name)}", err=True)
        return qmgr_process.FAILED
    named = {"dead_letter_q_name": given.value("u"), "description": given.value("c")}
    if attributes := {attribute: value for attribute, value in named.items() if value}:
        _alter(name, attributes)
    qmgr_process.end(name)
    if given.has("q"):
        from trigmon import paths

        file = paths.default_qmgr_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{name}\n")
    click.echo(f"trigmon queue manager '{name}' created.")
    return qmgr_process.DONE


def _alter(name: str, attributes: dict[str, str]) -> None:
    """Gives the new queue manager its attributes; one that is refused is named."""
    from trigmon.mq.calls import Alter
    from trigmon.mq.errors import MQError

    try:
        with connected(name, "crtmqm") as qm:
            qm.call(Alter(object_type="QMGR", name=name, attributes=attributes))
    except MQError as error:
        click.echo(f"crtmqm: {error}", err=True)


def _without_log(arguments: list[str]) -> list[str]:
    """Returns the arguments without those of MQ's log, which are named: trigmon's has no such parts."""
    kept = []
    while arguments:
        word = arguments.pop(0)
        if word in _LOG_FLAGS:
            click.echo(f"crtmqm: skipped: {word}: the log has no such kinds here", err=True)
        elif word in _LOG_VALUES:
            if not arguments:
                raise MqUsageError(f"{word} needs a value")
            click.echo(f"crtmqm: skipped: {word} {arguments.pop(0)}: the log has no such files here", err=True)
        else:
            kept.append(word)
    return kept
