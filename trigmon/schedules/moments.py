"""The moments of a schedule: which come after a time, and whether a crontab line has any.

Times are handed in, as milliseconds since 1970. A crontab line is a line of crontab(5): minute, hour, day of the month,
month, day of the week with 0 and 7 for Sunday; where both days are restricted, either will do. APScheduler's
``CronTrigger`` finds the local times; it counts weekdays from Monday and wants both days, so the line is translated.

What a change of the clocks does, as of cron(8): where the hour is named, a local time that is skipped is taken at the
end of the gap, and one that comes twice at its first time. Where the hour begins with ``*``, moments follow the time
that passes: none in the gap, and each in both hours that have the same name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from trigmon.mq.attributes import Schedule

_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
_ALLOWED = re.compile(r"[0-9*,/-]+\Z")
_ALLOWED_NAMES = re.compile(r"[0-9A-Za-z*,/-]+\Z")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAY_RANGE = re.compile(r"(\*|\d|[a-z]{3})(?:-(\d|[a-z]{3}))?(?:/(\d))?\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A line without a year repeats within 28 years; from here to there each of its dates has come.
_CYCLE = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))
# Years with the rules of today's zones.
_YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
_COMPARED = 400  # moments
_FEW = 64
_SHIFT_S = 3 * 3600  # no zone's clocks are changed by more


class _Line(NamedTuple):
    """A crontab line: one trigger, or two of which either will do; ``by_hours``: its hour begins with ``*``."""

    triggers: tuple[Any, ...]
    by_hours: bool


def fault(cron: str, timezone: str) -> str:
    """Returns what is wrong with a crontab line (blank: there is none) and its time zone; blank if nothing is."""
    if not _is_zone(timezone):
        return f"TIMEZONE({timezone}): give a name of the IANA time zone database, as Europe/Berlin or UTC"
    try:
        if cron and not any(map(_fires, _triggers(cron, _CYCLE[1]))):
            return f"CRON({cron}): there is no such day in any year"
    except ValueError as error:
        return f"CRON({cron}): {error}"
    return ""


def next_moment(schedule: Schedule, after_ms: int) -> int | None:
    """Returns the first moment after a time; None in a time zone that the database of this machine does not have."""
    if schedule.every_s:
        period_ms = schedule.every_s * 1000
        return (after_ms // period_ms + 1) * period_ms
    if not _is_zone(schedule.timezone):
        return None
    found = _next_of_cron(schedule.cron, schedule.timezone, after_ms // 1000)
    return None if found is None else found * 1000


def last_moments(schedule: Schedule, after_ms: int, until_ms: int, most: int) -> list[int]:
    """Returns the moments after a time and not after another, in order; the last ``most`` where there are more."""
    first = list(islice(_moments(schedule, after_ms, until_ms), _FEW))
    if len(first) < _FEW:
        return first[-most:]
    span_ms = 60_000
    while True:
        # From the end, twice as far each time: a year of minutes is not gone through for its last ones.
        start_ms = max(after_ms, until_ms - span_ms)
        found = deque(_moments(schedule, start_ms, until_ms), most)
        if start_ms == after_ms or len(found) == most:
            return list(found)
        span_ms *= 2


def common_moment(one: Schedule, other: Schedule) -> int:
    """Returns the first moment that two schedules have in common, of the first few hundred in some year; 0: none."""
    moment_ms = round(_CYCLE[0].timestamp()) * 1000
    rarer, denser = sorted((one, other), key=lambda each: -(next_moment(each, moment_ms) or 0))
    for _ in range(_COMPARED):
        after_ms = next_moment(rarer, moment_ms)
        if after_ms is None:
            return 0
        moment_ms = after_ms
        if next_moment(denser, moment_ms - 1) == moment_ms:
            return moment_ms
    return 0


def skipped(schedule: Schedule) -> str:
    """Returns the local times, for a person, that a zone skips and a crontab line names; blank where there are none."""
    if not schedule.cron or not _is_zone(schedule.timezone) or (line := _line(schedule.cron)).by_hours:
        return ""
    zone = _zone(schedule.timezone)
    for day in range(*(time.toordinal() for time in _YEAR)):
        begin_s = round((datetime.fromordinal(day).replace(tzinfo=UTC) - _EPOCH).total_seconds())
        before_s = _offset_s(begin_s, zone)
        if _offset_s(begin_s + 86_400, zone) > before_s:
            end_s = _change(begin_s, begin_s + 86_400, zone)
            first, last = _EPOCH + timedelta(seconds=end_s + before_s), _local(end_s, zone)
            local = _next_local(line, first - timedelta(seconds=1))
            if local is not None and local < last:
                return f"{first:%Y-%m-%d} has no {local:%H:%M}, its clocks go from {first:%H:%M} to {last:%H:%M}"
    return ""


def _moments(schedule: Schedule, after_ms: int, until_ms: int) -> Iterator[int]:
    moment = next_moment(schedule, after_ms)
    while moment is not None and moment <= until_ms:
        yield moment
        moment = next_moment(schedule, moment)


@lru_cache(maxsize=4096)
def _next_of_cron(cron: str, timezone: str, after_s: int) -> int | None:
    line, zone = _line(cron), _zone(timezone)
    return _next_by_hours(line, zone, after_s) if line.by_hours else _next(line, zone, after_s)


def _next(line: _Line, zone: ZoneInfo, after_s: int) -> int | None:
    """Returns the first moment of a line that names its hours."""
    # Local times that were skipped are moments later than their names say.
    local = _next_local(line, _local(after_s - _SHIFT_S, zone))
    while local is not None and (moment := _instant(local, zone)) <= after_s:
        local = _next_local(line, local)
    return None if local is None else moment


def _next_by_hours(line: _Line, zone: ZoneInfo, after_s: int) -> int | None:
    """Returns the first moment of a line whose moments follow the time that passes, in stretches of one offset."""
    while True:
        offset_s = _offset_s(after_s, zone)
        local = _next_local(line, _EPOCH + timedelta(seconds=after_s + offset_s))
        if local is None:
            return None
        moment = round((local - _EPOCH).total_seconds()) - offset_s
        # Between two times of one offset there may have been another, which ended just before.
        end_s = next((s for s in (max(after_s, moment - _SHIFT_S), moment) if _offset_s(s, zone) != offset_s), None)
        if end_s is None:
            return moment
        after_s = _change(after_s, end_s, zone) - 1
        if _next_local(line, _local(after_s, zone)) is None:
            return None
        first_s = after_s + 1
        if _next_local(line, _local(first_s, zone) - timedelta(seconds=1)) == _local(first_s, zone):
            return first_s
        after_s = first_s


def _next_local(line: _Line, after: datetime) -> datetime | None:
    """Returns the first local time of a line after another; local times are written as if they were UTC's."""
    found = [trigger.get_next_fire_time(None, after + timedelta(microseconds=1)) for trigger in line.triggers]
    return min((each for each in found if each is not None), default=None)


