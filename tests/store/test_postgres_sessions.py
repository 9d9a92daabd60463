"""A session of PostgreSQL: what is checked at its start, who owns the data, and what an error in it means."""

from __future__ import annotations

import itertools
import threading
import time

import psycopg
import pytest

from tests.postgres import STANDBY, Server, place, shared
from tests.waiting import until
from tests.worlds import World
from trigmon.mq.calls import Display, Get, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.store.port import (
    AnothersStore,
    DirectoryInUse,
    Fenced,
    StoreBroken,
    Unfit,
    Unreachable,
    UnsupportedVersion,
)
from trigmon.store.postgres import pipeline
from trigmon.store.postgres.connection import Place, closed_when_it_fails, connect
from trigmon.store.postgres.schemas import OWN
from trigmon.store.postgres.socket_wait import wait
from trigmon.store.postgres.store import PostgresStore

LEASE_MS = 400
Q = "SYSTEM.DEFAULT.LOCAL.QUEUE"


@pytest.fixture
def world(tmp_path):
    made = World("postgres", tmp_path)
    made.define("Q")
    yield made
    made.end()


@pytest.fixture(scope="module")
def server():
    one = Server()
    yield one
    one.end()


def sql(where: Place, statement: str, *values: object) -> list[tuple]:
    with psycopg.connect(where.dsn, options=f"-csearch_path={where.schema}", autocommit=True) as db:
        cursor = db.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def lasting(name: str = Q) -> Put:
    return Put(q_name=name, descriptor=MessageDescriptor(persistence=1))


