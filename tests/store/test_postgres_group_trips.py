"""How often a member's turn goes to the group's database: what a batch of calls costs does not grow with the calls."""

from __future__ import annotations

import pytest

from tests import postgres
from tests.qmgr.members import Member
from trigmon.mq.calls import Commit, Define, Display, Get, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import WasGot
from trigmon.qmgr.sessions import Identity

IN = OpenOption.INPUT_SHARED.value
LASTING = MessageDescriptor(persistence=1)


@pytest.fixture
def members(tmp_path):
    """Two of a group that look at it only when they are told, or do something there."""
    with postgres.group(lease_ms=600_000, peek_s=600) as group:
        made = [Member("memory", tmp_path, group, name) for name in ("QM1", "QM2")]
        made[0].did(Define(object_type="QLOCAL", name="OWN"))
        made[0].did(Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared", "max_q_depth": 99_999}))
        yield made
        for member in made:
            member.die()


def trips(member, calls, of=1):
    """How often a turn went there, of calls from so many connections each; and the replies."""
    sessions = [member.qm.connect(Identity(client_id=f"c{n}", administrator=True)) for n in range(of)]
    link = member.shared._turn.link
    member.shared.was_notified()
    member.qm.turn([])
    before = link.trips
    answers = member.qm.turn([(session, n, call) for n, call in enumerate(calls, 1) for session in sessions])
    return link.trips - before, [answer.reply for answer in answers]


PUT = Put(q_name="Q", descriptor=LASTING)
UNIT = [Put(q_name="Q", descriptor=LASTING, options=2, unit=1), Commit(unit=1)]


@pytest.mark.parametrize("of", [1, 100])
@pytest.mark.parametrize("calls", [[PUT], UNIT], ids=["puts", "units of work"])
def test_a_turn_of_puts_enters_and_ends_however_many_they_are(members, calls, of):
    assert trips(members[0], calls, of)[0] == 2


def test_a_turn_on_a_members_own_queues_does_not_go_there(members):
    calls = [Put(q_name="OWN", descriptor=LASTING), Display(object_type="QLOCAL", name="Q")]
    assert trips(members[0], calls, 20)[0] == 0


def test_a_turn_of_gets_reads_what_lies_first_once(members):
    one, two = members
    assert trips(one, [PUT], 100)[0] == 2
    handle = two.did(Open(object_name="Q", options=IN)).handle
    session = two.session
    two.qm.turn([])
    before = two.shared._turn.link.trips
    answers = two.qm.turn([(session, n, Get(handle=handle)) for n in range(1, 51)])
    assert two.shared._turn.link.trips - before == 4, "it reads few before it knows how large they are"
    answers += two.qm.turn([(session, n, Get(handle=handle)) for n in range(1, 51)])
    assert two.shared._turn.link.trips - before == 6
    assert len({a.reply.descriptor.msg_id for a in answers if isinstance(a.reply, WasGot)}) == 100


def test_a_message_may_be_put_and_got_in_units_of_work_that_end_in_one_turn(members):
    """A client that does not wait for answers sends all of it at once."""
    one, two = members
    handle = one.did(Open(object_name="Q", options=IN)).handle
    for _ in range(2):
        one.did(PUT)
    for _ in range(2):
        one.did(Get(handle=handle))  # from here on it knows what lies first without a look
    session = one.session
    calls = [*UNIT, Get(handle=handle, options=2, unit=2), Commit(unit=2)]
    answers = one.qm.turn([(session, number, call) for number, call in enumerate(calls, 1)])
    assert isinstance(answers[2].reply, WasGot)
    assert two.left("Q") == []


def test_what_another_did_meanwhile_is_read_again(members):
    one, two = members
    handle = two.did(Open(object_name="Q", options=IN)).handle
    for data in (b"1", b"2"):
        one.put("Q", data, unit=0)
        assert two.did(Get(handle=handle)).data == data


def test_units_of_work_on_a_shared_queue_run_no_statement_in_a_members_own_file(tmp_path):
    with postgres.group(lease_ms=600_000, peek_s=600) as group:
        member = Member("sqlite", tmp_path, group)
        member.did(Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared", "max_q_depth": 99_999}))
        handle = member.did(Open(object_name="Q", options=IN)).handle
        unit = [Put(q_name="Q", descriptor=LASTING, options=2, unit=2), Commit(unit=2)]
        for call in (*UNIT, Get(handle=handle)):  # the first unit of work of a connection has a row
            member.did(call)
        ran = []
        member.own._cursor.exec_trace = lambda cursor, statement, values: ran.append(statement) or True
        for call in (*unit, Get(handle=handle, options=2, unit=3), Commit(unit=3)):
            member.did(call)
        member.own._cursor.exec_trace = None
        assert ran == []
        member.die()
