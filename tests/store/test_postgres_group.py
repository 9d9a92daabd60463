"""A queue-sharing group on PostgreSQL: who its members are, what is left of one that died, and turns beside each other.

What is answered on shared queues is told in scenarios, which are played on it as on a group in memory.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import psycopg
import pytest

from tests import postgres
from tests.qmgr.members import Member
from tests.waiting import until
from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Backout, Commit, Define, Get, Open, Outcome, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, ObjectType, OpenOption, QsgDisp, UnitOutcome
from trigmon.mq.replies import Refused, WasGot
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model import changes as c
from trigmon.rules.model.handles import Decided
from trigmon.store.port import AnothersStore, DirectoryInUse, Fenced, StoreBroken, Unfit
from trigmon.store.postgres import group_sql, turn
from trigmon.store.postgres import lease as serving
from trigmon.store.postgres.connection import connect
from trigmon.store.postgres.group import membership
from trigmon.store.postgres.group.group import PostgresGroup
from trigmon.store.postgres.group.member_session import NOTHING_REACHED, Reached, check_reached
from trigmon.store.postgres.schemas import GROUP
from trigmon.store.postgres.store import PostgresStore
from trigmon.store.sqlite import store as sqlite_store

IN, EXCLUSIVE, BROWSE = OpenOption.INPUT_SHARED.value, OpenOption.INPUT_EXCLUSIVE.value, OpenOption.BROWSE.value
LEASE_MS = 2000


@pytest.fixture
def impatient():
    """A group whose members are believed dead soon."""
    with postgres.group(LEASE_MS) as made:
        yield made


@pytest.fixture
def join(tmp_path):
    """Makes members of a group, by name, which leave at the end as far as they can."""
    made = []

    def join(group, name="QM1"):
        made.append(Member("memory", tmp_path, group, name))
        return made[-1]

    yield join
    for member in made:
        member.die()


def defined(member, name="Q", **attributes):
    member.did(Define(object_type="QLOCAL", name=name, attributes={"qsg_disp": "shared", **attributes}))
    return member


def is_found_dead(member, name):
    until(lambda: name in member.shared.dead())


class TestItsSchema:
    def test_a_group_does_not_take_that_of_another(self, group, join):
        join(group)
        with pytest.raises(AnothersStore, match="the queue-sharing group QSG1, not QSG2"):
            PostgresGroup(group.place, "QSG2").join("QM1")
        with pytest.raises(AnothersStore, match="QSG1, not QSG2"):
            PostgresGroup(group.place, "QSG2").members()

    def test_where_what_was_answered_may_be_lost_it_names_the_setting_of_the_group(self, group):
        with pytest.raises(StoreBroken, match=r"fsync is off.*; set group\.accept_loss to accept that"):
            PostgresGroup(group.place._replace(accept_loss=False), "QSG1").join("QM1")

    def test_what_was_acknowledged_must_be_there_unless_its_loss_is_put_up_with(self, group):
        with connect(group.place, GROUP) as db:
            there = Reached(check_reached(db, group.place, NOTHING_REACHED))
            careful = group.place._replace(accept_loss=False)
            assert check_reached(db, careful, there) == there.timeline
            more = there._replace(version=10**9)
            with pytest.raises(Unfit, match="1000000000 was acknowledged; restart the queue manager"):
                check_reached(db, careful, more)
            assert check_reached(db, group.place, more) == there.timeline

    def test_a_server_that_was_replaced_is_none_whatever_is_put_up_with(self, group):
        with connect(group.place, GROUP) as db:
            later = Reached(1 + check_reached(db, group.place, NOTHING_REACHED))
            with pytest.raises(Unfit, match="a server that was replaced"):
                check_reached(db, group.place, later)

    def test_it_is_no_queue_managers_own_and_the_other_way_about(self, group, join, tmp_path):
        join(group)
        with pytest.raises(StoreBroken, match="something else than the data of a queue manager"):
            PostgresStore(group.place)
        own = postgres.place(tmp_path)
        PostgresStore(own).abandon()
        with pytest.raises(StoreBroken, match="something else than the data of a queue-sharing group"):
            PostgresGroup(own, "QSG1").join("QM1")
        postgres.give_back(tmp_path)


class TestMembers:
    def test_one_process_at_a_time_is_a_member(self, impatient, join):
        member = join(impatient)
        other = impatient.join("QM1")
        member.shared.beat()
        assert not other.take()
        assert other.session.holder().startswith("process ")
        stopped = threading.Event()

        def beats():
            while not stopped.wait(member.shared.session.beat_s):
                member.shared.beat()

        beating = threading.Thread(target=beats)
        beating.start()
        with pytest.raises(DirectoryInUse, match="in use by process"):
            other.open()
        stopped.set()
        beating.join()
        other.abandon()

    def test_each_start_is_a_new_epoch_and_its_number_stays(self, group, join):
        member = join(group)
        member.qm.stop()
        again = join(group)
        assert (again.shared.session.number, again.shared.session.who) == (1, ("QM1", 2))
        assert join(group, "QM2").shared.session.number == 2

    def test_they_are_shown_with_their_roles_and_who_of_them_lives(self, group, join):
        one, two = join(group), join(group, "QM2")
        assert one.shared.takes_role("ANY", 0, 1000)
        two.qm.stop()
        shown = {each.name: each for each in group.members()}
        assert [(e.name, e.epoch, e.is_serving, e.roles, e.recovered_ms) for e in shown.values()] == [
            ("QM1", 1, True, ("ANY",), None),
            ("QM2", 1, False, (), None),
        ]
        assert 0 <= shown["QM1"].silent_ms < 60_000
        assert shown["QM1"].host and shown["QM1"].pid

    def test_the_last_version_a_member_has_read_is_where_its_next_life_begins(self, group, join):
        one = defined(join(group))
        before = one.shared.reached
        one.did(Put(q_name="Q", descriptor=MessageDescriptor(persistence=0)))
        assert one.shared.reached == before
        one.put("Q", b"m", unit=0)
        assert one.shared.reached == (before.timeline, one.shared.version)
        again = group.join("QM2", one.shared.reached)
        assert again.reached == one.shared.reached
        again.abandon()

    def test_a_member_that_waits_for_a_lock_is_not_dead_however_long_it_is_silent(self, impatient, join):
        one, two = defined(join(impatient)), join(impatient, "QM2")
        with psycopg.connect(impatient.place.dsn, options=f"-csearch_path={impatient.place.schema}") as holder:
            holder.execute("SELECT FROM turn FOR UPDATE")
            putting = threading.Thread(target=lambda: one.put("Q", b"m", unit=0))
            putting.start()
            until(lambda: postgres.waits_for_a_lock(impatient.place))
            began_s = time.monotonic()
            while time.monotonic() < began_s + 3 * LEASE_MS / 1000:
                assert two.shared.dead() == []
        putting.join()
        assert one.left("Q") == [(b"m", 0)]

    def test_a_role_is_a_members_until_it_ends_or_lets_it_expire(self, group, join):
        one, two = join(group).shared, join(group, "QM2").shared
        for member in (one, two):
            member.takes_role("EXPIRY", 0, 0)
        assert two.takes_role("EXPIRY", 1, 1000)
        assert not one.takes_role("EXPIRY", 500, 2000)
        assert two.takes_role("EXPIRY", 900, 2000)
        assert not one.takes_role("EXPIRY", 1999, 3000)
        assert one.takes_role("EXPIRY", 2000, 3000)
        one.close()
        assert two.takes_role("EXPIRY", 2001, 3000)


class TestADeadMember:
    def test_what_it_had_in_flight_is_settled_and_what_it_had_open_is_free(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        for data in (b"got", b"locked"):
            one.put("Q", data, unit=0)
        handle = one.did(Open(object_name="Q", options=EXCLUSIVE | BROWSE)).handle
        one.did(Get(handle=handle, options=2, unit=1))
        one.did(Get(handle=handle, options=GetOption.BROWSE_FIRST | GetOption.LOCK))
        one.put("Q", b"uncommitted")
        assert one.shared.takes_role("ANY", 0, 1 << 40)
        assert isinstance(two.do(Open(object_name="Q", options=IN)), Refused)
        assert not two.shared.recover("QM1"), "it lives"
        one.die()
        is_found_dead(two, "QM1")
        assert two.shared.recover("QM1")
        assert two.left("Q") == [(b"got", 1), (b"locked", 0)]
        assert two.shared.takes_role("ANY", 1, 2)
        assert (two.shared.dead(), two.shared.recover("QM1")) == ([], False)
        (shown,) = [each for each in group.members() if each.name == "QM1"]
        assert (shown.is_serving, shown.recovered_by) == (False, "QM2")
        assert (shown.puts, shown.gets, shown.opens, shown.locks) == (1, 1, 1, 1)
        assert shown.recovered_ms is not None

    def test_it_is_not_taken_for_dead_while_it_is_kept_alive_whatever_keeps_it_busy(self, impatient, join):
        one, two = join(impatient), join(impatient, "QM2")
        until_s = time.monotonic() + 3 * LEASE_MS / 1000
        with one.shared.session.kept_alive():
            while time.monotonic() < until_s:
                assert two.shared.dead() == []
        is_found_dead(two, "QM1")

    def test_two_may_find_it_and_one_settles(self, group, join):
        one, others = defined(join(group)), [join(group, name) for name in ("QM2", "QM3")]
        one.put("Q", b"m")
        one.die()
        for other in others:
            is_found_dead(other, "QM1")
        assert [other.shared.recover("QM1") for other in others] == [True, False]

    def test_one_that_never_was_is_nothing_to_recover(self, group, join):
        assert not join(group).shared.recover("NOBODY")

    def test_it_finds_its_own_past_when_nobody_did_before(self, group, join):
        one = defined(join(group))
        one.put("Q", b"m", unit=0)
        handle = one.did(Open(object_name="Q", options=EXCLUSIVE)).handle
        one.did(Get(handle=handle, options=2, unit=1))
        one.die()
        assert join(group).left("Q") == [(b"m", 1)]

    def test_after_an_orderly_end_nothing_is_left_to_do(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        one.put("Q", b"m")
        one.did(Open(object_name="Q", options=EXCLUSIVE))
        one.qm.stop()
        assert two.shared.dead() == []
        assert two.left("Q") == []

    def test_the_group_of_a_message_that_comes_back_is_whole_again(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        for seq, flags in ((1, 8), (2, 24)):
            said = MessageDescriptor(group_id=b"G" * 24, msg_seq_number=seq, msg_flags=flags)
            one.did(Put(q_name="Q", data=b"%d" % seq, descriptor=said))
        handle = one.did(Open(object_name="Q", options=IN)).handle
        one.did(Get(handle=handle, options=2, unit=1))
        one.die()
        is_found_dead(two, "QM1")
        whole = GetOption.ALL_MSGS_AVAILABLE | GetOption.LOGICAL_ORDER
        handle = two.did(Open(object_name="Q", options=IN)).handle
        assert isinstance(two.do(Get(handle=handle, options=whole)), Refused)
        two.shared.recover("QM1")
        assert two.did(Get(handle=handle, options=whole)).data == b"1"


def commits(member, client_id, *q_names, persistence=1):
    """A client of this name, used for nothing else, commits a message on each of these queues, by itself on Q."""
    session = member.qm.connect(Identity(client_id=client_id, administrator=True))
    descriptor = MessageDescriptor(persistence=persistence)
    puts = [Put(q_name=q, data=b"m", descriptor=descriptor, options=2, unit=1) for q in q_names or ("Q",)]
    for call in (*puts, Commit(unit=1)):
        member.qm.turn([(session, 1, call)])


def commits_on_both(member, client_id, persistence=1):
    """A client commits a message on the shared queue and one on the member's own queue OWN."""
    member.do(Define(object_type="QLOCAL", name="OWN"))
    commits(member, client_id, "Q", "OWN", persistence=persistence)


