"""What the client does when the other side, or the link, is not what it should be."""

import itertools
import os
import signal
import socket
import threading
import time

import pytest

import trigmon
from tests.client.conftest import WELCOME
from tests.daemons import define
from trigmon.client import address
from trigmon.client.transport import Transport
from trigmon.mq.calls import Ping, Put
from trigmon.mq.replies import Done, Opened, Refused
from trigmon.wire import codec


def connected(peer, *script):
    return trigmon.connect(peer(WELCOME, *script))


def test_a_link_that_ends_raises_2009_at_every_call_from_then_on(peer):
    qm = connected(peer, b"")
    for _ in range(2):
        with pytest.raises(trigmon.ConnectionBroken, match="it closed the connection") as caught:
            qm.commit()
    assert caught.value.reason == 2009
    assert not qm.alive
    assert qm.unit == 1  # in doubt, and still the one to ask about


def test_a_block_whose_link_has_ended_cannot_be_left_as_if_it_had_committed(peer):
    with pytest.raises(trigmon.ConnectionBroken), connected(peer, b"") as qm, pytest.raises(trigmon.ConnectionBroken):
        qm.call(Ping())


def test_the_error_of_a_block_whose_link_has_ended_is_the_blocks_own(peer):
    with pytest.raises(ZeroDivisionError), connected(peer, b"") as qm:
        with pytest.raises(trigmon.ConnectionBroken):
            qm.call(Ping())
        _ = 1 / 0


def test_a_link_that_ends_inside_a_reply_is_a_broken_link(peer):
    qm = connected(peer, codec.encode_response(1, Done())[:-2])
    with pytest.raises(trigmon.ConnectionBroken):
        qm.call(Ping())


def long(number, size):
    return codec.encode_response(number, Refused(reason=2033, about="x" * size))


def test_long_replies_that_are_waited_for_together_come_whole_and_in_order(peer):
    sizes = 900_000, 3_000_000, 10
    qm = connected(peer, *itertools.starmap(long, enumerate(sizes, 1)))
    sent = [qm._transport.send(Ping()) for _ in sizes]
    assert [len(qm._transport.receive(number).about) for number in sent] == list(sizes)
    qm.drop()


def test_a_link_that_ends_inside_a_long_reply_is_a_broken_link(peer):
    qm = connected(peer, long(1, 900_000)[:-2])
    with pytest.raises(trigmon.ConnectionBroken, match="it closed the connection"):
        qm.call(Ping())
    assert not qm.alive


def test_a_long_reply_that_does_not_go_on_is_no_answer():
    near, far = socket.socketpair()
    with near, far:
        far.sendall(WELCOME)
        hello = codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="c", application="a", pid=1, run_id="")
        transport = Transport(near, "here", hello, 10.0, call_timeout_s=0.3)
        number = transport.send(Ping())
        said = threading.Thread(target=far.sendall, args=(long(1, 900_000)[:700_000],))
        said.start()
        with pytest.raises(trigmon.ConnectionBroken, match=r"no answer within 0\.3 seconds"):
            transport.receive(number)
        said.join()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x00\x00\x00\x01\xc1", "left the protocol"),
        (codec.encode_response(7, Done()), "answered call 7, where 1 was due"),
        (codec.encode_response(1, Opened(handle=1)), "answered Outcome"),
        (codec.encode_response(0, Refused(reason=2009, about="outside the protocol")), "outside the protocol"),
    ],
)
def test_a_reply_that_makes_no_sense_breaks_the_connection(peer, said, why):
    qm = connected(peer, said)
    with pytest.raises(trigmon.ConnectionBroken, match=why):
        qm.outcome(1)
    assert not qm.alive


def test_the_queue_managers_last_word_is_what_is_raised(peer):
    qm = connected(peer, codec.encode_response(0, Refused(reason=2162, about="QM1")))
    with pytest.raises(trigmon.QMgrStopping):
        qm.call(Ping())
    with pytest.raises(trigmon.ConnectionBroken, match="ended the connection: QM1"):
        qm.call(Ping())


def test_the_last_word_is_heard_where_the_link_takes_no_more_calls(peer):
    goodbye = codec.encode_response(0, Refused(reason=2162, about="QM1"))
    qm = connected(peer, codec.encode_response(1, Done()) + goodbye)
    assert qm.call(Ping()) == Done()
    time.sleep(0.1)  # until the peer has hung up
    with pytest.raises(trigmon.QMgrStopping):
        qm.call(Ping())
    assert not qm.alive


def test_a_call_longer_than_the_queue_manager_reads_is_refused_before_it_is_sent(peer):
    small = codec.encode_welcome(codec.Welcome(protocol=1, q_mgr_name="QM1", frame_limit=200))
    qm = trigmon.connect(peer(small, codec.encode_response(1, Done())))
    with pytest.raises(trigmon.MsgTooBigForQMgr, match="reads at most 200"):
        qm.call(Put(q_name="Q", data=b"x" * 200))
    assert qm.call(Ping()) == Done()
    qm.drop()


