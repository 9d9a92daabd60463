"""``endmqm``: asks a queue manager to end in order, and waits for that."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trigmon.cli.mq_commands import qmgr_process
from trigmon.cli.mq_commands.mq_options import read


def endmqm(arguments: Sequence[str]) -> int:
    """Ends it; 0, 16 where it is not there, 40 where it does not run, 71 where it did not end. Raises MqUsageError.

    ``-c``, ``-w``, ``-i`` and ``-p`` are one: units of work that are open are backed out, and what was acknowledged is
    on disk.
    """
    given = read(arguments, "cwipz", words=1, least=1)
    name = given.word(0)
    if not qmgr_process.is_name(name):
        click.echo(f"endmqm: {name!r} is no name of a queue manager", err=True)
        return qmgr_process.NAME_ERROR
    if not qmgr_process.is_running(name):
        is_there = qmgr_process.has_store(name)
        what = (
            "AMQ8146E: trigmon queue manager not available"
            if is_there
            else "AMQ8118E: trigmon queue manager does not exist"
        )
        click.echo(f"{what}: {name}.", err=True)
        return qmgr_process.NOT_AVAILABLE if is_there else qmgr_process.DOES_NOT_EXIST
    click.echo(f"Waiting for queue manager '{name}' to end.")
    if why := qmgr_process.end(name):
        click.echo(f"endmqm: {why}", err=True)
        return qmgr_process.FAILED
    click.echo(f"trigmon queue manager '{name}' ended.")
    return qmgr_process.DONE
