"""``trigmon simulate``: runs scenarios of definitions and steps."""

from __future__ import annotations

import click

from trigmon.cli.command import command, invocation


@command("simulate", "trigmon simulate scenario.yaml\ntrigmon simulate --store sqlite --output json scenarios/*.yaml")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--store",
    default="memory",
    show_default=True,
    metavar="memory|sqlite|postgres",
    help="The store of the simulation.",
)
@click.pass_context
def simulate(ctx: click.Context, files: tuple[str, ...], store: str) -> None:
    """Run scenarios with the real rules and a simulated clock; no program is started.

    Exit 0 when every expectation held, 1 when some did not, 2 when a file is no scenario.
    """
    from trigmon.cli import output
    from trigmon.simulate.run_files import play_files

    postgres = invocation().settings().store.postgres or "" if store == "postgres" else ""
    ctx.exit(play_files(files, store, invocation().output, click.echo, output.note, postgres))
