"""``trigmon mqsc``: runs MQSC commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from io import TextIOWrapper
from typing import TextIO

import click

from trigmon import files
from trigmon.cli.command import command, invocation

HISTORY_LENGTH = 1000


@command("mqsc", "echo 'DISPLAY QUEUE(*) CURDEPTH' | trigmon mqsc\ntrigmon mqsc definitions.mqsc")
@click.argument("file", required=False)
@click.pass_context
def mqsc(ctx: click.Context, file: str | None) -> None:
    """Run MQSC commands from FILE, or from standard input, as runmqsc does.

    On a terminal there is a prompt. END or the end of the input ends it. What MQ has and trigmon has not is skipped and
    listed. Exit 0 when all commands were processed, 10 when some were not, 20 when none could be.
    """
    from trigmon.console.error_text import sentence
    from trigmon.mq.errors import MQError
    from trigmon.mqsc.script import COULD_NOT_RUN, run

    script = _opened(file) if file is not None else None
    try:
        with script or nullcontext(), invocation().connected() as qm:
            code = run(script_lines(script, qm.q_mgr_name), qm.call, click.echo, qm.q_mgr_name)
    except MQError as error:
        click.echo(f"AMQ8146E: trigmon queue manager not available.\n   {sentence(error)}", err=True)
        code = COULD_NOT_RUN
    ctx.exit(code)


def _opened(file: str) -> TextIO:
    try:
        return TextIOWrapper(files.opened(file), encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise click.BadParameter(f"{file!r}: {error.strerror}", param_hint="[FILE]") from None


def script_lines(file: TextIO | None, q_mgr_name: str) -> Iterator[str]:
    """Yields the lines of the input; on a terminal with a prompt, and with line editing where Python has readline."""
    if file is not None:
        yield from file
        return
    if isinstance(sys.stdin, TextIOWrapper):
        # Bytes that are no UTF-8 are the command's error, not the end of the script.
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline

        readline.set_history_length(HISTORY_LENGTH)
    from trigmon.mqsc.lexer import continues, is_nothing

    is_inside = False
    while True:
        try:
            line = input("> " if is_inside else f"{q_mgr_name}> ")
        except EOFError:
            click.echo()
            return
        is_inside = continues(line) if not is_nothing(line) else is_inside
        yield line
