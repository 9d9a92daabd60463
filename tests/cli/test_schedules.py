"""trigmon schedule: list, show, run, pause and resume, and what explain and status say of schedules."""

from __future__ import annotations

import time

from tests.cli.conftest import Trigmon, objects
from tests.waiting import until


def test_a_schedule_is_listed_with_its_next_moment_and_what_it_starts(trigmon: Trigmon):
    trigmon("queue", "define", "SC.Q")
    defined = trigmon("schedule", "define", "SC.N", "cron=0 2 * * *", "timezone=Europe/Berlin", "queue=SC.Q")
    assert (defined.exit_code, defined.stdout) == (0, "SCHEDULE SC.N defined\n")
    (row,) = objects(trigmon("schedule", "list", "SC.*", "--output", "json"))
    assert (row["when"], row["starts"], row["outcome"]) == ("0 2 * * * Europe/Berlin", "SC.Q", "-")
    assert row["next_time"][11:16] in ("00:00", "01:00")
    assert trigmon("schedule", "alter", "SC.N", "cron=", "every=15m", "timezone=UTC").exit_code == 0
    (row,) = objects(trigmon("schedule", "show", "SC.N", "--output", "json"))
    assert (row["when"], row["every_s"]) == ("every 15m", 900)
    assert row["next_time"][14:19] in ("00:00", "15:00", "30:00", "45:00")
    assert "SC.N" in trigmon("schedule", "list").stdout
    assert trigmon("schedule", "delete", "SC.N").stdout == "SCHEDULE SC.N deleted\n"
    unknown = trigmon("schedule", "show", "SC.N")
    assert (unknown.exit_code, "trigmon schedule list shows what there is" in unknown.stderr) == (3, True)


def test_a_definition_without_moments_is_refused_with_what_is_missing(trigmon: Trigmon):
    refused = trigmon("schedule", "define", "SC.BAD", "queue=SC.Q")
    assert (refused.exit_code != 0, "give CRON or EVERY" in refused.stderr) == (True, True)


def test_status_list_and_explain_show_a_moment_without_a_process(trigmon: Trigmon):
    trigmon("queue", "define", "SC.LOST", "INITQ=SYSTEM.DEFAULT.INITIATION.QUEUE")
    trigmon("schedule", "define", "SC.LOST.S", "every=1s", "queue=SC.LOST")

    def finding() -> str:
        (status,) = objects(trigmon("status", "--output", "json"))
        found = [each for each in status["attention"] if each["name"] == "SC.LOST.S"]
        return found[0]["kind"] if found else ""

    try:
        until(lambda: finding() == "not_started")
        (row,) = objects(trigmon("schedule", "list", "SC.LOST.S", "--output", "json"))
        assert "6" in row["outcome"]
        explained = trigmon("explain", "SC.LOST").stdout
        assert "SCHEDULE(SC.LOST.S) starts SC.LOST: every 1s" in explained
        assert "NOT started: " in trigmon("explain", "SC.LOST.S").stdout
        assert "moment of a schedule" in trigmon("explain", "SC.LOST", "--why-not").stdout
    finally:
        trigmon("schedule", "delete", "SC.LOST.S")


def test_pause_resume_and_run(trigmon: Trigmon, qm):
    trigmon("process", "define", "SC.P", "appl_id=/bin/true")
    trigmon("queue", "define", "SC.I")
    trigmon("queue", "define", "SC.RUN", "process_name=SC.P", "INITQ=SC.I")
    trigmon("schedule", "define", "SC.R", "cron=0 0 29 2 *", "queue=SC.RUN", "only_if=messages")
    assert trigmon("schedule", "pause", "SC.R", "--reason", "not now").exit_code == 0
    assert "not now" in trigmon("schedule", "list", "SC.R").stdout
    refused = trigmon("schedule", "run", "SC.R")
    assert (refused.exit_code != 0, "8 SC.I has IPPROCS(0)" in refused.stderr) == (True, True)
    with qm.open("SC.I", "input_shared") as initiation:
        assert trigmon("schedule", "run", "SC.R").exit_code == 0
        message = initiation.get(wait_interval_ms=5000)
        assert (message.descriptor.appl_origin_data, message.descriptor.reply_to_q) == ("S", "SC.R")
        moment_ms = int(message.descriptor.correl_id.removeprefix(b"MOMENT ").rstrip(b"\0"))
        assert abs(moment_ms - time.time() * 1000) < 60_000
    assert trigmon("schedule", "resume", "SC.R").exit_code == 0
    assert trigmon("schedule", "resume", "SC.R").exit_code != 0
