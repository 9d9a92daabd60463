"""One unit of work over a member's own store and its group's: the group's decides, and a member cut off asks it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time

import pytest

from tests.postgres import end_sessions, give_back
from tests.qmgr.dying_member import STEPS
from tests.qmgr.members import IN, Member, works_on_both
from trigmon.mq.calls import Backout, BeginBackup, Commit, Define, Display, Get, Move, Open, Outcome, Put
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.replies import OutcomeWas, Refused
from trigmon.qmgr.member_copy import MemberCopy
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.stored_messages import Selection
from trigmon.store.memory.group import FIRST_NUMBER, MemoryGroup
from trigmon.store.port import StoreBroken

COMMIT = Commit(unit=1)


@pytest.fixture(params=["memory", "sqlite", "sqlite in a group on postgresql", "postgres in a group on postgresql"])
def member(request, tmp_path):
    kind, _, elsewhere = request.param.partition(" in ")
    made = Member(kind, tmp_path, request.getfixturevalue("group") if elsewhere else MemoryGroup())
    made.did(Define(object_type="QLOCAL", name="OWN"))
    made.did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    yield made
    made.die()
    if kind == "postgres":
        give_back(tmp_path)


def is_taken_back_by_the_session(member):
    """Whether what was not ended with the turn is gone with the session: a group in memory has no transactions."""
    return not isinstance(member.group, MemoryGroup)


def cut_off(member, at, *, before, call=COMMIT, act=None, time=1):
    """The process ends in the middle of a commit: before or after one step of it, when that comes for this time."""
    where, name = at
    right, times = getattr(where, name), []

    def step(*args):
        times.append(name)
        if len(times) < time or not before:
            right(*args)
        if len(times) == time:
            raise StoreBroken("the process ends here")

    setattr(where, name, step)
    with pytest.raises(StoreBroken):
        act(member) if act else member.do(call)
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


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_killed_within_a_commit_finds_both_halves_as_the_group_has_decided(
    group, tmp_path, step, when
):
    definer = Member("sqlite", tmp_path, group)
    definer.did(Define(object_type="QLOCAL", name="OWN"))
    definer.did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    definer.qm.stop()
    command = [sys.executable, "-m", "tests.qmgr.dying_member", tmp_path, group.place.dsn, group.place.schema]
    done = subprocess.run([*command, step, when], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = Member("sqlite", tmp_path, group)
    is_decided = (step, when) == ("shared.end", "after") or step == "own.end"
    for q_name in ("OWN", "SHARED"):
        assert again.left(q_name) == ([(b"new", 0)] if is_decided else [(b"old", 1)])
    again.qm.stop()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_session_that_is_ended_within_a_commit_leaves_both_halves_as_the_group_has_decided(
    group, tmp_path, step, when
):
    member = Member("sqlite", tmp_path, group)
    member.did(Define(object_type="QLOCAL", name="OWN"))
    member.did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    works_on_both(member)
    half, name = step.split(".")
    where = getattr(member, half)
    right = getattr(where, name)

    def cut(*args):
        if when == "after":
            right(*args)
        end_sessions(group.place)
        if when == "before":
            right(*args)

    setattr(where, name, cut)
    with contextlib.suppress(StoreBroken):
        member.do(Commit(unit=1))
    setattr(where, name, right)
    member.die()
    member.start()
    is_decided = (step, when) == ("shared.end", "after") or step == "own.end"
    for q_name in ("OWN", "SHARED"):
        assert member.left(q_name) == ([(b"new", 0)] if is_decided else [(b"old", 1)])
    member.qm.stop()


@pytest.mark.parametrize(
    ("at", "before", "there"),
    [
        ("own.prepare", True, {"SHARED"}),
        ("own.prepare", False, {"SHARED", "OWN"}),
        ("shared.end", True, {"SHARED", "OWN"}),
        ("shared.end", False, {"OWN"}),
        ("own.end", True, {"OWN"}),
    ],
)
def test_a_message_that_moves_from_the_group_to_its_member_is_there_twice_rather_than_not_at_all(
    group, tmp_path, at, before, there
):
    member = Member("sqlite", tmp_path, group)
    member.did(Define(object_type="QLOCAL", name="OWN"))
    member.did(Define(object_type="QLOCAL", name="SHARED", attributes={"qsg_disp": "shared"}))
    member.put("SHARED", b"m", unit=0)
    half, name = at.split(".")
    cut_off(member, (getattr(member, half), name), before=before, call=Move(q_name="SHARED", to_q_name="OWN"))
    assert {q_name for q_name in ("SHARED", "OWN") if member.left(q_name) == [(b"m", 0)]} == there
    member.qm.stop()


def test_one_that_moves_in_the_turn_of_a_commit_on_shared_queues_alone_is_not_lost_either(group, tmp_path):
    member = Member("sqlite", tmp_path, group)
    member.did(Define(object_type="QLOCAL", name="OWN"))
    for name in ("SHARED", "OTHER"):
        member.did(Define(object_type="QLOCAL", name=name, attributes={"qsg_disp": "shared"}))
    member.put("SHARED", b"m", unit=0)
    member.put("OTHER", b"n")
    right = member.own.end
    member.own.end = broken
    with pytest.raises(StoreBroken):
        member.qm.turn([(member.session, 1, Move(q_name="SHARED", to_q_name="OWN")), (member.session, 2, COMMIT)])
    member.own.end = right
    member.die()
    member.start()
    assert [member.left(q_name) for q_name in ("SHARED", "OWN", "OTHER")] == [[], [(b"m", 0)], [(b"n", 0)]]
    member.qm.stop()


def broken():
    raise StoreBroken("the process ends here")


@pytest.mark.parametrize(("source", "target"), [("SHARED", "OWN"), ("OWN", "SHARED")])
def test_a_message_that_moves_is_moved(member, source, target):
    member.put(source, b"m", unit=0)
    member.did(Move(q_name=source, to_q_name=target))
    assert (member.left(source), member.left(target)) == ([], [(b"m", 0)])


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
        cut_off(member, (where, at), before=before, act=self.commit_both, time=2)
        for q_name in ("OWN", "SHARED"):
            assert member.left(q_name) == [(b"new", 0)]


def test_what_one_unit_did_on_shared_queues_alone_is_not_ended_here_by_what_the_next_prepares(member):
    """Its outcome would be on record here before the group has decided it."""
    if not is_taken_back_by_the_session(member):
        pytest.skip("decided at once")
    first, second = member.session, member.qm.connect(Identity(client_id="second", administrator=True))
    member.put("SHARED", b"first")
    member.session = second
    for q_name in ("OWN", "SHARED"):
        member.put(q_name, b"second")
    steps, right = [], member.own.prepare

    def prepare():
        steps.append("prepared")
        right()
        raise StoreBroken("the process ends here")

    member.own.prepare = prepare
    with pytest.raises(StoreBroken):
        member.qm.turn([(first, 1, Commit(unit=1)), (second, 2, Commit(unit=1))])
    member.die()
    member.start()
    assert steps == ["prepared"]
    found = member.left("SHARED")
    said = member.did(Outcome(client_id="client-1", unit=1))
    assert (found, said.outcome) == ([(b"first", 0)], UnitOutcome.COMMITTED)
    assert member.left("OWN") == []


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


def test_no_message_id_of_a_shared_message_is_given_again_by_a_later_life(member, monkeypatch):
    """The member's own store sees nothing of such a put, and is what knows which numbers were used."""
    if member.kind == "memory":
        pytest.skip("it has no crash to come back from")
    monkeypatch.setattr("trigmon.store.sql.store.ID_BLOCK", 20)
    member.die()
    member.start()
    given = [member.put("SHARED", b"m", unit=0).msg_id for _ in range(50)]
    member.die()
    member.start()
    given += [member.put("SHARED", b"m", unit=0).msg_id for _ in range(50)]
    assert len(set(given)) == len(given)


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


def test_a_backup_holds_no_end_of_a_unit_of_work_that_the_group_has_not_decided(tmp_path, group):
    member = Member("sqlite", tmp_path, group)
    for name, scope in (("OWN", "q_mgr"), ("SHARED", "shared")):
        member.did(Define(object_type="QLOCAL", name=name, attributes={"qsg_disp": scope}))
    works_on_both(member)
    steps = []
    for where, name in ((member.shared, "end"), (member.own.copy, "begin")):
        right = getattr(where, name)
        setattr(where, name, lambda *args, right=right, name=name: (steps.append(name), right(*args))[1])
    member.store.copy = MemberCopy(member.own.copy, member.store._decide)
    answers = member.qm.turn([(member.session, 1, COMMIT), (member.session, 2, BeginBackup())])
    assert not [answer for answer in answers if isinstance(answer.reply, Refused)]
    assert steps[:2] == ["end", "begin"]
    member.die()
