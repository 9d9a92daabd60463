"""From a put to the first instruction of the program it starts, beside a bare spawn of the same program.

The program's first act is to write into a pipe that the measuring process reads; the spawn is timed the same way.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.daemons import Daemon, define

Q, PROCESS, INITQ = "START.Q", "START.P", "SYSTEM.DEFAULT.INITIATION.QUEUE"


class Starting:
    """A queue manager with its monitor, and one program in two languages."""

    def __init__(self, home: Path) -> None:
        self.pipe = home / "pipe"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.writer = os.open(self.pipe, os.O_WRONLY)  # held, so that the reader never meets an end
        os.set_blocking(self.reader, True)
        shell, python = home / "first.sh", home / "first.py"
        shell.write_text(f"echo > {self.pipe}\n")
        python.write_text(f"open({str(self.pipe)!r}, 'w').write('x')\n")
        self.argv = {"sh": ["/bin/sh", str(shell)], "python": [sys.executable, str(python)]}
        self.daemon = Daemon(home, with_monitor=True).start()
        self.daemon.wait_for_event("monitor serves")
        self.connection = self.daemon.connect()
        for name, argv in self.argv.items():
            define(self.connection, f"{PROCESS}.{name}", "PROCESS", appl_id=" ".join(argv))
            armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
            define(self.connection, f"{Q}.{name}", process_name=f"{PROCESS}.{name}", **armed)

    def end(self) -> None:
        self.connection.disconnect()
        self.daemon.end()
        os.close(self.reader)
        os.close(self.writer)

    def by_put(self, language: str) -> tuple[float, float]:
        """Milliseconds from the put to the program's word."""
        began = time.perf_counter()
        self.connection.put(f"{Q}.{language}", b"go")
        return self._heard(began)

    def by_spawn(self, language: str) -> tuple[float, float]:
        """Milliseconds from posix_spawn to the program's word."""
        argv = [*self.argv[language], "TMC2"]
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ)
        heard = self._heard(began)
        os.waitpid(pid, 0)
        return heard

    def _heard(self, began: float) -> tuple[float, float]:
        os.read(self.reader, 100)
        took = time.perf_counter() - began
        time.sleep(0.05)  # the program and whoever waits for it come to rest
        return took * 1e3, 0.0
