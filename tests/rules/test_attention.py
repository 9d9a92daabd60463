"""What needs attention: each finding appears when it is so, and goes when it is mended."""

import pytest

from tests.rules.test_launching import INITQ, Ledger
from trigmon.mq.calls import Alter, Close, Get, Pause, Resume, Status
from trigmon.mq.enums import OpenOption

MONITOR = OpenOption.INPUT_SHARED


@pytest.fixture
def ledger(tmp_path):
    made = Ledger("memory", tmp_path)
    made.open(INITQ, MONITOR, as_="monitor")
    yield made
    made.end()


def found(ledger):
    """Returns what needs attention as kind and name."""
    return [(each["kind"], each["name"]) for each in items(ledger)]


def items(ledger):
    return ledger.did(Status(), "operator").values["attention"]


def take_trigger_messages(ledger):
    """Takes what lies on the initiation queue, as a monitor that dies does: no run is recorded."""
    handle = ledger.open(INITQ, MONITOR, as_="monitor")
    while getattr(ledger.do(Get(handle=handle), "monitor"), "data", None) is not None:
        pass
    ledger.did(Close(handle=handle), "monitor")


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
    assert (item["kind"], item["text"]) == ("failing", "1 message waits, and nobody reads: the last run failed")
    assert item["remedy"] == "trigmon runs logs --queue Q2"


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
    assert "trigmon queue resume Q" in item["remedy"]
    ledger.did(Resume(what="queue", name="Q"), "operator")
    assert ("held", "Q") not in found(ledger)


@pytest.mark.parametrize(("what", "name"), [("queue", "Q"), ("process", "P"), ("everything", "")])
def test_what_a_person_paused(ledger, what, name):
    ledger.put("Q")
    take_trigger_messages(ledger)
    ledger.did(Pause(what=what, name=name, reason="the database is down"), "operator")
    (item,) = items(ledger)
    assert (item["kind"], item["name"]) == ("paused", name or "everything")
    assert "the database is down" in item["text"]
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


def test_a_queue_that_is_nearly_full(ledger):
    ledger.define("SMALL", max_q_depth=5)
    ledger.put("SMALL", 3)
    assert found(ledger) == []
    ledger.put("SMALL")
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == ("nearly_full", "4 of at most 5 messages (MAXDEPTH)")


def test_puts_that_the_disk_refuses(tmp_path):
    ledger = Ledger("memory", tmp_path)
    ledger.open(INITQ, MONITOR, as_="monitor")
    ledger.qm._puts_allowed = lambda: False
    assert [each["kind"] for each in items(ledger)] == ["disk"]
    ledger.end()
