"""``trigmon completion``: prints the script by which a shell completes commands and names of queues."""

from __future__ import annotations

import os
from pathlib import Path

import click

from trigmon.cli.command import COMPLETING, command


@command("completion", 'eval "$(trigmon completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the completion script of SHELL (default: the one in $SHELL), to be sourced by it."""
    from click.shell_completion import get_completion_class

    chosen = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(chosen)
    if kind is None:
        raise click.UsageError("name the shell: bash, zsh or fish")
    root = ctx.find_root().command
    click.echo(kind(root, {}, "trigmon", COMPLETING).source())
