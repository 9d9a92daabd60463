"""Random scripts of calls give the same replies, the same triggers and the same state on all stores.

The world begins armed and watched (a monitor listens, queues of every type), so that scripts reach triggering; what
a wrong rule does alike on both stores is the scenarios' business. A second property needs no other store: what was
put and committed is got once, and the depth is the number of messages. After every step what stands is what a count
of the rows gives.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.worlds import World
from trigmon.mq.calls import (
    Alter,
    Attempt,
    Backout,
    Close,
    Commit,
    DeadLetters,
    Disconnect,
    Display,
    DisplayHandles,
    Explain,
    Get,
    GetMany,
    Inquire,
    Open,
    Outcome,
    Put,
    PutMany,
    ReadReserved,
    Refresh,
    Reject,
    Release,
    Reservations,
    Reserve,
    RetryDeadLetters,
    Set,
    Settle,
)
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, MessageDescriptor, unpack_dlh
from trigmon.mq.enums import ApplType, GetOption, MsgType, OpenOption, Persistence, ReportOption
from trigmon.mq.rejection import without_rejection
from trigmon.mq.replies import Opened, Refused, Reserved, Settled, Sifted, WasGot, WereGot
from trigmon.store.memory.store import MemoryStore
from trigmon.store.sql import read_ahead, reserved_cache
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sqlite import first_rows

LASTING = ("F", "E", "D", "B", "INITQ", "A")
MODELS = {"M": "T", "P": "U"}  # a temporary and a permanent model, and the queues they make
QUEUES = (*LASTING, "R", *MODELS, *MODELS.values())
APPS = ("one", "two")
CONSUMERS = ("J", "K")
REPORTS = ReportOption.EXPIRATION | ReportOption.COA | ReportOption.COD | ReportOption.EXCEPTION
IN, EXCL, OUT, BROWSE = (
    OpenOption.INPUT_SHARED,
    OpenOption.INPUT_EXCLUSIVE,
    OpenOption.OUTPUT,
    OpenOption.BROWSE,
)
OPENS = (IN, EXCL, IN | BROWSE, BROWSE, OUT, IN | OUT | BROWSE | OpenOption.SET | OpenOption.INQUIRE)
GETS = (
    0,
    GetOption.WAIT,
    GetOption.BROWSE_FIRST,
    GetOption.BROWSE_NEXT,
    GetOption.BROWSE_MSG_UNDER_CURSOR,
    GetOption.MSG_UNDER_CURSOR,
    GetOption.ACCEPT_TRUNCATED_MSG,
    GetOption.BROWSE_FIRST | GetOption.LOCK,
    GetOption.BROWSE_NEXT | GetOption.LOCK,
    GetOption.BROWSE_NEXT | GetOption.LOCK | GetOption.WAIT,
    GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.LOCK,
    GetOption.UNLOCK,
    GetOption.MARK_SKIP_BACKOUT,
    GetOption.MARK_SKIP_BACKOUT | GetOption.WAIT,
    GetOption.MARK_SKIP_BACKOUT | GetOption.MSG_UNDER_CURSOR,
    GetOption.SYNCPOINT_IF_PERSISTENT,
    GetOption.SYNCPOINT_IF_PERSISTENT | GetOption.WAIT,
)
NEVER_IN_A_UNIT = GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.UNLOCK
LOCKING = GetOption.LOCK | GetOption.UNLOCK | GetOption.BROWSE_NEXT
CHANGES = (
    {"trigger_control": "on"},
    {"trigger_control": "off"},
    {"trigger_type": "every"},
    {"trigger_type": "first"},
    {"trigger_type": "depth"},
    {"trigger_depth": 1},
    {"trigger_depth": 3},
    {"trigger_msg_priority": 1},
    {"inhibit_get": "inhibited"},
    {"inhibit_get": "allowed"},
    {"inhibit_put": "inhibited"},
    {"inhibit_put": "allowed"},
    {"rearm": "auto"},
    {"backstop_s": 1},
    {"max_wait_s": 1},
    {"backout_threshold": 1},
    {"backout_threshold": 2},
    {"backout_requeue_q_name": ""},
    {"backout_requeue": "appl"},
    {"backout_requeue": "qmgr"},
)

OF_POISON = ({"backout_requeue_q_name": ""}, {"inhibit_put": "inhibited"}, {"backout_threshold": 2})
# A message of a group, its last, a segment, a last one, a segment in a group, one that may be cut.
GROUPED = (0x8, 0x10, 0x2, 0x4, 0xA, 0x1)

app = st.sampled_from(APPS)
queue = st.sampled_from(QUEUES)
pick = st.integers(0, 7)
step = st.one_of(
    st.tuples(st.just("open"), app, queue, st.sampled_from(OPENS)),
    st.tuples(st.just("close"), app, pick, st.sampled_from([0, 0, 0, 1, 2])),
    st.tuples(st.just("put"), app, queue, st.booleans(), st.booleans(), st.integers(0, 2), st.sampled_from([-1, 5])),
    st.tuples(st.just("put"), app, queue, st.booleans(), st.booleans(), st.integers(0, 2), st.just(-1)),
    st.tuples(st.just("put_many"), app, queue, st.booleans(), st.integers(1, 4)),
    st.tuples(st.just("group"), app, pick, st.sampled_from(GROUPED), st.booleans(), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.sampled_from(GETS), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.just(0), st.booleans()),
    st.tuples(st.just("get"), app, pick, st.just(GetOption.MARK_SKIP_BACKOUT), st.just(True)),
    st.tuples(st.just("get_many"), app, pick, st.booleans()),
    st.tuples(st.just("fail"), app, st.sampled_from(("B", "B", "D", "E", "T")), st.booleans(), st.booleans()),
    st.tuples(st.just("commit"), app),
    st.tuples(st.just("backout"), app),
    st.tuples(st.just("set"), app, pick, st.sampled_from(CHANGES)),
    st.tuples(st.just("alter"), queue, st.sampled_from(CHANGES)),
    st.tuples(st.just("alter"), st.sampled_from(("B", "E")), st.sampled_from(OF_POISON)),
    st.tuples(st.just("monitor"), st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from([1, 400, 1000])),
    st.tuples(st.just("tend")),
    st.tuples(st.just("expire")),
    st.tuples(st.just("slice")),
    st.tuples(st.just("retry"), st.sampled_from(("", "E", "T"))),
    st.tuples(st.just("reserve"), app, pick, st.sampled_from(CONSUMERS), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("read"), app, st.sampled_from(CONSUMERS), st.integers(0, 2)),
    st.tuples(st.just("settle"), app, st.sampled_from(CONSUMERS), st.integers(0, 2), st.sampled_from([-1, -1, 1, 2])),
    st.tuples(
        st.just("release"), app, st.sampled_from(CONSUMERS), st.integers(0, 2), st.sampled_from([-1, 1]), st.booleans()
    ),
    st.tuples(st.just("reject"), app, st.sampled_from(CONSUMERS), st.integers(0, 2)),
    st.tuples(st.just("attempt"), app, st.sampled_from(CONSUMERS), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("disconnect"), app),
    st.tuples(st.just("lose"), app),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
)
scripts = st.lists(step, min_size=1, max_size=30)
long_scripts = st.lists(step, min_size=30, max_size=120)


def traffic(seed: int, steps: int = 80) -> list[tuple]:
    """Two readers of one queue, with messages, units of work, marks and locks: what a free script seldom comes to."""
    dice = random.Random(seed)
    script: list[tuple] = [("open", name, "F", IN | BROWSE) for name in APPS]
    for _ in range(steps):
        name, yes = dice.choice(APPS), dice.random() < 0.5
        happening = dice.choices(("put", "get", "mark", "end", "browse", "time", "leave"), (6, 5, 3, 4, 5, 1, 0.3))[0]
        match happening:
            case "put":
                script.append(("put", name, "F", yes, dice.random() < 0.7, dice.randrange(2), -1))
            case "get":
                script.append(("get", name, 0, dice.choice(GETS), yes))
            case "mark":
                script.append(("get", name, 0, GetOption.MARK_SKIP_BACKOUT, True))
            case "end":
                script.append(("commit" if dice.random() < 0.3 else "backout", name))
            case "browse":
                script.append(("get", name, 0, dice.choice([option for option in GETS if option & LOCKING]), False))
            case "time":
                script.append(("advance", 1000))
            case "leave":
                script.append(dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)]))
                script += [("open", each, "F", IN | BROWSE) for each in APPS]
    return script


def large_ends(seed: int, steps: int = 100) -> list[tuple]:
    """Units of work that put and get much, on queues that others use, with slices of what is left in between."""
    dice = random.Random(seed)
    opens = [("open", name, q_name, IN | OUT | BROWSE) for q_name in ("F", "E", "D", "B") for name in APPS]
    script: list[tuple] = [*opens]
    for _ in range(steps):
        name, q_name, which, yes = dice.choice(APPS), dice.choice("FFEDB"), dice.randrange(4), dice.random() < 0.7
        consumer, n, expiry = dice.choice(CONSUMERS), dice.randrange(1, 5), dice.choice((-1, -1, 5))
        look = dice.choice([option for option in GETS if option & LOCKING])
        mostly: list[tuple[float, list[tuple]]] = [
            (6, [("put", name, q_name, yes, dice.random() < 0.7, n % 3, expiry)]),
            (4, [("put_many", name, dice.choice("FDB"), yes, n)]),
            (6, [("get", name, which, dice.choice((0, 0, 0, GetOption.MARK_SKIP_BACKOUT)), yes)]),
            (2, [("get_many", name, which, yes)]),
            (3, [("get", name, which, look, False)]),
            (0.5, [("reserve", name, which, consumer, n, yes), ("settle", name, consumer, 0, -1)]),
            (0.5, [("reserve", name, which, consumer, n, yes), ("release", name, consumer, 0, -1, yes)]),
            (4, [("commit" if yes else "backout", name)]),
            (4, [("slice",)]),
            (0.3, [("group", name, which, flags, True, True) for flags in (8, 16)]),
            (1, [("explain", q_name)]),
            (0.5, [("advance", 400), dice.choice([("expire",), ("tend",)])]),
            (0.5, [("alter", q_name, dice.choice(CHANGES))]),
            (0.4, [dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)]), *opens]),
        ]
        script += dice.choices([steps for _, steps in mostly], [weight for weight, _ in mostly])[0]
    return script


def batches(seed: int, steps: int = 80) -> list[tuple]:
    """Two connections that reserve, read, settle and give back, and die, on a queue with groups and one of poison."""
    dice = random.Random(seed)
    opens = [("open", name, q_name, IN | OUT | BROWSE) for q_name in ("F", "B") for name in APPS]
    script: list[tuple] = [*opens]
    kinds = {
        "put": 6,
        "group": 2,
        "reserve": 5,
        "read": 3,
        "settle": 2,
        "release": 2,
        "reject": 0.5,
        "attempt": 1.5,
        "get": 1,
        "die": 1,
    }
    for _ in range(steps):
        name, consumer, yes = dice.choice(APPS), dice.choice(CONSUMERS), dice.random() < 0.5
        first, count = dice.choice((0, 0, 1)), dice.choice((-1, 1, 2))
        match dice.choices(list(kinds), list(kinds.values()))[0]:
            case "put":
                script.append(("put", name, dice.choice(("F", "F", "B")), False, yes, dice.randrange(3), -1))
            case "group":
                script += [("group", name, 0, flags, False, True) for flags in dice.choice(((8, 16), (8,), (8, 8, 16)))]
            case "reserve":
                script.append(("reserve", name, dice.randrange(2), consumer, dice.randrange(1, 5), yes))
            case "read":
                script.append(("read", name, consumer, first))
            case "settle":
                script.append(("settle", name, consumer, first, count))
            case "release":
                script.append(("release", name, consumer, first, count, yes))
            case "reject":
                script.append(("reject", name, consumer, first))
            case "attempt":
                script.append(("attempt", name, consumer, first, abs(count)))
            case "get":
                script.append(("get", name, dice.randrange(2), 0, yes))
            case "die":
                how = dice.choice([("lose", name), ("disconnect", name), ("crash",), ("restart",)])
                script += [how, *(opens if len(how) == 1 else [step for step in opens if step[1] == name])]
    return script


class Script:
    """Plays steps on one world. Handles and unit numbers come from the replies, so equal worlds get equal calls."""

    world_of = World

    def __init__(self, kind: str, directory: Path) -> None:
        home = directory / kind
        home.mkdir(exist_ok=True)
        self.world = self.world_of(kind, home)
        self.seen: list[object] = []
        self.put_count = 0
        self.committed: Counter[bytes] = Counter()
        self.got: Counter[bytes] = Counter()
        self.pending: dict[str, tuple[list[bytes], list[bytes]]] = {}
        self.reservations: dict[str, int] = {}  # by consumer the last
        self.reserved: dict[int, dict[int, bytes]] = {}  # by reservation what is left of it
        self._reset()
        world = self.world
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"trigger_interval": 1000}), "operator")
        world.define("INITQ")
        world.define("PROC", "PROCESS", appl_id="/bin/true")
        armed = {"trigger_control": "on", "initiation_q_name": "INITQ", "process_name": "PROC"}
        world.define("F", def_persistence="persistent", **armed)
        world.define("E", trigger_type="every", max_q_depth=6, max_msg_length=16, **armed)
        world.define("D", trigger_type="depth", trigger_depth=2, def_persistence="persistent", **armed)
        # What is poison on B goes to E while that has room, else to D behind a header, else nowhere.
        world.define("B", backout_requeue="qmgr", backout_threshold=1, backout_requeue_q_name="E", **armed)
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "D"}), "operator")
        world.define("A", "QALIAS", base_q_name="F", def_priority=2)
        world.define("XQ", usage="transmission", def_persistence="persistent", **armed)
        world.define("R", "QREMOTE", remote_q_name="X", remote_q_mgr_name="QM9", xmit_q_name="XQ")
        world.define("M", "QMODEL", **armed)
        world.define("P", "QMODEL", definition_type="permanent_dynamic", def_persistence="persistent", **armed)
        self._monitor(True)

    def _reset(self) -> None:
        self.handles: dict[str, list[tuple[int, str]]] = {name: [] for name in APPS}
        self.units = dict.fromkeys(APPS, 1)
        self.waiting: dict[str, GetOption | int] = {}  # by name the options of the get
        self.marked: dict[str, bytes | None] = dict.fromkeys(APPS)
        self.pending = {name: ([], []) for name in APPS}
        self.monitor_handle = 0

    def _monitor(self, listens: bool) -> None:
        if listens and not self.monitor_handle:
            reply = self.world.do(Open(object_name="INITQ", options=int(IN)), "monitor")
            self.monitor_handle = reply.handle if isinstance(reply, Opened) else 0
            self.seen.append(reply)
        elif not listens and self.monitor_handle:
            self.seen.append(self.world.do(Close(handle=self.monitor_handle), "monitor"))
            self.monitor_handle = 0

    def play(self, script) -> None:
        for step in script:
            if len(step) > 1 and step[1] in self.waiting:
                continue  # this application waits in a get and can do nothing else
            getattr(self, "_" + step[0])(*step[1:])
            self._note_ended_waits(self.world.ended_waits)
            self.world.ended_waits.clear()
            check_counts(self.world.store)
            self.seen.append(self.world.fired())
            self.seen.append(self.world.did(Display(object_type="queue", limit=99), "operator").rows)
        self.seen.append(self.world.did(DisplayHandles(), "operator").rows)
        self.seen.append([self.world.did(Explain(q_name=name), "operator").fails for name in ("F", "E", "D", "B")])
        self.seen.append(self.world.did(Reservations(), "operator").rows)

    def _call(self, name: str, call) -> object:
        reply = self.world.do(call, name)
        self.seen.append(reply)
        return reply

    def _handle(self, name: str, which: int) -> int:
        handles = self.handles[name]
        return handles[which % len(handles)][0] if handles else 0

    def _open(self, name, q_name, options) -> None:
        dynamic_q_name = MODELS.get(q_name, "AMQ.*")
        reply = self._call(name, Open(object_name=q_name, options=int(options), dynamic_q_name=dynamic_q_name))
        if isinstance(reply, Opened):
            self.handles[name].append((reply.handle, q_name))

    def _close(self, name, which, options) -> None:
        handle = self._handle(name, which)
        if not isinstance(self._call(name, Close(handle=handle, options=options)), Refused):
            self.handles[name] = [pair for pair in self.handles[name] if pair[0] != handle]

    def _put(self, name, q_name, in_unit, persistent, priority, expiry) -> None:
        self.put_count += 1
        body = b"%d" % self.put_count
        # Each third asks to be told of its fate, at a queue that may be full or shut.
        report = {"report": REPORTS.value, "reply_to_q": "E"} if self.put_count % 3 == 0 else {}
        descriptor = MessageDescriptor(priority=priority, persistence=int(persistent), expiry=expiry, **report)
        unit = self.units[name] if in_unit else 0
        put = Put(q_name=q_name, data=body, descriptor=descriptor, options=2 * in_unit, unit=unit)
        reply = self._call(name, put)
        if hasattr(reply, "msg_id") and persistent and expiry < 0 and q_name in LASTING:
            if in_unit:
                self.pending[name][0].append(body)
            else:
                self.committed[body] += 1

    def _slice(self) -> None:
        if self.world.store.has_leftovers:
            self._note_ended_waits(self.world.qm.housekeeping.scan())

    def _explain(self, q_name) -> None:
        reply = self.world.did(Explain(q_name=q_name), "operator")
        self.seen.append(reply)

    def _expire(self) -> None:
        self._call("operator", Refresh())
        while self.world.qm.housekeeping.is_scanning:
            self._note_ended_waits(self.world.qm.housekeeping.scan())

    def _group(self, name, which, flags, in_unit, in_order) -> None:
        """One that may be cut is too long for queue E."""
        put = Put(
            handle=self._handle(name, which),
            data=b"long enough to be cut in three pieces" if flags == 1 else b"g",
            descriptor=MessageDescriptor(msg_flags=flags, group_id=bytes(24) if in_order else b"G" * 24),
            options=2 * in_unit | 0x8000 * in_order,
            unit=self.units[name] if in_unit else 0,
        )
        self._call(name, put)

    def _put_many(self, name, q_name, in_unit, count) -> None:
        unit = self.units[name] if in_unit else 0
        self._call(name, PutMany(q_name=q_name, bodies=[b"many"] * count, options=2 * in_unit, unit=unit))

    def _reserve(self, name, which, consumer, most, whole) -> None:
        call = Reserve(handle=self._handle(name, which), consumer=consumer, max_messages=most, whole_groups=whole)
        while isinstance(reply := self._call(name, call), Reserved) and reply.more:
            pass
        if isinstance(reply, Reserved):
            number = self.reservations[consumer] = reply.reservation
            left = dict(self._ordinals(name, number, 0, reply.count))
            assert self.reserved.setdefault(number, left) == left, "the same batch to the same consumer"

    def _read(self, name, consumer, first) -> None:
        number = self.reservations.get(consumer, 0)
        left = self.reserved.get(number, {})
        wanted = [(ordinal, left[ordinal]) for ordinal in (first, first + 1) if ordinal in left]
        is_there = number in self.world.store.standing.reservations  # else its queue is no more
        assert self._ordinals(name, number, first, 2) == (wanted if is_there else [])

    def _ordinals(self, name, number, first, count) -> list[tuple[int, bytes]]:
        """What is read, part by part."""
        end, found = first + count, []
        while True:
            reply = self._call(name, ReadReserved(reservation=number, ordinal=first, count=end - first))
            if isinstance(reply, Refused):
                return found
            found += zip(reply.ordinals, map(body_of, reply.messages), strict=True)
            if not reply.more:
                return found
            assert reply.ordinal > first, "the next part begins behind this one"
            first = reply.ordinal

    def _gone(self, number, first, count, reply) -> list[bytes]:
        if isinstance(reply, Refused):
            return []
        assert isinstance(reply, Settled)
        left = self.reserved.get(number, {})
        gone = [ordinal for ordinal in list(left) if ordinal >= first and (count < 0 or ordinal < first + count)]
        bodies = [left.pop(ordinal) for ordinal in gone]
        assert (reply.count, reply.left) == (len(bodies), len(left))
        return bodies

    def _settle(self, name, consumer, first, count) -> None:
        number = self.reservations.get(consumer, 0)
        reply = self._call(name, Settle(reservation=number, ordinal=first, count=count))
        self.got.update(self._gone(number, first, count, reply))

    def _release(self, name, consumer, first, count, counts) -> None:
        number = self.reservations.get(consumer, 0)
        call = Release(reservation=number, ordinal=first, count=count, counts=counts)
        self._gone(number, first, count, self._call(name, call))

    def _reject(self, name, consumer, ordinal) -> None:
        number = self.reservations.get(consumer, 0)
        self._gone(number, ordinal, 1, self._call(name, Reject(reservation=number, ordinal=ordinal)))

    def _attempt(self, name, consumer, first, count) -> None:
        self._call(name, Attempt(reservation=self.reservations.get(consumer, 0), ordinal=first, count=count))

    def _note(self, name, message, options) -> None:
        if options & NEVER_IN_A_UNIT or len(message.data) < message.data_length:
            return
        is_persistent = message.descriptor.persistence == Persistence.PERSISTENT
        if options & GetOption.SYNCPOINT or (options & GetOption.SYNCPOINT_IF_PERSISTENT and is_persistent):
            self.pending[name][1].append(body_of(message))
        else:
            self.got[body_of(message)] += 1
        if options & GetOption.MARK_SKIP_BACKOUT:
            self.marked[name] = body_of(message)

    def _get(self, name, which, option, in_unit) -> None:
        options = int(option) | 2 * (in_unit and not option & (NEVER_IN_A_UNIT | GetOption.SYNCPOINT_IF_PERSISTENT))
        get = Get(
            handle=self._handle(name, which),
            options=options,
            wait_interval_ms=500,
            max_length=1 if option == GetOption.ACCEPT_TRUNCATED_MSG else -1,
            unit=0 if options & NEVER_IN_A_UNIT else self.units[name],
        )
        reply = self._call(name, get)
        if reply is None:
            self.waiting[name] = options
        elif isinstance(reply, WasGot):
            self._note(name, reply, options)

    def _note_ended_waits(self, answers) -> None:
        for answer in answers:
            name = answer.session.identity.application
            options = self.waiting.pop(name)
            self.seen.append((name, answer.reply))
            if isinstance(answer.reply, WasGot):
                self._note(name, answer.reply, options)

    def _get_many(self, name, which, in_unit) -> None:
        unit = self.units[name] if in_unit else 0
        reply = self._call(name, GetMany(handle=self._handle(name, which), count=3, options=2 * in_unit, unit=unit))
        if isinstance(reply, WereGot):
            for message in reply.messages:
                self._note(name, message, 2 * in_unit)

    def _end(self, name, call, committed) -> None:
        puts, gets = self.pending[name]
        if committed:
            self.committed.update(puts)
            self.got.update(gets)
        self.pending[name] = ([], [])
        marked, self.marked[name] = self.marked[name], None
        if call is Backout and marked is not None:
            self.pending[name][1].append(marked)  # it skips the backout
        if call is not None:
            self._call(name, call(unit=self.units[name]))
            self.units[name] += 1

    def _commit(self, name) -> None:
        self._end(name, Commit, True)

    def _backout(self, name) -> None:
        self._end(name, Backout, False)
        unit = self.units[name] - 1
        self._call(name, Outcome(client_id=f"client-{name}", unit=unit))

    def _fail(self, name, q_name, persistent, in_unit) -> None:
        """A message that a program gets twice, and the first time backs out: on B that makes it poison."""
        self._open(name, q_name, IN)
        self._put(name, q_name, False, persistent, 2, -1)
        last = len(self.handles[name]) - 1
        self._get(name, last, 0, True)
        self._backout(name)
        self._get(name, last, 0, in_unit)

    def _set(self, name, which, change) -> None:
        self._call(name, Set(handle=self._handle(name, which), attributes=change))
        self._call(name, Inquire(handle=self._handle(name, which)))

    def _alter(self, q_name, change) -> None:
        kind = {"A": "QALIAS", "R": "QREMOTE", "M": "QMODEL", "P": "QMODEL"}.get(q_name, "QLOCAL")
        self.seen.append(self.world.do(Alter(object_type=kind, name=q_name, attributes=change), "operator"))

    def _advance(self, ms) -> None:
        self.world.clock.advance(ms)
        self._note_ended_waits(self.world.qm.turn([]))

    def _tend(self) -> None:
        self._note_ended_waits(self.world.qm.housekeeping.tend())

    def _retry(self, q_name) -> None:
        for call in (RetryDeadLetters(q_name=q_name), DeadLetters(q_name=q_name, with_data=True)):
            reply = self.world.do(call, "operator")
            # Where the next call goes on is a message's number, which each store of a group gives as it likes.
            self.seen.append(replace(reply, after=[]) if isinstance(reply, Sifted) else reply)

    def _disconnect(self, name) -> None:
        self._end(name, None, True)
        self._call(name, Disconnect())
        self._forget(name)

    def _lose(self, name) -> None:
        self._end(name, None, False)
        self._note_ended_waits(self.world.qm.lost([self.world.session(name)]))
        self._forget(name)

    def _forget(self, name) -> None:
        self.handles[name] = []
        self.units[name] = 1

    def _restart(self) -> None:
        self.world.restart()
        self._reset()

    def _crash(self) -> None:
        self.world.crash()
        self._reset()


def check_counts(store) -> None:
    """What stands is what a count of the rows gives, wherever rows can be counted by themselves."""
    if not isinstance(store, MemoryStore):
        return
    standing, rows = store.standing, list(store._rows.all())
    lies, puts, gets, of_units = Counter(), Counter(), Counter(), Counter()
    for row in [row for row in rows if row.message.ordinal < 0]:
        place = (row.message.q_name, row.message.priority)
        lies[place] += not row.taken_by
        puts[place[0]] += bool(row.put_by)
        gets[place[0]] += bool(row.taken_by)
        of_units[row.put_by, "puts", place] += 1
        of_units[row.taken_by, "gets", place] += 1
    held = check_reservations(standing, [row for row in rows if row.message.ordinal >= 0], lies)
    for name, queue in standing.queues.items():
        assert queue.reserved == held[name]
        assert queue.depths == tuple(lies[name, priority] for priority in range(10))
        assert (queue.uncommitted_puts, queue.uncommitted_gets) == (puts[name], gets[name])
    there = {key: count for key, count in of_units.items() if key[0]}
    told = {
        (unit.unit_id, kind, place): count
        for unit in standing.units.values()
        for kind in ("puts", "gets")
        for place, count in getattr(unit, kind).items()
    }
    assert told == there
    for unit in standing.units.values():
        assert unit.count == sum(unit.puts.values()) + sum(unit.gets.values())
        assert unit.marked is None or any(row.taken_by == unit.unit_id for row in rows)
    assert standing.locks == {number: h.handle for h in standing.handles.values() for number in h.locked}


def check_reservations(standing, rows, lies) -> Counter:
    """Counts by queue the rows that somebody stands behind, and among ``lies`` those that wait or come back."""
    held: Counter = Counter()
    left = {r.number: {n for a, b in r.stretches for n in range(a, b)} for r in standing.reservations.values()}
    for row in rows:
        reservation = standing.reservations[row.taken_by]
        is_left = row.message.ordinal in left[reservation.number]
        due = [due for due in reservation.due if due.first <= row.message.ordinal < due.end]
        assert is_left or due
        held[row.message.q_name] += is_left and bool(reservation.behind)
        waits = not reservation.behind if is_left else due[0].returns
        lies[row.message.q_name, row.message.priority] += waits
    assert {r.number: r.left for r in standing.reservations.values()} == {n: len(of) for n, of in left.items()}
    behind = {(c.connection, n) for c in standing.connections.values() for n in c.reservations}
    assert behind == {(c, r.number) for r in standing.reservations.values() for c in r.behind}
    return held


def body_of(message) -> bytes:
    """What was put, also where it has become a dead letter, or was rejected."""
    descriptor, data = message.descriptor, message.data
    if descriptor.format == FORMAT_DEAD_LETTER:
        head, data = unpack_dlh(data)
        names = ("format", "encoding", "coded_char_set_id")
        descriptor = MessageDescriptor(**{name: getattr(head, name) for name in names})
    return without_rejection(descriptor, data)[1]


def check_that_stores_agree(script, store):
    with tempfile.TemporaryDirectory() as directory:
        memory, other = Script("memory", Path(directory)), Script(store, Path(directory))
        memory.play(script)
        other.play(script)
        for mine, its in zip(memory.seen, other.seen, strict=True):
            assert mine == its
        memory.world.end()
        other.world.end()


ON_SQLITE, ON_POSTGRES = (partial(check_that_stores_agree, store=store) for store in ("sqlite", "postgres"))


def check_that_large_ends_agree(script, store):
    """The same where a unit of more than one message is a large one, and a slice one row."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Leftovers, "at_once", 1)
        check_that_stores_agree(script, store)


