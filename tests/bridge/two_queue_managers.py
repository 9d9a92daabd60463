"""Two queue managers for a copy: QM1 is here, and QM9 plays the real MQ, reached through ibmmq alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from tests.daemons import define, queue_managers
from trigmon.mq.calls import Status

CONFIG = """\
bridges:
  MAINFRAME:
    queue_manager: QM9
"""
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"


class TwoQueueManagers:
    """Both, and the command that copies from the one to the other."""

    def __init__(self, make, home, library, *, config=CONFIG, settings=None):
        self.home = home
        self.config = home / "trigmon.yaml"
        self.config.write_text(config)
        # The daemon here has the library too, for the copies that are its children.
        os.environ["LD_LIBRARY_PATH"] = str(library)
        try:
            self.there = make("QM9", home=home)
            self.here = make("QM1", home=home, settings={"config": self.config} | (settings or {}))
        finally:
            del os.environ["LD_LIBRARY_PATH"]
        self.library = library

    @property
    def env(self):
        return self.here.env | {"LD_LIBRARY_PATH": str(self.library)}

    def define(self, name, *, here=None, there=None):
        """Defines a queue of this name on both sides."""
        with self.here.connect() as qm:
            define(qm, name, **{"max_q_depth": 200_000} | (here or {}))
        with self.there.connect() as qm:
            define(qm, name, **{"max_q_depth": 200_000} | (there or {}))

    def start(self, *arguments, **popen):
        """Starts ``trigmon bridge copy``."""
        argv = [sys.executable, "-m", "trigmon", "bridge", "copy", *arguments]
        return subprocess.Popen(argv, env=self.env, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | popen)

    def copy(self, *arguments):
        """Runs ``trigmon bridge copy`` to its end; the finished process, its output as text."""
        argv = [sys.executable, "-m", "trigmon", "bridge", "copy", *arguments]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=120, check=False)

    def copied(self, name):
        """Copies until the queue there is empty; returns what the command says in JSON."""
        done = self.copy(f"{name}@QM9", "--until-empty", "--output", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def copying(self, *arguments):
        """A copy that is under way in the block, and is asked to end after it."""
        process = self.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0

    def copies(self):
        """Returns the copies of the status here."""
        with self.here.connect() as qm:
            return qm.call(Status()).values["copies"]


def both(tmp_path_factory, library_directory):
    """Yields the two: the body of a fixture of any scope."""
    home = tmp_path_factory.mktemp("qm")
    with queue_managers(lambda: home) as make:
        yield TwoQueueManagers(make, home, library_directory)


def taken(daemon, name):
    """Takes all messages of a queue, and returns them."""
    with daemon.connect() as qm, qm.open(name, "input_shared") as queue:
        return list(queue.drain())


def depth(daemon, name):
    """Returns how many messages are on a queue."""
    with daemon.connect() as qm, qm.open(name, "inquire") as queue:
        return queue.inquire("current_q_depth")["current_q_depth"]
