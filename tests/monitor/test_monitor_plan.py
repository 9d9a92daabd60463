from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from trigmon.monitor.trigger_plan import DeadLetter, believed, process_for, read_trigger, startable
from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import FORMAT_STRING, FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, pack_tm
from trigmon.mq.enums import ApplType, MsgType, SparkShort, SparkStart
from trigmon.rules.runs.admission import as_recorded

TRIGGER = TriggerMessage(q_name="Q", process_name="P", appl_type=int(ApplType.UNIX), appl_id="load", user_data="u")
STARTED_HERE = {ApplType.UNIX, ApplType.SPARK}


def test_a_trigger_message_is_read_as_it_was_written():
    assert read_trigger(MessageDescriptor(format=FORMAT_TRIGGER), pack_tm(TRIGGER)) == TRIGGER


@pytest.mark.parametrize(
    ("message_format", "data", "why"),
    [
        (FORMAT_STRING, pack_tm(TRIGGER), "its format is MQSTR"),
        ("", pack_tm(TRIGGER), "its format is blank"),
        (FORMAT_TRIGGER, pack_tm(TRIGGER)[:-1], "684 bytes, not 683"),
        (FORMAT_TRIGGER, b"TMC " + pack_tm(TRIGGER)[4:], "begins with b'TMC '"),
        (FORMAT_TRIGGER, b"TM  \2" + pack_tm(TRIGGER)[5:], "version 2"),
        (FORMAT_TRIGGER, b"", "not 0"),
        (FORMAT_TRIGGER, pack_tm(replace(TRIGGER, trigger_data="a\x1bb")), "trigger_data holds a control character"),
    ],
)
def test_what_is_no_trigger_message_is_dead_lettered_with_266(message_format, data, why):
    verdict = read_trigger(MessageDescriptor(format=message_format), data)
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == 266
    assert why in verdict.why


@pytest.mark.parametrize("appl_type", [ApplType.UNKNOWN, ApplType.CICS, ApplType.JAVA, 70_000])
def test_an_application_type_that_is_not_started_here_is_dead_lettered_with_267(appl_type):
    trigger = TriggerMessage(q_name="Q", process_name="P", appl_type=int(appl_type), appl_id="load")
    verdict = startable(trigger, STARTED_HERE)
    assert verdict is not None
    assert verdict.reason == 267
    assert "UNIX (6), SPARK (65536)" in verdict.why
    assert startable(TRIGGER, STARTED_HERE) is None


def test_the_trigger_message_says_what_to_start_and_the_definition_adds_what_it_has_no_field_for():
    definition = {"appl_id": "changed since", "user_data": "changed", "instances": 3, "spark_master": "local[2]"}
    process = process_for(TRIGGER, definition)
    assert (process.appl_id, process.user_data, process.instances) == ("load", "u", 3)
    assert process.spark_master == "local[2]"


def test_a_run_is_started_as_its_process_was_when_it_was_recorded():
    fields = {"spark_start": SparkStart.CONNECT, "spark_short": SparkShort.YES, "spark_driver_memory": "2g"}
    defined = Process(name="P", appl_id="load", user_data="u", instances=3, **fields)
    recorded = msgspec.json.decode(msgspec.json.encode(as_recorded(defined)))
    process = process_for(TRIGGER, recorded)
    assert {name: getattr(process, name) for name in fields} == fields
    assert process.spark_start is SparkStart.CONNECT


BY_Q_MGR = MessageDescriptor(format=FORMAT_TRIGGER, put_appl_type=int(ApplType.QMGR))
BY_ANYBODY = MessageDescriptor(format=FORMAT_TRIGGER, put_appl_type=int(ApplType.UNIX), user_identifier="mallory")
DEFINED = {"appl_type": "spark", "appl_id": "job.py", "env_data": "e", "user_data": "d", "instances": 3}
QUEUE = {"name": "Q", "process_name": "P"}


def test_a_report_of_the_queue_manager_carries_a_strangers_words_and_is_not_believed():
    report = replace(BY_Q_MGR, msg_type=int(MsgType.REPORT))
    message = believed(report, replace(TRIGGER, appl_id="rm -r"), DEFINED, QUEUE)
    assert message.appl_id == DEFINED["appl_id"]


def test_what_the_queue_manager_wrote_is_believed_whatever_is_defined_now():
    assert believed(BY_Q_MGR, TRIGGER, DEFINED, QUEUE) == TRIGGER
    assert believed(BY_Q_MGR, TRIGGER, None, None) == TRIGGER
    assert believed(BY_Q_MGR, TRIGGER, DEFINED, {"name": "Q", "process_name": "ANOTHER"}) == TRIGGER


def test_of_what_anybody_else_wrote_the_definition_says_what_runs():
    message = believed(BY_ANYBODY, replace(TRIGGER, appl_id="rm -r", env_data="x", trigger_data="t"), DEFINED, QUEUE)
    ours = TriggerMessage(q_name="Q", process_name="P", trigger_data="t", appl_type=int(ApplType.SPARK))
    assert message == replace(ours, appl_id="job.py", env_data="e", user_data="d")


@pytest.mark.parametrize(
    ("expected", "definition", "queue", "reason", "why"),
    [
        ({}, None, QUEUE, 266, "process P is not defined here"),
        ({"process_name": ""}, None, QUEUE, 266, "it names no process"),
        ({"q_name": "../../passwd"}, DEFINED, None, 2085, "no local queue '../../passwd' is defined here"),
        ({"q_name": ""}, DEFINED, None, 2085, "no local queue '' is defined here"),
        ({}, DEFINED, {"name": "Q", "process_name": "P2"}, 266, "queue Q names process P2, not P"),
        ({}, DEFINED, {"name": "Q", "process_name": ""}, 266, "queue Q names process none, not P"),
    ],
)
def test_what_anybody_else_wrote_starts_nothing_but_the_process_of_its_queue(expected, definition, queue, reason, why):
    verdict = believed(BY_ANYBODY, replace(TRIGGER, **expected), definition, queue)
    assert isinstance(verdict, DeadLetter)
    assert (verdict.reason, verdict.why) == (reason, f"put by mallory, not by the queue manager, and {why}")


def test_a_trigger_message_without_a_process_here_runs_on_its_own_fields():
    process = process_for(TRIGGER, None)
    assert (process.appl_id, process.instances, process.working_directory) == ("load", 0, "")


def test_what_another_version_recorded_of_a_definition_keeps_no_run_from_being_started():
    for recorded in ({"instances": "many"}, {"colour": "red"}, {"coalesce": 9}):
        assert process_for(TRIGGER, recorded).appl_id == "load"
