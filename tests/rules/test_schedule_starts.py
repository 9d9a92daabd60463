"""What a schedule starts, and when: its conditions, pauses, starts by hand, and schedules of a group."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.rules.schedules import (
    DAY,
    HOUR,
    MINUTE,
    OBJECTS,
    needs_attention,
    row,
    started,
    with_schedule,
)
from trigmon.mq.calls import (
    Alter,
    Define,
    Delete,
    Display,
    Open,
    Pause,
    Resume,
    RetryDeadLetters,
    RunSchedule,
    Status,
)
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor
from trigmon.mq.enums import OpenOption, Persistence
from trigmon.mq.errors import CommandFailed, UnknownObjectName
from trigmon.mq.run import NO_RUN
from trigmon.rules.runs.run_ledger import cause_of, descriptor_of
from trigmon.schedules import moments
from trigmon.simulate.in_process import InProcess
from trigmon.testing import INITIATION_Q, InMemory

# -- occasion S --------------------------------------------------------------------------------------------------


def test_a_queue_that_no_put_triggers_is_started_at_each_moment():
    with InMemory() as mq:
        with_schedule(mq, every=HOUR // 1000, queue="Q")
        mq.put("Q", "1")
        assert started(mq) == 0
        mq.advance(HOUR - 1)
        assert started(mq) == 0
        mq.advance(1)
        (trigger,) = mq.triggers()
        assert (trigger.q_name, trigger.process_name, trigger.appl_id) == ("Q", "P", "python total.py")
        mq.advance(5 * HOUR)
        assert started(mq) == 5
        shown = row(mq)
        assert shown["last_moment_ms"] == shown["last_start_ms"] == mq._stage._clock.now()
        assert shown["why_not"] == ""


def test_a_process_is_started_without_a_queue():
    with InMemory() as mq:
        with_schedule(mq, cron="0 2 * * *", process="P")
        mq.advance(DAY)
        (trigger,) = mq.triggers()
        assert (trigger.q_name, trigger.process_name, trigger.appl_id) == ("", "P", "python total.py")


def test_only_if_messages_starts_nothing_for_an_empty_queue_and_counts_from_the_priority():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q", only_if="messages")
        mq.alter("Q", trigger_msg_priority=5)
        mq.put("Q", "1", priority=4)
        mq.advance(HOUR)
        assert started(mq) == 0
        assert row(mq)["why_not"].startswith("S does not hold: S 2026-01-01 01:00:00 UTC of SCHEDULE(S), 0 waiting")
        mq.put("Q", "2", priority=5)
        mq.advance(HOUR)
        assert started(mq) == 1


@pytest.mark.parametrize(
    ("alterations", "number"),
    [
        ({"inhibit_get": "disabled"}, "5"),
        ({"process_name": "NOT.YET"}, "6"),
        ({"process_name": ""}, "6"),
        ({"initiation_q_name": "NO.SUCH.Q"}, "7"),
    ],
)
def test_a_moment_whose_conditions_do_not_hold_is_on_record_and_is_not_made_up_for(alterations, number):
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        before = {name: mq._command(Display(object_type="QLOCAL", name="Q")).rows[0][name] for name in alterations}
        mq.alter("Q", **alterations)
        mq.advance(HOUR)
        assert started(mq) == 0
        assert number in row(mq)["why_not"].partition(":")[0]
        assert row(mq)["last_moment_ms"] == mq._stage._clock.now()
        mq.alter("Q", **before)
        mq.advance(HOUR - 1)
        assert started(mq) == 0
        mq.advance(1)
        assert started(mq) == 1


@pytest.mark.parametrize(("trigger_type", "count"), [("first", 0), ("depth", 0), ("every", 1), ("none", 1)])
def test_a_reader_silences_a_schedule_as_it_silences_the_trigger_type(trigger_type, count):
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        mq.alter("Q", trigger_type=trigger_type)
        with mq.connect() as qm, qm.open("Q", "input_shared"):
            mq.advance(HOUR)
            assert started(mq) == count
        mq.advance(HOUR)
        assert started(mq) == 1


def test_a_schedule_does_not_switch_the_control_of_depth_off():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        mq.alter("Q", trigger_control="on", trigger_type="depth", trigger_depth=3)
        mq.advance(HOUR)
        assert started(mq) == 1
        assert mq._command(Display(object_type="QLOCAL", name="Q")).rows[0]["trigger_control"] == "on"


def test_the_trigger_message_of_a_moment_is_persistent_and_names_schedule_and_moment():
    with InMemory(monitor="") as mq:
        with_schedule(mq, every=3600, queue="Q")
        session = mq._stage.connect("monitor", administrator=True)
        mq._stage.ask(session, Open(object_name=INITIATION_Q, options=OpenOption.INPUT_SHARED.value))
        mq.advance(HOUR)
        mq.crash()
        (message,) = mq.messages(INITIATION_Q)
        assert message.descriptor.format == FORMAT_TRIGGER
        assert message.descriptor.appl_origin_data == "S"
        assert message.descriptor.reply_to_q == "S"
        assert message.descriptor.correl_id.rstrip(b"\0") == b"MOMENT %d" % mq._stage._clock.now()


# -- pause, run ------------------------------------------------------------------------------------------------


def test_moments_of_a_paused_schedule_pass_and_are_not_made_up_for():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q", missed="all")
        mq._command(Pause(what="schedule", name="S", reason="not now"))
        mq.advance(3 * HOUR)
        mq.restart()
        assert row(mq)["why_not"].startswith("schedule S paused by root since ")
        mq._command(Resume(what="schedule", name="S"))
        mq.advance(MINUTE)
        assert started(mq) == 0
        mq.advance(HOUR)
        assert started(mq) == 1


def test_a_run_by_hand_is_besides_the_moments_and_says_why_it_cannot_be():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q", only_if="messages")
        mq._command(Pause(what="schedule", name="S"))
        mq._command(RunSchedule(name="S", q_name="Q"))
        assert started(mq) == 1
        assert row(mq)["last_moment_ms"] == 0
        mq.alter("Q", inhibit_get="disabled")
        with pytest.raises(
            CommandFailed, match=r"starts nothing now: 5 gets inhibited; ALTER QLOCAL\(Q\) GET\(ENABLED\)"
        ):
            mq._command(RunSchedule(name="S", q_name="Q"))
        with pytest.raises(UnknownObjectName):
            mq._command(RunSchedule(name="T", q_name="Q"))


def test_a_deleted_schedule_starts_nothing():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        mq.mqsc("DELETE SCHEDULE(S)")
        mq.advance(3 * HOUR)
        assert started(mq) == 0


def test_a_schedule_of_a_queue_that_is_gone_says_so():
    with InMemory() as mq:
        with_schedule(mq, every=3600, queue="Q")
        mq.mqsc("DELETE QLOCAL(Q)")
        mq.advance(HOUR)
        assert row(mq)["why_not"] == "QLOCAL(Q) is not defined"


def test_a_moment_that_started_nothing_needs_attention_until_one_starts():
    with InMemory() as mq:
        with_schedule(mq, every=HOUR // 1000, queue="Q")
        mq.mqsc("DELETE PROCESS(P)")
        mq.advance(HOUR)
        assert needs_attention(mq) == [("not_started", "S")]
        assert row(mq)["not_started"]
        mq.mqsc("DEFINE PROCESS(P) APPLICID('python total.py')")
        mq.advance(HOUR)
        assert needs_attention(mq) == []


def test_a_zone_that_the_database_has_lost_stops_no_other_schedule_and_needs_attention(tmp_path: Path):
    def forget_zones() -> None:
        zoneinfo.ZoneInfo.clear_cache()
        moments._zone.cache_clear()

    (tmp_path / "New").write_bytes((resources.files("tzdata") / "zoneinfo" / "UTC").read_bytes())
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    try:
        with InMemory() as mq:
            with_schedule(mq, name="LOST", cron="0 * * * *", timezone="New", queue="Q")
            mq.define("S", "SCHEDULE", every=3600, queue="Q")
            mq.advance(HOUR)
            assert started(mq) == 2
            zoneinfo.reset_tzpath(to=[])
            forget_zones()
            mq.restart()
            mq.advance(HOUR)
            assert started(mq) == 1
            (found,) = mq._command(Status()).values["attention"]
            assert (found["name"], found["text"].partition(":")[0]) == ("LOST", "no moment comes")
            mq.alter("LOST", "SCHEDULE", timezone="UTC")
            mq.advance(HOUR)
            assert started(mq) == 2
    finally:
        zoneinfo.reset_tzpath()
        forget_zones()


OF_GROUP = {"every_s": HOUR // 1000, "q_name": "Q", "qsg_disp": "group"}


def define(group: InProcess, object_type: str, name: str, on: str = "QM1", **attributes: Any) -> None:
    group.command(on, Define(object_type=object_type, name=name, attributes=attributes))


def hours(group: InProcess, count: int) -> int:
    """Returns how many trigger messages were written in these hours."""
    group.advance(count * HOUR)
    return len(group.became_available())


@pytest.fixture
def group() -> Iterator[InProcess]:
    """Two members with a schedule of the group, and a monitor for both."""
    members = InProcess(["QM1", "QM2"], "memory")
    shared = {"qsg_disp": "shared", "cf_struc_name": "APP1"}
    try:
        for member in ("QM1", "QM2"):
            define(members, "PROCESS", "P", on=member, appl_id="/bin/true")
        define(members, "QLOCAL", "INITQ", **shared)
        define(members, "QLOCAL", "Q", initiation_q_name="INITQ", process_name="P", **shared)
        define(members, "SCHEDULE", "S", **OF_GROUP)
        members.perform("QM1", "monitor", Open(object_name="INITQ", options=OpenOption.INPUT_SHARED.value))
        yield members
    finally:
        members.close()


@pytest.mark.parametrize("anew", ["altered", "defined again"])
def test_a_schedule_of_the_group_begins_anew_after_a_clock_that_was_a_year_ahead(group, anew):
    assert hours(group, 2) == 2
    group._clock.wall_ahead_ms = 365 * DAY
    group.advance(2000)
    group._clock.wall_ahead_ms = 0
    hours(group, 1)
    assert hours(group, 2) == 0
    if anew == "altered":
        again = {"every_s": HOUR // 1000, "qsg_disp": "group"}
        group.command("QM1", Alter(object_type="SCHEDULE", name="S", attributes=again))
    else:
        group.command("QM1", Delete(object_type="SCHEDULE", name="S", qsg_disp="group"))
        group.advance(1000)
        define(group, "SCHEDULE", "S", **OF_GROUP)
    assert hours(group, 3) == 3


@pytest.mark.parametrize(("days", "kept"), [(300, {"S", "GONE"}), (500, {"S"})])
def test_the_group_forgets_a_deleted_schedule_after_more_than_a_year(group, days, kept):
    define(group, "SCHEDULE", "GONE", **OF_GROUP)
    assert hours(group, 1) == 2
    group.command("QM1", Delete(object_type="SCHEDULE", name="GONE", qsg_disp="group"))
    group._clock.wall_ahead_ms = days * DAY
    group.advance(2000)
    definition = group._q_mgrs["QM1"].manager.housekeeping._store.local_queue("INITQ").definition
    assert set(definition.moments) == kept


def test_a_full_initiation_queue_leaves_a_dead_letter_that_outlives_a_restart_and_is_sent_back_for_its_moment():
    def lies(q_name: str) -> MessageDescriptor:
        with mq.connect() as qm, qm.open(q_name, "browse") as queue:
            (message,) = queue.browse()
        return message.descriptor

    with InMemory() as mq:
        mq.mqsc(f"""
            DEFINE QLOCAL(DEAD)
            ALTER QMGR DEADQ(DEAD)
            ALTER QLOCAL({INITIATION_Q}) MAXDEPTH(0)
        """)
        with_schedule(mq, every=3600, queue="Q")
        mq.advance(HOUR)
        moment_ms = row(mq)["last_start_ms"]
        mq.restart()
        dead = lies("DEAD")
        mq.mqsc(f"ALTER QLOCAL({INITIATION_Q}) MAXDEPTH(1)")
        mq._command(RetryDeadLetters())
        returned = lies(INITIATION_Q)
        assert dead.persistence == returned.persistence == Persistence.PERSISTENT
        assert cause_of(dead) == cause_of(returned)
        told = {"occasion": "S", "triggered_ms": moment_ms, "schedule": "S", "moment_ms": moment_ms}
        assert told.items() <= cause_of(returned).items()


@pytest.mark.parametrize("repeats", ["", "r1"])
@pytest.mark.parametrize(("schedule", "moment_ms"), [("", 0), ("S", 5 * HOUR)])
def test_a_descriptor_made_from_a_record_says_what_the_run_repeats_and_which_moment_it_is_of(
    repeats, schedule, moment_ms
):
    run = NO_RUN.changed(occasion="S", schedule=schedule, moment_ms=moment_ms)
    cause = cause_of(descriptor_of(run, repeats, "QM1", bytes(24), 7))
    assert (cause["repeats"], cause.get("schedule", ""), cause.get("moment_ms", 0)) == (repeats, schedule, moment_ms)


def test_the_dead_letter_of_any_other_occasion_is_not_persistent_and_keeps_the_traceparent_of_the_put():
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with InMemory() as mq:
        mq.mqsc(f"""
            {OBJECTS}
            DEFINE QLOCAL(DEAD) DEFPSIST(YES)
            ALTER QMGR DEADQ(DEAD)
            ALTER QLOCAL({INITIATION_Q}) MAXDEPTH(0)
            ALTER QLOCAL(Q) TRIGGER TRIGTYPE(EVERY)
        """)
        with mq.connect() as qm, qm.open("DEAD", "input_shared") as dead:
            qm.put("Q", "1", traceparent=traceparent)
            descriptor = dead.get().descriptor
        assert (descriptor.persistence, descriptor.traceparent) == (Persistence.NOT_PERSISTENT, traceparent)
