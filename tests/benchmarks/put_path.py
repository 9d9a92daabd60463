"""``python -m tests.benchmarks.put_path``: the files that a put which fires passes, in the order of their first call.

The daemon runs in this process, on SQLite, with a monitor's open handle that waits for nothing; a client in a thread of
its own puts one persistent message of 1 KiB to a queue of type EVERY. What the daemon's thread calls from the first
byte of the put to the last byte of its reply is traced by sys.setprofile. What the daemon plans behind the reply, such
as its next deadline, is not on the way. Several puts are traced, and that of the fewest files is shown: timed work may
be due in the turn of a put.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import trigmon
from trigmon import log
from trigmon.server.connection import Connection
from trigmon.server.daemon import Daemon
from trigmon.settings import load

WARM, TRACED = 4, 5
"""Puts."""
PACKAGE = str(Path(trigmon.__file__).parent) + "/"
OBJECTS = """
- qlocal: INITQ
- process: P
  appl_id: "true"
- qlocal: Q
  trigger_control: "on"
  trigger_type: every
  process_name: P
  initiation_q_name: INITQ
"""


class Way:
    """The files that a put passes, with the calls of each, and the steps from file to file."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.steps = 0
        self._last = ""

    def add(self, name: str) -> None:
        """Adds a call of a function of this file."""
        self.steps += name != self._last
        self._last = name
        self.files[name] = self.files.get(name, 0) + 1


class Trace:
    """The ways of one thread: once ``is_due``, from the next read of a connection to the end of its reply."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self.is_due = self.is_on = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self.is_due and frame.f_code is Connection.get_buffer.__code__:
            self.is_due, self.is_on = False, True
            self.ways.append(Way())
        if self.is_on and event == "return" and frame.f_code is Connection.flush.__code__:
            self.is_on = False  # the reply is with the kernel
        name = frame.f_code.co_filename
        if self.is_on and event == "call" and name.startswith(PACKAGE):
            self.ways[-1].add(name.removeprefix(PACKAGE))


def put_path() -> Way:
    """Returns the shortest way of the last puts, behind others that have warmed everything up."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_RUNTIME_DIR"] = home
        definitions = Path(home) / "objects.yaml"
        definitions.write_text(OBJECTS)
        log.configure("error")
        daemon = Daemon(
            load({"qmgr.data": f"{home}/data", "qmgr.definitions": [str(definitions)], "log.level": "error"}),
            with_monitor=False,
        )
        failures: list[BaseException] = []

        def client() -> None:
            try:
                with trigmon.connect("QM1") as qm, qm.open("INITQ", "input_shared"):
                    queue = qm.open("Q", "output")
                    for number in range(WARM + TRACED):
                        trace.is_due = number >= WARM
                        queue.put(bytes(1024), persistence="persistent")
            except BaseException as error:
                failures.append(error)
            finally:
                loop.call_soon_threadsafe(daemon._asked_to_stop, 15)

        async def serve() -> None:
            nonlocal loop
            loop = asyncio.get_running_loop()
            thread = threading.Thread(target=client)
            loop.call_later(1.0, thread.start)
            sys.setprofile(trace)
            await daemon.serve()
            sys.setprofile(None)
            thread.join()

        loop: asyncio.AbstractEventLoop
        asyncio.run(serve())
        if failures:
            raise failures[0]
    return min(trace.ways, key=lambda way: len(way.files))


if __name__ == "__main__":
    found = put_path()
    for name, calls in found.files.items():
        print(f"{name:48} {calls}")
    print(f"{len(found.files)} files, {sum(found.files.values())} calls, {found.steps} steps from file to file")
