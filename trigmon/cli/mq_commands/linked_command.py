"""Runs one of MQ's commands: ``python -P -m trigmon.cli.mq_commands.linked_command runmqsc ...``, as its link does."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from trigmon.cli.mq_commands.command_table import MQ_COMMANDS
from trigmon.cli.mq_commands.mq_options import MqUsageError

INTERRUPTED = 130


def run(name: str, arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit status. Raises KeyError for a name that is none of them."""
    command = MQ_COMMANDS[name]
    if list(arguments) in (["-h"], ["-?"], ["--help"]):
        click.echo(f"Usage: {name} {command.options}\ntrigmon {name}: {command.means}".replace("`", ""))
        return 0
    try:
        status = command.loaded()(arguments)
        sys.stdout.flush()
    except MqUsageError as error:
        click.echo(f"{name}: {error}\nUsage: {name} {command.options}", err=True)
        return command.usage_status
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not try to flush the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        click.echo(f"{name}: {error.filename or 'output'}: {error.strerror}", err=True)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
