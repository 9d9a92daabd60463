"""Numbers: none is given twice, each kind ascends, and those of messages are consecutive over units of work."""

from hypothesis import given
from hypothesis import strategies as st

from trigmon.qmgr.ids import BLOCK, Counter

KINDS = st.lists(st.sampled_from(["message", "unit", "handle"]), max_size=60)


@given(KINDS, KINDS, KINDS, st.integers(1, BLOCK))
def test_numbers_are_unique_and_ascend_also_behind_a_call_that_is_undone(before, undone, behind, used):
    counter = Counter("QM1", 7)
    given_out = [("unit", counter.unit()) for _ in range(used)]
    given_out += [(kind, getattr(counter, kind)()) for kind in before]
    place = counter.place
    first = [getattr(counter, kind)() for kind in undone]
    counter.go_back(place)
    assert [getattr(counter, kind)() for kind in undone] == first
    counter.go_back(place)
    given_out += [(kind, getattr(counter, kind)()) for kind in behind]
    numbers = [number for _, number in given_out]
    assert len(set(numbers)) == len(numbers) and min(numbers) == 7
    for kind in ("message", "unit"):
        of_kind = [number for of, number in given_out if (of == "message") == (kind == "message")]
        assert of_kind == sorted(of_kind)


def test_messages_of_many_units_have_consecutive_numbers():
    counter = Counter("QM1", 1)
    numbers = [(counter.unit(), counter.message())[1] for _ in range(BLOCK)]
    assert numbers == list(range(numbers[0], numbers[0] + BLOCK))
