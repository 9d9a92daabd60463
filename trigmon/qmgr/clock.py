"""The clocks of a queue manager: its own time, in milliseconds since 1970.

Own time is the wall clock's at the very first start and goes on with the time since boot, which no change of the wall
clock touches and which counts while a machine sleeps. What it takes to go on is kept in the store. A restart within one
boot continues as if there had been none; after a boot it is the wall clock's again, but never behind where it was.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""A new one at each boot (random(4))."""


class Clock(Protocol):
    """The port of a clock."""

    def now(self) -> int:
        """Returns milliseconds since 1970; never goes back."""

    def wall(self) -> int:
        """Returns the wall clock's time in milliseconds since 1970, which people set: what schedules go by."""

    def kept(self) -> str:
        """Returns the state from which the next start goes on, as text; empty if there is none."""


class Machine:
    """The clocks of this machine, in milliseconds."""

    def wall_ms(self) -> int:
        """Returns the wall clock's time, which people and programs may set."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Returns the time since boot, sleep included; nothing sets it."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def boot_id(self) -> str:
        """Returns the id of this boot; empty where the system has none."""
        with suppress(OSError):
            return BOOT_ID.read_text().strip()
        return ""


class Kept(msgspec.Struct, frozen=True):
    """Own time as a store remembers it: the boot, how far it was ahead of the time since then, and how late it was."""

    boot_id: str
    ahead_ms: int
    own_ms: int


def ahead_of_boot(kept: Kept | None, boot_id: str, wall_ms: int, boot_ms: int) -> int:
    """Returns how far own time is ahead of the time since boot, from what was kept and the clocks at a start."""
    if kept is None:
        return wall_ms - boot_ms
    goes_on_ms = kept.ahead_ms + boot_ms
    if boot_id and kept.boot_id == boot_id and goes_on_ms >= kept.own_ms:
        return kept.ahead_ms
    return max(wall_ms, kept.own_ms) - boot_ms


class SystemClock:
    """Own time on a machine. ``kept`` is what :meth:`kept` returned before the last end; empty at a first start."""

    def __init__(self, kept: str = "", machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self._boot_id = self._machine.boot_id()
        self._ahead_ms = ahead_of_boot(_read(kept), self._boot_id, self._machine.wall_ms(), self._machine.boot_ms())

    def now(self) -> int:
        """See :class:`Clock`."""
        return self._ahead_ms + self._machine.boot_ms()

    def wall(self) -> int:
        """See :class:`Clock`."""
        return self._machine.wall_ms()

    def kept(self) -> str:
        """See :class:`Clock`."""
        return msgspec.json.encode(Kept(self._boot_id, self._ahead_ms, self.now())).decode()

    def off_wall_ms(self) -> int:
        """Returns how far own time is ahead of the wall clock; negative when it is behind."""
        return self.now() - self._machine.wall_ms()


def _read(kept: str) -> Kept | None:
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(kept, type=Kept)
    return None


class VirtualClock:
    """A clock that only the caller moves: simulations and tests."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = now_ms
        self.wall_ahead_ms = 0
        """How far the wall clock is ahead of the time that passes: what somebody set it by."""

    def now(self) -> int:
        """See :class:`Clock`."""
        return self._now_ms

    def wall(self) -> int:
        """See :class:`Clock`."""
        return self._now_ms + self.wall_ahead_ms

    def kept(self) -> str:
        """See :class:`Clock`. It outlives its queue managers."""
        return ""

    def advance(self, ms: int) -> None:
        """Lets time pass."""
        if ms < 0:
            raise ValueError("time does not go back")
        self._now_ms += ms
