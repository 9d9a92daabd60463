"""The comparison of peers: cells by clients, size and depth, in which all peers play in turns, round by round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.peers.peer import QUEUE, UNITS, Peer
from tests.benchmarks.peers.turn_of_clients import GETS, UNIT, Turn, turn

WARM_S = 1.0
GET_PATIENCE = 3
"""By how much longer than its puts took a peer's gets may take; what is left then is named."""
MOST_BYTES = 4 * 1024**3
MOST_OF_UNIT = 16 * 1024**2
"""The longest unit of work that is measured: each client sends one."""
FILL_BYTES, FILL_COUNT = 4 * 1024**2, 1000


@dataclass(frozen=True)
class Cell:
    """What is varied: how many clients, how long messages are, how many lie on the queue."""

    clients: int
    size: int
    depth: int

    def __str__(self) -> str:
        who = "1 client" if self.clients == 1 else f"{self.clients} clients"
        return f"{who}, messages of {self.size:,} B, {self.depth:,} on the queue"


@dataclass
class Figures:
    """What was measured in a cell: by operation and peer, a turn a round."""

    cell: Cell
    turns: dict[str, dict[str, list[Turn]]]
    left: dict[str, int] = field(default_factory=dict)
    """How many messages more than the cell says a peer had on its queue at most: its gets were too slow."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why peers fell out."""


def cells(clients: Sequence[int], sizes: Sequence[int], depths: Sequence[int]) -> tuple[list[Cell], list[Cell]]:
    """Returns every combination, depths of a size ascending; and apart those that need too much room."""
    made = [Cell(many, size, depth) for size, depth, many in itertools.product(sizes, sorted(depths), clients)]
    has_room = [it for it in made if it.size * it.depth <= MOST_BYTES]
    return has_room, [it for it in made if it not in has_room]


class Comparison:
    """Peers that run, and how much lies on the queue of each."""

    def __init__(self, peers: Mapping[str, Peer], seconds: float, rounds: int, operations: Sequence[str]) -> None:
        self._peers = dict(peers)
        self._seconds = seconds
        self._rounds = rounds
        self._operations = operations
        self.there = dict.fromkeys(peers, 0)
        """How many messages lie on the queue of each."""

    def measured(self, all_cells: Sequence[Cell]) -> Iterator[Figures]:
        """Yields each cell's figures as soon as they are there."""
        size = 0
        for cell in all_cells:
            figures = Figures(cell, {each: {name: [] for name in self._peers} for each in self._of(cell)})
            if cell.size != size:
                self._start_anew()
            size = cell.size
            for number in range(-1, self._rounds):
                for name in list(self._peers):
                    try:
                        self._play(figures, name, is_warm_up=number < 0)
                    except (RuntimeError, OSError) as error:
                        # What else is measured is not lost with it.
                        figures.failed[name] = str(error)
                        del self._peers[name]
            yield figures

    def _of(self, cell: Cell) -> list[str]:
        """Returns the operations that are measured in a cell."""
        return [each for each in self._operations if each != "unit" or cell.size * UNIT <= MOST_OF_UNIT]

    def _start_anew(self) -> None:
        for name, peer in self._peers.items():
            if self.there[name]:
                peer.empty(QUEUE)
                self.there[name] = 0

    def _play(self, figures: Figures, name: str, *, is_warm_up: bool) -> None:
        """Plays one round of one peer: each operation once, and the depth is as before."""
        cell, peer = figures.cell, self._peers[name]
        body = b"x" * cell.size
        seconds = min(WARM_S, self._seconds) if is_warm_up else self._seconds
        self._bring_to(cell.depth, name, body)
        done: dict[str, Turn] = {}
        if set(figures.turns) - {"unit"}:
            done["put"] = turn(peer, "put", cell.clients, body, seconds)
            self.there[name] += done["put"].messages
        for operation in [each for each in GETS if each in figures.turns] or ["get"] * ("put" in done):
            self._fill(cell.depth + done["put"].messages, name, body)
            most = self.there[name] - cell.depth
            done[operation] = turn(peer, operation, cell.clients, body, seconds * GET_PATIENCE, most=most)
            self.there[name] -= done[operation].messages
        if "unit" in figures.turns:
            done["unit"] = turn(peer, "unit", cell.clients, body, seconds)
            peer.empty(UNITS)
        if (left := self.there[name] - cell.depth) > 0:
            figures.left[name] = max(left, figures.left.get(name, 0))
        if not is_warm_up:
            for operation in figures.turns:
                figures.turns[operation][name].append(done[operation])

    def _bring_to(self, depth: int, name: str, body: bytes) -> None:
        """Makes a queue as deep as that; one that is too deep is emptied where that is what is wanted."""
        if self.there[name] and not depth:
            self._peers[name].empty(QUEUE)
            self.there[name] = 0
        self._fill(depth, name, body)

    def _fill(self, depth: int, name: str, body: bytes) -> None:
        if self.there[name] >= depth:
            return
        client = self._peers[name].connect()
        at_once = max(1, min(FILL_COUNT, FILL_BYTES // len(body)))
        while missing := depth - self.there[name]:
            many = min(at_once, missing)
            client.put_unit([body] * many)
            self.there[name] += many
        client.close()
