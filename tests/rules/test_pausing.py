"""Pauses hold runs in the ledger and touch no message; operators' words about runs, on every store."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.rules.launching_ledger import INITQ, TRIGGER
from tests.worlds import STORES, World
from trigmon.mq.calls import (
    Alter,
    CancelRun,
    ChangeRun,
    Controls,
    Delete,
    Display,
    Explain,
    Get,
    Pause,
    Pauses,
    Put,
    RecordRun,
    Resume,
    RetryRun,
    Runs,
    Status,
)
from trigmon.mq.descriptors import TriggerMessage, unpack_tm
from trigmon.mq.enums import ApplType, GetOption, MsgType, OpenOption, Persistence
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Counted
from trigmon.qmgr.housekeeping import Retention
from trigmon.rules.model.stored_messages import SLICE
from trigmon.rules.runs.run_ledger import cause_of, repeated


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.users = {"alice": "alice", "bob": "bob"}
    made.define("P", "PROCESS", appl_id="/bin/true")
    made.define("Q", process_name="P", initiation_q_name=INITQ, trigger_control="on", trigger_type="every")
    made.define("Q2", process_name="P", initiation_q_name=INITQ)
    made.define("ALIAS", "QALIAS", base_q_name="Q")
    yield made
    made.end()


def pause(world, what="queue", name="Q", reason="the database is down", as_="alice"):
    return world.do(Pause(what=what, name=name, reason=reason), as_)


def record(world, run_id="r1", state="due", **fields):
    """As a monitor writes it; who asks is nobody's business here, since all of these may."""
    return world.did(RecordRun(run_id=run_id, record={**TRIGGER, "state": state, **fields}), "monitor")


def run(world, run_id="r1"):
    (found,) = world.did(Runs(where={"run_id": run_id})).rows
    return found


def said(world, name):
    return world.did(Display(object_type="queue", name=name)).rows[0]["paused"]


@pytest.mark.parametrize(
    ("what", "name", "subject"),
    [
        ("queue", "Q", "queue Q"),
        ("queue", "ALIAS", "queue Q"),
        ("process", "P", "process P"),
        ("everything", "", "everything"),
    ],
)
def test_a_run_that_a_pause_concerns_does_not_become_due_until_it_is_resumed(world, what, name, subject):
    world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    assert pause(world, what, name).warning == 0
    held = record(world)
    assert (held.state, held.why.split(" since")[0]) == ("held", f"{subject} paused by alice")
    assert held.why.endswith(": the database is down")
    again = world.did(ChangeRun(run_id="r1", fields={"state": "due", "argv": ["/bin/true"]}))
    assert (again.state, again.why) == (held.state, held.why)
    assert run(world)["argv"] == []
    assert run(world)["why"] == held.why
    world.did(Resume(what=what, name=name), "bob")
    assert run(world)["why"] == "waits for its turn"
    assert world.did(ChangeRun(run_id="r1", fields={"state": "due"})).state == "due"


def test_what_a_pause_does_not_concern_is_started(world):
    pause(world)
    assert record(world, "other", q_name="Q2").state == "due"
    pause(world, "process", "P")
    assert record(world, "third", q_name="Q2").state == "held"


def test_a_held_run_says_who_paused_it_whatever_it_was_held_for_before(world):
    world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    record(world, state="held", why="4 of P are running or held, and 4 may run at a time")
    pause(world)
    assert run(world)["why"].startswith("queue Q paused by alice since ")
    world.did(Resume(what="queue", name="Q"))
    assert run(world)["why"] == "4 of P are running or held, and 4 may run at a time"


def test_a_paused_queue_takes_and_gives_messages_and_writes_its_trigger_messages(world):
    world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
    before = world.did(Explain(q_name="Q"))
    pause(world)
    after = world.did(Explain(q_name="Q"))
    assert (after.fires, after.fails, after.conditions) == (before.fires, before.fails, before.conditions)
    world.put("Q")
    assert world.fired() == ["Q"]
    assert world.did(Get(handle=world.open("Q", OpenOption.INPUT_SHARED))).data == b"m"


