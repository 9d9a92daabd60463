"""A handle keeps the plan of its last plain put: what is decided by one that holds is what is decided by a new one."""

from __future__ import annotations

import random
from functools import cache

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Close, Commit, Explain, Get, Open, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import CloseOption, MsgFlag, OpenOption, PutOption
from trigmon.mq.replies import Refused, WasGot
from trigmon.rules.messages import put
from trigmon.rules.model.handle_changes import KeepPutPlan
from trigmon.rules.model.transitions import FOLLOW

IN, OUT = OpenOption.INPUT_SHARED.value, OpenOption.OUTPUT.value
SAVE, PASS = OpenOption.SAVE_ALL_CONTEXT.value, OpenOption.PASS_ALL_CONTEXT.value
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
OPENED = {
    "out": ("Q", OUT | PASS),
    "again": ("Q", OUT),
    "both": ("Q", OUT | IN | SAVE),
    "in": ("Q", IN),
    "alias": ("ALIAS", OUT),
    "remote": ("REMOTE", OUT),
    "transmitted": ("XMIT", OUT),
    "dynamic": ("MODEL", OUT),
}
QUEUE = {
    "def_priority": [0, 4, 7],
    "def_persistence": ["persistent", "not_persistent"],
    "cap_expiry": [-1, 40, 70],
    "inhibit_put": ["allowed", "allowed", "inhibited"],
    "max_msg_length": [3, 100],
    "max_q_depth": [3, 50],
    "msg_delivery_sequence": ["fifo", "priority"],
    "trigger_control": ["on", "off"],
}
ALIAS = {
    "def_priority": [1, 5],
    "def_persistence": ["persistent", "not_persistent"],
    "cap_expiry": [-1, 20],
    "inhibit_put": ["allowed", "inhibited"],
    "base_q_name": ["Q", "P"],
}
KINDS = [
    {},
    {},
    {"priority": 2},
    {"priority": 11},
    {"persistence": 1},
    {"expiry": 60},
    {"expiry": 0},
    {"format": "MQSTR", "coded_char_set_id": 1208},
    {"msg_id": b"m" * 24},
    {"correl_id": b"c" * 24},
    {"correl_id": b"d" * 24},
    {"msg_id": b"short"},
    {"reply_to_q": "Q", "report": 0x100},
    {"reply_to_q": "Q", "msg_type": 1},
    {"msg_type": 1},
    {"msg_flags": MsgFlag.SEGMENTATION_ALLOWED.value},
]
OPTIONS = [
    0,
    0,
    PutOption.NEW_MSG_ID.value,
    PutOption.NEW_CORREL_ID.value,
    PutOption.NO_CONTEXT.value,
    PutOption.NO_CONTEXT.value | PutOption.DEFAULT_CONTEXT.value,
    PutOption.PASS_ALL_CONTEXT.value,
    1 << 30,
]
Step = tuple


def script(seed: int, length: int = 60) -> list[Step]:
    """Returns steps: puts of few kinds, so that most are like the one before, and changes of all that they go by."""
    dice = random.Random(seed)
    steps: list[Step] = []
    handles, kinds, ways = dice.sample(list(OPENED), 2), dice.sample(KINDS, 2), dice.sample(OPTIONS, 2)
    while len(steps) < length:
        which, kind, options = dice.choice(handles), dice.choice(kinds), dice.choice(ways)
        for _ in range(dice.randint(1, 3)):
            size, unit = dice.choice([0, 2, 2, 5]), dice.random() < 0.2
            steps.append((dice.choice(["put", "put", "put", "put_many"]), which, kind, options, size, unit))
            if dice.random() < 0.3:
                steps.append(_between(dice))
    return steps


def _between(dice: random.Random) -> Step:
    kind = dice.choice(["queue", "queue", "alias", "q_mgr", "priorities", "end", "get", "group", "purge", "time"])
    if kind in ("queue", "alias"):
        name, values = dice.choice(list((QUEUE if kind == "queue" else ALIAS).items()))
        return kind, name, dice.choice(values)
    return kind, dice.choice([True, False])


