"""A database of an earlier version is brought up to this one and keeps what it holds."""

from __future__ import annotations

import re

import apsw
import pytest

from tests.worlds import World
from trigmon.mq.calls import ChangeRun, Commit, Explain, Get, ReadReserved, RecordRun, Reserve, Runs, StartRuns
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.qmgr.housekeeping import Retention
from trigmon.store.port import StoreTooNew
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sqlite import connection
from trigmon.store.sqlite.checksums import ROWS


def set_back(directory, version, *statements):
    db = apsw.Connection(str(directory / "qm.db"))
    for statement in (*statements, f"PRAGMA user_version = {version}"):
        db.execute(statement)
    db.close()


def schema_of(directory):
    db = apsw.Connection(str(directory / "qm.db"))
    found = sorted(
        " ".join(re.sub("--.*", "", sql).replace(")", " )").split()).replace(" ,", ",")
        for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    )
    db.close()
    return found


OF_VERSION_7 = "CREATE INDEX message_taken_by ON message (taken_by, ordinal) WHERE taken_by IS NOT NULL"
# What version 6 did not have yet.
BEFORE_SUMS = [
    "ALTER TABLE message DROP COLUMN header",
    *(f"ALTER TABLE {table} DROP COLUMN sum" for table in ROWS),
    "DELETE FROM meta WHERE key = 'turn'",
]
# What version 5 did not have yet.
BEFORE_RESERVATIONS = [
    *BEFORE_SUMS,
    "DROP TABLE reservation",
    "DROP INDEX message_taken_by",
    "ALTER TABLE message DROP COLUMN ordinal",
    "CREATE INDEX message_taken_by ON message (taken_by) WHERE taken_by IS NOT NULL",
]
# What version 4 did not have yet.
BEFORE_LINES = [*BEFORE_RESERVATIONS, "DROP TABLE held", "DROP TABLE serving", "DROP TABLE cause"]
# What version 3 did not have yet.
BEFORE_PAUSES = [*BEFORE_LINES, "DROP TABLE pause", "DROP INDEX run_ended", "ALTER TABLE run DROP COLUMN ended_ms"]
# What version 2 had where version 3 has indexes by kind.
BEFORE_GROUPS = [
    *BEFORE_PAUSES,
    *(f"DROP INDEX message_{index}" for index in ("ready", "heads", "rests", "group", "of_group")),
    "CREATE INDEX message_ready ON message (queue, priority DESC) WHERE put_by IS NULL AND taken_by IS NULL",
    "CREATE INDEX message_group ON message (queue, group_id) WHERE group_id IS NOT NULL",
]


