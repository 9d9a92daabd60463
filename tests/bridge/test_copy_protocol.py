"""The copy of a queue, killed between any two of its steps, on a model of two queue managers."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trigmon.bridge import copy_protocol as protocol
from trigmon.bridge.copy_protocol import QueueCopy, TakenMessage, identity_of
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.errors import QFull
from trigmon.mq.rfh2 import with_typed_properties


class KilledError(Exception):
    """The process of the copy ends here."""


class Moment:
    """Counts the steps of a copy, each before and after its effect, and kills it at some of them."""

    def __init__(self, *kills):
        self._kills = sorted(kills)
        self.passed = 0

    def step(self):
        self.passed += 1
        if self._kills and self.passed >= self._kills[0]:
            self._kills.pop(0)
            raise KilledError


class QueueThere:
    """A queue by priority, of a queue manager that gives back what was got when the connection ends."""

    def __init__(self, moment, *, counts=True):
        self.moment = moment
        self.counts = counts  # backouts, as all but z/OS do
        self.messages = []  # (-priority, place, message)
        self.got = []
        self._places = count()

    def arrives(self, message):
        self.messages.append((-message.descriptor.priority, next(self._places), message))
        self.messages.sort(key=lambda each: each[:2])

    def _get(self, wanted):
        self.moment.step()
        found = next((each for each in self.messages if wanted(each[2])), None)
        if found is not None:
            self.messages.remove(found)
            self.got.append(found)
        self.moment.step()
        return found and found[2]

    def take(self, wait_ms):
        return self._get(lambda message: True)

    def take_again(self, msg_id):
        return self._get(lambda message: message.descriptor.msg_id == msg_id)

    def look(self, msg_id, most):
        self.moment.step()
        return [message for _, _, message in self.messages if message.descriptor.msg_id == msg_id][:most]

    def commit(self):
        self.moment.step()
        self.got.clear()
        self.moment.step()

    def backout(self):
        self.messages = sorted(
            self.messages + [self._given_back(*each) for each in self.got], key=lambda each: each[:2]
        )
        self.got.clear()

    def _given_back(self, priority, place, message):
        more = message.descriptor.backout_count + self.counts
        descriptor = replace(message.descriptor, backout_count=more)
        return priority, place, TakenMessage(descriptor, message.data, message.identity)


class QueueHere:
    """A local queue with its record; the room is what is left of a depth."""

    def __init__(self, moment, depth=1_000_000):
        self.moment = moment
        self.messages = []
        self.record = protocol.encode("Q@QM9", {})
        self.depth = depth

    def room(self):
        if len(self.messages) >= self.depth:
            raise QFull("HERE")
        return self.depth - len(self.messages)

    def put(self, messages, record):
        self.moment.step()
        self.messages += messages
        self.record = protocol.encode("Q@QM9", record)
        self.moment.step()


def message(number, *, msg_id=None, priority=0, put_ms=None, body=None):
    descriptor = MessageDescriptor(
        msg_id=padded_id(msg_id or b"M%d" % number), priority=priority, put_ms=put_ms or 1_000_000 + number
    )
    return TakenMessage(descriptor, b"%d" % number, identity_of(descriptor, b"%d" % number if body is None else body))


def copied(there, here, moment, batch, between=lambda: None):
    """Copies until the queue there is empty, beginning anew after each kill; returns how often it was killed."""
    kills = 0
    while True:
        copy = QueueCopy(there, here, protocol.decode(here.record)[1], batch)
        try:
            copy.resolve()
            while copy.copy_batch(0):
                pass
            copy.settle()
        except KilledError:
            kills += 1
            there.backout()
            between()
            continue
        return kills


def played(messages, batch, kills, between=lambda there: None, *, counts=True):
    moment = Moment(*kills)
    there, here = QueueThere(moment, counts=counts), QueueHere(moment)
    for each in messages:
        there.arrives(each)
    killed = copied(there, here, moment, batch, lambda: between(there))
    return there, here, moment, killed


def numbers(here):
    return sorted(int(each.data) for each in here.messages)


def steps_of(messages, batch):
    return played(messages, batch, ())[2].passed


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 8])
def test_a_kill_at_each_step_loses_and_doubles_nothing(batch):
    messages = [message(number, priority=number % 3) for number in range(7)]
    for at in range(1, steps_of(messages, batch) + 1):
        there, here, _, killed = played(messages, batch, [at])
        assert (killed, numbers(here), there.messages) == (1, list(range(7)), []), at


def test_two_kills_at_any_two_steps_lose_and_double_nothing():
    messages = [message(number) for number in range(5)]
    for first in range(1, steps_of(messages, 2) + 1):
        for second in range(first + 1, first + 30):
            there, here, _, _ = played(messages, 2, [first, second])
            assert (numbers(here), there.messages) == (list(range(5)), []), (first, second)


def test_messages_that_share_an_id_are_each_copied_once():
    same = [message(number, msg_id=b"SAME", put_ms=5) for number in range(6)]
    for at in range(1, steps_of(same, 4) + 1):
        _, here, _, _ = played(same, 4, [at])
        assert numbers(here) == list(range(6)), at


@pytest.mark.parametrize("batch", [2, 3, 4, 6])
def test_messages_that_nothing_tells_apart_are_as_many_here_as_they_were_there(batch):
    same = [message(number, msg_id=b"SAME", put_ms=5, body=b"tick") for number in range(6)]
    for first in range(1, steps_of(same, batch) + 1):
        for second in range(first + 1, first + 25):
            there, here, _, _ = played(same, batch, [first, second])
            assert (numbers(here), there.messages) == (list(range(6)), []), (first, second)


@pytest.mark.parametrize("batch", [1, 3, 7])
def test_a_queue_manager_that_forgets_backout_counts_gives_each_message_once_as_well(batch):
    messages = [message(number, priority=number % 3) for number in range(7)]
    for at in range(1, steps_of(messages, batch) + 1):
        there, here, _, _ = played(messages, batch, [at], counts=False)
        assert (numbers(here), there.messages) == (list(range(7)), []), at


def test_a_message_that_arrives_with_a_recorded_id_while_the_copy_is_away_is_copied():
    messages = [message(number) for number in range(3)]

    for at in range(1, steps_of(messages, 3) + 1):
        _, here, _, _ = played(messages, 3, [at], lambda there: there.arrives(message(9, msg_id=b"M1")))
        assert numbers(here) == [0, 1, 2, 9], at


def test_urgent_messages_that_come_between_do_not_hide_what_comes_again():
    messages = [message(number) for number in range(6)]
    for at in range(1, steps_of(messages, 3) + 1):
        late = [message(100 + number, priority=9) for number in range(5)]
        _, here, _, _ = played(messages, 3, [at], lambda there, late=late: [there.arrives(each) for each in late])
        assert numbers(here) == [*range(6), *range(100, 105)], at


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_kills_any_ids_and_any_arrivals(data):
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    ids = st.sampled_from([b"A", b"B", None])
    total = data.draw(st.integers(1, 12))
    numbered = count()

    def some():
        priority, put_ms = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([7, 8]))
        return message(next(numbered), msg_id=data.draw(ids), priority=priority, put_ms=put_ms)

    messages = [some() for _ in range(total)]
    kills = data.draw(st.lists(st.integers(1, 80), max_size=5, unique=True))

    def between(there):
        if chance.random() < 0.5:
            there.arrives(some())

    there, here, _, _ = played(messages, data.draw(st.integers(1, 6)), kills, between)
    assert (numbers(here), there.messages) == (list(range(next(numbered))), [])


def test_a_message_that_expires_while_the_copy_is_away_is_copied_once_or_not_at_all():
    messages = [message(number) for number in range(4)]
    for at in range(1, steps_of(messages, 2) + 1):
        _, here, _, _ = played(messages, 2, [at], lambda there: there.messages and there.messages.pop(0))
        assert max(Counter(numbers(here)).values()) == 1, at
        assert len(here.messages) >= 3, at


def test_a_record_is_taken_away_when_all_of_it_is_committed_there():
    _, here, _, _ = played([message(1)], 5, ())
    assert protocol.decode(here.record) == ("Q@QM9", {})


def test_what_is_put_again_with_all_its_context_after_the_queue_was_empty_is_another_message():
    moment = Moment()
    there, here = QueueThere(moment), QueueHere(moment)
    for _ in range(2):
        there.arrives(message(1))
        copied(there, here, moment, 5)
    assert numbers(here) == [1, 1]


def test_a_full_queue_here_gives_the_messages_back_there():
    moment = Moment()
    there, here = QueueThere(moment), QueueHere(moment, depth=3)
    for number in range(5):
        there.arrives(message(number))
    copy = QueueCopy(there, here, {}, 2)
    with pytest.raises(QFull):
        while copy.copy_batch(0):
            pass
    assert (numbers(here), len(there.messages), there.got) == ([0, 1, 2], 2, [])
    here.depth = 9
    while copy.copy_batch(0):
        pass
    assert numbers(here) == list(range(5))


def test_a_refused_unit_here_gives_the_messages_back_and_they_are_put_later():
    moment = Moment()
    there, here = QueueThere(moment), QueueHere(moment)
    for number in range(3):
        there.arrives(message(number))
    copy = QueueCopy(there, here, {}, 3)
    put, here.put = here.put, lambda messages, record: (_ for _ in ()).throw(QFull("HERE"))
    with pytest.raises(QFull):
        copy.copy_batch(0)
    assert (len(there.messages), here.record) == (3, protocol.encode("Q@QM9", {}))
    here.put = put
    assert copy.copy_batch(0) == 3
    assert numbers(here) == [0, 1, 2]


def test_an_identity_is_what_stays_when_a_message_comes_again():
    one = MessageDescriptor(msg_id=padded_id(b"M"), put_ms=5, expiry=100, backout_count=0)
    again = replace(one, expiry=90, backout_count=3)
    assert identity_of(one, b"m") == identity_of(again, b"m")
    assert len({identity_of(one, b"m"), identity_of(one, b"n"), identity_of(replace(one, put_ms=15), b"m")}) == 3
    headed = [with_typed_properties(one, b"m", {"usr.a": ("", "1"), name: ("", "2")}) for name in ("usr.b", "own.b")]
    assert headed[0] != headed[1]
    assert len({identity_of(*each) for each in headed}) == 1


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"source":"Q","record":{"00":[1,0]}}', b'{"source":"Q","record":{"z":[1,0]}}']
)
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ValueError):
        protocol.decode(data)
