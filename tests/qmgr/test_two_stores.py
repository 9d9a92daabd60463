"""One unit of work over a member's own store and its group's: the group's decides, and a member cut off asks it."""

from __future__ import annotations

import contextlib
import time

import pytest

from trigmon.mq.calls import Backout, Commit, Define, Display, Get, Open, Outcome, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption, UnitOutcome
from trigmon.mq.replies import Opened, OutcomeWas, Refused, WasGot
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.qmgr.two_stores import TwoStores
from trigmon.rules.facts import Selection
from trigmon.store.group import FIRST_NUMBER, MemoryGroup
from trigmon.store.memory import MemoryStore
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.store import SqliteStore

IN = OpenOption.INPUT_SHARED.value


class Member:
    """A queue manager with one connection; ``die`` cuts it off where it stands, and ``start`` starts it again."""

    def __init__(self, kind, directory, group, name="QM1"):
        self.kind, self.directory, self.name = kind, directory, name
        self.group = group
        self.memory = MemoryStore()
        self.lives = 0
        self.start()

    def start(self):
        self.own = self.memory if self.kind == "memory" else SqliteStore(self.directory)
        self.shared = self.group.join(self.name)
        self.store = TwoStores(self.own, self.shared)
        self.qm = QueueManager(self.name, self.store, VirtualClock())
        self.lives += 1
        self.session = self.qm.connect(Identity(client_id=f"client-{self.lives}", administrator=True))

    def die(self):
        self.store.abandon()

    def do(self, call):
        (answer,) = [a for a in self.qm.turn([(self.session, 1, call)]) if a.session is self.session]
        return answer.reply

    def did(self, call):
        reply = self.do(call)
        assert not isinstance(reply, Refused), reply
        return reply

    def put(self, q_name, data, unit=1):
        descriptor = MessageDescriptor(persistence=1)
        return self.did(Put(q_name=q_name, data=data, descriptor=descriptor, options=2 * bool(unit), unit=unit))

    def left(self, q_name):
        """What can be got of a queue, with each message's backout count."""
        opened = self.did(Open(object_name=q_name, options=IN))
        assert isinstance(opened, Opened)
        found = []
        while isinstance(got := self.do(Get(handle=opened.handle)), WasGot):
            found.append((got.data, got.descriptor.backout_count))
        return found


@pytest.fixture(params=["memory", "sqlite", "in a group on postgresql"])
def member(request, tmp_path):
    if request.param in ("memory", "sqlite"):
        made = Member(request.param, tmp_path, MemoryGroup())
    else:
        made = Member("sqlite", tmp_path, request.getfixturevalue("group"))
    made.did(Define(object_type="QLOCAL", name="OWN"))
    made.did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    yield made
    made.die()


def works_on_both(member):
    """Unit 1 puts on both and gets what lay on both."""
    for q_name in ("OWN", "SHARED"):
        member.put(q_name, b"old", unit=0)
    for q_name in ("OWN", "SHARED"):
        opened = member.did(Open(object_name=q_name, options=IN))
        member.did(Get(handle=opened.handle, options=2, unit=1))
        member.put(q_name, b"new")


def is_taken_back_by_the_session(member):
    """Whether what was not ended with the turn is gone with the session: a group in memory has no transactions."""
    return not isinstance(member.group, MemoryGroup)


def cut_off(member, at, *, before):
    """The process ends in the middle of a commit: before or after one step of it."""
    where, name = at
    right = getattr(where, name)

    def step(*args):
        if not before:
            right(*args)
        raise StoreBroken("the process ends here")

    setattr(where, name, step)
    with pytest.raises(StoreBroken):
        member.do(Commit(unit=1))
    setattr(where, name, right)
    member.die()
    member.start()


def test_a_commit_is_prepared_here_decided_in_the_group_and_ended_here(member):
    steps = []

    def watched(where, name):
        right = getattr(where, name)
        setattr(where, name, lambda *args: (steps.append(name), right(*args))[1])

    works_on_both(member)
    for where, name in ((member.own, "prepare"), (member.shared, "end_unit"), (member.own, "apply")):
        watched(where, name)
    member.did(Commit(unit=1))
    assert steps[:3] == ["prepare", "end_unit", "apply"]


def test_a_unit_of_work_on_one_side_is_not_prepared(member):
    member.own.prepare = None
    member.put("SHARED", b"m")
    member.did(Commit(unit=1))
    member.put("OWN", b"m", unit=2)
    member.did(Commit(unit=2))


def test_cut_off_before_the_group_decided_both_halves_are_backed_out(member):
    works_on_both(member)
    cut_off(member, (member.shared, "end_unit"), before=True)
    assert member.left("OWN") == [(b"old", 1)]
    assert member.left("SHARED") == [(b"old", 1)]
    assert member.did(Outcome(client_id="client-1", unit=1)) == OutcomeWas(outcome=UnitOutcome.BACKED_OUT)


def test_cut_off_before_the_group_has_ended_the_turn_both_halves_are_backed_out(member):
    if not is_taken_back_by_the_session(member):
        pytest.skip("decided at once")
    for at, before in (("end_unit", False), ("end", True)):
        works_on_both(member)
        cut_off(member, (member.shared, at), before=before)
        assert member.left("OWN") == [(b"old", 1)]
        assert member.left("SHARED") == [(b"old", 1)]


def test_cut_off_once_the_group_has_decided_both_halves_are_committed(member):
    works_on_both(member)
    cut_off(member, (member.shared, "end"), before=False)
    assert member.left("OWN") == [(b"new", 0)]
    assert member.left("SHARED") == [(b"new", 0)]
    assert member.did(Outcome(client_id="client-1", unit=1)) == OutcomeWas(outcome=UnitOutcome.COMMITTED)


