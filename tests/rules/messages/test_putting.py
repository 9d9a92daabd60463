"""The put side of groups and segments against the manual's two tables, written down here as rows and asked by hand.

The model knows what the tables say and nothing of how the rules are built: any sequence of puts, commits, backouts and
closes must be answered as the rows have it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.worlds import STORES, World
from trigmon.mq.calls import Backout, Close, Commit, Get, Put, PutMany
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption, PutOption
from trigmon.mq.errors import MsgFlagsError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot, WasPut, WerePut
from trigmon.rules.messages.logical_put import check_flags

LOGICAL, SYNCPOINT = PutOption.LOGICAL_ORDER, PutOption.SYNCPOINT
ALLOWED, SEGMENT, LAST_SEGMENT = MsgFlag.SEGMENTATION_ALLOWED, MsgFlag.SEGMENT, MsgFlag.LAST_SEGMENT
GROUP, LAST_IN_GROUP = MsgFlag.MSG_IN_GROUP, MsgFlag.LAST_MSG_IN_GROUP
OUT, IN, BROWSE = OpenOption.OUTPUT, OpenOption.INPUT_SHARED, OpenOption.BROWSE

Y, N, E = (True,), (False,), (True, False)
# MQPMO_LOGICAL_ORDER said, in a group, a segment, segmentation allowed, current group, current logical message:
# then the GroupId, MsgSeqNumber and Offset that the queue manager uses. E is the manual's "either".
ROWS = [
    (Y, N, N, N, N, N, "none", "1", "0"),
    (Y, N, N, Y, N, N, "new", "1", "0"),
    (Y, N, Y, E, N, N, "new", "1", "0"),
    (Y, N, Y, E, N, Y, "previous", "1", "behind"),
    (Y, Y, E, E, N, N, "new", "1", "0"),
    (Y, Y, E, E, Y, N, "previous", "next", "0"),
    (Y, Y, Y, E, Y, Y, "previous", "same", "behind"),
    (N, N, N, N, E, E, "none", "1", "0"),
    (N, N, N, Y, E, E, "new or field", "1", "0"),
    (N, N, Y, E, E, E, "new or field", "1", "field"),
    (N, Y, N, E, E, E, "new or field", "field", "0"),
    (N, Y, Y, E, E, E, "new or field", "field", "field"),
]


@dataclass(frozen=True)
class Stand:
    """What is unfinished on the handle: nothing at first."""

    in_group: bool = False
    in_message: bool = False
    group_id: bytes = NO_ID
    seq: int = 1
    behind: int = 0
    is_last_in_group: bool = False
    in_unit: bool = False
    is_persistent: bool = False
    was_logical: bool = False


@dataclass(frozen=True)
class Step:
    """One put."""

    logical: bool
    flags: MsgFlag
    in_unit: bool
    is_persistent: bool
    length: int
    group_id: bytes
    seq: int
    offset: int


def row_of(step: Step, stand: Stand):
    """The row that fits, None when the combination is not in the table."""
    case = (
        step.logical,
        bool(step.flags & (GROUP | LAST_IN_GROUP)),
        bool(step.flags & (SEGMENT | LAST_SEGMENT)),
        bool(step.flags & ALLOWED),
        stand.in_group,
        stand.in_message,
    )
    fitting = [row[6:] for row in ROWS if all(value in column for value, column in zip(case, row[:6], strict=True))]
    assert len(fitting) <= 1
    return fitting[0] if fitting else None


def unfinished(stand: Stand) -> Reason:
    return Reason.INCOMPLETE_MSG if stand.in_message else Reason.INCOMPLETE_GROUP


def used(row, step: Step, stand: Stand, given_id: bytes) -> tuple[bytes, int, int]:
    """The values of a row. ``given_id`` is the reply's GroupId, taken over where a new one is due."""
    group, seq, offset = row
    groups = {"none": NO_ID, "previous": stand.group_id, "new": given_id}
    groups["new or field"] = given_id if step.group_id == NO_ID else step.group_id
    seqs = {"1": 1, "next": stand.seq + 1, "same": stand.seq, "field": step.seq}
    offsets = {"0": 0, "behind": stand.behind, "field": step.offset}
    return groups[group], seqs[seq], offsets[offset]


def differs(step: Step, stand: Stand) -> Reason | None:
    if step.in_unit != stand.in_unit:
        return Reason.INCONSISTENT_UOW
    return Reason.INCONSISTENT_PERSISTENCE if step.is_persistent != stand.is_persistent else None


def goes_on(step: Step, stand: Stand, values: tuple[bytes, int, int]) -> bool:
    """Whether the values used are those of what comes next where the handle stands."""
    group_id, seq, offset = values
    if group_id != stand.group_id or stand.in_group != bool(step.flags & (GROUP | LAST_IN_GROUP)):
        return False
    if stand.in_message:
        return (seq, offset) == (stand.seq, stand.behind) and (
            stand.is_last_in_group == bool(step.flags & LAST_IN_GROUP)
        )
    return (seq, offset) == (stand.seq + 1, 0)


