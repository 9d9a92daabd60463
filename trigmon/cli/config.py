"""``trigmon config``: the settings in force."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from trigmon.cli.command import command, group, invocation

NO_SETTINGS = {
    *("TRIGMON_CONFIG", "TRIGMON_HOME", "TRIGMON_RUNTIME", "TRIGMON_QMGR", "TRIGMON_CALL_TIMEOUT"),
    "TRIGMON_CLIENT_FILE",
    *("TRIGMON_RECONNECT", "TRIGMON_TASK_ADDRESS"),
    *("TRIGMON_QNAME", "TRIGMON_PROCESS", "TRIGMON_TRIGDATA", "TRIGMON_USERDATA", "TRIGMON_ENVDATA"),
    *("TRIGMON_OCCASION", "TRIGMON_RUN", "TRIGMON_TMC"),
}
"""Variables of trigmon that are no settings: its directories, and what a started program receives."""


@group("config", example="trigmon config show --origin")
def config() -> None:
    """The settings in force, and their origins: show, check."""


@command("show", "trigmon config show --origin\nTRIGMON_LOG_LEVEL=debug trigmon config show --output json", config)
@click.option("--origin", is_flag=True, help="Show the origin of each value.")
def show(origin: bool) -> None:
    """Show every setting and its value."""
    from trigmon.cli import output

    rows = (
        {"key": key, "value": _shown(value)} | ({"origin": where} if origin else {})
        for key, value, where in invocation().settings().rows()
    )
    output.listing(rows, ["key", "value", "origin"] if origin else ["key", "value"])
    for name in unknown_variables(os.environ):
        output.note(f"trigmon: {name} is set, and is no setting")


def _shown(value: object) -> object:
    """Returns a value without the password of a URL."""
    from trigmon.url_credentials import without_credentials

    return without_credentials(value) if isinstance(value, str) else value


@command("check", "trigmon config check\ntrigmon config check --config new.yaml", config)
def check() -> None:
    """Check the settings, and the definition files that they name, without a queue manager.

    Every mistake is reported at once.
    """
    from trigmon.cli import output
    from trigmon.definitions.definition_files import read_files

    settings = invocation().settings()
    wanted = read_files(map(Path, settings.qmgr.definitions))
    files = f", and {len(wanted)} objects in {len(settings.qmgr.definitions)} paths" if wanted else ""
    output.done(f"{sum(1 for _ in settings.rows())} settings hold{files}", {"is_valid": True, "objects": len(wanted)})


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Returns the variables that begin with TRIGMON_ and that trigmon does not read."""
    from trigmon.settings import VARIABLES

    return sorted(name for name in names if name.startswith("TRIGMON_") and name not in {*VARIABLES, *NO_SETTINGS})
