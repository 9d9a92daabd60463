"""The command server: whose rights a command has, where its reply goes, what it survives."""

import pytest

from tests.command_server.commands import Program, command, escape, integer, integers, read_reply, text
from trigmon.mq.calls import (
    Alter,
    Commit,
    Define,
    Display,
    Get,
    Move,
    Open,
    Put,
    PutMany,
    SetAuthority,
)
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption, PutOption, ReportOption
from trigmon.mq.errors import UnknownObjectName
from trigmon.mq.replies import Counted
from trigmon.simulate.in_process import InProcess

COMMAND_QUEUE = "SYSTEM.ADMIN.COMMAND.QUEUE"
Q_NAME = 2016
INPUT = OpenOption.INPUT_SHARED.value


def create(name="A", *parameters):
    return command(11, text(Q_NAME, name), integer(20, 1), *parameters)


def is_there(program, name="A"):
    try:
        return bool(program.ask(Display(object_type="queue", name=name)).rows)
    except UnknownObjectName:
        return False


@pytest.fixture
def alice(stage, program):
    return Program(stage, "alice", administrator=False, replies="ALICES.REPLIES")


# -- rights ---------------------------------------------------------------------------------------------------------


def test_a_command_has_the_rights_of_who_put_it(program, alice):
    refused = alice.one(create())
    assert (refused.comp_code, refused.reason) == (2, 2035)
    assert not is_there(program)
    assert alice.one(command(13, text(Q_NAME, "SYSTEM.DEFAULT.LOCAL.QUEUE"))).comp_code == 0
    program.ask(SetAuthority(name="queue A user alice", add=["crt"]))
    program.ask(SetAuthority(name=f"queue {COMMAND_QUEUE} user alice", add=["put"]))
    program.ask(SetAuthority(name="queue ALICES.* user alice", add=["put", "get"]))
    assert alice.one(create()).comp_code == 0
    assert alice.one(create("B")).reason == 2035
    assert alice.one(escape("DEFINE QLOCAL(B)")).reason == 2035


def test_every_put_of_one_call_has_the_rights_of_who_made_the_call(program, alice):
    descriptor = MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q=alice.replies)
    alice.ask(PutMany(q_name=COMMAND_QUEUE, descriptor=descriptor, bodies=[create("A"), create("B")]))
    assert len(alice.got()) == 2
    assert not is_there(program, "A")
    program.ask(PutMany(q_name=COMMAND_QUEUE, descriptor=descriptor, bodies=[create("A"), create("B")]))
    assert is_there(program, "A") and is_there(program, "B")


@pytest.mark.parametrize("way", [PutOption.PASS_IDENTITY_CONTEXT, PutOption.PASS_ALL_CONTEXT])
def test_a_context_that_is_passed_on_gives_no_rights(program, alice, way):
    program.ask(Define(object_type="QLOCAL", name="ROOTS"))
    program.ask(Put(q_name="ROOTS", data=b"from root"))
    source = alice.ask(Open(object_name="ROOTS", options=INPUT | OpenOption.SAVE_ALL_CONTEXT.value)).handle
    assert alice.ask(Get(handle=source)).descriptor.user_identifier == "root"
    to = alice.ask(Open(object_name=COMMAND_QUEUE, options=OpenOption.OUTPUT.value | way.value)).handle
    descriptor = MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q=alice.replies)
    alice.ask(Put(handle=to, context=source, descriptor=descriptor, data=create(), options=way.value))
    (reply,) = alice.got()
    assert read_reply(reply.data).reason == 2035
    assert not is_there(program)


def test_a_message_that_was_moved_to_the_command_queue_is_nobodys(program, alice):
    program.ask(Define(object_type="QLOCAL", name="ROOTS"))
    descriptor = MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q=program.replies)
    program.ask(Put(q_name="ROOTS", descriptor=descriptor, data=create()))
    assert isinstance(program.ask(Move(q_name="ROOTS", to_q_name=COMMAND_QUEUE)), Counted)
    program.stage.advance(1000)
    assert [read_reply(each.data).reason for each in program.got()] == [2035]
    assert not is_there(program)


def test_replies_go_only_where_the_user_may_put(program, alice):
    program.ask(Define(object_type="QLOCAL", name="SECRET"))
    program.ask(SetAuthority(name=f"queue {COMMAND_QUEUE} user alice", add=["put"]))
    alice.put(command(40), reply_to_q="SECRET")
    assert program.got("SECRET") == []
    program.ask(SetAuthority(name="queue SECRET user alice", add=["put"]))
    alice.put(command(40), reply_to_q="SECRET")
    assert len(program.got("SECRET")) == 1


# -- the reply ------------------------------------------------------------------------------------------------------