class Stage:
    """A queue manager on which a script is played."""

    def __init__(self) -> None:
        self.world = world = World("memory", None)
        world.define("P", "PROCESS", appl_id="/bin/true")
        for name in ("Q", "P"):
            world.define(name, initiation_q_name=INITQ, process_name="P", trigger_type="every", max_q_depth=50)
        world.define("ALIAS", "QALIAS", base_q_name="Q")
        world.define("XMIT", usage="transmission")
        world.define("REMOTE", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="XMIT")
        world.define("MODEL", "QMODEL", definition_type="permanent_dynamic", def_persistence="persistent")
        world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
        opened = {key: world.did(Open(object_name=name, options=options)) for key, (name, options) in OPENED.items()}
        self.handles = {key: each.handle for key, each in opened.items()}
        dynamic = opened["dynamic"].q_name
        # The one that made it closes it and so deletes it, while the other has it open.
        self.creator = self.handles["dynamic"]
        self.handles["dynamic"] = world.did(Open(object_name=dynamic, options=OUT)).handle
        self.unit, self.is_begun = 1, False
        self.replies: list[object] = []

    def play(self, steps: list[Step]) -> list[object]:
        """Returns every reply, and what is there at the end."""
        for kind, *given in steps:
            self.replies.append(getattr(self, f"_{kind}")(*given))
        self._end(True)
        standing = self.world.store.standing
        queues = dict(standing.queues)
        looks = self.world.did(Explain(q_name="Q", why_not=True), "asker").last
        self._queue("inhibit_put", "allowed")
        messages = {name: self._messages(name) for name in ("Q", "P", "XMIT", INITQ)}
        handles = {number: replace(handle, put_plan=None) for number, handle in standing.handles.items()}
        return [*self.replies, queues, looks, messages, handles, self.world.telling.triggers]

    def _where(self, which: str, kind: dict[str, object], options: int, in_unit: bool) -> dict[str, object]:
        self.is_begun = self.is_begun or in_unit
        return {
            "handle": self.handles[which],
            "descriptor": MessageDescriptor(**kind),
            "options": options | PutOption.SYNCPOINT.value * in_unit,
            "unit": self.unit * in_unit,
        }

    def _put(self, which: str, kind: dict[str, object], options: int, size: int, in_unit: bool) -> object:
        context = self.handles["both"] if options & PutOption.PASS_ALL_CONTEXT.value else 0
        return self.world.do(Put(data=b"x" * size, context=context, **self._where(which, kind, options, in_unit)))

    def _put_many(self, which: str, kind: dict[str, object], options: int, size: int, in_unit: bool) -> object:
        return self.world.do(PutMany(bodies=[b"x" * size] * 2, **self._where(which, kind, options, in_unit)))

    def _queue(self, name: str, value: object) -> object:
        return self.world.do(Alter(object_type="QLOCAL", name="Q", attributes={name: value}), "operator")

    def _alias(self, name: str, value: object) -> object:
        return self.world.do(Alter(object_type="QALIAS", name="ALIAS", attributes={name: value}), "operator")

    def _q_mgr(self, is_little: bool) -> object:
        attributes = {"max_uncommitted_msgs": 2 if is_little else 50}
        return self.world.do(Alter(object_type="QMGR", name="", attributes=attributes), "operator")

    def _priorities(self, are_few: bool) -> None:
        """Sets MAXPRTY, which no command alters: a plan follows from it all the same."""
        q_mgr = self.world.store.standing.q_mgr
        q_mgr[""] = replace(q_mgr[""], max_priority=1 if are_few else 9)

    def _group(self, is_last: bool) -> object:
        flags = MsgFlag.LAST_MSG_IN_GROUP if is_last else MsgFlag.MSG_IN_GROUP
        descriptor, options = MessageDescriptor(msg_flags=flags.value), PutOption.LOGICAL_ORDER.value
        return self.world.do(Put(handle=self.handles["out"], descriptor=descriptor, options=options))

    def _get(self, again: bool) -> object:
        return [self.world.do(Get(handle=self.handles["both"])) for _ in range(1 + again)]

    def _purge(self, it_does: bool) -> object:
        return self.world.do(Close(handle=self.creator, options=CloseOption.DELETE_PURGE.value)) if it_does else None

    def _time(self, is_long: bool) -> None:
        self.world.clock.advance(5000 if is_long else 1)

    def _end(self, is_commit: bool) -> object:
        if not self.is_begun:
            return None
        unit, self.unit, self.is_begun = self.unit, self.unit + 1, False
        return self.world.do(Commit(unit=unit) if is_commit else Backout(unit=unit))

    def _messages(self, name: str) -> list[object]:
        opened = self.world.do(Open(object_name=name, options=IN), "getter")
        got = []
        while isinstance(reply := self.world.do(Get(handle=opened.handle), "getter"), WasGot):
            got.append((reply.descriptor, reply.data))
        return got


