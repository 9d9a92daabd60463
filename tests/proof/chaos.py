"""Proof: members of a group are killed, stopped and cut off under load, and so is their database.

A round is one fault. Before it a message comes to an empty triggered queue through some member; behind it every member
has been told, those that were struck when they are back.
"""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Protocol

import psycopg
from psycopg import sql

import trigmon
from tests.daemons import Daemon, define
from tests.members import group_of, settings, share
from tests.postgres import Pair, Server
from tests.proof.chaos_clients import OWN, SHARED, Client, Monitor
from tests.proof.chaos_rules import COMMITTED, Left, Recovery, Work, problems
from tests.proof.cuttable import Way
from tests.proof.found import Found
from tests.spark.clusters import Network, ip
from tests.waiting import until, until_more
from trigmon.rules.model.shared_queue import counts_of, lies
from trigmon.store.memory.group import OWN_NUMBERS
from trigmon.store.postgres import group_sql
from trigmon.store.postgres.group.group_snapshot import GroupSnapshot
from trigmon.store.postgres.pipeline import Link

NAMES = ("QM1", "QM2", "QM3")
CLIENTS_EACH = 2
LEASE_S = 1.0
ENOUGH = 10
"""Units of work committed between two faults, at least."""
LOAD_S = (0.1, 0.6)
BACK_S = 60.0
TOLD_S = 60.0
REFUSED_S = 60.0
TRIGGERED = "CHAOS.TRIGGERED"
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
GIVE_BACK = """
UPDATE message SET taken_by = NULL, backout_count = backout_count + 1
WHERE taken_by >= ? AND taken_by < ? AND put_by IS NULL RETURNING queue, priority"""

Make = Callable[..., Daemon]


class Cuttable(Protocol):
    """A member's way to the database."""

    def cut(self) -> None:
        """Nothing passes any more, and nobody is told."""

    def mend(self) -> None:
        """Everything passes again."""

    def close(self) -> None:
        """The end."""


class Cable:
    """The way of a member in a network of its own."""

    def __init__(self, network: Network, number: int) -> None:
        self._plug = network.outside[number]

    def cut(self) -> None:
        """It is pulled out."""
        ip("link", "set", self._plug, "down")

    def mend(self) -> None:
        """It is put in again."""
        ip("link", "set", self._plug, "up")

    def close(self) -> None:
        """It goes with its network."""


