"""``trigmon demo``: a queue, a trigger and a PySpark job on real data."""

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
    """Run one day of real flights: 842 messages, a trigger, and the PySpark job that it starts.

    The demo starts a queue manager of its own, and at its end ends all that it started.
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
        ctx.exit(1)  # run() has printed what it ended
    if invocation().is_json:
        output.one(msgspec.structs.asdict(report) | {"verdict": as_dict(report.verdict)})
