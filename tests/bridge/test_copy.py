"""``trigmon bridge copy`` between two real queue managers: what a message keeps, and what holds a copy up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from msgspec.structs import asdict, replace

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.two_queue_managers import CONFIG, DEAD, TwoQueueManagers, both, depth, taken
from tests.daemons import define, queue_managers
from tests.waiting import until
from trigmon.bridge.copy_here import record_queue
from trigmon.mq.calls import Alter, Put
from trigmon.mq.descriptors import MessageDescriptor, padded_id, unpack_dlh
from trigmon.mq.enums import PutOption
from trigmon.mq.reasons import Reason
from trigmon.mq.rfh2 import with_typed_properties, without_typed_properties

pytestmark = NEEDS_IBMMQ

EACH_FIELD = MessageDescriptor(
    report=0x4000000,  # DISCARD_MSG
    msg_type=1,  # a request
    expiry=360_000,
    feedback=0,
    encoding=0x311,
    coded_char_set_id=500,
    format="PAYFMT",
    priority=7,
    persistence=1,
    msg_id=padded_id(b"\x01\xffmessage"),
    correl_id=padded_id(b"\x02\xfecorrel"),
    reply_to_q="REPLIES",
    reply_to_q_mgr="QM9",
    user_identifier="payuser",
    accounting_token=b"\x16\x01\x05account".ljust(32, b"\0"),
    appl_identity_data="identity data",
    put_appl_type=6,
    put_appl_name="payroll",
    put_ms=1_700_000_000_120,
    appl_origin_data="ORIG",
    group_id=padded_id(b"\x03\xfdgroup"),
    msg_seq_number=3,
    msg_flags=0x18,  # the last message of a group
)
PROPERTIES = {
    "usr.colour": ("", "grün & <blue>"),
    "usr.count": ("i4", "-7"),
    "usr.nothing": ("", None),
    "mcd.Msd": ("", "jms_text"),
    "own.group.value": ("boolean", "1"),
}


two = pytest.fixture(both, scope="module")


def put_there(two, name, *messages):
    """Puts messages on a queue there as they are."""
    bits = int(PutOption.SET_ALL_CONTEXT)
    with two.there.connect() as qm, qm.open(name, "output", "set_all_context") as queue:
        for descriptor, data in messages:
            qm.call(Put(handle=queue.handle, descriptor=descriptor, data=data, options=bits))


def test_every_field_of_the_descriptor_and_every_byte_is_kept(two):
    two.define("FIELDS")
    body = bytes(range(256)) + "EBCDIC".encode("cp500")
    put_there(two, "FIELDS", (EACH_FIELD, body), (replace(EACH_FIELD, persistence=0, msg_id=padded_id(b"2")), b""))
    assert two.copied("FIELDS")["copied"] == 2
    one, other = taken(two.here, "FIELDS")
    assert one.data == body
    assert 0 < one.expiry_tenths <= EACH_FIELD.expiry
    differs = {"expiry", "backout_count", "traceparent", "original_length"}
    expected = {key: value for key, value in asdict(EACH_FIELD).items() if key not in differs}
    assert {key: value for key, value in asdict(one.descriptor).items() if key not in differs} == expected
    assert (other.data, other.persistence) == (b"", 0)
    assert depth(two.there, "FIELDS") == 0


def test_properties_of_every_type_are_kept_with_what_is_behind_them(two):
    two.define("PROPERTIES")
    plain = MessageDescriptor(format="MQSTR", coded_char_set_id=500, encoding=0x311)
    put_there(two, "PROPERTIES", with_typed_properties(plain, "ü".encode("cp500"), PROPERTIES))
    two.copied("PROPERTIES")
    (message,) = taken(two.here, "PROPERTIES")
    descriptor, data, found = without_typed_properties(message.descriptor, message.data)
    assert found == PROPERTIES
    assert (data, descriptor.format) == ("ü".encode("cp500"), "MQSTR")
    assert (descriptor.coded_char_set_id, descriptor.encoding) == (500, 0x311)


def test_properties_that_a_program_sets_by_a_message_handle_are_kept(two):
    two.define("HANDLE")
    program = """
