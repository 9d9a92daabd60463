"""``trigmon demo``: the main job on real input."""

from __future__ import annotations

from pathlib import Path

import click

from trigmon.cli.command import command, invocation


@command("demo", "trigmon demo\ntrigmon demo --directory /tmp/flights")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the results go (default: a new directory in /tmp).",
)
@click.pass_context
def demo(ctx: click.Context, directory: Path | None) -> None:
    """Play a real day: 842 flights, a message each, a trigger, and the PySpark job it starts.

    A queue manager of its own is started for it, and all that was started is ended with it.
    """
    import sys

    import msgspec

    from trigmon.cli import output
    from trigmon.cli.explain import as_dict
    from trigmon.demo import DemoFailed, Screen, run

    try:
        report = run(Screen(sys.stderr if invocation().is_json else sys.stdout), directory)
    except DemoFailed as error:
        output.note(f"trigmon: the demo did not reach its end: {error}")
        if error.detail:
            output.note(error.detail)
        ctx.exit(1)
    except KeyboardInterrupt:
        ctx.exit(1)  # it has named what it ended
    if invocation().is_json:
        output.one(msgspec.structs.asdict(report) | {"verdict": as_dict(report.verdict)})
