"""Random scripts on the shared queues of two members: alike whatever store is their own, nothing lost or doubled.

The scripts are those that hold the stores against each other; the applications are connected to different members.
After every step what stands in the group is what a count of its rows gives.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from tests import postgres
from tests.qmgr import store_script
from tests.qmgr import test_stores_agree as alone
from tests.waiting import until
from tests.worlds import World
from trigmon.mq.calls import Alter, Define
from trigmon.mq.replies import WasGot
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.two_stores import TwoStores
from trigmon.rules.model.shared_queue import SharedQueue
from trigmon.simulate.scenario_stores import Together
from trigmon.store.memory.group import OWN_NUMBERS, MemoryGroup
from trigmon.store.memory.store import MemoryStore
from trigmon.store.postgres.group.group_leftovers import GroupLeftovers
from trigmon.store.sql.leftovers import COMMITTED, GOT, PUT, RETURNED
from trigmon.store.sqlite.store import SqliteStore

MEMBERS = ("QM1", "QM2")
OF = {"two": "QM2"}
"""Who is connected to the second member; all others are to the first."""
SHARED = ("INITQ", "F", "E", "D", "B")


class _Both:
    """The members as one queue manager: what is said to it is said to each, a session's own to its member."""

    def __init__(self, members, group):
        self.members, self.group = members, group

    def turn(self, requests):
        answers = []
        for name, member in self.members.items():
            own = [request for request in requests if request[0].attachment == name]
            if own:
                answers += member.turn(own)
        return answers + self.look_around()

    def look_around(self):
        answers, seen = [], -1
        while seen != self.group.version:
            seen = self.group.version
            for member in self.members.values():
                answers += member.turn([])
        return answers

    def lost(self, sessions):
        answers = []
        for session in sessions:
            answers += self.members[session.attachment].lost([session])
        return answers + self.look_around()

    @property
    def housekeeping(self):
        return self

    def tend(self):
        return [
            answer for member in self.members.values() for answer in member.housekeeping.tend()
        ] + self.look_around()

    @property
    def is_scanning(self):
        return any(member.housekeeping.is_scanning for member in self.members.values())

    def scan(self):
        answers = [
            a for member in self.members.values() if member.housekeeping.is_scanning for a in member.housekeeping.scan()
        ]
        return answers + self.look_around()

    def next_deadline_ms(self):
        moments = [member.next_deadline_ms() for member in self.members.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def stop(self):
        for member in self.members.values():
            member.stop()


LEFT = []
"""Of the groups on PostgreSQL the one that has not ended."""


class OnPostgres(Together):
    """A group on PostgreSQL, and its rows as they lie there."""

    def __init__(self):
        self._with = postgres.group()
        super().__init__(self._with.__enter__())
        where = self._group.place
        self._db = psycopg.connect(where.dsn, options=f"-csearch_path={where.schema}", autocommit=True)

    def lost(self):
        """All members were cut off at once; the next ones find nothing of it."""
        helper = self._group.join("HELPER")
        helper.open()
        for name in MEMBERS:
            until(lambda name=name: helper.recover(name))
        helper.close()

    def end(self):
        self._db.close()
        self._with.__exit__(None, None, None)

    def rows(self):
        """By message its queue, its priority, and the members that put and got it, if it is uncommitted.

        A row that an ended unit of work has still to write or remove counts as written or removed.
        """
        of = {number: name for name, number in self._db.execute("SELECT name, number FROM joined")}
        works = [json.loads(work) for (work,) in self._db.execute("SELECT work FROM deferred")]
        left = {int(unit): parts for work in works for own in work.values() for unit, parts in own["units"].items()}
        asked = """
            SELECT q.name, m.priority, coalesce(m.put_by, 0), coalesce(m.taken_by, 0)
            FROM message m JOIN queue q ON q.number = abs(m.queue) WHERE m.queue > 0"""
        for name, priority, put_by, taken_by in self._db.execute(asked):
            of_put, of_get = left.get(put_by, ()), left.get(taken_by, ())
            if PUT in of_put or GOT in of_get:
                continue
            put_by, taken_by = put_by * (COMMITTED not in of_put), taken_by * (RETURNED not in of_get)
            yield name, priority, of.get(put_by // OWN_NUMBERS), of.get(taken_by // OWN_NUMBERS)

    def queues(self):
        asked = "SELECT name, stands FROM queue WHERE stands IS NOT NULL"
        return {name: msgspec.json.decode(stands, type=SharedQueue) for name, stands in self._db.execute(asked)}

    def locks(self):
        of = {number: name for name, number in self._db.execute("SELECT name, number FROM joined")}
        found = self._db.execute("SELECT message, handle FROM lock")
        return {number: (of[handle // OWN_NUMBERS], handle % OWN_NUMBERS) for number, handle in found}


class InMemory(MemoryGroup):
    """The same of a group in memory."""

    def lost(self):
        """Its members are recovered when they are let go."""

    def end(self):
        """Nothing is left."""


def rows_of(group):
    if isinstance(group, OnPostgres):
        return group.rows(), group.queues(), group.locks()
    of = {number: name for name, number in group.members.items()}
    rows = [
        (
            row.message.q_name,
            row.message.priority,
            of.get(row.put_by // OWN_NUMBERS),
            of.get(row.taken_by // OWN_NUMBERS),
        )
        for row in group.rows.all()
    ]
    locks = {number: (of[handle // OWN_NUMBERS], handle % OWN_NUMBERS) for number, handle in group.locks.items()}
    return rows, group.queues, locks


class Group(World):
    """Two members of a group; the operator, the monitor and one application are on the first."""

    def __init__(self, kind, directory):
        if kind == "postgres":
            while LEFT:  # a script that failed has no end
                LEFT[0].abandon()
                LEFT[0].group.end()
                del LEFT[0]
            LEFT.append(self)
        self.group = OnPostgres() if kind == "postgres" else InMemory()
        self.in_memory = {name: MemoryStore() for name in MEMBERS}
        self.members = {}
        self.stores = {}
        super().__init__(kind, directory)

    def _start(self):
        for name in MEMBERS:
            home = self.directory / name
            home.mkdir(exist_ok=True)
            own = SqliteStore(home) if self.kind == "sqlite" else self.in_memory[name]
            self.stores[name] = TwoStores(own, self.group.join(name))
            self.members[name] = QueueManager(name, self.stores[name], self.clock, self.telling)
        self.store = self
        self.qm = _Both(self.members, self.group)
        self.qm.look_around()

    @property
    def has_leftovers(self):
        return any(store.has_leftovers for store in self.stores.values())

    def abandon(self):
        for store in self.stores.values():
            store.abandon()
        self.group.lost()

    def end(self):
        self.qm.stop()
        self.group.end()
        LEFT.clear()

    def session(self, name):
        found = self.sessions.get(name)
        if found is None or found.is_gone:
            q_mgr = OF.get(name.removesuffix("'s operator"), "QM1")
            both, self.qm = self.qm, self.members[q_mgr]
            found = super().session(name)
            found.attachment = q_mgr
            self.qm = both
        return found

    def define(self, name, kind="QLOCAL", **attributes):
        """What is shared once, all else on each member."""
        if name in SHARED:
            attributes["qsg_disp"] = "shared"
        for who in ("operator",) if name in SHARED else ("operator", "two's operator"):
            self.did(Define(object_type=kind, name=name, attributes=attributes), who)

    def did(self, call, as_="app"):
        if isinstance(call, Alter) and call.object_type == "QMGR" and as_ == "operator":
            super().did(call, "two's operator")
        return super().did(call, as_)


class Script(store_script.Script):
    """Nothing is reserved: what is shared cannot be."""

    world_of = Group

    def _refused(self, *_):
        pass

    def _slice(self):
        """Expired messages are not looked for: that would use numbers where a store defers nothing."""
        members, stores = self.world.members, self.world.stores
        answers = [a for name in MEMBERS if stores[name].has_leftovers for a in members[name].housekeeping.scan()]
        self._note_ended_waits(answers + self.world.qm.look_around())

    _reserve = _read = _settle = _release = _reject = _refused


def check_counts(world) -> None:
    """What stands in the group is what its rows give, and each member sees that."""
    depths, puts, gets = Counter(), Counter(), Counter()
    rows, queues, locks = rows_of(world.group)
    for name, priority, put_by, taken_by in rows:
        depths[name, priority] += put_by is None and taken_by is None
        puts[name, put_by] += 1
        gets[name, taken_by] += 1
    for name, queue in queues.items():
        assert queue.depths == tuple(depths[name, priority] for priority in range(10))
        told = {member: (use.puts, use.gets) for member, use in queue.uses.items() if use.puts or use.gets}
        there = {member: (puts[name, member], gets[name, member]) for member in MEMBERS}
        assert told == {member: counts for member, counts in there.items() if any(counts)}
        for member, store in world.stores.items():
            seen = store._standing.queues[name]
            assert seen == queue.seen_by(member, seen.trigger_stamp_ms)
            opened = [h for h in store._standing.handles.values() if h.q_name == name]
            assert queue.uses.get(member).opens == len(opened) if opened else True
    assert locks == {
        number: (member, handle.handle)
        for member, store in world.stores.items()
        for handle in store._standing.handles.values()
        for number in handle.locked
        if handle.q_name in SHARED
    }


@pytest.fixture(autouse=True)
def _in_a_group(monkeypatch):
    play_in_a_group(monkeypatch)


def play_in_a_group(patches):
    patches.setattr(alone, "Script", Script)
    patches.setattr(store_script, "check_counts", lambda store: check_counts(store))


# One of several patches of one test; what it plants is the same for every example.
ANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ANY
@given(alone.scripts)
def test_members_with_either_store_give_the_same_replies_triggers_and_state(script):
    alone.check_that_stores_agree(script, "sqlite")


@settings(ANY, max_examples=25)
@given(alone.scripts)
def test_a_group_on_postgresql_gives_the_same_as_one_in_memory(script):
    alone.check_that_stores_agree(script, "postgres")


@settings(ANY, max_examples=25)
@given(alone.scripts)
def test_a_group_on_postgresql_gives_the_same_where_units_end_slice_by_slice(script):
    alone.check_that_large_ends_agree(script, "postgres")


@ANY
@given(alone.scripts)
def test_what_was_committed_is_got_once_and_nothing_else(script):
    alone.check_that_nothing_is_lost_or_doubled(script)


@pytest.mark.parametrize("seed", range(8))
def test_members_keep_marks_and_locks_alike(seed):
    alone.check_that_stores_agree(alone.traffic(seed), "sqlite")
    alone.check_that_stores_agree(alone.traffic(seed), "postgres")
    alone.check_that_nothing_is_lost_or_doubled(alone.traffic(seed))


@pytest.mark.parametrize("seed", range(12))
def test_large_units_of_members_end_alike(seed):
    alone.check_that_large_ends_agree(alone.large_ends(seed), "postgres")


def test_those_scripts_come_to_units_whose_end_is_deferred(monkeypatch):
    sliced, remove = Counter(), GroupLeftovers.remove

    def counted(leftovers):
        sliced.update(part for left in leftovers._units.values() for part in left)
        remove(leftovers)

    monkeypatch.setattr(GroupLeftovers, "remove", counted)
    for seed in range(4):
        alone.check_that_large_ends_agree(alone.large_ends(seed), "postgres")
    assert set(sliced) == {COMMITTED, GOT, PUT, RETURNED}


def test_those_scripts_come_to_messages_that_one_member_puts_and_the_other_gets():
    with tempfile.TemporaryDirectory() as directory:
        played = Script("memory", Path(directory))
        played.play(alone.traffic(1))
        makers = {reply.descriptor.msg_id[4:7] for reply in played.seen if isinstance(reply, WasGot)}
        assert {name.encode() for name in MEMBERS} <= makers, "a member's name is in the message ids that it makes"
