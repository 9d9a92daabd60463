"""Members of a group whose database goes, comes back, or does not answer."""

from __future__ import annotations

import contextlib
import socket

import psycopg
import pytest

from tests.daemons import define
from tests.members import LEASE_S, aside, get, members, sees, settings, share
from tests.postgres import shared
from tests.waiting import until
from trigmon.mq.calls import Status
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import CfNotAvailable, ConnectionBroken, NoMsgAvailable
from trigmon.mq.replies import Values
from trigmon.wire import codec


class TestADatabaseThatGoes:
    def test_a_member_starts_when_the_database_can_be_reached_and_says_what_it_waits_for(self, daemon, server):
        server.kill()
        (one,) = members(daemon, "QM1", chosen=settings(server.dsn), start=False)
        one.launch()
        why = one.wait_for_event("standing by")["why"]
        assert why.startswith("the database cannot be reached")
        assert "\n" not in why and "\t" not in why
        server.start()
        one.wait_until_ready()
        share(one, "Q")

    def test_nothing_that_was_acknowledged_is_lost_and_members_come_back_by_themselves(self, daemon, server):
        first, second = members(daemon, "QM1", "QM2", chosen=settings(server.dsn))
        share(first, "Q")
        sees(first, second, q_name="Q")
        with first.connect() as qm, second.connect() as other:
            define(qm, "OWN")
            qm.put("Q", b"one", persistence="persistent")
            qm.put("OWN", b"own", persistence="persistent")
            other.put("Q", b"two", persistence="persistent", syncpoint=True)
            other.commit()
            open_unit = first.connect()
            open_unit.put("Q", b"never committed", persistence="persistent", syncpoint=True)
            server.kill()
            with pytest.raises(ConnectionBroken, match="has lost the database of the group QSG1"):
                for _ in range(1000):
                    qm.put("Q", b"?")
            with pytest.raises(CfNotAvailable):
                until(lambda: not first.connect().drop() and None, timeout_s=5)
            qm.drop()
            other.drop()
            open_unit.drop()
        server.start()
        for one in (first, second):
            until(lambda one=one: len(one.events("ready")) == 2)
        with second.connect() as qm, qm.open("Q", "input_shared") as q:
            assert sorted(message.data for message in q.drain()) == [b"one", b"two"]
        assert get(first, "OWN").data == b"own"

    def test_a_member_that_keeps_its_own_data_there_too_comes_back_with_all_of_it(self, daemon, server):
        own = {"store.postgres": server.dsn, "store.accept_loss": "true", "store.lease_s": LEASE_S}
        (one,) = members(daemon, "QM1", chosen=settings(server.dsn, **own))
        share(one, "Q")
        with one.connect() as qm:
            define(qm, "OWN")
            for q_name in ("Q", "OWN"):
                qm.put(q_name, b"kept", persistence="persistent", syncpoint=True)
            qm.commit()
        server.kill()
        one.wait_for_event("the group's database is lost; it comes back with that")
        server.start()
        until(lambda: len(one.events("ready")) == 2)
        assert [get(one, q_name).data for q_name in ("Q", "OWN")] == [b"kept"] * 2
        assert not one.data.exists()

    def test_a_member_that_stops_in_order_has_lost_nothing(self, daemon):
        (one,) = members(daemon, "QM1")
        share(one, "Q")
        assert one.stop() == 0
        events = [event["event"] for event in one.events()]
        assert events == ["ready", "an administrative act", "stopping", "stopped"]

    @pytest.mark.parametrize("has_joined", [False, True])
    def test_one_whose_start_waits_for_its_turn_says_so_and_stops_when_it_is_asked_to(self, daemon, has_joined):
        chosen = settings(**{"server.stop_timeout_s": 1})
        first, second = members(daemon, "QM1", "QM2", chosen=chosen, start=False)
        first.start()
        if has_joined:
            second.start()
            second.stop()
        with psycopg.connect(shared().dsn) as holder:
            holder.execute(f"SELECT FROM {chosen['group.postgres_schema']}.turn FOR UPDATE".encode())
            second.launch()
            why = second.wait_for_event("standing by")["why"]
            assert second.stop() == 0
        assert why == "the database does not answer" + (" (the turn does not come)" if has_joined else "")
        assert second.events("stopped")[-1]["exit_status"] == 0

    def test_a_member_stops_in_order_while_the_database_is_away(self, daemon, server):
        (one,) = members(daemon, "QM1", chosen=settings(server.dsn))
        server.kill()
        one.wait_for_event("standing by")
        assert one.stop() == 0
        assert not one.socket.exists()

    def test_the_outcome_of_a_commit_that_was_cut_is_asked_for(self, daemon, server):
        (one,) = members(daemon, "QM1", chosen=settings(server.dsn))
        share(one, "Q")
        with one.connect() as qm:
            qm.put("Q", b"committed", persistence="persistent", syncpoint=True)
            qm.commit()
            committed, client = qm.unit - 1, qm.client_id
            qm.put("Q", b"cut", persistence="persistent", syncpoint=True)
            server.kill()
            with pytest.raises(ConnectionBroken):
                qm.commit()
            cut = qm.unit
            qm.drop()
        server.start()
        until(lambda: len(one.events("ready")) == 2)
        with one.connect() as qm:
            assert qm.outcome(committed, client) is UnitOutcome.COMMITTED
            is_committed = qm.outcome(cut, client) is UnitOutcome.COMMITTED
            with qm.open("Q", "input_shared") as q:
                found = [message.data for message in q.drain()]
        assert found == [b"committed", *([b"cut"] if is_committed else [])]