class Model:
    """The handle as the manual has it."""

    def __init__(self) -> None:
        self.stand = Stand()
        self.before_unit: Stand | None = None
        self.ids: set[bytes] = set()

    def expect(self, step: Step, reply) -> None:
        """Checks one reply against the tables, and moves on."""
        stand = self.stand
        is_open = stand.in_group or stand.in_message
        row = row_of(step, stand)
        if step.logical and is_open:
            last_differs = stand.in_message and stand.is_last_in_group != bool(step.flags & LAST_IN_GROUP)
            failure = unfinished(stand) if row is None or last_differs else differs(step, stand)
            if failure is not None:
                assert reply == Refused(reason=int(failure), about=reply.about), (step, stand)
                return
        is_segment = bool(step.flags & (SEGMENT | LAST_SEGMENT))
        if is_segment and not step.flags & LAST_SEGMENT and not step.length:
            assert reply == Refused(reason=int(Reason.SEGMENT_LENGTH_ZERO), about=reply.about)
            return
        assert isinstance(reply, WasPut), (step, stand, reply)
        assert row is not None
        values = used(row, step, stand, reply.group_id)
        assert (reply.group_id, reply.msg_seq_number, reply.offset) == values, (step, stand)
        if row[0] == "new" or (row[0] == "new or field" and step.group_id == NO_ID):
            assert reply.group_id != NO_ID
            assert reply.group_id not in self.ids
        self.ids.add(reply.group_id)
        warning = None
        if not step.logical and is_open and stand.was_logical:
            warning = differs(step, stand) if goes_on(step, stand, values) else unfinished(stand)
        assert reply.warning == int(warning or 0), (step, stand)
        self.move(step, values)
        # A backout gives back the place before the unit's first put that had to do with places.
        if step.in_unit and self.before_unit is None and (stand, self.stand) != (Stand(), Stand()):
            self.before_unit = stand

    def move(self, step: Step, values: tuple[bytes, int, int]) -> None:
        is_segment = bool(step.flags & (SEGMENT | LAST_SEGMENT))
        in_message = is_segment and not step.flags & LAST_SEGMENT
        is_grouped = bool(step.flags & (GROUP | LAST_IN_GROUP))
        in_group = is_grouped and (in_message or not step.flags & LAST_IN_GROUP)
        group_id, seq, offset = values
        self.stand = Stand(
            in_group,
            in_message,
            group_id,
            seq,
            offset + step.length,
            bool(step.flags & LAST_IN_GROUP),
            step.in_unit,
            step.is_persistent,
            step.logical,
        )
        if not in_group and not in_message:
            self.stand = Stand()


FLAGS = st.sampled_from(
    [
        MsgFlag(group | segment | allowed)
        for group in (0, GROUP, GROUP, LAST_IN_GROUP, GROUP | LAST_IN_GROUP)
        for segment in (0, SEGMENT, LAST_SEGMENT)
        for allowed in (0, ALLOWED)
    ]
)
puts = st.builds(
    Step,
    logical=st.sampled_from([True, True, False]),
    flags=FLAGS,
    in_unit=st.sampled_from([False, False, False, True]),
    is_persistent=st.sampled_from([False, False, False, True]),
    length=st.integers(0, 3),
    group_id=st.sampled_from([NO_ID, b"G" * 24, b"H" * 24]),
    seq=st.integers(1, 4),
    offset=st.integers(0, 4),
)
# As a program would: the same choice of syncpoint and persistence throughout, so that long groups come about.
steady = st.builds(lambda step: replace(step, logical=True, in_unit=False, is_persistent=False, length=2), puts)
steps = st.lists(st.one_of(puts, steady, steady, st.sampled_from(["commit", "backout"])), max_size=25)