class Harness:
    """Three members over one server, each by a way of its own: in a ``network``, or else through a socket.

    Over a pair of servers each finds the one that serves; if that is careful it puts up with no loss. ``program`` is
    what a member runs.
    """

    def __init__(self, make: Make, server: Server | Pair, network: Network | None, program: Sequence[str]) -> None:
        self.server = server
        self.ways: dict[str, Cuttable] = {}
        self.members = []
        self.crashes: list[float] = []
        self.struck: list[tuple[float, str, str]] = []
        self._schema = schema = settings()["group.postgres_schema"]
        for number, name in enumerate(NAMES):
            if isinstance(server, Pair):
                dsn, inside = server.dsn, ()
            elif network is None:
                way = Way(server.dsn)
                dsn, inside = way.dsn, ()
                self.ways[name] = way
            else:
                dsn, inside = server.dsn, ("ip", "netns", "exec", network.names[number])
                self.ways[name] = Cable(network, number)
            said = settings(dsn, schema=schema, lease_s=LEASE_S)
            said["group.accept_loss"] = str(not (isinstance(server, Pair) and server.careful)).lower()
            self.members.append(make(name, settings=said, inside=inside, program=program, start=False).launch())
        for one in self.members:
            one.wait_until_ready()
        first = self.members[0]
        share(first, SHARED, max_q_depth=999_999_999)
        share(first, TRIGGERED, trigger_control="on", initiation_q_name=INITQ, process_name="P")
        for one in self.members:
            with one.connect() as qm:
                define(qm, OWN, max_q_depth=999_999_999)
                define(qm, "P", "PROCESS", appl_id="true")
        for one in self.members:
            self.knows(one)

    def knows(self, one: Daemon) -> None:
        """Waits until a member knows the queues of the group."""
        until(lambda: {SHARED, TRIGGERED} <= {queue["name"] for queue in group_of(one)["queues"]})

    def is_whole(self) -> bool:
        """Whether every member serves, as each sees it."""
        try:
            rows = [row["state"] for one in self.members for row in group_of(one)["members"]]
        except trigmon.MQError:
            return False
        return rows == ["serving"] * len(self.members) ** 2

    # -- faults -------------------------------------------------------------------------------------------

    def kill(self, one: Daemon, chance: random.Random) -> None:
        """A member is killed, and started again: before or after it was given up for dead."""
        one.kill()
        time.sleep(chance.choice((0, 0.5)) * LEASE_S)
        one.start()

    def stop(self, one: Daemon, chance: random.Random) -> None:
        """A member stands still for less or more than its lease."""
        one.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(chance.uniform(0.3, 2.5) * LEASE_S)
        finally:
            one.process.send_signal(signal.SIGCONT)

    def cut(self, one: Daemon, chance: random.Random) -> None:
        """A member does not reach the database for less or more than its lease."""
        self.ways[one.name].cut()
        try:
            time.sleep(chance.uniform(0.3, 2.5) * LEASE_S)
        finally:
            self.ways[one.name].mend()

    def _crashed(self, kill: Callable[[], None]) -> None:
        """It has crashed when it is dead: until then it answers, and what it answered it may forget."""
        kill()
        self.crashes.append(time.time())

    def crash(self, one: Daemon, chance: random.Random) -> None:
        """The database is killed, and started again."""
        assert isinstance(self.server, Server)
        self._crashed(self.server.kill)
        time.sleep(chance.uniform(0, 1))
        self.server.start()

    def fail_over(self, one: Daemon, chance: random.Random) -> None:
        """The database is killed, its standby takes its place, and after a while has a standby itself."""
        assert isinstance(self.server, Pair)
        self._crashed(self.server.primary.kill_hard)
        self.server.promote()
        time.sleep(chance.uniform(0, 1))
        self.server.mend()

    def fail_over_late(self, one: Daemon, chance: random.Random) -> None:
        """The standby is away for a while, and when the database is killed it has not seen what was done meanwhile."""
        assert isinstance(self.server, Pair)
        self.server.standby.kill()
        time.sleep(chance.uniform(0.3, 2.5) * LEASE_S)
        self._crashed(self.server.primary.kill_hard)
        self.server.standby.start()
        self.server.promote()
        self.server.mend()

    def leave(self, one: Daemon, chance: random.Random) -> None:
        """The standby is away, for less or more than a lease."""
        assert isinstance(self.server, Pair)
        self.server.standby.kill()
        time.sleep(chance.uniform(0.3, 2.5) * LEASE_S)
        self.server.standby.start()

    def give_back(self, one: Daemon, chance: random.Random) -> None:
        """Somebody gives back what a member has got and not committed, which lives and is not told."""
        before = len(self.refused())
        until(lambda: self._given_back(one.name))
        with suppress(AssertionError):  # where nobody counts
            until(lambda: len(self.refused()) > before, REFUSED_S)

    def _given_back(self, name: str) -> bool:
        snapshot = GroupSnapshot()
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self._schema)))
            link = Link(connection)
            for statement in ("BEGIN", group_sql.LOCK):
                link.send(statement)
            snapshot.take(link.ask(group_sql.LOOK, (0, 0, 0, 0)))
            ((number,),) = link.ask(group_sql.NUMBER, (name,))
            back = link.ask(GIVE_BACK, (number * OWN_NUMBERS, (number + 1) * OWN_NUMBERS))
            for q_name, q_number in snapshot.numbers.items():
                counts = counts_of([priority for queue, priority in back if queue == q_number])
                if any(counts):
                    snapshot.write(q_name, lies(snapshot.queues[q_name], counts))
            for statement, values in snapshot.writes():
                link.send(statement, values)
            link.commit()
        return bool(back)

    def stuck(self) -> list[str]:
        """What lies in the group's rows behind that look: nobody can get it."""
        rows = sql.SQL("SELECT convert_from(data, 'UTF8'), put_by, taken_by FROM {}").format(
            sql.Identifier(self._schema, "message")
        )
        with psycopg.connect(self.server.dsn, target_session_attrs="read-write") as asking:
            return [f"stuck: {body}, put by {put_by}, got by {got_by}" for body, put_by, got_by in asking.execute(rows)]

    def refused(self) -> list[str]:
        """Turns that the count of rows kept from being committed: the fence before it let them pass."""
        events = [event for one in self.members for event in one.events() if "rows were to change" in str(event)]
        return [f"past the fence: {event['why']}" for event in events if "why" in event]

    def close(self) -> None:
        """The members end in order, and the ways to them."""
        for one in self.members:
            one.end()
        for way in self.ways.values():
            way.close()

    # -- what was left --------------------------------------------------------------------------------------

    def left(self) -> Iterator[Left]:
        """The messages of all queues, which are empty then."""
        for number, one in enumerate(self.members):
            with one.connect() as qm:
                for name in (OWN, *([SHARED] if not number else [])):
                    with qm.open(name, "input_shared") as q:
                        for message in q.drain():
                            yield Left(name, message.text, message.backout_count)

    def recoveries(self) -> list[Recovery]:
        """Who was recovered, and when that was said."""
        events = (event for one in self.members for event in one.events("a dead member was recovered"))
        return [Recovery(event["member"], _seconds(event)) for event in events]


