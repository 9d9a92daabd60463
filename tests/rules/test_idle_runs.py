"""A run that ended with status 0, took nothing and left messages: it is a finding, on every store, and only then."""

import pytest

from tests.rules.findings import MONITOR, found, items, take_trigger_messages
from tests.rules.launching_ledger import INITQ, SYNCPOINT, Ledger
from tests.worlds import STORES
from trigmon.mq.calls import Alter, Backout, Clear, Close, Explain, Get, Move, Release, Reserve, Settle

NOTHING = ("took_none", "Q")


@pytest.fixture(params=STORES)
def ledger(request, tmp_path):
    made = Ledger(request.param, tmp_path)
    made.process(retry=0, breaker=0)
    made.open(INITQ, MONITOR, as_="monitor")
    yield made
    made.end()


def due(ledger, q_name="Q"):
    """Puts two messages and has a run started for them; its id."""
    ledger.put(q_name, 2)
    take_trigger_messages(ledger)
    ledger.clock.advance(1000)
    run_id, _ = ledger.come(q_name=q_name, recorded_ms=ledger.clock.now())
    ledger.clock.advance(1000)
    return run_id


def end(ledger, run_id, status=0, **fields):
    ledger.exit(run_id, status, end_ms=ledger.clock.now(), **fields)
    ledger.clock.advance(1000)


def idle(ledger, q_name="Q"):
    """A run has ended that did nothing; its id."""
    run_id = due(ledger, q_name)
    end(ledger, run_id)
    return run_id


def take(ledger, count=1, **options):
    handle = ledger.open("Q", MONITOR, as_="reader")
    for _ in range(count):
        ledger.did(Get(handle=handle, **options), "reader")
    ledger.did(Close(handle=handle), "reader")
    take_trigger_messages(ledger)


def beside(ledger, q_name="Q"):
    """Returns the lines of an explanation that are about the queue's last run."""
    return list(ledger.did(Explain(q_name=q_name), "operator").idle())


def test_a_job_that_does_nothing_is_a_finding_until_somebody_takes_a_message(ledger):
    ledger.did(Alter(object_type="QMGR", name="", attributes={"trigger_interval": 999_999_999}))
    run_id = due(ledger)
    assert found(ledger) == []
    ended_ms = ledger.clock.now()
    end(ledger, run_id)
    (item,) = items(ledger)
    assert (item["kind"], item["name"], item["what"], item["since_ms"]) == ("took_none", "Q", "queue", ended_ms)
    how = "the last run ended with status 0 without having opened the queue for input and took no message"
    assert item["text"] == f"2 messages wait, and nobody reads: {how}"
    assert item["remedy"] == "trigmon explain Q; trigmon process start P --queue Q"
    about, *remedies = beside(ledger)
    assert about == f"Run {run_id}: {how}; type FIRST starts nothing for what is left until TRIGINT (12 d) has passed."
    for helps in ("2033", "trigmon.spark.drain", "process start P --queue Q", "TRIGTYPE=EVERY", "TRIGTYPE=DEPTH"):
        assert any(helps in remedy for remedy in remedies), helps
    assert "condition 13" in remedies[-1]
    take(ledger)
    assert NOTHING not in found(ledger)
    assert beside(ledger) == []


def test_it_goes_when_the_queue_is_empty(ledger):
    idle(ledger)
    assert found(ledger) == [NOTHING]
    ledger.did(Clear(q_name="Q"), "operator")
    assert found(ledger) == []
    assert beside(ledger) == []


def test_it_goes_while_somebody_reads(ledger):
    idle(ledger)
    ledger.open("Q", MONITOR, as_="reader")
    assert found(ledger) == []
    assert beside(ledger) == []


def test_it_goes_while_another_run_goes_on_and_with_a_run_that_takes_something(ledger):
    idle(ledger)
    run_id, _ = ledger.come(recorded_ms=ledger.clock.now())
    assert found(ledger) == []
    assert beside(ledger) == []
    ledger.clock.advance(1000)
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle), f"of {run_id}")
    ledger.lose(f"of {run_id}")
    take_trigger_messages(ledger)
    end(ledger, run_id)
    assert found(ledger) == [("stuck", "Q")]


