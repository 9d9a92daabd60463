"""Clients as they are in life: a process each, that waits for every answer before it asks again."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable

from tests.processes import cpu_seconds

_FORK = multiprocessing.get_context("fork")
REST_S = 1.0

Client = Callable[[int, Callable[[], None]], None]
"""Given its number and what to call once it is connected; returns when its work is done."""


def seconds(clients: int, client: Client) -> float:
    """How long ``clients`` processes took together, from the moment all were connected to the end of the last."""
    ready = _FORK.Barrier(clients + 1)

    def begin(number: int) -> None:
        client(number, lambda: ready.wait() and None)

    workers = [_FORK.Process(target=begin, args=(number,)) for number in range(clients)]
    for worker in workers:
        worker.start()
    ready.wait(60)
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    took = time.perf_counter() - began
    assert all(worker.exitcode == 0 for worker in workers), "a client failed"
    return took


def cpu_seconds_at_rest(pid: int) -> float:
    """Returns what a process has spent when it has had nothing to do for a second."""
    now, seen = cpu_seconds(pid), -1.0
    while now != seen:
        time.sleep(REST_S)
        now, seen = cpu_seconds(pid), now
    return now
