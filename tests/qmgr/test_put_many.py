"""One PutMany gives what the same puts give one after the other: replies, messages, counts, verdicts, triggers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Commit, Explain, Get, Open, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption, PutOption
from trigmon.mq.replies import Refused, WasGot
from trigmon.rules.messages import put_many

IN, OUT = OpenOption.INPUT_SHARED.value, OpenOption.OUTPUT.value
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
QUEUE = {
    "trigger_control": st.sampled_from(["off", "off", "on"]),
    "trigger_type": st.sampled_from(["first", "every", "depth"]),
    "trigger_depth": st.integers(1, 5),
    "max_q_depth": st.integers(3, 12),
    "max_msg_length": st.sampled_from([3, 100]),
    "msg_delivery_sequence": st.sampled_from(["fifo", "priority"]),
    "def_priority": st.integers(0, 9),
    "def_persistence": st.sampled_from(["persistent", "not_persistent"]),
    "cap_expiry": st.sampled_from([-1, 40]),
    "inhibit_put": st.sampled_from(["allowed"] * 8 + ["inhibited"]),
}
DESCRIPTOR = {
    "priority": st.sampled_from([-1, -1, 0, 5, 9, 11, -7]),
    "persistence": st.sampled_from([0, 1, 2, 2, 9]),
    "expiry": st.sampled_from([-1, -1, 30, 0]),
    "msg_id": st.sampled_from([bytes(24)] * 3 + [b"m" * 24]),
    "correl_id": st.sampled_from([bytes(24), b"c" * 24]),
    "report": st.sampled_from([0] * 8 + [0x100]),
    "feedback": st.sampled_from([0] * 8 + [7, -1]),
    "msg_flags": st.sampled_from([0] * 8 + [8]),
    "reply_to_q": st.sampled_from(["", INITQ]),
    "format": st.sampled_from(["", "MQSTR"]),
}
FLAGS = (
    PutOption.NEW_MSG_ID,
    PutOption.NEW_CORREL_ID,
    PutOption.NO_CONTEXT,
    PutOption.DEFAULT_CONTEXT,
    PutOption.LOGICAL_ORDER,
    PutOption.NO_SYNCPOINT,
)
CASES = st.fixed_dictionaries(
    {
        "queue": st.fixed_dictionaries({}, optional=QUEUE),
        "descriptor": st.fixed_dictionaries({}, optional=DESCRIPTOR),
        "flags": st.lists(st.sampled_from(FLAGS), max_size=2).map(lambda flags: sum(set(flags))),
        "bodies": st.lists(st.binary(max_size=4), min_size=1, max_size=6),
        "in_unit": st.booleans(),
        "way": st.sampled_from(["name", "handle", "alias", "remote", "missing"]),
        "max_uncommitted_msgs": st.sampled_from([10_000, 4]),
        "before": st.integers(0, 3),
        "commits": st.booleans(),
        "has_reader": st.booleans(),
        "is_in_group": st.sampled_from([False, False, True]),
    }
)


class Side:
    """A queue manager on which the case is played, as one PutMany or as several puts."""

    def __init__(self, directory, case):
        self.case = case
        self.world = world = World("memory", directory)
        world.define("P", "PROCESS", appl_id="/bin/true")
        world.define("Q", initiation_q_name=INITQ, process_name="P", **case["queue"])
        world.define("ALIAS", "QALIAS", base_q_name="Q")
        world.define("OTHER", usage="transmission")
        world.define("REMOTE", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="OTHER")
        world.did(Alter(object_type="QMGR", name="", attributes={"max_uncommitted_msgs": case["max_uncommitted_msgs"]}))
        world.open(INITQ, IN, as_="monitor")
        if case["has_reader"]:
            world.open("Q", IN, as_="reader")
        for number in range(case["before"]):
            world.do(Put(q_name="Q", data=b"%d" % number, descriptor=MessageDescriptor(priority=number)))
        names = {"alias": "ALIAS", "remote": "REMOTE", "missing": "NONE"}
        self.name = names.get(case["way"], "Q")
        self.handle = 0
        if case["way"] == "handle":
            self.handle = world.did(Open(object_name="Q", options=OUT)).handle
            if case["is_in_group"]:
                first = MessageDescriptor(msg_flags=8)
                world.do(Put(handle=self.handle, descriptor=first, options=PutOption.LOGICAL_ORDER.value))

    @property
    def where(self):
        case = self.case
        return {
            "handle": self.handle,
            "q_name": "" if self.handle else self.name,
            "descriptor": MessageDescriptor(**case["descriptor"]),
            "options": case["flags"] | (PutOption.SYNCPOINT.value * case["in_unit"]),
            "unit": int(case["in_unit"]),
        }

    def as_one(self):
        reply = self.world.do(PutMany(bodies=self.case["bodies"], **self.where))
        return reply.reason if isinstance(reply, Refused) else (reply.msg_ids, reply.warning)

    def one_by_one(self):
        replies = [self.world.do(Put(data=body, **self.where)) for body in self.case["bodies"]]
        refused = [reply.reason for reply in replies if isinstance(reply, Refused)]
        if refused:
            return refused[0]
        return [reply.msg_id for reply in replies], max(reply.warning for reply in replies)

    def state(self):
        """Returns all that an application or an operator can see afterwards."""
        world, standing = self.world, self.world.store.standing
        seen = [standing.queues[name] for name in ("Q", INITQ, "OTHER")]
        units = [msgspec.structs.replace(unit, places={}) for unit in standing.units.values()]
        if self.case["in_unit"]:
            world.do(Commit(unit=1) if self.case["commits"] else Backout(unit=1))
        looks = world.did(Explain(q_name="Q", why_not=True), "asker").last
        verdicts = [msgspec.structs.replace(look, call="") for look in looks]
        messages = {}
        for name in ("Q", INITQ, "OTHER"):
            world.do(Open(object_name=name, options=IN), "getter")
            messages[name] = self._got(name)
        return seen, units, verdicts, messages, world.telling.triggers

    def _got(self, name):
        opened = self.world.do(Open(object_name=name, options=IN), "getter")
        got = []
        while isinstance(reply := self.world.do(Get(handle=opened.handle), "getter"), WasGot):
            got.append((reply.descriptor, reply.data))
        return got


def play(case, how):
    with tempfile.TemporaryDirectory() as directory:
        side = Side(Path(directory), case)
        reply = getattr(side, how)()
        return (reply, None) if isinstance(reply, int) else (reply, side.state())


@settings(max_examples=400)
@given(CASES)
def test_a_put_many_is_its_puts_one_after_the_other(case):
    assert play(case, "as_one") == play(case, "one_by_one")


def test_those_cases_come_to_puts_that_are_decided_together_and_to_others(monkeypatch):
    together, put_together = [], put_many._put_together
    monkeypatch.setattr(put_many, "_put_together", lambda *args: together.append(1) or put_together(*args))
    played = []

    @settings(max_examples=100, database=None)
    @given(CASES)
    def some(case):
        played.append(play(case, "as_one"))

    some()
    assert 10 < len(together) < len(played) - 10


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_refused_put_many_leaves_nothing(tmp_path, kind):
    world = World(kind, tmp_path)
    world.define("Q", max_q_depth=3)
    for unit in (0, 1):
        reply = world.do(PutMany(q_name="Q", bodies=[b"x"] * 4, options=2 * unit, unit=unit))
        assert reply.reason == 2053
        assert world.store.standing.queues["Q"].depth == 0
    assert isinstance(world.did(PutMany(q_name="Q", bodies=[b"x"] * 3)).msg_ids, list)
    world.end()
