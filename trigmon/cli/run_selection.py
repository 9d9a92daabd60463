"""Finds the runs that a command line names: by id, by the beginning of one, or as the newest that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from trigmon.cli.command import invocation
from trigmon.mq.run import WENT_WRONG, WITH_PROGRAM, Run, read_run

PAGE = 256
"""Runs in one answer of the queue manager."""
_ID_LENGTH = 16

Fits = Callable[[Run], bool]


class Selected(NamedTuple):
    """The newest runs that fit, newest first; ``more``: others may follow."""

    runs: list[Run]
    more: bool


def any_run(run: Run) -> bool:
    """Returns True: every run fits."""
    return True


def has_failed(run: Run) -> bool:
    """Returns whether a run could not start, failed, was killed, or has an unknown end."""
    return run.ending in WENT_WRONG


def has_output(run: Run) -> bool:
    """Returns whether a run ever had a program."""
    return bool(run.program.directory)


def find(where: dict[str, Any], count: int, since_ms: int = 0, fits: Fits = any_run) -> Selected:
    """Returns the newest runs that fit, at most ``count``, a page after the other.

    The queue manager lists runs in the order of their records: after an older run there is no newer one.
    """
    from trigmon.mq.calls import Runs
    from trigmon.mq.replies import Listing

    found: list[Run] = []
    with invocation().connected() as qm:
        before = ""
        while True:
            limit = PAGE if fits is not any_run else min(count + 1 - len(found), PAGE)
            page = qm.ask(Runs(where=where, limit=limit, before=before), Listing)
            young = [run for run in map(read_run, page.rows) if run.origin.recorded_ms >= since_ms]
            found += filter(fits, young)
            if len(found) > count or not page.more or not young:
                return Selected(found[:count], len(found) > count)
            before = page.rows[-1]["run_id"]


def under_way() -> list[Run]:
    """Returns the runs that have, or may have, a program, newest first."""
    found = [run for state in sorted(WITH_PROGRAM) for run in find({"state": state}, PAGE).runs]
    return sorted(found, key=lambda run: run.run_id, reverse=True)


def one(run: str | None, where: dict[str, Any] | None = None, fits: Fits = any_run) -> Run:
    """Returns the run of an id, or of the beginning of one; for None the newest that fits.

    Raises UnknownObjectName for none, UsageError where several ids begin so.
    """
    from trigmon.mq.errors import UnknownObjectName

    if run is None:
        found = find(where or {}, 1, fits=fits).runs or find(where or {}, 1).runs
        if not found:
            named = " ".join(f"{key.upper()}({value})" for key, value in (where or {}).items())
            raise UnknownObjectName(f"RUN(*): none is on record{named and f' of {named}'}")
        return found[0]
    found = find({"run_id": run}, 1).runs
    if not found and len(run) < _ID_LENGTH:
        found = find({}, 2, fits=lambda each: each.run_id.startswith(run)).runs
    if len(found) > 1:
        raise click.UsageError(f"several runs begin with {run}: {found[1].run_id} and {found[0].run_id} among them")
    if not found:
        raise UnknownObjectName(f"RUN({run})")
    return found[0]
