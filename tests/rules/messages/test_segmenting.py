"""Segmentation by the queue manager: sizes, flags and what all segments share, for any message, limit and place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds import STORES, World
from trigmon.mq.attributes import LocalQueue, QueueManagerDefinition
from trigmon.mq.calls import Alter, Explain, Get, Move
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import MsgFlag, OpenOption, TriggerType
from trigmon.mq.errors import MsgTooBigForQ
from trigmon.rules.messages.segmentation import MOST_SEGMENTS, piece_length, segments
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.triggers.conditions import condition_03_depth_was_just_below
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations

ALLOWED, SEGMENT, LAST_SEGMENT = MsgFlag.SEGMENTATION_ALLOWED, MsgFlag.SEGMENT, MsgFlag.LAST_SEGMENT
KINDS = (ALLOWED, ALLOWED | SEGMENT, ALLOWED | SEGMENT | LAST_SEGMENT)
IN = OpenOption.INPUT_SHARED


def facts(q_mgr_limit: int) -> Facts:
    return Facts(QueueManagerDefinition(name="QM1", max_msg_length=q_mgr_limit), ConnectionFacts(1, "c", "a", "u", 1))


def queue(limit: int) -> QueueFacts:
    return QueueFacts(LocalQueue(name="Q", max_msg_length=limit))


@given(
    length=st.integers(0, 5000),
    limit=st.integers(0, 600),
    q_mgr_limit=st.integers(0, 600),
    kind=st.sampled_from(KINDS),
    offset=st.integers(0, 100),
)
def test_the_segments_are_the_message_in_pieces_that_fit(length, limit, q_mgr_limit, kind, offset):
    room = min(limit, q_mgr_limit)
    descriptor = MessageDescriptor(msg_flags=int(kind), offset=offset, group_id=b"g" * 24, msg_id=b"m" * 24)
    piece = piece_length(descriptor, length, 0, queue(limit), facts(q_mgr_limit), 0)
    assert bool(piece) == (length > room >= 16)
    if not piece:
        return
    data = bytes(number % 251 for number in range(length))
    cut = segments(descriptor, data, piece)
    assert b"".join(body for _, body in cut) == data
    assert len(cut) > 1
    assert all(len(body) == piece and piece % 16 == 0 and room - 16 < piece <= room for _, body in cut[:-1])
    assert 0 < len(cut[-1][1]) <= piece
    at = offset
    for each, body in cut:
        assert each.offset == at
        assert (each.group_id, each.msg_id, each.msg_seq_number) == (b"g" * 24, b"m" * 24, 1)
        at += len(body)
    flags = [each.msg_flags for each, _ in cut]
    ends = kind != ALLOWED | SEGMENT
    assert flags[:-1] == [ALLOWED | SEGMENT] * (len(cut) - 1)
    assert flags[-1] == ALLOWED | SEGMENT | (LAST_SEGMENT if ends else 0)


@given(length=st.integers(1, 3000), limit=st.integers(0, 900), head=st.sampled_from([428, 500]))
def test_each_segment_fits_behind_what_stands_before_it(length, limit, head):
    descriptor = MessageDescriptor(msg_flags=int(ALLOWED))
    piece = piece_length(descriptor, length, head, queue(limit), facts(4_194_304), 0)
    assert bool(piece) == (head + length > limit >= head + 16)
    assert piece + head <= max(limit, head)


def test_a_message_that_may_not_be_cut_stays_whole():
    assert piece_length(MessageDescriptor(msg_flags=int(SEGMENT)), 100, 0, queue(16), facts(16), 0) == 0


@given(before=st.integers(0, 20), arriving=st.integers(1, 8), depth=st.integers(1, 20))
def test_depth_fires_where_the_number_goes_from_below_the_depth_to_it_or_past_it(before, arriving, depth):
    definition = LocalQueue(name="Q", trigger_type=TriggerType.DEPTH, trigger_depth=depth)
    standing = QueueFacts(definition, (before, *[0] * 9))
    situation = Situation(Happened.PUT, standing, None, None, 0, 0, 0, 0, arriving)
    finding = condition_03_depth_was_just_below(situation)
    assert finding.holds is (before < depth <= before + arriving)
    third = next(e for e in explanations(situation, judge(situation)) if e.number == "3")
    if arriving == 1:
        assert third.needed == f"exactly {depth - 1}"
    else:
        assert third.seen == f"{before} waiting with priority 0 or more, this put brings {arriving}"
        assert third.needed == f"{max(0, depth - arriving)} to {depth - 1}"


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("INITQ")
    made.define("P", "PROCESS", appl_id="/bin/true")
    made.open("INITQ", IN, as_="monitor")
    yield made
    made.end()


def armed(world, name, **attributes):
    watched = {"trigger_control": "on", "initiation_q_name": "INITQ", "process_name": "P"}
    world.define(name, **watched, **attributes)


def test_segments_that_an_operator_moves_are_an_event_each(world):
    armed(world, "SHORT", max_msg_length=16)
    armed(world, "E", trigger_type="every")
    reply = world.put("SHORT", b"x" * 40, msg_flags=int(ALLOWED))
    assert world.fired() == ["SHORT"]
    assert world.did(Move(q_name="SHORT", to_q_name="E"), "operator").count == 3
    assert world.fired() == ["E", "E", "E"]
    handle = world.open("E", IN)
    moved = [world.did(Get(handle=handle)).descriptor for _ in range(3)]
    assert [(m.group_id, m.offset) for m in moved] == [(reply.group_id, offset) for offset in (0, 16, 32)]


def test_a_cut_put_on_a_queue_that_is_its_own_initiation_queue_leaves_room_for_its_segments(world):
    """The trigger message must find room beside all that the put brings."""
    armed(world, "SELF", max_msg_length=800, max_q_depth=3, trigger_type="every")
    world.did(Alter(object_type="QLOCAL", name="SELF", attributes={"initiation_q_name": "SELF"}), "operator")
    world.open("SELF", IN, as_="monitor")
    world.put("SELF", b"x" * 2400, msg_flags=int(ALLOWED))
    depth = world.store.standing.queues["SELF"].depth
    assert depth == 3


def test_one_put_is_cut_into_so_many_segments_at_most():
    descriptor = MessageDescriptor(msg_flags=int(ALLOWED))
    most = 16 * MOST_SEGMENTS
    assert piece_length(descriptor, most, 0, queue(16), facts(16), 0) == 16
    with pytest.raises(MsgTooBigForQ):
        piece_length(descriptor, most + 1, 0, queue(16), facts(16), 0)


def test_why_a_cut_put_did_not_fire_says_how_many_it_brought(world):
    armed(world, "D", trigger_type="depth", trigger_depth=9, max_msg_length=16)
    world.put("D", b"x" * 40, msg_flags=int(ALLOWED))
    told = str(world.did(Explain(q_name="D", why_not=True), "operator"))
    assert "0 waiting with priority 0 or more, this put brings 3" in told
    assert "6 to 8" in told
