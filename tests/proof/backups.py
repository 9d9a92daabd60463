"""Proof: backups are made under load, with kills of backup, restore and daemon, and nothing acknowledged is missing."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import apsw

import trigmon
from tests.daemons import Daemon, define
from tests.proof.found import Found
from tests.waiting import until
from trigmon.mq.calls import Clear
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.store_check import check_backup, check_directory

Q = "MANY"
WRITERS = 16
ENOUGH = 100
"""Messages acknowledged before a backup begins, at least."""
LONGEST_S = 0.6
"""Of a backup or restore that is killed, in seconds; about as long as it takes."""


class Writer(threading.Thread):
    """Puts numbered messages until it is told to stop; ``acknowledged`` is the last number that was answered.

    ``sure`` are all numbers that were. ``more`` stands behind the number in each message.
    """

    def __init__(self, daemon: Daemon, name: str, more: str = "") -> None:
        super().__init__(daemon=True, name=name)
        self._more = more
        self.sure: list[int] = []
        self._queue_manager = daemon
        self._is_over = threading.Event()
        self.acknowledged = 0
        self.start()

    def run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            try:
                with self._queue_manager.connect(application=self.name) as qm:
                    while not self._is_over.is_set():
                        number += 1
                        qm.put(Q, f"{self.name} {number}{self._more}", persistence="persistent")
                        self.acknowledged = number
                        self.sure.append(number)
            except trigmon.MQError:
                time.sleep(0.01)

    def end(self) -> None:
        self._is_over.set()
        self.join()


def back_up_again_and_again(daemon: Daemon, rounds: int, seed: int) -> Found:
    """Makes and restores that many backups of a running daemon beside its writers, with kills, and judges each."""
    chance = random.Random(seed)
    found = Found("backups")
    with daemon.connect() as qm:
        define(qm, Q, max_q_depth=999_999_999)
    writers = [Writer(daemon, f"w{number}") for number in range(WRITERS)]
    try:
        for number in range(rounds):
            file = daemon.home / f"{number}.backup"
            # One message of a writer may have been on its way while the queue was cleared.
            first = {writer.name: writer.acknowledged + 2 for writer in writers}
            time.sleep(chance.uniform(0.05, 0.4))
            until(lambda first=first: sum(writer.acknowledged - first[writer.name] for writer in writers) > ENOUGH)
            sure = {writer.name: range(first[writer.name], writer.acknowledged + 1) for writer in writers}
            found.more["messages acknowledged before a backup"] += sum(map(len, sure.values()))
            _back_up(daemon, file, chance.choice(["nothing", "backup", "queue manager"]), chance, found)
            if not file.exists():
                found.more["backups that a kill prevented"] += 1
                _back_up(daemon, file, "nothing", chance, found)
            found.add(list(check_backup(file)), f"seed {seed}, backup {number}")
            directory = _restore(daemon, file, chance, found)
            found.add(list(check_directory(directory / "qm.db")), f"seed {seed}, restored {number}")
            found.add(missing_in(directory, sure), f"seed {seed}, messages of {number}")
            file.unlink()
            _clear(daemon)
    finally:
        for writer in writers:
            writer.end()
    return found


def _clear(daemon: Daemon) -> None:
    with daemon.connect() as qm:
        while qm.call(Clear(q_name=Q)).more:
            pass


def run(daemon: Daemon, *arguments: str) -> subprocess.Popen:
    """Starts a command of ``trigmon`` for this queue manager."""
    argv = [sys.executable, "-m", "trigmon", *arguments]
    return subprocess.Popen(argv, env=daemon.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _back_up(daemon: Daemon, file: Path, killed: str, chance: random.Random, found: Found) -> None:
    """Makes a backup; its process or the queue manager, whichever is named, is killed in the middle."""
    running = run(daemon, "backup", str(file))
    if killed != "nothing":
        time.sleep(chance.uniform(0, LONGEST_S))
        if killed == "backup":
            running.kill()
        else:
            daemon.kill()
            daemon.start()
    error = running.communicate()[1]
    found.more[f"{killed} killed while it was made"] += 1
    if killed == "nothing" and running.returncode:
        found.add([error], "a backup that nobody killed")


def _restore(daemon: Daemon, file: Path, chance: random.Random, found: Found) -> Path:
    """Restores a backup, as another queue manager; in every other round it is killed in the middle and done again."""
    running = run(daemon, "restore", str(file), "--as", "R", "--replace")
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, LONGEST_S))
        running.kill()
        running.communicate()
        found.more["restores killed"] += 1
        running = run(daemon, "restore", str(file), "--as", "R", "--replace")
    error = running.communicate()[1]
    if running.returncode:
        found.add([error], "a restore that nobody killed")
    directory = daemon.home / "R"
    for old in directory.glob("qm.db.replaced-*"):
        old.unlink()
    return directory


def missing_in(directory: Path, sure: Mapping[str, Iterable[int]]) -> list[str]:
    """Returns which of these messages of each writer a queue manager of that store lacks, and which it has twice."""
    store = SqliteStore(directory)
    store.open("R", 0)
    store.close()
    db = apsw.Connection(str(directory / "qm.db"))
    bodies = Counter(data.decode().rstrip() for (data,) in db.execute("SELECT data FROM message WHERE queue > 0"))
    db.close()
    wanted = (f"{name} {number}" for name, numbers in sure.items() for number in numbers)
    lost = [f"{body} was acknowledged before, and is not there" for body in wanted if not bodies[body]]
    return lost + [f"{body} is there {count} times" for body, count in bodies.items() if count > 1]
