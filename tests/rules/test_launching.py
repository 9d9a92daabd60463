"""How many programs run, what they do on their queue, and what follows from their end, on each store."""

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import (
    Alter,
    Backout,
    CancelRun,
    Caps,
    ChangeRun,
    Close,
    Commit,
    Controls,
    Delete,
    Explain,
    Get,
    Pause,
    Pauses,
    Put,
    RecordRun,
    RecordRuns,
    Release,
    Reserve,
    Resume,
    Runs,
    Settle,
    StartRuns,
    Status,
)
from trigmon.mq.descriptors import unpack_dlh, unpack_tm
from trigmon.mq.enums import Feedback, GetOption, OpenOption, Persistence
from trigmon.mq.reasons import Reason
from trigmon.rules.runs.run_ledger import cause_of

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
TRIGGER = {"q_name": "Q", "process_name": "P", "trigger_data": "t", "appl_type": 6, "appl_id": "/bin/true"}
TRIGGER |= {"env_data": "", "user_data": "u", "occasion": "1", "initiation_q": INITQ, "monitor": "m:1"}
SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SYNCPOINT = int(GetOption.SYNCPOINT)


class Ledger(World):
    """A queue Q of type FIRST and another, their process P, and the runs a monitor records."""

    def __init__(self, kind, directory):
        super().__init__(kind, directory)
        self.define("P", "PROCESS", appl_id="/bin/true")
        common = {"process_name": "P", "initiation_q_name": INITQ, "def_persistence": "persistent"}
        self.define("Q", trigger_control="on", trigger_type="first", **common)
        self.define("Q2", trigger_control="on", trigger_type="every", **common)
        self._named = iter(f"{number:016x}" for number in range(1, 1000))

    def process(self, **attributes):
        self.did(Alter(object_type="PROCESS", name="P", attributes=attributes))

    def come(self, caps=None, **fields):
        """A trigger message has come: its run's id, and how it stands."""
        run_id = next(self._named)
        record = {**TRIGGER, "state": "due", **fields}
        stands = self.did(RecordRun(run_id=run_id, record=record, caps=caps or Caps()), "monitor")
        return run_id, stands

    def run(self, run_id):
        (found,) = self.did(Runs(where={"run_id": run_id})).rows
        return found

    def states(self):
        return {run["run_id"]: run["state"] for run in self.did(Runs()).rows}

    def start(self, monitor="m:1", caps=None, limit=16):
        """The ids of the runs that may start now, and the whole answer."""
        answer = self.did(StartRuns(initiation_q=INITQ, monitor=monitor, caps=caps or Caps(), limit=limit), "monitor")
        return [record["run_id"] for record in answer.records], answer

    def change(self, run_id, **fields):
        return self.did(ChangeRun(run_id=run_id, fields=fields), "monitor")

    def exit(self, run_id, status=0, **fields):
        why = f"ended with status {status}"
        return self.change(run_id, state="exited", exit_status=status, why=why, **fields)

    def program(self, run_id, q_name="Q"):
        """A connection of the run's program, with its queue open for input; the handle."""
        self.runs[f"of {run_id}"] = run_id
        return self.open(q_name, OpenOption.INPUT_SHARED, as_=f"of {run_id}")

    def put(self, q_name="Q", count=1):
        for _ in range(count):
            self.did(Put(q_name=q_name, data=b"x"), "loader")

    def next(self):
        """The one further try that waits."""
        (found,) = self.did(Runs(where={"state": "held"})).rows
        return found


@pytest.fixture(params=STORES)
def ledger(request, tmp_path):
    made = Ledger(request.param, tmp_path)
    yield made
    made.end()


# -- how many -----------------------------------------------------------------------------------------------


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


# -- what its program does ----------------------------------------------------------------------------------


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


# -- what follows from its end ------------------------------------------------------------------------------


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


# -- what could not start -----------------------------------------------------------------------------------

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


# -- the breaker --------------------------------------------------------------------------------------------


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
    assert "2 runs of P in a row removed no message, the last ended with status 1 without having opened" in str(pause)


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


# -- tries of its own, and ends that nobody knows -----------------------------------------------------------


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


# -- RECOVER ------------------------------------------------------------------------------------------------


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
