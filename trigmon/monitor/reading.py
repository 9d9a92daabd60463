"""What a monitor asks of the run ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trigmon.monitor import ledger
from trigmon.mq.calls import Call, Listing, Reply, Runs


def recorded(call: Callable[[Call], Reply], where: ledger.Fields) -> Iterator[ledger.Fields]:
    """Every run with these values, newest first. Raises what ``call`` raises."""
    before, more = "", True
    while more:
        reply = call(Runs(where=where, before=before))
        assert isinstance(reply, Listing)
        yield from reply.rows
        before, more = str(reply.rows[-1]["run_id"]) if reply.rows else "", reply.more


def runs_of(process_name: str) -> list[Runs]:
    """Asks for the runs of a process that are due or started, whoever has them; the newest of each."""
    return [Runs(where={"process_name": process_name, "state": state}) for state in (ledger.DUE, ledger.STARTED)]


def elsewhere(
    call: Callable[[Call], Reply], process_name: str, replies: Sequence[Reply], monitor: str
) -> list[ledger.Fields]:
    """Of what :func:`runs_of` was answered, and what a long answer left out, the runs of other monitors than this."""
    if any(isinstance(reply, Listing) and reply.more for reply in replies):
        rows = [record for asked in runs_of(process_name) for record in recorded(call, asked.where)]
    else:
        rows = [record for reply in replies if isinstance(reply, Listing) for record in reply.rows]
    return [record for record in rows if record["monitor"] != monitor]