def test_a_pause_is_shown_beside_the_verdict_and_with_the_objects_it_concerns(world):
    assert said(world, "Q") == ""
    assert "held" not in str(world.did(Explain(q_name="Q")))
    pause(world)
    pause(world, "process", "P", "", as_="bob")
    told = said(world, "Q")
    assert told.startswith("queue Q paused by alice since ")
    assert "the database is down; process P paused by bob since " in told
    assert said(world, "Q2").startswith("process P paused by bob since ")
    assert world.did(Display(object_type="PROCESS", name="P")).rows[0]["paused"].startswith("process P paused by bob")
    assert f"\nWhat it starts would be held: {told.split('; ')[0]}.\n" in str(world.did(Explain(q_name="ALIAS")))
    pauses = world.did(Status()).values["pauses"]
    assert pauses == world.did(Pauses()).rows
    assert [(p["what"], p["name"], p["by"], p["reason"]) for p in pauses] == [
        ("process", "P", "bob", ""),
        ("queue", "Q", "alice", "the database is down"),
    ]


def test_pauses_and_what_is_to_be_cancelled_survive_a_restart_and_a_crash(world):
    pause(world)
    pause(world, "everything", "")
    record(world, "going", "started", q_name="Q2")
    world.did(CancelRun(run_id="going"), "alice")
    asked = world.did(Controls(monitor="m:1")).values
    world.restart()
    assert world.did(Controls(monitor="m:1")).values | {"number": 0} == asked | {"number": 0}
    world.crash()
    assert world.did(Controls(monitor="m:1")).values["cancel"] == ["going"]
    world.did(Resume(what="everything"))
    world.crash()
    assert [row["what"] for row in world.did(Pauses()).rows] == ["queue"]


def test_a_pause_goes_with_its_object(world):
    pause(world)
    pause(world, "process", "P")
    world.did(Delete(object_type="QLOCAL", name="Q"))
    world.did(Delete(object_type="PROCESS", name="P"))
    assert world.did(Pauses()).rows == []
    world.restart()
    world.define("Q")
    assert said(world, "Q") == ""


def test_who_paused_first_is_not_overwritten_and_what_is_not_paused_cannot_be_resumed(world):
    pause(world)
    refused = pause(world, name="ALIAS", reason="me too", as_="bob")
    assert refused.reason == Reason.COMMAND_FAILED
    assert refused.about.startswith("queue Q paused by alice since ")
    assert world.did(Pauses()).rows[0]["by"] == "alice"
    assert world.do(Resume(what="process", name="P")).about == "process P is not paused"
    assert world.do(Resume(what="everything")).about == "nothing is held, and not everything is paused"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (Pause(what="queue", name="NONE"), Reason.UNKNOWN_OBJECT_NAME),
        (Pause(what="process", name="Q"), Reason.UNKNOWN_OBJECT_NAME),
        (Pause(what="everything", name="Q"), Reason.OBJECT_TYPE_ERROR),
        (Pause(what="world"), Reason.OBJECT_TYPE_ERROR),
        (Pause(what="queue", name="Q", reason="two\nlines"), Reason.ATTR_VALUE_ERROR),
        (Pause(what="queue", name="Q", reason="x" * 257), Reason.ATTR_VALUE_ERROR),
        (CancelRun(run_id="none"), Reason.UNKNOWN_OBJECT_NAME),
        (RetryRun(run_id="none"), Reason.UNKNOWN_OBJECT_NAME),
    ],
)
def test_what_cannot_be_meant_is_refused(world, call, reason):
    assert world.do(call).reason == reason


# -- cancelling and repeating -------------------------------------------------------------------------------


def test_a_held_run_is_cancelled_at_once_and_does_not_become_due_any_more(world):
    record(world, state="held")
    ended = world.did(CancelRun(run_id="r1", reason="not today"), "alice")
    assert ended.state == "cancelled"
    assert ended.why.startswith("cancelled by alice at ")
    assert ended.why.endswith(": not today; its trigger message was not started")
    assert world.did(ChangeRun(run_id="r1", fields={"state": "due"})) == ended
    shown = run(world)
    assert (shown["state"], shown["why"], shown["cancelled_by"]) == ("cancelled", ended.why, "alice")
    assert shown["end_ms"] == shown["cancelled_ms"] == world.clock.now()
    assert world.did(Controls(monitor="m:1")).values["cancel"] == []


@pytest.mark.parametrize("state", ["due", "started"])
def test_a_run_with_a_process_is_its_monitors_to_end_and_its_record_says_how_it_ended(world, state):
    record(world, state=state)
    assert world.did(CancelRun(run_id="r1"), "alice").state == state
    assert world.did(Controls(monitor="another")).values["cancel"] == []
    assert world.did(Controls(monitor="m:1")).values["cancel"] == ["r1"]
    world.did(ChangeRun(run_id="r1", fields={"monitor": "another"}))
    assert world.did(Controls(monitor="another")).values["cancel"] == ["r1"]
    ended = {"state": "exited", "signal": 15, "end_ms": world.clock.now(), "why": "killed by SIGTERM"}
    answer = world.did(ChangeRun(run_id="r1", fields=ended))
    assert answer.state == "cancelled"
    assert answer.why.startswith("cancelled by alice at ")
    assert answer.why.endswith(" UTC; killed by SIGTERM")
    assert run(world)["signal"] == 15
    assert world.did(ChangeRun(run_id="r1", fields=ended)).why == answer.why
    assert world.did(Controls(monitor="another")).values["cancel"] == []


