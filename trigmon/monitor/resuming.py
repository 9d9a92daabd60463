"""Taking up what the ledger says is this monitor's: after its own restart, or after the queue manager was away."""

from __future__ import annotations

from collections.abc import Callable

from trigmon.launch.port import Order
from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.monitor.link import Link
from trigmon.monitor.posts import keeper_of
from trigmon.monitor.programs import Programs
from trigmon.monitor.reading import recorded
from trigmon.mq.calls import ChangeRun

log = logger()


def resume(
    link: Link, programs: Programs, monitor: str, order_of: Callable[[ledger.Fields], Order], *, of: str = ""
) -> None:
    """Goes through the open runs of ``monitor``, oldest first, but for those that ``programs`` has in hand.

    What waits is held again. Of what was started, or was about to be, ``programs`` finds out what became of it.
    ``of`` names another monitor, which is gone: its runs become this one's. Raises LinkDown.
    """
    for state in (ledger.STARTED, ledger.DUE, ledger.HELD):
        for record in reversed(list(recorded(link.call, {"monitor": of or monitor, "state": state}))):
            run_id = str(record["run_id"])
            if programs.knows(run_id):
                continue
            if of:
                link.call(ChangeRun(run_id=run_id, fields={"monitor": monitor}))
            if state == ledger.HELD:
                programs.hold(order_of(record))
                log.info("run taken up", run=run_id, state=state)
            else:
                order = order_of(record) if state == ledger.DUE else None
                programs.take_up(run_id, ledger.trigger_of(record), keeper_of(of or monitor), order)
