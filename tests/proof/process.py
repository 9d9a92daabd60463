"""The daemon's process in the simulation: the real queue manager behind the real turns and connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.proof.harness import Told
from tests.proof.loop import Loop, ProcessLoop
from tests.proof.network import Link
from trigmon.mq.calls import Call
from trigmon.qmgr.clock import SystemClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.qmgr.timed_work import JOBS
from trigmon.server.connection import Connection
from trigmon.server.connection_limits import Clients
from trigmon.server.peer_identity import Peer
from trigmon.server.turns import Turns
from trigmon.store.port import Store

ADMINISTRATOR = Peer(pid=1, uid=0, gid=0, user="root", administrator=True, monitor=True)
ROOM = 1000
LOSES_REPLIES = 0.3


@dataclass(frozen=True)
class Patience:
    """What the settings say of how long a peer may take."""

    hello_timeout_s: float = 5
    frame_timeout_s: float = 5
    reply_timeout_s: float = 30
    stop_timeout_s: float = 5


class Quiet:
    """A log that nobody reads."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Process:
    """One life of the daemon. ``on_broken`` hears of an error out of a turn. Raises StoreBroken at the start."""

    def __init__(
        self,
        loop: Loop,
        clock: SystemClock,
        store: Store,
        note: Any,
        puts_allowed: Callable[[], bool],
        defines: list[Call],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self.store = store
        self.loop = ProcessLoop(loop)
        self.links: list[Link] = []
        self.manager = QueueManager("QM1", store, clock, Told(note), puts_allowed)
        self._operator = self.manager.connect(Identity(client_id="", administrator=True))
        self.manager.turn([(self._operator, number, call) for number, call in enumerate(defines, 1)])
        clients = Clients(self.manager, ROOM, "simulated")
        # What a loop does for the time it runs; Turns asks once whose it is.
        asyncio._set_running_loop(self.loop)  # type: ignore[arg-type]
        try:
            self.turns = Turns(self.manager, clock, Patience(), clients, log=Quiet(), on_broken=on_broken)
        finally:
            asyncio._set_running_loop(None)
        self.turns.go_on_scanning()
        self._chore(1.0, self.turns.look_after)
        for job in JOBS:
            self._chore(job.period_ms / 1000, lambda job=job: self.turns.work(job))

    def _chore(self, period_s: float, work: Callable[[], None]) -> None:
        def ring() -> None:
            work()
            self.loop.call_later(period_s, ring)

        self.loop.call_later(period_s, ring)

    def accept(self, link: Link) -> None:
        """A client is at the door."""
        self.links.append(link)
        link.accepted(Connection(self.turns, ADMINISTRATOR, self.loop))

    def command(self, call: Call) -> None:
        """The operator's, in a turn of its own."""
        self.turns._send(self.manager.turn([(self._operator, 1, call)]))

    def die(self, chance: random.Random) -> None:
        """Nothing more is done; what was written to clients they may still hear."""
        self.loop.is_alive = False
        for link in self.links:
            link.daemon_died(loses_replies=chance.random() < LOSES_REPLIES)