def test_a_due_run_that_was_not_started_yet_ends_when_it_is_cancelled(world):
    record(world)
    world.did(CancelRun(run_id="r1"), "alice")
    answer = world.did(ChangeRun(run_id="r1", fields={"state": "due"}))
    assert (answer.state, answer.why.split("; ")[1]) == ("cancelled", "its trigger message was not started")


def test_what_has_ended_or_is_being_cancelled_cannot_be_cancelled(world):
    record(world, state="exited")
    assert world.do(CancelRun(run_id="r1")).about == "RUN(r1) has ended: exited"
    record(world, "r2", "started")
    world.did(CancelRun(run_id="r2"), "alice")
    assert world.do(CancelRun(run_id="r2"), "bob").about.startswith("RUN(r2) is being cancelled by alice at ")


def test_a_run_is_repeated_as_defined_today_by_a_trigger_message_which_names_it_and_outlives_a_restart(world):
    record(world, state="exited", appl_id="/bin/what/its/monitor/wrote", env_data="x")
    world.did(Alter(object_type="PROCESS", name="P", attributes={"user_data": "u"}))
    world.did(RetryRun(run_id="r1"), "alice")
    world.restart()
    got = world.did(Get(handle=world.open(INITQ, OpenOption.INPUT_SHARED)))
    assert unpack_tm(got.data) == TriggerMessage(**{name: TRIGGER[name] for name in TriggerMessage.__struct_fields__})
    descriptor = got.descriptor
    assert descriptor.correl_id == b"RUN r1".ljust(24, b"\0")
    assert (descriptor.put_appl_type, descriptor.persistence) == (ApplType.QMGR, Persistence.PERSISTENT)
    assert (descriptor.appl_origin_data, descriptor.user_identifier) == ("1", "alice")


def test_a_run_of_a_schedule_that_is_repeated_is_one_of_the_same_moment(world):
    record(world, state="exited", schedule="S", moment_ms=1_767_229_200_000)
    world.did(RetryRun(run_id="r1"), "alice")
    written = world.did(Get(handle=world.open(INITQ, OpenOption.INPUT_SHARED))).descriptor
    cause = cause_of(written)
    assert (cause["repeats"], cause["schedule"], cause["moment_ms"]) == ("r1", "S", 1_767_229_200_000)


def test_only_a_trigger_message_of_the_queue_managers_own_can_say_what_it_repeats(world):
    record(world, state="exited")
    world.did(RetryRun(run_id="r1"))
    written = world.did(Get(handle=world.open(INITQ, OpenOption.INPUT_SHARED))).descriptor
    assert repeated(written) == "r1"
    for odd in ({"put_appl_type": 6}, {"msg_type": MsgType.REPORT}, {"correl_id": bytes(24)}):
        assert repeated(replace(written, **odd)) == ""


def test_what_has_not_ended_or_has_no_trigger_message_on_record_is_not_repeated(world):
    record(world, state="held")
    assert world.do(RetryRun(run_id="r1")).about == "RUN(r1) has not ended: held"
    for number, odd in enumerate(({"initiation_q": ""}, {"appl_type": 2**40}, {"appl_id": None}, {"occasion": 1})):
        record(world, f"odd{number}", "exited", **odd)
        assert world.do(RetryRun(run_id=f"odd{number}")).reason == Reason.COMMAND_FAILED
    for name, odd in (("no queue", {"q_name": "../x"}), ("no process", {"process_name": "P2"})):
        record(world, name, "exited", **odd)
        assert world.do(RetryRun(run_id=name)).about.startswith(f"RUN({name}) cannot be repeated: ")
    world.did(Alter(object_type="QLOCAL", name="Q2", attributes={"process_name": ""}))
    record(world, "other", "exited", q_name="Q2")
    assert world.do(RetryRun(run_id="other")).about.endswith("QLOCAL(Q2) names process none")
    record(world, "gone", "exited", initiation_q="GONE")
    assert world.do(RetryRun(run_id="gone")).reason == Reason.UNKNOWN_OBJECT_NAME


# -- a monitor is woken -------------------------------------------------------------------------------------


