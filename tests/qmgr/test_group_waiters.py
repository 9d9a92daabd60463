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


class House:
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
def house(world: World) -> House:
    return House(world)


def test_who_waits_for_a_whole_group_is_answered_when_its_last_message_is_committed(house: House):
    house.waits("ann", LOGICAL | WHOLE)
    assert house.puts("Y1", 1, IN_GROUP) == {}
    assert house.puts("Y3", 3, LAST, unit=1) == {}
    assert house.puts("Y2", 2, IN_GROUP) == {}
    assert house.commits() == {"ann": "Y1"}
    assert [house.gets("ann", LOGICAL | WHOLE) for _ in range(2)] == ["Y2", "Y3"]


def test_who_waits_for_a_whole_group_is_answered_by_a_backout_that_gives_it_back(house: House):
    for number, flag in ((1, IN_GROUP), (2, LAST)):
        house.puts(f"Y{number}", number, flag)
    handle = house.world.open("Q", OpenOption.INPUT_SHARED, as_="bob")
    house.world.did(Get(handle=handle, options=GetOption.SYNCPOINT, unit=1), "bob")
    house.waits("ann", LOGICAL | WHOLE)
    house.world.did(Backout(unit=1), "bob")
    assert house.answered() == {"ann": "Y1"}


def test_who_waits_inside_a_group_is_not_starved_by_those_who_take_what_comes(house: House):
    house.puts("Y1", 1, IN_GROUP)
    assert house.gets("ann", LOGICAL) == "Y1"
    house.waits("bob")
    house.waits("ann", LOGICAL)
    house.waits("cid")
    assert house.puts("Y2", 2, IN_GROUP) == {"ann": "Y2"}


def test_who_waits_inside_a_group_does_not_end_the_round_for_the_others(house: House):
    house.puts("Y1", 1, IN_GROUP)
    assert house.gets("ann", LOGICAL) == "Y1"
    house.waits("ann", LOGICAL)
    house.waits("bob")
    house.waits("cid", LOGICAL)
    assert house.puts("alone") == {"cid": "alone"}
    assert house.puts("alone") == {"bob": "alone"}
    assert house.puts("Y2", 2, LAST) == {"ann": "Y2"}


def test_each_group_goes_to_the_one_who_began_it(house: House):
    house.waits("ann", LOGICAL)
    house.waits("bob", LOGICAL)
    assert house.puts("Y1", 1, IN_GROUP) == {"ann": "Y1"}
    house.waits("ann", LOGICAL)
    assert house.puts("Z1", 1, IN_GROUP) == {"bob": "Z1"}
    house.waits("bob", LOGICAL)
    assert house.puts("Z2", 2, LAST) == {"bob": "Z2"}
    assert house.puts("Y2", 2, LAST) == {"ann": "Y2"}


def test_who_waits_for_a_complete_message_is_answered_by_its_last_segment(house: House):
    house.waits("ann", COMPLETE)
    assert house.puts("Sa", 1, SEGMENT) == {}
    assert house.puts("Sc", 1, LAST_SEGMENT, offset=4) == {}
    assert house.puts("Sb", 1, SEGMENT, offset=2) == {"ann": "SaSbSc"}


@pytest.mark.parametrize("options", [LOGICAL | WHOLE, WHOLE])
def test_a_group_chosen_by_its_first_message_is_waited_for_until_others_make_it_whole(house: House, options: int):
    house.waits("ann", options, msg_id=padded_id("first"))
    assert house.puts("Y1", 1, IN_GROUP, msg_id=padded_id("first")) == {}
    assert house.puts("Z1", 1, LAST) == {}
    assert house.puts("Y2", 2, LAST, msg_id=padded_id("second")) == {"ann": "Y1"}


def test_a_message_chosen_by_its_first_segment_is_waited_for_until_others_make_it_complete(house: House):
    house.waits("ann", COMPLETE, correl_id=padded_id("first"))
    assert house.puts("Sa", 1, SEGMENT, correl_id=padded_id("first")) == {}
    assert house.puts("Sb", 1, LAST_SEGMENT, offset=2) == {"ann": "SaSb"}


def test_a_wait_inside_a_group_for_another_id_ends_when_the_next_message_has_none_of_it(house: House):
    house.puts("Y1", 1, IN_GROUP)
    assert house.gets("ann", LOGICAL) == "Y1"
    house.waits("ann", LOGICAL, msg_id=padded_id("wanted"))
    assert house.puts("Y2", 2, LAST, msg_id=padded_id("other")) == {"ann": "MATCH_OPTIONS_ERROR"}


def test_a_wait_inside_a_group_runs_out_while_other_messages_come(house: House):
    house.puts("Y1", 1, IN_GROUP)
    assert house.gets("ann", LOGICAL) == "Y1"
    house.waits("ann", LOGICAL)
    house.puts("alone")
    house.world.clock.advance(5000)
    (answer,) = house.world.qm.turn([])
    assert answer.reply.reason == Reason.NO_MSG_AVAILABLE


def test_a_put_under_syncpoint_of_a_whole_group_wakes_everybody_it_is_enough_for(house: House):
    for who in ("ann", "bob", "cid"):
        house.waits(who, LOGICAL | WHOLE)
    house.puts("Y1", 1, LAST, unit=1)
    house.puts("Z1", 1, IN_GROUP, unit=1)
    house.puts("Z2", 2, LAST, unit=1)
    assert house.commits() == {"ann": "Y1", "bob": "Z1"}
