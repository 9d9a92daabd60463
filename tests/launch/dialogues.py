"""The messages of a keeper's units and a real systemd, recorded once, and replayed where no systemd runs.

``python -m tests.launch.dialogues`` inside a machine of booted.py, as root, records every scene anew into dialogues/,
a file a scene: its connections, of each the calls as values and what systemd answered as it came. What concerns other
units is left out.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from trigmon.keeper import dbus, protocol, run_directory, systemd_bus
from trigmon.keeper.systemd_units import Units

RECORDED = Path(__file__).with_name("dialogues")
PLACE = Path("/srv/trigmon")
KEEPER = "Q.1.keeper"
WAIT_S = 10.0


class Stage:
    """Units without a keeper; ``events`` lists what happened to them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[tuple[Any, ...]] = []
        self.come()

    def come_again(self) -> None:
        """Another keeper comes: it knows nothing."""
        self.close()
        self.come()

    def close(self) -> None:
        """The keeper goes."""
        self.units._lose()

    def come(self) -> None:
        """A keeper comes."""
        self.selector = selectors.DefaultSelector()
        self.units = Units(self, self.selector)

    def start(self, run_id: str, *argv: str, **more: Any) -> Any:
        directory = self.directory / "runs" / run_id
        run_directory.make(directory, KEEPER)
        order = {
            "run": run_id,
            "argv": list(argv),
            "environment": {"TRIGMON_RUN": run_id, "TRIGMON_QNAME": "ORDERS", "TRIGMON_PROCESS": "ORDERS.LOAD"},
            "working_directory": "/",
            "directory": str(directory),
            "time_limit_s": 0,
            "grace_s": 5,
        }
        return self.units.start(order | more)

    def adopt(self) -> list[str]:
        adopted = self.units.adopt(self.directory / "runs", KEEPER)
        self.units.look_at_all()
        return [run.run_id for run in adopted]

    def until(self, *start: Any) -> tuple[Any, ...]:
        """Returns the first event that begins with these values."""
        deadline = time.monotonic() + WAIT_S
        while not (found := [one for one in self.events if one[: len(start)] == start]):
            assert time.monotonic() < deadline, self.events
            self.turn()
        return found[0]

    def turn(self) -> None:
        for key, _ in self.selector.select(0.1):
            key.data()
        self.units.keep_up(time.monotonic())

    def rest(self, enough: Callable[[], bool]) -> None:
        """Goes on until that is so."""
        deadline = time.monotonic() + WAIT_S
        while not enough():
            assert time.monotonic() < deadline
            self.turn()

    def unit_started(self, run: Any) -> None:
        self.events.append(("started", run.run_id, run.pid))
        run_directory.note_start(run.directory, run.pid, run.start_ms, run.argv)

    def unit_failed(self, run: Any, why: str) -> None:
        self.events.append(("failed", run.run_id, why))

    def unit_ended(self, run: Any) -> None:
        self.events.append(("ended", run.run_id, run.ended()))
        self.units.remove(run.run_id)

    def unit_lost(self, run: Any) -> None:
        self.events.append(("lost", run.run_id))


def ends_well(stage: Stage) -> None:
    stage.start("r", "/bin/sh", "-c", "exit 0")
    stage.until("ended", "r")


def ends_badly(stage: Stage) -> None:
    stage.start("r", "/bin/sh", "-c", "sleep 0.2; exit 3", limits={"memory_mib": 64, "open_files": 77, "cpu_s": 9})
    stage.until("ended", "r")


def cannot_be_executed(stage: Stage) -> None:
    stage.start("r", "/srv/no-such-program")
    stage.until("failed", "r")


def is_refused(stage: Stage) -> None:
    stage.start("r", "no/absolute/path")
    stage.until("failed", "r")


def takes_too_long(stage: Stage) -> None:
    stage.start("r", "/bin/sleep", "60", time_limit_s=0.5)
    stage.until("ended", "r")


def is_asked_to_end(stage: Stage) -> None:
    run = stage.start("r", "/bin/sleep", "60")
    stage.until("started", "r")
    run.end(protocol.STOPPED, 5.0)
    stage.until("ended", "r")


def ended_while_nobody_was_there(stage: Stage) -> None:
    stage.start("r", "/bin/sh", "-c", "sleep 0.3; exit 6")
    _, _, pid = stage.until("started", "r")
    stage.come_again()
    until = time.monotonic() + WAIT_S
    while (
        run_directory.start_ticks(pid) and time.monotonic() < until
    ):  # when it is played again the process is nobody's
        time.sleep(0.05)
    stage.adopt()
    stage.until("ended", "r")