def test_news_end_the_waiting_get_of_a_monitor_that_asked_for_them_and_of_nobody_else(world):
    record(world, state="held")
    waiting = {"options": int(GetOption.WAIT), "wait_interval_ms": -1}
    number = world.did(Controls(monitor="m:1"), "monitor").values["number"]
    for name in ("monitor", "reader"):
        handle = world.open(INITQ, OpenOption.INPUT_SHARED, as_=name)
        assert world.do(Get(handle=handle, **waiting), name) is None
    for call in (Pause(what="queue", name="Q"), Resume(what="queue", name="Q"), CancelRun(run_id="r1")):
        world.ended_waits.clear()
        world.did(call)
        (ended,) = world.ended_waits
        assert (ended.session, ended.reply.reason) == (world.session("monitor"), Reason.NO_MSG_AVAILABLE)
        number += 1
        assert world.did(Controls(monitor="m:1"), "monitor").values["number"] == number
        handle = world.open(INITQ, OpenOption.INPUT_SHARED, as_="monitor")
        assert world.do(Get(handle=handle, **waiting), "monitor") is None
    world.ended_waits.clear()
    world.did(Put(q_name="Q2"))
    record(world, "r9", "exited")
    assert world.ended_waits == []


# -- how long the ledger keeps what has ended ---------------------------------------------------------------


def test_a_run_that_has_ended_is_forgotten_by_its_age_and_by_how_many_ended_behind_it(world):
    for number, state in enumerate(("exited", "held", "failed", "unknown", "started", "exited")):
        record(world, f"r{number}", state, end_ms=(1000 + number if state == "exited" else 0))
        world.clock.advance(1000)
    ended = ["r0", "r5", "r2", "r3"]  # where nobody saw the end, it is when that was written down
    now = world.clock.now()
    for keep_count, keep_ms, kept in [(4, None, 4), (None, now - 1000, 4), (None, now - 1001, 3), (2, now, 2)]:
        world.qm.housekeeping.retention = Retention(keep_count, keep_ms)
        world.qm.housekeeping.prune()
        left = {row["run_id"] for row in world.did(Runs()).rows}
        assert left == {"r1", "r4", *ended[len(ended) - kept :]}
    world.qm.housekeeping.retention = Retention(0)
    world.qm.housekeeping.prune()
    world.restart()
    assert [row["run_id"] for row in world.did(Runs()).rows] == ["r4", "r1"]


def test_many_old_runs_go_in_slices(world):
    for number in range(3 * SLICE):
        record(world, f"r{number}", "exited", end_ms=1 + number)
    world.qm.housekeeping.retention = Retention(100)
    seen = []
    world.qm.turn = lambda requests, turn=world.qm.turn: seen.append(answers := turn(requests)) or answers
    world.qm.housekeeping.prune()
    del world.qm.turn
    assert [answer.reply for answers in seen for answer in answers] == [
        Counted(count=SLICE, more=True),
        Counted(count=SLICE, more=True),
        Counted(count=SLICE - 100),
    ]
    assert [row["run_id"] for row in world.did(Runs()).rows] == [f"r{3 * SLICE - n}" for n in range(1, 101)]


def test_without_a_limit_nothing_is_forgotten(world):
    record(world, "r", "exited", end_ms=1)
    world.qm.housekeeping.prune()
    assert run(world, "r")


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["held", "due", "started", "exited", "failed", "unknown"]), st.integers(0, 30))),
    st.integers(0, 12),
    st.none() | st.integers(0, 30),
)
def test_what_is_kept_is_what_goes_on_and_the_newest_of_what_ended(runs, keep_count, keep_ms):
    kept = []
    for kind in STORES:
        with tempfile.TemporaryDirectory() as directory:
            world = World(kind, Path(directory))
            now = world.clock.now()
            ages = {}
            for number, (state, age) in enumerate(runs):
                record(world, f"{number:02}", state, end_ms=now - age)
                if state not in ("held", "due", "started"):
                    ages[f"{number:02}"] = age
            world.qm.housekeeping.retention = Retention(keep_count, keep_ms)
            world.qm.housekeeping.prune()
            left = {row["run_id"] for row in world.did(Runs()).rows}
            newest = sorted(ages, key=lambda run_id: (ages[run_id], -int(run_id)))[:keep_count]
            young = {run_id for run_id in newest if keep_ms is None or ages[run_id] <= keep_ms}
            assert left == {f"{n:02}" for n in range(len(runs)) if f"{n:02}" not in ages} | young
            kept.append(left)
            world.end()
    assert kept == kept[:1] * len(STORES)
