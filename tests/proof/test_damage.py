"""Damage to a store's files is noticed: see :mod:`tests.proof.damage`."""

import pytest

from tests.proof.damage import KILLED, STOPPED, damage

KINDS = len(STOPPED) + len(KILLED)


def test_a_damaged_store_is_right_or_says_what_is_not(tmp_path):
    table, violations = damage(tmp_path, range(2 * KINDS))
    assert violations == []
    assert table.total() == 2 * KINDS


def test_rows_whose_numbers_are_out_of_order_are_walked_to_their_end(tmp_path):
    table, violations = damage(tmp_path, range(1972, 1973))
    assert violations == []
    assert table.total() == 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_two_thousand_damaged_stores_are_right_or_say_what_is_not(tmp_path, first):
    table, violations = damage(tmp_path, range(first, first + 250))
    print(*(f"{kind}, {outcome}: {count}" for (kind, outcome), count in sorted(table.items())), sep="\n")
    assert violations == []
