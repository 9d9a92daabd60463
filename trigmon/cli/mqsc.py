"""``trigmon mqsc``: MQ's own language."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

import click

from trigmon.cli.command import command, invocation


@command("mqsc", "echo 'DISPLAY QUEUE(*) CURDEPTH' | trigmon mqsc\ntrigmon mqsc definitions.mqsc")
@click.argument("file", type=click.File("r", encoding="utf-8"), required=False)
@click.pass_context
def mqsc(ctx: click.Context, file: TextIO | None) -> None:
    """Run MQSC commands from FILE, or from standard input, as runmqsc does.

    Exit 0 when all were processed, 10 when some were not, 20 when none could be.
    """
    from trigmon.cli.errors import sentence
    from trigmon.mq.errors import MQError
    from trigmon.mqsc.script import COULD_NOT_RUN, run

    lines: Iterable[str] = file or sys.stdin
    try:
        with invocation().connected() as qm:
            code = run(lines, qm.call, click.echo, qm.q_mgr_name)
    except MQError as error:
        click.echo(f"AMQ8146E: trigmon queue manager not available.\n   {sentence(error)}", err=True)
        code = COULD_NOT_RUN
    ctx.exit(code)