def test_a_run_that_opened_the_queue_and_took_nothing_is_one(ledger):
    run_id = due(ledger)
    ledger.program(run_id)
    ledger.lose(f"of {run_id}")
    take_trigger_messages(ledger)
    end(ledger, run_id)
    (item,) = items(ledger)
    assert item["text"] == "2 messages wait, and nobody reads: the last run ended with status 0 and took no message"


def test_messages_that_came_after_its_end_were_not_left_by_it(ledger):
    run_id = due(ledger)
    take(ledger, 2)
    end(ledger, run_id)
    ledger.put("Q")
    take_trigger_messages(ledger)
    assert found(ledger) == [("stuck", "Q")]
    assert beside(ledger) == []


@pytest.mark.parametrize("way", ["committed", "backed_out", "reserved", "given_back"])
def test_a_run_that_took_something_is_none_whatever_became_of_it(ledger, way):
    run_id = due(ledger)
    handle, program = ledger.program(run_id), f"of {run_id}"
    if way == "committed":
        ledger.did(Get(handle=handle), program)
    elif way == "backed_out":
        ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), program)
        ledger.did(Backout(unit=1), program)
    else:
        made = ledger.did(Reserve(handle=handle, consumer="c", max_messages=1), program)
        ledger.did((Settle if way == "reserved" else Release)(reservation=made.reservation), program)
    ledger.lose(program)
    take_trigger_messages(ledger)
    end(ledger, run_id)
    assert NOTHING not in found(ledger)
    assert beside(ledger) == []


@pytest.mark.parametrize("by", ["get", "move"])
def test_where_somebody_took_messages_meanwhile_the_run_is_no_finding(ledger, by):
    """It may have been the run's program under no name."""
    run_id = due(ledger)
    if by == "get":
        take(ledger)
    else:
        ledger.define("OTHER")
        ledger.did(Move(q_name="Q", to_q_name="OTHER", count=1), "operator")
    end(ledger, run_id)
    assert found(ledger) == [("stuck", "Q")]
    assert beside(ledger) == []


@pytest.mark.parametrize("attributes", [{"trigger_control": "off"}, {"trigger_type": "none"}])
def test_a_queue_that_does_not_trigger_is_none(ledger, attributes):
    idle(ledger)
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes=attributes))
    assert found(ledger) == []
    assert beside(ledger) == []


def test_a_run_that_failed_or_was_stopped_is_none(ledger):
    end(ledger, due(ledger), 1)
    assert found(ledger) == [("failing", "Q")]
    end(ledger, due(ledger), 143, was_stopped=True)
    assert NOTHING not in found(ledger)


def test_each_type_says_when_the_next_program_starts_and_what_helps(ledger):
    idle(ledger, "Q2")
    about, *remedies = beside(ledger, "Q2")
    assert about.endswith("; type EVERY starts nothing for what is left: each message had its start.")
    assert not any("TRIGTYPE" in remedy for remedy in remedies)
    depth = {"trigger_type": "depth", "trigger_depth": 2}
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes=depth))
    idle(ledger)
    assert {NOTHING, ("took_none", "Q2")} == {*found(ledger)}
    about, *remedies = beside(ledger)
    assert about.endswith("; type DEPTH starts nothing for what is left until trigger control is on again.")
    assert any("REARM=AUTO" in remedy for remedy in remedies)


def test_after_a_restart_only_a_run_that_had_opened_the_queue_is_a_finding(ledger):
    run_id = due(ledger)
    ledger.program(run_id)
    ledger.lose(f"of {run_id}")
    end(ledger, run_id)
    idle(ledger, "Q2")
    take_trigger_messages(ledger)
    assert {*found(ledger)} == {NOTHING, ("took_none", "Q2")}
    ledger.restart()
    ledger.open(INITQ, MONITOR, as_="monitor")
    take_trigger_messages(ledger)
    assert {*found(ledger)} == {NOTHING, ("stuck", "Q2")}
