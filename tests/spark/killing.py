"""A queue that a triggered Spark job drains into a table, and its processes to kill: driver, executor, monitor, qmgr.

A killed process is started again as on a machine of its own: the monitor and the queue manager by the test, as systemd
would, the job by the monitor, an executor by Spark.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet

from tests.daemons import define
from tests.processes import parent_of
from tests.spark.conftest import spark_environment
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.mq.calls import Display, Runs
from trigmon.mq.run import OPEN, WITH_PROGRAM, RunState
from trigmon.spark.file_table import staging_of

DRIVER, EXECUTOR, MONITOR, Q_MGR = VICTIMS = "driver", "executor", "monitor", "queue manager"
BATCHES = 10
"""Into so many batches the messages fall."""
Q, INITQ, CONSUMER = "LOADED", "SYSTEM.DEFAULT.INITIATION.QUEUE", "LOADER"
JOB = Path(__file__).with_name("triggered_job.py")
COMES_S = DRAINED_S = 900.0
_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
    "spark.executor.memory": "512m",
}
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class Moment(NamedTuple):
    """When a victim dies: so long after so many batches are in the table (-1: after the job has started), and how.

    ``part`` is which of its processes, for those that have several; ``pause_s`` how long it stays away.
    """

    batches: int
    delay_s: float
    part: str
    pause_s: float


def moment(victim: str, seed: int) -> Moment:
    """Returns the moment of a seed. Two batches are still to come, so that there is a process to kill."""
    chance = random.Random(f"{victim} {seed}")
    batches = chance.randrange(-1, BATCHES - 2)
    # The job's start takes seconds, a batch some tenths.
    delay_s = chance.uniform(0, 8.0 if batches < 0 and victim != EXECUTOR else 0.5)
    part = chance.choice({DRIVER: ["all", "java", "python"], EXECUTOR: ["java", "workers"]}.get(victim, [""]))
    return Moment(batches, delay_s, part, chance.uniform(0, 1.5))


class SparkMachine:
    """A queue manager, its monitor, and the queue, whose first message starts the job on this Spark master.

    The queue has room for ``count`` messages, which fall into so many ``batches`` at least.
    """

    def __init__(self, daemon: Any, directory: Path, master: str, count: int, batches: int = BATCHES) -> None:
        self.daemon = daemon
        self.table = directory / "the table"
        self._log = directory / "monitor.log"
        self._environment = daemon.env | spark_environment(directory) | {"SPARK_LOCAL_IP": "127.0.0.1"}
        # By this its processes are known from those of every other machine, those of a cluster's workers too.
        self._home = os.fsencode(daemon.home)
        conf = _CONF | {"spark.executorEnv.TRIGMON_HOME": str(daemon.home)}
        job = {
            "appl_type": "spark",
            "appl_id": str(JOB),
            "spark_master": master,
            "spark_conf": " ".join(f"{name}={value}" for name, value in conf.items()),
            "instances": 1,  # two of one consumer would take the batches from each other
            "spark_arguments": shlex.join([str(self.table), str(count // batches)]),
        }
        trigger = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": INITQ}
        with daemon.connect() as qm:
            define(qm, CONSUMER, "PROCESS", **job)
            define(qm, Q, def_persistence="persistent", max_q_depth=count, process_name=CONSUMER, **trigger)
        self._monitor = self._new_monitor()
        until(lambda: self.row(INITQ)["open_input_count"])

    def _new_monitor(self) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "trigmon", "monitor", "--data", str(self.daemon.data)]
        with self._log.open("ab") as log:
            return subprocess.Popen(argv, env=self._environment, stdin=subprocess.DEVNULL, stderr=log)

    # -- what happens ---------------------------------------------------------------------------------------

    def fill(self, numbers: range) -> None:
        """Puts these numbers, a message each, a thousand a unit of work."""
        with self.daemon.connect() as qm, qm.open(Q, "output") as queue:
            for first in range(0, len(numbers), 1000):
                queue.put_many([b"%d" % n for n in numbers[first : first + 1000]], syncpoint=True)
                qm.commit()

    def come_to(self, victim: str, moment: Moment) -> None:
        """Waits for a moment."""
        if moment.batches < 0:
            until(self._running, COMES_S)
        else:
            until(lambda: self.batches() >= moment.batches, COMES_S)
        if victim == EXECUTOR:
            until(lambda: self._pids(victim, moment.part), COMES_S)
        time.sleep(moment.delay_s)

    def kill(self, victim: str, moment: Moment) -> None:
        """Kills a victim, which is then started again."""
        if victim == MONITOR:
            assert self._monitor.poll() is None, self._log.read_text()
            self._monitor.kill()
            self._monitor.wait()
            time.sleep(moment.pause_s)
            self._monitor = self._new_monitor()
        elif victim == Q_MGR:
            assert self.daemon.process.poll() is None
            self.daemon.kill()
            time.sleep(moment.pause_s)
            self.daemon.start()
        else:
            for pid in until(lambda: self._pids(victim, moment.part), COMES_S):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def wait_until_drained(self) -> None:
        """Waits until nothing is left on the queue, in reservations, or to be run."""
        deadline = time.monotonic() + DRAINED_S
        while not self._is_drained():
            assert self._monitor.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self.report()
            time.sleep(0.1)

    def end(self) -> None:
        """Stops the monitor in order, which leaves nothing running."""
        self._monitor.terminate()
        assert self._monitor.wait(60) == 0, self._log.read_text()

    def clean_up(self) -> None:
        """Ends whatever still runs, where a test has failed."""
        for pid in self._own_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._monitor.wait()

    # -- what is so -----------------------------------------------------------------------------------------

    def batches(self) -> int:
        """Returns how many batches are in the table."""
        return len(list(self.table.glob("batch=*")))

    def row(self, q_name: str) -> dict[str, Any]:
        with self.daemon.connect() as qm:
            return qm.call(Display(object_type="QLOCAL", name=q_name)).rows[0]

    def runs(self) -> list[dict[str, Any]]:
        """Returns the ledger, oldest first."""
        with self.daemon.connect() as qm:
            return qm.call(Runs()).rows[::-1]

    def reservations(self) -> list[dict[str, Any]]:
        with self.daemon.connect() as qm:
            return qm.reservations()

    def ended(self) -> list[str]:
        """Returns how each run ended."""
        return [f"{run['state']}, {run['why']}, {run.get('committed', 0)} messages" for run in self.runs()]

    def report(self) -> str:
        """Returns what helps to find out why a run failed."""
        fields = ("run_id", "state", "occasion", "why", "committed", "batches", "joins", "retries")
        lines = [str({name: run.get(name) for name in fields if run.get(name)}) for run in self.runs()]
        tails = [run["stderr_tail"][-2000:] for run in self.runs() if run["exit_status"] != 0]
        return "\n".join([str(self.row(Q)["current_q_depth"]), str(self.reservations()), *lines, *tails])

    def _is_drained(self) -> bool:
        if self.row(Q)["current_q_depth"] or self.reservations():
            return False
        return all(run["state"] not in OPEN for run in self.runs())

    def _running(self) -> dict[str, Any] | None:
        """Returns the run that has a process."""
        return next((run for run in self.runs() if run["state"] in WITH_PROGRAM and run["pid"]), None)

    def _pids(self, victim: str, part: str) -> list[int]:
        """Returns the processes of a part of the running application."""
        run = self._running()
        if run is None:
            return []
        if victim == EXECUTOR:
            executors = [pid for pid in self._own_pids() if _EXECUTOR in _words(pid) and _name(pid) == "java"]
            return (
                executors
                if part == "java"
                else [pid for pid in run_directory.all_processes() if _parent(pid) in executors]
            )
        of_run = [pid for pid in run_directory.all_processes() if run_directory.run_of(pid) == run["run_id"]]
        if part == "all":
            return of_run
        return [pid for pid in of_run if _name(pid).startswith(part) and JOB.name.encode() in _words(pid)]

    def _own_pids(self) -> list[int]:
        """Returns the monitor, its keeper, and what they started."""
        wanted = b"TRIGMON_HOME=" + self._home
        return [
            pid
            for pid in run_directory.all_processes()
            if wanted in _environment(pid) and pid != self.daemon.process.pid
        ]

    def judge(self, count: int) -> None:
        """Checks that each message is once in the table, nothing is left, and every run's end is known."""
        data = pyarrow.parquet.read_table(self.table, columns=["data"])["data"].to_pylist()
        assert sorted(map(int, data)) == list(range(count)), self.report()
        assert list(staging_of(self.table).iterdir()) == []
        assert self.row(Q)["current_q_depth"] == 0
        assert self.row("SYSTEM.DEAD.LETTER.QUEUE")["current_q_depth"] == 0
        assert self.reservations() == []
        runs = self.runs()
        assert {run["state"] for run in runs} <= {RunState.EXITED, RunState.JOINED}, self.report()
        assert any(run["exit_status"] == 0 for run in runs)
        assert all(run["why"] and run["end_ms"] for run in runs)
        left = [
            pid for pid in run_directory.all_processes() if run_directory.run_of(pid) in {run["run_id"] for run in runs}
        ]
        assert left == [], [_words(pid) for pid in left]


def _words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return b""


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _parent(pid: int) -> int:
    with suppress(OSError):
        return parent_of(pid)
    return 0
