"""Random scripts on the shared queues of two members: alike whatever store is their own, nothing lost or doubled.

The scripts are those that hold the stores against each other; the applications are connected to different members.
After every step what stands in the group is what a count of its rows gives.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.qmgr import test_stores_agree as alone
from tests.worlds import World
from trigmon.mq.calls import Alter, Define
from trigmon.mq.replies import WasGot
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.two_stores import TwoStores
from trigmon.store.group import OWN_NUMBERS, MemoryGroup
from trigmon.store.memory import MemoryStore
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

    def tend(self):
        return [answer for member in self.members.values() for answer in member.tend()] + self.look_around()

    @property
    def is_scanning(self):
        return any(member.is_scanning for member in self.members.values())

    def scan(self):
        answers = [a for member in self.members.values() if member.is_scanning for a in member.scan()]
        return answers + self.look_around()

    def next_deadline_ms(self):
        moments = [member.next_deadline_ms() for member in self.members.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def stop(self):
        for member in self.members.values():
            member.stop()


class Group(World):
    """Two members of a group; the operator, the monitor and one application are on the first."""

    def __init__(self, kind, directory):
        self.group = MemoryGroup()
        self.in_memory = {name: MemoryStore() for name in MEMBERS}
        self.members = {}
        self.stores = {}
        super().__init__(kind, directory)

    def _start(self):
        for name in MEMBERS:
            home = self.directory / name
            home.mkdir(exist_ok=True)
            own = self.in_memory[name] if self.kind == "memory" else SqliteStore(home)
            self.stores[name] = TwoStores(own, self.group.join(name))
            self.members[name] = QueueManager(name, self.stores[name], self.clock, self.telling)
        self.store = self
        self.qm = _Both(self.members, self.group)
        self.qm.look_around()

    def abandon(self):
        for store in self.stores.values():
            store.abandon()

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


class Script(alone.Script):
    """Nothing is reserved: what is shared cannot be."""

    world_of = Group

    def _refused(self, *_):
        pass

    _reserve = _read = _settle = _release = _reject = _refused


def check_counts(world) -> None:
    """What stands in the group is what its rows give, and each member sees that."""
    depths, puts, gets = Counter(), Counter(), Counter()
    numbers = {number: name for name, number in world.group.members.items()}
    for row in world.group.rows.all():
        name = row.message.q_name
        depths[name, row.message.priority] += not row.put_by and not row.taken_by
        puts[name, numbers.get(row.put_by // OWN_NUMBERS)] += bool(row.put_by)
        gets[name, numbers.get(row.taken_by // OWN_NUMBERS)] += bool(row.taken_by)
    for name, queue in world.group.queues.items():
        assert queue.depths == tuple(depths[name, priority] for priority in range(10))
        told = {member: (use.puts, use.gets) for member, use in queue.uses.items() if use.puts or use.gets}
        there = {member: (puts[name, member], gets[name, member]) for member in MEMBERS}
        assert told == {member: counts for member, counts in there.items() if any(counts)}
        for member, store in world.stores.items():
            seen = store._standing.queues[name]
            assert seen == queue.seen_by(member, seen.trigger_stamp_ms)
            opened = [h for h in store._standing.handles.values() if h.q_name == name]
            assert queue.uses.get(member).opens == len(opened) if opened else True
    locked = {
        number: world.group.members[member] * OWN_NUMBERS + handle.handle
        for member, store in world.stores.items()
        for handle in store._standing.handles.values()
        for number in handle.locked
        if handle.q_name in SHARED
    }
    assert world.group.locks == locked


@pytest.fixture(autouse=True)
def _in_a_group(monkeypatch):
    play_in_a_group(monkeypatch)


def play_in_a_group(patches):
    patches.setattr(alone, "Script", Script)
    patches.setattr(alone, "check_counts", lambda store: check_counts(store))


# One of several patches of one test; what it plants is the same for every example.
ANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ANY
@given(alone.scripts)
def test_members_with_either_store_give_the_same_replies_triggers_and_state(script):
    alone.check_that_stores_agree(script, "sqlite")


@ANY
@given(alone.scripts)
def test_what_was_committed_is_got_once_and_nothing_else(script):
    alone.check_that_nothing_is_lost_or_doubled(script)


@pytest.mark.parametrize("seed", range(8))
def test_members_keep_marks_and_locks_alike(seed):
    alone.check_that_stores_agree(alone.traffic(seed), "sqlite")
    alone.check_that_nothing_is_lost_or_doubled(alone.traffic(seed))


def test_those_scripts_come_to_messages_that_one_member_puts_and_the_other_gets():
    with tempfile.TemporaryDirectory() as directory:
        played = Script("memory", Path(directory))
        played.play(alone.traffic(1))
        makers = {reply.descriptor.msg_id[4:7] for reply in played.seen if isinstance(reply, WasGot)}
        assert {name.encode() for name in MEMBERS} <= makers, "a member's name is in the message ids that it makes"
