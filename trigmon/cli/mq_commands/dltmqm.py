"""``dltmqm``: tells what deletes a queue manager; it deletes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trigmon import paths
from trigmon.cli.mq_commands import qmgr_process
from trigmon.cli.mq_commands.mq_options import read


def dltmqm(arguments: Sequence[str]) -> int:
    """Names the directory to remove; 5 where it runs, 16 where it is not there, else 71. Raises MqUsageError."""
    given = read(arguments, "z", words=1, least=1)
    name = given.word(0)
    if not qmgr_process.is_name(name):
        click.echo(f"dltmqm: {name!r} is no name of a queue manager", err=True)
        return qmgr_process.NAME_ERROR
    if qmgr_process.is_running(name):
        click.echo(f"AMQ5041E: trigmon queue manager '{name}' is running.", err=True)
        return qmgr_process.RUNNING
    if not qmgr_process.has_store(name):
        click.echo(f"AMQ8118E: trigmon queue manager does not exist: {name}.", err=True)
        return qmgr_process.DOES_NOT_EXIST
    directory = paths.data_directory(name)
    click.echo(f"dltmqm: nothing is deleted; its messages and definitions are in {directory}: remove that", err=True)
    return qmgr_process.FAILED
