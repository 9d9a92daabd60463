"""trigmon runs history: how many runs ended, by hour, day, process and queue."""

from datetime import UTC, datetime

import pytest

from tests.cli.conftest import Trigmon, objects
from trigmon.mq.calls import RecordRun

HOUR = 3_600_000
DAY = datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000


@pytest.fixture(scope="module")
def recorded(shared_daemon):
    """Records five runs of two processes in three hours of two days."""
    ends = [(0, "P", 0), (5, "P", 1), (HOUR, "P", 0), (HOUR, "OTHER", 0), (25 * HOUR, "P", None)]
    with shared_daemon.connect() as qm:
        for number, (after, process, status) in enumerate(ends):
            end = round(DAY) + after
            record = {"state": "exited" if status is not None else "failed", "exit_status": status, "end_ms": end}
            record |= {"process_name": process, "q_name": f"{process}.Q", "start_ms": end - 2000}
            qm.call(RecordRun(run_id=f"{number:016x}", record=record))


SINCE = ("--since", "2026-03-01", "--until", "2026-03-03")


def rows(trigmon, *words):
    return objects(trigmon("runs", "history", *SINCE, *words, "--output", "json"))


def test_it_counts_by_hour_unless_asked_for_more(trigmon: Trigmon, recorded):
    found = [(row["since_time"][:13], row["runs"], row["ok"], row["failed"]) for row in rows(trigmon)]
    assert found == [("2026-03-01T00", 2, 1, 1), ("2026-03-01T01", 2, 2, 0), ("2026-03-02T01", 1, 0, 0)]


def test_it_counts_by_day_and_process_and_says_how_long_a_run_was(trigmon: Trigmon, recorded):
    found = [(row["process_name"], row["ok"], row["could_not_start"]) for row in rows(trigmon, "--by", "process")]
    assert found == [("OTHER", 1, 0), ("P", 2, 1)]
    both = rows(trigmon, "--by", "process", "--by", "day")
    assert [(row["since_time"][:10], row["process_name"], row["runs"]) for row in both] == [
        ("2026-03-01", "OTHER", 1),
        ("2026-03-01", "P", 3),
        ("2026-03-02", "P", 1),
    ]
    assert both[0]["average_s"] == 2.0
    assert [row["q_name"] for row in rows(trigmon, "--by", "queue")] == ["OTHER.Q", "P.Q"]


def test_its_table_has_a_column_for_each_outcome(trigmon: Trigmon, recorded):
    head, *lines = trigmon("runs", "history", *SINCE, "--by", "day").stdout.splitlines()
    assert head.split()[:4] == ["since_time", "runs", "ok", "failed"]
    assert len(lines) == 2


def test_no_run_in_the_time_is_a_remark(trigmon: Trigmon, recorded):
    done = trigmon("runs", "history", "--since", "2025-01-01", "--until", "2025-01-02")
    assert (done.stdout, done.stderr) == ("", "no run ended in that time\n")


def test_by_hour_and_by_day_together_are_refused(trigmon: Trigmon, recorded):
    assert trigmon("runs", "history", "--by", "hour", "--by", "day").exit_code == 2
