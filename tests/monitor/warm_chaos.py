"""Warm runs in any number, while runs are cancelled and killed, and server and monitor are killed, by chance."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from contextlib import suppress

from tests.ledger import recorded_runs
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.launch.spark.warm import connect_server
from trigmon.mq.calls import Alter, CancelRun
from trigmon.mq.errors import CommandFailed
from trigmon.mq.run import OPEN

ENDED = {"exited", "cancelled", "unknown", "failed", "joined"}


class Chaos:
    """``runs`` messages, each of which starts a run; ``server_kills`` and ``monitor_kills`` in between.

    ``jobs`` and ``endless`` are their queues: with several, the pauses behind failures hold up nobody for long.
    """

    def __init__(self, machine, runs, seed, *, jobs, endless, server_kills=0, monitor_kills=0):
        self.jobs, self.endless = jobs, endless
        self.machine = machine
        self.runs = runs
        self.chance = random.Random(seed)
        self.fates, self.at = {}, {}
        self.put, self.before = 0, len(recorded_runs(machine.qm))
        self.largest_rss = 0
        blows = [self.kill_server] * server_kills + [self.kill_monitor] * monitor_kills
        self.chance.shuffle(blows)
        self.blows = [(round(runs * (number + 1) / (len(blows) + 1)), blow) for number, blow in enumerate(blows)]

    def go(self, timeout_s):
        """Puts, cancels and kills until all messages are put and nothing is open any more."""
        deadline = time.monotonic() + timeout_s
        while self.put < self.runs or self.open() or not self.all_recorded():
            assert time.monotonic() < deadline, self.open()
            while self.blows and self.put >= self.blows[0][0]:
                self.blows.pop(0)[1]()
            open_ = self.open()
            if self.put < self.runs and len(open_) < 5:
                self.machine.qm.put(self.chance.choice(self.chance.choice([self.jobs, self.jobs, self.endless])), b"go")
                self.put += 1
            elif self.put == self.runs:
                self.trigger_no_more()
            for run in open_:
                self.meet_fate(run)
            self.look_at_memory()
            time.sleep(0.05)

    def open(self):
        """Returns the runs that have not ended."""
        return [run for run in recorded_runs(self.machine.qm) if run["state"] in OPEN]

    def all_recorded(self):
        """Returns whether each message has become a run: a busy monitor takes its time."""
        return len(recorded_runs(self.machine.qm)) >= self.before + self.put

    def meet_fate(self, run):
        """Draws once what happens to a run; an endless one is always ended."""
        run_id = run["run_id"]
        if run_id not in self.fates:
            mercy = [] if run["q_name"] in self.endless else ["leave"] * 3
            self.fates[run_id] = self.chance.choice(["cancel", "kill", *mercy])
            if self.chance.random() < 0.1:  # while it waits, or is about to start
                self.fates[run_id], self.at[run_id] = "cancel", 0.0
        if run["pid"] and run_id not in self.at:  # before it has done anything, or in the middle of its query
            self.at[run_id] = time.monotonic() + self.chance.choice([0, 0.2, 1, 3])
        fate = self.fates[run_id]
        if fate == "leave" or time.monotonic() < self.at.get(run_id, math.inf):
            return
        if fate == "cancel":
            with suppress(CommandFailed):  # it has just ended, or is being cancelled
                self.machine.qm.call(CancelRun(run_id=run["run_id"]))
        elif run["pid"]:
            with suppress(ProcessLookupError):
                os.kill(run["pid"], signal.SIGKILL)

    def trigger_no_more(self):
        """Messages of runs that ended before they took them would start others at every monitor's beginning."""
        self.set_trigger("off")

    def trigger_again(self):
        """What was left on the queues goes first."""
        for name in self.jobs + self.endless:
            with self.machine.qm.open(name, "input_shared") as queue:
                list(queue.drain())
        self.set_trigger("on")

    def set_trigger(self, value):
        for name in self.jobs + self.endless:
            self.machine.qm.call(Alter(object_type="QLOCAL", name=name, attributes={"trigger_control": value}))

    def servers(self):
        """Returns the process ids of the servers."""
        directories = [self.machine.shelf.directory(it.server_id) for it in self.machine.shelf.all_servers()]
        return [claim["pid"] for claim in map(run_directory.read, directories) if claim and claim.get("pid")]

    def kill_server(self):
        for pid in self.servers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_monitor(self):
        started = self.machine.daemon.events("monitor started")
        with suppress(ProcessLookupError):
            os.kill(started[-1]["pid"], signal.SIGKILL)
        until(lambda: len(self.machine.daemon.events("monitor started")) > len(started))

    def look_at_memory(self):
        rss = [connect_server.memory_of_session(pid) for pid in self.servers()] if self.chance.random() < 0.05 else []
        self.largest_rss = max([self.largest_rss, *rss])

    def check(self, most_rss):
        """Checks that every run's end is known, and that the current server has no query and no session left."""
        runs = recorded_runs(self.machine.qm)
        assert {run["state"] for run in runs} <= ENDED
        assert len(runs) >= self.before + self.runs
        server = self.machine.wait_until_there(besides=self.gone())
        until(lambda: not list(self.machine.shelf.all_sessions()))
        until(lambda: not self.machine.jobs(server))
        until(lambda: self.machine.sessions(server) == 0)
        assert self.largest_rss < most_rss

    def gone(self):
        """Returns the servers that have ended."""
        return {line["server"] for line in self.machine.daemon.events("Spark Connect server has ended")}