def test_cut_off_after_the_group_has_decided_a_unit_on_shared_queues_alone_its_outcome_is_known(member):
    member.put("SHARED", b"m")
    cut_off(member, (member.shared, "end"), before=False)
    assert member.left("SHARED") == [(b"m", 0)]
    assert member.did(Outcome(client_id="client-1", unit=1)) == OutcomeWas(outcome=UnitOutcome.COMMITTED)


def test_cut_off_in_a_backout_both_halves_are_backed_out_once(member):
    works_on_both(member)
    right = member.shared.end_unit

    def step(*args):
        right(*args)
        raise StoreBroken("the process ends here")

    member.shared.end_unit = step
    with pytest.raises(StoreBroken):
        member.do(Backout(unit=1))
    member.die()
    member.start()
    assert member.left("OWN") == [(b"old", 1)]
    assert member.left("SHARED") == [(b"old", 1)]


def test_a_member_started_again_and_again_commits_what_was_decided_once(member):
    works_on_both(member)
    cut_off(member, (member.shared, "end"), before=False)
    for _ in range(2):
        member.die()
        member.start()
    assert member.left("OWN") == [(b"new", 0)]


def test_what_was_recovered_is_not_recovered_again(member):
    member.put("SHARED", b"old", unit=0)
    opened = member.did(Open(object_name="SHARED", options=IN))
    member.did(Get(handle=opened.handle, options=2, unit=1))
    member.die()
    with other_member(member) as recovers:
        recovers("QM1")
        recovers("QM1")
    member.start()
    assert member.left("SHARED") == [(b"old", 1)]


@contextlib.contextmanager
def other_member(member):
    """A function of another member that recovers one, as soon as it is found dead."""
    if isinstance(member.group, MemoryGroup):
        yield member.group.recover
        return
    other = member.group.join("QM2")
    other.open()
    until = time.monotonic() + 60
    while other.dead() != [member.name]:
        assert time.monotonic() < until
        time.sleep(0.01)
    yield other.recover
    other.close()


class TestUnitsOfOneTurn:
    """Two connections, each with a unit of work on both sides, that commit in the same turn."""

    def commit_both(self, member):
        works_on_both(member)
        first, second = member.session, member.qm.connect(Identity(client_id="second", administrator=True))
        member.session = second
        for q_name in ("OWN", "SHARED"):
            member.put(q_name, b"second")
        return member.qm.turn([(first, 1, Commit(unit=1)), (second, 2, Commit(unit=1))])

    def test_both_are_answered_and_stand(self, member):
        assert not any(isinstance(answer.reply, Refused) for answer in self.commit_both(member))
        member.die()
        member.start()
        for q_name in ("OWN", "SHARED"):
            assert member.left(q_name) == [(b"new", 0), (b"second", 0)]

    def test_the_first_is_decided_before_the_second_is_prepared(self, member):
        steps = []

        def watched(where, name):
            right = getattr(where, name)
            setattr(where, name, lambda *args: (steps.append(name), right(*args))[1])

        for where, name in ((member.own, "prepare"), (member.shared, "end_unit"), (member.shared, "end")):
            watched(where, name)
        self.commit_both(member)
        begun = steps.index("prepare")
        assert steps[begun:] == ["prepare", "end_unit", "end"] * 2

    @pytest.mark.parametrize(("at", "before"), [("prepare", True), ("prepare", False), ("end_unit", True)])
    def test_cut_off_in_the_second_the_first_stands_and_the_second_is_backed_out(self, member, at, before):
        where = member.own if at == "prepare" else member.shared
        right, calls = getattr(where, at), []

        def step(*args):
            calls.append(at)
            if len(calls) < 2:
                right(*args)
                return
            if not before:
                right(*args)
            raise StoreBroken("the process ends here")

        setattr(where, at, step)
        with pytest.raises(StoreBroken):
            self.commit_both(member)
        setattr(where, at, right)
        member.die()
        member.start()
        for q_name in ("OWN", "SHARED"):
            assert member.left(q_name) == [(b"new", 0)]


def test_a_failed_call_is_taken_back_in_both_stores(member, monkeypatch):
    right = member.shared.apply

    def apply(change, handle=None):
        right(change, handle)
        raise RuntimeError("a bug")

    monkeypatch.setattr(member.shared, "apply", apply)
    assert isinstance(member.do(Put(q_name="SHARED", data=b"m")), Refused)
    monkeypatch.undo()
    assert member.shared.queue("SHARED").depths == (0,) * 10
    assert member.left("SHARED") == []


def test_numbers_of_shared_messages_are_no_members_own(member):
    member.put("SHARED", b"m", unit=0)
    member.shared.enter()
    (message,) = member.shared.find(Selection("SHARED", 0)).messages
    assert message.number >= FIRST_NUMBER
    member.shared.end()


def test_a_member_that_starts_judges_nothing_that_happened_before(member):
    member.did(Define(object_type="QLOCAL", name="INITQ"))
    member.did(Define(object_type="PROCESS", name="P"))
    armed = {"trigger_control": "on", "initiation_q_name": "INITQ", "process_name": "P", "qsg_disp": "shared"}
    member.did(Define(object_type="QLOCAL", name="T", attributes=armed))
    opened = member.did(Open(object_name="INITQ", options=IN))
    member.put("T", b"m", unit=0)
    member.did(Get(handle=opened.handle))
    member.die()
    member.start()
    (row,) = member.did(Display(object_type="QLOCAL", name="INITQ")).rows
    assert row["current_q_depth"] == 0
