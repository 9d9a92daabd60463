"""Two patterns overlap when there is a name that matches both."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.rules.objects.file_patterns import overlap


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("*", "a", True),
        ("*", "", True),
        ("a", "b", False),
        ("*.csv", "*.txt", False),
        ("*.csv", "a*", True),
        ("a*b", "b*a", False),
        ("a?", "?b", True),
        ("a?", "a", False),
        ("[ab]*", "c*", True),
        ("*x*", "*y*", True),
    ],
)
def test_a_name_may_match_both_patterns_or_none_can(one, other, may):
    assert overlap(one, other) is overlap(other, one) is may


@given(st.text("ab", max_size=5), st.text("ab*?", max_size=5), st.text("ab*?", max_size=5))
def test_two_patterns_that_match_one_name_overlap(name, one, other):
    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert overlap(one, other)
