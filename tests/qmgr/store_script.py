"""A script of calls in the hands of a store, noting what is answered and how the state stands after each step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from tests.qmgr.counted_rows import check_counts
from tests.qmgr.script_steps import APPS, IN, LASTING, MODELS, NEVER_IN_A_UNIT, REPORTS
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
from trigmon.mq.enums import GetOption, Persistence
from trigmon.mq.rejection import without_rejection
from trigmon.mq.replies import Opened, Refused, Reserved, Settled, Sifted, WasGot, WereGot


def body_of(message) -> bytes:
    """What was put, also where it has become a dead letter, or was rejected."""
    descriptor, data = message.descriptor, message.data
    if descriptor.format == FORMAT_DEAD_LETTER:
        head, data = unpack_dlh(data)
        names = ("format", "encoding", "coded_char_set_id")
        descriptor = MessageDescriptor(**{name: getattr(head, name) for name in names})
    return without_rejection(descriptor, data)[1]


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
