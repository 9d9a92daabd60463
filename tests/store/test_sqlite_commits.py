"""When the SQLite store writes and when it syncs: what must last at once, what a crash undoes anyway later."""

import apsw
import pytest

from tests.proof.disk import Disk
from tests.proof.vfs import VFS
from tests.worlds import World
from trigmon.journal.entries import changes_in
from trigmon.journal.journal import records_in
from trigmon.mq.calls import Backout, Commit, Get, Open, Outcome, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption, UnitOutcome
from trigmon.mq.replies import Refused
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.changes import AddMessage, RemoveMessage
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.durable_turns import MOST_WAITING
from trigmon.store.sqlite.store import SqliteStore

IN, SYNC = OpenOption.INPUT_SHARED, GetOption.SYNCPOINT


@pytest.fixture
def world(tmp_path):
    made = World("sqlite", tmp_path)
    made.define("Q", def_persistence="persistent")
    made.qm.housekeeping.idle()
    yield made
    made.qm.stop()


def pending():
    """Whether a power cut could lose anything: the database follows the journal without a sync."""
    return bool(VFS.disk.files["qm.db-turns"].pending)


def written(world):
    return [hash((world.directory / name).read_bytes()) for name in ("qm.db-turns", "qm.db-wal")]


def test_puts_of_a_unit_are_written_with_its_commit(world):
    world.put("Q", unit=1)
    before = written(world)
    for _ in range(50):
        world.put("Q", unit=1)
    assert written(world) == before
    world.did(Commit(unit=1))
    assert written(world) != before
    world.crash()
    assert sum(1 for _ in drained(world)) == 51


def test_volatile_messages_are_not_written_while_nothing_else_is(world):
    before = written(world)
    handle = world.open("Q", IN)
    for _ in range(50):
        world.put("Q", persistence=0)
        world.did(Get(handle=handle))
    assert written(world) == before


def test_a_gets_mark_is_written_at_once_so_that_a_crash_counts_as_a_backout(world):
    world.put("Q")
    world.put("Q", b"own", unit=1)
    world.did(Get(handle=world.open("Q", IN), options=SYNC, unit=1))
    world.crash()
    assert [(m.data, m.descriptor.backout_count) for m in drained(world)] == [(b"m", 1)]


def test_a_persistent_put_takes_what_waited_with_it(world):
    world.put("Q", b"in unit", as_="a", unit=1)
    world.put("Q", b"alone", as_="b")
    world.crash()
    assert [m.data for m in drained(world)] == [b"alone"]
    assert world.did(Outcome(client_id="client-a", unit=1)).outcome is UnitOutcome.BACKED_OUT


def test_what_waits_is_written_when_nothing_goes_on(world):
    world.put("Q", persistence=0)
    world.put("Q", persistence=0)
    before = written(world)
    world.qm.housekeeping.idle()
    assert written(world) != before


def test_a_later_unit_that_a_crash_cuts_off_is_backed_out_and_known_to_be(world):
    world.put("Q", unit=1)
    world.did(Commit(unit=1))
    world.put("Q", unit=2)
    world.crash()
    outcomes = [world.did(Outcome(client_id="client-app", unit=unit), "asker").outcome for unit in (1, 2)]
    assert outcomes == [UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT]


def test_a_call_of_many_that_is_refused_in_the_middle_leaves_nothing(world):
    world.define("SMALL", max_q_depth=3)
    world.put("Q", unit=1)
    refused = world.do(PutMany(q_name="SMALL", bodies=[b"x"] * 5, options=2, unit=1))
    assert refused.reason
    world.did(Backout(unit=1))
    world.crash()
    assert list(drained(world)) == []


def test_a_sync_that_fails_behind_a_commit_without_one_breaks_the_store_as_any_error_does(tmp_path):
    VFS.disk = Disk()
    store = SqliteStore(tmp_path, VFS.name)
    manager = QueueManager("QM1", store, VirtualClock())
    session = manager.connect(Identity(client_id="c", administrator=True))
    volatile, lasting = (
        Put(q_name="SYSTEM.DEFAULT.LOCAL.QUEUE", descriptor=MessageDescriptor(persistence=p)) for p in (0, 1)
    )
    asked = []

    def fault(kind):
        asked.append(kind)
        if kind == "sync":
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)

    VFS.disk.fault = fault
    with pytest.raises(StoreBroken):
        manager.turn([(session, 1, volatile), (session, 2, lasting)])
    assert asked.count("sync") == 1
    VFS.disk.is_dead = True
    store.abandon()


def test_what_is_prepared_lasts_also_where_it_was_committed_before_without_a_sync(tmp_path):
    VFS.disk = Disk()
    store = SqliteStore(tmp_path, VFS.name)
    manager = QueueManager("QM1", store, VirtualClock())
    session = manager.connect(Identity(client_id="c", administrator=True))
    q_name = "SYSTEM.DEFAULT.LOCAL.QUEUE"
    manager.turn([(session, 1, Put(q_name=q_name, descriptor=MessageDescriptor(persistence=1)))])
    (opened,) = manager.turn([(session, 2, Open(object_name=q_name, options=IN.value))])
    manager.turn([(session, 3, Get(handle=opened.reply.handle, options=SYNC, unit=1))])
    assert pending()
    store.prepare()
    assert not pending()
    asked = []
    VFS.disk.fault = asked.append
    store.prepare()
    assert asked == []  # nothing was written since
    VFS.disk.is_dead = True
    store.abandon()


def drained(world):
    for name in ("Q",):
        handle = world.open(name, IN, as_="last")
        while hasattr(reply := world.do(Get(handle=handle), "last"), "data"):
            yield reply


def test_poison_leaves_its_queue_and_comes_to_the_other_in_one_record(world):
    world.define("ASIDE")
    world.define("P", backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE")
    handle = world.open("P", IN)
    world.put("P", b"bad", persistence=1)
    world.did(Get(handle=handle, options=SYNC, unit=1))
    world.did(Backout(unit=1))
    world.qm.housekeeping.idle()
    assert isinstance(world.do(Get(handle=handle)), Refused)
    (record,) = records_in((world.directory / "qm.db-turns").read_bytes())
    kinds = [type(change) for change in changes_in(record.entries)]
    assert kinds.index(RemoveMessage) < kinds.index(AddMessage)


def test_a_large_unit_is_written_as_it_grows_and_not_at_its_end(world):
    before = written(world)
    world.did(PutMany(q_name="Q", bodies=[b"m"] * MOST_WAITING, options=SYNC, unit=1))
    assert written(world) != before