SCENES = (
    ends_well,
    ends_badly,
    cannot_be_executed,
    is_refused,
    takes_too_long,
    is_asked_to_end,
    ended_while_nobody_was_there,
)


# -- recording ----------------------------------------------------------------------------------------------


class Recorder(systemd_bus.Manager):
    """A connection that records its messages."""

    connections: ClassVar[list[list[dict[str, Any]]]] = []

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.connections.append(self.steps)
        super().__init__()

    def _send(self, then: Any, path: str, interface: str, member: str, signature: str, *body: Any) -> None:
        self.steps.append({"call": shown(dbus.parse(dbus.call(1, path, interface, member, signature, *body)), PLACE)})
        super()._send(then, path, interface, member, signature, *body)

    def _take(self, data: bytes) -> None:
        self._raw = getattr(self, "_raw", b"") + data
        while len(self._raw) >= 16 and len(self._raw) >= (length := dbus._length(self._raw)):
            one, self._raw = self._raw[:length], self._raw[length:]
            message = dbus.parse(one)
            if message.kind != dbus.SIGNAL or b"trigmon-run-" in one or b"trigmon_2drun_2d" in one:
                self.steps.append({"said": base64.b64encode(one).decode()})
        super()._take(data)


def shown(message: dbus.Message, place: Path) -> list[Any]:
    """Returns a call as JSON can hold it, whatever its directory is called."""
    text = json.dumps([message.path, message.interface, message.member, message.body], default=_plain)
    return json.loads(text.replace(str(place), "{place}"))


def _plain(value: Any) -> Any:
    return value.decode()


def record() -> None:
    """Records all scenes with the systemd that runs here."""
    systemd_bus.Manager = Recorder  # type: ignore[misc]
    RECORDED.mkdir(exist_ok=True)
    for scene in SCENES:
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir()
        Recorder.connections.clear()
        stage = Stage(PLACE)
        scene(stage)
        time.sleep(0.5)
        stage.turn()
        lines = ["[", ",\n".join(_written(steps) for steps in Recorder.connections), "]"]
        (RECORDED / f"{scene.__name__}.json").write_text("\n".join(lines) + "\n")
        os.sync()


def _written(steps: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(step) for step in steps) + "\n]"


# -- playing again ------------------------------------------------------------------------------------------


class Endpoint:
    """Plays systemd's part of a recorded scene on a socket; ``wrong`` lists the messages that differ."""

    def __init__(self, path: Path, scene: str, place: Path) -> None:
        self.wrong: list[Any] = []
        self._place = place
        self._connections = json.loads((RECORDED / f"{scene}.json").read_text())
        self.calls_left = sum("call" in step for steps in self._connections for step in steps)
        self._may_close = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Waits for the end of the recording."""
        self._may_close.set()
        self._thread.join(WAIT_S)
        self._listener.close()
        assert not self._thread.is_alive(), "not all of the dialogue was played"

    def _serve(self) -> None:
        for steps in self._connections:
            link, _ = self._listener.accept()
            with link:
                link.settimeout(WAIT_S)
                self._play(link, steps)
                if steps is self._connections[-1]:
                    self._may_close.wait(WAIT_S)  # a systemd does not go

    def _play(self, link: socket.socket, steps: list[dict[str, Any]]) -> None:
        uid = str(os.geteuid()).encode().hex()
        hello = link.recv(4096)
        if hello != f"\0AUTH EXTERNAL {uid}\r\nBEGIN\r\n".encode():
            self.wrong.append(hello)
        link.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
        messages, heard = dbus.Messages(), []
        for step in steps:
            if "said" in step:
                with suppress(BrokenPipeError, ConnectionResetError):  # the keeper need not stay for the last answers
                    link.sendall(base64.b64decode(step["said"]))
                continue
            while not heard:
                try:
                    data = link.recv(1 << 16)
                except ConnectionResetError:  # it left answers unread, and what it had asked before is still here
                    continue
                if not data:
                    self.wrong.append(("nothing", step["call"]))
                    self.calls_left = 0
                    return
                heard += messages.feed(data)
            call = shown(heard.pop(0), self._place)
            self.calls_left -= 1
            if call != step["call"]:
                self.wrong.append((call, step["call"]))


if __name__ == "__main__":
    signal.alarm(120)
    record()
