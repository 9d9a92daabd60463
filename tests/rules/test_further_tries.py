"""What follows from the end of a program, also from one that nobody knows: further tries, on each store."""

import pytest

from tests.rules.launching_ledger import INITQ, SYNCPOINT
from trigmon.mq.calls import (
    Backout,
    CancelRun,
    Delete,
    Explain,
    Get,
    Pauses,
    Runs,
)
from trigmon.mq.enums import OpenOption


def test_a_failed_run_that_leaves_messages_is_tried_again_after_pauses_that_grow(ledger):
    ledger.process(retry=2, retry_wait_s=3, breaker=0)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    for attempt, pause_s in ((2, 3), (3, 6)):
        ledger.exit(run_id, 1)
        held = ledger.next()
        assert (held["retries"], held["attempt"], held["q_name"]) == (run_id, attempt, "Q2")
        assert held["why"].startswith(f"failed {attempt - 1} time")
        ids, answer = ledger.start()
        assert (ids, answer.waiting, answer.again_ms - answer.now_ms) == ([], 1, 1000 * pause_s)
        ledger.clock.advance(1000 * pause_s - 1)
        assert ledger.start()[0] == []
        ledger.clock.advance(1)
        run_id = held["run_id"]
        assert ledger.start()[0] == [run_id]
    ledger.exit(run_id, 1)
    assert "held" not in ledger.states().values()


@pytest.mark.parametrize(
    ("ended", "tried"),
    [
        ({"state": "exited", "exit_status": 1}, True),
        ({"state": "exited", "exit_status": None, "signal": 9}, True),
        ({"state": "unknown"}, False),
        ({"state": "exited", "exit_status": 0}, False),
        ({"state": "exited", "exit_status": 143, "was_stopped": True}, False),
        ({"state": "failed"}, True),
    ],
)
def test_who_ended_badly_by_itself_is_tried_again(ledger, ended, tried):
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.change(run_id, **ended)
    assert ("held" in ledger.states().values()) is tried


def test_a_cancelled_run_is_not_tried_again(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    ledger.did(CancelRun(run_id=run_id), "operator")
    ledger.exit(run_id, 143)
    assert ledger.states() == {run_id: "cancelled"}


def test_a_failed_run_that_left_nothing_is_not_tried_again(ledger):
    run_id, _ = ledger.come()
    ledger.exit(run_id, 1)
    assert ledger.states() == {run_id: "exited"}


def test_a_run_is_judged_when_its_last_connection_is_gone_too(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), f"of {run_id}")
    ledger.exit(run_id, 1)
    assert ledger.states() == {run_id: "exited"}  # the message is in flight yet
    ledger.lose(f"of {run_id}")
    assert ledger.run(run_id)["backed_out"] == 1
    assert ledger.next()["retries"] == run_id


def test_a_run_that_has_ended_takes_no_place_while_its_connections_last(ledger):
    ledger.process(instances=1)
    run_id, _ = ledger.come(q_name="Q2")
    ledger.program(run_id, "Q2")
    ledger.exit(run_id)
    assert ledger.come(q_name="Q2")[1].state == "due"


def test_a_success_ends_the_row_of_failures(ledger):
    ledger.put("Q2")
    for status, pause_s in ((1, 1), (1, 2), (0, 0), (1, 1)):
        run_id, _ = ledger.come(q_name="Q2")
        if ledger.run(run_id)["state"] == "held":
            ledger.clock.advance(60_000)
            run_id = ledger.start(limit=1)[0][0]
        ledger.exit(run_id, status)
        answer = ledger.start(limit=1)[1]
        assert answer.again_ms - answer.now_ms == 1000 * pause_s or not pause_s
        for held in ledger.did(Runs(where={"state": "held"})).rows:
            ledger.did(CancelRun(run_id=held["run_id"]), "operator")


def test_a_run_that_ended_before_a_restart_is_judged_behind_it(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), f"of {run_id}")
    ledger.exit(run_id, 1)
    ledger.restart()
    assert ledger.next()["retries"] == run_id


