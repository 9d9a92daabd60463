"""What follows where a program could not start: further tries, dead letters and pauses, on each store."""

import pytest

from tests.rules.launching_ledger import INITQ, SPAN
from trigmon.mq.calls import (
    Alter,
    Close,
    Delete,
    Get,
    Pause,
    Pauses,
)
from trigmon.mq.descriptors import unpack_dlh, unpack_tm
from trigmon.mq.enums import Feedback, OpenOption, Persistence
from trigmon.rules.runs.run_ledger import cause_of

NO_PROGRAM = {"state": "failed", "why": "no program pythn on PATH"}


def dead_letters(ledger):
    """What lies on the dead-letter queue, as pairs of header and trigger message."""
    handle = ledger.open("DEAD", OpenOption.INPUT_SHARED, as_="operator")
    found = []
    while getattr(got := ledger.do(Get(handle=handle), "operator"), "data", None) is not None:
        header, data = unpack_dlh(got.data)
        found.append((header, unpack_tm(data)))
    ledger.did(Close(handle=handle), "operator")
    return found


@pytest.fixture
def dead(ledger):
    ledger.define("DEAD")
    ledger.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DEAD"}))
    return lambda: dead_letters(ledger)


def test_a_queue_that_wants_one_program_is_held_when_no_try_could_start_and_loses_no_trigger_message(ledger, dead):
    ledger.process(retry=1, appl_id="pythn total.py")
    ledger.put()
    run_id, _ = ledger.come()
    ledger.change(run_id, **NO_PROGRAM)
    again = ledger.next()
    assert again["why"].startswith("failed 1 time in a row") and again["attempt"] == 2
    ledger.clock.advance(1000)
    assert ledger.start()[0] == [again["run_id"]]
    assert ledger.run(run_id)["why"] == "no program pythn on PATH"
    ledger.change(again["run_id"], **NO_PROGRAM)
    (pause,) = ledger.did(Pauses()).rows
    what = "2 runs of P in a row removed no message, the last could not start: no program pythn on PATH; "
    assert pause["reason"] == f"{what}it is tried again when PROCESS(P) is altered"
    assert ledger.next()["retries"] == again["run_id"]
    assert dead() == []


def test_a_mended_process_is_tried_again_by_what_is_defined_now(ledger):
    ledger.process(retry=0, appl_id="pythn total.py", working_directory="/srv")
    ledger.put()
    run_id, _ = ledger.come(appl_id="pythn total.py")
    ledger.change(run_id, **NO_PROGRAM)
    waits = ledger.next()
    ledger.process(description="the totals")
    assert len(ledger.did(Pauses()).rows) == 1 and ledger.start()[0] == []
    ledger.process(appl_id="python total.py", working_directory="/opt")
    assert ledger.did(Pauses()).rows == []
    assert ledger.start()[0] == [waits["run_id"]]
    due = ledger.run(waits["run_id"])
    assert (due["appl_id"], due["process"]["working_directory"]) == ("python total.py", "/opt")
    assert ledger.run(run_id)["appl_id"] == "pythn total.py"
    resumed = ledger.telling.asked[-1]
    assert (resumed.event, resumed.about["name"], resumed.about["paused_by"]) == (
        "starting resumed",
        "Q",
        "the breaker",
    )


def test_a_pause_behind_failures_ends_when_the_process_is_altered(ledger):
    ledger.process(retry=3, retry_wait_s=60)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.exit(run_id, 2)
    waits = ledger.next()
    assert ledger.start()[0] == []
    ledger.process(user_data="--quiet")
    assert ledger.start()[0] == [waits["run_id"]]


def test_a_queue_that_a_person_paused_stays_paused_when_its_process_is_altered(ledger):
    ledger.put()
    ledger.did(Pause(what="queue", name="Q"), "operator")
    ledger.process(appl_id="/bin/false")
    assert len(ledger.did(Pauses()).rows) == 1


def test_a_try_whose_queue_names_another_process_now_executes_what_was_recorded(ledger):
    ledger.process(retry=1)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.change(run_id, **NO_PROGRAM)
    ledger.define("P2", "PROCESS", appl_id="/bin/false")
    ledger.did(Alter(object_type="QLOCAL", name="Q2", attributes={"process_name": "P2"}))
    ledger.process(appl_id="/bin/other")
    (again,), _ = ledger.start()
    assert ledger.run(again)["appl_id"] == "/bin/true"


def test_each_trigger_message_of_every_becomes_one_dead_letter_when_its_last_try_could_not_start(ledger, dead):
    ledger.process(retry=1)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.change(run_id, **NO_PROGRAM)
    assert dead() == []
    ledger.clock.advance(1000)
    (again,), _ = ledger.start()
    ledger.change(again, **NO_PROGRAM)
    assert ledger.run(again)["why"] == "no program pythn on PATH; its trigger message is on DEAD"
    ((header, trigger),) = dead()
    assert (header.reason, header.dest_q_name, trigger.q_name) == (Feedback.APPL_CANNOT_BE_STARTED, INITQ, "Q2")
    assert "held" not in ledger.states().values()


@pytest.mark.parametrize(
    ("cause", "persistence"),
    [
        ({}, Persistence.NOT_PERSISTENT),
        ({"schedule": "S", "moment_ms": 1_700_000_000_000}, Persistence.PERSISTENT),
        ({"repeats": "0123456789abcdef"}, Persistence.PERSISTENT),
    ],
)
def test_the_dead_letter_of_a_run_that_could_not_start_is_as_its_trigger_message_was(ledger, dead, cause, persistence):
    ledger.process(retry=0)
    ledger.change(ledger.come(q_name="Q2", traceparent=SPAN, **cause)[0], **NO_PROGRAM)
    handle = ledger.open("DEAD", OpenOption.INPUT_SHARED)
    descriptor = ledger.did(Get(handle=handle)).descriptor
    assert descriptor.persistence == persistence
    assert cause.items() | {"traceparent": SPAN}.items() <= cause_of(descriptor).items()


def test_without_a_dead_letter_queue_the_run_tells_that_its_trigger_message_was_dropped(ledger):
    ledger.process(retry=0)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.change(run_id, **NO_PROGRAM)
    dropped = "its trigger message was dropped: the queue manager names no dead-letter queue (DEADQ)"
    assert ledger.run(run_id)["why"] == f"no program pythn on PATH; {dropped}"
    why = "no program could be started for it: no program pythn on PATH; "
    assert ledger.telling.dropped == [("Q2", why + dropped.removeprefix("its trigger message was dropped: "))]


@pytest.mark.parametrize("gone", ["P", "Q2"])
def test_what_can_never_start_is_not_tried_again(ledger, dead, gone):
    ledger.process(retry=3)
    run_id, _ = ledger.come(q_name="Q2")
    ledger.did(Delete(object_type="PROCESS" if gone == "P" else "QLOCAL", name=gone))
    ledger.change(run_id, **NO_PROGRAM)
    assert "held" not in ledger.states().values()
    assert len(dead()) == 1


def test_a_failed_start_for_the_dead_letter_queue_itself_is_dropped(ledger, dead):
    ledger.process(retry=0)
    ledger.did(Alter(object_type="QLOCAL", name="DEAD", attributes={"process_name": "P", "trigger_type": "every"}))
    run_id, _ = ledger.come(q_name="DEAD")
    ledger.change(run_id, **NO_PROGRAM)
    assert dead() == []
    ((_, why),) = ledger.telling.dropped
    assert why.endswith("it is about DEAD, the dead-letter queue itself")