def test_the_reply_has_the_ids_priority_and_persistence_that_the_command_asks_for(program):
    program.ask(Define(object_type="QLOCAL", name=program.replies, attributes={}, replace=True))
    sent = program.put(command(40), priority=7, persistence=1, correl_id=b"c" * 24)
    (reply,) = program.got()
    it = reply.descriptor
    assert (it.correl_id, it.msg_type, it.format, it.priority, it.persistence) == (sent, 2, "MQADMIN", 7, 1)
    assert it.msg_id != sent
    passes = (ReportOption.PASS_MSG_ID | ReportOption.PASS_CORREL_ID).value
    sent = program.put(command(40), report=passes, correl_id=b"c" * 24)
    (reply,) = program.got()
    assert (reply.descriptor.msg_id, reply.descriptor.correl_id) == (sent, b"c" * 24)


def test_the_reply_lasts_as_long_as_the_command_where_it_asks_for_that(program):
    program.put(command(40), expiry=900)
    assert program.got()[0].descriptor.expiry == -1
    program.put(command(40), expiry=900, report=ReportOption.PASS_DISCARD_AND_EXPIRY.value)
    assert 0 < program.got()[0].descriptor.expiry <= 900


def test_a_reply_whose_queue_is_not_there_goes_to_the_dead_letter_queue(program):
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "SYSTEM.DEAD.LETTER.QUEUE"}))
    program.put(create(), reply_to_q="NOT.THERE")
    assert is_there(program)
    (dead,) = program.got("SYSTEM.DEAD.LETTER.QUEUE")
    assert dead.descriptor.format == "MQDEAD"


# -- what is no command ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("msg_type", [2, 4, 8])
def test_what_is_no_request_is_dropped_and_not_performed(program, msg_type):
    program.put(create(), msg_type=msg_type)
    program.put(create(), msg_type=msg_type, reply_to_q="")
    assert not is_there(program)
    assert program.got() == []
    assert program.ask(Display(object_type="queue", name=COMMAND_QUEUE)).rows[0]["current_q_depth"] == 0


@pytest.mark.parametrize("of_format", ["", "MQSTR", "MQPCF", "MQEVENT"])
def test_another_format_is_answered_with_its_reason(program, of_format):
    assert program.one(create(), format=of_format).reason == 3023


def test_a_character_set_that_is_not_known_is_answered_with_its_reason(program):
    assert program.one(create(), coded_char_set_id=4711).reason == 3049


# -- when -----------------------------------------------------------------------------------------------------------


def test_a_command_in_a_unit_of_work_is_performed_when_that_is_committed(program):
    program.stage.ask(
        program.session,
        Put(
            q_name=COMMAND_QUEUE,
            descriptor=MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q=program.replies),
            data=create(),
            options=PutOption.SYNCPOINT.value,
            unit=1,
        ),
    )
    assert not is_there(program)
    program.ask(Commit(unit=1))
    assert is_there(program)


def test_the_attribute_scmdserv_switches_it_off_and_on(program):
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"command_server_control": "MANUAL"}))
    program.put(create())
    program.stage.advance(5000)
    assert not is_there(program)
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"command_server_control": "QMGR"}))
    assert is_there(program)
    assert len(program.got()) == 1


def test_a_command_waits_while_gets_are_inhibited(program):
    program.ask(Alter(object_type="QLOCAL", name=COMMAND_QUEUE, attributes={"inhibit_get": "DISABLED"}))
    program.put(create())
    assert not is_there(program)
    program.ask(Alter(object_type="QLOCAL", name=COMMAND_QUEUE, attributes={"inhibit_get": "ENABLED"}))
    program.stage.advance(1000)
    assert is_there(program)


def test_a_command_may_inhibit_gets_of_its_own_queue_and_is_done_once(program):
    change = command(8, text(Q_NAME, COMMAND_QUEUE), integer(20, 1), integer(9, 1))
    assert program.one(change).comp_code == 0
    program.stage.advance(5000)
    assert program.got() == []


def test_the_queue_is_not_open_while_nothing_is_to_be_done(program):
    program.one(command(40))
    shown = program.ask(Display(object_type="queue", name=COMMAND_QUEUE)).rows[0]
    assert (shown["open_input_count"], shown["uncommitted_msgs"]) == (0, 0)


# -- a restart ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_command_that_was_put_before_a_crash_is_nobodys_behind_it(store):
    stage = InProcess(["QM1"], store)
    try:
        program = Program(stage)
        asked = command(13, text(Q_NAME, "SYSTEM.DEFAULT.LOCAL.QUEUE"), integers(1002, 15))
        off = {"command_server_control": "MANUAL"}
        stage.command("QM1", Alter(object_type="QMGR", name="QM1", attributes=off))
        program.put(asked, persistence=1)
        program.put(create(), persistence=1)
        stage.crash("QM1")
        program = Program(stage, replies="OTHER")
        on = {"command_server_control": "QMGR"}
        stage.command("QM1", Alter(object_type="QMGR", name="QM1", attributes=on))
        assert [read_reply(each.data).reason for each in program.got("REPLIES")] == [2035, 2035]
        assert not is_there(program)
    finally:
        stage.close()