def test_a_value_no_frame_can_hold_is_refused_before_it_is_sent(peer):
    qm = connected(peer, codec.encode_response(1, Done()))
    with pytest.raises(TypeError):
        qm.call(Put(q_name="Q", data=object()))
    assert qm.call(Ping()) == Done()
    qm.drop()


@pytest.mark.parametrize(
    ("rung", "raised"),
    # Python takes an OSError of a handler for one of the socket's: the connection is over all the same.
    [(ZeroDivisionError, ZeroDivisionError), (InterruptedError, trigmon.ConnectionBroken)],
)
def test_a_waiting_get_cut_off_by_a_signal_ends_the_connection_and_the_message_is_not_lost(
    qm, q_name, shared_daemon, rung, raised
):
    def ring(*_):
        raise rung

    before = signal.signal(signal.SIGUSR1, ring)
    bell = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with pytest.raises(raised), shared_daemon.connect() as other:
            queue = other.open(q_name, "input_shared")
            bell.start()
            queue.get(wait_interval_ms=-1, syncpoint=True)
    finally:
        bell.join()
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(trigmon.ConnectionBroken):
        other.commit()
    qm.put(q_name, b"one")
    with qm.open(q_name, "input_exclusive") as queue:
        assert queue.get(wait_interval_ms=5000).data == b"one"


def test_a_killed_queue_manager_breaks_the_link_of_a_waiting_get(daemon):
    killed = daemon()
    kill = threading.Timer(0.3, killed.kill)
    with pytest.raises(trigmon.ConnectionBroken):
        qm = killed.connect()
        with qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "input_shared") as queue:
            kill.start()
            began = time.monotonic()
            queue.get(wait=True)
    assert time.monotonic() - began < 10
    kill.join()


class TestACallHasALimit:
    def test_no_answer_in_time_is_a_broken_link_and_names_the_time(self, daemon):
        one = daemon()
        with one.connect(call_timeout_s=0.5) as qm:
            one.process.send_signal(signal.SIGSTOP)
            with pytest.raises(trigmon.ConnectionBroken, match=r"no answer within 0\.5 seconds") as caught:
                qm.call(Ping())
            one.process.send_signal(signal.SIGCONT)
            assert caught.value.reason == 2009
            assert not qm.alive
            qm.drop()

    def test_what_a_get_may_wait_comes_on_top(self, daemon):
        one = daemon()
        with one.connect(call_timeout_s=3) as qm:
            define(qm, "Q")
            with qm.open("Q", "input_shared") as q, pytest.raises(trigmon.NoMsgAvailable):
                q.get(wait_interval_ms=4000)
            qm.call(Ping())

    def test_a_call_that_is_too_large_for_who_does_not_read_ends_as_well(self, daemon):
        one = daemon()
        with one.connect(call_timeout_s=0.5) as qm:
            define(qm, "Q")
            one.process.send_signal(signal.SIGSTOP)
            with pytest.raises(trigmon.ConnectionBroken, match="no answer within"):
                qm.put("Q", bytes(4_000_000))
            one.process.send_signal(signal.SIGCONT)
            qm.drop()

    def test_a_large_call_over_a_slow_link_may_take_as_long_as_something_of_it_goes(self):
        """A message of 100 MB takes more than a minute at 10 Mbit/s."""
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        welcome = codec.Welcome(protocol=codec.PROTOCOL_VERSION, q_mgr_name="QM1")
        far.sendall(codec.encode_welcome(welcome))
        hello = codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id="c", application="a", pid=1, run_id="")
        transport = Transport(near, "slow", hello, 5.0, 0.5)
        is_sent = threading.Event()

        def read_slowly():
            while not is_sent.wait(0.02) and far.recv(4096):
                pass

        reader = threading.Thread(target=read_slowly)
        reader.start()
        try:
            began = time.monotonic()
            transport.send(Put(q_name="Q", data=bytes(400_000)))
            assert time.monotonic() - began > 0.6
        finally:
            is_sent.set()
            reader.join()
            near.close()
            far.close()

    def test_the_environment_may_say_it(self, monkeypatch, qm):
        monkeypatch.setenv("TRIGMON_CALL_TIMEOUT", "soon")
        with pytest.raises(ValueError, match="TRIGMON_CALL_TIMEOUT=soon: it is a number of seconds"):
            trigmon.connect("unix:/nowhere")
        monkeypatch.setenv("TRIGMON_CALL_TIMEOUT", "0")
        assert address._call_timeout_s() == 0
        monkeypatch.delenv("TRIGMON_CALL_TIMEOUT")
        assert address._call_timeout_s() == 60


class TestSeveralAddresses:
    def test_the_first_that_serves_is_taken(self, daemon):
        one = daemon()
        with trigmon.connect(f"unix:/nowhere, {one.address}") as qm:
            assert qm.q_mgr_name == one.name

    def test_where_none_serves_each_is_named(self):
        with pytest.raises(trigmon.QMgrNotAvailable, match=r"/nowhere.*; .*/elsewhere"):
            trigmon.connect("unix:/nowhere,unix:/elsewhere")