def test_version_7_gets_its_index_of_gets_in_get_order_and_what_its_large_units_left_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(Leftovers, "at_once", 1)
    world = World("sqlite", tmp_path)
    world.define("Q")
    for _ in range(2):
        world.put("Q", persistence=1)
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    for _ in range(2):
        world.did(Get(handle=handle, options=GetOption.SYNCPOINT, unit=1))
    world.did(Commit(unit=1))
    assert world.store.has_leftovers
    world.qm.stop()
    wanted = schema_of(tmp_path)
    of_then = """UPDATE meta SET value = replace(value, '{"got": []}', '"got"'), sum = NULL WHERE key = 'leftovers'"""
    set_back(tmp_path, 7, "DROP INDEX message_taken_by", OF_VERSION_7, of_then)
    assert schema_of(tmp_path) != wanted
    world = World("sqlite", tmp_path)
    assert world.store._rows("SELECT count(*) FROM message") == [(0,)]
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_version_6_gets_checksums_and_what_it_holds_is_served_without(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q")
    world.put("Q", b"before", persistence=1)
    world.qm.stop()
    wanted = schema_of(tmp_path)
    set_back(tmp_path, 6, *BEFORE_SUMS)
    (tmp_path / "last_turn").unlink()
    world = World("sqlite", tmp_path)
    world.put("Q", b"after", persistence=1)
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    world.did(Get(handle=handle, options=GetOption.SYNCPOINT, unit=1))
    world.crash()
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    got = [world.did(Get(handle=handle)) for _ in range(2)]
    assert [(one.data, one.descriptor.backout_count) for one in got] == [(b"before", 1), (b"after", 0)]
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_version_5_gets_reservations_and_its_messages_can_be_reserved(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q")
    world.put("Q", b"kept", persistence=1)
    world.qm.stop()
    wanted = schema_of(tmp_path)
    set_back(tmp_path, 5, *BEFORE_RESERVATIONS)
    assert schema_of(tmp_path) != wanted
    world = World("sqlite", tmp_path)
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    made = world.did(Reserve(handle=handle, consumer="JOB"))
    assert world.did(ReadReserved(reservation=made.reservation)).messages[0].data == b"kept"
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_version_4_starts_its_held_runs_and_tries_its_programs_again_by_the_process_as_it_is(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("P", "PROCESS", appl_id="/bin/true", working_directory="/srv")
    world.define("Q", trigger_type="every")
    world.put("Q", persistence=1)
    trigger = {"q_name": "Q", "process_name": "P", "appl_id": "/bin/true", "initiation_q": "I", "monitor": "m:1"}
    for run_id, state in (("1", "held"), ("2", "started")):
        world.did(RecordRun(run_id=run_id, record={**trigger, "state": state}))
    world.qm.stop()
    set_back(tmp_path, 4, *BEFORE_LINES, "UPDATE run SET record = json_remove(record, '$.process')")
    world = World("sqlite", tmp_path)
    held = StartRuns(initiation_q="I", monitor="m:1")
    (due,) = world.did(held, "monitor").records
    assert (due["run_id"], due["process"]) == ("1", {"working_directory": "/srv"})
    world.did(ChangeRun(run_id="2", fields={"state": "exited", "exit_status": 1}))
    (again,) = world.did(Runs(where={"state": "held"})).rows
    assert (again["retries"], again["process"]) == ("2", {"working_directory": "/srv"})


def test_version_3_learns_when_its_runs_ended_and_keeps_those_that_go_on(tmp_path):
    world = World("sqlite", tmp_path)
    now = world.clock.now()
    for run_id, state, end_ms in (("old", "exited", now - 9), ("unseen", "unknown", 0), ("goes on", "started", 0)):
        record = {"state": state, "end_ms": end_ms, "recorded_ms": now - 5}
        world.did(RecordRun(run_id=run_id, record=record))
    world.qm.stop()
    wanted = schema_of(tmp_path)
    set_back(tmp_path, 3, *BEFORE_PAUSES)
    assert schema_of(tmp_path) != wanted
    world = World("sqlite", tmp_path)
    left = []
    for keep_ms in (8, 4):
        world.qm.housekeeping.retention = Retention(keep_ms=keep_ms)
        world.qm.housekeeping.prune()
        left.append([run["run_id"] for run in world.did(Runs()).rows])
    assert left == [["goes on", "unseen"], ["goes on"]]
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_version_2_gets_its_indexes_by_kind_and_its_messages_are_found(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q")
    world.put("Q", b"kept", persistence=1)
    world.qm.stop()
    wanted = schema_of(tmp_path)
    set_back(tmp_path, 2, *BEFORE_GROUPS)
    world = World("sqlite", tmp_path)
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    assert world.did(Get(handle=handle)).data == b"kept"
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_version_1_gets_the_index_of_expiring_messages_and_keeps_its_messages(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q")
    world.put("Q", persistence=1, expiry=10)
    world.qm.stop()
    wanted = schema_of(tmp_path)
    set_back(tmp_path, 1, "DROP INDEX message_expiring", *BEFORE_GROUPS)
    assert schema_of(tmp_path) != wanted
    world = World("sqlite", tmp_path)
    world.clock.advance(1000)
    assert world.did(Explain(q_name="Q")).values["expired_msgs"] == 1
    world.qm.stop()
    assert schema_of(tmp_path) == wanted


def test_every_version_leads_to_the_next():
    assert list(connection.MIGRATIONS) == list(range(1, connection.SCHEMA_VERSION))


def test_a_later_version_is_refused(tmp_path):
    World("sqlite", tmp_path).qm.stop()
    set_back(tmp_path, connection.SCHEMA_VERSION + 1)
    with pytest.raises(StoreTooNew, match="install a later one"):
        World("sqlite", tmp_path)