def told_at_its_next_start(group, member):
    """The clients of which a member that was killed now is told units of work; it has not taken them in."""
    member.die()
    again = group.join(member.name)
    told = again.open()
    again.abandon()
    assert all(isinstance(each, Decided) and each.unit_id for each in told)
    return [each.client_id for each in told]


class TestWhatItHadCommitted:
    """Units of work that the member's own half may not know to be committed, when it dies."""

    def test_those_of_its_last_turn_are_given_at_its_next_start_however_often(self, group, join):
        one = defined(join(group))
        for number in range(1, 4):
            commits_on_both(one, f"c{number}")
        assert told_at_its_next_start(group, one) == ["c3"]
        assert told_at_its_next_start(group, one) == ["c3"]
        join(group).qm.stop()
        third = group.join("QM1")
        assert third.open() == [], "the last life has taken them in"
        third.abandon()

    def test_clients_that_come_once_leave_no_row_each(self, group, join):
        one = defined(join(group))
        for number in range(60):
            commits_on_both(one, f"c{number}")
        assert told_at_its_next_start(group, one) == ["c59"]

    def test_what_was_backed_out_or_undone_is_not_given(self, group, join):
        one = defined(join(group))
        one.put("Q", b"m")
        one.did(Backout(unit=1))
        assert told_at_its_next_start(group, one) == []

    @pytest.mark.parametrize("persistence", [0, 1])
    def test_those_of_shared_queues_alone_are_kept_until_the_members_own_end_of_another_lasts(
        self, group, join, persistence
    ):
        """A crash or a power cut may take its own ends of them, and who asks is to hear what the group did."""
        one = defined(join(group))
        for number in range(5):
            commits(one, f"c{number}", persistence=persistence)
        commits_on_both(one, "lasts")
        commits(one, "later", persistence=persistence)
        assert told_at_its_next_start(group, one) == ["later"]

    def test_that_of_both_halves_which_need_not_last_makes_none_last(self, group, join):
        one = defined(join(group))
        commits_on_both(one, "first", persistence=0)
        commits(one, "second")
        assert sorted(told_at_its_next_start(group, one)) == ["first", "second"]

    def test_the_end_of_one_of_shared_queues_alone_waits_for_what_is_written_next(self, group, tmp_path):
        """It costs no sync, nor a write, of the member's own store; killed, the member still tells its outcome."""
        member = Member("sqlite", tmp_path, group)
        defined(member)
        log = tmp_path / f"{sqlite_store.FILE_NAME}-turns"
        for unit in range(1, 5):
            written = log.read_bytes()
            member.put("Q", b"m", unit)
            member.did(Commit(unit=unit))
            assert (log.read_bytes() == written) == (unit > 1), "a client's first unit of work is noted at once"
        member.die()
        member.start()
        outcomes = [member.did(Outcome(client_id="client-1", unit=unit)).outcome for unit in (3, 4, 5)]
        assert outcomes == [UnitOutcome.COMMITTED, UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT]
        member.qm.stop()

    def test_so_much_that_need_not_last_is_kept_and_then_the_members_own_end_lasts(self, group, join, monkeypatch):
        monkeypatch.setattr(membership, "MOST_KEPT", 4)
        one, lasts = defined(join(group)), []
        right = one.own.prepare
        one.own.prepare = lambda: (lasts.append(number), right())
        for number in range(11):
            commits(one, f"c{number}", persistence=0)
        assert lasts == [3, 7]
        assert sorted(told_at_its_next_start(group, one)) == ["c10", "c8", "c9"]