def _instant(local: datetime, zone: ZoneInfo) -> int:
    """Returns the time of a local time: the first of two, and the end of the gap for one that is skipped."""
    moment = round(local.replace(tzinfo=zone, fold=0).timestamp())
    if _local(moment, zone) == local:
        return moment
    return _change(round(local.replace(tzinfo=zone, fold=1).timestamp()), moment, zone)


def _change(before_s: int, after_s: int, zone: ZoneInfo) -> int:
    """Returns the first second of the offset that a zone has at the second of two times, and not at the first."""
    offset_s = _offset_s(before_s, zone)
    while after_s - before_s > 1:
        middle_s = (before_s + after_s) // 2
        if _offset_s(middle_s, zone) == offset_s:
            before_s = middle_s
        else:
            after_s = middle_s
    return after_s


def _local(moment_s: int, zone: ZoneInfo) -> datetime:
    return _EPOCH + timedelta(seconds=moment_s + _offset_s(moment_s, zone))


def _offset_s(moment_s: int, zone: ZoneInfo) -> int:
    offset = (_EPOCH + timedelta(seconds=moment_s)).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _is_zone(name: str) -> bool:
    try:
        _zone(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=4096)
def _line(cron: str) -> _Line:
    # A trigger that never fires is gone through to the year 9999 each time it is asked.
    pairs = zip(_triggers(cron), _triggers(cron, _CYCLE[1]), strict=True)
    return _Line(tuple(trigger for trigger, ended in pairs if _fires(ended)), cron.split()[1].startswith("*"))


def _fires(trigger: Any) -> bool:
    """Returns whether a trigger that ends with the cycle fires in it."""
    return trigger.get_next_fire_time(None, _CYCLE[0]) is not None


def _triggers(cron: str, end: datetime | None = None) -> list[Any]:
    """Returns the triggers of a line, which end at a time. Raises ValueError for what is no line."""
    # Every client imports the rules, and few of them this.
    from apscheduler.triggers.cron import CronTrigger

    fields = cron.lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"a line has {len(_FIELDS)} fields: {', '.join(_FIELDS)}")
    for name, text in zip(_FIELDS, fields, strict=True):
        if not (_ALLOWED_NAMES if name in _FIELDS[3:] else _ALLOWED).match(text):
            raise ValueError(f"{name} {text}: give numbers, *, lists with commas, ranges with -, steps with /")
    minute, hour, day, month, of_week = fields
    of_week = ",".join(_days(part) for part in of_week.split(","))
    some = {"minute": minute, "hour": hour, "month": month, "timezone": UTC, "end_date": end}
    if day.startswith("*") or of_week.startswith("*"):
        return [CronTrigger(day=day, day_of_week=of_week, **some)]
    return [CronTrigger(day=day, **some), CronTrigger(day_of_week=of_week, **some)]


def _days(part: str) -> str:
    """Returns the days of a part of the last field by their names."""
    if part == "*":
        return part
    found = _DAY_RANGE.match(part)
    try:
        if found is None:
            raise ValueError
        first, last, step = found.groups()
        if first == "*":
            begin, end = 0, 6
        else:
            begin = _day(first)
            end = _day(last) if last else (6 if step else begin)
        # 7 is Sunday too, so 5-7 and fri-sun run on to it.
        end += 7 if end < begin else 0
        return ",".join(_DAYS[number % 7] for number in range(begin, end + 1, int(step or 1)))
    except ValueError:
        raise ValueError(f"day of the week {part}: give 0 to 7 or sun to sat, a range or *") from None


def _day(text: str) -> int:
    number = int(text) if text.isdigit() else _DAYS.index(text)
    if number > 7:
        raise ValueError
    return number
