"""A queue manager on PostgreSQL: nothing lies on its machine, a second one stands by, one at a time serves."""

from __future__ import annotations

import os
import signal

import pytest

import trigmon
from tests.daemons import Raw, define
from tests.postgres import Server, shared
from tests.server.discarding import depths_while_it_discards
from trigmon.mq.calls import Put
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import ConnectionBroken, MQError, NoMsgAvailable
from trigmon.wire import codec
from trigmon.wire.frames import HELLO_LIMIT

LEASE_S = 2.0
_numbers = iter(range(1, 1000))


def settings(dsn, **more):
    fields = {"postgres": dsn, "postgres_schema": f"standby_{next(_numbers)}", "accept_loss": True, "lease_s": LEASE_S}
    return {f"store.{key}": str(value).lower() if value is True else value for key, value in (fields | more).items()}


@pytest.fixture
def pair(daemon):
    """One that serves, and one that stands by."""
    chosen = settings(shared().dsn)
    first = daemon(settings=chosen)
    second = daemon(settings=chosen, start=False)
    second.launch()
    second.wait_for_event("standing by")
    return first, second


def put(one, body):
    with one.connect() as qm:
        qm.put("Q", body, persistence="persistent")


def bodies(one):
    found = []
    with one.connect() as qm, qm.open("Q", "input_shared") as q:
        while True:
            try:
                found.append(q.get().data)
            except NoMsgAvailable:
                return found


def serves(one):
    return one.wait_until_ready()


def test_it_keeps_no_local_file_and_its_messages_outlive_it(daemon):
    one = daemon(settings=settings(shared().dsn))
    with one.connect() as qm:
        define(qm, "Q")
    put(one, b"kept")
    assert one.stop() == 0
    assert not one.data.exists()
    one.start()
    assert bodies(one) == [b"kept"]


def test_the_second_names_what_it_waits_for_and_stops_when_it_is_asked_to(pair):
    first, second = pair
    assert second.events("standing by")[0]["why"] == f"process {first.process.pid} on {os.uname().nodename} serves"
    assert second.stop() == 0
    assert second.events("ready") == []


def test_clients_of_one_that_stands_still_find_the_other_and_ask_it(pair):
    first, second = pair
    both = f"{first.address},{second.address}"
    qm = trigmon.connect(both, application="test", call_timeout_s=1)
    define(qm, "Q")
    qm.put("Q", b"kept", persistence="persistent", syncpoint=True)
    qm.commit()
    qm.put("Q", b"cut off", persistence="persistent", syncpoint=True)
    first.process.send_signal(signal.SIGSTOP)
    with pytest.raises(ConnectionBroken, match="no answer within 1 seconds"):
        qm.commit()
    serves(second)
    with trigmon.connect(both, application="test", timeout_s=10) as again:
        assert [again.outcome(unit, qm.client_id) for unit in (1, 2)] == [UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT]
    assert bodies(second) == [b"kept"]
    first.process.send_signal(signal.SIGCONT)
    assert first.wait() == 70


def test_it_takes_over_when_the_first_ends_in_order(pair):
    first, second = pair
    with first.connect() as qm:
        define(qm, "Q")
    put(first, b"one")
    assert first.stop() == 0
    assert bodies(serves(second)) == [b"one"]


def test_it_takes_over_when_the_first_dies_and_units_of_work_are_backed_out(pair):
    first, second = pair
    with first.connect() as qm:
        define(qm, "Q")
    put(first, b"kept")
    held = first.connect()
    held.put("Q", b"not committed", persistence="persistent", syncpoint=True)
    held.open("Q", "input_shared").get(syncpoint=True)
    first.kill()
    with pytest.raises(MQError):
        held.commit()
    assert bodies(serves(second)) == [b"kept"]


def test_one_that_was_taken_over_from_while_it_was_paused_answers_nothing_and_ends(pair):
    first, second = pair
    with first.connect() as qm:
        define(qm, "Q")
    put(first, b"before")
    late = first.connect()
    first.process.send_signal(signal.SIGSTOP)
    assert bodies(serves(second)) == [b"before"]
    put(second, b"after")
    first.process.send_signal(signal.SIGCONT)
    with pytest.raises(MQError):
        late.put("Q", b"fenced", persistence="persistent")
    assert first.wait() == 70
    assert first.events("another process took over; nothing of the last calls was done")
    assert bodies(second) == [b"after"]


def test_what_was_acknowledged_outlives_a_crash_of_the_database_and_the_daemon_comes_back_by_itself(daemon):
    server = Server()
    one = daemon(settings=settings(server.dsn))
    with one.connect() as qm:
        define(qm, "Q")
    for number in range(20):
        put(one, b"%d" % number)
    late = one.connect()
    server.kill()
    with pytest.raises(MQError):
        late.put("Q", b"lost", persistence="persistent")
    assert one.wait() == 70
    one.launch()
    one.wait_for_event("standing by")
    server.start()
    one.wait_until_ready()
    assert bodies(one) == [b"%d" % number for number in range(20)]
    assert one.stop() == 0
    server.end()


def test_a_server_that_can_lose_what_was_answered_is_refused_without_a_word_on_that(daemon):
    one = daemon(settings=settings(shared().dsn, accept_loss="false"), start=False)
    one.launch()
    assert one.wait() == 2
    why = one.events("the queue manager cannot start")[0]["why"]
    assert "fsync is off" in why
    assert "store.accept_loss" in why


def test_a_password_among_the_settings_is_refused(daemon):
    one = daemon(settings=settings("host=db user=u password=secret"), start=False)
    one.launch()
    assert one.wait() == 2
    assert "a password has no place in settings" in one.log.read_text()


@pytest.mark.slow
def test_a_look_for_expired_messages_lets_calls_go_between(daemon):
    depths = depths_while_it_discards(daemon(settings=settings(shared().dsn)))
    assert depths[0] > 0
    assert depths == sorted(depths, reverse=True)


def test_a_client_that_does_not_wait_for_its_welcome_may_send_calls_as_long_as_any(daemon):
    one = daemon(settings=settings(shared().dsn))
    with one.connect() as qm:
        define(qm, "Q")
    with Raw(one, hello=False) as raw:
        hello = codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="hasty"))
        raw.send(hello, codec.encode_request(1, Put(q_name="Q", data=b"x" * 2 * HELLO_LIMIT)))
        assert codec.decode_welcome(raw.body()).frame_limit > 2 * HELLO_LIMIT
        assert raw.reply()[0] == 1
    assert [len(body) for body in bodies(one)] == [2 * HELLO_LIMIT]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_client_that_connects_again_goes_on_with_the_one_that_takes_over(pair, how):
    first, second = pair
    both = f"{first.address},{second.address}"
    with trigmon.connect(both, application="test", reconnect_s=300) as qm:
        define(qm, "Q")
        with qm.open("Q", "input_shared", "output") as queue:
            queue.put(b"committed", persistence="persistent", syncpoint=True)
            qm.commit()
            getattr(first, how)()
            assert queue.get(wait_interval_ms=300_000).data == b"committed"
            queue.put(b"of the second", persistence="persistent", syncpoint=True)
            qm.commit()
    assert bodies(second) == [b"of the second"]
