from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.definitions.apply_plan import Change, plan
from trigmon.definitions.definition_files import DefinitionError, read_text
from trigmon.mq.calls import Alter, Define, Delete, Open

FILE = """
- qlocal: A
  trigger_type: depth
  trigger_depth: 5
- process: P
  working_directory: ""
- qmgr:
  trigger_interval: 1000
"""


def applied(qm: InProcess, text: str, **options: bool) -> list[tuple[str, str]]:
    steps = plan(read_text(text), qm.rows(), **options)
    for step in steps:
        qm(step.call)
    return [(step.action, step.name) for step in steps]


def test_what_is_not_there_is_defined_and_what_differs_is_altered():
    assert applied(InProcess(), FILE) == [("define", "A"), ("define", "P"), ("alter", "QM1")]


def test_what_is_as_wanted_needs_nothing():
    qm = InProcess()
    applied(qm, FILE)
    assert applied(qm, FILE) == []


def test_only_what_the_file_names_is_touched():
    qm = InProcess()
    applied(qm, FILE)
    qm(Alter(object_type="QLOCAL", name="A", attributes={"trigger_depth": 7, "max_q_depth": 9}))
    (step,) = plan(read_text(FILE), qm.rows())
    assert step.changes == (Change("trigger_depth", 7, 5),)
    assert step.call == Alter(object_type="QLOCAL", name="A", attributes={"trigger_depth": 5})
    qm(step.call)
    (row,) = (row for row in qm.rows("QLOCAL") if row["name"] == "A")
    assert (row["trigger_depth"], row["max_q_depth"]) == (5, 9)


def test_queues_of_every_type_are_made_and_altered_by_a_file():
    text = """
- qlocal: XQ
  usage: xmitq
- qremote: R
  remote_q_name: ORDERS
  RQMNAME: QM9
  xmitq: XQ
  default_persistence: persistent
- qmodel: M
  definition_type: permdyn
  trigger_control: on
"""
    qm = InProcess()
    assert applied(qm, text) == [("define", "XQ"), ("define", "R"), ("define", "M")]
    assert applied(qm, text) == []
    assert applied(qm, text.replace("permdyn", "temporary_dynamic").replace("QM9", "QM8")) == [
        ("alter", "R"),
        ("alter", "M"),
    ]


def test_prune_takes_away_all_but_what_programs_made():
    qm = InProcess()
    applied(qm, "- qmodel: M\n  DEFTYPE: PERMDYN\n- qlocal: A\n- qremote: R\n  RNAME: X\n")
    qm(Open(object_name="M", options=16, dynamic_q_name="MADE"))
    assert applied(qm, "- qlocal: A", prune=True) == [("delete", "R"), ("delete", "M")]
    assert [row["name"] for row in qm.rows("QLOCAL") if not row["name"].startswith("SYSTEM.")] == ["A", "MADE"]


def test_a_start_defines_and_undoes_no_alter():
    qm = InProcess()
    applied(qm, FILE)
    qm(Alter(object_type="QLOCAL", name="A", attributes={"trigger_depth": 7}))
    qm(Delete(object_type="PROCESS", name="P"))
    assert applied(qm, FILE, create=True) == [("define", "P")]


def test_values_travel_as_words():
    (step, *_) = plan(read_text("- qlocal: A\n  trigger_control: on\n  DEFSOPT: EXCL"), InProcess().rows())
    assert step.call == Define(
        object_type="QLOCAL",
        name="A",
        attributes={"trigger_control": "on", "def_input_open_option": "input_exclusive"},
    )


def test_prune_deletes_what_no_file_names_but_system_objects():
    qm = InProcess()
    applied(qm, "- qlocal: OLD\n- qalias: OLD.ALIAS\n  TARGET: OLD\n- process: OLD\n- qlocal: KEPT")
    assert applied(qm, "- qlocal: KEPT", prune=True) == [
        ("delete", "OLD.ALIAS"),
        ("delete", "OLD"),
        ("delete", "OLD"),
    ]
    assert {r["name"] for r in qm.rows("queue", "PROCESS") if not r["name"].startswith("SYSTEM.")} == {"KEPT"}


def test_a_name_of_another_type_is_refused_with_its_place():
    qm = InProcess()
    applied(qm, "- qlocal: A")
    with pytest.raises(DefinitionError, match="<text>:1: A exists as a QLOCAL, not a QALIAS"):
        plan(read_text("- qalias: A"), qm.rows())


def test_a_file_for_another_queue_manager_is_refused():
    qm = InProcess("QM1")
    assert plan(read_text("- qmgr: QM1\n  maxhands: 5"), qm.rows())
    with pytest.raises(DefinitionError, match="for queue manager QM2, and this one is QM1"):
        plan(read_text("- qmgr: QM2\n  maxhands: 5"), qm.rows())
