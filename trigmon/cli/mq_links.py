"""``trigmon mq-commands``: makes MQ's commands by their names in a directory of their own, and takes them away."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from trigmon.cli.command import command

MARK = "# Made by trigmon mq-commands: this is no command of IBM MQ."
_OF_MQ = ("/opt/mqm/bin", "/opt/mqm/samp/bin", "/usr/mqm/bin", "/usr/mqm/samp/bin")
"""Where IBM MQ is installed on Linux and AIX, also where PATH does not name it."""


@command("mq-commands", "trigmon mq-commands ~/mq-bin\ntrigmon mq-commands ~/mq-bin --remove\ntrigmon mq-commands")
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--remove", is_flag=True, help="Remove the commands that this command has made there.")
@click.option("--beside-mq", is_flag=True, help="Make them although commands of these names are on this machine.")
def mq_commands(directory: Path | None, remove: bool, beside_mq: bool) -> None:
    """Make MQ's commands by their names in DIRECTORY: runmqsc, dspmq, amqsput and others; without it, list them.

    Scripts that call them work when DIRECTORY is in PATH. Each takes MQ's options and ends with MQ's exit statuses.
    Nothing is made where DIRECTORY holds a command of such a name, or where one is found in PATH or where IBM MQ is
    installed: it would be shadowed.
    """
    from trigmon.cli import output
    from trigmon.cli.mq_commands.command_table import MQ_COMMANDS

    if directory is None:
        rows = (
            {"command": name, "options": each.options, "here": each.means, "exit_status": each.statuses}
            for name, each in MQ_COMMANDS.items()
        )
        output.listing(rows, ["command", "options", "exit_status"])
        return
    files = {name: directory / name for name in MQ_COMMANDS}
    if remove:
        ours = [path for path in files.values() if _is_ours(path)]
        for path in ours:
            path.unlink()
        done = {"directory": str(directory), "removed": len(ours)}
        output.done(f"{len(ours)} commands removed from {directory}", done)
        return
    if foreign := [path for path in files.values() if os.path.lexists(path) and not _is_ours(path)]:
        raise click.ClickException(f"{_first(foreign)} is not made by trigmon: choose another directory")
    if (others := _others(MQ_COMMANDS)) and not beside_mq:
        raise click.ClickException(
            f"{_first(others)} is on this machine and would be shadowed where {directory} comes first in PATH; "
            "nothing is made. --beside-mq makes them all the same"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        _make(name, path)
    if others:
        output.note(f"trigmon: warning: where {directory} comes first in PATH, {_first(others)} is shadowed")
    made = {"directory": str(directory), "commands": sorted(files)}
    output.done(f'{len(files)} commands made; use them by PATH="{directory.absolute()}:$PATH"', made)


def _make(name: str, path: Path) -> None:
    """Writes one command beside its place and moves it there, so that nobody runs half of one."""
    new = path.with_name(f".{name}.{os.getpid()}")
    argv = shlex.join([sys.executable, "-P", "-m", "trigmon.cli.mq_commands.linked_command", name])
    new.write_text(f'#!/bin/sh\n{MARK}\nexec {argv} "$@"\n')
    new.chmod(0o755)
    new.replace(path)


def _is_ours(path: Path) -> bool:
    """Returns whether a file is one that this command has made."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False


def _others(names: Iterable[str]) -> list[Path]:
    """Returns the commands of these names that are on this machine and not ours."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), *_OF_MQ])
    directories = [place for place in places.split(os.pathsep) if place]
    found = {Path(path) for name in names for place in directories if (path := shutil.which(name, path=place))}
    return sorted(path for path in found if not _is_ours(path))


def _first(paths: list[Path]) -> str:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"
