"""A start with a million messages of a kilobyte: from the process's birth to its first answer, and what it weighs.

Compared with a start of the same daemon without messages; the weight is the resident memory behind the first answers.
The start after a kill has a journal to replay: the puts and gets since the store was synced last.
"""

from __future__ import annotations

import time
from pathlib import Path

import trigmon
from tests.benchmarks.heads import BATCH
from tests.daemons import Daemon
from trigmon.mq.attributes import LocalQueue
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import ObjectType
from trigmon.paths import file_name
from trigmon.rules.model.changes import AddMessage, SetDefinition
from trigmon.store.sqlite.store import SqliteStore

Q, BODY = "MANY", b"x" * 1024
JOURNALED, UNIT = 10_000, 100


class Restarting:
    """Two homes: one queue manager without messages, one with ``many``."""

    def __init__(self, home: Path, many: int) -> None:
        none, filled = Daemon(home / "none"), Daemon(home / "many")
        self._killed = f"{many:,} messages, after a kill"
        self.daemons = {"no messages": none, f"{many:,} messages": filled, self._killed: filled}
        for daemon in (none, filled):
            daemon.home.mkdir(parents=True)
        fill(home / "many" / file_name("QM1"), many)
        self._many = many

    def start(self, name: str) -> tuple[float, float]:
        """Milliseconds to the first answer, megabytes resident after a put, a get and a listing."""
        daemon = self.daemons[name]
        if name == self._killed:
            self._kill_at_work(daemon)
        began = time.perf_counter()
        daemon.launch()
        while True:
            try:
                qm = trigmon.connect(daemon.address, application="bench")
                break
            except trigmon.MQError:
                time.sleep(0.001)
        took = time.perf_counter() - began
        with qm:
            if name != "no messages":
                with qm.open(Q, "input_shared", "output", "inquire") as queue:
                    queue.put(queue.get().data, persistence="persistent")
                    assert queue.inquire("current_q_depth") == {"current_q_depth": self._many}
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        daemon.stop()
        return took * 1e3, resident / 1024

    def _kill_at_work(self, daemon: Daemon) -> None:
        """Leaves about ten megabytes in the journal, and as many messages as before."""
        daemon.start()
        with trigmon.connect(daemon.address, application="bench") as qm, qm.open(Q, "input_shared", "output") as queue:
            for _ in range(JOURNALED // UNIT):
                for _ in range(UNIT):
                    queue.get(syncpoint=True)
                queue.put_many([BODY] * UNIT, persistence="persistent", syncpoint=True)
                qm.commit()
        daemon.kill()


def fill(data: Path, many: int) -> None:
    store = SqliteStore(data)
    number = store.open("QM1", 0)
    store.begin()
    store.mark()
    store.apply([SetDefinition(ObjectType.QLOCAL, LocalQueue(name=Q, max_q_depth=999_999_999))], False)
    store.end()
    for start in range(0, many, BATCH):
        store.begin()
        store.mark()
        batch = range(number + start, number + min(start + BATCH, many))
        store.apply(
            [
                AddMessage(Q, each, 0, True, MessageDescriptor(msg_id=padded_id(f"{each:020}"), persistence=1), BODY)
                for each in batch
            ],
            False,
        )
        store.end()
        store.idle()
    store.close()
