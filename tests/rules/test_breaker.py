"""The breaker holds a queue whose programs remove nothing, on each store."""

import pytest

from tests.rules.launching_ledger import SYNCPOINT
from trigmon.mq.calls import (
    Alter,
    Backout,
    Get,
    Pause,
    Pauses,
    Resume,
    Runs,
)
from trigmon.mq.enums import OpenOption


def loop(ledger, times, status=0):
    """So many runs that get the message, back it out and end, each triggered by the close of the one before."""
    for _ in range(times):
        run_id, stands = ledger.come()
        assert stands.state == "due", stands.why
        handle = ledger.program(run_id)
        name = f"of {run_id}"
        ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), name)
        ledger.did(Backout(unit=1), name)
        ledger.disconnect(name)
        ledger.exit(run_id, status)


def test_runs_that_remove_nothing_open_the_breaker_and_it_says_what_they_met(ledger):
    ledger.process(breaker=3)
    ledger.put(count=2)
    loop(ledger, 2)
    assert ledger.did(Pauses()).rows == []
    loop(ledger, 1)
    (pause,) = ledger.did(Pauses()).rows
    assert (pause["what"], pause["name"], pause["by"]) == ("queue", "Q", "the breaker")
    assert pause["paused"].startswith("queue Q held since ")
    why = "does not drain: 3 runs of P in a row removed no message, the last ended with status 0; 2 messages wait"
    assert why in pause["paused"]
    help_ = "backed out 3 times, and no threshold is set (BOTHRESH(0)): BOTHRESH with BOREQ(QMGR) would put it aside"
    assert pause["paused"].endswith(help_)
    assert [told.q_name for told in ledger.telling.held] == ["Q"]
    assert ledger.start()[0] == []
    assert ledger.come(trigger_data="other")[1].why == pause["paused"]


def test_resume_closes_the_breaker_starts_what_waits_and_counts_anew(ledger):
    ledger.process(breaker=2)
    ledger.put()
    loop(ledger, 2)
    waits = ledger.next()
    assert waits["why"].startswith("queue Q held since ")
    ledger.did(Resume(what="queue", name="Q"), "operator")
    assert ledger.start()[0] == [waits["run_id"]]
    ledger.program(waits["run_id"])
    ledger.lose(f"of {waits['run_id']}")
    ledger.exit(waits["run_id"])
    assert ledger.did(Pauses()).rows == []


def test_to_resume_everything_closes_each_breaker_and_leaves_what_a_person_paused(ledger):
    ledger.process(breaker=2)
    ledger.put()
    loop(ledger, 2)
    waits = ledger.next()
    ledger.did(Pause(what="queue", name="Q2"), "operator")
    ledger.did(Resume(what="everything"), "operator")
    assert [pause["name"] for pause in ledger.did(Pauses()).rows] == ["Q2"]
    assert ledger.start()[0] == [waits["run_id"]]
    ledger.exit(waits["run_id"])
    assert [pause["name"] for pause in ledger.did(Pauses()).rows] == ["Q2"]
    refused = ledger.do(Resume(what="everything"), "operator")
    assert refused.about == "nothing is held, and not everything is paused"


def test_the_breaker_outlives_a_restart_and_so_does_what_was_counted(ledger):
    ledger.process(breaker=3)
    ledger.put()
    loop(ledger, 2)
    ledger.restart()
    loop(ledger, 1)
    ledger.restart()
    assert [pause["by"] for pause in ledger.did(Pauses()).rows] == ["the breaker"]


def test_the_last_of_the_tries_opens_the_breaker_where_each_end_triggers_the_next(ledger):
    ledger.process(retry=1, retry_wait_s=1)
    ledger.put()
    run_id, _ = ledger.come()
    ledger.exit(run_id, 1)
    ledger.clock.advance(1000)
    (again,), _ = ledger.start()
    ledger.exit(again, 1)
    (pause,) = ledger.did(Pauses()).rows
    assert "2 runs of P in a row removed no message, the last ended with status 1, without having opened" in str(pause)


@pytest.mark.parametrize("retry", [0, 1, 3])
def test_what_was_resumed_and_fails_is_tried_again_until_the_breaker_holds_it_again(ledger, retry):
    ledger.process(retry=retry, retry_wait_s=1)
    ledger.put()
    run_id, _ = ledger.come()
    for _ in range(3):
        for _ in range(1 + retry):
            assert ledger.did(Pauses()).rows == []
            ledger.exit(run_id, 1)
            ledger.clock.advance(60_000)
            run_id = ledger.next()["run_id"]
            ledger.start()
        assert [pause["by"] for pause in ledger.did(Pauses()).rows] == ["the breaker"]
        ledger.did(Resume(what="queue", name="Q"), "operator")
        assert ledger.start()[0] == [run_id]


@pytest.mark.parametrize("breaker", [0, 5])
def test_a_queue_of_type_every_has_no_breaker_and_one_may_be_without(ledger, breaker):
    ledger.process(breaker=breaker, retry=0)
    q_name = "Q2" if breaker else "Q"
    ledger.put(q_name)
    for _ in range(9):
        run_id, stands = ledger.come(q_name=q_name)
        assert stands.state == "due"
        ledger.program(run_id, q_name)
        ledger.lose(f"of {run_id}")
        ledger.exit(run_id)
    assert ledger.did(Pauses()).rows == []


def test_a_removed_message_or_an_empty_queue_is_no_step_towards_the_breaker(ledger):
    ledger.process(breaker=2)
    ledger.put(count=2)
    loop(ledger, 1)
    run_id, _ = ledger.come()
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle), f"of {run_id}")
    ledger.lose(f"of {run_id}")
    ledger.exit(run_id)
    loop(ledger, 1)
    assert ledger.did(Pauses()).rows == []


def test_a_program_whose_connections_do_not_name_its_run_does_not_open_the_breaker_by_working(ledger):
    ledger.process(breaker=2)
    ledger.put(count=9)
    loop(ledger, 1)
    for _ in range(4):
        run_id, stands = ledger.come()
        assert stands.state == "due"
        ledger.did(Get(handle=ledger.open("Q", OpenOption.INPUT_SHARED, as_="unnamed")), "unnamed")
        ledger.disconnect("unnamed")
        ledger.exit(run_id)
    assert ledger.did(Pauses()).rows == []
    loop(ledger, 1)
    assert len(ledger.did(Pauses()).rows) == 1


def test_poison_put_aside_is_progress(ledger):
    ledger.process(breaker=2)
    ledger.define("BACK")
    poison = {"backout_threshold": 1, "backout_requeue_q_name": "BACK", "backout_requeue": "qmgr"}
    ledger.did(Alter(object_type="QLOCAL", name="Q", attributes=poison))
    ledger.put(count=3)
    for _ in range(2):
        loop(ledger, 1)
    aside = [run["put_aside"] for run in ledger.did(Runs()).rows if run.get("put_aside")]
    assert aside
    assert ledger.did(Pauses()).rows == []
