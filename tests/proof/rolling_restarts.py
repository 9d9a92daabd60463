"""Proof: queue manager and monitor are restarted under load; no message is lost or doubled, and no run fails.

Writers put numbered messages. Triggered programs move them to another queue, a unit of work at a time.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import trigmon
from tests.daemons import Daemon, define
from tests.ledger import have_all_ended, recorded_runs
from tests.proof.found import Found
from tests.waiting import until, until_more
from trigmon.mq.calls import Display

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
LONG_S = 600
WRITERS = 4
ENOUGH = 20
"""Messages between two restarts, at least."""
PROGRAM = f"""
import time
import trigmon
with trigmon.connect(reconnect_s={LONG_S}) as qm:
    with qm.open("IN", "input_as_q_def") as source, qm.open("OUT", "output") as target:
        while True:
            try:
                messages = source.get_many(10, wait_interval_ms=50, syncpoint=True)
                for message in messages:
                    target.put(message.data, syncpoint=True)
                time.sleep(0.01)
                qm.commit()
            except trigmon.BackedOut:
                qm.backout()
            except trigmon.NoMsgAvailable:
                break
"""


class Machine:
    """A queue manager, and a monitor that is a process of its own."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._log = daemon.home / "monitor.log"
        program = daemon.home / "move.py"
        program.write_text(PROGRAM)
        with daemon.connect() as qm:
            # Not more often than the default: a program that ends as a message comes is followed by another.
            define(qm, "OUT", max_q_depth=999_999_999, def_persistence="persistent")
            define(qm, "MOVE", "PROCESS", appl_type="unix", appl_id=f"{sys.executable} {program}", tmc_argument="no")
            trigger = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": INITQ}
            define(qm, "IN", max_q_depth=999_999_999, def_persistence="persistent", process_name="MOVE", **trigger)
        self.start_monitor()

    def start_monitor(self) -> None:
        with self._log.open("ab") as log:
            argv = [sys.executable, "-m", "trigmon", "monitor"]
            self._monitor = subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=log)

    def stop_monitor(self) -> None:
        self._monitor.send_signal(signal.SIGTERM)
        self._monitor.wait()

    def restart(self, what: str) -> None:
        """Restarts the queue manager, the monitor, or both."""
        if what != "queue manager":
            self.stop_monitor()
        if what != "monitor":
            self.daemon.stop()
            self.daemon.start()
        if what != "queue manager":
            self.start_monitor()


def restart_again_and_again(daemon: Daemon, restarts: int, seed: int) -> Found:
    """Restarts them that often under load, and judges the messages and the runs."""
    chance = random.Random(seed)
    found = Found("restarts")
    machine = Machine(daemon)
    is_over = threading.Event()
    counts = [0] * WRITERS
    writers = [threading.Thread(target=_write, args=(daemon, name, counts, is_over)) for name in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(restarts):
            until_more(lambda: sum(counts), ENOUGH, lambda: any(map(threading.Thread.is_alive, writers)))
            time.sleep(chance.uniform(0.2, 0.8))
            what = chance.choice(["queue manager", "monitor", "both"])
            machine.restart(what)
            found.more[f"of the {what}"] += 1
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    with daemon.connect() as qm:
        until(lambda: _is_at_rest(qm))
        found.add(_wrong_runs(qm, found), f"seed {seed}", restarts)
        found.add(_wrong_messages(qm, counts), f"seed {seed}, messages", 0)
    machine.stop_monitor()
    found.more["messages"] = sum(counts)
    return found


def _write(daemon: Daemon, name: int, counts: list[int], is_over: threading.Event) -> None:
    with daemon.connect(application=f"writer {name}", reconnect_s=LONG_S) as qm, qm.open("IN", "output") as queue:
        while not is_over.is_set():
            queue.put(f"{name} {counts[name]}")
            counts[name] += 1
            # All pause at a time: then programs end, and later ones are triggered.
            time.sleep(0.002 if int(time.monotonic() * 2) % 2 else 0.3)


def _is_at_rest(qm: trigmon.Connection) -> bool:
    depth = qm.call(Display(object_type="QLOCAL", name="IN")).rows[0]["current_q_depth"]
    return not depth and have_all_ended(qm)


def _wrong_runs(qm: trigmon.Connection, found: Found) -> list[str]:
    runs = recorded_runs(qm)
    found.more["runs"] += len(runs)
    return [json.dumps(run) for run in runs if run["state"] not in ("exited", "joined") or run.get("exit_status")]


def _wrong_messages(qm: trigmon.Connection, counts: list[int]) -> list[str]:
    with qm.open("OUT", "browse") as queue:
        moved = Counter(message.data.decode() for message in queue.browse())
    wanted = {f"{name} {number}" for name in range(WRITERS) for number in range(counts[name])}
    wrong = [f"{body} is there {count} times" for body, count in moved.items() if count > 1 or body not in wanted]
    return wrong + [f"{body} is lost" for body in wanted if not moved[body]]
