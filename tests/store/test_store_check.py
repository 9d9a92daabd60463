"""The check of a store names each damage, changes no byte, and has nothing to say of a whole store."""

import random
import re
import shutil

import apsw
import pytest

from tests.worlds import World
from trigmon.journal import entries
from trigmon.mq.calls import Get, Open, RecordRun, Reserve
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Refused
from trigmon.store.port import DirectoryInUse, StoreBroken, StoreLost
from trigmon.store.sqlite.checksums import register
from trigmon.store.sqlite.store_check import MOST_FINDINGS, check_directory, repair_directory


def fill(world):
    world.define("Q", def_persistence="persistent", max_q_depth=9999)
    for number in range(40):
        world.put("Q", b"message %d" % number)
    world.put("Q", b"grouped", group_id=b"G".ljust(24), msg_flags=8)
    world.did(Reserve(handle=world.open("Q", OpenOption.INPUT_SHARED), consumer="JOB", max_messages=5))
    for number in range(3):
        run = {"run_id": f"{number:016x}", "state": "due", "q_name": "Q"}
        world.did(RecordRun(run_id=run["run_id"], record=run))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Returns the directory of a store that was closed in order."""
    world = World("sqlite", tmp_path_factory.mktemp("stopped"))
    fill(world)
    world.end()
    return world.directory


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """Returns the directory of a store as a kill leaves it: much of it in the log."""
    world = World("sqlite", tmp_path_factory.mktemp("served"))
    fill(world)
    copy = tmp_path_factory.mktemp("crashed") / "QM1"
    shutil.copytree(world.directory, copy)
    world.end()
    return copy


def findings(directory):
    return list(check_directory(directory / "qm.db"))


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("state", ["stopped", "crashed"])
def test_a_whole_store_has_no_finding_and_no_byte_changes(state, request, tmp_path):
    directory = shutil.copytree(request.getfixturevalue(state), tmp_path / "QM1")
    before = content(directory)
    assert findings(directory) == []
    assert content(directory) == before


def test_one_that_is_served_is_not_checked(tmp_path):
    world = World("sqlite", tmp_path)
    with pytest.raises(DirectoryInUse):
        findings(tmp_path)
    world.end()


def change(directory, statement):
    db = apsw.Connection(str(directory / "qm.db"))
    register(db)
    db.execute(statement)
    db.close()


DAMAGE = {
    "UPDATE message SET data = x'00' WHERE data = CAST('message 7' AS BLOB)": "does not match its checksum",
    "UPDATE message SET backout_count = 7 WHERE data = CAST('message 7' AS BLOB)": "does not match its checksum",
    "UPDATE object SET definition = '{}' WHERE name = 'Q'": "a row of the table object does not match its checksum",
    "UPDATE meta SET value = '1' WHERE key = 'next_id'": "a row of the table meta does not match its checksum",
    "UPDATE run SET record = '{}', sum = NULL": "is of another run",
    "DELETE FROM queue WHERE name = 'Q'": "messages lie on queue number",
    "DELETE FROM reservation": "messages belong to reservation",
    "DELETE FROM object WHERE name = 'Q'": "queue Q has a number and no definition",
    "DELETE FROM run WHERE run_id LIKE '%1'": "waits and has no record",
    "UPDATE message SET queue = -queue, header = NULL WHERE data = CAST('message 7' AS BLOB)": "is set aside",
    "UPDATE meta SET value = '5', sum = NULL WHERE key = 'next_id'": "has a number that was not given yet",
    "UPDATE object SET definition = '{', sum = NULL WHERE name = 'Q'": "the definition of",
    "UPDATE meta SET value = 1, sum = row_sum('turn', 1) WHERE key = 'turn'": "turns that were acknowledged",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_each_damage_is_named(statement, stopped, tmp_path):
    directory = shutil.copytree(stopped, tmp_path / "QM1")
    change(directory, statement)
    before = content(directory)
    found = findings(directory)
    assert any(DAMAGE[statement] in finding for finding in found), found
    assert content(directory) == before


@pytest.mark.parametrize("name", ["qm.db", "last_turn"])
def test_a_missing_or_damaged_file_is_named(name, stopped, tmp_path):
    directory = shutil.copytree(stopped, tmp_path / "QM1")
    (directory / name).write_bytes(b"")
    assert findings(directory)
    (directory / name).write_bytes(b"no store at all" * 1000)
    assert findings(directory)


@pytest.mark.parametrize(("suffix", "left"), [("-wal", 70_000), ("-turns", 4_000), ("-turns", 10)])
def test_a_log_or_a_journal_that_lost_its_end_is_named(crashed, tmp_path, suffix, left):
    directory = shutil.copytree(crashed, tmp_path / "QM1")
    log = directory / f"qm.db{suffix}"
    log.write_bytes(log.read_bytes()[:left])
    named = "turns that were acknowledged are missing" if suffix == "-turns" else "cannot be read to its end"
    assert any(named in finding for finding in findings(directory))


def test_a_hole_in_the_journal_is_named(crashed, tmp_path):
    directory = shutil.copytree(crashed, tmp_path / "QM1")
    journal = directory / "qm.db-turns"
    journal.write_bytes(journal.read_bytes()[:3000] + bytes(100) + journal.read_bytes()[3100:])
    assert any("are missing in the journal" in finding for finding in findings(directory))


def test_of_many_of_a_kind_the_first_are_named_and_the_rest_counted(stopped, tmp_path):
    directory = shutil.copytree(stopped, tmp_path / "QM1")
    world = World("sqlite", directory)
    for _ in range(MOST_FINDINGS + 20):
        world.put("Q", b"more")
    world.end()
    change(directory, "UPDATE message SET data = x'00' WHERE data = CAST('more' AS BLOB)")
    found = findings(directory)
    assert len(found) == MOST_FINDINGS + 1
    assert found[-1] == "and 20 more of this kind"


SENT = {b"message %d" % number for number in range(40)} | {b"grouped"}


def served(directory):
    """Returns the messages that a queue manager serves from there; None where it does not start."""
    try:
        world = World("sqlite", directory)
    except (StoreBroken, StoreLost):
        return None
    opened = world.do(Open(object_name="Q", options=int(OpenOption.INPUT_SHARED)))
    found = set()
    if not isinstance(opened, Refused):
        while not isinstance(reply := world.do(Get(handle=opened.handle)), Refused):
            found.add(reply.data)
    world.end()
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_it_does_not_name_harms_nothing(seed, stopped, crashed, tmp_path):
    rng = random.Random(seed)
    directory = shutil.copytree(rng.choice([stopped, crashed]), tmp_path / "QM1")
    path = directory / rng.choice([path.name for path in directory.iterdir() if path.name.startswith("qm.db")])
    damaged = bytearray(path.read_bytes())
    if damaged:
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    path.write_bytes(damaged)
    named = findings(directory)
    found = served(directory)
    assert found is None or found <= SENT
    if not named:
        assert found is not None and len(found) == 36  # five are reserved
    elif found is not None:
        assert repair_is_whole(directory)


def repair_is_whole(directory):
    """Whether nothing is left but what was set aside, and damaged messages of a batch, which its reader sets aside."""
    repair_directory(directory)
    db = apsw.Connection(str(directory / "qm.db"))
    reserved = [f"message {number} of" for (number,) in db.execute("SELECT id FROM message WHERE ordinal IS NOT NULL")]
    db.close()
    left = [finding for finding in findings(directory) if "set aside" not in finding]
    return not [finding for finding in left if not any(finding.startswith(each) for each in reserved)]


@pytest.mark.parametrize("behind", [1, 60])
def test_repair_restores_what_an_index_lost(behind, stopped, tmp_path):
    directory = shutil.copytree(stopped, tmp_path / "QM1")
    path = directory / "qm.db"
    db = apsw.Connection(str(path))
    root = next(db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'message_msg_id'"))[0]
    size = db.pragma("page_size")
    db.close()
    damaged = bytearray(path.read_bytes())
    damaged[root * size - behind] ^= 0x10
    path.write_bytes(damaged)
    assert findings(directory)
    assert repair_directory(directory)
    assert findings(directory) == []
    assert len(served(directory)) == 36


def test_turns_of_the_journal_that_cannot_be_applied_are_named(crashed, monkeypatch):
    monkeypatch.delitem(entries._BY_NAME, "ReserveMessages")
    (finding,) = findings(crashed)
    assert re.fullmatch(r"turn \d+ of the journal cannot be applied: .* \('ReserveMessages'\)", finding)
