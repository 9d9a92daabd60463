"""A turn does a bounded amount of work, whatever one command asks; other clients' calls are performed between turns."""

import pytest

from tests.command_server.commands import (
    COMMAND_QUEUE,
    Program,
    byte_string,
    command,
    escape,
    integer,
    integer_filter,
    integers,
    text,
    texts,
)
from trigmon.command_server.server import LONGEST_COMMAND
from trigmon.mq.calls import (
    Call,
    Clear,
    Define,
    Display,
    DisplayConnections,
    DisplayHandles,
    Open,
    Put,
    PutMany,
    Refresh,
    ResetQueueStatistics,
    SetAuthority,
)
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.rules.model.internal_calls import Report
from trigmon.rules.model.stored_messages import SLICE

MANY = 4 * SLICE + 10


class OneByOne:
    """A queue manager whose background work is done a turn at a time, and what each turn performed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.manager = program.stage._q_mgrs["QM1"].manager
        self.performed: list[Call] = []
        answer = self.manager.answer

        def noted(session, call, now):
            self.performed.append(call)
            return answer(session, call, now)

        self.manager.answer = noted

    def turn(self, *calls: Call) -> list:
        """One turn of calls of the program."""
        return [each.reply for each in self.manager.turn([(self.program.session, 1, call) for call in calls])]

    def put(self, data: bytes) -> None:
        """Puts a command; nothing of it is performed yet."""
        of = MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q=self.program.replies)
        self.turn(Put(q_name=COMMAND_QUEUE, descriptor=of, data=data))

    def scans(self) -> list[list[Call]]:
        """Lets the background work come to its end, and returns the calls that were performed in each turn of it."""
        found = []
        while self.manager.housekeeping.is_scanning:
            self.performed.clear()
            self.manager.housekeeping.scan()
            found.append(list(self.performed))
        return found


@pytest.fixture
def one_by_one(program):
    return OneByOne(program)


def fill(program, count=MANY):
    program.ask(Define(object_type="QLOCAL", name="BIG", attributes={"max_q_depth": 100_000}))
    for begin in range(0, count, SLICE):
        program.ask(PutMany(q_name="BIG", bodies=[b"m"] * min(SLICE, count - begin), descriptor=MessageDescriptor()))


def depth(program, name="BIG"):
    return program.ask(Display(object_type="queue", name=name)).rows[0]["current_q_depth"]


def make_queues(program, count=MANY):
    for at in range(count):
        program.ask(Define(object_type="QLOCAL", name=f"Q.{at:05}"))


def of(calls, kind):
    return [call for call in calls if isinstance(call, kind)]


@pytest.mark.parametrize("clear", [command(9, text(2016, "BIG")), escape("CLEAR QLOCAL(BIG)")])
def test_a_queue_is_cleared_a_slice_a_turn(program, one_by_one, clear):
    fill(program)
    one_by_one.put(clear)
    turns = one_by_one.scans()
    assert max(len(of(calls, Clear)) for calls in turns) == 1
    assert sum(len(of(calls, Clear)) for calls in turns) >= 5
    assert depth(program) == 0
    assert len(program.got()) == 1


def test_calls_of_others_are_performed_between_two_slices(program, one_by_one):
    fill(program)
    program.ask(Define(object_type="QLOCAL", name="OTHER"))
    one_by_one.put(escape("CLEAR QLOCAL(BIG)"))
    one_by_one.manager.housekeeping.scan()
    assert one_by_one.turn(Put(q_name="OTHER", data=b"m"))[0].msg_id
    shown = one_by_one.turn(Display(object_type="queue", name="BIG"))[0].rows[0]["current_q_depth"]
    assert MANY - 2 * SLICE <= shown < MANY
    one_by_one.scans()


@pytest.mark.parametrize(
    ("asks", "call", "replies"),
    [
        (command(13, text(2016, "Q.*")), Display, MANY),
        (command(13, text(2016, "Q.*"), integer_filter(3, 4, 999_999)), Display, 1),
        (command(18, text(2016, "Q.*")), Display, 1),
        (command(17, text(2016, "Q.*")), ResetQueueStatistics, MANY),
        (escape("DISPLAY QUEUE(Q.*) ALL"), Display, 1),
        (escape("DISPLAY QUEUE(Q.*) WHERE(CURDEPTH GT 0)"), Display, 1),
        (escape("RESET QSTATS(Q.*)"), ResetQueueStatistics, 1),
    ],
    ids=["inquiry", "filter", "names", "statistics", "display", "where", "reset"],
)
def test_a_listing_is_a_page_a_turn_whatever_of_it_is_answered(program, one_by_one, asks, call, replies):
    make_queues(program)
    one_by_one.put(asks)
    turns = one_by_one.scans()
    assert max(len(of(calls, call)) for calls in turns) == 1
    assert sum(len(of(calls, call)) for calls in turns) == 5
    assert max(len(calls) for calls in turns) <= SLICE + 20
    assert len(program.got()) == replies


@pytest.mark.parametrize(
    ("asks", "call", "replies"),
    [
        (command(85, byte_string(7007, b"")), DisplayConnections, MANY + 4),
        (command(85, byte_string(7007, b""), integer_filter(1024, 2, 7)), DisplayConnections, 1),
        (escape("DISPLAY CONN(*) ALL"), DisplayConnections, 1),
        (command(41, text(2016, "SEEN"), integer(1103, 1104)), DisplayHandles, MANY),
        (command(41, text(2016, "SEEN"), integer(1103, 1104), integer(1023, 2)), DisplayHandles, 1),
        (escape("DISPLAY QSTATUS(SEEN) TYPE(HANDLE) ALL"), DisplayHandles, 1),
        (escape("DISPLAY QSTATUS(SEEN) TYPE(HANDLE) OPENTYPE(INPUT)"), DisplayHandles, 1),
    ],
    ids=["connections", "filter", "conn", "handles", "input", "qstatus", "opentype"],
)
def test_connections_and_handles_are_listed_a_page_a_turn(program, one_by_one, asks, call, replies):
    program.ask(Define(object_type="QLOCAL", name="SEEN"))
    for _ in range(MANY):
        session = program.stage.connect("one of many")
        program.stage.ask(session, Open(object_name="SEEN", options=OpenOption.OUTPUT.value))
    one_by_one.put(asks)
    turns = one_by_one.scans()
    assert max(len(of(calls, call)) for calls in turns) == 1
    assert sum(len(of(calls, call)) for calls in turns) == 5
    assert max(len(calls) for calls in turns) <= SLICE + 20
    assert len(program.got()) == replies


def test_an_identifier_that_no_connection_has_is_refused_behind_the_last_page(program, one_by_one):
    refused = program.one(command(85, byte_string(7007, b"NOBODY")))
    assert (refused.comp_code, refused.reason, refused.values) == (2, 3174, {1012: 7006})


def test_records_of_many_users_are_set_a_slice_a_turn(program, one_by_one):
    users = [f"u{at:04}" for at in range(MANY)]
    one_by_one.put(command(90, text(3067, "A"), integer(1016, 1), integers(1116, 8), texts(3065, *users)))
    turns = one_by_one.scans()
    assert sum(len(of(calls, SetAuthority)) for calls in turns) == MANY
    assert max(len(of(calls, SetAuthority)) for calls in turns) <= SLICE
    (reply,) = program.got()
    assert reply is not None


def test_commands_share_a_turn_by_what_they_list(program, one_by_one):
    make_queues(program, SLICE)
    for _ in range(6):
        one_by_one.put(command(18, text(2016, "Q.*")))
    assert max(len(of(calls, Display)) for calls in one_by_one.scans()) == 1
    assert len(program.got()) == 6


def test_an_escape_with_a_second_command_is_refused_and_nothing_of_it_is_done(program):
    for mqsc in ("DEFINE QLOCAL(E1)\nDEFINE QLOCAL(E2)", "DEFINE QLOCAL(E1); DEFINE QLOCAL(E2)", "PING QMGR\nEND"):
        refused = program.one(escape(mqsc))
        assert (refused.comp_code, refused.reason, refused.values) == (2, 3097, {1012: 3014})
    assert program.ask(Display(object_type="queue", name="E*")).rows == []


def test_a_comment_and_lines_that_continue_are_of_the_one_command(program):
    program.one(escape("* a queue\nDEFINE QLOCAL(E1) +\n  MAXDEPTH(7)\n"))
    assert program.ask(Display(object_type="queue", name="E1")).rows[0]["max_q_depth"] == 7


@pytest.mark.parametrize("mqsc", ["PING QMGR\n", "* c\n", "DEFINE QLOCAL(A) +\n", "("])
def test_a_command_longer_than_the_limit_is_refused_without_being_read(program, one_by_one, mqsc):
    one_by_one.put(escape(mqsc * (LONGEST_COMMAND // len(mqsc))))
    assert sum(map(len, one_by_one.scans())) <= 10
    (reply,) = program.got()
    assert int.from_bytes(reply.data[28:32], "little") == 3016


def test_a_command_of_the_longest_length_is_performed(program):
    short = escape("PING QMGR")
    assert program.one(escape("PING QMGR".ljust(9 + LONGEST_COMMAND - len(short) - 3))).reason == 0


def test_commands_and_the_scan_for_expired_messages_take_turns(program, one_by_one):
    program.ask(Define(object_type="QLOCAL", name="OLD", attributes={"max_q_depth": 100_000}))
    program.ask(PutMany(q_name="OLD", bodies=[b"m"] * MANY, descriptor=MessageDescriptor(expiry=1)))
    program.stage._clock.advance(1000)
    one_by_one.turn(Refresh())
    for _ in range(2 * (MANY // SLICE + 2)):
        one_by_one.put(command(40))
        one_by_one.manager.housekeeping.scan()
    assert depth(program, "OLD") == 0


@pytest.mark.parametrize(
    ("asks", "call"),
    [
        (escape("DEFINE QLOCAL(E) REPLACE"), Define),
        (escape("RESET QSTATS(SYSTEM.DEFAULT.LOCAL.QUEUE)"), ResetQueueStatistics),
        (command(17, text(2016, "SYSTEM.DEFAULT.LOCAL.QUEUE")), ResetQueueStatistics),
        (command(90, text(3067, "A"), integer(1016, 1), integers(1116, 8), texts(3065, "u")), SetAuthority),
    ],
    ids=["define", "reset", "statistics", "record"],
)
def test_a_command_of_one_call_is_answered_in_the_turn_that_performs_it(one_by_one, asks, call):
    for _ in range(60):
        one_by_one.put(asks)
    turns = one_by_one.scans()
    assert len(turns) > 3
    assert [len(of(calls, call)) for calls in turns] == [len(of(calls, Report)) for calls in turns]
