"""``python -m tests.benchmarks --profile``: the daemon's CPU of a message by stage, beside one without probes."""

from __future__ import annotations

import json
import mmap
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.comparison import GET_PATIENCE, WARM_S
from tests.benchmarks.peers.on_trigmon import Trigmon
from tests.benchmarks.peers.peer import QUEUE, UNITS
from tests.benchmarks.peers.server_process import ending_with_this
from tests.benchmarks.peers.turn_of_clients import GETS, UNIT, Turn, turn
from tests.benchmarks.probed_daemon import STAGES
from tests.benchmarks.probes import REST
from tests.daemons import Daemon
from tests.waiting import until

MESSAGE_OF = {
    "put": "put",
    "get": "get",
    "confirmed_get": "get under syncpoint and its commit",
    "unit": f"message of a unit of {UNIT} puts",
}
BODY = b"x" * 1024
_SYNCS = 200


class Probed(Trigmon):
    """A daemon with probes, which are read when its CPU is."""

    def __init__(self, home: Path) -> None:
        self._file = home / "probes"
        self.readings: list[dict[str, Any]] = []
        super().__init__(home)

    def _make(self, home: Path) -> Daemon:
        daemon = Daemon(home, program=("tests.benchmarks.probed_daemon",))
        return daemon.start(env=daemon.env | {"PROBES": str(self._file)}, preexec_fn=ending_with_this())

    def cpu_seconds(self) -> float:
        os.kill(self.pid, signal.SIGUSR1)
        written = Path(f"{self._file}.{len(self.readings) + 1}")
        until(written.exists)
        self.readings.append(json.loads(written.read_text()))
        return super().cpu_seconds()


class Stages:
    """What was spent by stage in all rounds together."""

    def __init__(self) -> None:
        self.messages = 0
        self.spent_ns = dict.fromkeys((*STAGES, REST), 0.0)
        self.calls = dict.fromkeys((*STAGES, REST), 0)
        self.probes_ns = 0.0

    def add(self, messages: int, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Adds a turn between two readings."""
        self.messages += messages
        self.probes_ns += after["probes"] - before["probes"]
        for stage in self.spent_ns:
            self.spent_ns[stage] += after["spent"][stage] - before["spent"][stage]
            self.calls[stage] += after["calls"][stage] - before["calls"][stage]

    def table(self, plain: Sequence[Turn]) -> str:
        """Returns the stages, their sum, and what a daemon without probes spent in the same run."""
        whole = sum(self.spent_ns.values())
        lines = [f"  {'':<48}{'us/msg':>8}{'share':>8}{'calls/msg':>11}"]
        for stage, spent in self.spent_ns.items():
            name = "the rest: asyncio's loop, and what has no probe" if stage == REST else stage
            calls = f"{self.calls[stage] / self.messages:.2f}" if self.calls[stage] else "-"
            lines.append(f"  {name:<48}{spent / self.messages / 1e3:>8.1f}{spent / whole:>8.1%}{calls:>11}")
        lines.append(f"  {'sum, the probes taken off':<48}{whole / self.messages / 1e3:>8.1f}")
        lines.append(f"  {'taken off for the probes':<48}{self.probes_ns / self.messages / 1e3:>8.1f}")
        without = sum(it.cpu_s or 0 for it in plain) / sum(it.messages for it in plain) * 1e6
        lines.append(f"  {'a daemon without probes, from /proc, in turns':<48}{without:>8.1f}")
        return "\n".join(lines)


def sync_us(directory: Path) -> tuple[float, float]:
    """Returns the CPU and the time of a page written in its place and its fdatasync, in microseconds."""
    page = bytes(mmap.PAGESIZE)
    path = directory / "page"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, page, 0)
    os.fsync(descriptor)
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(_SYNCS):
        os.pwrite(descriptor, page, 0)
        os.fdatasync(descriptor)
    spent = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
    os.close(descriptor)
    path.unlink()
    return spent[0] / _SYNCS / 1e3, spent[1] / _SYNCS / 1e3


def profile(directory: Path, rounds: int, seconds: float, clients: Sequence[int], operation: str) -> None:
    """Prints a table for each number of clients, of an ``operation`` of MESSAGE_OF."""
    cpu, wall = sync_us(directory)
    print(f"one page and its fdatasync here: {cpu:,.1f} us of CPU, {wall:,.0f} us until it is done; load", end=" ")
    print(f"{os.getloadavg()[0]:.2f} before; {rounds} rounds of {seconds:g} s", flush=True)
    homes = [directory / "plain", directory / "probed"]
    for home in homes:
        home.mkdir()
    plain = Trigmon(homes[0])
    try:
        probed = Probed(homes[1])
        try:
            for many in clients:
                who = "1 client" if many == 1 else f"{many} clients"
                print(f"\nCPU of a {MESSAGE_OF[operation]} by stage, {len(BODY):,} B, persistent, on SQLite, {who}")
                print(_measured(plain, probed, rounds, seconds, many, operation), flush=True)
        finally:
            probed.end()
    finally:
        plain.end()


def _measured(plain: Trigmon, probed: Probed, rounds: int, seconds: float, clients: int, operation: str) -> str:
    stages = Stages()
    without: list[Turn] = []
    for number in range(-1, rounds):
        for peer in (plain, probed):
            done = _turn(peer, operation, clients, min(seconds, WARM_S) if number < 0 else seconds)
            if number >= 0 and peer is plain:
                without.append(done)
            elif number >= 0:
                stages.add(done.messages, *probed.readings[-2:])
    return stages.table(without)


def _turn(peer: Trigmon, operation: str, clients: int, seconds: float) -> Turn:
    """Plays a turn, and leaves nothing on the queues. What is got was put before, by as many clients."""
    if operation in GETS:
        there = turn(peer, "put", clients, BODY, seconds).messages
        done = turn(peer, operation, clients, BODY, seconds * GET_PATIENCE, most=there)
    else:
        done = turn(peer, operation, clients, BODY, seconds)
    peer.empty(UNITS if operation == "unit" else QUEUE)
    return done
