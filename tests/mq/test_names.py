"""Object names: 48 characters of MQ's alphabet; generic names end in a star."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.names import is_object_name, matches


@pytest.mark.parametrize("name", ["Q", "FLIGHTS.IN", "a/b_c%d", "0", "lower.case", "A" * 48])
def test_a_name_has_up_to_48_letters_digits_and_five_signs(name):
    assert is_object_name(name)


@pytest.mark.parametrize("name", ["", "A" * 49, "A B", " A", "A ", "A-B", "Ä", "A*", "A\n", "A'B", "(A)"])
def test_anything_else_is_no_name(name):
    assert not is_object_name(name)


@given(st.text(alphabet="ABCxyz019./_%", min_size=1, max_size=48))
def test_every_name_of_the_alphabet_is_one_and_fits_itself(name):
    assert is_object_name(name)
    assert matches(name, name)
    assert matches(name, name[:3] + "*")


def test_a_generic_name_fits_what_begins_so_and_an_exact_one_only_itself():
    assert matches("FLIGHTS.IN", "*")
    assert matches("FLIGHTS.IN", "FLIGHTS.*")
    assert not matches("FLIGHTS.IN", "FLIGHTS")
    assert not matches("flights.in", "FLIGHTS.*")
    assert not matches("FLIGHTS", "FLIGHTS.*")
