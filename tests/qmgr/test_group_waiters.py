"""Gets that wait for what a group, or a message of segments, needs: each is answered by that and by nothing else."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get
from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

LOGICAL, WHOLE, COMPLETE = GetOption.LOGICAL_ORDER, GetOption.ALL_MSGS_AVAILABLE, GetOption.COMPLETE_MSG
IN_GROUP, LAST = MsgFlag.MSG_IN_GROUP, MsgFlag.LAST_MSG_IN_GROUP
SEGMENT, LAST_SEGMENT = MsgFlag.SEGMENT, MsgFlag.LAST_SEGMENT


class Harness:
    """One queue, and people who wait for its messages."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.handles: dict[str, int] = {}
        world.define("Q")

    def waits(self, who: str, options: int = 0, **match: object) -> None:
        """A get of somebody that is not answered yet."""
        assert self.asked(who, options, **match) is None

    def gets(self, who: str, options: int = 0) -> str:
        """A get of somebody that is answered at once."""
        return self.asked(who, options).data.decode()

    def asked(self, who: str, options: int, **match: object):
        if who not in self.handles:
            self.handles[who] = self.world.open("Q", OpenOption.INPUT_SHARED, as_=who)
        bits = sum(MatchOption[name.upper()] for name in match)
        get = Get(
            handle=self.handles[who], options=options | GetOption.WAIT, wait_interval_ms=5000, match=bits, **match
        )
        return self.world.do(get, who)

    def puts(self, data: str, seq: int = 1, flags: int = 0, unit: int = 0, offset: int = 0, **fields: object):
        """Puts a message, of the group that its first letter names if it has flags; who was answered by it."""
        group_id = padded_id(data[0]) if flags else bytes(24)
        self.world.put(
            "Q", data.encode(), "putter", unit,
            group_id=group_id, msg_seq_number=seq, msg_flags=int(flags), offset=offset, **fields,
        )  # fmt: skip
        return self.answered()

    def commits(self):
        """The putter commits; who was answered by it."""
        self.world.did(Commit(unit=1), "putter")
        return self.answered()

    def answered(self) -> dict[str, str]:
        """Whose wait ended since the last look, and with which data."""
        ended = {answer.session.identity.application: answer.reply for answer in self.world.ended_waits}
        self.world.ended_waits.clear()
        return {
            who: Reason(reply.reason).name if isinstance(reply, Refused) else reply.data.decode()
            for who, reply in ended.items()
        }


@pytest.fixture
def harness(world: World) -> Harness:
    return Harness(world)


def test_who_waits_for_a_whole_group_is_answered_when_its_last_message_is_committed(harness: Harness):
    harness.waits("ann", LOGICAL | WHOLE)
    assert harness.puts("Y1", 1, IN_GROUP) == {}
    assert harness.puts("Y3", 3, LAST, unit=1) == {}
    assert harness.puts("Y2", 2, IN_GROUP) == {}
    assert harness.commits() == {"ann": "Y1"}
    assert [harness.gets("ann", LOGICAL | WHOLE) for _ in range(2)] == ["Y2", "Y3"]


def test_who_waits_for_a_whole_group_is_answered_by_a_backout_that_gives_it_back(harness: Harness):
    for number, flag in ((1, IN_GROUP), (2, LAST)):
        harness.puts(f"Y{number}", number, flag)
    handle = harness.world.open("Q", OpenOption.INPUT_SHARED, as_="bob")
    harness.world.did(Get(handle=handle, options=GetOption.SYNCPOINT, unit=1), "bob")
    harness.waits("ann", LOGICAL | WHOLE)
    harness.world.did(Backout(unit=1), "bob")
    assert harness.answered() == {"ann": "Y1"}


def test_who_waits_inside_a_group_is_not_starved_by_those_who_take_what_comes(harness: Harness):
    harness.puts("Y1", 1, IN_GROUP)
    assert harness.gets("ann", LOGICAL) == "Y1"
    harness.waits("bob")
    harness.waits("ann", LOGICAL)
    harness.waits("cid")
    assert harness.puts("Y2", 2, IN_GROUP) == {"ann": "Y2"}


