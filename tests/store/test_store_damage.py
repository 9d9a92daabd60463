"""A message that is not what was written is set aside; what lies behind it is got, and nothing else is lost."""

from pathlib import Path

import apsw
import pytest

from tests.postgres import place
from tests.worlds import World
from trigmon.mq.calls import Clear, Define, Display, Get, GetMany, Move, ReadReserved, Release, Reserve, Settle
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.packed_messages import bodies_of
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.manager import QueueManager
from trigmon.store.port import AnothersStore, StoreBroken, StoreLost
from trigmon.store.postgres.connection import connect
from trigmon.store.sqlite.store import SqliteStore

IN, BROWSE = OpenOption.INPUT_SHARED, OpenOption.BROWSE


def run_sql(kind: str, directory: Path, statement: str) -> list[tuple]:
    """What somebody does to the data while the queue manager is down."""
    if kind == "postgres":
        with connect(place(directory)) as db:
            cursor = db.execute(statement)
            return cursor.fetchall() if cursor.description else []
    db = apsw.Connection(str(directory / "qm.db"))
    rows = list(db.execute(statement))
    db.close()
    return rows


def damaged(kind: str, tmp_path, change: str) -> World:
    world = World(kind, tmp_path)
    world.define("Q", def_persistence="persistent")
    for body in (b"first", b"second", b"third"):
        world.put("Q", body)
    world.qm.stop()
    run_sql(kind, tmp_path, change)
    world.sessions.clear()
    world._start()
    return world


DAMAGE = [
    ("sqlite", "UPDATE message SET data = x'00' WHERE data = CAST('first' AS BLOB)"),
    ("sqlite", "UPDATE message SET descriptor = x'c1', checksum = 0 WHERE data = CAST('first' AS BLOB)"),
    ("postgres", r"UPDATE message SET data = '\x00' WHERE data = 'first'"),
    ("postgres", r"UPDATE message SET descriptor = '\xc1', checksum = 0 WHERE data = 'first'"),
]
ON_EACH = [DAMAGE[0], DAMAGE[2]]


def depth(world) -> int:
    return world.did(Display(object_type="QLOCAL", name="Q")).rows[0]["current_q_depth"]


@pytest.mark.parametrize(("kind", "change"), DAMAGE)
@pytest.mark.parametrize("options", [0, GetOption.BROWSE_FIRST])
def test_a_get_and_a_browse_go_on_behind_it(tmp_path, kind, change, options):
    world = damaged(kind, tmp_path, change)
    handle = world.open("Q", IN, BROWSE)
    assert world.did(Get(handle=handle, options=options)).data == b"second"
    assert depth(world) == (2 if options else 1)
    assert [name for name, _ in world.telling.damaged] == ["Q"]
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), DAMAGE)
@pytest.mark.parametrize("ends", [Release, Settle])
def test_one_that_was_reserved_leaves_the_batch_when_it_is_read_and_is_set_aside(tmp_path, kind, change, ends):
    world = World(kind, tmp_path)
    world.define("Q", def_persistence="persistent")
    for body in (b"first", b"second"):
        world.put("Q", body)
    made = world.did(Reserve(handle=world.open("Q", IN), consumer="JOB"))
    world.qm.stop()
    run_sql(kind, tmp_path, change)
    world.sessions.clear()
    world._start()
    refused = world.do(ReadReserved(reservation=made.reservation))
    assert (refused.reason, "ordinal 0" in refused.about) == (Reason.OBJECT_DAMAGED, True)
    read = world.did(ReadReserved(reservation=made.reservation, packed=True))
    assert (read.ordinals, bodies_of(read)) == ([1], [b"second"])
    assert world.did(ends(reservation=made.reservation)).count == 1
    handle = world.open("Q", IN)
    left = world.do(Get(handle=handle))
    assert (left.data == b"second") if ends is Release else (left.reason == Reason.NO_MSG_AVAILABLE)
    assert [name for name, _ in world.telling.damaged] == ["Q"]
    assert depth(world) == 0
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), DAMAGE)
def test_one_that_was_damaged_before_it_is_reserved_hinders_no_job(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change)
    handle = world.open("Q", IN)
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    assert bodies_of(world.did(ReadReserved(reservation=made.reservation, packed=True))) == [b"second", b"third"]
    world.did(Settle(reservation=made.reservation))
    assert isinstance(world.do(Get(handle=handle)), Refused)
    assert [name for name, _ in world.telling.damaged] == ["Q"]
    assert depth(world) == 0
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), ON_EACH)
def test_a_batch_of_damaged_ones_alone_is_over_when_it_is_read_and_does_not_come_again(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change.partition(" WHERE")[0])
    handle = world.open("Q", IN)
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    assert bodies_of(world.did(ReadReserved(reservation=made.reservation, packed=True))) == []
    assert world.did(Settle(reservation=made.reservation)).already
    assert isinstance(world.do(Reserve(handle=handle, consumer="JOB")), Refused)
    assert depth(world) == 0
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), DAMAGE[:1])
def test_a_program_that_gives_the_batch_back_gets_the_next_one_without_it(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change)
    handle = world.open("Q", IN)
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    assert world.do(ReadReserved(reservation=made.reservation)).reason == Reason.OBJECT_DAMAGED
    world.did(Release(reservation=made.reservation))
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    read = world.did(ReadReserved(reservation=made.reservation))
    assert [message.data for message in read.messages] == [b"second", b"third"]
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), DAMAGE)
def test_one_that_is_settled_unread_is_removed_with_the_others(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change)
    handle = world.open("Q", IN)
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    world.did(Settle(reservation=made.reservation))
    assert isinstance(world.do(Get(handle=handle)), Refused)
    assert depth(world) == 0
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), ON_EACH)
def test_many_a_clear_and_a_move_go_on_as_well(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change)
    world.define("TO")
    assert world.did(Move(q_name="Q", to_q_name="TO"), "operator").count == 2
    assert [m.data for m in world.did(GetMany(handle=world.open("TO", IN), count=9)).messages] == [b"second", b"third"]
    world.did(Clear(q_name="Q"), "operator")
    assert depth(world) == 0
    world.qm.stop()


