"""The demo's own queue manager: the real daemon with its monitor, in a directory that goes when it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trigmon import paths
from trigmon.client.address import connect
from trigmon.client.connection import Connection
from trigmon.demo import data
from trigmon.mq.calls import Display, Pause, Runs
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing
from trigmon.mq.run import WITH_PROGRAM

NAME = "DEMO"
INITIATION_Q = "SYSTEM.DEFAULT.INITIATION.QUEUE"
START_S = 30.0
END_S = 20.0
JOB_END_S = 5.0

# A layer over this machine's own configuration, whose queue manager must not be touched.
_SETTINGS = f"""\
qmgr: {{name: {NAME}, data: null, definitions: []}}
server: {{tcp: null, socket_group: null}}
monitor: {{initiation_q: {INITIATION_Q}, environment: [FLIGHTS_OUTPUT, FLIGHTS_WEATHER], class_archives: false}}
"""


class DemoFailed(Exception):  # noqa: N818 - it is the demo that failed, by no error of its own perhaps
    """The demo did not reach its end. The text says at which station and why; ``detail`` is what was written there."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail


class DemoQueueManager:
    """A running ``trigmon run``."""

    def __init__(self, home: Path, output: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIGMON_")}
        self._socket = home / ".run" / NAME / paths.SOCKET_NAME
        self._log = home / "daemon.log"
        config = home / "demo.yaml"
        config.write_text(_SETTINGS)
        flights = {"FLIGHTS_OUTPUT": str(output), "FLIGHTS_WEATHER": str(data.weather())}
        own = {"TRIGMON_HOME": str(home), "TRIGMON_CONFIG": str(config)}
        self.environment = kept | own
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C is for the demo, which then ends the daemon in order.
            self._daemon = subprocess.Popen(
                [sys.executable, "-m", "trigmon", "run"],
                env=self.environment | flights,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"unix:{self._socket}"

    def ready(self) -> Connection:
        """Returns a connection, as soon as the monitor reads the initiation queue. Raises DemoFailed."""
        self._await(lambda: paths.answers(self._socket))
        connection = connect(self.address, application="trigmon demo", run_id="")
        self._await(lambda: queue_row(connection, INITIATION_Q)["open_input_count"] > 0)
        return connection

    def check(self) -> None:
        """Raises DemoFailed, with the log's end, when the daemon has ended."""
        status = self._daemon.poll()
        if status is not None:
            raise DemoFailed(f"the queue manager ended with status {status}", self.log_tail())

    def log_tail(self) -> str:
        """Returns the last lines of the daemon's and the monitor's log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    def end(self) -> list[str]:
        """Ends whatever runs, in this order: launching, the jobs, the monitor and the queue manager; says what."""
        if self._daemon.poll() is not None:
            return []
        ended: list[str] = []
        with suppress(MQError):
            ended += self._end_jobs()
        self._daemon.terminate()
        try:
            self._daemon.wait(END_S)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()
        return [*ended, "the monitor", f"the queue manager (pid {self._daemon.pid})"]

    def _end_jobs(self) -> list[str]:
        """Ends every program that was started, with all it started itself; a sentence's part for each."""
        ended: dict[int, str] = {}
        with connect(self.address, application="trigmon demo", run_id="") as connection:
            # A killed job closes its queue, a trigger event as any other: first of all nothing more is started.
            connection.call(Pause(what="everything", reason="the demo ends"))
            began = time.monotonic()
            while open_runs := [run for state in WITH_PROGRAM for run in runs(connection, state=state)]:
                patience_s = time.monotonic() - began
                if patience_s > END_S:
                    break
                for run in open_runs:
                    if run["pid"] and (run["pid"] not in ended or patience_s > JOB_END_S):
                        ended[run["pid"]] = f"run {run['run_id']} of {run['process_name']} (pid {run['pid']})"
                        _signal_group(run["pid"], signal.SIGTERM if patience_s <= JOB_END_S else signal.SIGKILL)
                time.sleep(0.05)
        # The leader of a group may end before those it started: spark-submit's Java, and Java's Python.
        for pid in ended:
            _end_group(pid)
        return list(ended.values())

    def _await(self, is_so: Any) -> None:
        until = time.monotonic() + START_S
        while not is_so():
            self.check()
            if time.monotonic() > until:
                raise DemoFailed(f"the queue manager was not ready within {START_S:g} s", self.log_tail())
            time.sleep(0.02)


def _signal_group(pid: int, number: signal.Signals) -> bool:
    """Sends a signal to a group of processes; whether there still was one."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    return True


def _end_group(pid: int) -> None:
    until = time.monotonic() + JOB_END_S
    while time.monotonic() < until and _signal_group(pid, signal.SIGKILL):
        time.sleep(0.02)


@contextmanager
def demo_queue_manager(output: Path, ended: list[str]) -> Iterator[DemoQueueManager]:
    """Yields a queue manager for the block; behind it everything that was started has ended and its files are gone.

    What had to be ended is added to ``ended``.
    """
    with tempfile.TemporaryDirectory(prefix="trigmon-") as home:
        made = DemoQueueManager(Path(home), output)
        try:
            yield made
        finally:
            before = _deaf()
            ended += made.end()
            for number, handler in before.items():
                signal.signal(number, handler)


def _deaf() -> dict[signal.Signals, Any]:
    """Ignores a second Ctrl-C while cleaning up, which takes seconds, so that no process is left behind."""
    try:
        return {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, which no signal reaches
        return {}


def queue_row(connection: Connection, name: str) -> dict[str, Any]:
    """Returns a queue as DISPLAY QLOCAL shows it."""
    return connection.ask(Display(object_type="QLOCAL", name=name), Listing).rows[0]


def runs(connection: Connection, **where: Any) -> list[dict[str, Any]]:
    """Returns the run records that hold these values, newest first."""
    return connection.ask(Runs(where=where), Listing).rows
