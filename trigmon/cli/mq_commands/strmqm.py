"""``strmqm``: starts a queue manager in the background, with its trigger monitor."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trigmon.cli.mq_commands import qmgr_process
from trigmon.cli.mq_commands.mq_options import read
from trigmon.client.address import default_address


def strmqm(arguments: Sequence[str]) -> int:
    """Starts it; 0, 5 where it runs, 16 where it is not there, 71 where it could not start. Raises MqUsageError."""
    given = read(arguments, "z", words=1)
    name = given.word(0) or default_address()
    if not qmgr_process.is_name(name):
        click.echo(f"strmqm: {name!r} is no name of a queue manager", err=True)
        return qmgr_process.NAME_ERROR
    if qmgr_process.is_running(name):
        click.echo(f"trigmon queue manager '{name}' running.")
        return qmgr_process.RUNNING
    if not qmgr_process.has_store(name):
        click.echo(f"AMQ8118E: trigmon queue manager does not exist: {name}; crtmqm {name} makes it", err=True)
        return qmgr_process.DOES_NOT_EXIST
    if status := qmgr_process.start(name):
        click.echo(f"strmqm: it could not be started ({status}); see {qmgr_process.log_file(name)}", err=True)
        return qmgr_process.FAILED
    click.echo(f"trigmon queue manager '{name}' started.")
    return qmgr_process.DONE
