"""Report messages to the byte, the bits that nobody knows, and what becomes of a report that nobody takes."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Get, GetMany, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor, padded_id, unpack_dlh
from trigmon.mq.enums import Feedback, GetOption, OpenOption, ReportOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot

IN = OpenOption.INPUT_SHARED


@pytest.fixture
def world(tmp_path):
    made = World("memory", tmp_path)
    made.define("Q")
    made.define("REPLY")
    made.define("DEAD")
    made.define("XQ", usage="transmission")
    made.define("R", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="XQ")
    made.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "DEAD"}), "operator")
    yield made
    made.qm.stop()


def put(world, q_name="Q", **fields):
    return world.do(Put(q_name=q_name, data=b"hello", descriptor=MessageDescriptor(**fields)))


def all_of(world, q_name):
    handle = world.open(q_name, IN, as_="reader")
    found = []
    while isinstance(reply := world.do(Get(handle=handle), "reader"), WasGot):
        found.append(reply)
    return found


class TestUnknownBits:
    @pytest.mark.parametrize("bit", [0x1000_0000, 0x0010_0000, 0x0008_0000, 0x0004_0000])
    def test_some_are_refused_wherever_the_message_goes(self, world, bit):
        for q_name in ("Q", "R"):
            reply = put(world, q_name, report=bit)
            assert isinstance(reply, Refused)
            assert reply.reason == Reason.REPORT_OPTIONS_ERROR

    @pytest.mark.parametrize("bit", [0x2000_0000, 0x4000_0000, 0x10, 0x08, -0x7FFF_FFFF])
    def test_some_are_accepted_with_a_warning_and_kept(self, world, bit):
        reply = put(world, report=bit, reply_to_q="REPLY")
        assert reply.warning == Reason.UNKNOWN_REPORT_OPTION
        (got,) = all_of(world, "Q")
        assert got.descriptor.report == bit

    @pytest.mark.parametrize("bit", [0x8000, 0x1_0000, 0x2_0000])
    def test_some_only_on_their_way_to_another_queue_manager(self, world, bit):
        assert put(world, report=bit).reason == Reason.REPORT_OPTIONS_ERROR
        assert put(world, "R", report=bit).warning == Reason.UNKNOWN_REPORT_OPTION

    @pytest.mark.parametrize("report", [2**31, -(2**31), 2**40])
    def test_what_is_no_long_is_refused(self, world, report):
        assert put(world, report=report, reply_to_q="REPLY").reason == Reason.REPORT_OPTIONS_ERROR


def test_a_report_is_the_queue_managers_and_keeps_the_senders_identity_and_the_place_in_a_group(world):
    descriptor = MessageDescriptor(
        report=ReportOption.COA_WITH_FULL_DATA, reply_to_q="REPLY", priority=4, persistence=1, format="MQSTR"
    )
    world.did(Put(q_name="Q", data=b"hello", descriptor=descriptor), "sender")
    (original,) = all_of(world, "Q")
    (got,) = all_of(world, "REPLY")
    about, report = original.descriptor, got.descriptor
    copied = (
        *("encoding", "coded_char_set_id", "format", "priority", "persistence", "user_identifier", "accounting_token"),
        *("appl_identity_data", "group_id", "msg_seq_number", "offset", "msg_flags"),
    )
    assert [getattr(report, name) for name in copied] == [getattr(about, name) for name in copied]
    assert (report.feedback, report.correl_id, got.data) == (Feedback.COA, about.msg_id, b"hello")
    assert (report.put_appl_name, report.reply_to_q_mgr, report.original_length) == ("QM1", "QM1", 5)
    assert report.msg_id != about.msg_id
    assert report.put_ms == world.clock.now()


def test_an_expired_transmission_is_reported_to_its_sender_by_the_ids_of_its_own_message(world):
    mine = padded_id("MINE")
    both = ReportOption.EXPIRATION | ReportOption.PASS_MSG_ID | ReportOption.PASS_CORREL_ID
    put(world, "R", report=ReportOption.EXPIRATION, reply_to_q="REPLY", msg_id=mine, expiry=1)
    put(world, "R", report=both, reply_to_q="REPLY", msg_id=mine, correl_id=padded_id("C"), expiry=1)
    world.clock.advance(100)
    assert all_of(world, "XQ") == []
    plain, passed = all_of(world, "REPLY")
    assert plain.descriptor.correl_id == mine
    assert (passed.descriptor.msg_id, passed.descriptor.correl_id) == (mine, padded_id("C"))


@pytest.mark.parametrize(
    ("reply_to", "reason", "where"),
    [
        ({"reply_to_q": "NONE"}, Reason.UNKNOWN_OBJECT_NAME, ("NONE", "QM1")),
        ({"reply_to_q": "FULL"}, Reason.Q_FULL, ("FULL", "QM1")),
        ({"reply_to_q": "X", "reply_to_q_mgr": "QM8"}, Reason.UNKNOWN_REMOTE_Q_MGR, ("X", "QM8")),
        ({"reply_to_q": "X", "reply_to_q_mgr": "REPLY"}, Reason.XMIT_Q_USAGE_ERROR, ("X", "REPLY")),
    ],
)
def test_an_undelivered_report_lies_on_the_dead_letter_queue_with_its_reason(world, reply_to, reason, where):
    world.define("FULL", max_q_depth=0)
    put(world, report=ReportOption.COA_WITH_FULL_DATA, format="MQSTR", **reply_to)
    (dead,) = all_of(world, "DEAD")
    header, rest = unpack_dlh(dead.data)
    assert (header.reason, header.dest_q_name, header.dest_q_mgr_name) == (reason, *where)
    assert (header.format, rest, header.put_appl_name) == ("MQSTR", b"hello", "QM1")
    assert (dead.descriptor.format, dead.descriptor.feedback) == ("MQDEAD", Feedback.COA)


def test_one_that_nobody_takes_is_logged(world):
    world.did(Alter(object_type="QLOCAL", name="DEAD", attributes={"max_q_depth": 0}), "operator")
    put(world, report=ReportOption.COA, reply_to_q="NONE")
    assert [q_name for q_name, _ in world.telling.lost] == ["NONE"]
    assert "it is full" in world.telling.lost[0][1]


def test_a_dead_letters_own_trigger_message_is_no_dead_letter_again(world):
    world.define("INITQ", max_q_depth=0)
    world.define("P", "PROCESS", appl_id="/bin/true")
    triggered = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": "INITQ", "process_name": "P"}
    world.did(Alter(object_type="QLOCAL", name="DEAD", attributes=triggered), "operator")
    world.open("INITQ", IN, as_="monitor")
    world.did(PutMany(q_name="Q", bodies=[b"m"], descriptor=MessageDescriptor(report=0x100, reply_to_q="NONE")))
    assert len(all_of(world, "DEAD")) == 1
    assert [q_name for q_name, _ in world.telling.dropped] == ["DEAD"]


def test_several_got_at_once_are_each_confirmed_in_the_unit_of_the_get(world):
    for _ in range(3):
        put(world, report=ReportOption.COD, reply_to_q="REPLY")
    handle = world.open("Q", IN)
    world.did(GetMany(handle=handle, count=9, options=int(GetOption.SYNCPOINT), unit=1))
    assert all_of(world, "REPLY") == []
    world.qm.lost([world.session("app")])
    assert all_of(world, "REPLY") == []
    handle = world.open("Q", IN)
    world.did(GetMany(handle=handle, count=9))
    assert [got.descriptor.feedback for got in all_of(world, "REPLY")] == [Feedback.COD] * 3


def test_a_report_asks_the_disk_for_no_room_since_a_get_must_always_work(tmp_path):
    allowed = [True]
    world = World("memory", tmp_path, puts_allowed=lambda: allowed[0])
    world.define("Q")
    world.define("REPLY")
    put(world, report=ReportOption.COD, reply_to_q="REPLY")
    allowed[0] = False
    assert len(all_of(world, "Q")) == 1
    assert len(all_of(world, "REPLY")) == 1


def test_a_reply_queue_that_is_an_alias_or_a_remote_queue_is_followed(world):
    world.define("ALIAS", "QALIAS", base_q_name="REPLY")
    put(world, report=ReportOption.COA, reply_to_q="ALIAS")
    put(world, report=ReportOption.COA, reply_to_q="R")
    assert len(all_of(world, "REPLY")) == 1
    (sent,) = all_of(world, "XQ")
    assert sent.data[8:9] == b"X"
