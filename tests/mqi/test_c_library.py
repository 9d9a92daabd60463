"""The C library against a real queue manager: connections, objects, puts, gets, units of work, attributes."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading

import pytest

from tests.mqi.mqi_calls import ACCEPT, BROWSE, INPUT, INQUIRE, OUTPUT, SET, SYNCPOINT, WAIT, Block, MqiError
from tests.waiting import until

ALL = INPUT | OUTPUT | BROWSE | INQUIRE | SET


@pytest.fixture
def hconn(mqi):
    hconn = mqi.connect()
    yield hconn
    mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(hconn)))


def refused(call, *arguments, **named):
    with pytest.raises(MqiError) as raised:
        call(*arguments, **named)
    return raised.value.comp_code, raised.value.reason


def test_a_message_comes_back_as_it_was_put_with_its_descriptor(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    put = mqi.put(hconn, hobj, b"one", md=Block("MQMD", Format="MQSTR", CorrelId=b"c" * 24, ReplyToQ="R", Priority=3))
    got = mqi.get(hconn, hobj)
    assert (got.data, got.length, got.reason) == (b"one", 3, 0)
    assert (got.md.Format, got.md.CorrelId, got.md.ReplyToQ, got.md.Priority) == ("MQSTR", b"c" * 24, "R", 3)
    assert got.md.MsgId == put.MsgId != bytes(24)
    assert (got.md.PutDate, got.md.PutTime) == (put.PutDate, put.PutTime)
    assert (got.md.CodedCharSetId, got.gmo.ResolvedQName) == (1208, q_name)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_structures_of_each_version_are_taken_and_nothing_behind_them_is_written(mqi, hconn, q_name, version):
    od = Block("MQOD", version, ObjectName=q_name)
    hobj = mqi.open(hconn, q_name, ALL, block=od)
    mqi.put(hconn, hobj, b"x", md=Block("MQMD", min(version, 2)), pmo=Block("MQPMO", min(version, 3)))
    got = mqi.get(hconn, hobj, md=Block("MQMD", min(version, 2)), gmo=Block("MQGMO", version))
    assert got.data == b"x"
    assert od.ResolvedQName == (q_name if version >= 3 else "")


def test_a_short_buffer_leaves_the_message_and_says_how_long_it_is(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    mqi.put(hconn, hobj, b"123456")
    got = mqi.get(hconn, hobj, room=4)
    assert (got.comp_code, got.reason, got.length, got.data) == (1, 2080, 6, b"1234")
    cut = mqi.get(hconn, hobj, ACCEPT, room=4)
    assert (cut.comp_code, cut.reason, cut.length, cut.data) == (1, 2079, 6, b"1234")
    assert refused(mqi.get, hconn, hobj) == (2, 2033)


def test_units_of_work_are_committed_and_backed_out(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    mqi.put(hconn, hobj, b"gone", SYNCPOINT)
    mqi.ask("MQBACK", hconn)
    assert refused(mqi.get, hconn, hobj) == (2, 2033)
    mqi.put(hconn, hobj, b"stays", SYNCPOINT)
    mqi.ask("MQCMIT", hconn)
    assert mqi.get(hconn, hobj, SYNCPOINT).data == b"stays"
    mqi.ask("MQBACK", hconn)
    again = mqi.get(hconn, hobj, SYNCPOINT)
    assert (again.data, again.md.BackoutCount) == (b"stays", 1)
    assert mqi.call("MQBEGIN", hconn, None) == (2, 2128)
    mqi.ask("MQCMIT", hconn)
    assert mqi.call("MQBEGIN", hconn, Block("MQBO")) == (1, 2121)


def test_a_disconnect_commits_and_a_message_that_skips_backout_belongs_to_the_next_unit(mqi, q_name):
    first = mqi.connect()
    hobj = mqi.open(first, q_name, ALL)
    mqi.put(first, hobj, b"poison")
    assert mqi.get(first, hobj, SYNCPOINT | 0x80).data == b"poison"
    mqi.ask("MQBACK", first)
    mqi.put(first, hobj, b"kept", SYNCPOINT)
    mqi.disconnect(first)
    second = mqi.connect()
    hobj = mqi.open(second, q_name, ALL)
    assert mqi.get(second, hobj).data == b"kept"
    assert refused(mqi.get, second, hobj) == (2, 2033)
    mqi.disconnect(second)


def test_put1_and_a_dynamic_queue_by_a_model(mqi, hconn, q_name):
    mqi.ask("MQPUT1", hconn, Block("MQOD", ObjectName=q_name), Block("MQMD"), Block("MQPMO"), 2, b"p1")
    hobj = mqi.open(hconn, q_name, ALL)
    assert mqi.get(hconn, hobj).data == b"p1"
    od = Block("MQOD", ObjectName="SYSTEM.DEFAULT.MODEL.QUEUE", DynamicQName="REPLY.*")
    hobj = mqi.open(hconn, "", INPUT, block=od)
    assert od.ObjectName.startswith("REPLY.") and len(od.ObjectName) == 22
    mqi.close(hconn, hobj)


def test_ids_select_and_a_token_finds_the_message_again(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    for name in (b"a", b"b", b"c"):
        mqi.put(hconn, hobj, name, md=Block("MQMD", CorrelId=name * 24))
    assert mqi.get(hconn, hobj, md=Block("MQMD", CorrelId=b"b" * 24)).data == b"b"
    assert refused(mqi.get, hconn, hobj, md=Block("MQMD", CorrelId=b"b" * 24)) == (2, 2033)
    mqi.get(hconn, hobj, 0x10)
    seen = mqi.get(hconn, hobj, 0x20)
    assert seen.data == b"c"
    again = mqi.get(hconn, hobj, MatchOptions=0x20, MsgToken=seen.gmo.MsgToken)
    assert again.data == b"c"
    assert refused(mqi.get, hconn, hobj, MatchOptions=0x20, MsgToken=b"t" * 16) == (2, 2033)


def test_attributes_are_inquired_and_set_by_selectors(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    mqi.put(hconn, hobj, b"x")
    numbers, text = mqi.inquire(hconn, hobj, [3, 2016, 15, 10, 2013], 3, 48 + 64)
    assert (numbers, text) == ([1, 5000, 0], q_name.encode().ljust(48) + b" " * 64)
    assert mqi.inquire(hconn, hobj, [190, 184, 34, 3, 61, 188], 6)[0] == [0, 1, 0, 1, 0, 0]  # the same for all queues
    mqi.set(hconn, hobj, {10: 1})
    assert mqi.inquire(hconn, hobj, [10], 1)[0] == [1]
    assert refused(mqi.put, hconn, hobj, b"x") == (2, 2051)
    mqi.set(hconn, hobj, {10: 0})
    assert refused(mqi.inquire, hconn, hobj, [3, 15], 1) == (1, 2022)
    assert refused(mqi.inquire, hconn, hobj, [2016], 0, 10) == (1, 2008)
    assert refused(mqi.inquire, hconn, hobj, [9999], 1) == (2, 2067)
    manager = mqi.open(hconn, "", INQUIRE, ObjectType=5)
    numbers, text = mqi.inquire(hconn, manager, [31, 2, 2015], 2, 48)
    assert (numbers, text.strip()) == ([940, 1208], b"QM1")


def test_asynchronous_puts_are_counted_and_the_first_failure_is_named(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    for number in range(150):
        mqi.put(hconn, hobj, b"%d" % number, 0x10000)
    status = Block("MQSTS")
    mqi.ask("MQSTAT", hconn, 0, status)
    assert (status.PutSuccessCount, status.PutFailureCount, status.Reason) == (150, 0, 0)
    assert [mqi.get(hconn, hobj).data for _ in range(150)] == [b"%d" % number for number in range(150)]
    mqi.set(hconn, hobj, {10: 1})
    mqi.put(hconn, hobj, b"inhibited", 0x10000)
    mqi.ask("MQSTAT", hconn, 0, status)
    assert (status.PutFailureCount, status.CompCode, status.Reason, status.ObjectName) == (1, 2, 2051, q_name)
    mqi.ask("MQSTAT", hconn, 0, status)
    assert (status.PutFailureCount, status.Reason) == (0, 0)
    assert mqi.call("MQSTAT", hconn, 7, status) == (2, 2430)


@pytest.mark.parametrize(("call", "answer"), [("MQCMIT", (2, 2003)), ("MQDISC", (1, 2003))])
def test_a_unit_of_work_with_an_asynchronous_put_that_failed_is_backed_out(mqi, q_name, call, answer):
    one, other = mqi.shared(), mqi.shared()
    hobj, again = mqi.open(one, q_name, ALL), mqi.open(other, q_name, ALL)
    mqi.put(one, hobj, b"one", 0x10000 | SYNCPOINT)
    mqi.set(one, hobj, {10: 1})
    mqi.put(one, hobj, b"inhibited", 0x10000 | SYNCPOINT)
    assert mqi.call(call, ctypes.byref(ctypes.c_int32(one)) if call == "MQDISC" else one) == answer
    mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(one)))
    assert refused(mqi.get, other, again) == (2, 2033)
    mqi.disconnect(other)


def test_what_is_no_structure_or_no_handle_is_refused_by_its_own_reason(mqi, hconn, q_name):
    hobj = mqi.open(hconn, q_name, ALL)
    md, pmo, od = Block("MQMD"), Block("MQPMO"), Block("MQOD", ObjectName=q_name)
    wrong = ctypes.create_string_buffer(b"XXXX\x01\x00\x00\x00", 500)
    late = Block("MQMD")
    late.memory[4:8] = b"\x09\0\0\0"
    assert mqi.call("MQPUT", hconn, hobj, wrong, pmo, 0, None) == (2, 2026)
    assert mqi.call("MQPUT", hconn, hobj, late, pmo, 0, None) == (2, 2026)
    assert mqi.call("MQPUT", hconn, hobj, None, pmo, 0, None) == (2, 2026)
    assert mqi.call("MQPUT", hconn, hobj, md, wrong, 0, None) == (2, 2173)
    assert mqi.call("MQPUT", hconn, hobj, md, pmo, -1, None) == (2, 2005)
    assert mqi.call("MQPUT", hconn, hobj, md, pmo, 5, None) == (2, 2004)
    assert mqi.call("MQPUT", hconn, 4711, md, pmo, 0, None) == (2, 2019)
    assert mqi.call("MQPUT", 4711, hobj, md, pmo, 0, None) == (2, 2018)
    assert mqi.call("MQOPEN", hconn, wrong, 16, ctypes.byref(ctypes.c_int32())) == (2, 2044)
    assert mqi.call("MQGET", hconn, hobj, md, wrong, 0, None, None) == (2, 2186)
    assert mqi.call("MQCONNX", b"QM1".ljust(48), wrong, ctypes.byref(ctypes.c_int32())) == (2, 2139)
    assert mqi.call("MQPUT1", hconn, Block("MQOD", 2, ObjectName=q_name, RecsPresent=2), md, pmo, 0, None) == (2, 2154)
    elsewhere = Block("MQOD", ObjectName=q_name, ObjectQMgrName="QM9")
    assert mqi.call("MQPUT1", hconn, elsewhere, md, pmo, 0, None) == (2, 2087)
    assert mqi.call("MQPUT1", hconn, od, md, pmo, 1, b"x") == (0, 0)
    assert mqi.call("MQSUB", hconn, None, None, ctypes.byref(ctypes.c_int32())) == (2, 2298)


def test_a_queue_manager_is_found_by_name_by_default_and_by_a_channel_table(mqi, monkeypatch, tmp_path):
    assert refused(mqi.connect, "QM9") == (2, 2059)
    assert refused(mqi.connect, "no name") == (2, 2058)
    mqi.disconnect(mqi.connect(""))
    table = tmp_path / "ccdt.json"
    entry = {"name": "A", "type": "clientConnection", "clientConnection": {"queueManager": "QM1", "connection": []}}
    table.write_text(json.dumps({"channel": [entry]}))
    monkeypatch.setenv("MQCCDTURL", f"file://{table}")
    mqi.disconnect(mqi.connect("QM1"))
    mqi.disconnect(mqi.connect("*QM1"))
    assert refused(mqi.connect, "QM7") == (2, 2058)
    monkeypatch.setenv("MQSERVER", "CHANNEL/TCP/localhost(1414)")
    mqi.disconnect(mqi.connect("QM1"))
    assert refused(mqi.connect, "QM9") == (2, 2538)
    monkeypatch.setenv("MQSERVER", "CHANNEL/TCP/255.255.255.255(1414)")  # a host to which nothing can connect
    assert refused(mqi.connect, "QM1") == (2, 2538)
    for name in ("MQSERVER", "MQCCDTURL"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRIGMON_QMGR", "tls://255.255.255.255/QM1")
    assert refused(mqi.connect, "") == (2, 2059)
    monkeypatch.setenv("TRIGMON_QMGR", "tls://host:port/QM1")
    assert refused(mqi.connect, "") == (2, 2058)


def test_a_message_that_is_too_long_is_refused_before_it_is_looked_at(mqi, q_name, shared_daemon):
    program = (
        "import ctypes, os, sys; sys.path.insert(0, os.getcwd())\n"
        "from tests.mqi.mqi_calls import Block, Mqi\n"
        f"mqi = Mqi(ctypes.CDLL({mqi.loaded._name!r}))\n"
        "libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p\n"
        "length = 2**31 - 1\n"
        "nowhere = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(length), 0, 0x4022, -1, ctypes.c_long(0)))\n"
        "hconn = mqi.connect()\n"
        f"hobj = mqi.open(hconn, {q_name!r}, 0x10)\n"
        "print(mqi.call('MQPUT', hconn, hobj, Block('MQMD'), Block('MQPMO'), length, nowhere))\n"
    )
    argv = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(argv, env=shared_daemon.env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "(2, 2031)\n"), done.stderr


def test_a_handle_is_its_thread_s_own_unless_it_is_shared(mqi, q_name):
    own, shared = mqi.connect(), mqi.shared()
    ended = {}

    def use():
        ended["own"] = mqi.call("MQCMIT", own)
        ended["shared"] = mqi.call("MQCMIT", shared)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert ended == {"own": (2, 2018), "shared": (0, 0)}
    again = ctypes.c_int32()
    assert mqi.call("MQCONN", b"QM1".ljust(48), ctypes.byref(again)) == (1, 2002)
    assert again.value == own
    mqi.disconnect(own)
    assert mqi.call("MQCMIT", own) == (2, 2018)
    mqi.disconnect(shared)


def test_a_forked_child_has_no_connection_and_does_not_keep_its_parent_s_open(mqi, qm, q_name, shared_daemon):
    program = (
        "import ctypes, os, sys, time; sys.path.insert(0, os.getcwd())\n"
        "from tests.mqi.mqi_calls import Block, Mqi\n"
        f"mqi = Mqi(ctypes.CDLL({mqi.loaded._name!r}))\n"
        "hconn = mqi.connect()\n"
        f"mqi.put(hconn, mqi.open(hconn, {q_name!r}, 0x10), b'lost', 2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print(mqi.call('MQCMIT', hconn), flush=True)\n"
        "    os.close(1)\n"
        "    sys.stdin.read()\n"
        "os.waitpid(child, os.WNOHANG)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    argv = [sys.executable, "-W", "ignore", "-c", program]
    with subprocess.Popen(
        argv, env=shared_daemon.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.read() == "(2, 2018)\n"
        with qm.open(q_name, "inquire") as queue:
            until(lambda: queue.inquire("uncommitted_msgs")["uncommitted_msgs"] == 0)
        parent.stdin.close()


def test_a_waiting_get_blocks_its_own_connection_alone(mqi, q_name):
    waiting, other = mqi.shared(), mqi.shared()
    hobj = mqi.open(waiting, q_name, INPUT)
    out = mqi.open(other, q_name, OUTPUT)
    got = []
    thread = threading.Thread(
        target=lambda: got.append(mqi.get(waiting, hobj, WAIT, gmo=Block("MQGMO", Options=WAIT, WaitInterval=-1)).data)
    )
    thread.start()
    mqi.put(other, out, b"woken")
    thread.join(60)
    assert got == [b"woken"]
    mqi.disconnect(waiting)
    mqi.disconnect(other)


def test_a_lost_queue_manager_is_2009_and_a_new_connection_is_made_afterwards(daemon, loaded, monkeypatch):
    from tests.mqi.mqi_calls import Mqi

    one = daemon()
    monkeypatch.setenv("TRIGMON_HOME", str(one.home))
    monkeypatch.setenv("TRIGMON_QMGR", "QM1")
    mqi = Mqi(loaded)
    hconn = mqi.connect()
    one.kill()
    assert mqi.call("MQCMIT", hconn) == (2, 2009)
    assert mqi.call("MQCMIT", hconn) == (2, 2009)
    assert mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(hconn))) == (2, 2009)
    one.start()
    mqi.disconnect(mqi.connect())