class Putter:
    """One handle on one store, with the number of its unit of work."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.world = World(kind, directory)
        self.world.define("Q", max_q_depth=999_999)
        self.handle = self.world.open("Q", OUT)
        self.unit = 1

    def put(self, step: Step):
        descriptor = MessageDescriptor(
            msg_flags=int(step.flags),
            persistence=int(step.is_persistent),
            group_id=step.group_id,
            msg_seq_number=step.seq,
            offset=step.offset,
        )
        options = int(LOGICAL) * step.logical | int(SYNCPOINT) * step.in_unit
        unit = self.unit if step.in_unit else 0
        data = b"x" * step.length
        return self.world.do(Put(handle=self.handle, descriptor=descriptor, data=data, options=options, unit=unit))

    def end(self, how) -> None:
        self.world.did(how(unit=self.unit))
        self.unit += 1


@settings(max_examples=400)
@given(steps)
@example(
    [Step(True, SEGMENT | GROUP, False, False, 2, NO_ID, 1, 0), Step(False, MsgFlag(0), False, False, 1, NO_ID, 1, 0)]
)
def test_any_sequence_of_puts_is_answered_as_the_tables_have_it(script):
    with tempfile.TemporaryDirectory() as directory:
        putter, model = Putter("memory", Path(directory)), Model()
        for step in script:
            if step == "commit":
                putter.end(Commit)
                model.before_unit = None
            elif step == "backout":
                putter.end(Backout)
                model.stand, model.before_unit = model.before_unit or model.stand, None
            else:
                model.expect(step, putter.put(step))
        stand = model.stand
        warning = unfinished(stand) if stand.was_logical and (stand.in_group or stand.in_message) else 0
        assert putter.world.did(Close(handle=putter.handle)).warning == int(warning)
        putter.world.end()


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("Q", max_msg_length=64, max_q_depth=999_999)
    yield made
    made.end()


def put(world, handle, data=b"x", flags=0, options=0, unit=0, **fields):
    descriptor = MessageDescriptor(msg_flags=int(flags), **fields)
    return world.do(Put(handle=handle, data=data, descriptor=descriptor, options=int(options), unit=unit))


def browsed(world, name="Q"):
    """Every message there, in order, with its length."""
    handle = world.open(name, BROWSE, as_="looker")
    found = []
    option = GetOption.BROWSE_FIRST
    while isinstance(got := world.do(Get(handle=handle, options=int(option)), "looker"), WasGot):
        found.append(got)
        option = GetOption.BROWSE_NEXT
    return found


def test_a_new_group_id_is_no_id_that_a_group_or_a_message_had(world):
    handle = world.open("Q", OUT)
    replies = [put(world, handle, flags=LAST_IN_GROUP, options=LOGICAL) for _ in range(50)]
    replies += [put(world, handle, flags=GROUP) for _ in range(50)]
    ids = [reply.group_id for reply in replies] + [reply.msg_id for reply in replies]
    assert len(set(ids)) == 200
    assert NO_ID not in ids


def test_new_group_ids_are_new_after_a_crash_too(world):
    before = {world.put("Q", msg_flags=int(LAST_IN_GROUP), persistence=1).group_id for _ in range(5)}
    world.crash()
    after = {world.put("Q", msg_flags=int(LAST_IN_GROUP)).group_id for _ in range(5)}
    assert not before & after


def test_the_messages_of_one_put_many_are_a_group_in_logical_order(world):
    handle = world.open("Q", OUT)
    many = PutMany(
        handle=handle,
        bodies=[b"1", b"2", b"3"],
        descriptor=MessageDescriptor(msg_flags=int(GROUP)),
        options=int(LOGICAL),
    )
    assert isinstance(world.do(many), WerePut)
    end = put(world, handle, flags=LAST_IN_GROUP, options=LOGICAL)
    found = browsed(world)
    assert [m.descriptor.msg_seq_number for m in found] == [1, 2, 3, 4]
    assert {m.descriptor.group_id for m in found} == {end.group_id}


def test_a_put_many_that_is_refused_takes_the_place_back_with_its_messages(world):
    handle = world.open("Q", OUT)
    first = put(world, handle, flags=GROUP, options=LOGICAL)
    many = PutMany(
        handle=handle,
        bodies=[b"1", b"x" * 65],
        descriptor=MessageDescriptor(msg_flags=int(GROUP)),
        options=int(LOGICAL),
    )
    assert world.do(many).reason == Reason.MSG_TOO_BIG_FOR_Q
    second = put(world, handle, flags=LAST_IN_GROUP, options=LOGICAL)
    assert (second.group_id, second.msg_seq_number) == (first.group_id, 2)


def test_the_stored_copy_says_what_last_implies(world):
    handle = world.open("Q", OUT)
    put(world, handle, flags=LAST_IN_GROUP | LAST_SEGMENT)
    assert browsed(world)[0].descriptor.msg_flags == GROUP | LAST_IN_GROUP | SEGMENT | LAST_SEGMENT


@pytest.mark.parametrize("length", [0, 1, 23, 25])
def test_a_group_id_has_24_bytes_where_it_is_used(world, length):
    # A put in no group has zeros there, whatever it says.
    assert world.put("Q", group_id=b"g" * length).group_id == NO_ID
    refused = world.do(Put(q_name="Q", descriptor=MessageDescriptor(group_id=b"g" * length, msg_flags=int(GROUP))))
    assert refused.reason == Reason.MD_ERROR


def test_unknown_flags_are_refused_or_accepted_by_the_manuals_masks():
    for bit in range(32):
        flag = 1 << bit if bit < 31 else -(1 << 31)
        for is_transmitted in (False, True):
            is_known = bit < 5
            is_accepted = is_known or bit >= 20 or (bit >= 12 and is_transmitted)
            if is_accepted:
                check_flags(flag, is_transmitted=is_transmitted)
            else:
                with pytest.raises(MsgFlagsError):
                    check_flags(flag, is_transmitted=is_transmitted)


@pytest.mark.parametrize("flags", [2**31, -(2**31) - 1, 2**64])
def test_flags_have_32_bits(flags):
    with pytest.raises(MsgFlagsError):
        check_flags(flags, is_transmitted=True)
