"""Whose a command is: known for what a connection put itself, straight onto the queue; all else is nobody's."""

import pytest

from tests.command_server.commands import COMMAND_QUEUE, LITTLE, Program, command, escape, integer, read_reply, text
from trigmon.mq.calls import (
    Alter,
    Backout,
    Clear,
    Commit,
    Define,
    Delete,
    Display,
    Get,
    LostConnection,
    Move,
    Open,
    Put,
    Reject,
    Reserve,
    RetryDeadLetters,
    SetAuthority,
)
from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor, pack_dlh
from trigmon.mq.enums import GetOption, OpenOption, PutOption
from trigmon.mq.errors import NoMsgAvailable, UnknownObjectName

INPUT, OUTPUT = OpenOption.INPUT_SHARED.value, OpenOption.OUTPUT.value
SYNCPOINT = PutOption.SYNCPOINT.value
MADE = "MADE"
MAKES = escape(f"DEFINE QLOCAL({MADE})")


@pytest.fixture
def eve(stage, program):
    return Program(stage, "eve", administrator=False, replies="EVE.REPLIES")


def described(by, **fields):
    of = {"msg_type": 1, "format": "MQADMIN", "reply_to_q": by.replies, "encoding": LITTLE}
    return MessageDescriptor(**of | fields)


def is_made(program, name=MADE):
    try:
        return bool(program.ask(Display(object_type="queue", name=name)).rows)
    except UnknownObjectName:
        return False


def switch(program, to):
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"command_server_control": to}))


def reasons(program):
    program.stage.advance(3000)
    return [read_reply(each.data).reason for each in program.got()]


def known(stage):
    """Returns how many messages the queue manager remembers the user of."""
    return stage._q_mgrs["QM1"].manager.housekeeping.commands.known_count


# -- what comes in another way than by a put ------------------------------------------------------------------------


@pytest.fixture(params=["waiting", "backed out", "expired", "performed"])
def administrators(request, program):
    """The MsgId of a command that an administrator put; what became of it."""
    if request.param == "waiting":
        switch(program, "MANUAL")
        return program.put(escape("PING QMGR"))
    if request.param == "backed out":
        call = Put(q_name=COMMAND_QUEUE, descriptor=described(program), data=MAKES, options=SYNCPOINT, unit=1)
        msg_id = program.ask(call).msg_id
        program.ask(Backout(unit=1))
        return msg_id
    if request.param == "expired":
        switch(program, "MANUAL")
        msg_id = program.put(MAKES, expiry=1)
        program.stage.advance(60_000)
        return msg_id
    return program.put(escape("PING QMGR"))


def test_a_message_that_was_moved_has_not_the_rights_of_another_with_its_msg_id(program, eve, administrators):
    program.ask(Define(object_type="QLOCAL", name="EVES"))
    eve.ask(Put(q_name="EVES", descriptor=described(eve, msg_id=administrators), data=MAKES))
    program.ask(Move(q_name="EVES", to_q_name=COMMAND_QUEUE))
    switch(program, "QMGR")
    assert reasons(eve) == [2035]
    assert not is_made(program)


def test_a_message_that_was_rejected_to_the_command_queue_is_nobodys(program, eve, administrators):
    attributes = {"backout_requeue_q_name": COMMAND_QUEUE}
    program.ask(Define(object_type="QLOCAL", name="EVES", attributes=attributes))
    eve.ask(Put(q_name="EVES", descriptor=described(eve, msg_id=administrators), data=MAKES))
    handle = eve.ask(Open(object_name="EVES", options=INPUT)).handle
    reserved = eve.ask(Reserve(handle=handle, consumer="c", max_messages=1))
    eve.ask(Reject(reservation=reserved.reservation, ordinal=0))
    switch(program, "QMGR")
    assert reasons(eve) == [2035]
    assert not is_made(program)


def test_poison_that_goes_to_the_command_queue_is_nobodys(program):
    attributes = {"backout_requeue_q_name": COMMAND_QUEUE, "backout_threshold": 1, "backout_requeue": "QMGR"}
    program.ask(Define(object_type="QLOCAL", name="POISONED", attributes=attributes))
    program.ask(Put(q_name="POISONED", descriptor=described(program), data=MAKES))
    handle = program.ask(Open(object_name="POISONED", options=INPUT)).handle
    program.ask(Get(handle=handle, options=GetOption.SYNCPOINT.value, unit=1))
    program.ask(Backout(unit=1))
    with pytest.raises(NoMsgAvailable):
        program.ask(Get(handle=handle))
    assert reasons(program) == [2035]
    assert not is_made(program)


