"""A monitor's post: its number among the monitors of one initiation queue, and what became of the others.

Whoever holds the lock of a numbered file is that monitor, so a monitor is gone when its lock is free, however it ended.
The file names its process while it has, or may have, runs in the ledger; who takes them over empties it. Posts belong
to the data directory, which has an id of its own: runs are found again whatever this host is called by then.
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


class Post:
    """The lowest free number of a monitor of this queue, ours until the end of the block.

    ``name`` tells it from all others in the ledger: the directory's id, the initiation queue, the number. ``keeper``
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

    def __enter__(self) -> Post:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def gone(self) -> Iterator[str]:
        """The names of monitors, of this initiation queue or another, that ended and whose runs nobody has taken over.

        The programs of one whose queue nobody serves any more would count as running for ever.
        Nobody else can take a name up while the caller has it; going on to the next says that its runs were taken
        over, and an exception that they were not.
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
                said = file.read().splitlines()
                # An earlier version wrote no name: then only one of this queue can be told.
                name = said[1] if len(said) > 1 else self._name_of(int(found[2])) if found[1] == self._stem else ""
                if said and name:
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
    """The name of a monitor's keeper."""
    _, initiation_q, number = monitor.rsplit(":", 2)
    return f"{paths.file_name(initiation_q)}.{number}.keeper"


def own_id(directory: Path) -> str:
    """The id of a directory, 12 hexadecimal digits, made at the first question."""
    path = directory / "id"
    if not path.exists():
        made = directory / f".id.{os.getpid()}"
        made.write_text(f"{secrets.token_hex(6)}\n")
        with suppress(FileExistsError):
            path.hardlink_to(made)
        made.unlink()
    return path.read_text().strip()


def _locked(path: Path) -> TextIO | None:
    """The file, open and locked; None when another process has its lock."""
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
