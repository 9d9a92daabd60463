"""A turn: client processes that do one operation for some seconds, and what the server spent for them meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError
from typing import Any

from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer
from tests.benchmarks.peers.server_process import end_with_parent, ending_signals_held_back

_FORK = multiprocessing.get_context("fork")
UNIT = 100
PATIENCE_S = 900.0
OPERATIONS = {
    "put": "put, durable when answered",
    "get": "get, durable when answered",
    "confirmed_get": "get that comes back unless it is confirmed",
    "unit": f"unit of work of {UNIT} puts",
}
GETS = ("get", "confirmed_get")


@dataclass
class Turn:
    """What clients did together. ``took_s`` is from the first one's begin to the last one's end."""

    messages: int
    took_s: float
    cpu_s: float | None
    waits_s: Sequence[float]
    """How long each call took, of all clients."""

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.took_s

    @property
    def cpu_us(self) -> float | None:
        """The server's CPU a message in microseconds."""
        return None if self.cpu_s is None else self.cpu_s / self.messages * 1e6


def turn(peer: Peer, operation: str, clients: int, body: bytes, seconds: float, *, most: int = 0) -> Turn:
    """Returns what ``clients`` processes do in that time; with ``most``, they end when they have done so many."""
    barrier = _FORK.Barrier(clients + 1)
    links: list[Connection] = []
    workers: list[ForkProcess] = []
    try:
        for number in range(clients):
            share = most // clients + (number < most % clients) if most else 0
            workload = Workload(operation, body, seconds, share, is_bounded=bool(most))
            with ending_signals_held_back():
                _start(workers, links, peer, workload, barrier)
        barrier.wait(PATIENCE_S)  # all are connected
        before = peer.cpu_seconds()
        barrier.wait(PATIENCE_S)
        # Each sends its times as soon as it is done, more than a pipe holds: they are read first.
        done = [_received(link) for link in links]
        after = peer.cpu_seconds()  # while all its processes still serve these connections
        barrier.wait(PATIENCE_S)
    except (BrokenBarrierError, EOFError):
        barrier.abort()
        raise RuntimeError(f"{operation} on {peer.name} failed in a client, see above") from None
    except BaseException:
        for worker in workers:
            worker.kill()  # it has nothing to remove
        raise
    finally:
        for worker in workers:
            worker.join(PATIENCE_S)
    waits = array("d")
    for _, _, each in done:
        waits.frombytes(each)
    spent = None if before is None or after is None else after - before
    took = max(ended for _, ended, _ in done) - min(began for began, _, _ in done)
    return Turn(len(waits) * (UNIT if operation == "unit" else 1), took, spent, waits)


def _start(
    workers: list[ForkProcess], links: list[Connection], peer: Peer, workload: Workload, barrier: Barrier
) -> None:
    mine, theirs = _FORK.Pipe(duplex=False)
    worker = _FORK.Process(target=_client, args=(os.getpid(), peer, workload, barrier, theirs), daemon=True)
    worker.start()
    theirs.close()
    links.append(mine)
    workers.append(worker)


def _received(link: Connection) -> tuple[float, float, bytes]:
    found: tuple[float, float, bytes] = link.recv()
    return found


@dataclass
class Workload:
    """What one client does: for some seconds, and where it is bounded at most ``share`` times."""

    operation: str
    body: bytes
    seconds: float
    share: int
    is_bounded: bool

    def call_of(self, client: Client) -> Callable[[], Any]:
        """Returns what is called again and again."""
        if self.operation == "put":
            return lambda: client.put(self.body)
        if self.operation == "unit":
            bodies = [self.body] * UNIT
            return lambda: client.put_unit(bodies)
        return client.get if self.operation == "get" else client.confirmed_get


def _client(parent: int, peer: Peer, workload: Workload, barrier: Barrier, link: Connection) -> None:
    end_with_parent(parent)
    try:
        client = peer.connect(UNITS if workload.operation == "unit" else QUEUE)
        call, clock, waits = workload.call_of(client), time.perf_counter, array("d")
        barrier.wait(PATIENCE_S)
        barrier.wait(PATIENCE_S)
        began = now = clock()
        until = began + workload.seconds
        while now < until and not (workload.is_bounded and len(waits) >= workload.share):
            call()
            before, now = now, clock()
            waits.append(now - before)
        link.send((began, now, waits.tobytes()))
        barrier.wait(PATIENCE_S)
        client.close()
    except BaseException:
        barrier.abort()
        raise
