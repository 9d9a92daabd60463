"""A group whose database has a synchronous standby: it is waited for, takes over, and what it replaced stays away."""

from __future__ import annotations

import time

import psycopg
import pytest

from tests.members import LEASE_S, aside, group_of, members, sees, settings, share
from tests.postgres import STANDBY, Pair, Server
from tests.waiting import until
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import CfNotAvailable, ConnectionBroken

WAITS = "the database does not answer; calls wait for it"
BROKEN_OFF = {"pg_cancel_backend": "the commit was not confirmed", "pg_terminate_backend": "has lost the database"}


@pytest.fixture(scope="module")
def pairs():
    made = []
    yield made
    for one in made:
        one.end()


@pytest.fixture
def pair(pairs):
    """A pair that is whole, in which each test has a group of its own."""
    if not pairs or not pairs[-1].is_whole():
        pairs.append(Pair())
    return pairs[-1]


@pytest.fixture
def two(daemon, pair):
    """Two members that accept no loss, with one shared queue Q."""
    made = members(daemon, "QM1", "QM2", chosen=careful(pair.dsn))
    share(made[0], "Q")
    sees(*made, q_name="Q")
    return made


def careful(dsn, **more):
    return settings(dsn, **more) | {"group.accept_loss": "false"}


def put(one, body, note=lambda unit: None):
    """A unit of work that puts a message; its number and whose it is, which are noted before it ends."""
    with one.connect() as qm:
        unit = qm.unit, qm.client_id
        note(unit)
        qm.put("Q", body, persistence="persistent", syncpoint=True)
        qm.commit()
        return unit


def bodies(one):
    with one.connect() as qm, qm.open("Q", "input_shared") as q:
        return sorted(message.data for message in q.drain())


def is_back(*some, lives=2):
    for one in some:
        until(lambda one=one: len(one.events("ready")) == lives)