def late(group, join):
    """One that was silent for its lease and recovered, and does not know it; and who recovered it."""
    one, two = defined(join(group)), join(group, "QM2")
    one.put("Q", b"m", unit=0)
    handle = one.did(Open(object_name="Q", options=IN)).handle
    one.did(Get(handle=handle, options=2, unit=1))
    one.put("Q", b"uncommitted")
    until(lambda: two.shared.dead() == ["QM1"])
    assert two.shared.recover("QM1")
    return one, two


def check_that_nothing_late_stands(group, join, call):
    one, two = late(group, join)
    with pytest.raises(Fenced):
        one.do(call)
    assert two.left("Q") == [(b"m", 1)]
    assert isinstance(two.do(Open(object_name="LATE", options=IN)), Refused)


def check_that_no_get_is_committed_that_the_database_has_forgotten(group, join):
    """As it would after a crash, since marks of gets are not waited for until they last."""
    one, two = defined(join(group)), join(group, "QM2")
    one.put("Q", b"m", unit=0)
    handle = one.did(Open(object_name="Q", options=IN)).handle
    assert one.did(Get(handle=handle, options=2, unit=1)).data == b"m"
    postgres.change(group.place, "UPDATE message SET taken_by = NULL")
    with pytest.raises(StoreBroken, match="1 rows were to change, and 0 did"):
        one.do(Commit(unit=1))
    one.die()
    is_found_dead(two, "QM1")
    two.shared.recover("QM1")
    assert two.left("Q") == [(b"m", 0)]


