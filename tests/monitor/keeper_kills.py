"""EVERY and FIRST triggers under keepers that are killed, on a disk that is full now and then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.daemons import define
from tests.launch.disks import SmallDisk
from tests.ledger import have_all_ended, recorded_runs
from tests.waiting import until
from trigmon.keeper.subreaper import children, parent_of
from trigmon.mq.calls import Display

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
WAIT_S = 300.0

TAKES = """\
import sys
import trigmon

with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as q:
    with open(sys.argv[1], "a") as notes:
        for message in q.drain(batch=100):
            notes.write(message.data.decode() + "\\n")
"""


class Siege:
    """A queue manager, a monitor whose data lie on a small disk, and two queues.

    ``E`` is of type EVERY, and its program notes each of its starts; each tenth of them fails the first time. ``F`` is
    of type FIRST, and its program notes the messages that it takes.
    """

    def __init__(self, daemon, directory, seed):
        self.daemon, self.directory = daemon, directory
        self.chance = random.Random(seed)
        self.disk = SmallDisk(directory / "disk", "64m")
        self.starts, self.taken = directory / "starts", directory / "taken"
        self.starts.touch()
        self.taken.touch()
        self.puts = {"E": 0, "F": 0}
        self.kills = self.fills = 0

    def __enter__(self):
        self.disk.__enter__()
        job, takes = self.directory / "job", self.directory / "takes.py"
        # The last digit of a run's id is chance: that it fails on 0 is its first try's fate and not the next one's.
        job.write_text(f"#!/bin/sh\necho $TRIGMON_RUN >> {self.starts}\ncase $TRIGMON_RUN in *0) exit 1;; esac\n")
        job.chmod(0o755)
        takes.write_text(TAKES)
        self.qm = self.daemon.connect()
        trigger = {"trigger_control": "on", "initiation_q_name": INITQ, "def_persistence": "persistent"}
        trigger |= {"max_q_depth": 100_000}
        define(self.qm, "PE", "PROCESS", appl_id=str(job), instances=6, retry=8)
        define(self.qm, "E", process_name="PE", trigger_type="every", **trigger)
        define(self.qm, "PF", "PROCESS", appl_id=f"{sys.executable} {takes} {self.taken}", retry=8, unknown="retry")
        define(self.qm, "F", process_name="PF", trigger_type="first", **trigger)
        self.log = (self.directory / "monitor.log").open("ab")
        argv = [sys.executable, "-m", "trigmon", "monitor", "--data", str(self.disk.directory)]
        self.monitor = subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=self.log)
        until(lambda: self.qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["open_input_count"])
        return self

    def __exit__(self, *_):
        self.disk.make_room()
        self.monitor.send_signal(signal.SIGTERM)
        self.monitor.wait(20)
        self.log.close()
        self.qm.disconnect()
        until(lambda: not list(self.keepers()))
        self.disk.__exit__()

    def put(self, count):
        """Puts messages for so many triggers of either kind, as far as FIRST makes any."""
        for _ in range(count):
            q_name = "F" if self.chance.random() < 0.1 else "E"
            self.puts[q_name] += 1
            self.qm.put(q_name, f"{q_name}{self.puts[q_name]}".encode())

    def keepers(self):
        """Returns the current keeper of this machine, and its parent."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if b"trigmon.keeper.main" in words and self._is_ours(int(entry.name)):
                        yield int(entry.name)

    def _is_ours(self, pid):
        log = str(Path(f"/proc/{pid}/fd/2").readlink())
        return log.startswith(str(self.disk.directory))

    def kill_keeper(self):
        """Kills one of the two, mostly the keeper itself, and its parent only while it has no program of a killed one.

        Both are killed by other tests: then the end of a program may be unknown.
        """
        for _ in range(200):
            there = sorted(self.keepers())
            if len(there) == 2:
                with suppress(ProcessLookupError):
                    parents = {parent_of(pid) for pid in there}
                    keeper, parent = sorted(there, key=lambda pid: pid in parents)
                    is_left = set(children(parent)) != {keeper}
                    victim = keeper if self.chance.random() < 0.9 or is_left else parent
                    os.kill(victim, signal.SIGKILL)
                    self.kills += 1
                    return
            time.sleep(0.05)
        raise AssertionError("there is no keeper to be killed")

    def play(self, kills, triggers):
        """Kills so many times while so many triggers come, with full disks between."""
        for number in range(kills):
            share = triggers * (number + 1) // kills - triggers * number // kills
            first = self.chance.randint(0, share)
            self.put(first)
            if is_full := self.chance.random() < 0.3:
                self.disk.fill()
                self.fills += 1
            time.sleep(self.chance.uniform(0, 0.15))
            self.kill_keeper()
            self.put(share - first)
            time.sleep(self.chance.uniform(0, 0.3))
            if is_full:
                self.disk.make_room()

    def wait_until_done(self):
        until(lambda: have_all_ended(self.qm), WAIT_S)

    def judge(self):
        """Checks that each trigger of EVERY ran once a try and each message of FIRST was taken; returns the counts."""
        runs = recorded_runs(self.qm)
        every = [run for run in runs if run["q_name"] == "E"]
        starts = Counter(self.starts.read_text().split())
        states = Counter(run["state"] for run in every)
        ran = {run["run_id"] for run in every if run["state"] == "exited"}
        first_tries = [run for run in every if not run.get("retries")]
        failed = {run["run_id"] for run in every if run["exit_status"]}
        retried = {run["retries"] for run in every if run.get("retries")}
        assert len(first_tries) == self.puts["E"], states
        assert not [run for run in runs if run["state"] == "unknown"]
        assert set(states) == {"exited"}, states
        assert max(starts.values()) == 1, [run for run, count in starts.items() if count > 1]
        assert set(starts) == ran, states
        to_fail = {run_id for run_id in ran if run_id.endswith("0")}
        assert failed == retried == to_fail, [run for run in every if run["run_id"] in (failed | retried) ^ to_fail]
        taken = Counter(self.taken.read_text().split())
        assert taken == {f"F{number}": 1 for number in range(1, self.puts["F"] + 1)}
        return {"kills": self.kills, "fills": self.fills, "puts": self.puts, "starts": len(starts), **states}
