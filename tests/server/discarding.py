"""A start that finds many messages which expired meanwhile, as a client sees it."""

from __future__ import annotations

import time

from tests.daemons import define


def depths_while_it_discards(one):
    """The depths of a queue from a daemon's first answer on, until all that expired while it was away has gone."""
    with one.connect() as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=1_000_000)
        with qm.open("Q", "output") as q:
            q.put_many([b"m"] * 20_000, expiry=1)
    one.stop()
    time.sleep(0.2)
    one.start()
    with one.connect() as qm, qm.open("Q", "inquire") as q:
        depths = [q.inquire("CURDEPTH")["current_q_depth"]]
        while depths[-1]:
            depths.append(q.inquire("CURDEPTH")["current_q_depth"])
    return depths
