"""What needs attention of servers, bridges, watches and copies, as those who serve them report it."""

import pytest

from tests.rules.findings import found, items, monitored
from trigmon.mq.calls import (
    BridgeState,
    Controls,
    CopyState,
    Define,
    LostServer,
    ReportCopy,
    ReportWatches,
    Status,
    WatchState,
)

ledger = pytest.fixture(monitored)


def test_a_spark_server_that_keeps_dying_as_long_as_its_monitor_reports_it(ledger):
    lost = LostServer("local[2]", 3, 77, "it ended", "java.lang.OutOfMemoryError")
    ledger.did(Controls(monitor="m:1", lost_servers=[lost]), "monitor")
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"]) == ("spark_server", "local[2]", 77)
    assert item["what"] == "server"
    assert item["text"] == "the Spark Connect server of m:1 ended 3 times: it ended"
    assert item["last_line"] == "java.lang.OutOfMemoryError"
    ledger.did(Controls(monitor="m:1"), "monitor")
    assert found(ledger) == []
    ledger.did(Controls(monitor="m:1", lost_servers=[lost]), "second monitor")
    assert found(ledger) == [("spark_server", "local[2]")]
    ledger.lose("second monitor")
    assert found(ledger) == []


def test_an_initiation_queue_elsewhere_that_is_not_served_as_long_as_its_monitor_reports_it(ledger):
    hindered = BridgeState("PROD", "INITQ@QM9", "MQCONNX to QM9: 2538", 77)
    ledger.did(Controls(monitor="m:1", bridges=[hindered]), "second monitor")
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"], item["what"]) == ("bridge", "INITQ@QM9", 77, "bridge")
    assert item["text"] == "MQCONNX to QM9: 2538"
    assert item["remedy"].startswith("trigmon bridge check PROD")
    ledger.did(Controls(monitor="m:1", bridges=[BridgeState("PROD", "INITQ@QM9", since_ms=99)]), "second monitor")
    assert found(ledger) == []
    (row,) = ledger.did(Status(), "operator").values["bridges"]
    assert (row["bridge"], row["state"], row["since_ms"], row["monitor"]) == ("PROD", "served", 99, "m:1")
    ledger.did(Controls(monitor="m:1", bridges=[hindered]), "second monitor")
    ledger.lose("second monitor")
    assert found(ledger) == []
    assert ledger.did(Status(), "operator").values["bridges"] == []


def test_a_watch_that_is_hindered_or_not_served_and_files_that_failed(ledger):
    ledger.did(Define(object_type="WATCH", name="W", attributes={"directory": "/in", "q_name": "QUICK"}), "operator")
    assert found(ledger) == []
    ledger.clock.advance(30_000)
    assert found(ledger) == [("watch", "")]
    hindered = WatchState(name="W", files_taken=2, problem="/in: Permission denied", problem_since_ms=77)
    ledger.did(ReportWatches(watches=[hindered]), "watches")
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"], item["what"]) == ("watch", "W", 77, "watch")
    assert item["text"] == "/in: Permission denied; 2 files on the way"
    ledger.did(ReportWatches(watches=[WatchState(name="W", files_failed=1)]), "watches")
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == ("bad_files", "1 file in its directory FAILED")
    ledger.did(ReportWatches(watches=[WatchState(name="W")]), "watches")
    assert found(ledger) == []
    ledger.lose("watches")
    assert found(ledger) == [("watch", "")]


def test_a_copy_that_is_hindered_or_put_messages_aside(ledger):
    hindered = CopyState(name="Q@QM9", q_name="QUICK", problem="MQCONNX to QM9: 2538", problem_since_ms=77)
    ledger.did(ReportCopy(state=hindered), "copy")
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["since_ms"], item["what"]) == ("copy", "Q@QM9", 77, "copy")
    assert item["text"] == "MQCONNX to QM9: 2538"
    ledger.did(ReportCopy(state=CopyState(name="Q@QM9", q_name="QUICK", put_aside=1)), "copy")
    (item,) = items(ledger)
    assert (item["kind"], item["text"]) == (
        "put_aside",
        "1 message that QUICK never takes went to the dead-letter queue",
    )
    ledger.did(ReportCopy(state=CopyState(name="Q@QM9", q_name="QUICK")), "copy")
    assert found(ledger) == []
    ledger.did(ReportCopy(state=hindered), "copy")
    ledger.lose("copy")
    assert found(ledger) == []