LARGE_ON_SQLITE, LARGE_ON_POSTGRES = (
    partial(check_that_large_ends_agree, store=store) for store in ("sqlite", "postgres")
)


def check_that_small_windows_agree(script):
    """The same where SQLite reads three messages ahead, and knows four of a queue and few of reservations."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(first_rows, "MOST_ROWS", 3)
        patched.setattr(read_ahead, "MOST_ROWS", 4)
        patched.setattr(read_ahead, "MOST_OF_A_UNIT", 3)
        patched.setattr(reserved_cache, "MOST_BYTES", 4 * reserved_cache.OF_A_MESSAGE)
        patched.setattr(ReservedRanges, "least", 1)
        check_that_stores_agree(script, "sqlite")


def check_that_nothing_is_lost_or_doubled(script):
    with tempfile.TemporaryDirectory() as directory:
        played = Script("memory", Path(directory))
        played.play(script)
        world = played.world
        world.restart()
        for row in world.did(Reservations(), "operator").rows:
            world.did(Release(reservation=row["reservation"]), "operator")
        while world.qm.housekeeping.is_scanning:  # what was given back returns by slices
            world.qm.housekeeping.scan()
        for q_name in ("F", "E", "D", "B", "INITQ"):
            # What is poison is to be counted where it lies.
            plain = {"inhibit_get": "allowed", "backout_requeue": "appl"}
            world.did(Alter(object_type="QLOCAL", name=q_name, attributes=plain), "operator")
            handle = world.open(q_name, IN, as_="last")
            row = next(r for r in world.did(Display(object_type="QLOCAL", name=q_name)).rows)
            left = []
            while isinstance(reply := world.do(Get(handle=handle), "last"), WasGot):
                # A get and a close may themselves give rise to a report or a trigger message.
                if reply.descriptor.msg_type != MsgType.REPORT and reply.descriptor.put_appl_type != ApplType.QMGR:
                    left.append(body_of(reply))
            assert len(left) <= row["current_q_depth"]  # the rest were expired and not yet discarded
            played.got.update(left)
        lasting = {body: played.got[body] for body in played.committed}
        assert lasting == dict(played.committed)
        world.end()


@settings(max_examples=150)
@given(scripts)
def test_both_stores_give_the_same_replies_triggers_and_state(script):
    check_that_stores_agree(script, "sqlite")


@settings(max_examples=40)
@given(scripts)
def test_postgresql_gives_the_same_as_well(script):
    check_that_stores_agree(script, "postgres")


@settings(max_examples=100)
@given(scripts)
def test_it_is_so_where_units_end_slice_by_slice(script):
    check_that_large_ends_agree(script, "sqlite")


@pytest.mark.parametrize("seed", range(20))
def test_large_units_end_alike(seed):
    check_that_large_ends_agree(large_ends(seed), "sqlite")
    check_that_large_ends_agree(large_ends(seed), "postgres")


@settings(max_examples=150)
@given(scripts)
def test_what_was_committed_is_got_once_and_nothing_else(script):
    check_that_nothing_is_lost_or_doubled(script)


@settings(max_examples=150)
@given(scripts)
def test_it_is_so_where_little_is_read_ahead(script):
    check_that_small_windows_agree(script)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_numbers_behind_a_restart_are_the_same_though_a_call_was_undone_before(store):
    undone = [("fail", "one", "B", False, True), ("fail", "one", "B", False, False), ("fail", "one", "B", True, False)]
    undone += [("put_many", "two", "E", False, 4), ("retry", "E")]
    check_that_stores_agree([*undone, ("restart",), ("monitor", True)], store)


@pytest.mark.parametrize("seed", range(20))
def test_all_stores_keep_marks_and_locks_alike(seed):
    check_that_small_windows_agree(traffic(seed))
    check_that_stores_agree(traffic(seed), "sqlite")
    check_that_stores_agree(traffic(seed), "postgres")
    check_that_nothing_is_lost_or_doubled(traffic(seed))


@pytest.mark.parametrize("seed", range(20))
def test_all_stores_keep_reservations_alike(seed):
    check_that_stores_agree(batches(seed), "sqlite")
    check_that_stores_agree(batches(seed), "postgres")
    check_that_nothing_is_lost_or_doubled(batches(seed))


def test_those_scripts_come_to_batches_that_are_offered_again_given_back_and_settled():
    with tempfile.TemporaryDirectory() as directory:
        seen = []
        for seed in range(20):
            played = Script("memory", Path(directory))
            played.play(batches(seed))
            seen += [reply for reply in played.seen if isinstance(reply, Reserved | Settled)]
        assert any(reply.offers > 1 for reply in seen if isinstance(reply, Reserved))
        assert any(reply.deaths for reply in seen if isinstance(reply, Reserved))
        assert sum(reply.count > 1 for reply in seen if isinstance(reply, Reserved)) > 50
        assert sum(reply.count > 0 for reply in seen if isinstance(reply, Settled)) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        ON_SQLITE,
        ON_POSTGRES,
        LARGE_ON_SQLITE,
        LARGE_ON_POSTGRES,
        check_that_small_windows_agree,
        check_that_nothing_is_lost_or_doubled,
    ],
)
@settings(max_examples=700, suppress_health_check=list(HealthCheck))
@given(script=long_scripts)
def test_it_holds_for_many_long_scripts(check, script):
    check(script)
