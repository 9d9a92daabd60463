"""What a put, a get or a browse costs does not grow with what else lies in the same group or at the same place of it.

Counted are steps of SQLite's virtual machine, of which a look-up by an index takes some dozens.
"""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get
from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot
from trigmon.store.sql import picked_messages

G = padded_id("g")
IN_GROUP, LAST = MsgFlag.MSG_IN_GROUP.value, MsgFlag.LAST_MSG_IN_GROUP.value
MANY = 300
ALL = GetOption.ALL_MSGS_AVAILABLE.value
NEXT = GetOption.BROWSE_NEXT.value
FIRST = GetOption.BROWSE_FIRST.value


@pytest.fixture
def world(tmp_path):
    made = World("sqlite", tmp_path)
    made.define("Q")
    yield made
    made.qm.stop()


@pytest.fixture
def q(world: World) -> int:
    return world.open("Q", OpenOption.INPUT_SHARED, OpenOption.BROWSE)


def steps(world: World, act) -> int:
    """How many steps, in tens, SQLite takes for something."""
    taken = [0]

    def count() -> bool:
        taken[0] += 1
        return False

    world.store._db.set_progress_handler(count, 10)
    act()
    world.store._db.set_progress_handler(None)
    return taken[0]


def item(world: World, seq: int = 1, flags: int = IN_GROUP, unit: int = 0, **fields: object) -> None:
    world.put("Q", b"m", unit=unit, group_id=fields.pop("group_id", G), msg_seq_number=seq, msg_flags=flags, **fields)


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_any_number_of_messages_may_have_the_same_place_in_a_group(world, q, seq):
    for other in {1, 2, 3} - {seq}:
        item(world, other)
    for _ in range(MANY):
        item(world, seq)
    assert steps(world, lambda: item(world, seq)) < MANY // 5
    match = {"match": int(MatchOption.GROUP_ID | MatchOption.MSG_SEQ_NUMBER), "group_id": G, "msg_seq_number": seq}
    assert steps(world, lambda: world.did(Get(handle=q, **match))) < MANY * 2
    assert steps(world, lambda: item(world, 4, LAST)) < MANY * 20  # each first item gets its mark


def test_of_many_at_one_place_the_first_says_how_far_the_group_is_there(world, q):
    for _ in range(20):
        item(world)
    for _ in range(20):
        item(world, 2)
    assert isinstance(world.do(Get(handle=q, options=ALL | FIRST)), Refused)
    item(world, 3, LAST)
    for turn in range(41):
        world.did(Get(handle=q, options=ALL | (NEXT if turn else FIRST)))
    assert isinstance(world.do(Get(handle=q, options=ALL | NEXT)), Refused)


def test_a_first_item_of_higher_priority_tells_for_all_of_its_place(world, q):
    for _ in range(3):
        item(world, 1, LAST)
    item(world, priority=5)
    assert isinstance(world.do(Get(handle=q, options=ALL)), Refused)
    item(world, 2, LAST)
    seen = [world.did(Get(handle=q, options=ALL | (NEXT if turn else FIRST))) for turn in range(5)]
    assert [message.descriptor.msg_seq_number for message in seen] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("end", [Commit, Backout])
def test_first_items_that_come_with_a_units_end_are_marked_like_the_others(world, q, end):
    if end is Backout:
        item(world)
        world.did(Get(handle=q, options=2, unit=1))
    else:
        item(world, unit=1)
    item(world)
    item(world, 2, LAST)
    world.did(end(unit=1))
    seen = [world.did(Get(handle=q, options=ALL | (NEXT if turn else FIRST))) for turn in range(3)]
    assert [message.descriptor.msg_seq_number for message in seen] == [1, 1, 2]


def test_what_is_known_of_a_group_that_is_not_whole_is_not_asked_again_for_each_of_its_messages(world, q):
    item(world, 1, LAST, group_id=padded_id("behind"), priority=0)
    for seq in range(1, MANY):
        item(world, seq, priority=5)
    assert steps(world, lambda: world.did(Get(handle=q, options=ALL))) < MANY * 5


