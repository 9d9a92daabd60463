from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.mq.calls import Open, Put
from trigmon.mq.enums import OpenOption
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.script import run

SETUP = """
DEF QL(W.ONE) TRIGGER TRIGTYPE(DEPTH) DESCR('first of all') MAXDEPTH(10) INITQ(I) DEFPSIST(YES)
DEF QL(W.TWO) DESCR('second') MAXDEPTH(20) PUT(DISABLED)
DEF QA(W.ALIAS) TARGET(W.ONE)
DEF PRO(W.P) APPLTYPE(SPARK)
DEF PRO(W.R) APPLTYPE(UNIX) APPLICID('/bin/true')
"""


@pytest.fixture(scope="module")
def qm() -> InProcess:
    made = InProcess()
    assert run(SETUP.splitlines(), made, lambda line: None, "QM1") == 0
    made(Put(q_name="W.ONE", data=b"x"))
    made(Open(object_name="W.ONE", options=int(OpenOption.INPUT_SHARED)))
    return made


def names(qm: InProcess, command: str) -> list[str]:
    """The objects that a DISPLAY shows, without the head of their names."""
    said: list[str] = []
    run([command], qm, said.append, "QM1")
    heads = [
        line.split("(")[1].split(")")[0] for line in said if line.startswith(("   QUEUE(", "   PROCESS(", "   CONN("))
    ]
    return [name.removeprefix("W.") for name in heads]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("CURDEPTH GT 0", ["ONE"]),
        ("CURDEPTH GE 1", ["ONE"]),
        ("CURDEPTH EQ 0", ["TWO"]),
        ("CURDEPTH NE 0", ["ONE"]),
        ("CURDEPTH LT 1", ["TWO"]),
        ("CURDEPTH LE 0", ["TWO"]),
        ("MAXDEPTH GT 9", ["ONE", "TWO"]),
        ("MAXDEPTH LT 20", ["ONE"]),
        ("TRIGTYPE EQ DEPTH", ["ONE"]),
        ("TRIGTYPE NE DEPTH", ["TWO"]),
        ("PUT EQ DISABLED", ["TWO"]),
        ("DEFPSIST EQ YES", ["ONE"]),
        ("TRIGGER EQ TRIGGER", ["ONE"]),
        ("TRIGGER EQ YES", ["ONE"]),
        ("TRIGGER NE NOTRIGGER", ["ONE"]),
        ("NOTRIGGER EQ NOTRIGGER", ["TWO"]),
        ("DESCR EQ 'second'", ["TWO"]),
        ("DESCR NE 'second'", ["ALIAS", "ONE"]),
        ("DESCR LK 'first*'", ["ONE"]),
        ("DESCR NL 'first*'", ["ALIAS", "TWO"]),
        ("DESCR GT 'first of all'", ["TWO"]),
        ("DESCR LT 'second'", ["ALIAS", "ONE"]),
        ("INITQ EQ ' '", ["TWO"]),
        ("INITQ GT ' '", ["ONE"]),
        ("TARGET LK W.*", ["ALIAS"]),
        ("TARGQ EQ W.ONE", ["ALIAS"]),
        ("CRDATE EQ '2026-01-01'", ["ALIAS", "ONE", "TWO"]),
        ("ALTDATE LT '2026-01-01'", []),
    ],
)
def test_a_condition_chooses(qm: InProcess, condition: str, found: list[str]):
    assert names(qm, f"DIS Q(W.*) WHERE({condition})") == found