def test_a_dead_letter_that_is_retried_is_nobodys(program, eve):
    dead = "SYSTEM.DEAD.LETTER.QUEUE"
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": dead}))
    header = DeadLetterHeader(
        reason=2053, dest_q_name=COMMAND_QUEUE, dest_q_mgr_name="QM1", format="MQADMIN", encoding=LITTLE
    )
    eve.ask(Put(q_name=dead, descriptor=described(eve, format="MQDEAD"), data=pack_dlh(header) + MAKES))
    program.ask(RetryDeadLetters())
    assert reasons(eve) == [2035]
    assert not is_made(program)


# -- a context that is not the connection's own ---------------------------------------------------------------------


@pytest.mark.parametrize("user", ["eve", "root", ""])
@pytest.mark.parametrize("way", [PutOption.SET_ALL_CONTEXT, PutOption.SET_IDENTITY_CONTEXT])
def test_what_an_administrators_tool_puts_with_a_context_is_nobodys(program, eve, way, user):
    given = described(eve, user_identifier=user)
    program.ask(Put(q_name=COMMAND_QUEUE, descriptor=given, data=MAKES, options=way.value))
    assert reasons(eve) == [2035]
    assert not is_made(program)


@pytest.mark.parametrize("way", [PutOption.PASS_ALL_CONTEXT, PutOption.PASS_IDENTITY_CONTEXT])
def test_what_an_administrators_program_passes_on_is_nobodys(program, eve, way):
    program.ask(Define(object_type="QLOCAL", name="EVES"))
    eve.ask(Put(q_name="EVES", data=MAKES))
    source = program.ask(Open(object_name="EVES", options=INPUT | OpenOption.SAVE_ALL_CONTEXT.value)).handle
    data = program.ask(Get(handle=source)).data
    to = program.ask(Open(object_name=COMMAND_QUEUE, options=OUTPUT | way.value)).handle
    program.ask(Put(handle=to, context=source, descriptor=described(eve), data=data, options=way.value))
    assert reasons(eve) == [2035]
    assert not is_made(program)


@pytest.mark.parametrize("way", [PutOption.NO_CONTEXT, PutOption.DEFAULT_CONTEXT])
def test_a_command_by_default_or_without_context_is_its_putters(program, eve, way):
    assert eve.one(MAKES, options=way.value).reason == 2035
    assert program.one(MAKES, options=way.value).reason == 0
    assert is_made(program)


# -- the message itself ---------------------------------------------------------------------------------------------


def test_predicted_ids_of_another_take_no_rights_from_a_command(program, eve):
    mine = eve.ask(Put(q_name=eve.replies)).msg_id
    number = int.from_bytes(mine[16:])
    for ahead in range(1, 41):
        same = described(eve, msg_id=mine[:16] + (number + 42 + ahead).to_bytes(8))
        eve.ask(Put(q_name=COMMAND_QUEUE, descriptor=same, options=SYNCPOINT, unit=1))
    eve.ask(Backout(unit=1))
    for each in range(40):
        assert program.one(escape(f"DEFINE QLOCAL(A{each})")).reason == 0


def test_commands_with_one_id_have_each_the_rights_of_who_put_it(program, eve):
    program.ask(SetAuthority(name="queue OF.EVE user eve", add=["crt"]))
    program.ask(SetAuthority(name=f"queue {COMMAND_QUEUE} user eve", add=["put"]))
    program.ask(SetAuthority(name="queue EVE.* user eve", add=["put", "get"]))
    switch(program, "MANUAL")
    same = b"x" * 24
    eve.put(escape("DEFINE QLOCAL(OF.EVE)"), msg_id=same)
    program.put(escape("DEFINE QLOCAL(OF.ROOT)"), msg_id=same)
    eve.put(escape("DEFINE QLOCAL(OF.EVE.TOO)"), msg_id=same)
    switch(program, "QMGR")
    assert [is_made(program, name) for name in ("OF.EVE", "OF.ROOT", "OF.EVE.TOO")] == [True, True, False]
    assert reasons(program) == [0]


