"""A queue manager on a disk in memory, and clients that call it directly, several in a turn.

Every event of the history has as its place the length of the disk's log, so that a crash at any point of the log is
known to lie before or behind it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.proof.clients import (
    ASIDE,
    BATCHED,
    COUNTED,
    CUT,
    GROUPED,
    LINK,
    POISONED,
    QUEUES,
    REPORTS,
    Client,
    Gone,
    Pause,
)
from tests.proof.disk import Disk, Op
from tests.proof.history import Event
from tests.proof.steps import STEPS
from tests.proof.vfs import VFS
from trigmon.mq.calls import Alter, Call, Define, Disconnect, Display, Open
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Listing, Refused, Reply
from trigmon.qmgr import manager_events as events
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.manager_events import CallFailed, Telling, TriggerMessageAvailable
from trigmon.qmgr.sessions import Identity, Session
from trigmon.store.sqlite.store import SqliteStore

CLIENTS = 4
INITIATION_Q = "INITQ"
ARMED = {"trigger_control": "on", "initiation_q_name": INITIATION_Q, "process_name": "PROC"}


def definitions(clients: Sequence[str]) -> list[Call]:
    """What the clients of a load use; what has expired is looked for each second."""
    lasting = {"def_persistence": "persistent", "max_q_depth": 1_000_000}
    queues: dict[str, dict[str, Any]] = dict.fromkeys(QUEUES, lasting)
    queues[COUNTED] = {**lasting, **ARMED, "trigger_type": "every"}
    queues |= dict.fromkeys((GROUPED, BATCHED, ASIDE, REPORTS), lasting)
    poisoned = {"backout_threshold": 2, "backout_requeue_q_name": ASIDE, "backout_requeue": "qmgr"}
    queues[POISONED] = lasting | poisoned
    queues[INITIATION_Q] = {"max_q_depth": 1_000_000}
    queues |= {f"ALTER.{who}": {} for who in clients}
    defines = [Define(object_type="QLOCAL", name=name, attributes=dict(what)) for name, what in queues.items()]
    process = Define(object_type="PROCESS", name="PROC", attributes={"appl_id": "/bin/true"})
    return [Alter(object_type="QMGR", name="QM1", attributes={"expiry_interval": 1}), process, *defines]


class Told(Telling):
    """Notes what the outside is told; a bug is an error."""

    def __init__(self, note: Any) -> None:
        self._note = note

    def tell(self, event: events.Event) -> None:
        if isinstance(event, TriggerMessageAvailable) and event.message.q_name == COUNTED:
            self._note("told", queue=event.message.q_name)
        elif isinstance(event, CallFailed):
            raise AssertionError(f"{type(event.call).__name__} met a bug") from event.error


class Player:
    """A client that is played: what it wants, and what it waits for."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.life = client.life()
        self.want: Any = next(self.life)
        self.session: Session | None = None
        self.sequence = 0
        self.waits_for: list[int] = []
        self.heard: dict[int, Reply] = {}
        self.is_over = False
        self.rests_until = 0

    def go_on(self, with_what: Any) -> None:
        """Sends it what it wanted, or throws what came instead."""
        self.waits_for, self.heard = [], {}
        try:
            if isinstance(with_what, Gone):
                self.session = None
                self.want = self.life.throw(with_what)
            else:
                self.want = self.life.send(with_what)
        except StopIteration:
            self.is_over = True


