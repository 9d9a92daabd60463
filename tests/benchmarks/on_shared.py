"""What is measured of a shared queue: members of a queue-sharing group, beside a plain queue with SKIP LOCKED.

All are on one server with fsync on. Each message is put in a unit of work and got in another, alone or with nine more,
and each end of one is durable when it is answered. A client may hold a unit of work open on the queue meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import psycopg

from tests.benchmarks.loads import seconds
from tests.benchmarks.measuring import Figures, in_turns, told
from tests.benchmarks.on_postgres import GET, PUT, SkipLocked
from tests.benchmarks.servers import BODY, Q
from tests.daemons import Daemon
from tests.members import members, sees, settings, share
from tests.postgres import Server
from tests.processes import cpu_seconds

Begin = Callable[[], None]
CLIENTS = 16
UNIT = 10
PLAIN = "SKIP LOCKED"
HELD = "HELD"
"""The queue on which a unit of work may stay open."""


class Members:
    """A group of so many members; its clients are spread over them evenly. ``HELD`` is a shared queue like ``Q``."""

    def __init__(self, home: Path, server: Server, count: int) -> None:
        self._home = home
        chosen = settings(server.dsn, schema=f"shared_by_{count}", lease_s=30)
        names = [f"QM{number}" for number in range(1, count + 1)]
        self._members: list[Daemon] = members(self._make, *names, chosen=chosen)
        for q_name in (Q, HELD):
            share(self._members[0], q_name, max_q_depth=999_999_999, def_persistence="persistent")
            sees(*self._members, q_name=q_name)

    def _make(self, name: str, **named: object) -> Daemon:
        home = self._home / name
        home.mkdir(parents=True)
        named.pop("start")
        return Daemon(home, name, **named)

    def end(self) -> None:
        for member in self._members:
            member.end()

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(member.process.pid) for member in self._members)

    def client(self, number: int, count: int, begin: Begin, q_name: str = Q, unit: int = 1) -> None:
        member = self._members[number % len(self._members)]
        with member.connect() as qm, qm.open(q_name, "output") as out, qm.open(q_name, "input_shared") as queue:
            begin()
            for _ in range(count // unit):
                for _ in range(unit):
                    out.put(BODY, syncpoint=True)
                qm.commit()
                for _ in range(unit):
                    queue.get(syncpoint=True, wait_interval_ms=60_000)
                qm.commit()

    @contextlib.contextmanager
    def held_open(self) -> Iterator[None]:
        """A client has put a message and got another, and decides nothing."""
        with self._members[0].connect() as qm, qm.open(HELD, "input_shared") as queue:
            qm.put(HELD, BODY)
            queue.get(syncpoint=True)
            qm.put(HELD, BODY, syncpoint=True)
            yield
            qm.commit()
            queue.get()


class InTransactions(SkipLocked):
    """The plain queue as a program uses it that works on a message before it commits: a transaction for each."""

    def client(self, _: int, count: int, begin: Begin, unit: int = 1) -> None:
        with psycopg.connect(self._dsn, prepare_threshold=0) as db:
            begin()
            for _ in range(count // unit):
                for _ in range(unit):
                    db.execute(PUT, (0, BODY))
                db.commit()
                for _ in range(unit):
                    while db.execute(GET).fetchone() is None:
                        if unit == 1:
                            db.commit()
                db.commit()


class InUnits:
    """The clients of a group, or of the plain queue, with so many messages in each unit of work."""

    def __init__(self, it: Members | InTransactions, unit: int) -> None:
        self.cpu_seconds = it.cpu_seconds
        self.client = partial(it.client, unit=unit)


class InStatements(InTransactions):
    """The same table by single statements, each its own transaction: the fewest trips that it can be used with."""

    def __init__(self, other: InTransactions) -> None:
        self._dsn = other._dsn

    def client(self, _: int, count: int, begin: Begin) -> None:
        self.both(count, begin)


class OnHeld:
    """A group's clients on the other queue."""

    def __init__(self, group: Members) -> None:
        self.cpu_seconds = group.cpu_seconds
        self.client = partial(group.client, q_name=HELD)


def per_second(it: Members | OnHeld | InUnits | InTransactions, server: Server, each: int) -> tuple[float, float]:
    """Messages a second through put and get, and the CPU a message in microseconds of all that serves."""
    before = server.cpu_seconds() + it.cpu_seconds()
    took = seconds(CLIENTS, lambda number, begin: it.client(number, each, begin))
    spent = server.cpu_seconds() + it.cpu_seconds() - before
    total = CLIENTS * each
    return total / took, spent / total * 1e6


def measured(directory: Path, rounds: int, each: int, held_s: float) -> None:
    """Prints what is measured; with and without an open unit of work in turns too, so that no minute is one's own."""
    server = Server()
    groups: dict[str, Members] = {}
    try:
        groups |= {"one member": Members(directory / "one", server, 1)}
        groups |= {"two members": Members(directory / "two", server, 2)}
        plain = InTransactions(server)
        everybody = {**groups, PLAIN: plain, f"{PLAIN}, single statements": InStatements(plain)}
        subjects = {name: partial(per_second, it, server, each) for name, it in everybody.items()}
        in_turns(1, subjects, "msg/s")  # the first round finds cold caches, and says nothing
        _show("a shared queue, put and get under syncpoint", in_turns(rounds, subjects, "msg/s"), PLAIN)
        subjects = {
            name: partial(per_second, InUnits(it, UNIT), server, -(-each // UNIT) * UNIT)
            for name, it in {**groups, PLAIN: plain}.items()
        }
        _show(f"the same, {UNIT} messages in each unit of work", in_turns(rounds, subjects, "msg/s"), PLAIN)
        subjects = {
            f"{name}, {where}": partial(per_second, it, server, each)
            for name, group in groups.items()
            for where, it in (("none open", group), ("one open", OnHeld(group)))
        }
        with contextlib.ExitStack() as stack:
            for it in groups.values():
                stack.enter_context(it.held_open())
            found = _for_so_long(held_s, subjects)
        for name in groups:
            pair = {key: figures for key, figures in found.items() if key.startswith(name)}
            _show(f"a unit of work stays open on the queue for {held_s:g} s", pair, f"{name}, none open")
    finally:
        for it in groups.values():
            it.end()
        server.end()


def _for_so_long(held_s: float, subjects: Mapping[str, Callable[[], tuple[float, float]]]) -> dict[str, Figures]:
    """Rounds until the time is over, at least one."""
    until = time.monotonic() + held_s
    found = in_turns(1, subjects, "msg/s")
    while time.monotonic() < until:
        for name, figures in in_turns(1, subjects, "msg/s").items():
            found[name].values += figures.values
            found[name].notes += figures.notes
    return found


def _show(title: str, figures: dict[str, Figures], against: str) -> None:
    print("\n" + told(f"{title}, {CLIENTS} clients", figures, against=against, note="server CPU us/msg"), flush=True)
