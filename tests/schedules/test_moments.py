"""The moments of crontab lines and intervals, over both changes of the clocks in three zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.attributes import Schedule
from trigmon.schedules.moments import _line, fault, last_moments, next_moment

# Their clocks are changed by an hour, by an hour on other days, and by half an hour.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


def moments(cron: str, zone: str, begin: str, count: int) -> list[str]:
    """Returns the moments after a local time, as local times with their offsets."""
    schedule = Schedule(name="S", cron=cron, timezone=zone)
    moment = round(datetime.fromisoformat(begin).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    found = []
    for _ in range(count):
        after = next_moment(schedule, moment)
        assert after is not None
        moment = after
        found.append(datetime.fromtimestamp(moment / 1000, ZoneInfo(zone)).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("Europe/Berlin", "2026-03-28", ["03-28 02:15+0100", "03-29 03:00+0200", "03-30 02:15+0200"]),
        ("America/New_York", "2026-03-07", ["03-07 02:15-0500", "03-08 03:00-0400", "03-09 02:15-0400"]),
        ("Australia/Lord_Howe", "2026-10-03", ["10-03 02:15+1030", "10-04 02:30+1100", "10-05 02:15+1100"]),
    ],
)
def test_a_time_that_is_skipped_is_taken_once_at_the_end_of_the_gap(zone, day, expected):
    assert moments("15 2 * * *", zone, f"{day}T00:00", 3) == expected
    assert moments("5,10,15 2 * * *", zone, f"{day}T02:12", 3)[1:] == [
        expected[1],
        expected[2].replace("02:15", "02:05"),
    ]


@pytest.mark.parametrize(
    ("zone", "day", "hour", "expected"),
    [
        ("Europe/Berlin", "2026-10-24", 2, ["10-24 02:45+0200", "10-25 02:45+0200", "10-26 02:45+0100"]),
        ("America/New_York", "2026-10-31", 1, ["10-31 01:45-0400", "11-01 01:45-0400", "11-02 01:45-0500"]),
        ("Australia/Lord_Howe", "2026-04-04", 1, ["04-04 01:45+1100", "04-05 01:45+1100", "04-06 01:45+1030"]),
    ],
)
def test_a_time_that_comes_twice_is_taken_at_its_first(zone, day, hour, expected):
    assert moments(f"45 {hour} * * *", zone, f"{day}T00:00", 3) == expected


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("month", [3, 10])
def test_every_quarter_of_an_hour_is_a_quarter_of_an_hour_when_the_clocks_change(zone, month):
    schedule = Schedule(name="S", cron="*/15 * * * *", timezone=zone)
    moment = round(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000)
    for _ in range(36 * 96):
        after = next_moment(schedule, moment)
        assert after == moment + 900_000
        moment = after


@pytest.mark.parametrize("zone", ZONES)
def test_every_night_at_two_comes_once_a_day_all_through_the_year(zone):
    days = moments("0 2 * * *", zone, "2026-01-01T00:00", 365)
    assert [day[:5] for day in days] == [
        (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n)).strftime("%m-%d") for n in range(365)
    ]


def test_weekdays_count_from_sunday_and_seven_is_sunday_too():
    assert [each[:5] for each in moments("0 9 * * 1-5", "UTC", "2026-11-27T00:00", 3)] == ["11-27", "11-30", "12-01"]
    sundays = moments("0 9 * * 0", "UTC", "2026-11-24T00:00", 2)
    assert [each[:5] for each in sundays] == ["11-29", "12-06"]
    assert moments("0 9 * * 7", "UTC", "2026-11-24T00:00", 2) == sundays
    assert moments("0 9 * * sun", "UTC", "2026-11-24T00:00", 2) == sundays
    assert [each[:5] for each in moments("0 9 * * fri-sun", "UTC", "2026-11-24T00:00", 4)] == [
        "11-27",
        "11-28",
        "11-29",
        "12-04",
    ]


def test_where_both_days_are_restricted_either_will_do():
    found = moments("0 9 13 * fri", "UTC", "2026-02-27T12:00", 4)
    assert [each[:5] for each in found] == ["03-06", "03-13", "03-20", "03-27"]
    assert [each[:5] for each in moments("0 9 14 * fri", "UTC", "2026-03-13T12:00", 2)] == ["03-14", "03-20"]


def test_a_leap_day_is_waited_for():
    assert moments("0 0 29 2 *", "UTC", "2026-01-01T00:00", 1) == ["02-29 00:00+0000"]


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", ""),
        ("*/5 * * * *", ""),
        ("0 2 30 2 *", "no such day in any year"),
        ("61 * * * *", "higher than the maximum"),
        ("0 2 * * 8", "give 0 to 7 or sun to sat"),
        ("0 2 * * 1-", "give 0 to 7 or sun to sat"),
        ("@daily", "a line has 5 fields"),
        ("0 2 last * *", "day of the month last: give numbers"),
        ("0 2 5-1 * *", "minimum value in a range"),
    ],
)
def test_a_line_is_refused_with_what_is_wrong(cron, why):
    assert (why in fault(cron, "UTC")) if why else fault(cron, "UTC") == ""


def test_a_day_that_never_comes_is_not_looked_for_beside_one_that_does():
    assert moments("0 0 30 2 1", "UTC", "2026-01-31T00:00", 2) == ["02-02 00:00+0000", "02-09 00:00+0000"]
    assert len(_line("0 0 30 2 1").triggers) == 1
    assert len(_line("0 0 29 2 1").triggers) == 2


@pytest.mark.parametrize("zone", ["", "Berlin", "Europe", "../etc/passwd", "/etc/passwd", "utc "])
def test_what_is_no_zone_is_refused(zone):
    assert "IANA time zone database" in fault("", zone)


def test_an_interval_counts_from_1970_wherever_it_is_asked_from():
    schedule = Schedule(name="S", every_s=900)
    assert [next_moment(schedule, at) for at in (0, 899_999, 900_000, 900_001)] == [
        900_000,
        900_000,
        1_800_000,
        1_800_000,
    ]


@pytest.mark.parametrize("schedule", [Schedule(name="S", every_s=1), Schedule(name="S", cron="* * 1 1 *")])
def test_of_very_many_moments_the_last_are_found(schedule):
    until = round(datetime(2026, 11, 24, tzinfo=UTC).timestamp() * 1000)
    found = last_moments(schedule, 0, until, 1000)
    assert len(found) == 1000
    assert next_moment(schedule, found[-1] - 1) == found[-1]
    assert all(next_moment(schedule, one) == other for one, other in pairwise(found))
    last = next_moment(schedule, found[-1])
    assert last is not None
    assert last > until


@given(
    st.builds(
        "{} {} {} * {}".format,
        st.sampled_from(["0", "30", "*/15", "*", "7-50/9"]),
        st.sampled_from(["*", "*/2", "2", "0-3", "1,2,3"]),
        st.sampled_from(["*", "*", "1", "25-31"]),
        st.sampled_from(["*", "*", "sun", "1-5"]),
    ),
    st.sampled_from(ZONES),
    st.integers(0, 2 * 366 * 86_400),
)
def test_moments_ascend_match_the_line_and_none_is_left_out(cron, zone, offset_s):
    schedule = Schedule(name="S", cron=cron, timezone=zone)
    begin = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) + offset_s
    moment = next_moment(schedule, begin * 1000)
    assert moment is not None
    assert moment > begin * 1000
    assert moment % 60_000 == 0
    # Whatever lies between leads to the same moment: so no start in the middle finds another.
    for part in (1, 2, 3):
        between = begin * 1000 + (moment - begin * 1000 - 1) * part // 4
        assert next_moment(schedule, between) == moment
