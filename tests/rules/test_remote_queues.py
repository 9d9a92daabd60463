"""Messages for a remote queue, to the byte, and what a handle on one says of itself."""

import struct

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Alter, DisplayHandles, Get, Inquire, Move, Open, Put, PutMany, Set
from trigmon.mq.descriptors import NO_ID, MessageDescriptor, date_and_time
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.mq.transmission_header import pack_xqh

OUT, IN, INQUIRE, SET = OpenOption.OUTPUT, OpenOption.INPUT_SHARED, OpenOption.INQUIRE, OpenOption.SET


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("XQ", usage="transmission")
    made.define("R", "QREMOTE", remote_q_name="ORDERS", remote_q_mgr_name="QM9", xmit_q_name="XQ", def_priority=4)
    yield made
    made.end()


def got(world, name="XQ", as_="mover", **options):
    return world.did(Get(handle=world.open(name, IN, as_=as_), **options), as_)


def refusal(world, call, as_="app"):
    reply = world.do(call, as_)
    assert isinstance(reply, Refused), reply
    return Reason(reply.reason)


def number(raw, offset):
    return struct.unpack_from("<i", raw, offset)[0]


def test_a_message_lies_behind_428_bytes_and_each_of_them_is_right(world):
    now = world.clock.now()
    sent = {"expiry": 600, "format": "MQSTR", "reply_to_q": "REPLIES", "correl_id": b"c" * 24, "report": 0x80}
    receipt = world.put("R", b"hello", **sent)
    message = got(world)
    day, clock = date_and_time(now)
    expected = (
        b"XQH "
        + struct.pack("<i", 1)
        + b"ORDERS".ljust(48)
        + b"QM9".ljust(48)
        + b"MD  "
        + struct.pack("<7i", 1, 0x80, 8, 600, 0, 546, 1208)
        + b"MQSTR   "
        + struct.pack("<2i", 4, 0)
        + receipt.msg_id
        + b"c" * 24
        + struct.pack("<i", 0)
        + b"REPLIES".ljust(48)
        + b"QM1".ljust(48)
        + b"root".ljust(12)
        + bytes(32)
        + b" " * 32
        + struct.pack("<i", 6)
        + b"app".ljust(28)
        + day.encode()
        + clock.encode()
        + b" " * 4
    )
    assert len(expected) == 428
    assert message.data == expected + b"hello"
    assert message.data_length == 433


def test_the_separate_descriptor_is_the_queue_managers_and_leads_back_to_the_message(world):
    receipt = world.put(
        "R", b"hello", expiry=600, priority=6, persistence=1, msg_type=1, reply_to_q="REPLIES", report=0x80
    )
    md = got(world).descriptor
    assert (md.format, md.encoding, md.coded_char_set_id) == ("MQXMIT", 546, 1208)
    assert md.msg_id not in (receipt.msg_id, NO_ID)
    assert md.correl_id == receipt.msg_id
    assert (md.put_appl_type, md.put_appl_name, md.put_ms) == (7, "QM1", receipt.put_ms)
    assert (md.expiry, md.priority, md.persistence, md.msg_type, md.report) == (600, 6, 1, 1, 0x80)
    assert (md.reply_to_q, md.reply_to_q_mgr, md.user_identifier) == ("REPLIES", "QM1", "root")
    assert (md.group_id, md.msg_seq_number, md.offset, md.msg_flags, md.original_length) == (NO_ID, 1, 0, 0, -1)
    assert (receipt.priority, receipt.persistence) == (6, 1)


def test_both_expiry_fields_say_the_time_that_is_left(world):
    world.put("R", expiry=600)
    world.clock.advance(10_050)
    message = got(world, options=int(GetOption.NO_WAIT))
    assert message.descriptor.expiry == number(message.data, 120) == 499


def test_the_embedded_one_may_elapse_before_the_separate_one_and_is_zero_then(world):
    data = pack_xqh("ORDERS", "QM9", MessageDescriptor(expiry=10))
    world.put("XQ", data, format="MQXMIT", expiry=100)
    world.clock.advance(2000)
    message = got(world)
    assert (message.descriptor.expiry, number(message.data, 120)) == (80, 0)


def test_one_that_lies_on_an_ordinary_queue_ages_as_well_and_short_data_is_no_error(world):
    world.define("Q")
    world.put("Q", pack_xqh("ORDERS", "QM9", MessageDescriptor(expiry=100)), format="MQXMIT")
    world.put("Q", b"short", format="MQXMIT")
    world.clock.advance(1000)
    assert number(got(world, "Q").data, 120) == 90
    assert got(world, "Q").data == b"short"


def test_what_is_cut_was_aged_before(world):
    world.put("R", expiry=100)
    world.clock.advance(1000)
    message = got(world, options=int(GetOption.ACCEPT_TRUNCATED_MSG), max_length=124)
    assert (len(message.data), message.data_length, number(message.data, 120)) == (124, 429, 90)


def test_a_put_straight_onto_a_transmission_queue_is_checked(world):
    put = Put(q_name="XQ", data=b"m", descriptor=MessageDescriptor(format="MQXMIT"))
    assert refusal(world, put) == Reason.XQH_ERROR
    data = pack_xqh("ORDERS", "QM9", MessageDescriptor(expiry=0))
    assert refusal(world, Put(q_name="XQ", data=data, descriptor=put.descriptor)) == Reason.EXPIRY_ERROR
    assert got_depth(world) == 0


