"""Files of many queues: what ``trigmon apply`` and ``trigmon lint`` take, in time and in CPU of both sides."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.daemons import Daemon
from tests.processes import cpu_seconds

OBJECTS = """\
- qlocal: APP.Q{0}
  default_persistence: persistent
  trigger_control: on
  trigger_type: first
  initiation_q_name: SYSTEM.DEFAULT.INITIATION.QUEUE
  process_name: APP.P{0}
- process: APP.P{0}
  appl_type: unix
  appl_id: /bin/true {0}
"""


class Definitions:
    """A file of ``count`` queues, each with a process; what is new needs a queue manager that has nothing yet."""

    def __init__(self, home: Path, count: int) -> None:
        self.home, self.starts = home, 0
        self.file = home / "queues.yaml"
        self.file.write_text("".join(map(OBJECTS.format, range(count))))
        self.daemon = self._daemon()

    def end(self) -> None:
        self.daemon.end()

    def new(self) -> tuple[float, float]:
        """Seconds of an apply where nothing of the file is there, and seconds of CPU."""
        self.end()
        self.daemon = self._daemon()
        return self.again()

    def again(self) -> tuple[float, float]:
        """Seconds of an apply, and seconds of CPU."""
        return self._run("apply", str(self.file))

    def lint(self) -> tuple[float, float]:
        """Seconds of a look at all objects, and seconds of CPU."""
        return self._run("lint")

    def _daemon(self) -> Daemon:
        self.starts += 1
        home = self.home / str(self.starts)
        home.mkdir()
        return Daemon(home).start()

    def _run(self, *arguments: str) -> tuple[float, float]:
        began, spent = time.perf_counter(), self._cpu()
        argv = [sys.executable, "-m", "trigmon", *arguments]
        done = subprocess.run(argv, env=self.daemon.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or arguments == ("lint",), done.stderr  # lint ends with 1 where it found something
        return time.perf_counter() - began, self._cpu() - spent

    def _cpu(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime + cpu_seconds(self.daemon.process.pid)