def test_a_command_that_another_program_got_and_gave_back_is_nobodys(program):
    switch(program, "MANUAL")
    program.put(MAKES)
    handle = program.ask(Open(object_name=COMMAND_QUEUE, options=INPUT)).handle
    program.ask(Get(handle=handle, options=GetOption.SYNCPOINT.value, unit=1))
    program.ask(Backout(unit=1))
    switch(program, "QMGR")
    assert reasons(program) == [2035]
    assert not is_made(program)


def test_a_command_put_through_an_alias_is_its_putters(program, eve):
    program.ask(Define(object_type="QALIAS", name="BY.ALIAS", attributes={"base_q_name": COMMAND_QUEUE}))
    eve.ask(Put(q_name="BY.ALIAS", descriptor=described(eve), data=MAKES))
    assert reasons(eve) == [2035]
    program.ask(Put(q_name="BY.ALIAS", descriptor=described(program), data=MAKES))
    assert reasons(program) == [0]


def _get(program):
    program.ask(Get(handle=program.ask(Open(object_name=COMMAND_QUEUE, options=INPUT)).handle))


def _take(program):
    handle = program.ask(Open(object_name=COMMAND_QUEUE, options=INPUT)).handle
    program.ask(Get(handle=handle, options=GetOption.SYNCPOINT.value, unit=1))
    program.ask(Commit(unit=1))


def _reserve(program):
    handle = program.ask(Open(object_name=COMMAND_QUEUE, options=INPUT)).handle
    program.ask(Reserve(handle=handle, consumer="c", max_messages=1))


def _expire(program):
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"expiry_interval": 5}))
    program.stage.advance(60_000)


@pytest.mark.parametrize(
    "leave",
    [
        _get,
        _take,
        _reserve,
        lambda program: program.ask(Clear(q_name=COMMAND_QUEUE)),
        lambda program: program.ask(Move(q_name=COMMAND_QUEUE, to_q_name=program.replies)),
        lambda program: program.ask(Delete(object_type="QLOCAL", name=COMMAND_QUEUE, purge=True)),
        _expire,
        lambda program: switch(program, "QMGR"),
    ],
    ids=["got", "got in a unit", "reserved", "cleared", "moved", "deleted", "expired", "performed"],
)
def test_who_put_a_command_is_forgotten_when_the_message_leaves_the_queue(stage, program, leave):
    switch(program, "MANUAL")
    program.put(MAKES, expiry=10)
    assert known(stage) == 1
    leave(program)
    assert known(stage) == 0


@pytest.mark.parametrize(
    "end", [lambda program: program.ask(Backout(unit=1)), lambda program: program.ask(LostConnection())]
)
def test_who_put_a_command_is_forgotten_when_the_put_is_backed_out(stage, program, end):
    for _ in range(3):
        program.ask(Put(q_name=COMMAND_QUEUE, descriptor=described(program), data=MAKES, options=SYNCPOINT, unit=1))
    assert known(stage) == 3
    end(program)
    assert known(stage) == 0


# -- the reply queue ------------------------------------------------------------------------------------------------


def test_a_model_queue_as_reply_queue_makes_no_queue(program, eve):
    dead = "SYSTEM.DEAD.LETTER.QUEUE"
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": dead}))
    program.ask(Define(object_type="QMODEL", name="MODEL", attributes={"definition_type": "PERMDYN"}))
    before = len(program.ask(Display(object_type="QLOCAL", name="*")).rows)
    for _ in range(3):
        eve.put(command(13, text(2016, "SYSTEM.DEFAULT.LOCAL.QUEUE"), integer(20, 1)), reply_to_q="MODEL")
    assert len(program.ask(Display(object_type="QLOCAL", name="*")).rows) == before
    assert len(program.got(dead)) == 3


def test_a_model_queue_that_the_user_may_not_put_to_drops_the_command(program, eve):
    dead = "SYSTEM.DEAD.LETTER.QUEUE"
    program.ask(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": dead}))
    program.ask(Define(object_type="QMODEL", name="MODEL", attributes={"definition_type": "PERMDYN"}))
    program.ask(SetAuthority(name=f"queue {COMMAND_QUEUE} user eve", add=["put"]))
    eve.put(command(40), reply_to_q="MODEL")
    assert program.got(dead) == []
