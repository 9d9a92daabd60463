"""Proof: a daemon is killed again and again while it archives its journal; backup and archive have all of it."""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.daemons import Daemon, define
from tests.proof.backups import WRITERS, Q, Writer, missing_in, run
from tests.proof.found import Found
from tests.waiting import until_more

SIZE = 60_000
"""Bytes of a message: every 140 fill half of the journal, which is archived then."""
ENOUGH = 2
"""Files archived between two kills, at least."""


def archive_and_kill(daemon: Daemon, kills: int, seed: int) -> Found:
    """Kills a daemon that often beside its writers; judges what a backup from before and the archive give."""
    chance = random.Random(seed)
    found = Found("kills")
    archive = Path(daemon.settings["store.journal_archive"])
    with daemon.connect() as qm:
        define(qm, Q, max_q_depth=999_999_999, max_msg_length=2 * SIZE)
    backup = daemon.home / "first.backup"
    _ran(daemon, found, "backup", str(backup))
    writers = [Writer(daemon, f"w{number}", " " * SIZE) for number in range(WRITERS)]
    try:
        for _ in range(kills):
            until_more(lambda: _files(archive), ENOUGH, lambda: any(map(Writer.is_alive, writers)))
            time.sleep(chance.uniform(0.3, 1.2))
            found.more["kills in the middle of a file"] += (archive / "part").exists()
            daemon.kill()
            daemon.start()
            found.count += 1
    finally:
        for writer in writers:
            writer.end()
    daemon.stop()
    found.more["files"] = _files(archive)
    found.more["messages"] = sum(writer.acknowledged for writer in writers)
    _ran(daemon, found, "restore", str(backup), "--as", "R", "--journal", str(archive))
    sure = {writer.name: writer.sure for writer in writers}
    found.add(missing_in(daemon.home / "R", sure), f"seed {seed}")
    return found


def _files(archive: Path) -> int:
    return sum(1 for _ in archive.glob("*.turns"))


def _ran(daemon: Daemon, found: Found, *arguments: str) -> None:
    running = run(daemon, *arguments)
    error = running.communicate()[1]
    found.add([error] if running.returncode else [], arguments[0], count=0)
