"""Proof: power cuts. A load is recorded write by write; wherever it is cut, what was acknowledged is there."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.proof.aftermath import Aftermath
from tests.proof.disk import Disk
from tests.proof.found import Found
from tests.proof.harness import Harness
from tests.proof.history import Event
from tests.proof.images import POWER_CUTS, Files, kept
from tests.proof.rules import problems
from tests.proof.vfs import VFS
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.store.port import StoreBroken, StoreLost, UnsupportedVersion
from trigmon.store.sqlite.store import SqliteStore

WORKS = 60
IMAGES_A_RUN = 200


def cut_power(directory: Path, seed: int, images: int) -> Found:
    """Records loads and looks at so many images of them."""
    found = Found("images")
    while found.count < images:
        harness = Harness(directory, seed + found.count)
        recorded(harness, found)
        for name, files, events in crashes(harness, min(IMAGES_A_RUN, images - found.count)):
            found.add(judge(directory, files, events), f"run {harness.seed} {name}")
    return found


def recorded(harness: Harness, found: Found) -> None:
    """Plays a load; what an answer says that cannot be is a violation already."""
    try:
        harness.start()
        harness.play(WORKS, kills=1)
    except AssertionError as error:
        found.violations.append(f"run {harness.seed}: refused: {error}")
    finally:
        harness.end()


def crashes(harness: Harness, images: int) -> Iterator[tuple[str, Files, list[Event]]]:
    """What crashes along the log of a load leave: a name, the files, and the history up to then with the crash."""
    chance = random.Random(harness.seed)
    places = Counter(chance.randrange(len(harness.log) + 1) for _ in range(images))
    ends = [event["at"] for event in harness.events]
    disk = Disk()
    for place, op in enumerate([*harness.log, None]):
        for _ in range(places[place]):
            cut = chance.choice((*POWER_CUTS, None))
            files = kept(disk) if cut is None else cut(disk, chance)
            name, how = (cut.__name__, "power") if cut else ("kept", "kill")
            events = harness.events[: bisect_right(ends, place)]
            ms = events[-1]["ms"] if events else harness.clock.now()
            crash = {"event": "crash", "who": "", "at": place, "ms": ms, "how": how}
            yield f"at {place} {name}", files, [*events, crash]
        if op is not None:
            disk.do(op)


def judge(directory: Path, files: Files, events: list[Event]) -> list[str]:
    """Opens the store on what a crash left, and says what is wrong."""
    VFS.disk = Disk(files)
    try:
        store = SqliteStore(directory, VFS.name)
    except (StoreBroken, StoreLost, UnsupportedVersion) as error:
        return [f"unreadable: {error}"]
    try:
        manager = QueueManager("QM1", store, VirtualClock(events[-1]["ms"]))
        aftermath = Aftermath(manager)
        return problems(aftermath.judge_units(events), aftermath.left())
    except StoreBroken as error:
        return [f"unreadable: {error}"]
    finally:
        VFS.disk.is_dead = True
        store.abandon()