def test_a_trigger_message_joins_the_further_try_that_waits(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    ledger.exit(run_id, 1)
    waits = ledger.next()
    joined, stands = ledger.come()
    assert (stands.state, ledger.run(joined)["joins"]) == ("joined", waits["run_id"])


def test_a_failure_of_every_leaves_the_others_side_by_side(ledger):
    ledger.put("Q2", 3)
    first, second, third = (ledger.come(q_name="Q2")[0] for _ in range(3))
    ledger.exit(first, 1)
    ledger.clock.advance(60_000)
    assert len(ledger.start()[0]) == 1
    assert {ledger.run(second)["state"], ledger.run(third)["state"]} == {"due"}


def test_what_joins_a_further_try_is_tried_for_from_the_first_time_on(ledger):
    ledger.process(coalesce="yes", retry=2)
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.exit(run_id, 1)
    assert ledger.next()["attempt"] == 2
    assert ledger.come(q_name="Q2")[1].state == "joined"
    assert ledger.next()["attempt"] == 1


def test_each_trigger_message_of_every_stands_for_itself(ledger):
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.exit(run_id, 1)
    assert ledger.next()["retries"] == run_id
    assert ledger.come(q_name="Q2")[1].state == "held"


def test_a_waiting_run_is_the_further_try(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    waits, _ = ledger.come()
    ledger.exit(run_id, 1)
    assert ledger.next()["run_id"] == waits
    assert ledger.next()["why"].startswith("failed 1 time in a row; not started before ")


def test_a_run_that_the_failed_program_s_own_close_started_is_the_further_try(ledger):
    ledger.put()
    run_id, _ = ledger.come()
    ledger.program(run_id)
    ledger.lose(f"of {run_id}")
    second, stands = ledger.come(occasion="12")
    assert stands.state == "due"
    ledger.exit(run_id, 1)
    assert ledger.states() == {run_id: "exited", second: "due"}
    ledger.exit(second, 1)
    assert ledger.next()["retries"] == second


def test_progress_begins_the_count_of_tries_anew(ledger):
    ledger.process(retry=1, retry_wait_s=1)
    ledger.put(count=3)
    run_id, _ = ledger.come()
    for _ in range(2):
        handle = ledger.program(run_id)
        ledger.did(Get(handle=handle), f"of {run_id}")
        ledger.lose(f"of {run_id}")
        ledger.exit(run_id, 1)
        held = ledger.next()
        assert held["attempt"] == 1
        ledger.clock.advance(60_000)
        run_id = held["run_id"]
        assert ledger.start()[0] == [run_id]


@pytest.mark.parametrize(("object_type", "name"), [("QLOCAL", "Q2"), ("PROCESS", "P")])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_was_counted_goes_with_the_queue_and_with_the_process(ledger, object_type, name, is_restarted):
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    ledger.exit(run_id, 1)
    assert ledger.come(q_name="Q2")[1].why.startswith("failed 1 time in a row")
    ledger.did(Delete(object_type=object_type, name=name, purge=object_type == "QLOCAL"))
    if is_restarted:
        ledger.restart()
    assert ledger.come(q_name="Q2")[1].state == "due"


def test_a_run_that_ends_when_its_queue_is_deleted_counts_for_nothing(ledger):
    run_id, _ = ledger.come(q_name="Q2")
    ledger.did(Delete(object_type="QLOCAL", name="Q2"))
    ledger.exit(run_id, 1)
    ledger.define("Q2")
    assert ledger.come(q_name="Q2")[1].state == "due"


def test_each_trigger_of_every_has_all_of_its_tries_also_while_others_wait(ledger):
    ledger.process(retry=3, retry_wait_s=1, instances=2)
    ledger.put("Q2", 6)
    for _ in range(6):
        ledger.come(q_name="Q2")
    for _ in range(60):
        for run_id, state in ledger.states().items():
            if state == "due":
                ledger.exit(run_id, 1)
        ledger.clock.advance(10_000)
        ledger.start()
    runs = {run["run_id"]: run for run in ledger.did(Runs(limit=100)).rows}
    assert {run["state"] for run in runs.values()} == {"exited"}
    tries = {}
    for run in runs.values():
        first = run
        while first.get("retries"):
            first = runs[first["retries"]]
        tries[first["run_id"]] = tries.get(first["run_id"], 0) + 1
    assert sorted(tries.values()) == [4] * 6


def test_programs_of_every_that_fail_side_by_side_wait_as_one_for_their_further_tries(ledger):
    ledger.process(retry=3, retry_wait_s=1, instances=6)
    ledger.put("Q2", 6)
    due = [ledger.come(q_name="Q2")[0] for _ in range(6)]
    for pause_s in (1, 2, 4):
        for run_id in due:
            ledger.exit(run_id, 1)
        ledger.clock.advance(1000 * pause_s - 1)
        assert ledger.start()[0] == []
        ledger.clock.advance(1)
        due = ledger.start()[0]
        assert len(due) == 6


def test_where_identical_triggers_are_one_run_the_one_that_waits_is_the_further_try(ledger):
    ledger.process(coalesce="yes", instances=1)
    ledger.put("Q2", 3)
    first, _ = ledger.come(q_name="Q2")
    second, stands = ledger.come(q_name="Q2")
    assert stands.state == "held"
    ledger.exit(first, 1)
    assert ledger.next()["run_id"] == second


@pytest.mark.parametrize("q_name", ["Q", "Q2"])
@pytest.mark.parametrize(("unknown", "tried"), [("keep", False), ("retry", True)])
def test_a_run_whose_end_nobody_knows_is_tried_again_only_where_the_process_says_so(ledger, q_name, unknown, tried):
    assert ledger.run(ledger.come(q_name="Q2")[0])["process"] == {}, "UNKNOWN(KEEP) is the default"
    ledger.process(unknown=unknown)
    ledger.put(q_name)
    run_id, _ = ledger.come(q_name=q_name)
    ledger.change(run_id, state="unknown", why="nobody knows")
    assert (ledger.states().get(run_id), "held" in ledger.states().values()) == ("unknown", tried)


def test_an_end_that_nobody_knows_neither_ends_a_row_of_failures_nor_makes_it_longer(ledger):
    ledger.put("Q2", 3)
    failed, unknown, other = (ledger.come(q_name="Q2")[0] for _ in range(3))
    ledger.exit(failed, 1)
    ledger.change(unknown, state="unknown", why="nobody knows")
    assert ledger.next()["why"].startswith("failed 1 time in a row")
    ledger.exit(other, 0)
    assert "failed" not in ledger.next()["why"]


def test_ends_that_nobody_knows_open_the_breaker_where_they_remove_nothing(ledger):
    ledger.process(breaker=2)
    ledger.put()
    for _ in range(2):
        run_id, _ = ledger.come()
        ledger.change(run_id, state="unknown", why="nobody knows")
    assert [pause["by"] for pause in ledger.did(Pauses()).rows] == ["the breaker"]


def found_by_a_monitor(ledger):
    """How many trigger messages the first monitor finds for Q2."""
    before = len(ledger.telling.triggers)
    ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    return sum(message.q_name == "Q2" for message in ledger.telling.triggers[before:])


@pytest.mark.parametrize(("recover", "expected"), [("mq", 1), ("all", 3)])
def test_behind_a_daemons_end_each_message_of_every_has_a_run_where_the_process_says_so(ledger, recover, expected):
    ledger.process(recover=recover, instances=3)
    ledger.put("Q2", 7)
    ran, started, due, held = (ledger.come(q_name="Q2")[0] for _ in range(4))
    ledger.change(started, state="started", pid=7)
    handle = ledger.program(ran, "Q2")
    ledger.did(Get(handle=handle), f"of {ran}")
    assert ledger.states() == {ran: "serving", started: "started", due: "due", held: "held"}
    ledger.restart()
    assert found_by_a_monitor(ledger) == expected, "6 wait: 3 runs have taken none yet"


def test_explain_says_what_a_monitor_that_comes_would_find(ledger):
    ledger.put("Q2", 3)
    ledger.come(q_name="Q2")
    assert [row.number for row in ledger.did(Explain(q_name="Q2")).conditions][-1] != "13c"
    ledger.process(recover="all")
    shown = ledger.did(Explain(q_name="Q2")).conditions[-1]
    assert (shown.number, shown.holds, shown.needed) == ("13c", "yes", "at least 2")
    already = "1 with a trigger message or run already"
    assert shown.seen == f"3 waiting, {already}: RECOVER(ALL) has 2 trigger messages written"


def test_where_every_message_has_its_run_a_monitor_that_comes_finds_nothing(ledger):
    ledger.process(recover="all", instances=1)
    ledger.put("Q2", 2)
    for _ in range(2):
        ledger.come(q_name="Q2")
    ledger.restart()
    assert found_by_a_monitor(ledger) == 0


def test_a_run_that_gave_back_what_it_took_counts_again(ledger):
    ledger.process(recover="all")
    ledger.put("Q2", 2)
    run_id, _ = ledger.come(q_name="Q2")
    handle = ledger.program(run_id, "Q2")
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), f"of {run_id}")
    ledger.did(Backout(unit=1), f"of {run_id}")
    ledger.restart()
    assert found_by_a_monitor(ledger) == 1
