"""Resumes the runs that the ledger holds for this monitor: after its restart, or after the queue manager was away.

Held runs belong to no monitor: any monitor that serves their initiation queue is given the next of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trigmon.client.link import Link
from trigmon.monitor.programs import Programs
from trigmon.monitor.registration import keeper_of
from trigmon.mq.calls import Call, ChangeRun, Runs
from trigmon.mq.replies import Listing, Reply
from trigmon.mq.run import WITH_PROGRAM, Run, RunFields, read_run


def resume(link: Link, programs: Programs, monitor: str, *, of: str = "") -> None:
    """Goes through the runs of ``monitor`` that have or may have programs, but for those that ``programs`` knows.

    What became of each is found out then. ``of`` names another monitor, which is gone: its runs become this one's.
    Raises LinkDown.
    """
    with programs.start_lock:
        for state in sorted(WITH_PROGRAM):
            where: RunFields = {"monitor": of or monitor, "state": state}
            for run in reversed(list(_recorded(link.call, where))):
                if programs.knows(run.run_id):
                    continue
                if of:
                    link.call(ChangeRun(run_id=run.run_id, fields={"monitor": monitor}))
                programs.take_up(run, keeper_of(of or monitor))
    programs.warm.sweep(of or monitor)


def _recorded(call: Callable[[Call], Reply], where: RunFields) -> Iterator[Run]:
    """Yields every run with these values, newest first. Raises what ``call`` raises."""
    before, more = "", True
    while more:
        reply = call(Runs(where={**where}, before=before))
        assert isinstance(reply, Listing)
        yield from map(read_run, reply.rows)
        before, more = str(reply.rows[-1]["run_id"]) if reply.rows else "", reply.more
