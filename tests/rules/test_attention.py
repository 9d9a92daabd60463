"""What needs attention: each finding appears when it is so, and goes when it is mended."""

import pytest

from tests.rules import test_attention_of_services as services
from tests.rules import test_idle_runs, test_schedule_starts
from tests.rules.findings import MONITOR, found, items, monitored, take_trigger_messages
from tests.rules.launching_ledger import INITQ, Ledger
from tests.worlds import STORES
from trigmon.mq.calls import (
    Alter,
    Close,
    Delete,
    Display,
    Get,
    Pause,
    Put,
    QueueStatus,
    Resume,
    Status,
)
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, DeadLetterHeader, MessageDescriptor, pack_dlh
from trigmon.mq.event_kinds import EVENT_QUEUE
from trigmon.mq.reasons import Reason
from trigmon.rules.attention import KINDS
from trigmon.rules.model.manager_state import Disk

ledger = pytest.fixture(monitored)


def test_a_new_queue_manager_with_a_monitor_needs_none(ledger):
    assert items(ledger) == []


def test_an_initiation_queue_that_no_monitor_reads(ledger):
    ledger.put("Q2")
    ledger.lose("monitor")
    (item,) = items(ledger)
    assert (item["kind"], item["name"]) == ("no_monitor", INITQ)
    assert item["text"] == "no monitor reads it; 1 trigger message waits there"
    assert item["remedy"] == f"trigmon monitor --initq {INITQ}"
    ledger.open(INITQ, MONITOR, as_="monitor")
    assert found(ledger) == []


@pytest.mark.parametrize("q_name", ["Q", "Q2"])
def test_messages_that_wait_while_nobody_reads_and_nothing_is_to_start(ledger, q_name):
    ledger.put(q_name, 2)
    assert found(ledger) == []  # its trigger message is on its way
    take_trigger_messages(ledger)
    (item,) = items(ledger)
    assert (item["kind"], item["name"]) == ("stuck", q_name)
    assert item["text"] == "2 messages wait, and nobody reads; nothing is to be started for them"
    assert item["remedy"] == f"trigmon explain {q_name} --why-not; trigmon process start P --queue {q_name}"
    run_id, _ = ledger.come(q_name=q_name)
    assert found(ledger) == []  # a run is due
    handle = ledger.program(run_id, q_name)
    ledger.exit(run_id)
    assert found(ledger) == []  # somebody reads
    ledger.did(Close(handle=handle), f"of {run_id}")


def test_a_depth_queue_that_has_triggered_and_was_not_drained(ledger):
    attributes = {"trigger_type": "depth", "trigger_depth": 3}
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes=attributes))
    ledger.put("Q", 2)
    assert found(ledger) == []
    ledger.put("Q", 1)
    take_trigger_messages(ledger)
    assert found(ledger) == [("stuck", "Q")]


def test_messages_that_do_not_count_are_no_finding(ledger):
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_msg_priority": 5}))
    ledger.put("Q")
    assert found(ledger) == []


def test_a_queue_whose_last_run_failed_says_so(ledger):
    ledger.process(retry=0, breaker=0)
    ledger.put("Q2")
    take_trigger_messages(ledger)
    run_id, _ = ledger.come(q_name="Q2")
    ledger.exit(run_id, 1)
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == (
        "failing",
        "1 message waits, and nobody reads: the last run failed: ended with status 1",
    )
    assert item["remedy"] == "trigmon runs logs --queue Q2; trigmon process start P --queue Q2"


def test_a_queue_that_the_breaker_holds(ledger):
    ledger.process(retry=0, breaker=1)
    ledger.put("Q")
    take_trigger_messages(ledger)
    run_id, _ = ledger.come()
    ledger.program(run_id)
    ledger.exit(run_id)
    ledger.lose(f"of {run_id}")
    take_trigger_messages(ledger)
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"]) == ("held", "Q", ledger.clock.now())
    assert item["remedy"] == "trigmon runs logs --queue Q, then trigmon queue resume Q"
    (row,) = ledger.did(QueueStatus(q_name="Q"), "operator").rows
    assert (row["held"], row["paused"].startswith("queue Q held since ")) == (True, True)
    assert row["paused_what"] == ["queue"]
    (shown,) = ledger.did(Display(object_type="QLOCAL", name="Q"), "operator").rows
    assert (shown["held"], shown["paused"]) == (True, row["paused"])
    ledger.did(Resume(what="queue", name="Q"), "operator")
    assert ("held", "Q") not in found(ledger)


