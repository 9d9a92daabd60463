"""What a person sees of a value in a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.cli.table_cells import age, short_ids, to_the_second, with_age

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=0.4), "400 ms"),
        (timedelta(seconds=89), "89 s"),
        (timedelta(seconds=91), "2 min"),
        (timedelta(minutes=89), "89 min"),
        (timedelta(minutes=91), "2 h"),
        (timedelta(hours=35), "35 h"),
        (timedelta(hours=37), "2 d"),
        (timedelta(days=400), "400 d"),
        (-timedelta(minutes=5), "in 5 min"),
        (-timedelta(seconds=0.5), "in 500 ms"),
    ],
)
def test_an_age_is_one_number_and_one_unit(ago, shown):
    assert age((NOW - ago).isoformat().replace("+00:00", "Z"), NOW) == shown


def test_a_moment_is_shown_with_its_age():
    assert with_age("2026-11-23T11:58:00.123Z", NOW) == "2026-11-23T11:58:00.123Z (2 min)"
    assert to_the_second("2026-11-23T11:58:00.123Z") == "2026-11-23T11:58:00Z"


@given(st.lists(st.binary(min_size=24, max_size=24).map(bytes.hex), max_size=20))
def test_ids_that_differ_are_shown_differently_and_end_as_they_do(ids):
    shown = short_ids(ids)
    assert len(set(shown)) == len(set(ids))
    assert all(whole.endswith(short.lstrip("…")) for whole, short in zip(ids, shown, strict=True))


def test_ids_of_a_queue_manager_are_shown_by_their_ends():
    begin = b"AMQ QM1         ".hex()
    assert short_ids([f"{begin}{number:016x}" for number in (7, 8, 0x1000007)]) == [
        "…00000007",
        "…00000008",
        "…01000007",
    ]
    assert short_ids(["abc"]) == ["abc"]