def got_depth(world):
    return world.did(Inquire(handle=world.open("XQ", INQUIRE), names=["current_q_depth"])).values["current_q_depth"]


def test_many_go_in_one_frame_and_in_one_unit_of_work(world):
    world.did(PutMany(q_name="R", bodies=[b"one", b"two"], options=2, unit=1))
    assert refusal(world, Get(handle=world.open("XQ", IN, as_="mover")), "mover") == Reason.NO_MSG_AVAILABLE
    world.did(PutMany(handle=world.open("R", OUT), bodies=[b"three"]))
    assert got(world).data[428:] == b"three"


def test_a_handle_says_the_transmission_queue_and_inquires_of_the_remote_one(world):
    opened = world.did(Open(object_name="R", options=OUT | INQUIRE | SET))
    assert opened.q_name == "XQ"
    values = world.did(Inquire(handle=opened.handle)).values
    assert (values["name"], values["q_type"], values["remote_q_mgr_name"]) == ("R", "remote", "QM9")
    reply = world.did(Inquire(handle=opened.handle, names=["current_q_depth"]))
    assert (reply.values, reply.warning) == ({"current_q_depth": -1}, Reason.SELECTOR_NOT_FOR_TYPE)
    assert refusal(world, Set(handle=opened.handle, attributes={"inhibit_get": "inhibited"})) == Reason.SELECTOR_ERROR
    world.did(Set(handle=opened.handle, attributes={"inhibit_put": "inhibited"}))
    assert refusal(world, Put(handle=opened.handle, data=b"m")) == Reason.PUT_INHIBITED
    assert [row["name"] for row in world.did(DisplayHandles(q_name="XQ")).rows] == ["XQ"]


def test_an_operator_may_move_messages_to_a_remote_queue_with_the_time_they_have_left(world):
    world.define("Q")
    world.put("Q", b"m", expiry=100, priority=2)
    world.clock.advance(1000)
    assert world.did(Move(q_name="Q", to_q_name="R"), "operator").count == 1
    world.clock.advance(1000)
    message = got(world)
    assert message.data[428:] == b"m"
    assert message.descriptor.expiry == number(message.data, 120) == 80
    assert number(message.data, 104 + 40) == 2


def test_plain_messages_are_not_moved_onto_a_transmission_queue_nor_to_a_model(world):
    world.define("Q")
    world.define("M", "QMODEL")
    world.put("Q")
    assert refusal(world, Move(q_name="Q", to_q_name="XQ"), "operator") == Reason.XQH_ERROR
    assert refusal(world, Move(q_name="Q", to_q_name="M"), "operator") == Reason.Q_TYPE_ERROR
    assert got(world, "Q").data == b"m"


def test_a_priority_above_the_highest_is_kept_in_the_header_with_the_warning(world):
    receipt = world.put("R", priority=12)
    assert receipt.warning == Reason.PRIORITY_EXCEEDS_MAXIMUM
    message = got(world)
    assert number(message.data, 104 + 40) == 12


def test_definitions_survive_a_restart_and_lead_the_same_way(world):
    world.did(Alter(object_type="QMGR", name="", attributes={"def_xmit_q_name": "XQ"}), "operator")
    world.did(Alter(object_type="QREMOTE", name="R", attributes={"xmit_q_name": ""}), "operator")
    world.restart()
    world.put("R", b"after")
    assert got(world).data[428:] == b"after"


def test_what_a_message_is_in_its_group_follows_the_header_and_not_the_separate_descriptor(world):
    receipt = world.put("R", b"hello", format="MQSTR", group_id=b"g" * 24, msg_seq_number=7, msg_flags=8)
    assert (receipt.group_id, receipt.msg_seq_number, receipt.offset) == (b"g" * 24, 7, 0)
    message = got(world)
    md = message.descriptor
    assert (md.group_id, md.msg_seq_number, md.offset, md.msg_flags) == (NO_ID, 1, 0, 0)
    assert message.data[136:144] == b"MQHMDE  "
    extension = (
        b"MDE "
        + struct.pack("<4i", 2, 72, 546, 1208)
        + b"MQSTR   "
        + struct.pack("<i", 0)
        + b"g" * 24
        + struct.pack("<4i", 7, 0, 8, -1)
    )
    assert message.data[428:] == extension + b"hello"


def test_a_group_put_to_a_remote_queue_is_counted_on_like_any_other(world):
    handle = world.open("R", OUT)
    group = MessageDescriptor(msg_flags=8)
    replies = [world.did(Put(handle=handle, descriptor=group, options=0x8000, data=b"x")) for _ in range(3)]
    assert [reply.msg_seq_number for reply in replies] == [1, 2, 3]
    assert len({reply.group_id for reply in replies}) == 1


def test_a_message_of_a_group_that_is_moved_takes_its_place_in_the_group_along(world):
    world.define("FROM")
    world.put("FROM", b"hello", group_id=b"g" * 24, msg_seq_number=7, msg_flags=8)
    world.did(Move(q_name="FROM", to_q_name="R"), "operator")
    data = got(world).data
    assert data[136:144] == b"MQHMDE  "
    assert data[460:484] == b"g" * 24
    assert data[500:] == b"hello"
