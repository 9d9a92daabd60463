"""How many programs run, and what they do on their queue, on each store."""

import pytest

from tests.rules.launching_ledger import INITQ, SYNCPOINT, TRIGGER
from trigmon.mq.calls import (
    Backout,
    Caps,
    Close,
    Commit,
    Controls,
    Get,
    Pause,
    RecordRuns,
    Release,
    Reserve,
    Resume,
    Runs,
    Settle,
    Status,
)
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason


def test_the_definition_as_it_was_is_recorded_with_the_run(ledger):
    ledger.process(instances=3, working_directory="/srv")
    run_id, stands = ledger.come()
    assert stands.process == ledger.run(run_id)["process"] == {"instances": 3, "working_directory": "/srv"}
    ledger.process(instances=1)
    assert ledger.run(run_id)["process"]["instances"] == 3
    assert ledger.come(process_name="GONE", q_name="Q2")[1].process is None


def test_the_cause_is_recorded_with_what_held_when_the_queue_fired(ledger):
    ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    ledger.put("Q2")
    run_id, _ = ledger.come(q_name="Q2")
    assert "10 the trigger type is not NONE: TRIGTYPE(EVERY)" in ledger.run(run_id)["verdict"]
    assert ledger.run(run_id)["occasion"] == "1"
    other, _ = ledger.come(q_name="Q2", occasion="12")
    assert ledger.run(other)["verdict"] == []


@pytest.mark.parametrize("monitor", ["m:1", "m:2"])
def test_a_run_beyond_the_cap_is_held_whichever_monitor_has_the_others(ledger, monitor):
    ledger.process(instances=2)
    first, second = (ledger.come(q_name="Q2")[0] for _ in range(2))
    third, stands = ledger.come(q_name="Q2", monitor=monitor)
    others = f", 2 of them under other monitors (run {first} of m:1, run {second} of m:1)" * (monitor != "m:1")
    assert (stands.state, stands.why) == ("held", f"2 of P run{others}, and 2 may run at a time")
    assert ledger.start()[0] == []
    ledger.exit(first)
    assert ledger.start("m:2")[0] == [third]
    assert (ledger.run(third)["state"], ledger.run(third)["monitor"]) == ("due", "m:2")
    assert ledger.run(second)["state"] == "due"


def test_the_caps_of_the_monitor_hold_where_the_definition_says_nothing(ledger):
    caps = Caps(instances=1, runs=2)
    assert ledger.come(caps, q_name="Q2")[1].state == "due"
    assert ledger.come(caps, q_name="Q2")[1].why == "1 of P run, and 1 may run at a time"
    assert ledger.come(caps, process_name="", appl_id="other", q_name="Q2")[1].state == "due"
    why = "2 programs of this monitor run, and 2 may run at a time (monitor.max_runs)"
    assert ledger.come(caps, process_name="", appl_id="third", q_name="Q2")[1].why == why
    assert ledger.come(caps, process_name="", appl_id="third", q_name="Q2", monitor="m:2")[1].state == "due"


def test_held_runs_start_oldest_first_over_all_queues_and_no_line_holds_another_up(ledger):
    ledger.process(instances=1)
    running, _ = ledger.come(q_name="Q2")
    line = [ledger.come(q_name="Q2")[0] for _ in range(3)]
    ledger.define("P2", "PROCESS", appl_id="/bin/true", instances=1)
    other, _ = ledger.come(q_name="Q2", process_name="P2")
    waits, _ = ledger.come(q_name="Q2", process_name="P2")
    assert ledger.start() == ([], ledger.start()[1])
    ledger.exit(other)
    assert ledger.start()[0] == [waits]
    ledger.exit(running)
    ids, answer = ledger.start()
    assert (ids, answer.waiting) == (line[:1], 2)


def test_a_held_run_whose_initiation_queue_nobody_reads_says_so_and_who_would_start_it(ledger):
    for _ in range(2):
        run_id, _ = ledger.come(caps=Caps(1), q_name="Q2")
    said = f"nobody reads its initiation queue: trigmon monitor --initq {INITQ}"
    assert ledger.run(run_id)["why"] == said
    ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    assert ledger.run(run_id)["why"] == "1 of P run, and 1 may run at a time"
    ledger.lose("monitor")
    assert ledger.run(run_id)["why"] == said
    assert ledger.come(q_name="Q2", initiation_q="GONE", caps=Caps(1))[1].state == "held"
    (newest, *_) = ledger.did(Runs()).rows
    assert newest["why"] == "nobody reads its initiation queue: trigmon monitor --initq GONE"


