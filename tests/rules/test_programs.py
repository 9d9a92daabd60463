"""What a process definition may say to start: refused when it is defined or altered, and not when it runs."""

import pytest

from tests.in_process import InProcess
from trigmon.mq.attributes import Process
from trigmon.mq.calls import Alter, Define
from trigmon.mq.errors import AttrValueError
from trigmon.rules.programs import faults

OPEN_QUOTE = "words as a shell splits them (no closing quotation)"
PROGRAM = "words of which the first is the program itself, no placeholder"
SCRIPT = "words of which the first is the PySpark file itself, no option and no placeholder"
WRONG = [
    ("unix", "appl_id", "APPLICID", "a 'b", OPEN_QUOTE),
    ("unix", "appl_id", "APPLICID", "a b\\", "words as a shell splits them (no escaped character)"),
    ("unix", "appl_id", "APPLICID", "{trigdata} x", PROGRAM),
    ("unix", "appl_id", "APPLICID", "/opt/{queue}.sh", PROGRAM),
    ("unix", "appl_id", "APPLICID", "'' x", PROGRAM),
    ("unix", "env_data", "ENVRDATA", "it's", OPEN_QUOTE),
    ("spark", "appl_id", "APPLICID", '"load.py', OPEN_QUOTE),
    ("spark", "appl_id", "APPLICID", "{userdata}", SCRIPT),
    ("spark", "appl_id", "APPLICID", "--version", SCRIPT),
    ("spark", "spark_conf", "SPKCONF", "a=1 b", "words of the form key=value, not 'b'"),
    ("spark", "spark_arguments", "SPKARGS", "--day 'one", OPEN_QUOTE),
]


def process(qm, name):
    (row,) = [row for row in qm.rows("PROCESS") if row["name"] == name]
    return row


@pytest.mark.parametrize(("kind", "name", "mqsc", "value", "wanted"), WRONG)
def test_what_could_not_be_started_is_refused_when_it_is_defined_or_altered(kind, name, mqsc, value, wanted):
    qm = InProcess()
    said = f"PROCESS(P) {mqsc}({value}): {name} must be {wanted}"
    with pytest.raises(AttrValueError) as refused:
        qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, name: value}))
    assert refused.value.about == said
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, "appl_id": "load"}))
    before = process(qm, "P")
    with pytest.raises(AttrValueError) as refused:
        qm(Alter(object_type="PROCESS", name="P", attributes={name: value}))
    assert refused.value.about == said
    assert process(qm, "P") == before


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("unix", {"appl_id": ""}),
        ("unix", {"appl_id": "load.sh 'two words' {trigdata}", "env_data": "tail &"}),
        ("unix", {"appl_id": "awk '{print}'", "spark_conf": "it's no matter"}),
        ("spark", {"appl_id": "load.py --queue {queue}", "spark_conf": "a=1 b='2 3'"}),
        ("WINDOWSNT", {"appl_id": "C:\\it's mine.exe", "env_data": "'"}),
        (70000, {"appl_id": "{queue}"}),
    ],
)
def test_a_blank_program_and_what_other_monitors_start_may_be_defined(kind, attributes):
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, **attributes}))
    assert {name: process(qm, "P")[name] for name in attributes} == attributes


def test_a_new_type_looks_at_everything_anew():
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": 70000, "appl_id": "it's"}))
    qm(Alter(object_type="PROCESS", name="P", attributes={"user_data": "u"}))
    with pytest.raises(AttrValueError, match="APPLICID"):
        qm(Alter(object_type="PROCESS", name="P", attributes={"appl_type": "unix"}))


def test_what_is_taken_from_another_process_is_looked_at_too():
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": 70000, "appl_id": "it's"}))
    with pytest.raises(AttrValueError, match="APPLICID"):
        qm(Define(object_type="PROCESS", name="Q", like="P", attributes={"appl_type": "unix"}))


def test_every_fault_is_told():
    told = dict(faults(Process(name="P", appl_id="'", env_data="'")))
    assert told == {"appl_id": OPEN_QUOTE, "env_data": OPEN_QUOTE}