@pytest.mark.parametrize(("kind", "change"), ON_EACH)
def test_its_row_is_kept_and_stays_aside_after_a_restart(tmp_path, kind, change):
    world = damaged(kind, tmp_path, change)
    world.did(Get(handle=world.open("Q", IN)))
    world.restart()
    assert depth(world) == 1
    world.qm.stop()
    assert run_sql(kind, tmp_path, "SELECT data FROM message WHERE queue < 0") == [(b"\0",)]


def test_a_definition_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(StoreBroken, match="definition of a QLOCAL"):
        damaged("postgres", tmp_path, "UPDATE object SET definition = '[]' WHERE kind = 'QLOCAL'")


def test_a_queue_whose_definition_is_damaged_is_closed_alone_until_it_is_defined_again(tmp_path):
    world = World("sqlite", tmp_path)
    for name in ("Q", "Q2"):
        world.define(name, def_persistence="persistent")
        world.put(name, b"kept")
    world.qm.stop()
    run_sql("sqlite", tmp_path, "UPDATE object SET definition = replace(definition, 'pers', 'perz') WHERE name = 'Q'")
    said = []
    store = SqliteStore(tmp_path, tell=said.append)
    assert any("queue Q: its definition was damaged" in text for text in said)
    store.abandon()
    world.sessions.clear()
    world._start()
    assert world.did(Get(handle=world.open("Q2", IN))).data == b"kept"
    handle = world.open("Q", IN)
    assert world.do(Get(handle=handle)).reason == Reason.GET_INHIBITED
    world.did(Define(object_type="QLOCAL", name="Q", replace=True, attributes={"inhibit_get": "allowed"}), "operator")
    assert world.did(Get(handle=handle)).data == b"kept"
    world.qm.stop()


def test_the_data_of_another_queue_manager_is_not_taken(tmp_path):
    world = World("sqlite", tmp_path)
    world.qm.stop()
    store = SqliteStore(tmp_path)
    with pytest.raises(AnothersStore, match="queue manager QM1, not of QM2"):
        QueueManager("QM2", store, world.clock)
    store.abandon()


def test_a_store_that_cannot_be_opened_leaves_its_directory_free(tmp_path):
    (tmp_path / "qm.db").write_bytes(b"no database" * 100)
    for _ in range(2):
        with pytest.raises(StoreLost, match=r"not a database.*--accept-loss"):
            SqliteStore(tmp_path)