def waiting(server):
    """The sessions whose commits wait for a standby."""
    with psycopg.connect(server.dsn, autocommit=True) as db:
        return [pid for (pid,) in db.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")]


class TestTheStart:
    def test_a_server_without_a_standby_is_refused_unless_its_loss_is_put_up_with(self, daemon):
        server = Server()
        (one,) = members(daemon, "QM1", chosen=careful(server.dsn), start=False)
        one.launch()
        assert one.wait() == 2
        why = one.events("the queue manager cannot start")[0]["why"]
        assert "synchronous_standby_names is empty" in why
        assert "set group.accept_loss to accept that" in why
        server.end()

    def test_a_standby_that_is_away_is_waited_for_and_one_that_is_asked_to_stop_meanwhile_does(self, daemon, pair):
        pair.standby.kill()
        first, second = members(daemon, "QM1", "QM2", chosen=careful(pair.dsn), start=False)
        for one in (first, second):
            one.launch()
            assert "no synchronous standby is connected" in one.wait_for_event("standing by")["why"]
        assert second.stop() == 0
        pair.standby.start()
        first.wait_until_ready()
        share(first, "Q")


class TestTheStandbyTakesOver:
    def test_members_find_it_by_themselves_and_all_that_was_acknowledged_is_there(self, pair, two):
        first, second = two
        committed = put(first, b"one")
        put(second, b"two")
        cut = first.connect()
        cut.put("Q", b"never committed", persistence="persistent", syncpoint=True)
        pair.fail_over()
        with pytest.raises(ConnectionBroken, match="has lost the database of the group QSG1"):
            cut.commit()
        pair.mend()
        is_back(first, second)
        with first.connect() as qm:
            assert qm.outcome(*committed) is UnitOutcome.COMMITTED
            assert qm.outcome(1, cut.client_id) is UnitOutcome.BACKED_OUT
        put(second, b"three")
        assert bodies(first) == [b"one", b"three", b"two"]

    def test_nothing_is_acknowledged_before_it_has_a_standby_of_its_own(self, pair, two):
        first, second = two
        put(first, b"one")
        pair.fail_over()
        for one in two:
            why = until(lambda one=one: [e for e in one.events("standing by") if "no synchronous standby" in e["why"]])
            assert len(why) == 1
        with pytest.raises(CfNotAvailable, match="no synchronous standby is connected"):
            first.connect()
        pair.mend()
        is_back(*two)
        put(second, b"two")
        assert bodies(first) == [b"one", b"two"]

    def test_one_that_forgets_its_standby_while_it_is_served_from_is_left(self, pair, two):
        first, second = two
        put(first, b"one")
        pair.primary.alter("synchronous_standby_names", "")
        for one in two:
            one.wait_for_event("the group's database is lost; it comes back with that")
        with pytest.raises(CfNotAvailable, match=r"standby_names is empty.*; set group\.accept_loss to"):
            first.connect()
        pair.primary.alter("synchronous_standby_names", STANDBY)
        is_back(*two)
        assert bodies(second) == [b"one"]

    def test_one_that_names_no_standby_is_waited_for_until_it_does(self, pair, two):
        """What made the start be refused is no reason to end for a queue manager that runs."""
        first, second = two
        put(first, b"one")
        pair.standby.kill()
        pair.primary.alter("synchronous_standby_names", "")
        pair.primary.kill()
        pair.primary.start()
        for one in two:
            until(lambda one=one: [e for e in one.events("standing by") if "standby_names is empty" in e["why"]])
        pair.primary.alter("synchronous_standby_names", STANDBY)
        pair.standby.start()
        is_back(*two)
        put(second, b"two")
        assert bodies(first) == [b"one", b"two"]


class TestAServerThatWasReplaced:
    def test_it_is_refused_when_it_comes_back_also_with_accept_loss(self, daemon, pair):
        (one,) = members(daemon, "QM1", chosen=settings(pair.dsn))
        share(one, "Q")
        pair.fail_over()
        pair.primary.alter("synchronous_standby_names", "")
        is_back(one)
        put(one, b"only here")
        pair.primary.kill()
        stale, current = pair.standby, pair.primary
        stale.start()
        stale.alter("synchronous_standby_names", "")
        until(lambda: [e for e in one.events("standing by") if "a server that was replaced" in e["why"]])
        with pytest.raises(CfNotAvailable, match=r"its timeline is \d+, and the group has continued on"):
            one.connect()
        shown = one.trigmon("group")
        assert shown.returncode != 0
        assert "a server that was replaced" in shown.stderr
        stale.kill()
        current.start()
        is_back(one, lives=3)
        assert bodies(one) == [b"only here"]
        current.alter("synchronous_standby_names", STANDBY)
        pair.mend()


class TestAStandbyThatIsAway:
    def test_a_commit_waits_for_it_and_goes_on_when_it_is_back(self, pair, two):
        """Both members are silent for longer than a lease then, and neither gives up the other for dead."""
        first, second = two
        put(first, b"one")
        pair.standby.kill()
        commits = [aside(lambda one=one: put(one, one.name.encode())) for one in two]
        until(lambda: waiting(pair.primary))
        whys = {one.wait_for_event(WAITS)["why"] for one in two}
        assert whys == {"the commit is not confirmed", "the turn does not come"}
        began_s = time.monotonic()
        until(lambda: time.monotonic() > began_s + LEASE_S)
        assert not any(commit.done() for commit in commits)
        pair.standby.start()
        for commit in commits:
            commit.result(60)
        assert all(one.wait_for_event("the database answers again")["waited_s"] > LEASE_S for one in two)
        assert bodies(second) == [b"QM1", b"QM2", b"one"]
        assert [row["state"] for row in group_of(first)["members"]] == ["serving", "serving"]
        for one in two:
            assert not one.events("a dead member was recovered")
            assert len(one.events("ready")) == 1

    @pytest.mark.parametrize("how", BROKEN_OFF)
    def test_a_wait_that_is_broken_off_acknowledges_nothing_and_the_outcome_is_asked_for(self, pair, two, how):
        first, second = two
        put(first, b"one")
        pair.standby.kill()
        units = []
        commit = aside(lambda: put(first, b"not there yet", units.append))
        (waits,) = until(lambda: waiting(pair.primary))
        with psycopg.connect(pair.primary.dsn, autocommit=True) as db:
            db.execute(f"SELECT {how}(%s)".encode(), (waits,))
        with pytest.raises(ConnectionBroken, match=BROKEN_OFF[how]):
            commit.result(60)
        # Where it was waited for is lost now, and the standby never had it.
        pair.primary.kill_hard()
        pair.standby.start()
        pair.promote()
        pair.mend()
        is_back(first, second)
        with first.connect() as asking:
            assert asking.outcome(*units[0]) is UnitOutcome.BACKED_OUT
        assert bodies(second) == [b"one"]
