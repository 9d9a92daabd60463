"""What all clients together may keep in the daemon's memory, and how a turn is filled."""

import pytest

from trigmon.mq.calls import Get, GetMany, Ping, Put, PutMany
from trigmon.server import memory_budget
from trigmon.server.memory_budget import (
    LITTLE,
    LONG_FRAME,
    CallQueue,
    Intake,
    Room,
    longest_reply,
    messages_of,
    to_be_cut,
)
from trigmon.wire.frames import FrameReader

MIB = 1024 * 1024


class Sender:
    """A connection that brings frames of a length; ``allowed`` says whether it may read on."""

    def __init__(self, intake, user=0):
        self.user = user
        self.inbox = CallQueue(intake, self)
        self.reader = FrameReader(100 * MIB)
        self.number = 0
        self.is_idle = True
        self.allowed = True

    def begins(self, length):
        """The first bytes of a frame."""
        list(self.reader.feed(length.to_bytes(4, "big") + b"x"))
        return self.go_on()

    def ends(self, length):
        """The rest of it."""
        bodies = list(self.reader.feed(b"x" * (length - 1)))
        assert len(bodies) == 1
        self.sends(length)
        self.inbox.frame_ended()

    def sends(self, length):
        """A whole call."""
        self.number += 1
        self.inbox.add(self.number, Ping(), length)

    def is_performed(self):
        """Its first call."""
        self.inbox.drop_first()
        self.inbox.settle()

    def go_on(self):
        self.allowed = self.inbox.may_grow(self.reader, self.allowed)
        return self.allowed


@pytest.fixture
def intake():
    return Intake(4 * MIB)


def test_half_frames_of_all_connections_together_stay_within_the_budget(intake):
    senders = [Sender(intake, user) for user in range(400)]
    assert sum(sender.begins(4 * MIB) for sender in senders) == intake.budget // (4 * MIB)
    assert intake.held <= intake.budget


def test_a_client_that_waits_for_room_goes_on_in_turn_when_a_frame_was_performed_or_its_sender_went(intake):
    senders = [Sender(intake, user) for user in range(20)]
    inside = [sender for sender in senders if sender.begins(4 * MIB)]
    outside = [sender for sender in senders if not sender.allowed]
    inside[0].ends(4 * MIB)
    assert not outside[0].allowed
    inside[0].is_performed()
    assert [sender.allowed for sender in outside] == [True] + [False] * (len(outside) - 1)
    inside[1].inbox.clear()
    assert outside[1].allowed


def test_one_user_who_begins_long_frames_leaves_room_for_those_of_others_who_need_not_wait_for_an_end(intake):
    flood = [Sender(intake, user=1) for _ in range(400)]
    assert sum(sender.begins(4 * MIB) for sender in flood) == intake.budget // (8 * MIB)
    other = Sender(intake, user=2)
    assert other.begins(4 * MIB)
    other.ends(4 * MIB)
    other.is_performed()
    assert sum(sender.allowed for sender in flood) == intake.budget // (8 * MIB)


def test_a_client_that_waits_behind_a_user_with_too_much_is_not_kept_waiting(intake):
    others = [Sender(intake, user) for user in range(8)]
    assert all(sender.begins(4 * MIB) for sender in others)
    flood = [Sender(intake, user=99) for _ in range(20)]
    assert sum(sender.begins(4 * MIB) for sender in flood) == 8
    last = Sender(intake, user=100)
    assert not last.begins(4 * MIB)
    others[0].inbox.clear()
    assert last.allowed
    assert sum(sender.allowed for sender in flood) == 8


def test_calls_that_lie_behind_waiting_gets_leave_half_of_the_budget_to_those_that_are_performed(intake):
    parked = [Sender(intake) for _ in range(40)]
    for sender in parked:
        sender.is_idle = False
        if sender.begins(4 * MIB):
            sender.ends(4 * MIB)
    assert intake.budget // 2 - 4 * MIB <= intake.held <= intake.budget // 2
    assert Sender(intake).begins(4 * MIB)


def test_one_long_frame_finds_room_whatever_lies_about(intake):
    parked = Sender(intake)
    parked.is_idle = False
    parked.sends(2 * intake.budget)
    first, second = Sender(intake), Sender(intake)
    assert first.begins(4 * MIB)
    assert not second.begins(4 * MIB)
    first.ends(4 * MIB)
    assert second.allowed


def test_short_frames_need_no_leave_but_little_is_sent_ahead_when_memory_is_short(intake):
    intake.keep(intake.budget)
    sender = Sender(intake)
    assert sender.begins(LONG_FRAME)
    sender = Sender(intake)
    sender.sends(LITTLE)
    assert sender.go_on()
    sender.sends(1)
    assert not sender.go_on()


def test_all_that_was_counted_is_given_back(intake):
    senders = [Sender(intake) for _ in range(30)]
    for sender in senders:
        sender.sends(1000)
        sender.begins(4 * MIB)
    for sender in senders[:15]:
        sender.is_performed()
    for sender in senders:
        sender.inbox.clear()
    assert intake.held == 0
    assert not intake._promised


def test_a_call_counts_as_the_messages_it_is_about():
    assert messages_of(PutMany(bodies=[b"x"] * 300)) == 150  # two of them take about the time of a put
    assert messages_of(GetMany(handle=1, count=100)) == 100
    assert messages_of(GetMany(handle=1, count=2**40)) == 4096
    assert {
        messages_of(call) for call in (PutMany(bodies=[]), GetMany(handle=1, count=-5), Put(data=b"x"), Ping())
    } == {1}


def test_a_get_may_bring_the_longest_message_or_what_it_asks_for():
    assert longest_reply(Get(handle=1), 4 * MIB) == 4 * MIB
    assert longest_reply(Get(handle=1, max_length=10), 4 * MIB) == 10
    assert longest_reply(GetMany(handle=1, count=9), 1000) == 4 * MIB
    assert longest_reply(GetMany(handle=1, count=9), 100 * MIB) == 100 * MIB


@pytest.mark.parametrize("part", ["messages", "size", "replies"])
def test_a_turn_is_full_when_any_part_of_it_is(part):
    room = Room()
    assert room.is_left
    setattr(room, part, 0)
    assert not room.is_left


class Slow:
    def __init__(self, since, size, user=0):
        self.user = user
        self.unread_since, self.unread_bytes = since, size


def test_of_those_who_do_not_read_the_slowest_are_cut_until_the_rest_fits():
    slow = [Slow(3.0, 60), Slow(1.0, 30), Slow(2.0, 30)]
    assert to_be_cut(slow, 120) == []
    assert to_be_cut(slow, 119) == [slow[1]]
    assert to_be_cut(slow, 70) == [slow[1], slow[2]]
    assert to_be_cut([], memory_budget.UNREAD_BYTES) == []


def test_it_is_the_user_for_whom_most_lies_unread_who_is_cut():
    patient, *hoarders = [Slow(1.0, 10, user=1), *(Slow(2.0 + n, 30, user=2) for n in range(4))]
    assert to_be_cut([patient, *hoarders], 100) == hoarders[:1]
    assert to_be_cut([patient, *hoarders], 39) == hoarders[:4]
    assert to_be_cut([patient, *hoarders], 9) == [*hoarders, patient]