def test_status_counts_what_is_under_way_and_what_is_held_by_initiation_queue_also_where_none_names_it(ledger):
    for _ in range(3):
        ledger.come(q_name="Q2", caps=Caps(1))
    ledger.come(q_name="Q2", initiation_q="GONE", caps=Caps(1))
    status = ledger.did(Status()).values
    assert status["runs_under_way"] == 1
    gone, common = status["initiation_queues"]
    assert (gone["name"], gone["monitors"], gone["queues"], gone["runs_held"]) == ("GONE", 0, 0, 1)
    assert (common["name"], common["queues"], common["runs_held"]) == (INITQ, 2, 2)


def test_as_many_as_may_start_are_started_at_once_and_no_more_than_asked_for(ledger):
    first, _ = ledger.come(Caps(instances=1), q_name="Q2")
    line = [ledger.come(Caps(instances=1), q_name="Q2")[0] for _ in range(9)]
    ledger.exit(first)
    assert ledger.start(caps=Caps(instances=4), limit=2)[0] == line[:2]
    assert ledger.start(caps=Caps(instances=4))[0] == line[2:4]
    assert ledger.start(caps=Caps(instances=4))[1].waiting == 5


def test_a_listed_run_with_a_program_tells_what_is_left_with_what_is_reserved(ledger):
    ledger.put(count=5)
    run_id, _ = ledger.come()
    assert (ledger.run(run_id)["left"], ledger.run(run_id).get("batches", 0)) == (5, 0)
    handle, program = ledger.program(run_id), f"of {run_id}"
    made = ledger.did(Reserve(handle=handle, consumer="c", max_messages=2), program)
    assert (ledger.run(run_id)["left"], ledger.run(run_id)["taken"]) == (5, 2)
    ledger.did(Settle(reservation=made.reservation), program)
    run = ledger.run(run_id)
    assert (run["left"], run["batches"], run["committed"]) == (3, 1, 2)
    ledger.lose(program)
    ledger.exit(run_id)
    run = ledger.run(run_id)
    assert ("left" in run, run["batches"], run["committed"]) == (False, 1, 2)


def test_a_first_queue_has_one_run_at_a_time_that_has_not_opened_it(ledger):
    first, _ = ledger.come()
    second, stands = ledger.come()
    assert (stands.state, stands.why) == ("held", f"run {first} was started for Q and has not opened it yet")
    assert ledger.come(q_name="Q2")[1].state == "due"
    number = ledger.did(Controls(monitor="m:1"), "monitor").values["number"]
    ledger.program(first)
    assert ledger.did(Controls(monitor="m:1"), "monitor").values["number"] == number + 1
    assert ledger.start()[0] == [second]


def test_several_runs_are_recorded_with_the_commit_of_their_trigger_messages_or_none(ledger):
    handle = ledger.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    ledger.put("Q2", 2)
    for _ in range(2):
        ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), "monitor")
    twice = [{**TRIGGER, "run_id": "a", "state": "due"}, {**TRIGGER, "run_id": "a", "state": "due"}]
    assert ledger.do(RecordRuns(records=twice, unit=1), "monitor").reason == Reason.OBJECT_ALREADY_EXISTS
    assert ledger.states() == {}
    both = [{**twice[0], "q_name": "Q2"}, {**twice[0], "q_name": "Q2", "run_id": "b"}]
    reply = ledger.did(RecordRuns(records=both, unit=1), "monitor")
    assert [run.state for run in reply.runs] == ["due", "due"]
    assert ledger.do(Get(handle=handle), "monitor").reason == Reason.NO_MSG_AVAILABLE


def test_identical_triggers_that_wait_are_one_run_where_the_definition_says_so(ledger):
    ledger.process(instances=1, coalesce="yes")
    ledger.come(q_name="Q2")
    waits, _ = ledger.come(q_name="Q2")
    joined, stands = ledger.come(q_name="Q2")
    assert stands.state == "joined"
    assert ledger.run(joined)["joins"] == waits
    assert ledger.run(joined)["why"].startswith(f"run {waits}, which waits, does the same: 1 of P run")
    assert ledger.come(q_name="Q2", trigger_data="other")[1].state == "held"
    ledger.process(coalesce="no")
    assert ledger.come(q_name="Q2", trigger_data="other")[1].state == "held"


