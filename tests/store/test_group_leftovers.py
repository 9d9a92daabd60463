"""Large ends of units of work and deletions on shared queues: all members see them at once, rows follow in slices."""

from __future__ import annotations

import psycopg
import pytest

from tests.qmgr.members import IN, Member
from tests.waiting import until
from trigmon.mq.calls import Backout, Close, Commit, Define, Delete, Get, GetMany, Open, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption
from trigmon.store.sql.leftovers import Leftovers

SYNC = GetOption.SYNCPOINT.value
LASTING = MessageDescriptor(persistence=1)
MANY, AT_ONCE = 300, 50


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(Leftovers, "at_once", AT_ONCE)


@pytest.fixture
def members(group, tmp_path):
    one, two = (Member("memory", tmp_path, group, name) for name in ("QM1", "QM2"))
    define(one)
    yield one, two
    for member in (one, two):
        member.die()


@pytest.fixture
def rows(group):
    """Returns a function that counts the rows of messages and of queues in the group."""
    options = f"-csearch_path={group.place.schema}"
    with psycopg.connect(group.place.dsn, options=options, autocommit=True) as db:
        yield lambda: db.execute("SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM queue)").fetchone()


def define(member):
    member.did(Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared", "max_q_depth": 99_999}))


def fill(member, unit=0):
    bodies = [b"%d" % number for number in range(MANY)]
    member.did(PutMany(q_name="Q", bodies=bodies, descriptor=LASTING, options=2 * bool(unit), unit=unit))


def get_all(member, unit):
    handle = member.did(Open(object_name="Q", options=IN)).handle
    got = 0
    while got < MANY:
        got += len(member.did(GetMany(handle=handle, count=MANY, options=SYNC, unit=unit)).messages)
    member.did(Close(handle=handle))


def ended(member, how):
    if how == "commit of puts":
        fill(member, unit=1)
    else:
        fill(member)
        get_all(member, unit=1)
    member.did(Commit(unit=1) if how.startswith("commit") else Backout(unit=1))


def expected(how):
    backout_count = int(how.startswith("backout"))
    return [(b"%d" % number, backout_count) for number in range(MANY)] if how != "commit of gets" else []


AVAILABLE = ["commit of puts", "backout of gets"]
HOW = [*AVAILABLE, "commit of gets"]


@pytest.mark.parametrize("slices", [0, 2])
@pytest.mark.parametrize("how", HOW)
def test_the_other_member_gets_all_of_it_in_order_while_it_is_rewritten(members, how, slices):
    one, two = members
    ended(one, how)
    assert one.store.has_leftovers
    assert not two.store.has_leftovers
    for _ in range(slices):
        one.qm.housekeeping.scan()
    assert two.left("Q") == expected(how)


@pytest.mark.parametrize("how", HOW)
def test_a_slice_writes_few_rows_and_the_last_leaves_none(members, rows, how):
    one, two = members
    ended(one, how)
    slices = 0
    while one.store.has_leftovers:
        before = rows()[0]
        one.qm.housekeeping.scan()
        two.qm.turn([])
        assert before - rows()[0] <= AT_ONCE
        slices += 1
    assert slices >= MANY // AT_ONCE
    assert two.left("Q") == expected(how)
    assert rows()[0] == 0


@pytest.mark.parametrize("how", HOW)
def test_what_a_dead_member_has_left_is_done_by_the_member_that_recovers_it(members, rows, how):
    one, two = members
    ended(one, how)
    one.qm.housekeeping.scan()
    one.die()
    until(lambda: two.shared.dead() == ["QM1"])
    assert two.shared.recover("QM1")
    assert two.store.has_leftovers
    one.start()
    assert not one.store.has_leftovers
    while two.store.has_leftovers:
        two.qm.housekeeping.scan()
    assert one.left("Q") == expected(how)
    assert rows()[0] == 0


@pytest.mark.parametrize("how", AVAILABLE)
def test_a_member_that_starts_again_goes_on_where_it_ended(members, how):
    one, two = members
    ended(one, how)
    one.qm.housekeeping.scan()
    one.qm.stop()
    assert two.left("Q")[:1] == expected(how)[:1]
    one.start()
    assert one.store.has_leftovers
    while one.store.has_leftovers:
        one.qm.housekeeping.scan()


def test_a_deleted_queue_is_empty_at_once_for_all_and_its_name_is_free(members, rows):
    one, two = members
    _, queues = rows()
    fill(one)
    one.did(Delete(object_type="QLOCAL", name="Q", purge=True))
    assert rows()[0] == MANY
    define(two)
    two.put("Q", b"new", unit=0)
    while one.store.has_leftovers:
        one.qm.housekeeping.scan()
    assert rows() == (1, queues)
    assert one.left("Q") == [(b"new", 0)]


def test_a_slice_judges_what_another_member_has_done_meanwhile(members):
    """The wait of a get ends in the turn of a slice, where that turn is the first to look at the group."""
    one, two = members
    ended(one, "commit of gets")
    handle = one.did(Open(object_name="Q", options=IN)).handle
    wait = Get(handle=handle, options=GetOption.WAIT.value, wait_interval_ms=60_000)
    assert one.qm.turn([(one.session, 2, wait)]) == []
    two.put("Q", b"new", unit=0)
    until(one.shared.was_notified)
    (answer,) = one.qm.housekeeping.scan()
    assert (answer.sequence, answer.reply.data) == (2, b"new")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_large_backout_returns_a_trigger_message_to_a_shared_initiation_queue(group, tmp_path, kind):
    """The triggered queue is private; the member's own store has nothing of what the unit did on shared queues."""
    member = Member(kind, tmp_path, group)
    define(member)
    shared = {"qsg_disp": "shared"}
    member.did(Define(object_type="QLOCAL", name="INITQ", attributes=shared))
    member.did(Define(object_type="PROCESS", name="P", attributes={"appl_id": "true"}))
    triggered = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": "INITQ", "process_name": "P"}
    member.did(Define(object_type="QLOCAL", name="T", attributes=triggered))
    member.did(Open(object_name="INITQ", options=IN))
    member.put("T", b"starts it", unit=1)
    fill(member, unit=1)
    member.did(Backout(unit=1))
    assert not member.own.has_leftovers
    while member.store.has_leftovers:
        member.qm.housekeeping.scan()
    assert len(member.left("INITQ")) == 1
    assert member.left("T") == member.left("Q") == []
    member.die()