@pytest.mark.parametrize(("what", "name"), [("queue", "Q"), ("process", "P"), ("everything", "")])
def test_what_a_person_paused(ledger, what, name):
    ledger.put("Q")
    take_trigger_messages(ledger)
    ledger.did(Pause(what=what, name=name, reason="the database is down"), "operator")
    (item,) = items(ledger)
    assert (item["kind"], item["what"], item["name"]) == ("paused", what, name or "everything")
    assert "the database is down" in item["text"]
    (row,) = ledger.did(QueueStatus(q_name="Q"), "operator").rows
    assert (row["held"], "the database is down" in row["paused"]) == (False, True)
    assert row["paused_what"] == [what]
    ledger.did(Resume(what=what, name=name), "operator")
    assert found(ledger) == [("stuck", "Q")]


def test_dead_letters_and_what_was_put_aside(ledger):
    ledger.define("DLQ")
    ledger.define("ASIDE")
    ledger.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DLQ"}))
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes={"backout_requeue_q_name": "ASIDE"}))
    assert found(ledger) == []
    ledger.put("DLQ")
    ledger.put("ASIDE", 2)
    assert [(each["kind"], each["text"]) for each in items(ledger)] == [
        ("dead_letters", "1 dead letter"),
        ("put_aside", "2 messages put aside"),
    ]
    take(ledger, "DLQ", 1)
    take(ledger, "ASIDE", 2)
    assert found(ledger) == []


def test_a_queue_that_is_nearly_full(ledger):
    ledger.define("SMALL", max_q_depth=5)
    ledger.put("SMALL", 3)
    assert found(ledger) == []
    ledger.put("SMALL")
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == ("nearly_full", "4 of at most 5 messages (MAXDEPTH)")
    take(ledger, "SMALL", 1)
    assert found(ledger) == []


def test_puts_that_the_disk_refuses(tmp_path):
    ledger = Ledger("memory", tmp_path)
    ledger.open(INITQ, MONITOR, as_="monitor")
    ledger.qm.are_puts_allowed = lambda: False
    assert [each["kind"] for each in items(ledger)] == ["disk"]
    ledger.qm.are_puts_allowed = lambda: True
    assert items(ledger) == []
    ledger.end()


def test_turns_that_the_archive_lacks(ledger):
    ledger.qm.disk = lambda: Disk(
        free_bytes=1 << 40, reserve_bytes=1, not_archived="turns behind 7 are missing in /a: full"
    )
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == ("not_archived", "turns behind 7 are missing in /a: full")
    assert "then a backup" in item["remedy"]
    ledger.qm.disk = lambda: Disk(free_bytes=1 << 40, reserve_bytes=1)
    assert items(ledger) == []


def test_a_disk_that_is_near_its_reserve(ledger):
    ledger.qm.disk = lambda: Disk(free_bytes=300 << 20, reserve_bytes=256 << 20)
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == ("disk_near", "300 MiB are free on the disk; with 256 MiB puts are refused")
    ledger.qm.disk = lambda: Disk(free_bytes=513 << 20, reserve_bytes=256 << 20)
    assert items(ledger) == []
    assert ledger.did(Status(), "operator").values["disk_free_bytes"] == 513 << 20


def test_an_event_queue_that_takes_no_event(ledger):
    def alter(kind, name, **attributes):
        ledger.did(Alter(object_type=kind, name=name, attributes=attributes), "operator")

    alter("QLOCAL", EVENT_QUEUE, inhibit_put="inhibited")
    assert items(ledger) == []  # no event is to be put
    alter("QMGR", "", trigmon_event="enabled")
    (item,) = items(ledger)
    assert (item["kind"], item["name"]) == ("events_dropped", EVENT_QUEUE)
    assert item["text"] == "events are dropped: puts are inhibited"
    alter("QLOCAL", EVENT_QUEUE, inhibit_put="allowed")
    assert items(ledger) == []
    ledger.did(Delete(object_type="QLOCAL", name=EVENT_QUEUE), "operator")
    (item,) = items(ledger)
    assert item["text"] == "events are dropped: there is no local queue of this name"
    ledger.define(EVENT_QUEUE)
    assert items(ledger) == []