def played(seed: int, patch=None) -> list[object]:
    with pytest.MonkeyPatch.context() as patched:
        if patch is not None:
            patch(patched)
        return Stage().play(script(seed))


def never_kept(patched) -> None:
    """Each put is decided by a plan of its own."""
    patched.setattr(put, "is_for", lambda *given: False)


@cache
def right(seed: int) -> list[object]:
    return played(seed, never_kept)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.integers(1000, 1_000_000))
def test_a_put_by_the_plan_that_its_handle_keeps_is_decided_as_by_a_new_one(seed):
    assert played(seed) == played(seed, never_kept)


def test_those_scripts_reuse_plans_and_make_new_ones_and_meet_refusals(monkeypatch):
    uses, made = [], []
    holds, new = put.is_for, put.put_plan
    monkeypatch.setattr(put, "is_for", lambda *given: uses.append(holds(*given)) or uses[-1])
    monkeypatch.setattr(put, "put_plan", lambda *given: made.append(1) or new(*given))
    replies = [reply for seed in range(60) for reply in Stage().play(script(seed))]
    refused = {reply.reason for reply in replies if isinstance(reply, Refused)}
    assert sum(uses) > 300
    assert len(uses) - sum(uses) > 300
    assert len(made) > 1000
    assert {2024, 2026, 2030, 2039, 2046, 2051, 2052, 2053} <= refused


# -- faults --------------------------------------------------------------------------------------------------------


def blind_to(part):
    """A plan is taken to hold as if this were still what it was made from."""
    as_made = {
        "definition": lambda plan, call, facts, queue: (call, facts, replace(queue, definition=plan.definition)),
        "deletion": lambda plan, call, facts, queue: (call, facts, replace(queue, is_deleted=False)),
        "alias": lambda plan, call, facts, queue: (call, replace(facts, alias=plan.alias), queue),
        "q_mgr": lambda plan, call, facts, queue: (call, replace(facts, q_mgr=plan.q_mgr), queue),
        "options": lambda plan, call, facts, queue: (replace(call, options=plan.options), facts, queue),
        "descriptor": lambda plan, call, facts, queue: (replace(call, descriptor=plan.given), facts, queue),
    }[part]
    holds = put.is_for
    return lambda patched: patched.setattr(put, "is_for", lambda plan, *given: holds(plan, *as_made(plan, *given)))


def kept_by_all_handles(patched):
    """The plan is kept by every handle of the connection, whatever it was opened for."""

    def keep(standing, change):
        for number, handle in list(standing.handles.items()):
            if handle.connection == standing.handles[change.handle].connection:
                standing.write(standing.handles, number, replace(handle, put_plan=change.plan))

    patched.setitem(FOLLOW, KeepPutPlan, keep)


PARTS = ("definition", "deletion", "alias", "q_mgr", "options", "descriptor")
FAULTS = {**{f"{part} left out": blind_to(part) for part in PARTS}, "handle left out": kept_by_all_handles}


@pytest.mark.parametrize("name", FAULTS)
def test_a_plan_that_is_used_whatever_has_changed_is_found_by_those_scripts(name):
    assert any(played(seed, FAULTS[name]) != right(seed) for seed in range(100))
