"""A queue manager on SQLite whose files are damaged between its stop and its next start."""

import apsw

from tests.worlds import World
from trigmon.mq.calls import Get
from trigmon.mq.enums import OpenOption
from trigmon.store.sqlite.checksums import register
from trigmon.store.sqlite.connection import PAGE_SIZE
from trigmon.store.sqlite.store import SqliteStore

IN = OpenOption.INPUT_SHARED
PAGE = PAGE_SIZE


def filled(tmp_path):
    """Returns a queue manager with five messages on each of two queues: the body of a fixture."""
    made = World("sqlite", tmp_path)
    for name in ("Q", "Q2"):
        made.define(name, def_persistence="persistent")
    for number in range(5):
        made.put("Q", b"%d" % number, priority=number)
        made.put("Q2", b"%d" % number)
    return made


def stopped(world):
    world.qm.stop()
    world.sessions.clear()
    return opened(world.directory)


def opened(directory):
    db = apsw.Connection(str(directory / "qm.db"))
    register(db)
    return db


def started(world):
    """Starts it again; what is said of damage is listed."""
    world.said = []
    world.store = SqliteStore(world.directory, tell=world.said.append)
    world.store.abandon()
    world._start()
    world.store._tell = world.said.append


def got(world, name):
    """All that is got from a queue, and the reason that ended it."""
    handle, bodies = world.open(name, IN), []
    while not hasattr(reply := world.do(Get(handle=handle)), "reason"):
        bodies.append(reply.data)
    return bodies, reply.reason


def page_of(db, index):
    return db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).fetchall()[0][0]


def change(directory, page, old, new):
    """Changes these bytes of a page, which are there once."""
    path = directory / "qm.db"
    data = bytearray(path.read_bytes())
    start = (page - 1) * PAGE
    at = bytes(data[start : start + PAGE]).rindex(old)
    data[start + at : start + at + len(new)] = new
    path.write_bytes(data)


def killed(world, to):
    """The files as a killed process leaves them."""
    to.mkdir()
    for name in ("qm.db", "qm.db-wal", "qm.db-turns", "last_turn", "lock"):
        (to / name).write_bytes((world.directory / name).read_bytes())
    return to
