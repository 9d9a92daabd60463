"""A queue manager whose journal is archived, and what a backup that the archive brings forward has."""

import io
import itertools

from tests.qmgr.store_script import Script
from tests.worlds import World
from trigmon.store.sqlite.archived_turns import Until
from trigmon.store.sqlite.journal_archive import JournalArchive
from trigmon.store.sqlite.restoration import restore
from trigmon.store.sqlite.store import SqliteStore

MESSAGES = """
SELECT m.id, q.name, priority, persistent, put_by, taken_by, held, expires_ms, backout_count, msg_id, correl_id,
    group_id, msg_seq_number, msg_offset, head, whole, descriptor, data, ordinal
FROM message AS m LEFT JOIN queue AS q ON q.number = m.queue ORDER BY m.id"""
RESERVATIONS = """
SELECT r.number, q.name, consumer, ended_ms, record
FROM reservation AS r JOIN queue AS q ON q.number = r.queue ORDER BY 1"""


class ArchivedWorld(World):
    """A queue manager on SQLite whose journal is archived beside it. Each turn has a time of its own."""

    def _start(self):
        self.missing = getattr(self, "missing", [])
        self.times = getattr(self, "times", itertools.count(2 * 10**12))
        self.archive = self.directory.parent / "archive"
        self.store = SqliteStore(self.directory, archive=JournalArchive(self.archive, None, self.missing.append))
        self.store.clock = self.times.__next__
        self.qm = self.manager()


class ArchivedScript(Script):
    world_of = ArchivedWorld


def dump(directory):
    """Returns what a queue manager that starts there has; numbers of queues, which nobody sees, left out."""
    store = SqliteStore(directory)
    store.open("QM1", 0)
    while store.has_leftovers:
        store.begin()
        store.remove_leftovers()
        store.end()
    found = {"message": store.rows(MESSAGES), "reservation": store.rows(RESERVATIONS)}
    for table in ("object", "outcome", "cause", "pause", "serving"):
        found[table] = sorted(store.rows(f"SELECT * FROM {table}"), key=repr)
    found["run"] = store.rows("SELECT run_id, state, q_name, record, ended_ms FROM run ORDER BY run_id")
    store.close()
    return found


def brought_forward(backup, archive, to, until=0, **options):
    told = []
    until = Until(archive, until)
    restore(
        io.BytesIO(backup),
        to / "qm.db",
        "QM1",
        told.append,
        bring_forward=lambda path, note: until.bring(path, note, told.append),
        **options,
    )
    return told