def test_a_run_follows_its_program_from_launched_to_drained(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=3)
    assert ledger.run(run_id)["state"] == "due"
    ledger.change(run_id, state="started", pid=7, start_ms=ledger.clock.now())
    assert ledger.run(run_id)["state"] == "started"
    ledger.clock.advance(50)
    opened_ms = ledger.clock.now()
    handle = ledger.program(run_id)
    ledger.clock.advance(50)
    name = f"of {run_id}"
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), name)
    seen = ledger.run(run_id)
    assert (seen["state"], seen["first_open_ms"], seen["first_get_ms"]) == ("serving", opened_ms, opened_ms + 50)
    assert (seen["taken"], seen["committed"], seen["backed_out"]) == (1, 0, 0)
    ledger.did(Backout(unit=1), name)
    ledger.did(Get(handle=handle), name)
    for _ in range(2):
        ledger.did(Get(handle=handle, options=SYNCPOINT, unit=2), name)
    ledger.did(Commit(unit=2), name)
    assert ledger.do(Get(handle=handle), name).reason == Reason.NO_MSG_AVAILABLE
    ledger.did(Close(handle=handle), name)
    seen = ledger.run(run_id)
    assert (seen["state"], seen["taken"], seen["committed"], seen["backed_out"]) == ("drained", 4, 3, 1)
    ledger.change(run_id, state="started", pid=7)
    assert ledger.run(run_id)["state"] == "drained"
    ledger.disconnect(name)
    ledger.exit(run_id)
    seen = ledger.run(run_id)
    assert (seen["state"], seen["committed"], seen["first_open_ms"]) == ("exited", 3, opened_ms)


def test_what_a_program_does_adds_up_over_opens_and_units(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=2)
    ledger.put("Q2", count=2)
    name = f"of {run_id}"
    first = ledger.program(run_id)
    opened_ms = ledger.clock.now()
    ledger.clock.advance(1000)
    second, other = ledger.program(run_id), ledger.program(run_id, "Q2")
    for unit in (1, 2):
        ledger.did(Get(handle=first, options=SYNCPOINT, unit=unit), name)
        ledger.did(Get(handle=other, options=SYNCPOINT, unit=unit), name)
        ledger.did(Backout(unit=unit), name)
    ledger.did(Close(handle=first), name)
    assert ledger.run(run_id)["state"] == "serving"
    ledger.did(Get(handle=second, options=SYNCPOINT, unit=3), name)
    ledger.did(Get(handle=other, options=SYNCPOINT, unit=3), name)
    ledger.did(Commit(unit=3), name)
    seen = ledger.run(run_id)
    assert (seen["taken"], seen["backed_out"], seen["committed"]) == (3, 2, 1)
    assert seen["first_open_ms"] == opened_ms


def test_a_program_that_leaves_messages_behind_has_not_drained(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=2)
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle), f"of {run_id}")
    ledger.did(Close(handle=handle), f"of {run_id}")
    assert ledger.run(run_id)["state"] == "serving"


def test_what_it_reserves_it_takes_and_what_it_settles_it_commits(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=5)
    name = f"of {run_id}"
    handle = ledger.program(run_id)
    call = Reserve(handle=handle, consumer="JOB", max_messages=4)
    number = ledger.did(call, name).reservation
    ledger.did(call, name)
    ledger.did(Settle(reservation=number, count=2), name)
    ledger.did(Settle(reservation=number, count=2), name)
    ledger.did(Release(reservation=number, ordinal=3), name)
    seen = ledger.run(run_id)
    assert (seen["taken"], seen["committed"], seen["backed_out"]) == (4, 2, 1)
    ledger.did(Close(handle=handle), name)
    assert ledger.run(run_id)["state"] == "serving"
    ledger.qm.lost([ledger.sessions.pop(name)])
    seen = ledger.run(run_id)
    assert (seen["taken"], seen["committed"], seen["backed_out"]) == (4, 2, 2)


