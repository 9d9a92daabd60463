"""Event messages: what is told, once, where it is decided."""

import pytest

from tests.rules.launching_ledger import INITQ, SYNCPOINT
from tests.rules.told_events import Told
from trigmon.mq.calls import Backout, Close, Commit, Delete, Get, Pause, Put, Resume
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, DeadLetterHeader, MessageDescriptor, pack_dlh
from trigmon.mq.enums import Feedback, OpenOption
from trigmon.mq.event_kinds import EVENT_QUEUE, EVENTS, LONGEST_TEXT
from trigmon.mq.reasons import Reason
from trigmon.qmgr import event_messages
from trigmon.rules.event_messages import event_put
from trigmon.rules.event_messages.decided_events import happened_by
from trigmon.rules.model.changes import SetAside
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.events import MessageDropped, MomentNotStarted, PoisonMoved
from trigmon.rules.model.stored_messages import StoredMessage


def test_events_are_off_by_default_and_off_again(tmp_path):
    ledger = Told("memory", tmp_path, trigmon_event="disabled")
    run_id, _ = ledger.come()
    ledger.exit(run_id, 1)
    assert ledger.taken() == []
    ledger.alter("QMGR", "", trigmon_event="enabled")
    ledger.exit(ledger.come()[0], 1)
    ledger.alter("QMGR", "", trigmon_event="disabled")
    ledger.exit(ledger.come()[0], 1)
    assert ledger.names() == ["run_failed"]


def test_a_run_that_failed_is_reported_once_with_its_status_and_its_last_line(told):
    run_id, _ = told.come()
    why = "ended with status 3: no such table: fares"
    told.exit(run_id, 3, stderr_tail="one\nno such table: fares\n", why=why)
    told.change(run_id, stderr_tail="late")
    (event,) = told.events()
    assert (event["event"], event["run_id"], event["q_name"], event["process_name"]) == ("run_failed", run_id, "Q", "P")
    assert (event["exit_status"], event["signal"], event["attempt"]) == (3, None, 1)
    assert event["text"] == f"run {run_id} of P for queue Q failed: {why}"
    assert event["last_line"] == "no such table: fares"
    assert (event["at_ms"], event["q_mgr_name"]) == (told.clock.now(), "QM1")


def test_what_a_killed_run_wrote_last_is_not_shown_as_the_cause(told):
    run_id, _ = told.come()
    told.change(run_id, state="exited", signal=9, why="killed by SIGKILL", stderr_tail="x.py:1: UserWarning: slow\n")
    (event,) = told.events()
    assert event["text"].endswith(" failed: killed by SIGKILL; last output: x.py:1: UserWarning: slow")


def test_a_good_end_and_a_stop_by_its_monitor_are_no_events(told):
    told.exit(told.come()[0], 0)
    told.exit(told.come()[0], 1, was_stopped=True)
    assert told.names() == []


def test_a_run_that_could_not_start_and_an_end_nobody_saw_are_reported(told):
    told.alter("PROCESS", "P", retry=0)
    told.change(told.come(q_name="Q2")[0], state="failed", why="no program /bin/none")
    told.change(told.come(q_name="Q2")[0], state="unknown")
    failed, dropped, unknown = told.events()
    assert (failed["event"], failed["why"]) == ("run_could_not_start", "no program /bin/none")
    assert (dropped["event"], unknown["event"]) == ("trigger_message_dropped", "run_end_unknown")


def test_the_breaker_holding_a_queue_and_its_resumption_are_reported(told):
    told.alter("PROCESS", "P", retry=0, breaker=1)
    told.put()
    told.exit(told.come()[0], 1)
    failed, held = told.events()
    assert (failed["event"], held["event"], held["q_name"]) == ("run_failed", "queue_held", "Q")
    assert held["why"] in held["text"]
    told.did(Resume(what="queue", name="Q"), "operator")
    (resumed,) = told.events()
    assert (resumed["event"], resumed["q_name"]) == ("queue_resumed", "Q")


def test_a_queue_that_is_resumed_since_its_process_was_altered_is_reported(told):
    told.alter("PROCESS", "P", retry=0, breaker=1)
    told.put()
    told.exit(told.come()[0], 1)
    told.alter("PROCESS", "P", retry=1)
    assert told.names() == ["run_failed", "queue_held", "queue_resumed"]


def test_a_pause_of_an_operator_is_reported_with_its_reason(told):
    told.did(Pause(what="process", name="P", reason="release day"), "operator")
    told.did(Resume(what="process", name="P"), "operator")
    paused, resumed = told.events()
    assert (paused["event"], paused["what"], paused["name"], paused["reason"]) == (
        *("starting_paused", "process", "P", "release day"),
    )
    assert (resumed["event"], resumed["name"]) == ("starting_resumed", "P")


