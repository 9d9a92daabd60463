"""A real queue manager for tests: ``trigmon run`` as a child process, its data and socket in a directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import trigmon
from tests.processes import end_all_of
from trigmon import paths
from trigmon.client.connection import Connection
from trigmon.mq.calls import Define
from trigmon.wire import codec
from trigmon.wire.frames import FrameReader

READY_S = 30.0
STOPPED_S = 30.0


class Daemon:
    """``trigmon run`` with a home of its own; it may be started, stopped and killed any number of times.

    ``name``, ``home`` (``TRIGMON_HOME``), ``data``, ``socket`` (paths) and ``env`` (for processes that are to find
    this queue manager) are there before it runs. ``settings`` are ``section.key`` values as a variable would give them.
    ``inside`` is a command that runs it somewhere, ``program`` the module with its first words that is run.
    """

    def __init__(self, home, name="QM1", *, with_monitor=False, settings=None, inside=(), program=("trigmon",)):
        self.name = name
        self.home = Path(home)
        self.with_monitor = with_monitor
        self.inside = inside
        self.program = program
        self.settings = dict(settings or {})
        self.data = self.home / paths.file_name(name)
        self.socket = self.home / ".run" / paths.file_name(name) / paths.SOCKET_NAME
        self.log = self.home / f"{paths.file_name(name)}.log"
        self.process = None

    @property
    def env(self):
        """The environment in which this queue manager is the one that is meant."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TRIGMON_")}
        ours = {f"TRIGMON_{key.replace('.', '_').upper()}": str(value) for key, value in self.settings.items()}
        # Jobs that a monitor starts have warnings of their own libraries.
        default = {} if self.with_monitor else {"PYTHONWARNINGS": "error"}
        # An archive of classes costs half a minute of a processor: no test wants one unless it says so.
        default["TRIGMON_MONITOR_CLASS_ARCHIVES"] = "false"
        # Tests record runs that ended long ago, and a run that is too old is removed within a second.
        default["TRIGMON_RUNS_KEEP_DAYS"] = "36500"
        return kept | default | ours | {"TRIGMON_HOME": str(self.home), "TRIGMON_QMGR": self.name}

    @property
    def address(self):
        """What ``trigmon.connect`` takes, whatever the environment of the test says."""
        return f"unix:{self.socket}"

    def launch(self, *arguments, **popen):
        """Starts it and does not wait; its standard error goes to ``log``."""
        options = [] if self.with_monitor else ["--no-monitor"]
        argv = [*self.inside, sys.executable, "-m", *self.program, "run", *options, *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                argv, env=popen.pop("env", self.env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **popen
            )
        return self

    def start(self, *arguments, **popen):
        """Starts it and waits until clients can connect."""
        self.launch(*arguments, **popen)
        return self.wait_until_ready()

    def wait_until_ready(self):
        """Waits until clients can connect."""
        deadline = time.monotonic() + READY_S
        while not paths.answers(self.socket):
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}:\n{self.log.read_text()}")
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)
        if {"server.tcp", "tls.listen"} & self.settings.keys():  # the listener that is opened last
            self.wait_for_event("ready")
        return self

    def connect(self, **named):
        """Connects as a client."""
        return trigmon.connect(self.address, **{"application": "test", "run_id": ""} | named)

    def plain_socket(self):
        """Returns a connected socket that has not sent its hello."""
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(20)
        link.connect(str(self.socket))
        return link

    def stop(self):
        """Asks it to stop, in order; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()

    def wait(self):
        """Waits for its end; its exit status."""
        return self.process.wait(STOPPED_S)

    def trigmon(self, *arguments, **run):
        """Runs the command line against it: the finished process, its output as text."""
        argv = [sys.executable, "-m", "trigmon", *arguments]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60, check=False, **run)

    def events(self, event=None):
        """Returns the lines of its log as objects; only those of one event, when one is named."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if event in (None, line["event"])]

    def wait_for_event(self, event, timeout_s=20.0):
        """Waits for the first line of this event and returns it."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.events(event)):
            assert time.monotonic() < deadline, f"no {event!r} in:\n{self.log.read_text()}"
            time.sleep(0.02)
        return found[0]

    def end(self):
        """Stops it in order where it still runs."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise


class Raw:
    """A client that sends raw frames: calls sent ahead, and frames that no correct client sends."""

    def __init__(self, daemon, hello=True, client_id=None, tcp=None):
        self.link = socket.create_connection(tcp, 20) if tcp else daemon.plain_socket()
        self.reader = FrameReader()
        self.bodies = []
        if hello:
            client_id = os.urandom(16).hex() if client_id is None else client_id
            self.send(codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id=client_id)))
            self.welcome = codec.decode_welcome(self.body())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()

    def send(self, *frames):
        """Sends bytes."""
        self.link.sendall(b"".join(frames))

    def calls(self, calls, first=1):
        """Sends calls, numbered from ``first``, in one write."""
        self.send(*(codec.encode_request(number, call) for number, call in enumerate(calls, first)))

    def body(self):
        """Returns the next body. Raises EOFError when the other side has closed."""
        while not self.bodies:
            data = self.link.recv(65536)
            if not data:
                raise EOFError
            self.bodies += [bytes(body) for body in self.reader.feed(data)]
        return self.bodies.pop(0)

    def reply(self):
        """Returns the next reply: its number and itself."""
        return codec.decode_response(self.body())

    def is_cut(self, timeout_s=15.0):
        """Returns whether the other side closes the connection within this time, whatever it sends before."""
        self.link.settimeout(timeout_s)
        try:
            while self.link.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


@contextlib.contextmanager
def queue_managers(make_home) -> Iterator[object]:
    """Yields a factory of daemons; all of them are stopped after the block, and none may have met a bug."""
    made = []

    def make(name="QM1", *, start=True, home=None, **named):
        made.append(one := Daemon(home or make_home(), name, **named))
        return one.start() if start else one

    try:
        yield make
    finally:
        for one in made:
            one.end()
            if one.with_monitor:
                end_all_of(one.home)
    for one in made:
        bugs = one.events("a call failed by a bug") if one.log.exists() else []
        assert not bugs, bugs


def define(connection: Connection, name: str, object_type="QLOCAL", **attributes):
    """Defines an object, by long names."""
    connection.call(Define(object_type=object_type, name=name, attributes=attributes))
