"""The store of each release is served by this version; an upgrade that fails leaves it as it was."""

import gzip
import io

import apsw
import pytest

from tests.store.damaged_store import killed
from tests.store.kept_stores import IN_ORDER, RELEASES, RUNS, bodies
from tests.worlds import World
from trigmon.journal import entries
from trigmon.journal.journal import tail_of
from trigmon.mq.calls import Display
from trigmon.mq.enums import ObjectType
from trigmon.store.port import StoreBroken, UnsupportedVersion
from trigmon.store.sqlite import connection
from trigmon.store.sqlite.restoration import restore
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.store_check import check_directory
from trigmon.store.sqlite.turn_log import JOURNAL_SUFFIX

VERSIONS = sorted(path.name.removesuffix(".backup.gz") for path in RELEASES.iterdir())


@pytest.fixture(params=VERSIONS)
def released(request, tmp_path):
    """Returns the directory of the store of a release."""
    backup = gzip.decompress((RELEASES / f"{request.param}.backup.gz").read_bytes())
    restore(io.BytesIO(backup), tmp_path / "QM1" / "qm.db", "QM1", lambda text: None)
    return tmp_path / "QM1"


def test_the_first_release_is_among_them():
    assert "0.1.0" in VERSIONS


def test_all_of_it_is_there(released):
    world = World("sqlite", released)
    assert bodies(world, "Q") == IN_ORDER
    assert bodies(world, "RESERVED") == [b"2"]
    rows = world.did(Display(object_type="queue", name="*")).rows
    assert {"Q", "RESERVED", "ALIAS", "INITQ"} <= {row["name"] for row in rows}
    assert {run.run_id: run.state for run in world.store.ledger.runs({}, "", 10)} == RUNS
    assert [pause.name for pause in world.store.standing.pauses.values()] == ["P"]
    assert [held.consumer for held in world.store.standing.reservations.values()] == ["JOB"]
    world.end()
    assert list(check_directory(released / "qm.db")) == []


KINDS = {
    9: {
        *("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "QMGR"),
        *("NAMELIST", "SCHEDULE", "WATCH", "AUTHREC"),
    }
}
"""By version of the schema the kinds of object that its rows may have."""


def test_a_new_kind_of_object_raises_the_version():
    assert {kind.name for kind in ObjectType} == KINDS[connection.SCHEMA_VERSION]


def test_a_trigmon_that_does_not_know_every_kind_in_a_store_refuses_it(released, monkeypatch):
    assert version_of(released)[0] == connection.RELEASED_VERSION
    world = World("sqlite", released)
    assert world.did(Display(object_type="NAMELIST", name="*")).rows
    world.end()
    monkeypatch.setattr(connection, "SCHEMA_VERSION", connection.RELEASED_VERSION)
    with pytest.raises(UnsupportedVersion, match="has schema 9; this trigmon knows 8: install a later one"):
        World("sqlite", released)


NEXT = connection.SCHEMA_VERSION + 1
STEPS = ("ALTER TABLE run ADD COLUMN more TEXT", "UPDATE run SET more = 'added'")


def version_of(directory):
    db = apsw.Connection(str(directory / "qm.db"))
    try:
        return db.pragma("user_version"), [row[1] for row in db.execute("PRAGMA table_info(run)")]
    finally:
        db.close()


def test_a_later_schema_is_written_when_the_store_is_opened(released, monkeypatch):
    upgrades = dict.fromkeys(range(connection.RELEASED_VERSION, NEXT), ())
    monkeypatch.setattr(connection, "UPGRADES", {**upgrades, **connection.UPGRADES, NEXT - 1: STEPS})
    monkeypatch.setattr(connection, "SCHEMA_VERSION", NEXT)
    World("sqlite", released).end()
    version, columns = version_of(released)
    assert (version, columns[-1]) == (NEXT, "more")


@pytest.mark.parametrize("wrong", ["UPDATE run SET less = 1", "ALTER TABLE run ADD COLUMN state TEXT"])
def test_an_upgrade_that_fails_changes_nothing_and_says_how_to_go_back(released, monkeypatch, wrong):
    before = version_of(released)
    with monkeypatch.context() as patch:
        upgrades = dict.fromkeys(range(connection.RELEASED_VERSION, NEXT), ())
        patch.setattr(connection, "UPGRADES", {**upgrades, **connection.UPGRADES, NEXT - 1: (*STEPS, wrong)})
        patch.setattr(connection, "SCHEMA_VERSION", NEXT)
        with pytest.raises(StoreBroken, match="nothing of it is changed, and the release that wrote it can serve it"):
            World("sqlite", released)
    assert version_of(released) == before
    world = World("sqlite", released)
    assert bodies(world, "Q") == IN_ORDER
    world.end()


def test_an_upgrade_applies_the_turns_that_a_kill_left_in_the_journal(tmp_path, monkeypatch):
    world = World("sqlite", tmp_path / "home")
    world.define("Q", def_persistence="persistent")
    world.put("Q", b"first")
    files = killed(world, tmp_path / "k")
    world.end()
    assert tail_of((files / f"qm.db{JOURNAL_SUFFIX}").read_bytes(), 0).highest
    monkeypatch.setattr(connection, "UPGRADES", {**connection.UPGRADES, NEXT - 1: STEPS})
    monkeypatch.setattr(connection, "SCHEMA_VERSION", NEXT)
    world = World("sqlite", files)
    assert bodies(world, "Q") == [b"first"]
    world.end()
    version, columns = version_of(files)
    assert (version, columns[-1]) == (NEXT, "more")
    assert list(check_directory(files / "qm.db")) == []


def test_a_journal_that_is_refused_leaves_the_version_of_the_store(tmp_path, monkeypatch):
    world = World("sqlite", tmp_path / "home")
    world.define("Q", def_persistence="persistent")
    world.put("Q")
    files = killed(world, tmp_path / "k")
    world.end()
    before = version_of(files)
    upgrades = dict.fromkeys(range(connection.RELEASED_VERSION, NEXT), ())
    monkeypatch.setattr(connection, "UPGRADES", {**upgrades, **connection.UPGRADES, NEXT - 1: STEPS})
    monkeypatch.setattr(connection, "SCHEMA_VERSION", NEXT)
    monkeypatch.delitem(entries._BY_NAME, "AddMessage")
    with pytest.raises(UnsupportedVersion, match=r"'AddMessage'.*start the trigmon that wrote it"):
        SqliteStore(files)
    assert version_of(files) == before
