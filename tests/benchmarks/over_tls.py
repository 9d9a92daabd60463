"""What TLS costs: persistent messages of 16 clients by the socket, by plain TCP on this machine, and by TLS."""

from __future__ import annotations

import socket
import time
from functools import partial
from pathlib import Path

import trigmon
from tests.benchmarks.loads import seconds
from tests.benchmarks.measuring import in_turns, told
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from tests.tls.authorities import Site
from trigmon.tls.accounts import Account

CLIENTS = 16
BODY = b"x" * 1024


def measured(directory: Path, rounds: int, count: int) -> None:
    """Prints rates and ratios; ``count`` messages a client and turn."""
    site = Site(directory / "tls")
    site.client("alice")
    site.let_in(Account("alice", certificates=("CN=alice",)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        tcp = f"127.0.0.1:{free.getsockname()[1]}"
    (directory / "home").mkdir()
    one = Daemon(directory / "home", settings=site.settings | {"server.tcp": tcp}).start()
    try:
        with one.connect() as qm:
            for number in range(CLIENTS):
                define(qm, f"Q{number}", def_persistence="persistent")
        ways = {"by the socket": one.address, "by TCP": f"tcp://{tcp}", "by TLS": site.address("alice")}
        subjects = {name: partial(_turn, one, address, count) for name, address in ways.items()}
        figures = in_turns(rounds, subjects, "msg/s")
    finally:
        one.end()
    title = f"persistent messages put and got by {CLIENTS} clients"
    print(told(title, figures, against="by the socket", note="us of daemon CPU a message"), flush=True)


def _turn(one: Daemon, address: str, count: int) -> tuple[float, float]:
    def client(number: int, ready) -> None:
        with trigmon.connect(address) as qm, qm.open(f"Q{number}", "output", "input_shared") as queue:
            ready()
            for _ in range(count):
                queue.put(BODY)
                queue.get()

    # Handshakes are before the barrier, and so is most of their cost; it is in the CPU of both ways alike.
    before = cpu_seconds(one.process.pid)
    took = seconds(CLIENTS, client)
    time.sleep(0.05)
    return CLIENTS * count / took, (cpu_seconds(one.process.pid) - before) / (CLIENTS * count) * 1e6