@pytest.fixture
def alone(daemon, server):
    """A member with a queue Q, whose lease is long."""
    (one,) = members(daemon, "QM1", chosen=settings(server.dsn, schema="slow", lease_s=60))
    share(one, "Q", def_persistence="persistent")
    return one


@contextlib.contextmanager
def holding_up(server):
    """Nobody of the group gets a turn: somebody else holds its row."""
    with psycopg.connect(server.dsn) as other:
        other.execute("SELECT * FROM slow.turn FOR UPDATE")
        yield


def held_up(member, server):
    """A put that waits for the database."""
    put = aside(lambda: puts(member))
    until(lambda: waits_for_a_row(server))
    return put


def puts(member):
    with member.connect() as qm:
        qm.put("Q", b"m")


def waits_for_a_row(server):
    """Whether a session of the server's waits for a row."""
    with psycopg.connect(server.dsn) as asking:
        return asking.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()[0]


class TestADatabaseThatDoesNotAnswer:
    def test_calls_wait_and_a_client_that_connects_meanwhile_gets_the_reason(self, alone, server):
        with holding_up(server):
            put = held_up(alone, server)
            row = alone.wait_for_event("the database does not answer; calls wait for it")
            assert row["waited_s"] >= 3
            with pytest.raises(CfNotAvailable, match=r"waiting for the database of the group QSG1 for \d+ s"):
                alone.connect()
            shown = alone.trigmon("status")
            assert shown.returncode != 0
            assert "waiting for the database of the group QSG1" in shown.stderr
            assert not put.done()
        put.result(20)
        alone.wait_for_event("the database answers again")
        assert get(alone, "Q").data == b"m"

    def test_a_client_that_sent_its_hello_before_is_accepted_when_it_answers(self, alone, server):
        with holding_up(server):
            put = held_up(alone, server)
            comes = aside(lambda: get(alone, "Q"))
            alone.wait_for_event("the database does not answer; calls wait for it")
            assert not comes.done()
        put.result(20)
        assert comes.result(20).data == b"m"

    def test_a_client_that_went_meanwhile_leaves_nothing(self, alone, server):
        with holding_up(server):
            put = held_up(alone, server)
            with socket.socket(socket.AF_UNIX) as gone:
                gone.connect(str(alone.socket))
                gone.sendall(codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="gone")))
        put.result(20)
        with alone.connect() as qm:
            until(lambda: qm.ask(Status(), Values).values["connections"] == 1)

    def test_it_is_stopped_all_the_same_and_what_was_not_answered_was_not_done(self, daemon, server):
        patient = settings(server.dsn, schema="slow", lease_s=60) | {"server.stop_timeout_s": 2}
        (one,) = members(daemon, "QM1", chosen=patient)
        share(one, "Q", def_persistence="persistent")
        with holding_up(server):
            put = held_up(one, server)
            assert one.stop() == 70
            with pytest.raises(ConnectionBroken):
                put.result(20)
        assert one.events("the database does not answer: units of work are backed out later")
        one.start()
        with pytest.raises(NoMsgAvailable):
            get(one, "Q", wait_interval_ms=0)

    def test_the_watchdog_is_fed_meanwhile(self, alone, server, tmp_path):
        path = tmp_path / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(20)
            alone.stop()
            alone.launch(env=alone.env | {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "400000"}).wait_until_ready()
            with holding_up(server):
                put = held_up(alone, server)
                while b"waiting for the database" not in manager.recv(4096):
                    pass
                while b"WATCHDOG=1" not in manager.recv(4096):
                    pass
                assert not put.done()
            put.result(20)
