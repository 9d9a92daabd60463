"""Proof: the real queue manager, its turns, connections and frames, in virtual time on a network and a disk that fail.

Everything comes from one seed: which kinds of faults there are (each in half of the seeds), when they come, and what
clients do. First a storm, then calm: no fault, nothing added, and everything must come to its end.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from tests.proof.aftermath import Aftermath
from tests.proof.clients import ASIDE, BATCHED, COUNTED, LOADED, POISONED, QUEUES, Client
from tests.proof.found import Found
from tests.proof.guests import Guest
from tests.proof.harness import ARMED, INITIATION_Q, definitions
from tests.proof.history import Event
from tests.proof.lives import WAITED_ON, listening, triggered, waiting
from tests.proof.loop import Loop
from tests.proof.network import Faults, Link
from tests.proof.rules import problems
from tests.proof.serving import Serving
from tests.proof.steps import STEPS
from trigmon.mq.calls import Alter, Define

STORM_MS = 6_000
CALM_MS = 8_000  # twice what most seeds need: clients choose their queues by chance, and one may come late
END_MS = 60_000
REPAIR_MS = 1_000
SELDOM_MS, OFTEN_MS = (100, 3000), (50, 500)
"""How long it is from one fault of a kind to the next; often where there is one kind only."""
WORKERS = 4
WAITING = 3
FIRST, DEPTH = "T.FIRST", "T.DEPTH"
TRIGGER_DEPTH = 3
NETWORK_FAULTS = {"lose": 0.003, "repeat": 0.003, "swap": 0.003, "cut": 0.003, "slow": 0.01, "half_open_ms": 2000}
PUT_TO = (*QUEUES, COUNTED, BATCHED, POISONED, WAITED_ON, WAITED_ON, FIRST, DEPTH)


def simulate(directory: Path, seeds: Iterable[int], only: Collection[str] = ()) -> Found:
    """Plays these seeds, each with its own faults or with these only."""
    found = Found("simulated units of work")
    for seed in seeds:
        simulation = Simulation(directory, seed, only)
        said = simulation.run()
        found.add(said, f"seed {seed}", simulation.works)
        found.more.update(simulation.happened)
    return found


class Simulation:
    """One seed, played once. ``happened`` counts the faults that came, by name."""

    def __init__(self, directory: Path, seed: int, only: Collection[str] = ()) -> None:
        self.chance = random.Random(seed)
        self.loop = Loop()
        self.events: list[Event] = []
        self.happened: Counter[str] = Counter()
        self.is_calm = False
        self._is_open = True
        self._client_ids = 0
        uses_sqlite = bool(only) or self.chance.random() < 0.6
        self._pace_ms = OFTEN_MS if only else SELDOM_MS
        self._kinds = set(only) or {kind for kind in (*NETWORK_FAULTS, *FAULTS) if self.chance.random() < 0.5}
        self._network = random.Random(self.chance.random())
        self._faults = Faults(**{name: value for name, value in NETWORK_FAULTS.items() if name in self._kinds})
        self._clients: list[Guest] = []
        self._programs: list[Guest] = []
        defines = [*definitions([f"c{number}" for number in range(WORKERS)]), *_more_definitions()]
        self.serving = Serving(
            self.loop, self.chance, directory, defines, self.note, self.happened, uses_sqlite=uses_sqlite
        )

    @property
    def works(self) -> int:
        """How many works clients have ended."""
        return sum(guest.client.ended_units for guest in (*self._clients, *self._programs))

    def note(self, who: str) -> Callable[..., None]:
        """What takes the events of a client."""

        def noting(event: str, **what: Any) -> None:
            ms = self.loop.now // 1000
            self.events.append({"event": event, "who": who, "at": len(self.events), "ms": ms, **what})

        return noting

    # -- from beginning to end ------------------------------------------------------------------------------

    def run(self) -> list[str]:
        """Everything; what is wrong."""
        try:
            return self._run()
        except AssertionError as error:
            return [*self.serving.bugs, f"refused: {error}"]
        finally:
            self.serving.end()

    def _run(self) -> list[str]:
        self.serving.start()
        self._people()
        self._storm()
        self.loop.run(1000 * STORM_MS)
        self._calm_down()
        self.loop.run(1000 * (STORM_MS + CALM_MS))
        self._is_open = False
        workers = self._clients[:WORKERS]
        until = 1000 * (STORM_MS + CALM_MS + END_MS)
        self.loop.run(until, lambda: all(guest.is_over for guest in workers))
        self.loop.run(self.loop.now + 3_000_000)
        self.loop.run(until, lambda: all(guest.is_over for guest in self._programs))
        stuck = [guest.client.who for guest in (*workers, *self._programs) if not guest.is_over]
        aftermath = Aftermath(self.serving.manager_alone())
        events = aftermath.judge_units(self.events)
        left = aftermath.left((*LOADED, WAITED_ON, FIRST, DEPTH))
        return [
            *self.serving.bugs,
            *(f"stuck: {who} never came to its end" for who in stuck),
            *_undrained(left.messages),
            *problems(events, left),
        ]

    def _people(self) -> None:
        def client(who: str) -> Client:
            return Client(who, random.Random(self.chance.random()), self.note(who), STEPS, lambda: self._is_open)

        for number in range(WORKERS):
            worker = client(f"c{number}")
            worker.puts_to = PUT_TO
            self._clients.append(Guest(self, worker))
        for number in range(WAITING):
            sleeper = client(f"w{number}")
            self._clients.append(Guest(self, sleeper, waiting(sleeper, lambda: self.is_calm)))
        monitor = client("monitor")
        self._clients.append(Guest(self, monitor, listening(monitor, INITIATION_Q, self._start_program)))
        for guest in self._clients:
            guest.begin()

    def _start_program(self, q_name: str) -> None:
        """A trigger message was got: the queue has somebody who serves it."""
        if q_name == COUNTED:
            return  # one for each message: clients enough read it anyway
        who = f"p{len(self._programs)}"
        program = Client(who, random.Random(self.chance.random()), self.note(who), (), lambda: self._is_open)
        guest = Guest(self, program, triggered(program, q_name, lambda: self.is_calm))
        self._programs.append(guest)
        self.loop.after(self.chance.randint(1, 500), guest.begin)

    def _calm_down(self) -> None:
        self.is_calm = True
        self.serving.heal()
        for name in vars(self._faults):
            setattr(self._faults, name, 0)
        for guest in self._clients:
            guest.client.steps = [step for step in STEPS if step.is_calm]
            if guest.link is not None:
                guest.link.cut()  # what waits for a frame that was lost waits no longer
        self.loop.after(REPAIR_MS, self._repair)

    def _repair(self) -> None:
        """The operator turns on what a program of a DEPTH queue died before it could turn on."""
        process = self.serving.process
        if process is None:
            self.loop.after(REPAIR_MS, self._repair)
            return
        process.command(Alter(object_type="QLOCAL", name=DEPTH, attributes={"trigger_control": "on"}))

    # -- the network ----------------------------------------------------------------------------------------

    def connect(self, heard: Callable[[bytes], None], lost: Callable[[], None]) -> Link | None:
        """See :class:`tests.proof.guests.World`."""
        process = self.serving.process
        if process is None:
            return None
        link = Link(self.loop, self._network, self._faults, self._count, heard, lost)
        process.accept(link)
        return link

    def new_client_id(self, who: str) -> str:
        """See :class:`tests.proof.guests.World`."""
        self._client_ids += 1
        return f"{who}-{self._client_ids}"

    def _count(self, what: str) -> None:
        self.happened[f"frame {what}"] += 1

    # -- the storm ------------------------------------------------------------------------------------------

    def _storm(self) -> None:
        for name, kind in FAULTS.items():
            if name in self._kinds:
                self._again(kind)

    def _again(self, kind: Callable[[Simulation], None]) -> None:
        def come() -> None:
            if not self.is_calm:
                kind(self)
                self._again(kind)

        self.loop.after(self.chance.randint(*self._pace_ms), come)

    def cut_somebody(self) -> None:
        """A connection breaks."""
        guest = self.chance.choice(self._clients)
        if guest.link is not None:
            self.happened["link cut"] += 1
            guest.link.cut()


FAULTS: dict[str, Callable[[Simulation], None]] = {
    "kill": lambda simulation: simulation.serving.kill(),
    "cut power": lambda simulation: simulation.serving.cut_power(),
    "break": lambda simulation: simulation.serving.break_at_some_write(),
    "stop": lambda simulation: simulation.serving.stop(),
    "jump": lambda simulation: simulation.serving.jump(),
    "fill": lambda simulation: simulation.serving.fill_disk(),
    "cut somebody": Simulation.cut_somebody,
}


def _more_definitions() -> list[Any]:
    lasting = {"def_persistence": "persistent", "max_q_depth": 1_000_000}
    depth = {"trigger_type": "depth", "trigger_depth": TRIGGER_DEPTH}
    queues = {WAITED_ON: lasting, FIRST: lasting | ARMED, DEPTH: lasting | ARMED | depth}
    return [Define(object_type="QLOCAL", name=name, attributes=what) for name, what in queues.items()]


def _undrained(left: list[tuple[str, str, int, int]]) -> list[str]:
    """What lies on queues that somebody should have emptied when all was calm."""
    depths = Counter(q_name for q_name, _, _, _ in left)
    del depths[ASIDE]  # nobody reads it
    del depths[BATCHED]  # a batch waits for its consumer, who may have ended
    depths[DEPTH] = max(0, depths[DEPTH] - (TRIGGER_DEPTH - 1))
    return [f"stuck: {depth} messages lie on {q_name} and nobody was told" for q_name, depth in depths.items() if depth]