def failed_run(ledger, **fields):
    ledger.process(retry=0, breaker=0)
    ledger.put("Q2")
    take_trigger_messages(ledger)
    run_id, _ = ledger.come(q_name="Q2")
    ledger.change(run_id, **fields)


def test_a_failed_run_is_shown_with_when_it_ended_and_its_last_line(ledger):
    lines = "Traceback (most recent call last):\n  ...\nValueError: cannot parse b'bad'\n\tat a.b(C.java)\n\t... 4 more"
    why = "ended with status 1: ValueError: cannot parse b'bad'"
    failed_run(ledger, state="exited", exit_status=1, why=why, end_ms=77, stderr_tail=lines)
    (item,) = items(ledger)
    assert (item["since_ms"], item["last_line"]) == (77, "ValueError: cannot parse b'bad'")
    assert item["text"].endswith(f"the last run failed: {why}")
    take(ledger, "Q2", 1)
    assert found(ledger) == []


def test_what_fails_again_and_again_fails_since_the_first_of_the_row_ended(ledger):
    ledger.process(retry=0, breaker=0)
    ledger.put("Q2", 2)
    take_trigger_messages(ledger)
    for end_ms, exit_status in ((70, 1), (71, 0), (72, 2), (73, 3)):
        run_id, _ = ledger.come(q_name="Q2")
        ledger.change(run_id, state="exited", exit_status=exit_status, end_ms=end_ms)
        ledger.clock.advance(3_600_000)
    (item,) = items(ledger)
    assert (item["kind"], item["since_ms"]) == ("failing", 72)
    assert "the last 2 runs failed" in item["text"]


def test_a_program_that_could_not_start(ledger):
    failed_run(ledger, state="failed", why="no program pythn on PATH", end_ms=78)
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"]) == ("could_not_start", "Q2", 78)
    assert item["text"].startswith("1 message waits, and nobody reads: could not start: no program pythn on PATH")
    assert item["remedy"] == "trigmon process show P, then trigmon process start P --queue Q2"
    run_id, _ = ledger.come(q_name="Q2")
    assert found(ledger) == []  # it is tried again
    ledger.open("Q2", MONITOR, as_="reader")
    ledger.exit(run_id)
    assert found(ledger) == []


def test_a_held_queue_is_shown_with_the_last_line_of_its_last_run(ledger):
    ledger.process(retry=0, breaker=1)
    ledger.put("Q")
    take_trigger_messages(ledger)
    run_id, _ = ledger.come()
    ledger.program(run_id)
    ledger.exit(run_id, 1, stderr_tail="one\ntwo\n")
    ledger.lose(f"of {run_id}")
    take_trigger_messages(ledger)
    (item,) = [each for each in items(ledger) if each["kind"] == "held"]
    assert item["last_line"] == "two"


def test_a_queue_held_because_its_program_cannot_start_names_the_process_and_no_logs(ledger):
    ledger.process(retry=0, breaker=1)
    ledger.put("Q")
    take_trigger_messages(ledger)
    run_id, _ = ledger.come()
    ledger.change(run_id, state="failed", why="no program pythn on PATH", end_ms=78)
    (item,) = items(ledger)
    assert (item["kind"], item["name"]) == ("held", "Q")
    assert item["remedy"] == "trigmon process show P, then trigmon queue resume Q"


def test_messages_that_wait_are_stuck_since_the_oldest_was_put(ledger):
    put_at = ledger.clock.now()
    ledger.put("Q")
    take_trigger_messages(ledger)
    ledger.clock.advance(5000)
    (item,) = items(ledger)
    assert (item["kind"], item["since_ms"]) == ("stuck", put_at)


def take(ledger, q_name, count):
    handle = ledger.open(q_name, MONITOR, as_="reader")
    for _ in range(count):
        ledger.did(Get(handle=handle), "reader")
    ledger.did(Close(handle=handle), "reader")


def test_a_message_that_is_older_than_is_usual_for_its_queue(ledger):
    ledger.define("SLOW")
    for _ in range(10):
        ledger.put("SLOW")
        ledger.clock.advance(9000)
        take(ledger, "SLOW", 1)
    put_at = ledger.clock.now()
    ledger.put("SLOW")
    ledger.clock.advance(89_000)
    assert found(ledger) == []
    ledger.clock.advance(2000)
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"]) == ("old", "SLOW", put_at)
    assert item["text"] == "its oldest message waits for 2 min; messages usually wait for 9.0 s"
    take(ledger, "SLOW", 1)
    assert found(ledger) == []


