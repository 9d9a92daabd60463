"""What a monitor asks of the run ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trigmon.monitor import ledger
from trigmon.mq.calls import Call, Runs
from trigmon.mq.replies import Listing, Reply


def recorded(call: Callable[[Call], Reply], where: ledger.Fields) -> Iterator[ledger.Fields]:
    """Every run with these values, newest first. Raises what ``call`` raises."""
    before, more = "", True
    while more:
        reply = call(Runs(where=where, before=before))
        assert isinstance(reply, Listing)
        yield from reply.rows
        before, more = str(reply.rows[-1]["run_id"]) if reply.rows else "", reply.more
