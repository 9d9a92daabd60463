"""A queue manager with a watch over a directory, for tests: files go in, messages come out."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import Alter, Display, DisplayConnections, Status
from trigmon.mq.names import RECORD_QUEUE

WATCHES = "trigmon watch"


class WatchedQueue:
    """``directory`` with its watch ``W``, and the queue ``Q`` of a running daemon."""

    def __init__(self, daemon, directory, **attributes):
        self.daemon = daemon
        self.directory = Path(directory)
        self.directory.mkdir(exist_ok=True)
        with daemon.connect() as qm:
            define(qm, "Q", max_q_depth=1_000_000)
            given = {"directory": str(self.directory), "q_name": "Q", "quiet_s": 0, **attributes}
            define(qm, "W", "WATCH", **given)

    def put_file(self, name, data=b"data"):
        """Writes a file as a careful producer does: under another name first."""
        path = self.directory / os.fsdecode(name)
        written = path.with_name(f".{path.name[:200]}.written")
        written.write_bytes(data)
        written.rename(path)
        return path

    def alter(self, name="W", object_type="WATCH", **attributes):
        with self.daemon.connect() as qm:
            qm.call(Alter(object_type=object_type, name=name, attributes=attributes))

    def state(self, name="W"):
        """Returns the row of a watch, {} where there is none."""
        with self.daemon.connect() as qm:
            return next(iter(qm.call(Display(object_type="WATCH", name=name)).rows), {})

    def until_state(self, **wanted):
        """Waits until the watch is so; returns its row."""

        def found():
            row = self.state()
            return row if all(row.get(key) == value for key, value in wanted.items()) else None

        return until(found)

    def until_hindered(self, by):
        """Waits until the watch reports a problem with these words in it; returns its row."""

        def found():
            row = self.state()
            return row if by in row["problem"] else None

        return until(found)

    def attention(self, kind):
        """Returns the findings of a kind."""
        with self.daemon.connect() as qm:
            return [each for each in qm.call(Status()).values["attention"] if each["kind"] == kind]

    def bodies(self, q_name="Q"):
        """Returns the data of all messages on a queue, in order."""
        with self.daemon.connect() as qm, qm.open(q_name, "browse") as queue:
            return [message.data for message in queue.browse()]

    def depth(self, q_name="Q"):
        """Returns how many messages lie on a queue."""
        with self.daemon.connect() as qm:
            return qm.call(Display(object_type="QLOCAL", name=q_name)).rows[0]["current_q_depth"]

    def names(self):
        """Returns the files named by the messages of CONTENT(REFERENCE), in order."""
        return [json.loads(body)["name"] for body in self.bodies()]

    def until_delivered(self, count):
        """Waits until so many messages lie on the queue, and no file is on its way; returns the files' names."""
        until(lambda: self.depth() >= count and not self.depth(RECORD_QUEUE))
        return self.names()

    def records(self):
        """Returns the messages of the record queue."""
        return self.bodies(RECORD_QUEUE)

    def done(self):
        """Returns the names of the files in ``done``."""
        place = self.directory / "done"
        return sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []

    def waiting(self):
        """Returns the names of the files in the directory."""
        return sorted(entry.name for entry in os.scandir(self.directory) if entry.is_file())

    def process(self):
        """Returns the process that serves the watches, None where there is none."""
        with self.daemon.connect() as qm:
            rows = qm.call(DisplayConnections()).rows
        return next((row["pid"] for row in rows if row["application"] == WATCHES), None)

    def kill_process(self):
        """Kills the process that serves the watches, when there is one."""
        if (pid := self.process()) is not None:
            os.kill(pid, signal.SIGKILL)

    def each_once(self, names):
        """Asserts that each file has one message and lies in ``done``."""
        assert Counter(self.names()) == Counter(names)
        assert self.done() == sorted(names)
        assert self.waiting() == []
        for body in self.bodies():
            assert Path(json.loads(body)["path"]).exists()
