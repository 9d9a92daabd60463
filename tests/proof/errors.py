"""Proof: errors of the disk. Whichever read, write or sync fails, no answer is given that a restart contradicts.

A load is played once to count, and then once for every position at which something can fail.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import apsw

from tests.proof.disk import Disk
from tests.proof.found import Found
from tests.proof.harness import Harness
from tests.proof.images import dropped, kept
from tests.proof.power_cuts import judge
from trigmon.store.port import StoreBroken

WORKS = 12
CODES = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "create": apsw.SQLITE_CANTOPEN,
    "delete": apsw.SQLITE_IOERR_DELETE,
}
MAKES_LONGER = ("create", "write")


class Failing:
    """A disk's fault: the ``which``-th of a kind fails, or all from there on. Counts what was asked."""

    def __init__(self, disk: Disk, kind: str = "", which: int = 0, *, is_sticky: bool = False, code: int = 0) -> None:
        self.counts: Counter[str] = Counter()
        self.has_failed = False
        self._disk = disk
        self._kind, self._which = kind, which
        self._is_sticky = is_sticky
        self._code = code or CODES.get(kind, 0)

    def __call__(self, kind: str) -> None:
        self.counts[kind] += 1
        if self._fails(kind):
            self.has_failed = True
            raise apsw.exception_for(self._code)

    def _fails(self, kind: str) -> bool:
        if self._is_sticky and self.has_failed:
            return kind in MAKES_LONGER if self._code == apsw.SQLITE_FULL else True
        return kind == self._kind and self.counts[kind] == self._which


Way = tuple[str, bool, int]
WAYS: tuple[tuple[str, Way], ...] = (
    *((f"{kind} fails once", (kind, False, 0)) for kind in CODES),
    *((f"{kind} fails from then on", (kind, True, 0)) for kind in ("read", "write", "sync")),
    ("the disk is full from a write on", ("write", True, apsw.SQLITE_FULL)),
    ("a write finds the disk full", ("write", False, apsw.SQLITE_FULL)),
)


def fail_everywhere(directory: Path, seed: int, stride: int = 1) -> Found:
    """Fails at every position (every ``stride``-th), in every way."""
    found = Found("positions")
    for beginning in (_new, _reopened):
        for name, (kind, is_sticky, code) in WAYS:
            harness = beginning(directory, seed)
            counting = Failing(harness.disk)
            said = _play(harness, counting)
            assert not said and not counting.has_failed, said
            for which in range(1 + seed % stride, counting.counts[kind] + 1, stride):
                harness = beginning(directory, seed)
                failing = Failing(harness.disk, kind, which, is_sticky=is_sticky, code=code)
                said = _play(harness, failing)
                if not failing.has_failed:
                    said = [*said, "it was never reached"]
                found.add(said, f"seed {seed} {beginning.__name__[1:]}: {name}, number {which}")
    return found


def _new(directory: Path, seed: int) -> Harness:
    return Harness(directory, seed)


def _reopened(directory: Path, seed: int) -> Harness:
    """A harness whose disk is as a killed process left it, the log still to be taken up."""
    harness = Harness(directory, seed)
    harness.start()
    harness.play(WORKS)
    harness.end()
    harness.disk = Disk(kept(harness.disk), harness.log)
    harness.players.clear()
    harness.names = [f"later.{who}" for who in harness.names]
    harness.events.append(harness.crash("kill"))
    return harness


def _play(harness: Harness, failing: Failing) -> list[str]:
    """Plays a load on a disk that fails, then looks at what a death of the process, and a power cut, leave."""
    harness.disk.fault = failing
    try:
        harness.start()
        harness.play(WORKS)
        harness.manager.housekeeping.idle()
    except StoreBroken:
        if not failing.has_failed:
            raise
        harness.disk.is_dead = True  # whatever a connection does that nobody holds any more
    if harness.is_up:
        harness.end()
    said = []
    for how, files in (("kill", kept(harness.disk)), ("power", dropped(harness.disk, harness.chance))):
        said += judge(harness.directory, files, [*harness.events, harness.crash(how)])
    return said