class Harness:
    """The queue manager, its disk and its clients."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.directory = directory
        self.events: list[Event] = []
        self.log: list[Op] = []
        self.disk = Disk(log=self.log)
        self.clock = VirtualClock()
        self.is_up = False
        self._client_ids = 0
        self.names = [f"c{number}" for number in range(CLIENTS)]
        self.players: list[Player] = []

    def note(self, who: str) -> Any:
        """What takes the events of a client."""

        def noting(event: str, **what: Any) -> None:
            self.events.append({"event": event, "who": who, "at": len(self.log), "ms": self.clock.now(), **what})

        return noting

    def crash(self, how: str) -> Event:
        """The event of a crash that comes now."""
        return {"event": "crash", "who": "", "at": len(self.log), "ms": self.clock.now(), "how": how}

    # -- the queue manager --------------------------------------------------------------------------------

    def start(self) -> None:
        """Opens the store on the disk. Raises StoreBroken."""
        VFS.disk = self.disk
        self.store = SqliteStore(self.directory, VFS.name)
        self.is_up = True
        self.manager = QueueManager("QM1", self.store, self.clock, Told(self.note("queue manager")))
        monitor = self.manager.connect(Identity(client_id="monitor", administrator=True))
        calls: list[Call] = [*definitions(self.names)]
        self._turn([(monitor, number, call) for number, call in enumerate(calls, 1)])
        self.note("monitor")("watch")
        watching = Open(object_name=INITIATION_Q, options=int(OpenOption.INPUT_SHARED))
        self._turn([(monitor, len(calls) + 1, watching)])

    def shown(self, name: str) -> list[dict[str, Any]]:
        """What DISPLAY says of a queue."""
        session = self.manager.connect(Identity(client_id="looks", administrator=True))
        (answer,) = self.manager.turn([(session, 1, Display(object_type="QLOCAL", name=name))])
        return answer.reply.rows if isinstance(answer.reply, Listing) else []

    def end(self) -> None:
        """The process is no more; the disk stays as it is."""
        self.disk.is_dead = True
        self.store.abandon()
        self.disk.is_dead = self.is_up = False

    def kill(self) -> None:
        """The process dies and another starts. What it had written is with the system still."""
        self.events.append(self.crash("kill"))
        self.end()
        for player in self.players:
            if player.session is not None and not player.is_over:
                player.go_on(Gone())
        self.start()

    # -- the load -----------------------------------------------------------------------------------------

    def play(self, works: int, kills: int = 0) -> None:
        """Lets clients do so many works. Raises StoreBroken."""
        self._is_open = True
        for who in self.names:
            chance = random.Random(self.chance.random())
            client = Client(who, chance, self.note(who), STEPS, lambda: self._is_open)
            self.players.append(Player(client))
        deaths = sorted(self.chance.randrange(works) for _ in range(kills))
        while self._done() < works:
            if deaths and self._done() >= deaths[0]:
                deaths.pop(0)
                self.kill()
            self._round()
        self._is_open = False
        while not all(player.is_over for player in self.players):
            self._round()

    def _done(self) -> int:
        return sum(player.client.ended_units for player in self.players)

    def _round(self) -> None:
        """What some of the clients want, in one turn; time passes."""
        self.clock.advance(self.chance.choice((1, 1, 5, 40)))
        batch: list[tuple[Session, int, Call]] = []
        for player in self.chance.sample(self.players, self.chance.randint(1, len(self.players))):
            if not player.is_over and not player.waits_for:
                batch += self._wanted(player)
        if batch or self._is_due():
            self._turn(batch)
        if self.chance.random() < 0.03:
            self.manager.housekeeping.idle()
            self._hand_out(self.manager.housekeeping.expire())
        if self.manager.housekeeping.is_scanning:
            self._hand_out(self.manager.housekeeping.scan())

    def _is_due(self) -> bool:
        deadline = self.manager.next_deadline_ms()
        return deadline is not None and deadline <= self.clock.now()

    def _wanted(self, player: Player) -> list[tuple[Session, int, Call]]:
        want = player.want
        if isinstance(want, Pause):
            player.rests_until = player.rests_until or self.clock.now() + want.ms
            if player.rests_until <= self.clock.now():
                player.rests_until = 0
                player.go_on(None)
        elif want == LINK:
            self._client_ids += 1
            client_id = f"{player.client.who}-{self._client_ids}"
            identity = Identity(client_id=client_id, application=player.client.who, administrator=True)
            player.session = self.manager.connect(identity)
            player.go_on(client_id)
        elif want == CUT:
            if player.session is not None:
                self._hand_out(self.manager.lost([player.session]))
            player.go_on(Gone())
        else:
            return self._calls(player, want if isinstance(want, list) else [want])
        return []

    def _calls(self, player: Player, calls: list[Call]) -> list[tuple[Session, int, Call]]:
        assert player.session is not None
        batch = []
        for call in calls:
            player.sequence += 1
            player.waits_for.append(player.sequence)
            batch.append((player.session, player.sequence, call))
        return batch

    def _turn(self, batch: list[tuple[Session, int, Call]]) -> None:
        self._hand_out(self.manager.turn(batch))

    def _hand_out(self, answers: list[Answer]) -> None:
        of = {player.session.connection: player for player in self.players if player.session is not None}
        for answer in answers:
            player = of.get(answer.session.connection)
            if player is not None:
                self._answered(player, answer)

    def _answered(self, player: Player, answer: Answer) -> None:
        player.heard[answer.sequence] = answer.reply
        if all(number in player.heard for number in player.waits_for):
            replies = [player.heard[number] for number in player.waits_for]
            if isinstance(player.want, Disconnect) and not isinstance(replies[0], Refused):
                player.session = None
            player.go_on(replies if isinstance(player.want, list) else replies[0])