def test_a_batch_is_done_when_the_last_of_it_is_settled_and_the_record_says_when(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=5)
    name = f"of {run_id}"
    handle = ledger.program(run_id)
    for count in (3, 2):
        number = ledger.did(Reserve(handle=handle, consumer="JOB", max_messages=3), name).reservation
        before = ledger.run(run_id).get("batches")
        ledger.did(Settle(reservation=number, count=1), name)
        assert ledger.run(run_id).get("batches") == before
        ledger.did(Settle(reservation=number, ordinal=1, count=count), name)
        ledger.did(Settle(reservation=number), name)
    seen = ledger.run(run_id)
    assert (seen["batches"], seen["committed"]) == (2, 5)
    assert seen["settled_ms"] >= seen["first_get_ms"] > 0


def test_a_queue_on_which_something_is_reserved_is_not_drained(ledger):
    run_id, _ = ledger.come()
    ledger.put()
    handle = ledger.program(run_id)
    number = ledger.did(Reserve(handle=handle, consumer="JOB"), f"of {run_id}").reservation
    ledger.did(Close(handle=handle), f"of {run_id}")
    assert ledger.run(run_id)["state"] == "serving"
    handle = ledger.program(run_id)
    ledger.did(Settle(reservation=number), f"of {run_id}")
    ledger.did(Close(handle=handle), f"of {run_id}")
    assert ledger.run(run_id)["state"] == "drained"


def test_another_users_connection_cannot_speak_for_a_run(ledger):
    ledger.users["monitor"] = "trigmon-monitor"
    run_id, _ = ledger.come()
    ledger.users["mallory"], ledger.runs["mallory"] = "mallory", run_id
    ledger.open("Q", OpenOption.INPUT_SHARED, as_="mallory")
    assert ledger.run(run_id)["state"] == "due"
    ledger.exit(run_id, 0)
    ledger.process(run_as="etl")
    again, _ = ledger.come()
    ledger.users[f"of {again}"] = "etl"
    ledger.program(again)
    assert ledger.run(again)["state"] == "serving"


def test_a_connection_without_a_user_speaks_for_a_run_of_a_cluster_alone(ledger):
    ledger.users["monitor"] = "trigmon-monitor"
    run_id, _ = ledger.come()
    ledger.users[f"of {run_id}"] = ""
    ledger.program(run_id)
    assert ledger.run(run_id)["state"] == "due"
    ledger.exit(run_id, 0)
    ledger.process(appl_type="SPARK", appl_id="job.py", spark_master="spark://m:7077")
    again, _ = ledger.come()
    ledger.users[f"of {again}"] = ""
    ledger.program(again)
    assert ledger.run(again)["state"] == "serving"


def test_who_connected_before_a_run_was_to_start_is_not_its_program(ledger):
    ledger.put()
    ledger.did(Pause(what="queue", name="Q"))
    run_id, _ = ledger.come()
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), f"of {run_id}")
    ledger.did(Resume(what="queue", name="Q"))
    assert ledger.start()[0] == [run_id]
    ledger.disconnect(f"of {run_id}")
    run = ledger.run(run_id)
    assert (run["state"], run.get("taken", 0), run.get("committed", 0)) == ("due", 0, 0)
    ledger.put()
    ledger.program(run_id)
    assert ledger.run(run_id)["state"] == "serving"


def test_what_a_program_does_elsewhere_is_not_counted(ledger):
    run_id, _ = ledger.come()
    ledger.put("Q2")
    handle = ledger.program(run_id, "Q2")
    ledger.did(Get(handle=handle), f"of {run_id}")
    assert (ledger.run(run_id)["state"], ledger.run(run_id)["taken"]) == ("due", 0)


def test_a_restart_backs_out_what_was_in_flight_and_keeps_what_was_counted(ledger):
    run_id, _ = ledger.come()
    ledger.put(count=3)
    handle = ledger.program(run_id)
    ledger.did(Get(handle=handle), f"of {run_id}")
    ledger.did(Get(handle=handle, options=SYNCPOINT, unit=1), f"of {run_id}")
    ledger.restart()
    seen = ledger.run(run_id)
    assert (seen["taken"], seen["committed"], seen["backed_out"]) == (2, 1, 1)
    ledger.exit(run_id, 1)
    assert ledger.next()["retries"] == run_id