class TestItsStart:
    @pytest.mark.parametrize(
        ("version", "remedy"),
        [(OWN.version + 1, "install a later one"), (OWN.released - 1, "empty its queues .* empty schema")],
    )
    def test_another_version_is_refused_with_a_remedy(self, world, tmp_path, version, remedy):
        sql(place(tmp_path), "UPDATE meta SET value = %s WHERE key = 'schema_version'", str(version))
        with pytest.raises(UnsupportedVersion, match=f"has version {version}.* knows {OWN.version}: {remedy}"):
            connect(place(tmp_path))
        sql(place(tmp_path), "UPDATE meta SET value = %s WHERE key = 'schema_version'", str(OWN.version))

    def test_a_schema_of_a_released_version_is_brought_to_this_one_by_who_takes_it_over(self, tmp_path):
        set_version = "UPDATE meta SET value = %s WHERE key = 'schema_version'"
        world = World("postgres", tmp_path)
        world.define("KEPT")
        world.qm.stop()
        sql(place(tmp_path), set_version, str(OWN.released))
        connect(place(tmp_path)).close()
        assert sql(place(tmp_path), "SELECT value FROM meta WHERE key = 'schema_version'") == [(str(OWN.released),)]
        world = World("postgres", tmp_path)
        assert [row["name"] for row in world.did(Display(object_type="QLOCAL", name="KEPT")).rows] == ["KEPT"]
        assert sql(place(tmp_path), "SELECT value FROM meta WHERE key = 'schema_version'") == [(str(OWN.version),)]
        world.end()

    def test_two_that_start_at_once_make_one_schema(self):
        where = Place(shared().dsn, "made_at_once", accept_loss=True)
        failed: list[BaseException] = []

        def start():
            try:
                connect(where).close()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []

    def test_a_server_that_is_not_there_is_reported_without_the_password(self, tmp_path):
        where = Place(f"host={tmp_path} dbname=x user=someone", "S")
        with pytest.raises(Unreachable, match=f"schema S of PostgreSQL .host={tmp_path} dbname=x.") as caught:
            connect(where)
        assert "someone" not in str(where)
        assert isinstance(caught.value, StoreBroken)

    def test_a_session_that_the_server_ends_for_its_idleness_is_unreachable_and_not_broken(self, server):
        where = Place(server.dsn, "idle", accept_loss=True, lease_ms=200)
        connection = connect(where)
        with pytest.raises(Unreachable, match="idle-in-transaction timeout"), closed_when_it_fails(connection, where):
            connection.execute("BEGIN")
            until(lambda: not sql(where, "SELECT 1 FROM pg_stat_activity WHERE pid = %s", connection.info.backend_pid))
            connection.execute("SELECT 1")
        assert connection.closed

    def test_what_the_server_may_lose_is_refused_until_it_is_put_up_with(self, server):
        where = Place(server.dsn, "careful")
        with pytest.raises(StoreBroken, match="synchronous_standby_names is empty"):
            connect(where)
        connect(where._replace(accept_loss=True)).close()
        server.alter("synchronous_standby_names", STANDBY)
        standby = Server(of=server)
        try:
            until(lambda: sql(where, "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
            db = connect(where)
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
            db.execute("CREATE ROLE plain LOGIN")
            db.execute("GRANT CREATE ON DATABASE postgres TO plain")
            db.close()
            of_plain = Place(where.dsn.replace("user=postgres", "user=plain"), "of_plain")
            connect(of_plain).close()  # it may not see how far the standby is
        finally:
            standby.end()
            server.alter("synchronous_standby_names", "")

    def test_a_server_whose_commits_nobody_would_confirm_is_not_gone_on_with(self, server):
        where = Place(server.dsn, "alone", accept_loss=True)
        server.alter("synchronous_standby_names", STANDBY)
        try:
            with pytest.raises(Unfit, match="no synchronous standby is connected"):
                connect(where)
        finally:
            server.alter("synchronous_standby_names", "")
        connect(where).close()

    def test_a_weaker_commit_of_the_role_is_made_as_strong_as_it_has_to_be(self, server):
        where = Place(f"{server.dsn} options=-csynchronous_commit=off", "strong", accept_loss=True)
        with connect(where) as db:
            assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)


class TestItsOwner:
    def test_the_data_of_another_queue_manager_is_not_taken(self, world, tmp_path):
        world.qm.stop()
        store = PostgresStore(place(tmp_path))
        with pytest.raises(AnothersStore, match="queue manager QM1, not of QM2"):
            QueueManager("QM2", store, world.clock)
        store.abandon()
        world.sessions.clear()
        world._start()

    def test_one_at_a_time_serves_and_the_other_learns_who(self, world, tmp_path):
        other = PostgresStore(place(tmp_path)._replace(lease_ms=LEASE_MS))
        assert other.take("QM1") is False
        with pytest.raises(DirectoryInUse, match="in use by process"):
            other.open("QM1", 0)
        other.abandon()

    def test_an_orderly_end_and_a_lost_session_are_not_waited_for(self, world, tmp_path):
        for ends in (world.qm.stop, lambda: world.store.abandon()):
            ends()
            other = PostgresStore(place(tmp_path))
            until = time.monotonic() + 60
            while not other.take("QM1"):
                assert time.monotonic() < until
                time.sleep(0.01)
            other.abandon()
            world.sessions.clear()
            world._start()

    def test_who_is_silent_for_a_lease_is_taken_over_from_and_writes_nothing_more(self, tmp_path):
        where = place(tmp_path)._replace(lease_ms=LEASE_MS)
        late = PostgresStore(where)
        manager = QueueManager("QM1", late, VirtualClock())
        session = manager.connect(Identity(client_id="late", administrator=True))
        manager.turn([(session, 1, lasting())])
        other = PostgresStore(where)
        until = time.monotonic() + 60
        while not other.take("QM1"):
            assert time.monotonic() < until
            time.sleep(0.05)
        with pytest.raises(Fenced):
            manager.turn([(session, 2, lasting())])
        other.open("QM1", 0)
        assert other.standing.queues[Q].depth == 1
        other.close()
        late.abandon()

    def test_who_beats_is_not_taken_over_from(self, tmp_path):
        where = place(tmp_path)._replace(lease_ms=10 * LEASE_MS)
        serving, other = PostgresStore(where), PostgresStore(where)
        serving.open("QM1", 0)
        until = time.monotonic() + 1.5 * where.lease_ms / 1000
        while time.monotonic() < until:
            serving.beat()
            assert not other.take("QM1")
            time.sleep(serving.beat_s / 4)
        serving.close()
        other.abandon()


def test_more_than_a_socket_takes_is_sent_and_read_side_by_side(world, monkeypatch):
    """The server sends what it was sent, and reads no more before that is read."""
    waits = []

    def noted(descriptor, *, writes=False):
        waits.append(writes)
        wait(descriptor, writes=writes)

    monkeypatch.setattr(pipeline, "wait", noted)
    link, large = world.store._turn.link, bytes(range(256)) * 80_000
    for _ in range(3):
        link.send("SELECT ?::bytea", (large,))
    assert link.receive() == [(large,)]
    assert set(waits) == {True, False}


class TestAnError:
    def test_a_session_that_is_ended_in_the_middle_breaks_the_store_and_what_was_answered_stands(self, world, tmp_path):
        world.did(lasting("Q"))
        assert sql(place(tmp_path), ENDED) == [(True,)]
        with pytest.raises(StoreBroken):
            world.do(lasting("Q"))
        world.store.abandon()
        world.sessions.clear()
        world._start()
        assert world.queue_depth("Q") == 1

    def test_a_wait_for_the_standby_that_is_broken_off_is_no_commit(self, server):
        where = Place(server.dsn, "waiting", accept_loss=True)
        store = PostgresStore(where)
        manager = QueueManager("QM1", store, VirtualClock())
        session = manager.connect(Identity(client_id="c", administrator=True))
        server.alter("synchronous_standby_names", "nobody")

        def break_off():
            while not sql(where, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
                time.sleep(0.02)

        breaker = threading.Thread(target=break_off)
        breaker.start()
        try:
            with pytest.raises(StoreBroken, match="the commit was not confirmed"):
                for number in itertools.count(1):  # the server heeds a setting soon, not at once
                    manager.turn([(session, number, lasting())])
        finally:
            breaker.join()
            server.alter("synchronous_standby_names", "")
            store.abandon()

    def test_a_name_with_a_byte_that_postgresql_has_no_place_for_breaks_nothing(self, world):
        world.did(Put(q_name="Q", data=b"\0"))
        assert world.do(Put(q_name="Q\0")).reason
        assert world.did(Get(handle=world.open("Q", OpenOption.INPUT_SHARED))).data == b"\0"


ENDED = "SELECT pg_terminate_backend(backend, 10000) FROM member WHERE serving"
