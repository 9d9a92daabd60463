"""Any story of groups and segments, put, got and browsed in several units of work, goes as a plain retelling says.

It is retold in retelling_groups.py, which uses nothing of our rules. Numbers choose what happens among what is
possible then, so that a story that fails grows short.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutations.every import FAULTS
from tests.scenarios.retelling_groups import Message, Person, Queue
from tests.worlds import STORES, World
from trigmon.mq.calls import Backout, Commit, Get, Put
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption, PutOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

PEOPLE = ("ann", "bob", "cid")
GROUPS = ("Y", "Z")
WHOLE = {"group": GetOption.ALL_MSGS_AVAILABLE, "message": GetOption.ALL_SEGMENTS_AVAILABLE, "": 0}
VERBS = ("put_there", "put_there", "put_next", "put_next", "put_next", "get", "get", "get", "get")
VERBS += ("browse_first", "browse_next", "browse_next", "commit", "commit", "backout", "advance")
steps = st.tuples(st.sampled_from(VERBS), st.sampled_from(PEOPLE), st.integers(0, 5), st.integers(0, 11))
SYNCPOINT = GetOption.SYNCPOINT.value


class Story:
    """What happens, told to the retelling and done by the product."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.world = World(kind, directory)
        self.world.define("Q")
        self.said = Queue({name: Person() for name in PEOPLE})
        self.units = dict.fromkeys(PEOPLE, 1)
        use = (OpenOption.INPUT_SHARED, OpenOption.BROWSE, OpenOption.OUTPUT)
        self.handles = {name: self.world.open("Q", *use, as_=name) for name in PEOPLE}

    def unit(self, who: str) -> int:
        return self.units[who] if self.said.people[who].in_unit else 0

    def tell(self, verb: str, who: str, a: int, b: int) -> None:
        getattr(self, verb)(who, a, b)

    # -- puts ---------------------------------------------------------------------------------------------------

    def put_there(self, who: str, a: int, b: int) -> None:
        """A message at a place of its own choice, in logical order or out of it."""
        is_segment, flags = bool(b & 1), b >> 1
        group = GROUPS[a % 2] if b else ""
        message = Message(0, a % 3, "ab", group, 1 + a // 2, 2 * (flags & 1) if is_segment else 0)
        message.in_group = bool(group)
        message.last_in_group = message.in_group and message.seq == 3
        message.segment, message.last_segment = is_segment and bool(group), is_segment and bool(flags & 1)
        message.expires = self.said.now + 300 if group and b > 9 else 0
        if not group:
            message.seq, message.offset = 1, 0
        elif any(m.place == message.place for m in self.said.messages):
            return
        self._put(who, message, 0)
        if self.said.people[who].put is not None or message.next is not None:
            self.said.people[who].put = message if message.next is not None else None

    def put_next(self, who: str, a: int, b: int) -> None:
        """A message that goes on in logical order with what this application put last."""
        before, person = self.said.people[who].put, self.said.people[who]
        number = next(self.said.numbers)
        message = Message(0, a % 3, "cd", f"new {number}")
        if before is not None and before.next is not None:
            message.group, message.seq, message.offset = before.next
        inside = before is not None and message.offset > 0
        message.in_group = before.in_group if inside else bool(b & 1) or before is not None
        message.last_in_group = before.last_in_group if inside else message.in_group and b > 6
        message.segment = inside or a == 5
        message.last_segment = inside and bool(b & 2)
        if not message.in_group and not message.segment:
            message.group = ""
        elif any(m.place == message.place for m in self.said.messages):
            return  # of two messages in one place either may come
        self._put(who, message, PutOption.LOGICAL_ORDER)
        person.put = message if message.next is not None else None

    def _put(self, who: str, message: Message, options: int) -> None:
        message.number = next(self.said.numbers)
        message.data = f"<{message.number:02}>"[:4] if not message.segment else f"{message.number % 100:02}"
        flags = MsgFlag.MSG_IN_GROUP * message.in_group | MsgFlag.LAST_MSG_IN_GROUP * message.last_in_group
        flags |= MsgFlag.SEGMENT * message.segment | MsgFlag.LAST_SEGMENT * message.last_segment
        given = {} if options else {"msg_seq_number": message.seq, "offset": message.offset}
        if message.group and not options:
            given["group_id"] = padded_id(message.group)
        expiry = (message.expires - self.said.now) // 100 if message.expires else -1
        descriptor = MessageDescriptor(priority=message.priority, msg_flags=int(flags), expiry=expiry, **given)
        unit = self.unit(who)
        put = Put(
            handle=self.handles[who],
            data=message.data.encode(),
            descriptor=descriptor,
            options=options | PutOption.SYNCPOINT * bool(unit),
            unit=unit,
        )
        self.said.add(who, message)
        self.world.did(put, who)

    # -- gets and browses ---------------------------------------------------------------------------------------

    def get(self, who: str, a: int, b: int) -> None:
        logical, whole, complete = b < 9, list(WHOLE)[a % 3], bool(b % 2)
        options = WHOLE[whole] | GetOption.LOGICAL_ORDER * logical | GetOption.COMPLETE_MSG * complete
        found = self._do(who, options | SYNCPOINT * self.said.people[who].in_unit, self.unit(who))
        assert found == self.said.get(who, logical, whole, complete)

    def browse_first(self, who: str, a: int, b: int) -> None:
        self.said.people[who].logical_browse = b < 9
        self._browse(who, a, b, first=True)

    def browse_next(self, who: str, a: int, b: int) -> None:
        if self.said.people[who].logical_browse is not None and self.said.people[who].anchor is not None:
            self._browse(who, a, b, first=False)

    def _browse(self, who: str, a: int, b: int, *, first: bool) -> None:
        whole, complete = list(WHOLE)[a % 3], bool(b % 2)
        options = WHOLE[whole] | GetOption.COMPLETE_MSG * complete
        options |= GetOption.LOGICAL_ORDER * bool(self.said.people[who].logical_browse)
        options |= GetOption.BROWSE_FIRST if first else GetOption.BROWSE_NEXT
        found = self._do(who, options, 0)
        assert found == self.said.browse(who, first, whole, complete)

    def _do(self, who: str, options: int, unit: int) -> str | None:
        reply = self.world.do(Get(handle=self.handles[who], options=int(options), unit=unit), who)
        if isinstance(reply, Refused):
            assert reply.reason == Reason.NO_MSG_AVAILABLE, reply
            return None
        return reply.data.decode()

    # -- units of work ------------------------------------------------------------------------------------------

    def commit(self, who: str, a: int, b: int) -> None:
        self._end(who, Commit(unit=self.units[who]), b)

    def backout(self, who: str, a: int, b: int) -> None:
        self._end(who, Backout(unit=self.units[who]), b)

    def _end(self, who: str, call: Commit | Backout, b: int) -> None:
        person = self.said.people[who]
        if person.in_unit:
            self.world.did(call, who)
            self.units[who] += 1
            self.said.end(who, isinstance(call, Commit))
        # A group is put and got either under syncpoint or outside it.
        if person.put is None and person.get is None:
            person.in_unit = b % 3 > 0

    def advance(self, who: str, a: int, b: int) -> None:
        self.said.now += 100
        self.world.clock.advance(100)


@pytest.mark.parametrize("kind", STORES)
@given(story=st.lists(steps, min_size=1, max_size=80))
@settings(max_examples=60)
def test_it_goes_as_the_seed_says(kind, story):
    play(kind, story)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", range(15))
def test_a_long_story_goes_as_the_seed_says(kind, seed):
    play(kind, drawn(seed))


def play(kind: str, story: list[tuple[str, str, int, int]]) -> None:
    """Both, step by step; fails where they differ."""
    with tempfile.TemporaryDirectory() as directory:
        told = Story(kind, Path(directory))
        for step in story:
            told.tell(*step)
        told.world.end()


def drawn(seed: int) -> list[tuple[str, str, int, int]]:
    """A long story, the same one for each seed."""
    dice = random.Random(seed)
    return [(dice.choice(VERBS), dice.choice(PEOPLE), dice.randrange(6), dice.randrange(12)) for _ in range(200)]


FAULTS_SEEN = (
    "order: a group begun is not gone on with",
    "order: a browse goes on behind a group's last item",
    "order: only logical order moves the place of gets",
    "place: a backout leaves it",
    "whole: all messages available is all segments",
    "whole: all messages are asked for inside a group",
    "whole: nothing is put together",
)


@pytest.mark.parametrize("name", FAULTS_SEEN)
def test_a_story_notices_when_the_order_is_spoiled(monkeypatch, name):
    FAULTS[name].plant(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(100):
            play("memory", drawn(seed))