def test_a_condition_chooses_among_connections(qm: InProcess):
    assert len(names(qm, "DIS CONN(*) WHERE(APPLTAG EQ 'test')")) == 1
    assert names(qm, "DIS CONN(*) WHERE(APPLTAG EQ 'other')") == []


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("DIS PRO(W.*) WHERE(APPLTYPE EQ SPARK)", ["P"]),
        ("DIS PRO(W.*) WHERE(APPLTYPE EQ 6)", ["R"]),
        ("DIS PRO(*) WHERE(APPLICID LK '/bin*')", ["R"]),
        ("DIS QS(W.*) WHERE(CURDEPTH GT 0)", ["ONE"]),
        ("DIS QS(W.*) WHERE(UNCOM EQ NO)", ["ONE", "TWO"]),
        ("DIS QS(W.*) WHERE(MSGAGE GE 0)", ["ONE", "TWO"]),
        ("DIS QS(W.*) WHERE(MSGAGE GT 0)", []),
        ("DIS CONN(*) WHERE(PID GT 1)", []),
        ("DIS QS(W.*) TYPE(HANDLE) WHERE(INPUT EQ SHARED)", ["ONE"]),
        ("DIS QS(W.*) TYPE(HANDLE) WHERE(INPUT NE SHARED)", []),
        ("DIS QS(W.*) TYPE(HANDLE) WHERE(PID GT 0)", ["ONE"]),
        ("DIS QS(W.*) TYPE(HANDLE) WHERE(APPLTAG LK 'te*')", ["ONE"]),
        ("DIS QL(W.*) WHERE(CURDEPTH GE 0) TYPE(QL)", ["ONE", "TWO"]),
        ("DIS Q(W.*) WHERE(GET EQ ENABLED) TYPE(QA)", ["ALIAS"]),
    ],
)
def test_conditions_go_with_every_display_of_several(qm: InProcess, command: str, found: list[str]):
    assert names(qm, command) == found


def test_what_a_condition_looks_at_is_shown(qm: InProcess):
    said: list[str] = []
    run(["DIS QL(W.*) WHERE(CURDEPTH GT 0)"], qm, said.append, "QM1")
    assert said[5:8] == [
        "AMQ8409I: Display Queue details.",
        "   QUEUE(W.ONE)                            TYPE(QLOCAL)",
        "   CURDEPTH(1)",
    ]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("WHERE", "takes an attribute, an operator and a value"),
        ("WHERE(CURDEPTH)", "takes an attribute, an operator and a value"),
        ("WHERE(CURDEPTH GT 0 1)", "takes an attribute, an operator and a value"),
        ("WHERE(CURDEPTH IS 0)", "compared by LT GT EQ NE LE GE, not by IS"),
        ("WHERE(CURDEPTH LK '1*')", "compared by LT GT EQ NE LE GE, not by LK"),
        ("WHERE(CURDEPTH GT MANY)", "a number is wanted, not MANY"),
        ("WHERE(TRIGTYPE GT FIRST)", "compared by EQ NE, not by GT"),
        ("WHERE(TRIGTYPE EQ SECOND)", "TRIGTYPE is NONE or FIRST"),
        ("WHERE(DESCR LK 'a')", "ends in an asterisk"),
        ("WHERE(DESCR CT 'a')", "CT is about lists, and DESCR is none"),
        ("WHERE(CURDEPHT GT 0)", "did you mean CURDEPTH"),
        ("WHERE(CLUSTER EQ C)", "there are no clusters here"),
        ("WHERE(TYPE EQ QLOCAL)", "cannot be asked WHERE(TYPE"),
        ("WHERE(UNCOM GT 0)", "cannot be asked WHERE(UNCOM"),
    ],
)
def test_a_condition_that_cannot_be_kept_is_refused_and_never_left_out(where: str, said: str):
    (command,) = read_script(f"DIS Q(*) {where}")
    assert command.error is not None
    assert command.amq == 8569
    assert command.is_syntax_error
    assert said in command.error.about


def test_one_condition_only_and_none_on_the_queue_manager():
    assert read_script("DIS Q(*) WHERE(CURDEPTH GT 0) WHERE(MAXDEPTH GT 0)")[0].amq == 8411
    assert read_script("DIS QMGR WHERE(TRIGINT GT 0)")[0].is_syntax_error
