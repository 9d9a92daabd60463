"""A Spark Connect server that this monitor manages, with its process and what is known of its state."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from trigmon.keeper import run_directory
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.connect_server import Server


class KeptServer:
    """A server that this monitor manages; only the servers' thread uses it.

    ``pid`` is 0 until it is found running. ``is_there``: it answers; ``is_warm``: no run's query is the first of its
    kind; ``is_old``: it takes no more runs. ``kill_at`` is set when it is
    asked to end, ``is_gone`` when it has ended.
    """

    def __init__(self, server: Server, directory: Path, *, is_found: bool) -> None:
        self.server = server
        self.directory = directory
        self.is_found = is_found
        self.since = time.monotonic()
        self.pid, self.pidfd = 0, -1
        self.is_asked = self.is_there = self.is_warm = self.is_old = self.is_gone = False
        self.check_at = self.renew_at = self.kill_at = 0.0
        self.used_at = self.since
        self.why = ""

    @property
    def is_ending(self) -> bool:
        """Whether it is asked to end, or has ended."""
        return bool(self.is_gone or self.kill_at)

    def find(self) -> bool:
        """Returns whether its process runs, and opens it then."""
        if found := connect_server.process_of(self.directory):
            self.pid, self.pidfd = found
        return found is not None

    def signal(self, number: signal.Signals) -> None:
        """Signals the process group of its session, unless its pid is another user's."""
        with suppress(OSError):
            # Its claim names the pid, and a program of this user may write a claim.
            if run_directory.is_of_user(self.pid, os.geteuid()):
                os.killpg(self.pid, number)

    def close(self) -> None:
        """Closes its pidfd; the process runs on."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
