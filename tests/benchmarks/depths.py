"""Deciding one put with 10 and with 1 000 000 messages on the queue: the store's facts on SQLite, and the decision.

Both queues lie in one store, their counts read from disk by a start, and they are measured in turns; so all that
differs is what lies on the queue.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.worlds import World
from trigmon.mq.calls import Clear, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption, Persistence
from trigmon.rules.model.changes import AddMessage
from trigmon.rules.verbs import VERBS

INITQ, FEW = "SYSTEM.DEFAULT.INITIATION.QUEUE", 10
BATCH = 10_000


class Depths:
    """A queue manager on SQLite with two triggered queues, ``SHALLOW`` of 10 messages and ``DEEP`` of ``many``."""

    def __init__(self, home: Path, many: int) -> None:
        home.mkdir()
        self.world = World("sqlite", home)
        self.world.define("P", "PROCESS", appl_id="/bin/true")
        armed = {"trigger_control": "on", "trigger_type": "first", "process_name": "P", "initiation_q_name": INITQ}
        for name in ("SHALLOW", "DEEP"):
            self.world.define(name, max_q_depth=999_999_999, **armed)
        self._fill("SHALLOW", FEW)
        self._fill("DEEP", many)
        self.world.restart()
        self.world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
        self._depth_is("SHALLOW", FEW)
        self._depth_is("DEEP", many)

    def end(self) -> None:
        self.world.qm.stop()

    def decide(self, name: str, count: int) -> tuple[float, float]:
        """Microseconds for the facts of a put and its decision; nothing is written."""
        store, session = self.world.store, self.world.session("app")
        verb, call = VERBS[Put], Put(q_name=name, data=b"m" * 100)
        ids, now, connection = self.world.qm._ids, self.world.clock.now(), session.connection
        began = time.perf_counter()
        for _ in range(count):
            decision = verb.decide(call, store.facts(verb.wants(call, connection), verb.is_wide), None, now, ids)
        took = time.perf_counter() - began
        assert [type(change) for change in decision.changes] == [AddMessage], decision
        return took / count * 1e6, 0.0

    def put(self, name: str, count: int) -> tuple[float, float]:
        """Microseconds for a put of a message that need not last, a turn each, with what the store writes."""
        session, call = self.world.session("app"), Put(q_name=name, data=b"m" * 100)
        began = time.perf_counter()
        for number in range(count):
            self.world.qm.turn([(session, number + 1, call)])
        took = time.perf_counter() - began
        if name == "SHALLOW":
            while self.world.did(Clear(q_name=name), "operator").more:
                pass
            self._fill(name, FEW)
        return took / count * 1e6, 0.0

    def _fill(self, name: str, count: int) -> None:
        """Small persistent messages, as a put would write them, many in a turn of the store."""
        store, ids = self.world.store, self.world.qm._ids
        for start in range(0, count, BATCH):
            store.begin()
            store.mark()
            changes = []
            for _ in range(min(BATCH, count - start)):
                number = ids.message()
                descriptor = MessageDescriptor(msg_id=ids.msg_id(number), persistence=int(Persistence.PERSISTENT))
                changes.append(AddMessage(name, number, 0, True, descriptor, b"small"))
            store.apply(changes, False)
            store.end()

    def _depth_is(self, name: str, depth: int) -> None:
        found = self.world.store.standing.queues[name].depth
        assert found == depth, (name, found)