def check_that_one_is_in_the_group_at_a_time(group, join):
    one, two = join(group), join(group, "QM2")
    one.shared.enter()
    entered = threading.Event()

    def enter():
        two.shared.enter()
        entered.set()

    entering = threading.Thread(target=enter)
    entering.start()
    until(lambda: entered.is_set() or postgres.waits_for_a_lock(group.place))
    was_alone = not entered.is_set()
    one.shared.end()
    entering.join()
    two.shared.end()
    assert was_alone


def test_a_definition_that_is_taken_back_leaves_its_name_free(group, join):
    one = join(group)
    one.shared.enter()
    one.shared.mark()
    one.shared.apply(c.SetDefinition(ObjectType.QLOCAL, LocalQueue(name="Q", qsg_disp=QsgDisp.SHARED)))
    one.shared.undo()
    one.shared.end()
    defined(one)
    one.put("Q", b"m", unit=0)
    assert one.left("Q") == [(b"m", 0)]


class TestTheFence:
    @pytest.mark.parametrize(
        "call",
        [
            Commit(unit=1),
            Put(q_name="Q", data=b"late"),
            Open(object_name="Q", options=IN),
            Define(object_type="QLOCAL", name="LATE", attributes={"qsg_disp": "shared"}),
        ],
        ids=lambda call: type(call).__name__,
    )
    def test_who_was_recovered_does_nothing_more_and_nothing_of_its_turn_stands(self, impatient, join, call):
        check_that_nothing_late_stands(impatient, join, call)

    @pytest.mark.parametrize("act", ["beat", "dead", "takes_role"])
    def test_it_gets_that_error_whatever_it_asks_first(self, impatient, join, act):
        one, _ = late(impatient, join)
        asks = {
            "beat": one.shared.beat,
            "dead": one.shared.dead,
            "takes_role": lambda: one.shared.takes_role("R", 0, 1),
        }
        with pytest.raises(Fenced):
            asks[act]()

    def test_a_get_that_the_database_has_forgotten_is_not_committed(self, group, join):
        check_that_no_get_is_committed_that_the_database_has_forgotten(group, join)

    def test_who_stops_in_the_middle_of_a_turn_loses_it_and_the_others_go_on(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        one.shared.enter()
        began = time.monotonic()
        two.put("Q", b"m", unit=0)
        assert time.monotonic() - began > 1
        with pytest.raises(StoreBroken):
            one.put("Q", b"late", unit=0)
        assert two.left("Q") == [(b"m", 0)]


class TestPlantedFaults:
    """Each is noticed by what is checked above."""

    def test_no_epoch_is_checked(self, impatient, join, monkeypatch):
        monkeypatch.setattr(serving, "CHECK", "SELECT length(?::text) + ?::int8")
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            check_that_nothing_late_stands(impatient, join, Put(q_name="Q", data=b"late"))

    def test_no_rows_are_counted(self, group, join, monkeypatch):
        uncounted = "WITH done AS ({} RETURNING 1) SELECT ?::int8"
        monkeypatch.setattr(turn, "counted", uncounted.format)
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            check_that_no_get_is_committed_that_the_database_has_forgotten(group, join)

    def test_neither_is_so_a_message_is_got_twice(self, impatient, join, monkeypatch):
        monkeypatch.setattr(serving, "CHECK", "SELECT length(?::text) + ?::int8")
        monkeypatch.setattr(turn, "counted", "WITH done AS ({} RETURNING 1) SELECT ?::int8".format)
        one, two = late(impatient, join)
        assert not isinstance(one.do(Commit(unit=1)), Refused), "it has got the message"
        assert two.left("Q") == [(b"m", 1)], "and so has this one"

    def test_nothing_is_locked(self, group, join, monkeypatch):
        monkeypatch.setattr(group_sql, "LOCK", group_sql.PEEK)
        with pytest.raises(AssertionError):
            check_that_one_is_in_the_group_at_a_time(group, join)


class TestTurnsBesideEachOther:
    def test_one_is_in_the_group_at_a_time(self, group, join):
        check_that_one_is_in_the_group_at_a_time(group, join)

    def test_many_members_at_once_lose_nothing_get_nothing_twice_and_count_right(self, group, join):
        members = [join(group, f"QM{number}") for number in range(1, 5)]
        defined(members[0], max_q_depth=100_000)
        got, failed, each = [], [], 60

        def puts(member):
            for number in range(1, each + 1):
                member.put("Q", b"%s %d" % (member.name.encode(), number), unit=number)
                member.did((Backout if number % 5 == 0 else Commit)(unit=number))

        def gets(member):
            handle = member.did(Open(object_name="Q", options=IN)).handle
            for unit in range(1, 3 * each):
                found = [member.do(Get(handle=handle, options=2, unit=unit)) for _ in range(2)]
                is_kept = unit % 4 != 0
                member.did((Commit if is_kept else Backout)(unit=unit))
                got.extend(each.data for each in found if is_kept and isinstance(each, WasGot))

        def guarded(act, member):
            try:
                act(member)
            except BaseException as error:
                failed.append(error)

        threads = [
            threading.Thread(target=guarded, args=(puts if n % 2 else gets, each)) for n, each in enumerate(members)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        left = [data for data, _ in members[0].left("Q")]
        put = [
            b"%s %d" % (m.name.encode(), number) for m in members[1::2] for number in range(1, each + 1) if number % 5
        ]
        assert Counter(got + left) == Counter(put)
        for member in members:
            member.qm.turn([])
            queue = member.shared.queue("Q")
            assert (sum(queue.depths), sum(queue.put_totals)) == (0, len(put))
            assert all(use.puts == use.gets == 0 for use in queue.uses.values())

    def test_a_notification_reaches_the_others_and_not_its_sender(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        two.shared.was_notified()
        two.qm.turn([])
        one.put("Q", b"m", unit=0)
        until(two.shared.was_notified)
        assert not one.shared.was_notified()
        two.qm.turn([])
        assert not two.shared.was_notified()

    def test_what_changes_nothing_rings_nothing(self, group, join):
        one, two = defined(join(group)), join(group, "QM2")
        handle = one.did(Open(object_name="Q", options=IN)).handle
        until(two.shared.was_notified)
        two.qm.turn([])
        assert isinstance(one.do(Get(handle=handle)), Refused)
        one.put("Q", b"m", unit=0)
        version = one.shared.version
        until(two.shared.was_notified)
        two.qm.turn([])
        assert two.shared.version == version
