"""Proof: the real daemon is killed in the middle of a load, again and again, and nothing is lost or doubled."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.daemons import Daemon
from tests.postgres import Server
from tests.proof.clients import LOADED, REPORTS
from tests.proof.found import Found
from tests.proof.harness import definitions
from tests.proof.history import COMMITTED, Event, Left, read
from tests.proof.rules import problems
from tests.waiting import until_more
from trigmon.client.connection import Connection
from trigmon.mq.calls import Display, Runs
from trigmon.mq.replies import Listing
from trigmon.server.exit_status import STORE_BROKEN

CLIENTS = 6
ENOUGH = 20
"""Units of work committed between two kills, at least."""
LOAD_S = (0.15, 0.45)
END_S = 60.0
PAGE = 256


class WithItsDatabase:
    """A daemon on PostgreSQL that is killed by killing the server: it ends by itself, since it cannot know more."""

    def __init__(self, one: Daemon, server: Server) -> None:
        self._one = one
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._one, name)

    def kill(self) -> None:
        self._server.kill()
        assert self._one.wait() == STORE_BROKEN

    def start(self) -> None:
        self._server.start()
        self._one.start()


def kill_again_and_again(one: Daemon | WithItsDatabase, kills: int, seed: int, how: str = "kill") -> Found:
    """Loads a running daemon, kills it so often, and judges what its clients wrote down.

    ``how`` is ``power`` where what was not synced may be lost with it.
    """
    names = [f"c{number}" for number in range(CLIENTS)]
    with one.connect() as qm:
        for define in definitions(names):
            qm.call(define)
    clients = [_start(one, who) for who in names]
    committed = Committed([_ledger(one, who) for who in names])
    found = Found("kills")
    crashes: list[Event] = []
    moments = random.Random(seed)
    try:
        for _ in range(kills):
            until_more(committed, ENOUGH, lambda: any(client.poll() is None for client in clients))
            time.sleep(moments.uniform(*LOAD_S))
            one.kill()
            now = time.monotonic_ns()
            crashes.append({"event": "crash", "who": "", "at": now, "ms": now // 1_000_000, "how": how})
            one.start()
        time.sleep(LOAD_S[1])
    finally:
        said = [client.communicate(timeout=END_S)[1] for client in clients]
    broken = [text for client, text in zip(clients, said, strict=True) if client.returncode]
    events = read([_ledger(one, who) for who in names], crashes)
    with one.connect() as qm:
        left = _left(qm)
    found.add([*broken, *problems(events, left)], f"seed {seed}", kills)
    ended = [event for event in events if event["event"] == "ended"]
    found.more["units of work"] = sum(event["outcome"] == COMMITTED for event in ended)
    found.more["asked after"] = sum(bool(event.get("was_cut")) for event in ended)
    return found


def _ledger(one: Daemon | WithItsDatabase, who: str) -> Path:
    return one.home / f"{who}.ledger"


class Committed:
    """How many units of work the ledgers say were committed by now; what was counted is not read again."""

    _SAID = f'"outcome": "{COMMITTED}"'.encode()

    def __init__(self, ledgers: list[Path]) -> None:
        self._read = dict.fromkeys(ledgers, 0)
        self._count = 0

    def __call__(self) -> int:
        for path, begin in self._read.items():
            with suppress(FileNotFoundError), path.open("rb") as ledger:
                ledger.seek(begin)
                lines, newline, _ = ledger.read().rpartition(b"\n")
                self._count += lines.count(self._SAID)
                self._read[path] = begin + len(lines + newline)
        return self._count


def _start(one: Daemon | WithItsDatabase, who: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.proof.kill_client", one.address, _ledger(one, who), who]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=one.env, text=True)


def _left(qm: Connection) -> Left:
    messages, began = [], _now_ms()
    for row in qm.reservations():
        qm.release(row["reservation"])
    for name in LOADED:
        with qm.open(name, "input_exclusive") as q:
            messages += [(name, m.text, m.descriptor.priority, m.backout_count) for m in q.drain()]
    shown = [qm.ask(Display(object_type="QLOCAL", name=name), Listing).rows for name in ("ALTER.*", "MADE.*")]
    values = {str(row["name"]): row["description"] or None for rows in shown for row in rows}
    values |= {str(run["run_id"]): run["state"] for run in _runs(qm)}
    with qm.open(REPORTS, "input_exclusive") as q:
        reports = [message.text for message in q.drain()]
    return Left(messages, values, began, reports, _now_ms())


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _runs(qm: Connection) -> Iterator[dict[str, object]]:
    before, more = "", True
    while more:
        page = qm.ask(Runs(limit=PAGE, before=before), Listing)
        yield from page.rows
        more = page.more
        before = str(page.rows[-1]["run_id"]) if page.rows else ""
