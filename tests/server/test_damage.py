"""A damaged store under a daemon: a loss is refused until a person accepts it, and one bit ends no service."""

import contextlib

import apsw
import pytest

import trigmon
from tests.daemons import define
from trigmon.store.sqlite.connection import PAGE_SIZE as PAGE


@pytest.fixture
def one(daemon):
    made = daemon()
    with made.connect() as qm:
        for name in ("Q", "OTHER"):
            define(qm, name, def_persistence="persistent")
            for number in range(30):
                qm.put(name, b"%d" % number * 500)
    return made


def drained(one, name):
    with one.connect() as qm, qm.open(name, "input_shared") as queue:
        return len(list(queue.drain()))


def damage(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize(
    ("suffix", "missing"), [("-wal", "it is empty"), ("-turns", "are missing in the journal")], ids=["log", "journal"]
)
def test_a_file_with_one_changed_bit_is_refused_with_6_and_goes_on_when_the_loss_is_accepted(one, suffix, missing):
    one.kill()
    log = one.data / f"qm.db{suffix}"
    middle = len(log.read_bytes().rstrip(b"\0")) // 2
    damage(log, middle, bytes([log.read_bytes()[middle] ^ 1]))
    for _ in range(2):
        assert one.launch().wait() == 6
    why = one.events("the queue manager cannot start")[-1]["why"]
    assert missing in why
    assert "restore a backup, or start once with --accept-loss" in why
    one.start("--accept-loss")
    assert any("this is accepted" in row["what"] for row in one.events("the store was damaged"))
    if suffix == "-turns":  # else all of it is gone
        assert 0 < drained(one, "Q") <= 30
    assert one.stop() == 0
    one.start()
    assert one.stop() == 0


def test_a_database_that_is_gone_is_no_new_queue_manager(one):
    one.stop()
    (one.data / "qm.db").unlink()
    assert one.launch().wait() == 6
    assert "qm.db is missing or empty" in one.events("the queue manager cannot start")[-1]["why"]
    assert not (one.data / "qm.db").exists()
    one.start("--accept-loss")
    with pytest.raises(trigmon.UnknownObjectName), one.connect() as qm:
        qm.put("Q", b"new")


def test_the_database_of_another_program_is_refused(daemon):
    one = daemon(start=False)
    one.data.mkdir(parents=True)
    with contextlib.closing(apsw.Connection(str(one.data / "qm.db"))) as db:
        db.execute("CREATE TABLE theirs (a)")
    assert one.launch().wait() == 2
    assert "another program" in one.events("the queue manager cannot start")[-1]["why"]


def test_a_damaged_row_costs_one_message_and_the_daemon_goes_on(one):
    one.stop()
    with contextlib.closing(apsw.Connection(str(one.data / "qm.db"))) as db:
        db.execute("UPDATE message SET backout_count = x'' WHERE id = (SELECT max(id) FROM message)")
    one.start()
    pid = one.process.pid
    assert drained(one, "OTHER") == 29
    assert drained(one, "Q") == 30
    assert (one.process.pid, one.process.poll()) == (pid, None)
    (row,) = one.events("a damaged message was set aside")
    assert row["q_name"] == "OTHER"


def test_a_damaged_index_is_made_anew_by_the_start(one):
    one.stop()
    with contextlib.closing(apsw.Connection(str(one.data / "qm.db"))) as db:
        ((root,),) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'message_ready'")
    damage(one.data / "qm.db", (root - 1) * PAGE, b"\xff")
    one.start()
    assert one.events("the store was damaged")
    assert (drained(one, "Q"), drained(one, "OTHER")) == (30, 30)


def test_a_store_on_postgresql_has_its_own_word_for_an_accepted_loss(daemon):
    one = daemon(settings={"store.postgres": "host=/nowhere"}, start=False)
    assert one.launch("--accept-loss").wait() == 2
    assert "there is store.accept_loss" in one.log.read_text()
