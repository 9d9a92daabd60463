"""Schedules and watches are objects as others: defined, altered, listed, paused, exported and deleted."""

from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.definitions.apply_plan import plan
from trigmon.definitions.definition_files import DefinitionError, read_text
from trigmon.definitions.to_yaml import yaml_text
from trigmon.mq.calls import Alter, Define, Delete, Display, Pause, Resume
from trigmon.mq.errors import AttrValueError, CommandFailed, ObjectAlreadyExists, UnknownObjectName
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.mqsc_dump import script
from trigmon.testing import InMemory

YAML = """
- schedule: NIGHTLY
  cron: "0 2 * * *"
  timezone: Europe/Berlin
  queue: ORDERS
  only_if: messages
  missed: skip
- schedule: OFTEN
  every: 15m
  process: TOTAL
- watch: INCOMING
  directory: /srv/in
  pattern: "*.csv"
  quiet: 30s
  queue: ORDERS
  content: body
"""


def shown(qm: InProcess, object_type: str) -> dict[str, dict[str, object]]:
    return {str(row["name"]): row for row in qm.rows(object_type)}


def test_a_file_defines_schedules_and_watches_by_their_words():
    qm = InProcess()
    for step in plan(read_text(YAML), qm.rows()):
        qm(step.call)
    schedules, watches = shown(qm, "SCHEDULE"), shown(qm, "WATCH")
    nightly = schedules["NIGHTLY"]
    assert (nightly["cron"], nightly["timezone"], nightly["q_name"]) == ("0 2 * * *", "Europe/Berlin", "ORDERS")
    assert (nightly["only_if"], nightly["missed"]) == ("messages", "skip")
    assert (schedules["OFTEN"]["every_s"], schedules["OFTEN"]["missed"]) == (900, "once")
    assert (watches["INCOMING"]["quiet_s"], watches["INCOMING"]["content"]) == (30, "body")


def test_what_is_exported_as_yaml_and_as_mqsc_loads_back_equal():
    here = InProcess()
    for step in plan(read_text(YAML), here.rows()):
        here(step.call)
    by_yaml, by_mqsc = InProcess(), InProcess()
    for step in plan(read_text(yaml_text(here.rows())), by_yaml.rows()):
        by_yaml(step.call)
    for command in read_script("\n".join(script(here.rows()))):
        for call in command.calls:
            by_mqsc(call)
    assert by_yaml.rows() == here.rows() == by_mqsc.rows()


def test_prune_deletes_a_schedule_that_no_file_names_and_before_its_queue():
    qm = InProcess()
    qm(Define(object_type="QLOCAL", name="Q"))
    qm(Define(object_type="SCHEDULE", name="S", attributes={"every": 60, "queue": "Q"}))
    steps = plan([], qm.rows(), prune=True)
    assert [(step.action, step.object_type, step.name) for step in steps] == [
        ("delete", "SCHEDULE", "S"),
        ("delete", "QLOCAL", "Q"),
    ]


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"queue": "Q"}, "give CRON or EVERY"),
        ({"queue": "Q", "cron": "0 2 * * *", "every": 5}, "give CRON or EVERY"),
        ({"cron": "0 2 * * *"}, "give QUEUE, whose process is started, or PROCESS"),
        ({"cron": "0 2 * * *", "queue": "Q", "process": "P"}, "give QUEUE, whose process is started, or PROCESS"),
        ({"cron": "0 2 * *", "queue": "Q"}, "a line has 5 fields"),
        ({"cron": "0 2 30 2 *", "queue": "Q"}, "there is no such day in any year"),
        ({"cron": "0 2 * * 8", "queue": "Q"}, "give 0 to 7 or sun to sat"),
        ({"cron": "0 2 * * *", "queue": "Q", "timezone": "Berlin"}, "IANA time zone database"),
        ({"every": 60, "queue": "Q", "timezone": "Europe/Berlin"}, "TIMEZONE goes with CRON"),
        ({"every": 60, "process": "P", "only_if": "messages"}, "it goes with QUEUE"),
    ],
)
def test_a_schedule_that_could_start_nothing_is_refused_with_the_way_out(attributes, why):
    with pytest.raises(AttrValueError, match=why):
        InProcess()(Define(object_type="SCHEDULE", name="S", attributes=attributes))


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"queue": "Q"}, r"DIRECTORY\( \): give an absolute path"),
        ({"queue": "Q", "directory": "in"}, "give an absolute path"),
        ({"queue": "Q", "directory": "/in", "done": "done"}, r"DONE\(done\): give an absolute path"),
        ({"directory": "/in"}, "give QUEUE"),
        ({"queue": "Q", "directory": "/in", "pattern": "a/*"}, "give a file name"),
    ],
)
def test_a_watch_that_could_put_nothing_is_refused_with_the_way_out(attributes, why):
    with pytest.raises(AttrValueError, match=why):
        InProcess()(Define(object_type="WATCH", name="W", attributes=attributes))


def test_a_file_is_refused_at_a_wrong_value_with_its_line():
    with pytest.raises(DefinitionError, match=r"<text>:2: SCHEDULE S: every_s must be .* 15m"):
        read_text("- schedule: S\n  every: soon\n")


def test_names_of_schedules_queues_and_processes_are_apart():
    qm = InProcess()
    qm(Define(object_type="QLOCAL", name="A"))
    qm(Define(object_type="PROCESS", name="A"))
    qm(Define(object_type="SCHEDULE", name="A", attributes={"every": 60, "queue": "A"}))
    qm(Define(object_type="WATCH", name="A", attributes={"directory": "/in", "queue": "A"}))
    with pytest.raises(ObjectAlreadyExists):
        qm(Define(object_type="SCHEDULE", name="A", attributes={"every": 60, "queue": "A"}))
    qm(Delete(object_type="SCHEDULE", name="A"))
    assert len(shown(qm, "WATCH")) == 1
    with pytest.raises(UnknownObjectName):
        qm(Alter(object_type="SCHEDULE", name="A", attributes={"missed": "all"}))


@pytest.mark.parametrize("what", ["schedule", "watch"])
def test_a_pause_of_a_schedule_or_a_watch_is_shown_and_goes_with_it_and_holds_no_run_of_that_name(what):
    with InMemory() as mq:
        mq.mqsc("DEFINE PROCESS(A) APPLICID('x')\nDEFINE QLOCAL(A) PROCESS(A)")
        attributes = {"queue": "A"} | ({"every": 60} if what == "schedule" else {"directory": "/in"})
        mq.define("A", what.upper(), **attributes)
        command = mq._command
        command(Pause(what=what, name="A", reason="not now"))
        assert row_of(command, what.upper())["paused"].startswith(f"{what} A paused by root since ")
        assert row_of(command, "PROCESS")["paused"] == row_of(command, "QLOCAL")["paused"] == ""
        mq.restart()
        assert "not now" in row_of(command, what.upper())["paused"]
        command(Resume(what=what, name="A"))
        with pytest.raises(CommandFailed, match="is not paused"):
            command(Resume(what=what, name="A"))
        command(Pause(what=what, name="A"))
        command(Delete(object_type=what.upper(), name="A"))
        with pytest.raises(UnknownObjectName):
            command(Pause(what=what, name="A"))
        mq.define("A", what.upper(), **attributes)
        assert row_of(command, what.upper())["paused"] == ""


def row_of(command, object_type: str) -> dict[str, str]:
    return next(row for row in command(Display(object_type=object_type)).rows if row["name"] == "A")
