"""Copies in one process: each in a thread of its own, with connections of its own, until SIGTERM or SIGINT."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trigmon.bridge.connection import RemoteConnection
from trigmon.bridge.copy import CopyLoop
from trigmon.bridge.copy_here import LocalQueue
from trigmon.bridge.copy_there import RemoteQueue
from trigmon.client.address import connect
from trigmon.client.connection import Connection
from trigmon.log import logger
from trigmon.setting_sections import BridgeSettings

CALL_S = 60.0
AGAIN_S = 10.0
"""So long after a bug a copy is begun anew."""
TICK_S = 1.0

log = logger()


def copy_of(
    q_name: str,
    bridge: str,
    settings: BridgeSettings,
    *,
    secrets: str | Path | None,
    address: str | None,
    to: str = "",
    until_empty: bool = False,
    is_patient: bool = False,
    stopped: threading.Event,
) -> CopyLoop:
    """Returns the copy of a queue of a bridge's queue manager; ``to`` is the local queue where its name is another."""

    def connected() -> Connection:
        return connect(address, application="trigmon bridge copy", run_id="", call_timeout_s=CALL_S, reconnect_s=0.0)

    remote = RemoteConnection(bridge, settings, secrets, application="trigmon bridge copy")
    local = LocalQueue(connected, f"{q_name}@{settings.queue_manager}", to or q_name)
    return CopyLoop(RemoteQueue(remote, q_name), local, until_empty=until_empty, is_patient=is_patient, stopped=stopped)


def run_one(copy: CopyLoop, show: Callable[[CopyLoop], None]) -> None:
    """Runs one copy to its end; ``show`` is called once a second meanwhile. Raises what ended it."""
    failed: list[Exception] = []

    def run() -> None:
        try:
            copy.run()
        except Exception as error:  # raised in the calling thread
            failed.append(error)

    _run_threads([threading.Thread(target=run, name=copy.here.source)], copy.stopped, lambda: show(copy))
    if failed:
        raise failed[0]


def run_all(make: Mapping[str, Callable[[], CopyLoop]], stopped: threading.Event) -> None:
    """Runs copies, by name, until they are stopped; one that meets a bug is made and begun anew."""

    def run(name: str) -> None:
        while not stopped.is_set():
            try:
                make[name]().run()
            except Exception:
                log.error("a copy failed and is begun anew", copy=name, exc_info=True)
                stopped.wait(AGAIN_S)

    _run_threads([threading.Thread(target=run, args=(name,)) for name in make], stopped, lambda: None)


def _run_threads(threads: Sequence[threading.Thread], stopped: threading.Event, show: Callable[[], None]) -> None:
    """Runs threads to their ends. A signal asks them to stop: a batch under way is finished first."""
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(TICK_S / len(threads))
            show()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