def test_groups_that_are_not_whole_cost_little_to_whom_asks_for_a_whole_one(world, q):
    for number in range(MANY):
        item(world, 2, group_id=padded_id(f"g{number}"))
    assert steps(world, lambda: world.do(Get(handle=q, options=ALL))) < MANY * 5


@pytest.mark.parametrize(
    "match",
    [
        {"match": int(MatchOption.GROUP_ID), "group_id": G},
        {"match": int(MatchOption.CORREL_ID), "correl_id": padded_id("c")},
    ],
)
def test_browsing_on_among_what_an_id_names_costs_the_same_at_any_place(world, q, match):
    for seq in range(1, MANY):
        item(world, seq, correl_id=padded_id("c"))
    world.did(Get(handle=q, options=FIRST, **match))
    first = steps(world, lambda: world.did(Get(handle=q, options=NEXT, **match)))
    for _ in range(MANY - 10):
        world.did(Get(handle=q, options=NEXT, **match))
    assert steps(world, lambda: world.did(Get(handle=q, options=NEXT, **match))) <= first + 5


def test_one_message_of_a_long_group_is_found_by_its_number(world, q):
    for seq in range(1, MANY):
        item(world, seq)
    match = {"match": int(MatchOption.GROUP_ID | MatchOption.MSG_SEQ_NUMBER), "group_id": G}
    reply: list[WasGot] = []

    def last() -> None:
        reply.append(world.did(Get(handle=q, options=FIRST, msg_seq_number=MANY - 1, **match)))

    assert steps(world, last) < 50
    assert reply[0].descriptor.msg_seq_number == MANY - 1


def not_read(*_: object) -> None:
    raise AssertionError("a row was read")


PLAINLY = [
    {"match": int(MatchOption.MSG_SEQ_NUMBER), "msg_seq_number": 7},
    {"match": int(MatchOption.OFFSET), "offset": 7},
    {"match": int(MatchOption.OFFSET | MatchOption.MSG_SEQ_NUMBER), "offset": 7, "msg_seq_number": 1},
]


@pytest.mark.parametrize("match", PLAINLY)
def test_what_only_the_middle_of_a_group_can_be_is_not_looked_for_outside_groups(world, q, match):
    nothing = steps(world, lambda: world.do(Get(handle=q, **match)))
    for _ in range(MANY):
        world.put("Q", b"m")
    assert steps(world, lambda: world.do(Get(handle=q, **match))) <= nothing + 5
    for number in range(MANY):
        item(world, group_id=padded_id(f"g{number}"))
    assert steps(world, lambda: world.do(Get(handle=q, **match))) <= nothing + 20


@pytest.mark.parametrize("match", PLAINLY)
def test_the_middles_of_other_groups_are_passed_over_without_being_read(world, q, match, monkeypatch):
    for number in range(MANY):
        item(world, 2, group_id=padded_id(f"g{number}"))
    monkeypatch.setattr(picked_messages, "message_of", not_read)
    assert world.do(Get(handle=q, **match)).reason == Reason.NO_MSG_AVAILABLE


def test_messages_with_a_correlation_id_are_passed_over_without_being_read_by_who_asks_for_none(world, q, monkeypatch):
    for number in range(MANY):
        world.put("Q", b"m", correl_id=padded_id(f"c{number}"))
        item(world, group_id=padded_id(f"g{number}"), correl_id=padded_id(f"c{number}"))
    monkeypatch.setattr(picked_messages, "message_of", not_read)
    none = {"match": int(MatchOption.CORREL_ID)}
    assert world.do(Get(handle=q, **none)).reason == Reason.NO_MSG_AVAILABLE
    monkeypatch.undo()
    world.put("Q", b"it", priority=0)
    assert world.did(Get(handle=q, **none)).data == b"it"


def test_of_several_with_one_number_the_first_in_get_order_is_found(world, q):
    match = {"match": int(MatchOption.GROUP_ID | MatchOption.MSG_SEQ_NUMBER), "group_id": G, "msg_seq_number": 2}
    for priority in (1, 3, 2):
        item(world, 2, priority=priority)
    seen = [world.did(Get(handle=q, options=NEXT if turn else FIRST, **match)) for turn in range(3)]
    assert [message.descriptor.priority for message in seen] == [3, 2, 1]
