"""``trigmon qmgr``: the queue manager as an object: its attributes."""

from __future__ import annotations

from trigmon.cli.command import command, group, invocation


@group("qmgr", example="trigmon qmgr show")
def qmgr() -> None:
    """The queue manager itself: show. Its attributes are changed by ALTER QMGR of trigmon mqsc, or by trigmon apply."""


@command("show", "trigmon qmgr show\ntrigmon qmgr show --output json", qmgr)
def show() -> None:
    """Show every attribute of the queue manager. trigmon status tells how it is."""
    from trigmon.cli import output
    from trigmon.cli.objects import rows

    with invocation().connected() as qm:
        output.one(next(iter(rows(qm, "QMGR"))))