def backed_out(told, q_name):
    """A message is backed out once, and the next get meets it."""
    told.define(q_name, backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE")
    told.put(q_name)
    handle = told.open(q_name, OpenOption.INPUT_SHARED)
    told.did(Get(handle=handle, options=SYNCPOINT, unit=1))
    told.did(Backout(unit=1))
    return told.do(Get(handle=handle))


def test_a_message_put_aside_is_reported_with_where_it_went(told):
    told.define("ASIDE")
    backed_out(told, "POISON")
    (event,) = told.events()
    assert (event["event"], event["q_name"], event["to_q_name"]) == ("message_put_aside", "POISON", "ASIDE")
    assert (event["backout_count"], len(event["msg_id"])) == (1, 48)


def test_a_message_put_aside_as_a_dead_letter_is_reported_as_one_event(told):
    told.alter("QMGR", "", dead_letter_q_name="SYSTEM.DEAD.LETTER.QUEUE")
    backed_out(told, "POISON")  # there is no ASIDE
    (event,) = told.events()
    assert (event["event"], event["to_q_name"]) == ("message_put_aside", "SYSTEM.DEAD.LETTER.QUEUE")


def test_a_message_on_the_dead_letter_queue_is_reported_when_it_is_committed(told):
    told.alter("QMGR", "", dead_letter_q_name="SYSTEM.DEAD.LETTER.QUEUE")
    told.did(Put(q_name="SYSTEM.DEAD.LETTER.QUEUE", data=b"x"))
    assert [(e["event"], e["count"]) for e in told.events()] == [("dead_letter", 1)]
    for _ in range(2):
        told.did(Put(q_name="SYSTEM.DEAD.LETTER.QUEUE", data=b"x", options=SYNCPOINT, unit=1))
    assert told.names() == []
    told.did(Commit(unit=1))
    (event,) = told.events()
    assert (event["event"], event["count"], event["reason_name"], event["why"]) == ("dead_letter", 2, "", "")


DLQ = "SYSTEM.DEAD.LETTER.QUEUE"


def dead_letter(reason):
    """What a program puts that writes a dead letter: its data has a dead-letter header."""
    header = DeadLetterHeader(reason=reason, dest_q_name="Q2", dest_q_mgr_name="QM1")
    return {"data": pack_dlh(header) + b"x", "descriptor": MessageDescriptor(format=FORMAT_DEAD_LETTER)}


def test_a_dead_letter_is_reported_with_its_reason_also_when_a_unit_of_work_put_it(told):
    told.alter("QMGR", "", dead_letter_q_name=DLQ)
    why = "Q2 did not take it: MAXDEPTH reached"
    told.did(Put(q_name=DLQ, **dead_letter(Reason.Q_FULL)))
    (event,) = told.events()
    assert (event["reason_name"], event["why"]) == ("Q_FULL", why)
    assert event["text"] == f"a message came to the dead-letter queue {DLQ}: {why}"
    told.did(Put(q_name=DLQ, **dead_letter(Reason.PUT_INHIBITED), options=SYNCPOINT, unit=1))
    told.did(Backout(unit=1))
    assert told.events() == []
    told.did(Put(q_name=DLQ, **dead_letter(Reason.Q_FULL), options=SYNCPOINT, unit=2))
    told.did(Put(q_name=DLQ, **dead_letter(Feedback.TM_ERROR), options=SYNCPOINT, unit=2))
    told.did(Commit(unit=2))
    (event,) = told.events()
    assert (event["count"], event["reason_name"]) == (2, "TM_ERROR")
    assert event["text"] == f"2 messages came to the dead-letter queue {DLQ}: the last: it is no valid trigger message"
    assert told.qm.event_messages._in_units == {}


def test_a_trigger_message_that_became_a_dead_letter_is_reported_with_what_refused_it(told):
    told.alter("QMGR", "", dead_letter_q_name=DLQ)
    told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    told.alter("QLOCAL", INITQ, max_q_depth=0)
    told.did(Put(q_name="Q2", data=b"x", options=SYNCPOINT, unit=1))
    assert told.events() == []
    told.did(Commit(unit=1))
    (event,) = told.events()
    assert (event["event"], event["reason_name"]) == ("dead_letter", "Q_FULL")


def test_a_trigger_message_that_found_no_place_is_reported(told):
    told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    told.alter("QLOCAL", INITQ, max_q_depth=0)
    told.put("Q2")
    (event,) = told.events()
    assert (event["event"], event["q_name"]) == ("trigger_message_dropped", "Q2")


def test_no_event_is_about_an_event_queue(told):
    told.alter("QLOCAL", EVENT_QUEUE, process_name="P", q_depth_high_event="enabled", max_q_depth=2)
    told.exit(told.come(q_name=EVENT_QUEUE)[0], 1)
    told.did(Pause(what="queue", name=EVENT_QUEUE), "operator")
    told.define("D", def_persistence="persistent")
    told.alter("QMGR", "", dead_letter_q_name="D")
    told.alter("PROCESS", "P", retry=0)
    told.change(told.come(q_name=EVENT_QUEUE)[0], state="failed", why="none")
    assert told.names() == []
    assert told.queue_depth("D") <= 1


def test_a_monitor_that_is_gone_and_back_is_reported_after_two_looks(told):
    handle = told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    told.look()
    told.did(Close(handle=handle), "monitor")
    told.look()
    assert told.names() == []
    told.look()
    told.look()
    (event,) = told.events()
    assert (event["event"], event["q_name"]) == ("monitor_gone", INITQ)
    told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    told.look()
    told.look()
    assert told.names() == ["monitor_back"]


def test_a_disk_that_is_nearly_full_is_reported_and_nothing_else_then(told):
    told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    allowed = True
    told.qm.are_puts_allowed = lambda: allowed
    told.look()
    allowed = False
    told.look()
    told.exit(told.come()[0], 1)
    assert told.dropped_events == [("run_failed", "puts are refused: the disk is nearly full")]
    allowed = True
    told.look()
    assert told.names() == ["puts_refused", "puts_allowed"]


def test_a_member_that_died_is_reported(told):
    told.qm.event_messages.lost_members.append(("QM2", "QSG1"))
    told.look()
    told.look()
    (event,) = [each for each in told.events() if each["event"] == "member_lost"]
    assert (event["member"], event["group"]) == ("QM2", "QSG1")


def full(told):
    told.alter("QLOCAL", EVENT_QUEUE, max_q_depth=0)


def inhibited(told):
    told.alter("QLOCAL", EVENT_QUEUE, inhibit_put="inhibited")


def gone(told):
    told.did(Delete(object_type="QLOCAL", name=EVENT_QUEUE), "operator")


def too_small(told):
    told.alter("QLOCAL", EVENT_QUEUE, max_msg_length=10)


def an_alias(told):
    gone(told)
    told.define("EVENTS")
    told.define(EVENT_QUEUE, "QALIAS", base_q_name="EVENTS")


@pytest.mark.parametrize("spoils", [full, inhibited, gone, too_small, an_alias])
def test_an_event_queue_that_takes_nothing_costs_the_ledger_nothing_and_the_event_is_counted(told, spoils):
    spoils(told)
    run_id, _ = told.come()
    assert told.exit(run_id, 1).state == "exited"
    assert told.run(run_id)["exit_status"] == 1
    assert [event for event, _ in told.dropped_events] == ["run_failed"]
    assert told.qm.counters.figures()["events"]["event_message_dropped"] == 1


def test_a_bug_in_the_telling_costs_the_event_alone(told, monkeypatch):
    def broken(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(event_put, "decide_deliver", broken)
    run_id, _ = told.come()
    assert told.exit(run_id, 1).state == "exited"
    assert told.dropped_events == [("run_failed", "RuntimeError: planted")]


@pytest.mark.parametrize("part", ["happened_by", "due_events"])
def test_a_bug_in_finding_what_is_reported_costs_the_event_alone(told, monkeypatch, part):
    def broken(*_, **__):
        raise RuntimeError("planted")

    monkeypatch.setattr(event_messages, part, broken)
    told.define("DEEP", q_depth_high_event="enabled")
    told.put("DEEP")
    assert told.queue_depth("DEEP") == 1
    assert set(told.dropped_events) == {("", "RuntimeError: planted")}


def test_an_event_survives_a_crash_with_what_it_tells_of(tmp_path):
    told = Told("sqlite", tmp_path)
    run_id, _ = told.come()
    told.exit(run_id, 1)
    told.crash()
    assert told.run(run_id)["exit_status"] == 1
    assert told.names() == ["run_failed"]
    told.end()


def test_an_event_queue_that_triggers_starts_its_process(told):
    told.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    told.define("NOTIFY", "PROCESS", appl_id="/bin/true")
    told.alter("QLOCAL", EVENT_QUEUE, process_name="NOTIFY", initiation_q_name=INITQ, trigger_control="on")
    told.fired()
    told.exit(told.come()[0], 1)
    assert told.fired() == [EVENT_QUEUE]


def test_a_text_is_cut(told):
    run_id, _ = told.come()
    told.exit(run_id, 1, stderr_tail="x")
    told.change(told.come()[0], state="exited", exit_status=1, why="y" * 5000)
    assert max(len(event["why"]) for event in told.events()) == LONGEST_TEXT


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (MomentNotStarted("NIGHTLY", 1000, "the queue is empty"), "moment_not_started"),
        (MessageDropped("Q", "no place"), "message_dropped"),
        (PoisonMoved("Q", "", bytes(24), 1), "message_discarded"),
    ],
)
def test_what_a_decision_says_for_the_log_is_reported_with_the_fields_of_the_table(event, name):
    (happened,) = happened_by(Decision(events=(event,)), "", {})
    assert (happened.event, set(happened.fields)) == (name, {*EVENTS[name].fields})
    assert happened.text


def test_a_damaged_message_is_reported():
    message = StoredMessage(1, "Q", 0, True, MessageDescriptor(), b"", 0)
    (happened,) = happened_by(Decision(changes=[SetAside(message)]), "", {})
    assert (happened.event, set(happened.fields)) == ("message_damaged", {*EVENTS["message_damaged"].fields})
