"""The stores of released versions, each as a backup, and what is on them.

``python -m tests.store.kept_stores VERSION`` writes the store of a release, to be committed with it.
"""

from __future__ import annotations

import gzip
import io
import sys
import tempfile
from pathlib import Path

from tests.worlds import World
from trigmon.mq.calls import BeginBackup, Commit, EndBackup, Get, Pause, ReadBackup, RecordRun, Reserve
from trigmon.mq.enums import OpenOption
from trigmon.store.sqlite.backup_file import BackupNote, BackupWriter

RELEASES = Path(__file__).parent / "releases"
BODIES = [b"first", b"second", b"urgent", b"of a group, 1", b"of a group, 2", b"in a unit, committed"]
IN_ORDER = [b"urgent", b"first", b"second", *BODIES[3:]]
RUNS = {"00000000000000aa": "exited", "00000000000000bb": "failed"}


def fill(world: World) -> None:
    """Writes a row of every kind that a store keeps over a restart."""
    world.define("INITQ")
    world.define("P", "PROCESS", appl_id="/bin/true")
    world.define("Q", def_persistence="persistent", process_name="P", initiation_q_name="INITQ", trigger_control="on")
    world.define("RESERVED", def_persistence="persistent")
    world.define("ALIAS", "QALIAS", target="Q")
    world.put("Q", b"first", priority=0)
    world.put("Q", b"second", priority=0, correl_id=b"C" * 24, user_identifier="alice")
    world.put("Q", b"urgent", priority=9)
    for number in (1, 2):
        world.put("Q", b"of a group, %d" % number, priority=0, group_id=b"G" * 24, msg_seq_number=number, msg_flags=8)
    world.put("Q", b"in a unit, committed", unit=1, priority=0)
    world.did(Commit(unit=1))
    world.put("Q", b"in a unit, backed out", unit=2, priority=0)
    for number in range(3):
        world.put("RESERVED", b"%d" % number)
    handle = world.open("RESERVED", OpenOption.INPUT_SHARED, as_="job")
    world.did(Reserve(handle=handle, consumer="JOB", max_messages=2), "job")
    for run_id, state in RUNS.items():
        run = {"run_id": run_id, "state": state, "q_name": "Q", "process_name": "P", "ended_ms": 5, "exit_status": 1}
        world.did(RecordRun(run_id=run_id, record=run))
    world.did(Pause(what="process", name="P", reason="upgrade"))


def bodies(world: World, q_name: str) -> list[bytes]:
    """Returns the messages of a queue, all of which are got."""
    handle = world.open(q_name, OpenOption.INPUT_SHARED)
    found = []
    while (data := getattr(world.do(Get(handle=handle)), "data", None)) is not None:
        found.append(data)
    return found


def write(version: str) -> None:
    """Writes the store of this release."""
    made = io.BytesIO()
    with tempfile.TemporaryDirectory() as directory:
        world = World("sqlite", Path(directory))
        fill(world)
        begun = world.did(BeginBackup())
        writer = BackupWriter(made)
        writer.write(world.did(ReadBackup(offset=0, count=begun.size)).data)
        world.did(EndBackup())
        note = BackupNote(q_mgr_name="QM1", made_ms=begun.made_ms, size=begun.size, trigmon_version=version)
        writer.finish(note)
        world.end()
    RELEASES.mkdir(exist_ok=True)
    (RELEASES / f"{version}.backup.gz").write_bytes(gzip.compress(made.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    write(sys.argv[1])
