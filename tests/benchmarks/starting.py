"""From a put to the first instruction of the program it starts, and launches per second, beside bare spawns.

The program's first act is to write into a pipe that the measuring process reads; the spawn is timed the same way.
"client" is a program in Python that has imported trigmon's client by then. Python programs are started by a put in both
ways, executed, and forked from a warm interpreter. A
launch is counted when its program has ended and that is on record, a bare spawn when its program has ended.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.daemons import Daemon, define
from tests.processes import CLOCK_TICK_S, stat_of
from trigmon.mq.calls import Statistics
from trigmon.mq.replies import Values

Q, PROCESS, INITQ = "START.Q", "START.P", "SYSTEM.DEFAULT.INITIATION.QUEUE"


TRUE = "/bin/true"
WARM = ("python", "client")


class Starting:
    """A queue manager with its monitor, and programs that say a word."""

    def __init__(self, home: Path) -> None:
        self.pipe = home / "pipe"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.writer = os.open(self.pipe, os.O_WRONLY)  # held, so that the reader never meets an end
        os.set_blocking(self.reader, True)
        shell, python, client = home / "first.sh", home / "first.py", home / "client.py"
        shell.write_text(f"echo > {self.pipe}\n")
        python.write_text(f"open({str(self.pipe)!r}, 'w').write('x')\n")
        client.write_text(f"import trigmon.client.address\nopen({str(self.pipe)!r}, 'w').write('x')\n")
        self.argv = {
            "sh": ["/bin/sh", str(shell)],
            "python": [sys.executable, str(python)],
            "client": [sys.executable, str(client)],
        }
        self.daemon = Daemon(home, with_monitor=True).start()
        self.daemon.wait_for_event("monitor serves")
        self.cpu_us: dict[str, float] = {}
        """What a launch of the last burst cost, in microseconds of CPU by process."""
        self.connection = self.daemon.connect()
        armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        for name, argv in self.argv.items():
            for warm in ("no", "yes") if name in WARM else ("no",):
                which = f"{name}.{warm}"
                appl_id = " ".join(argv)
                define(self.connection, f"{PROCESS}.{which}", "PROCESS", appl_id=appl_id, warm_interpreter=warm)
                define(self.connection, f"{Q}.{which}", process_name=f"{PROCESS}.{which}", **armed)
        define(self.connection, f"{PROCESS}.true", "PROCESS", appl_id=TRUE, instances=16)
        define(self.connection, f"{Q}.true", process_name=f"{PROCESS}.true", **armed)

    def end(self) -> None:
        self.connection.disconnect()
        self.daemon.end()
        os.close(self.reader)
        os.close(self.writer)

    def by_put(self, language: str, warm: str = "no") -> tuple[float, float]:
        """Milliseconds from the put to the program's word; ``warm``: yes or no."""
        began = time.perf_counter()
        self.connection.put(f"{Q}.{language}.{warm}", b"go")
        return self._heard(began)

    def by_spawn(self, language: str) -> tuple[float, float]:
        """Milliseconds from posix_spawn to the program's word."""
        argv = [*self.argv[language], "TMC2"]
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ)
        heard = self._heard(began)
        os.waitpid(pid, 0)
        return heard

    def launches(self, count: int) -> tuple[float, float]:
        """Launches per second of so many trigger events of type EVERY, put at once; 16 programs may run at a time."""
        before, cpu_before = self._runs_ended(), self._cpu_s()
        began = time.perf_counter()
        self.connection.put_many(f"{Q}.true", [b"go"] * count)
        while self._runs_ended() < before + count:
            time.sleep(0.02)
        took = time.perf_counter() - began
        self.cpu_us = {name: (spent - cpu_before[name]) / count * 1e6 for name, spent in self._cpu_s().items()}
        with self.connection.open(f"{Q}.true", "input_shared") as q:
            assert len(q.get_many(count)) == count
        return count / took, 0.0

    def _cpu_s(self) -> dict[str, float]:
        """Seconds of CPU that each process of a launch has spent so far; the programs' are those that have ended."""
        daemon = self.daemon.process.pid
        (monitor,) = _children(daemon)
        (parent,) = _children(monitor)
        (keeper,) = _children(parent)
        processes = {"queue manager": daemon, "monitor": monitor, "keeper's parent": parent, "keeper": keeper}
        spent = {name: sum(_times_s(pid)[:2]) for name, pid in processes.items()}
        return spent | {"programs": sum(_times_s(keeper)[2:])}

    def _runs_ended(self) -> int:
        values = self.connection.ask(Statistics(), Values).values
        return sum(count for _, _, count in values["runs_ended"])

    @staticmethod
    def spawns(count: int) -> tuple[float, float]:
        """Spawns per second of so many, one after the other."""
        began = time.perf_counter()
        for _ in range(count):
            os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)
        return count / (time.perf_counter() - began), 0.0

    def _heard(self, began: float) -> tuple[float, float]:
        os.read(self.reader, 100)
        took = time.perf_counter() - began
        time.sleep(0.05)  # the program and whoever waits for it come to rest
        return took * 1e3, 0.0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _times_s(pid: int) -> list[float]:
    """User and kernel time of a process, then those of its children that have ended, in seconds."""
    return [int(field) * CLOCK_TICK_S for field in stat_of(pid)[11:15]]