def test_nothing_is_old_on_a_queue_of_which_little_was_got_or_within_a_minute(ledger):
    ledger.define("NEW")
    for _ in range(9):
        ledger.put("NEW")
        take(ledger, "NEW", 1)
    ledger.put("NEW")
    ledger.clock.advance(3_600_000)
    assert found(ledger) == []
    take(ledger, "NEW", 1)
    ledger.define("QUICK")
    for _ in range(20):
        ledger.put("QUICK")
        take(ledger, "QUICK", 1)
    ledger.put("QUICK")
    ledger.clock.advance(59_000)
    assert found(ledger) == []


@pytest.mark.parametrize("kind", STORES)
def test_the_newest_dead_letter_is_shown_with_its_error_on_every_store(kind, tmp_path):
    ledger = Ledger(kind, tmp_path)
    ledger.open(INITQ, MONITOR, as_="monitor")
    ledger.define("DLQ")
    ledger.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DLQ"}))
    for reason in (Reason.Q_FULL, Reason.PUT_INHIBITED):
        header = DeadLetterHeader(
            reason=int(reason), dest_q_name="Q", dest_q_mgr_name="", put_date="20260101", put_time="10000000"
        )
        for priority in (9, 0):
            descriptor = MessageDescriptor(format=FORMAT_DEAD_LETTER, priority=priority)
            ledger.did(Put(q_name="DLQ", descriptor=descriptor, data=pack_dlh(header) + b"x"), "loader")
    (item,) = items(ledger)
    assert item["text"] == "4 dead letters; the newest: Q did not take it: Queue is put-disabled"
    assert (item["last_line"], item["since_ms"]) == ("Q did not take it: Queue is put-disabled", 1767261600000)
    ledger.end()


def test_the_most_urgent_is_first(ledger):
    ledger.define("SMALL", max_q_depth=1)
    ledger.put("SMALL")
    ledger.put("Q2")
    take_trigger_messages(ledger)
    ledger.qm.are_puts_allowed = lambda: False
    assert [kind for kind, _ in found(ledger)] == ["disk", "stuck", "nearly_full"]


SHOWN_BY = {
    "disk": test_puts_that_the_disk_refuses,
    "held": test_a_queue_that_the_breaker_holds,
    "no_monitor": test_an_initiation_queue_that_no_monitor_reads,
    "could_not_start": test_a_program_that_could_not_start,
    "failing": test_a_failed_run_is_shown_with_when_it_ended_and_its_last_line,
    "stuck": test_messages_that_wait_while_nobody_reads_and_nothing_is_to_start,
    "took_none": test_idle_runs.test_a_job_that_does_nothing_is_a_finding_until_somebody_takes_a_message,
    "spark_server": services.test_a_spark_server_that_keeps_dying_as_long_as_its_monitor_reports_it,
    "bridge": services.test_an_initiation_queue_elsewhere_that_is_not_served_as_long_as_its_monitor_reports_it,
    "watch": services.test_a_watch_that_is_hindered_or_not_served_and_files_that_failed,
    "copy": services.test_a_copy_that_is_hindered_or_put_messages_aside,
    "bad_files": services.test_a_watch_that_is_hindered_or_not_served_and_files_that_failed,
    "old": test_a_message_that_is_older_than_is_usual_for_its_queue,
    "dead_letters": test_dead_letters_and_what_was_put_aside,
    "put_aside": test_dead_letters_and_what_was_put_aside,
    "not_archived": test_turns_that_the_archive_lacks,
    "nearly_full": test_a_queue_that_is_nearly_full,
    "events_dropped": test_an_event_queue_that_takes_no_event,
    "disk_near": test_a_disk_that_is_near_its_reserve,
    "paused": test_what_a_person_paused,
    "not_started": test_schedule_starts.test_a_moment_that_started_nothing_needs_attention_until_one_starts,
}
"""By kind the test that shows it come and go; ``database`` needs one: tests/console/web/test_web_restart.py."""


def test_each_kind_of_finding_is_shown_to_come_and_to_go():
    assert sorted([*SHOWN_BY, "database"]) == sorted(KINDS)
