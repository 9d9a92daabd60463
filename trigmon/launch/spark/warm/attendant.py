"""The monitor's client of its attendant, the process that sends requests to Spark Connect servers.

The process is started at the first request and again when it has ended. A request without an answer in time gets an
error as its answer. One thread uses this module.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trigmon.keeper import protocol

ATTENDING = "trigmon.spark.warm.attendant_process"
Answered = Callable[[dict[str, Any]], None]
GONE = "the attendant has ended"


class Attendant:
    """One process; its standard error goes to the file ``log``."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines = protocol.Lines()
        self._numbers = itertools.count(1)
        self._asked: dict[int, tuple[float, Answered]] = {}

    def fileno(self) -> int:
        """Returns the descriptor of the answers, for polling; -1 when there is no process."""
        return self._process.stdout.fileno() if self._process is not None and self._process.stdout else -1

    @property
    def is_there(self) -> bool:
        """Whether it runs, as far as is known."""
        return self._process is not None

    @property
    def due_at(self) -> float:
        """When the next answer is late, by time.monotonic(); 0 when none is awaited."""
        return min((by for by, _ in self._asked.values()), default=0.0)

    def ask(self, do: str, answered: Answered, deadline_s: float, **fields: object) -> None:
        """Sends a request. ``answered`` is called with the answer; with ``error`` where it failed or came too late."""
        number = next(self._numbers)
        self._asked[number] = time.monotonic() + deadline_s, answered
        try:
            process = self._process or self._start()
            assert process.stdin is not None
            process.stdin.write(protocol.line("ask", id=number, do=do, deadline_s=deadline_s, **fields))
            process.stdin.flush()
        except OSError:
            self._lose()

    def read_answers(self) -> None:
        """Reads the answers that have come and calls their functions."""
        data = b""
        if self._process is not None:
            with suppress(OSError):
                data = os.read(self.fileno(), 1 << 16)
        if not data:
            self._lose()
            return
        for answer in self._lines.feed(data):
            if asked := self._asked.pop(answer["id"], None):
                asked[1](answer)

    def keep_time(self, now: float) -> None:
        """Answers the requests whose time is over with an error."""
        for number, (by, answered) in list(self._asked.items()):
            # ``answered`` may send a request and find the process gone: then the others have been answered.
            if now >= by and number in self._asked:
                del self._asked[number]
                answered({"error": "there was no answer in time"})

    def close(self) -> None:
        """Ends the process."""
        self._asked.clear()
        self._lose()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", ATTENDING],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # a terminal's Ctrl-C ends the monitor only
            )
        self._lines = protocol.Lines()
        return self._process

    def _lose(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for end in (process.stdin, process.stdout):
                if end is not None:
                    with suppress(OSError):
                        end.close()
            process.kill()
            process.wait()
        asked, self._asked = self._asked, {}
        for _, answered in asked.values():
            answered({"error": GONE})
