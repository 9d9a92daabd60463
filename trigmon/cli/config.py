"""``trigmon config``: the settings in force."""

from __future__ import annotations

import click

from trigmon.cli.command import command, group, invocation


@group("config", example="trigmon config show --origin")
def config() -> None:
    """The settings: what is in force, and where it was said."""


@command("show", "trigmon config show --origin\nTRIGMON_LOG_LEVEL=debug trigmon config show --output json", config)
@click.option("--origin", is_flag=True, help="Say of each value where it came from.")
def show(origin: bool) -> None:
    """Show every setting and its value."""
    from trigmon.cli import output

    rows = (
        {"key": key, "value": value} | ({"origin": where} if origin else {})
        for key, value, where in invocation().settings().rows()
    )
    output.listing(rows, ["key", "value", "origin"] if origin else ["key", "value"])
