"""What the decision itself costs: a put on a triggered queue, every condition judged with its evidence, no store."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.worlds import World
from trigmon.mq.calls import Open, Put
from trigmon.mq.enums import OpenOption
from trigmon.qmgr.ids import Counter
from trigmon.rules.verbs import VERBS

Q, INITQ = "APP.Q", "SYSTEM.DEFAULT.INITIATION.QUEUE"


def microseconds(count: int, *, fires: bool) -> float:
    """Microseconds a put: one that fires (EVERY), or one on a queue that is not empty (FIRST)."""
    with tempfile.TemporaryDirectory() as directory:
        world = World("memory", Path(directory))
        world.define("P", "PROCESS", appl_id="/bin/true")
        kind = "every" if fires else "first"
        world.define(Q, trigger_control="on", trigger_type=kind, initiation_q_name=INITQ, process_name="P")
        world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
        world.put(Q)
        session = world.session("app")
        handle = world.did(Open(object_name=Q, options=OpenOption.OUTPUT.value)).handle
        verb, call = VERBS[Put], Put(handle=handle, data=b"m" * 1024)
        facts = world.store.facts(verb.wants(call, session.connection), False)
        ids = Counter("QM1", 1_000_000)
        now = world.clock.now()
        decision = verb.decide(call, facts, None, now, ids)
        assert bool(decision.events) is fires, decision
        decide = verb.decide
        began = time.perf_counter()
        for _ in range(count):
            decide(call, facts, None, now, ids)
        took = time.perf_counter() - began
        world.qm.stop()
        return took / count * 1e6
