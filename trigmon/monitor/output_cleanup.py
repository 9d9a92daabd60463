"""Removes the output of runs that are no longer in the ledger from the monitor's host.

A run is in the ledger before its directory is made, so a directory without a run is one whose run was deleted. The
oldest directories are looked at first, since their runs are deleted first; each time one more slice of the others is
looked at in turn, since the record of a long run is deleted late.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from trigmon.client.connection import Connection
from trigmon.log import logger
from trigmon.mq.calls import Call, Runs
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing, Reply

log = logger()
PERIOD_S = 60.0
SLICE = 256
_OF_A_RUN = re.compile(r"\.?([0-9a-f]{16})(\.[0-9]+)?")
"""A run's directory; with a dot before it what a keeper that was killed had just made or taken back."""


class Sweep:
    """Cleans one directory of runs, slice by slice."""

    def __init__(self, runs_directory: Path) -> None:
        self._directory = runs_directory
        self._behind = ""

    def go(self, call: Callable[[Call], Reply], stop: threading.Event | None = None) -> int:
        """Removes what is not in the ledger any more; returns how many. Raises what ``call`` raises."""
        try:
            names = sorted(entry.name for entry in self._directory.iterdir() if _OF_A_RUN.fullmatch(entry.name))
        except FileNotFoundError:
            return 0
        removed = looked = 0
        while slice_ := names[looked : looked + SLICE]:
            looked += len(slice_)
            gone = self._remove(slice_, call)
            removed += gone
            if not gone or (stop is not None and stop.is_set()):
                break
        rest = names[looked:]
        round_ = [name for name in rest if name > self._behind][:SLICE] or rest[:SLICE]
        self._behind = round_[-1] if round_ else ""
        return removed + self._remove(round_, call)

    def _remove(self, names: list[str], call: Callable[[Call], Reply]) -> int:
        gone = [name for name in names if not _is_on_record(name, call)]
        for name in gone:
            shutil.rmtree(self._directory / name, ignore_errors=True)
        return len(gone)


class Sweeper:
    """Cleans a directory of runs periodically, in a thread with its own connection, until :meth:`stop`."""

    def __init__(self, connect: Callable[[], Connection], runs_directory: Path, period_s: float = PERIOD_S) -> None:
        self._connect = connect
        self._sweep = Sweep(runs_directory)
        self._period_s = period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a cleanup that is under way ends with its slice."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._period_s):
            try:
                with self._connect() as connection:
                    removed = self._sweep.go(connection.call, self._over)
            except (MQError, OSError) as error:
                log.debug("output of forgotten runs not removed", error=str(error))
                continue
            if removed:
                log.info("output of forgotten runs removed", runs=removed)


def _is_on_record(name: str, call: Callable[[Call], Reply]) -> bool:
    reply = call(Runs(where={"run_id": _OF_A_RUN.sub(r"\1", name)}, limit=1))
    return not isinstance(reply, Listing) or bool(reply.rows)
