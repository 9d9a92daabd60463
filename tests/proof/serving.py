"""A daemon that is kept running: its lives one after the other, on one machine and one disk, and how each ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from tests.proof.disk import Disk
from tests.proof.images import POWER_CUTS, kept
from tests.proof.loop import Loop, Machine
from tests.proof.process import Process
from tests.proof.vfs import VFS
from trigmon.mq.calls import Call
from trigmon.qmgr.clock import SystemClock
from trigmon.qmgr.manager import QueueManager
from trigmon.store.memory.store import MemoryStore
from trigmon.store.port import Store, StoreBroken
from trigmon.store.sqlite.store import SqliteStore

THREE_DAYS_MS = 3 * 86_400_000
JUMPS_MS = (-THREE_DAYS_MS, THREE_DAYS_MS, -3_600_000, 3_600_000)
DOWN_MS = (50, 1000)
MOST_OPERATIONS = 40


class Serving:
    """``process`` is the life going on, if any. ``bugs`` are errors that no store can excuse."""

    def __init__(
        self,
        loop: Loop,
        chance: random.Random,
        directory: Path,
        defines: Sequence[Call],
        note: Callable[[str], Any],
        happened: Counter[str],
        *,
        uses_sqlite: bool,
    ) -> None:
        self.process: Process | None = None
        self.bugs: list[str] = []
        self._happened = happened
        self._loop = loop
        self._chance = chance
        self._directory = directory
        self._defines = list(defines)
        self._note = note
        self._uses_sqlite = uses_sqlite
        self._machine = Machine(loop)
        self._memory = MemoryStore()
        self._disk = Disk()
        self._is_full = False
        self._kept_time = ""

    def start(self) -> None:
        """A life begins, if none goes on."""
        if self.process is not None:
            return
        store: Store = self._memory
        try:
            if self._uses_sqlite:
                VFS.disk = self._disk
                store = sqlite = SqliteStore(self._directory, VFS.name)
                self._kept_time = sqlite.kept_time()
            self._clock = SystemClock(self._kept_time, self._machine)
            note, puts_allowed = self._note("queue manager"), lambda: not self._is_full
            self.process = Process(self._loop, self._clock, store, note, puts_allowed, self._defines, self._broke)
        except StoreBroken:
            self._disk.is_dead = True
            if store is not self._memory:
                store.abandon()
            self._crashed("power", POWER_CUTS[0])

    def manager_alone(self) -> QueueManager:
        """The queue manager after another crash, when nobody connects any more."""
        self.kill()
        self.start()
        assert self.process is not None
        return self.process.manager

    def end(self) -> None:
        """Lets go of everything."""
        if self.process is not None:
            self._disk.is_dead = True
            self.process.store.abandon()

    def heal(self) -> None:
        """Nothing fails any more."""
        self._is_full = False
        self._disk.fault = lambda kind: None

    # -- how a life ends --------------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process dies between two turns. What it had written stays."""
        self._crash("kill", kept)

    def cut_power(self) -> None:
        """The machine goes down. Only a disk can tell what it keeps."""
        if self._uses_sqlite:
            self._crash("power", self._chance.choice(POWER_CUTS))

    def stop(self) -> None:
        """An orderly end."""
        if (process := self.process) is not None:
            process.turns.stop(partial(self._stopped, process))

    def _stopped(self, process: Process) -> None:
        self.process = None
        process.die(self._chance)
        self._again("stop")

    def break_at_some_write(self) -> None:
        """Some operations from now on the disk is dead, in whatever stage of a turn that is."""
        left = self._chance.randint(0, MOST_OPERATIONS)

        def fault(kind: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)

        if self._uses_sqlite and self.process is not None:
            self._disk.fault = fault

    def _broke(self, error: BaseException) -> None:
        """The store failed in a turn: the daemon drops everybody and ends, or the machine with it."""
        if not isinstance(error, StoreBroken):
            self.bugs.append(f"bug: {error!r}")
        assert self.process is not None
        self.process.turns.drop()
        if self._chance.random() < 0.5:
            self._crash("power", self._chance.choice(POWER_CUTS))
        else:
            self.kill()

    def _crash(self, how: str, image: Callable[..., dict[str, bytes]]) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.die(self._chance)
        self._disk.is_dead = True
        process.store.abandon()
        self._crashed(how, image)

    def _crashed(self, how: str, image: Callable[..., dict[str, bytes]]) -> None:
        if self._uses_sqlite:
            self._disk = Disk(kept(self._disk) if image is kept else image(self._disk, self._chance))
        if how == "power":
            self._machine.boot()
        self._again(how)

    def _again(self, how: str) -> None:
        """The process is gone, and comes again."""
        if not self._uses_sqlite:
            self._kept_time = self._clock.kept()
        self._happened[how] += 1
        self._note("")("crash", how=how)
        self._loop.after(self._chance.randint(*DOWN_MS), self.start)

    # -- what happens to the machine --------------------------------------------------------------------------

    def jump(self) -> None:
        """The wall clock jumps, and stays so over restarts."""
        self._happened["wall clock jumped"] += 1
        self._machine.wall_jump_ms = self._chance.choice(JUMPS_MS)

    def fill_disk(self) -> None:
        """For a while there is less room than the reserve."""
        self._happened["disk filled"] += 1
        self._is_full = True
        self._loop.after(self._chance.randint(100, 2000), self._empty_disk)

    def _empty_disk(self) -> None:
        self._is_full = False