import ibmmq as mq
qmgr = mq.connect("QM9")
handle = mq.MessageHandle(qmgr)
handle.properties.set("colour", "red")
pmo = mq.PMO(Version=3, OriginalMsgHandle=handle.msg_handle)
mq.Queue(qmgr, "HANDLE", mq.CMQC.MQOO_OUTPUT).put(b"with", mq.MD(), pmo)
qmgr.disconnect()
"""
    env = two.env | {"PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=60)
    two.copied("HANDLE")
    (message,) = taken(two.here, "HANDLE")
    assert without_typed_properties(message.descriptor, message.data)[1:] == (b"with", {"usr.colour": ("", "red")})


def test_a_large_message_and_many_small_ones_keep_their_order(two):
    two.define("LARGE", here={"max_msg_length": 4_194_304}, there={"max_msg_length": 4_194_304})
    bodies = [b"first", b"x" * 3_000_000, *(b"%d" % number for number in range(250)), b"y" * 100_000, b"last"]
    with two.there.connect() as qm, qm.open("LARGE", "output") as queue:
        queue.put_many(bodies)
    assert two.copied("LARGE")["copied"] == len(bodies)
    assert [message.data for message in taken(two.here, "LARGE")] == bodies


def test_nothing_of_a_copy_is_left_on_record_at_its_end(two):
    two.define("ENDS")
    put_there(two, "ENDS", (MessageDescriptor(), b"m"))
    two.copied("ENDS")
    assert depth(two.here, record_queue("ENDS@QM9")) == 0


def test_a_full_queue_here_holds_the_copy_up_and_nothing_is_lost(two):
    two.define("FULL", here={"max_q_depth": 3})
    put_there(two, "FULL", *((MessageDescriptor(), b"%d" % number) for number in range(8)))
    with two.copying("FULL@QM9"):
        (row,) = until(lambda: [row for row in two.copies() if row["problem"]])
        assert row["state"] == "hindered"
        assert "2053" in row["problem"]
        assert (depth(two.here, "FULL"), depth(two.there, "FULL")) == (3, 5)
        got = taken(two.here, "FULL")
        while len(got) < 8:
            got += taken(two.here, "FULL")
        until(lambda: [row for row in two.copies() if not row["problem"] and row["copied"] == 8])
    assert sorted(message.data for message in got) == [b"%d" % number for number in range(8)]
    # Room is asked for before a message is got: waiting costs no backout there.
    assert {message.backout_count for message in got} == {0}


def test_a_queue_that_takes_no_puts_holds_the_copy_up_and_its_lag_grows_with_the_clock(two):
    two.define("SHUT", here={"inhibit_put": "inhibited"})
    put_there(two, "SHUT", (MessageDescriptor(), b"m"))
    with two.copying("SHUT@QM9"):
        (row,) = until(lambda: [row for row in two.copies() if row["problem"]])
        assert "trigmon queue alter SHUT inhibit_put=allowed" in row["problem"]
        until(lambda: [more for more in two.copies() if more["lag_ms"] > row["lag_ms"] + 1000])
        with two.here.connect() as qm:
            qm.call(Alter(object_type="QLOCAL", name="SHUT", attributes={"inhibit_put": "allowed"}))
        until(lambda: depth(two.here, "SHUT") == 1)
        until(lambda: [row for row in two.copies() if not row["problem"] and row["lag_ms"] == 0])


def test_a_message_that_the_queue_never_takes_goes_to_the_dead_letter_queue_and_the_others_go_on(two):
    two.define("SHORT", here={"max_msg_length": 10})
    with two.here.connect() as qm:
        qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": DEAD}))
    put_there(two, "SHORT", (MessageDescriptor(), b"1"), (EACH_FIELD, b"x" * 11), (MessageDescriptor(), b"2"))
    said = two.copied("SHORT")
    assert (said["copied"], said["put_aside"]) == (3, 1)
    assert [message.data for message in taken(two.here, "SHORT")] == [b"1", b"2"]
    (dead,) = taken(two.here, DEAD)
    header, data = unpack_dlh(dead.data)
    assert (header.reason, header.dest_q_name, header.format) == (Reason.MSG_TOO_BIG_FOR_Q, "SHORT", "PAYFMT")
    assert (data, dead.msg_id, dead.user_identifier) == (b"x" * 11, EACH_FIELD.msg_id, "payuser")


def test_without_a_dead_letter_queue_such_a_message_holds_the_copy_up(two):
    two.define("WAITS", here={"max_msg_length": 10})
    with two.here.connect() as qm:
        qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": ""}))
    put_there(two, "WAITS", (EACH_FIELD, b"x" * 11), (MessageDescriptor(), b"2"))
    with two.copying("WAITS@QM9"):
        (row,) = until(lambda: [row for row in two.copies() if row["problem"]])
        for text in ("2030", EACH_FIELD.msg_id.hex(), "of 11 bytes", "max_msg_length", "dead_letter_q_name"):
            assert text in row["problem"]
        with two.here.connect() as qm:
            qm.call(Alter(object_type="QLOCAL", name="WAITS", attributes={"max_msg_length": 100}))
        until(lambda: depth(two.here, "WAITS") == 2)


def test_the_status_shows_how_a_copy_is_as_long_as_it_runs(two):
    two.define("SHOWN")
    with two.copying("SHOWN@QM9", "--to", "SHOWN"):
        put_there(two, "SHOWN", *((MessageDescriptor(), b"m") for _ in range(20)))
        (row,) = until(lambda: [row for row in two.copies() if row["copied"] == 20])
        assert (row["name"], row["q_name"], row["state"], row["left"]) == ("SHOWN@QM9", "SHOWN", "copying", 0)
        text = two.here.trigmon("status").stdout
        assert "SHOWN@QM9" in text
        shown = json.loads(two.here.trigmon("status", "--output", "json").stdout)["copies"]
        assert (shown[0]["copied"], shown[0]["put_aside"]) == (20, 0)
        assert 1 <= shown[0]["batches"] <= 20
    until(lambda: not two.copies())


def test_an_alias_leads_to_another_queue(two):
    with two.here.connect() as qm:
        define(qm, "BEHIND")
        define(qm, "ALIASED", "QALIAS", base_q_name="BEHIND")
    with two.there.connect() as qm:
        define(qm, "ALIASED")
        qm.put("ALIASED", b"m")
    assert two.copied("ALIASED")["copied"] == 1
    assert depth(two.here, "BEHIND") == 1


def test_trigmon_run_copies_the_queues_that_a_bridge_names(tmp_path, library_directory):
    config = CONFIG + "    copy_queues: [CHILD, SECOND]\n"
    with queue_managers(lambda: tmp_path) as make:
        two = TwoQueueManagers(make, tmp_path, library_directory, config=config)
        for name in ("CHILD", "SECOND"):
            two.define(name)
            put_there(two, name, (MessageDescriptor(), b"m"))
        until(lambda: depth(two.here, "CHILD") == depth(two.here, "SECOND") == 1)
        until(lambda: {row["name"] for row in two.copies()} == {"CHILD@QM9", "SECOND@QM9"})
        assert two.here.stop() == 0
        two.here.start(env=two.env)
        put_there(two, "CHILD", (MessageDescriptor(), b"n"))
        until(lambda: depth(two.here, "CHILD") == 1)


def test_two_copies_of_a_queue_exclude_one_another(two):
    two.define("ONCE")
    with two.copying("ONCE@QM9"):
        until(lambda: two.copies())
        second = two.start("ONCE@QM9", text=True)
        try:
            line = second.stderr.readline()
            assert "another copy of ONCE@QM9 is under way here" in line
        finally:
            second.send_signal(signal.SIGINT)
            assert second.wait(30) == 0
            second.stdout.close()
            second.stderr.close()


@pytest.mark.parametrize(
    ("queue", "status", "text"),
    [
        ("NOWHERE@QM9", 1, "NOWHERE@QM9: MQOPEN of NOWHERE for exclusive input: 2085 MQRC_UNKNOWN_OBJECT_NAME"),
        ("HERE.ONLY@QM9", 1, "2085"),
        ("THERE.ONLY@MAINFRAME", 3, "THERE.ONLY"),
        ("Q@NOBODY", 2, "'NOBODY' is no bridge of the settings"),
        ("Q", 2, "'Q' is no QUEUE@QM"),
    ],
)
def test_what_is_wrong_at_the_beginning_ends_the_command_with_the_object_and_what_helps(two, queue, status, text):
    with two.here.connect() as qm, two.there.connect() as other:
        for connection, name in ((qm, "HERE.ONLY"), (other, "THERE.ONLY"), (qm, "NOWHERE")):
            define_once(connection, name)
    done = two.copy(queue, "--until-empty")
    assert done.returncode == status, done.stderr
    assert text in done.stderr


def define_once(connection, name):
    from trigmon.mq.calls import Define

    connection.call(Define(object_type="QLOCAL", name=name, replace=True))


def test_a_program_that_ends_by_an_error_in_the_middle_of_a_batch_gives_it_back(two):
    two.define("BROKEN")
    put_there(two, "BROKEN", (MessageDescriptor(), b"m"))
    program = """
from trigmon.bridge.connection import RemoteConnection
from trigmon.bridge.copy_there import RemoteQueue
from trigmon.setting_sections import BridgeSettings

queue = RemoteQueue(RemoteConnection("MAINFRAME", BridgeSettings(queue_manager="QM9")), "BROKEN")
queue.open()
assert queue.take(0).data == b"m"
raise SystemExit(3)
"""
    done = subprocess.run([sys.executable, "-c", program], env=two.env, timeout=60, check=False)
    assert done.returncode == 3
    (message,) = until(lambda: taken(two.there, "BROKEN"))
    assert message.backout_count == 1


def test_a_stop_in_the_middle_ends_in_order(two):
    two.define("STOPPED")
    with two.there.connect() as qm, qm.open("STOPPED", "output") as queue:
        queue.put_many([b"%d" % number for number in range(3000)])
    with two.copying("STOPPED@QM9"):
        until(lambda: depth(two.here, "STOPPED"))
    here, there = taken(two.here, "STOPPED"), taken(two.there, "STOPPED")
    assert sorted(int(message.data) for message in [*here, *there]) == list(range(3000))
    assert {message.backout_count for message in there} <= {0}
    assert depth(two.here, record_queue("STOPPED@QM9")) == 0
