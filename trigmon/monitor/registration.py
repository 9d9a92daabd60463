"""Registration of a monitor: its number among the monitors of one initiation queue, and which others have ended.

The process that holds the lock of a numbered file is that monitor, so a monitor has ended when its lock is free.
The file names its process while it has, or may have, runs in the ledger; the monitor that takes them over empties it.
The files belong to the data directory, which has its own id: runs are found again after the host was renamed.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TextIO

from trigmon import paths

_NUMBERED = re.compile(r"(.+)\.([0-9]+)")


class Registration:
    """The lowest free number of a monitor of this queue, locked until the end of the block.

    ``name`` is its unique name in the ledger: the directory's id, the initiation queue, the number. ``keeper``
    is the name of its keeper's socket in the directory: the next monitor of the same number finds the same keeper.
    """

    def __init__(self, directory: Path, initiation_q: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._initiation_q = initiation_q
        self._id = own_id(directory)
        self._stem = paths.file_name(initiation_q)
        self._number, self._file = self._take()
        self.name = self._name_of(self._number)
        self.keeper = keeper_of(self.name)
        _write(self._file, f"{os.getpid()}\n{self.name}\n")

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def gone(self) -> Iterator[str]:
        """Yields the names of monitors, of any initiation queue, that ended and whose runs no other has taken over.

        The programs of one whose queue no monitor serves any more would count as running for ever.
        No other monitor can take over a name while the caller has it. Asking for the next one confirms that its runs
        were taken over; an exception means that they were not.
        """
        for entry in sorted(self._directory.iterdir()):
            found = _NUMBERED.fullmatch(entry.name)
            if not found or (found[1], int(found[2])) == (self._stem, self._number):
                continue
            file = _locked(entry)
            if file is None:
                continue
            with file:
                file.seek(0)
                lines = file.read().splitlines()
                # An earlier version wrote no name: then only the name of a monitor of this queue is known.
                name = lines[1] if len(lines) > 1 else self._name_of(int(found[2])) if found[1] == self._stem else ""
                if lines and name:
                    yield name
                    _write(file, "")

    def _take(self) -> tuple[int, TextIO]:
        for number in itertools.count(1):
            file = _locked(self._directory / f"{self._stem}.{number}")
            if file is not None:
                return number, file
        raise AssertionError("counting does not end")

    def _name_of(self, number: int) -> str:
        return f"{self._id}:{self._initiation_q}:{number}"


def keeper_of(monitor: str) -> str:
    """Returns the name of a monitor's keeper."""
    _, initiation_q, number = monitor.rsplit(":", 2)
    return f"{paths.file_name(initiation_q)}.{number}.keeper"


def own_id(directory: Path) -> str:
    """Returns the id of a directory, 12 hexadecimal digits, made at the first call."""
    path = directory / "id"
    if not path.exists():
        made = directory / f".id.{os.getpid()}"
        made.write_text(f"{secrets.token_hex(6)}\n")
        with suppress(FileExistsError):
            path.hardlink_to(made)
        made.unlink()
    return path.read_text().strip()


def _locked(path: Path) -> TextIO | None:
    """Returns the file, open and locked; None when another process has its lock."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _write(file: TextIO, text: str) -> None:
    file.truncate(0)
    file.write(text)
    file.flush()
