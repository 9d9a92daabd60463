"""A get of the C library that asks more than once, while another program takes messages in between."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.mqi.mqi_calls import INPUT, OUTPUT, Block, MqiError
from tests.mqi.test_c_properties import IN_HANDLE, STRING, made, set_value

GET = b"\xa3get"
"""The tag of the call in its frame."""


def frame(link):
    """Returns a frame with its length, empty at the end of the link."""
    head = link.recv(4, socket.MSG_WAITALL)
    return head and head + link.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


@pytest.fixture
def between(mqi, shared_daemon, monkeypatch, tmp_path):
    """Connects through a relay that calls ``before(number)`` before it passes on a get; numbers count from 1."""
    path, end = tmp_path / "s", []
    listener = socket.create_server(str(path), family=socket.AF_UNIX)

    def relay(before):
        program, _ = listener.accept()
        manager = socket.socket(socket.AF_UNIX)
        manager.connect(str(shared_daemon.home / ".run" / "QM1" / "mq.sock"))
        gets = 0
        with program, manager:
            while call := frame(program):
                if GET in call[:20]:
                    gets += 1
                    before(gets)
                manager.sendall(call)
                program.sendall(frame(manager))

    def connect(before):
        thread = threading.Thread(target=relay, args=(before,))
        thread.start()
        monkeypatch.setenv("TRIGMON_QMGR", f"unix:{path}")
        hconn = mqi.connect("", options=Block("MQCNO", 1, Options=0x40))
        end.append((hconn, thread))
        return hconn

    yield connect
    for hconn, thread in end:
        mqi.disconnect(hconn)
        thread.join(60)
    listener.close()


@pytest.fixture
def takes_before(mqi, q_name):
    """Makes what another program does: it takes a message before the get of a number."""
    other = mqi.shared()
    hobj = mqi.open(other, q_name, INPUT)
    yield lambda due: lambda number: mqi.get(other, hobj) if number == due else None
    mqi.disconnect(other)


@pytest.mark.parametrize("due", [2, 3])
def test_a_message_that_is_taken_in_between_is_passed_over_for_the_next(between, takes_before, mqi, q_name, due):
    hconn = between(takes_before(due))
    hobj, sent, taken = mqi.open(hconn, q_name, INPUT | OUTPUT), made(mqi, hconn), made(mqi, hconn)
    set_value(mqi, hconn, sent, "text", STRING, b"x" * 200)
    for data in (b"1", b"2"):
        mqi.put(hconn, hobj, data, pmo=Block("MQPMO", OriginalMsgHandle=sent))
    assert mqi.get(hconn, hobj, room=50, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken)).data == b"2"


def test_the_next_message_is_not_cut_where_it_is_longer_than_the_buffer(between, takes_before, mqi, q_name):
    hconn = between(takes_before(2))
    hobj, sent, taken = mqi.open(hconn, q_name, INPUT | OUTPUT), made(mqi, hconn), made(mqi, hconn)
    set_value(mqi, hconn, sent, "text", STRING, b"x" * 200)
    mqi.put(hconn, hobj, b"1", pmo=Block("MQPMO", OriginalMsgHandle=sent))
    mqi.put(hconn, hobj, b"y" * 100)
    assert mqi.get(hconn, hobj, room=8, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken)).reason == 2080
    assert mqi.get(hconn, hobj).data == b"y" * 100


def test_a_header_that_cannot_be_read_counts_against_the_buffer(mqi, q_name):
    hconn = mqi.shared()
    hobj, taken = mqi.open(hconn, q_name, INPUT | OUTPUT), made(mqi, hconn)
    numbers = (2, 60, 546, 1208)
    header = b"RFH " + b"".join(n.to_bytes(4, "little") for n in numbers) + b"MQSTR   " + bytes(4)
    header += (1208).to_bytes(4, "little") + (20).to_bytes(4, "little") + b"<usr><a>1</a></no>  "
    mqi.put(hconn, hobj, header + b"body", md=Block("MQMD", Format="MQHRF2", Encoding=546))
    assert mqi.get(hconn, hobj, room=8, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken)).reason == 2080
    assert mqi.get(hconn, hobj).data == header + b"body"
    with pytest.raises(MqiError):
        mqi.get(hconn, hobj)
    mqi.disconnect(hconn)
