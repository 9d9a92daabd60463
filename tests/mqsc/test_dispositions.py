"""QSGDISP in MQSC: whose an object is, said, shown, asked for, and held against what there is."""

from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.mq.calls import Clear, Define, Delete
from trigmon.mq.errors import AttrValueError, FunctionNotSupported, ParmConflict, ParmValueError
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.script import run

OBJECTS = """
DEFINE QLOCAL(S) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QLOCAL(OWN)
DEFINE QLOCAL(C) QSGDISP(GROUP)
DEFINE QALIAS(A) TARGET(S)
"""


def one(text):
    (command,) = read_script(text)
    return command


def shown(text):
    qm, said = InProcess(in_group=True), []
    assert run([*OBJECTS.splitlines(), text], qm, said.append, "QM1") == 0, said
    names = [line.split("(")[1].split(")")[0] for line in said if line.lstrip().startswith("QUEUE(")]
    return [name for name in names if not name.startswith("SYSTEM.")], "\n".join(said)


def test_whose_a_queue_is_is_defined_and_displayed():
    (call,) = one("DEFINE QLOCAL(S) QSGDISP(shared) CFSTRUCT(APP1)").calls
    assert call == Define(object_type="QLOCAL", name="S", attributes={"qsg_disp": "SHARED", "cf_struc_name": "APP1"})
    _, text = shown("DISPLAY QLOCAL(S) QSGDISP CFSTRUCT")
    assert "QSGDISP(SHARED)" in text
    assert "CFSTRUCT(APP1)" in text


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("SHARED", ["S"]),
        ("QMGR", ["A", "OWN"]),
        ("COPY", ["C"]),
        ("PRIVATE", ["A", "C", "OWN"]),
        ("LIVE", ["A", "C", "OWN", "S"]),
        ("ALL", ["A", "C", "OWN", "S"]),
    ],
)
def test_a_display_may_be_of_some_only(asked, names):
    found, _ = shown(f"DISPLAY QUEUE(*) QSGDISP({asked})")
    assert found == names


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("DISPLAY QUEUE(*) QSGDISP(GROUP)", FunctionNotSupported),
        ("DISPLAY QUEUE(*) QSGDISP(OURS)", ParmValueError),
        ("DISPLAY QLOCAL(*) QSGDISP(SHARED) WHERE(CURDEPTH GT 0)", ParmConflict),
        ("DEFINE QALIAS(A) QSGDISP(SHARED)", AttrValueError),
        ("DELETE QLOCAL(A) QSGDISP(OURS)", ParmValueError),
    ],
)
def test_what_makes_no_sense_is_refused(text, error):
    assert isinstance(one(text).error, error)


def test_delete_and_clear_say_whose_they_mean():
    deleted, cleared, unsaid = read_script("DEL QL(A) QSGDISP(SHARED)\nCLEAR QL(A) QSGDISP(PRIVATE)\nDEL QA(A)")
    assert deleted.calls == (Delete(object_type="QLOCAL", name="A", qsg_disp="shared"),)
    assert cleared.calls == (Clear(q_name="A", qsg_disp="private"),)
    assert unsaid.calls == (Delete(object_type="QALIAS", name="A"),)