def test_who_waits_inside_a_group_does_not_end_the_round_for_the_others(harness: Harness):
    harness.puts("Y1", 1, IN_GROUP)
    assert harness.gets("ann", LOGICAL) == "Y1"
    harness.waits("ann", LOGICAL)
    harness.waits("bob")
    harness.waits("cid", LOGICAL)
    assert harness.puts("alone") == {"cid": "alone"}
    assert harness.puts("alone") == {"bob": "alone"}
    assert harness.puts("Y2", 2, LAST) == {"ann": "Y2"}


def test_each_group_goes_to_the_one_who_began_it(harness: Harness):
    harness.waits("ann", LOGICAL)
    harness.waits("bob", LOGICAL)
    assert harness.puts("Y1", 1, IN_GROUP) == {"ann": "Y1"}
    harness.waits("ann", LOGICAL)
    assert harness.puts("Z1", 1, IN_GROUP) == {"bob": "Z1"}
    harness.waits("bob", LOGICAL)
    assert harness.puts("Z2", 2, LAST) == {"bob": "Z2"}
    assert harness.puts("Y2", 2, LAST) == {"ann": "Y2"}


def test_who_waits_for_a_complete_message_is_answered_by_its_last_segment(harness: Harness):
    harness.waits("ann", COMPLETE)
    assert harness.puts("Sa", 1, SEGMENT) == {}
    assert harness.puts("Sc", 1, LAST_SEGMENT, offset=4) == {}
    assert harness.puts("Sb", 1, SEGMENT, offset=2) == {"ann": "SaSbSc"}


@pytest.mark.parametrize("options", [LOGICAL | WHOLE, WHOLE])
def test_a_group_chosen_by_its_first_message_is_waited_for_until_others_make_it_whole(harness: Harness, options: int):
    harness.waits("ann", options, msg_id=padded_id("first"))
    assert harness.puts("Y1", 1, IN_GROUP, msg_id=padded_id("first")) == {}
    assert harness.puts("Z1", 1, LAST) == {}
    assert harness.puts("Y2", 2, LAST, msg_id=padded_id("second")) == {"ann": "Y1"}


def test_a_message_chosen_by_its_first_segment_is_waited_for_until_others_make_it_complete(harness: Harness):
    harness.waits("ann", COMPLETE, correl_id=padded_id("first"))
    assert harness.puts("Sa", 1, SEGMENT, correl_id=padded_id("first")) == {}
    assert harness.puts("Sb", 1, LAST_SEGMENT, offset=2) == {"ann": "SaSb"}


def test_a_wait_inside_a_group_for_another_id_ends_when_the_next_message_has_none_of_it(harness: Harness):
    harness.puts("Y1", 1, IN_GROUP)
    assert harness.gets("ann", LOGICAL) == "Y1"
    harness.waits("ann", LOGICAL, msg_id=padded_id("wanted"))
    assert harness.puts("Y2", 2, LAST, msg_id=padded_id("other")) == {"ann": "MATCH_OPTIONS_ERROR"}


def test_a_wait_inside_a_group_runs_out_while_other_messages_come(harness: Harness):
    harness.puts("Y1", 1, IN_GROUP)
    assert harness.gets("ann", LOGICAL) == "Y1"
    harness.waits("ann", LOGICAL)
    harness.puts("alone")
    harness.world.clock.advance(5000)
    (answer,) = harness.world.qm.turn([])
    assert answer.reply.reason == Reason.NO_MSG_AVAILABLE


def test_a_put_under_syncpoint_of_a_whole_group_wakes_everybody_it_is_enough_for(harness: Harness):
    for who in ("ann", "bob", "cid"):
        harness.waits(who, LOGICAL | WHOLE)
    harness.puts("Y1", 1, LAST, unit=1)
    harness.puts("Z1", 1, IN_GROUP, unit=1)
    harness.puts("Z2", 2, LAST, unit=1)
    assert harness.commits() == {"ann": "Y1", "bob": "Z1"}