FAULTS: dict[str, Callable[[Harness, Daemon, random.Random], None]] = {
    "kill": Harness.kill,
    "stop": Harness.stop,
    "cut": Harness.cut,
    "crash": Harness.crash,
}
BY_HAND: dict[str, Callable[[Harness, Daemon, random.Random], None]] = {"give back": Harness.give_back}
OF_A_PAIR: dict[str, Callable[[Harness, Daemon, random.Random], None]] = {
    "fail over": Harness.fail_over,
    "fail over late": Harness.fail_over_late,
    "leave": Harness.leave,
    "kill": Harness.kill,
    "stop": Harness.stop,
}


def strike(
    make: Make,
    server: Server | Pair,
    faults: int,
    seed: int,
    *,
    network: Network | None = None,
    kinds: Sequence[str] = tuple(FAULTS),
    program: Sequence[str] = ("trigmon",),
) -> Found:
    """Strikes so often, and judges what the clients' books say. With a mutant's ``program`` it ends when it knows."""
    chance = random.Random(seed)
    found = Found("faults")
    harness = Harness(make, server, network, program)
    kinds = list(itertools.islice(itertools.cycle(kinds), faults))
    chance.shuffle(kinds)
    with _load(harness, seed) as (clients, monitors):
        for kind in kinds:
            until_more(lambda: _committed(_works(clients)), ENOUGH, lambda: any(map(Client.is_alive, clients)))
            struck = chance.choice(harness.members)
            found.add(_round(harness, monitors, kind, struck, chance), f"seed {seed}, {kind} of {struck.name}")
            found.more[kind] += 1
            if found.violations:
                break  # what comes behind it may follow from it
    works = _works(clients)
    found.add([str(client.problem) for client in clients if client.problem], f"seed {seed}", 0)
    recoveries = harness.recoveries()
    found.add(problems(works, harness.left(), recoveries, harness.crashes), f"seed {seed}", 0)
    if found.violations:
        found.violations += [f"at {at_s:.3f}: {kind} of {name}" for at_s, kind, name in harness.struck]
    refused = harness.refused()
    found.add([*harness.stuck(), *([] if set(kinds) & set(BY_HAND) else refused)], f"seed {seed}", 0)
    found.more["refused turns"] = len(refused)
    harness.close()
    _count(found, works, recoveries)
    return found


def _works(clients: Iterable[Client]) -> list[Work]:
    return [work for client in clients for work in client.works]


def _committed(works: Iterable[Work]) -> int:
    return sum(work.outcome == COMMITTED for work in works)


def _count(found: Found, works: list[Work], recoveries: list[Recovery]) -> None:
    found.more["units of work"] = _committed(works)
    found.more["asked after"] = sum(work.was_cut and work.asked_s > 0 for work in works)
    found.more["recovered members"] = len(recoveries)


@contextmanager
def _load(harness: Harness, seed: int) -> Iterator[tuple[list[Client], list[Monitor]]]:
    clients = [Client(f"{one.name}.c{number}", one, seed) for one in harness.members for number in range(CLIENTS_EACH)]
    monitors = [Monitor(one, INITQ) for one in harness.members]
    threads = [*clients, *monitors]
    for thread in threads:
        thread.start()
    try:
        yield clients, monitors
    finally:
        for thread in threads:
            thread.end()
        for thread in threads:
            thread.join(BACK_S)
    assert not [thread for thread in threads if thread.is_alive()]


def _round(harness: Harness, monitors: list[Monitor], kind: str, struck: Daemon, chance: random.Random) -> list[str]:
    """One fault; what was not mended behind it, or not told."""
    time.sleep(chance.uniform(*LOAD_S))
    began = time.time()
    by = chance.choice(harness.members)
    with by.connect() as qm:
        qm.put(TRIGGERED, b"due", persistence="persistent")
    harness.struck.append((time.time(), kind, struck.name))
    (FAULTS | BY_HAND | OF_A_PAIR)[kind](harness, struck, chance)
    try:
        until(harness.is_whole, BACK_S)
    except AssertionError:
        return [f"not mended within {BACK_S:g} s"]
    try:
        until(lambda: all(any(at > began for at in monitor.heard) for monitor in monitors), TOLD_S)
    except AssertionError:
        missing = [monitor.name for monitor in monitors if not any(at > began for at in monitor.heard)]
        return [f"not triggered: {', '.join(missing)}, where {by.name} put"]
    finally:
        with by.connect() as qm, qm.open(TRIGGERED, "input_exclusive") as q:
            for _ in q.drain():
                pass
    return []


def _seconds(event: dict[str, str]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()
