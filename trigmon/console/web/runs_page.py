"""The runs by hour, green and red, and as a list, by process, outcome and day (UTC)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trigmon.client.connection import Connection
from trigmon.console.web.run_list import RunRow, outcome_of, run_row, worded
from trigmon.console.web.web_console import console_of, now_ms
from trigmon.mq.calls import Display, RunHistory, Runs
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Listing, Values
from trigmon.mq.run import WENT_WRONG, Ending, read_run
from trigmon.rules.runs.run_history import DAY_MS, HOUR_MS, last_24_hours_ms

FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9998, 12, 31)
"""Days whose begin and end are moments: milliseconds from 1 on."""
ROWS = 50
MOST_LOOKED_AT = 4096
"""So many records are looked through for one page of the list."""
PAGE = 256
MOST_COUNTED = 50
"""Calls for the counts of a day, each of which counts 2000 runs."""
NOT_ENDED = "open"
OUTCOMES = (*map(worded, Ending), NOT_ENDED)
ANY_DAY = "any"
"""In place of a day: the list goes back as far as there are records."""


class Filter(msgspec.Struct, frozen=True):
    """What is asked for; blank: all, for a day the last 24 hours. ``before`` is the run behind which the list goes on.

    ``day`` is one of ISO 8601, or ANY_DAY.
    """

    process: str = ""
    outcome: str = ""
    day: str = ""
    before: str = ""

    @property
    def since_ms(self) -> int:
        """The begin of the day, or of the last 24 hours where no day is named."""
        if self.day not in ("", ANY_DAY):
            begin = datetime.combine(date.fromisoformat(self.day), datetime.min.time(), UTC)
            return round(begin.timestamp() * 1000)
        return last_24_hours_ms(now_ms())

    @property
    def is_list_bounded(self) -> bool:
        """Whether the list ends at ``since_ms``: a run that has not ended is listed whenever it began."""
        return self.day != ANY_DAY and (self.day != "" or self.outcome != NOT_ENDED)

    @property
    def until_ms(self) -> int:
        """The end of the day, of the hour."""
        return self.since_ms + DAY_MS


class HourBar(msgspec.Struct):
    """The runs that ended in an hour; the heights are out of 100, of the most of an hour."""

    since_ms: int
    good: int = 0
    bad: int = 0
    other: int = 0
    good_height: float = 0
    bad_height: float = 0
    other_height: float = 0


class RunsView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows. ``older`` is the run behind which more may follow; blank for none."""

    bars: list[HourBar]
    most: int
    rows: list[RunRow]
    older: str
    looked_at: int
    processes: list[str]
    is_counted_whole: bool


async def runs_page(request: Request) -> Response:
    """Returns the page."""
    console = console_of(request)
    given = request.query_params
    wanted = Filter(
        given.get("process", ""), given.get("outcome", ""), _day(given.get("day", "")), given.get("before", "")
    )
    key = ("runs", wanted)
    view = await console.shared.get(key, lambda: console.clients.read(lambda qm: read_runs(qm, wanted)))
    days = [(datetime.now(UTC).date() - timedelta(days=number)).isoformat() for number in range(14)]
    if wanted.day not in ("", ANY_DAY, *days):
        days.append(wanted.day)
    return console.page("runs.html", view=view, wanted=wanted, outcomes=OUTCOMES, days=days, any_day=ANY_DAY)


def _day(text: str) -> str:
    """Returns a day as text of ISO 8601, or ANY_DAY; "" for what is none, or not between FIRST_DAY and LAST_DAY."""
    if text == ANY_DAY:
        return text
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return ""
    return day.isoformat() if FIRST_DAY <= day <= LAST_DAY else ""


def read_runs(qm: Connection, wanted: Filter) -> RunsView:
    """Reads what the page shows: the counts by hour, and a page of the list."""
    bars, is_whole = _bars(qm, wanted)
    rows, older, looked_at = _rows(qm, wanted)
    processes = [row["name"] for row in all_rows(qm.call, Display(object_type="PROCESS"))]
    return RunsView(
        bars=bars,
        most=max(bar.good + bar.bad + bar.other for bar in bars),
        rows=rows,
        older=older,
        looked_at=looked_at,
        processes=[name for name in processes if not name.startswith("SYSTEM.")],
        is_counted_whole=is_whole,
    )


def _bars(qm: Connection, wanted: Filter) -> tuple[list[HourBar], bool]:
    """Returns a bar for each of 24 hours; joined runs are left out, since another run did their work."""
    bars = {wanted.since_ms + hour * HOUR_MS: HourBar(wanted.since_ms + hour * HOUR_MS) for hour in range(24)}
    since_ms = wanted.since_ms
    for _ in range(MOST_COUNTED):
        call = RunHistory(since_ms=since_ms, until_ms=wanted.until_ms, by=["hour", "process", "outcome"])
        counted = qm.ask(call, Values).values
        for row in counted["rows"]:
            _add(bars, row, wanted)
        if not counted["more"]:
            break
        since_ms = counted["next_ms"]
    most = max(1, *(bar.good + bar.bad + bar.other for bar in bars.values()))
    for bar in bars.values():
        bar.good_height, bar.bad_height, bar.other_height = (
            each * 100 / most for each in (bar.good, bar.bad, bar.other)
        )
    return list(bars.values()), not counted["more"]


def _add(bars: dict[int, HourBar], row: dict[str, Any], wanted: Filter) -> None:
    bar, outcome = bars.get(row["since_ms"]), row["outcome"]
    is_meant = wanted.outcome in ("", worded(outcome)) and wanted.process in ("", row["process_name"])
    if bar is None or not is_meant or (outcome == Ending.JOINED and not wanted.outcome):
        return
    if outcome == Ending.OK:
        bar.good += row["runs"]
    elif outcome in WENT_WRONG:
        bar.bad += row["runs"]
    else:
        bar.other += row["runs"]


def _rows(qm: Connection, wanted: Filter) -> tuple[list[RunRow], str, int]:
    """Returns a page of the list, the run behind which it goes on, and how many records were looked at.

    The day, or the last 24 hours, is that of the record: the queue manager lists runs in the order of their records.
    """
    where = {"process_name": wanted.process} if wanted.process else {}
    found: list[RunRow] = []
    before, looked_at, since_ms = wanted.before, 0, wanted.since_ms
    while looked_at < MOST_LOOKED_AT:
        page = qm.ask(Runs(where=where, limit=PAGE, before=before), Listing)
        for row in page.rows:
            run = read_run(row)
            before = run.run_id
            looked_at += 1
            if wanted.is_list_bounded and run.origin.recorded_ms < since_ms:
                return found, "", looked_at
            if not _fits(run_row(run), outcome_of(run)[1], wanted):
                continue
            found.append(run_row(run))
            if len(found) == ROWS:
                return found, before, looked_at
        if not page.more or not page.rows:
            return found, "", looked_at
    return found, before, looked_at


def _fits(row: RunRow, mark: str, wanted: Filter) -> bool:
    if wanted.day not in ("", ANY_DAY) and row.recorded_ms >= wanted.until_ms:
        return False
    return wanted.outcome in ("", row.outcome) or (wanted.outcome == NOT_ENDED and mark == "open")
