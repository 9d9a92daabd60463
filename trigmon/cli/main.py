"""The entry point: the commands and their files. The file of a command is imported when the command is used."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from trigmon.cli.command import COMPLETING, Group, common_options
from trigmon.cli.errors import exit_for

SECTIONS = {
    "Run a queue manager": {
        "run": "trigmon.cli.run:run",
        "monitor": "trigmon.cli.run:monitor",
        "demo": "trigmon.cli.demo:demo",
        "use": "trigmon.cli.use:use",
        "config": "trigmon.cli.config:config",
    },
    "Define objects": {
        "apply": "trigmon.cli.apply:apply",
        "queue": "trigmon.cli.queue:queue",
        "process": "trigmon.cli.process:process",
        "namelist": "trigmon.cli.namelist:namelist",
        "schedule": "trigmon.cli.schedule:schedule",
        "watch": "trigmon.cli.watch:watch",
        "bridge": "trigmon.cli.bridge:bridge",
        "lint": "trigmon.cli.lint:lint",
        "simulate": "trigmon.cli.simulate:simulate",
        "export": "trigmon.cli.export:export",
    },
    "Messages": {
        "put": "trigmon.cli.put:put",
        "get": "trigmon.cli.get:get",
        "browse": "trigmon.cli.get:browse",
        "dlq": "trigmon.cli.dlq:dlq",
        "dump": "trigmon.cli.dump:dump",
        "load": "trigmon.cli.dump:load",
    },
    "What was started": {
        "runs": "trigmon.cli.runs:runs",
        "spark": "trigmon.cli.spark:spark",
    },
    "See what happens": {
        "status": "trigmon.cli.status:status",
        "explain": "trigmon.cli.explain:explain",
        "top": "trigmon.cli.top:top",
        "web": "trigmon.cli.web:web",
        "qmgr": "trigmon.cli.qmgr:qmgr",
        "connections": "trigmon.cli.connections:connections",
        "group": "trigmon.cli.group:group",
        "check": "trigmon.cli.check:check",
        "metrics": "trigmon.cli.metrics:metrics",
        "notify": "trigmon.cli.notify:notify",
    },
    "Who may do what": {
        "grant": "trigmon.cli.rights:grant",
        "revoke": "trigmon.cli.rights:revoke",
        "rights": "trigmon.cli.rights:rights",
        "audit": "trigmon.cli.audit:audit",
        "tls": "trigmon.cli.tls:tls",
    },
    "MQ's own ways": {
        "mqsc": "trigmon.cli.mqsc:mqsc",
        "mq-commands": "trigmon.cli.mq_links:mq_commands",
        "mqi": "trigmon.cli.mqi:mqi",
        "rest": "trigmon.cli.rest:rest",
    },
    "Backup": {
        "backup": "trigmon.cli.backup:backup",
        "restore": "trigmon.cli.backup:restore",
    },
    "Help": {
        "help": "trigmon.cli.help:help_",
        "completion": "trigmon.cli.completion:completion",
    },
}
"""By heading of the help the commands, each with its file and function."""

COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}


class Root(Group):
    """The root command: imports each command when it is used, and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands in the order of the help."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands under their headings."""
        longest = max(map(len, COMMANDS))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                found = ((name, self.get_command(ctx, name)) for name in names)
                shown = ((name, one.get_short_help_str(formatter.width - longest - 6)) for name, one in found if one)
                formatter.write_dl([(name.ljust(longest), text) for name, text in shown])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Returns the command of this name; None when there is none."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def main(self, args: Sequence[str] | None = None, *more: Any, **named: Any) -> Any:
        """Runs a command and exits; an error becomes one sentence on standard error and an exit code."""
        try:
            return super().main(args, *more, **named)
        except BrokenPipeError:
            # The reader of the output has gone; the interpreter must not try to flush the rest at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except Exception as error:
            if COMPLETING in os.environ:
                # A shell is completing: what is printed here would stand in the line being typed.
                sys.exit(1)
            code, lines = exit_for(error)
            if code is None:
                raise
            for line in lines:
                click.echo(f"trigmon: {line}", err=True)
            sys.exit(code)


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        import trigmon

        click.echo(f"trigmon {trigmon.__version__}")
        ctx.exit()


@click.group(
    cls=Root,
    example="trigmon put ORDERS 'one order'",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@common_options
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """A queue manager with IBM MQ's semantics, and a trigger monitor that starts programs and Spark jobs.

    --qmgr, --config and --output may also stand after the command.
    """


def main() -> None:
    """Runs the command line; the entry point of the ``trigmon`` program."""
    cli(prog_name="trigmon")
