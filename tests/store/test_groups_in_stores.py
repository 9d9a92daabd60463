"""Both stores find the same in groups, whatever was put, got, committed, backed out, expired or lost in a crash."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import MsgFlag, ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import handle_changes
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.stored_messages import Cursor, Form, Selection, Summary
from trigmon.store.memory.store import MemoryStore
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sqlite.store import SqliteStore

NOW, SIZE, FIRST_UNIT = 1000, 4, 1000
GROUPS = [padded_id("g"), padded_id("h")]
MSG_IDS = [padded_id("m"), padded_id("n")]
CORREL_IDS = [bytes(24), padded_id("c")]
FLAGS = [
    0,
    MsgFlag.MSG_IN_GROUP,
    MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP,
    MsgFlag.MSG_IN_GROUP | MsgFlag.SEGMENT,
    MsgFlag.MSG_IN_GROUP | MsgFlag.SEGMENT | MsgFlag.LAST_SEGMENT,
    MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP | MsgFlag.SEGMENT,
    MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP | MsgFlag.SEGMENT | MsgFlag.LAST_SEGMENT,
    MsgFlag.SEGMENT,
    MsgFlag.SEGMENT | MsgFlag.LAST_SEGMENT,
]
puts = st.tuples(
    st.just("put"),
    st.sampled_from([*GROUPS, bytes(24)]),
    st.integers(1, 3),  # sequence number
    st.sampled_from([0, SIZE]),  # offset
    st.sampled_from([int(flags) for flags in FLAGS]),
    st.integers(0, 1),  # priority
    st.booleans(),  # persistent
    st.sampled_from([0, 0, 0, NOW]),  # expires
    st.booleans(),  # in a unit of work
    st.sampled_from(CORREL_IDS),
)
# In one unit of work, and of no group, so that its end can go slice by slice.
alone = st.tuples(
    *(st.just("put"), st.just(bytes(24)), st.just(1), st.just(0), st.just(0), st.integers(0, 1), st.booleans()),
    *(st.sampled_from([0, 0, NOW]), st.booleans(), st.sampled_from(CORREL_IDS)),
)
others = st.tuples(st.sampled_from(["take", "remove", "commit", "backout", "slice", "crash"]), st.integers(0, 5))
SELECTIONS = [
    Selection("Q", NOW, limit=limit, starts=starts, whole=whole, unit_id=unit_id, after=after)
    for (starts, whole), (unit_id, after, limit) in product(
        product(Whole, Whole), [(0, None, 1), (1, None, 100), (1, Cursor(1, 3), 1), (0, Cursor(0, 2), 100)]
    )
]
SELECTIONS += [
    Selection("Q", NOW, starts=starts, whole=Whole.MESSAGE, form=Form.GATHERED, unit_id=1)
    for starts in (Whole.MESSAGE, Whole.GROUP)
]
SELECTIONS += [
    Selection("Q", NOW, group_id=group, msg_seq_number=seq, offset=offset, whole=whole, unit_id=1)
    for group, seq, offset, whole in product(GROUPS, (None, 1, 2), (None, 0, SIZE), (Whole.NOTHING, Whole.MESSAGE))
]
# By the place alone, or by the correlation id, "none" among them: whatever its group.
SELECTIONS += [
    Selection("Q", NOW, msg_seq_number=seq, offset=offset, whole=whole, unit_id=unit_id, after=after, limit=limit)
    for seq, offset, whole, (unit_id, after, limit) in product(
        (None, 1, 2, 9), (None, 0, SIZE), Whole, [(0, None, 100), (1, Cursor(1, 2), 1)]
    )
]
SELECTIONS += [
    Selection("Q", NOW, correl_id=correl_id, msg_seq_number=seq, starts=starts, unit_id=unit_id, after=after, limit=9)
    for correl_id, seq, starts, (unit_id, after) in product(
        CORREL_IDS, (None, 1, 2), (Whole.NOTHING, Whole.GROUP), [(0, None), (1, Cursor(1, 2)), (0, Cursor(0, 1))]
    )
]
SELECTIONS += [
    Selection("Q", NOW, msg_id=padded_id("m"), correl_id=correl_id, unit_id=unit_id, after=after, limit=limit)
    for correl_id, unit_id, (after, limit) in product((None, *CORREL_IDS), (0, 1), [(None, 100), (Cursor(0, 2), 1)])
]
SELECTIONS += [Selection("Q", NOW, at=Cursor(priority, number)) for priority, number in product((0, 1), (1, 3, 5))]
SELECTIONS += [Selection("Q", NOW, summary=Summary(range(lowest, 10), counted)) for lowest, counted in ((0, 9), (1, 1))]


class Harness:
    """Two stores that are told the same."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stores = [MemoryStore(), SqliteStore(directory)]
        self.numbers = 0
        self.start()
        self.apply(c.SetDefinition(ObjectType.QLOCAL, LocalQueue(name="Q")))
        self.units = 0
        self.places: set[tuple[bytes, int, int]] = set()
        self.expiring: set[tuple[bytes, int, int]] = set()

    def start(self) -> None:
        for store in self.stores:
            store.open("QM", NOW)
        self.apply(handle_changes.Connect(ConnectionFacts(1, "c", "app", "u", 1)))
        self.in_unit = False

    def apply(self, *changes: c.AnyChange) -> None:
        for store in self.stores:
            store.begin()
            store.mark()
            store.apply(changes, False)
            store.end()

    def unit(self) -> None:
        if not self.in_unit:
            self.units += 1
            self.apply(c.BeginUnit(1, self.unit_id, self.units, "c", NOW))
            self.in_unit = True

    def put(self, group_id, seq, offset, flags, priority, persistent, expires, in_unit, correl_id=bytes(24)) -> None:
        if in_unit:
            self.unit()
        self.numbers += 1
        if group_id == bytes(24):
            seq, offset, flags = 1, 0, 0
        # Of two items in one place the marks follow the first, expired or not: where one may expire stands no other.
        place = (group_id, seq, offset)
        if place in self.expiring or (expires and place in self.places):
            return
        self.places.add(place)
        if expires:
            self.expiring.add(place)
        unit_id = self.unit_id * in_unit
        descriptor = MessageDescriptor(
            msg_id=MSG_IDS[self.numbers % 2],
            group_id=group_id,
            msg_seq_number=seq,
            offset=offset,
            msg_flags=flags,
            correl_id=correl_id,
        )
        self.apply(c.AddMessage("Q", self.numbers, priority, persistent, descriptor, b"d" * SIZE, expires, unit_id))

    @property
    def unit_id(self) -> int:
        """Each is used once."""
        return FIRST_UNIT + self.units

    def end(self, outcome: UnitOutcome) -> None:
        if self.in_unit:
            unit = self.stores[0].standing.units[self.unit_id]
            self.apply(c.EndUnit(unit, outcome, NOW))
            self.in_unit = False

    def do(self, verb: str, number: int) -> None:
        if verb in ("take", "remove"):
            found = self.found(Selection("Q", NOW, limit=100, unit_id=int(self.in_unit))).messages
            if found:
                message = found[number % len(found)]
                if verb == "take":
                    self.unit()
                own = {row.message.number for row in self.stores[0]._rows.all() if row.put_by}
                if verb == "take":
                    self.apply(c.TakeMessage(message, self.unit_id))
                elif message.number not in own:
                    self.apply(c.RemoveMessage(message))
        elif verb == "commit":
            self.end(UnitOutcome.COMMITTED)
        elif verb == "backout":
            self.end(UnitOutcome.BACKED_OUT)
        elif verb == "slice":
            if self.stores[1].has_leftovers:
                self.stores[1].begin()
                self.stores[1].remove_leftovers()
                self.stores[1].end()
        else:
            self.stores[1].idle()  # what may wait is written, so that both lose the same
            self.stores[1].abandon()
            self.stores[1] = SqliteStore(self.directory)
            self.start()

    def found(self, selection: Selection):
        if selection.unit_id:
            selection = replace(selection, unit_id=self.unit_id + (not self.in_unit))
        first, second = (store.find(selection) for store in self.stores)
        assert first == second, selection
        return first


@given(st.lists(puts | others, min_size=1, max_size=14))
@settings(max_examples=60)
@example([("put", GROUPS[0], 2, 0, 0x18, 1, True, 0, False), ("put", GROUPS[0], 1, 0, 0x8, 0, True, 0, True)])
def test_stores_find_the_same_in_groups(script):
    play(script)


@given(st.lists(puts | alone | alone | alone | others | others, min_size=6, max_size=24))
@settings(max_examples=25)
def test_stores_find_the_same_of_what_large_units_have_left(script):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Leftovers, "at_once", 1)
        play(script)


def play(script):
    with tempfile.TemporaryDirectory() as directory:
        harness = Harness(Path(directory))
        for verb, *arguments in script:
            if verb == "put":
                harness.put(*arguments)
            else:
                harness.do(verb, *arguments)
            for selection in SELECTIONS:
                harness.found(selection)
        harness.stores[1].close()
