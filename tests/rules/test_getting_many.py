"""How many messages a get of several takes that were backed out before."""

from __future__ import annotations

import pytest

from trigmon.rules.messages.get import most_after_backouts


@pytest.mark.parametrize(
    ("threshold", "wanted"),
    [
        (0, [100, 50, 25, 12, 6, 3, 1, 1]),
        (1, [100, 50, 25, 12, 6, 3, 1, 1]),
        (2, [100, 1, 1]),
        (3, [100, 10, 1, 1]),
        (5, [100, 32, 10, 3, 1, 1]),
    ],
)
def test_it_falls_with_each_backout_to_one_before_the_threshold(threshold, wanted):
    assert [most_after_backouts(100, backouts, threshold) for backouts in range(len(wanted))] == wanted


@pytest.mark.parametrize("threshold", range(6))
def test_it_is_at_least_one_and_at_most_what_was_asked_for(threshold):
    for count in (1, 2, 4096):
        for backouts in range(9):
            assert 1 <= most_after_backouts(count, backouts, threshold) <= count
