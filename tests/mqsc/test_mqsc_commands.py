from __future__ import annotations

import pytest

from trigmon.mq.calls import (
    Alter,
    Clear,
    Define,
    Delete,
    Display,
    DisplayConnections,
    DisplayHandles,
    Ping,
    QueueStatus,
    Refresh,
    ResetQueueStatistics,
    Status,
)
from trigmon.mq.errors import (
    AttrValueError,
    AttrValueFixed,
    FunctionNotSupported,
    MQError,
    ObjectNameError,
    ParmConflict,
    ParmMissing,
    ParmSyntaxError,
)
from trigmon.mqsc.commands import Command, read_script


def one(text: str) -> Command:
    (command,) = read_script(text)
    return command


def call(text: str) -> object:
    command = one(text)
    assert command.error is None, command.error
    (made,) = command.calls
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DEFINE QLOCAL(A)", Define(object_type="QLOCAL", name="A")),
        ("def ql(a)", Define(object_type="QLOCAL", name="A")),
        ("DEF QL('a')", Define(object_type="QLOCAL", name="a")),
        ("DEF QA(B) TARGQ(A)", Define(object_type="QALIAS", name="B", attributes={"base_q_name": "A"})),
        ("DEF QL(A) REPLACE LIKE(B)", Define(object_type="QLOCAL", name="A", replace=True, like="B")),
        ("DEF QL(A) NOREPLACE", Define(object_type="QLOCAL", name="A")),
        (
            "DEF PRO(P) APPLTYPE(DEF) APPLICID('/bin/true')",
            Define(object_type="PROCESS", name="P", attributes={"appl_type": "UNIX", "appl_id": "/bin/true"}),
        ),
        (
            "DEF PRO(P) APPLTYPE(SPARK) INSTANCES(1) SPKMASTER('local[2]')",
            Define(
                object_type="PROCESS",
                name="P",
                attributes={"appl_type": "SPARK", "instances": 1, "spark_master": "local[2]"},
            ),
        ),
        ("ALTER QMGR TRIGINT(1000)", Alter(object_type="QMGR", name="", attributes={"trigger_interval": 1000})),
        ("ALT QMGR DEADQ(' ') FORCE", Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": " "})),
        ("ALT QL(A) NOTRIGGER", Alter(object_type="QLOCAL", name="A", attributes={"trigger_control": "NOTRIGGER"})),
        ("DELETE QLOCAL(A) PURGE", Delete(object_type="QLOCAL", name="A", purge=True)),
        ("DEL QA(A)", Delete(object_type="QALIAS", name="A")),
        ("CLEAR QL(A)", Clear(q_name="A")),
        ("PING QMGR", Ping()),
        ("DISPLAY QUEUE(*)", Display(object_type="queue", name="*")),
        ("DIS Q(A*)", Display(object_type="queue", name="A*")),
        ("DIS Q('a*')", Display(object_type="queue", name="a*")),
        ("DIS QL(A)", Display(object_type="QLOCAL", name="A")),
        ("DIS PROCESS(P)", Display(object_type="PROCESS", name="P")),
        ("DIS QMGR", Display(object_type="QMGR", name="*")),
        ("DIS QS(A)", QueueStatus(q_name="A")),
        ("RESET QSTATS(A*)", ResetQueueStatistics(q_name="A*")),
        ("DIS CONN(*)", DisplayConnections()),
        ("DIS QMSTATUS ALL", Status()),
        ("DIS QSTATUS(A) TYPE(HANDLE) ALL", DisplayHandles(q_name="A")),
    ],
)
def test_a_command_is_a_call(text: str, expected: object):
    assert call(text) == expected


def test_a_display_of_one_name_shows_all_and_of_a_generic_one_the_names():
    assert one("DIS QL(A)").shows is None
    assert one("DIS QL(A*)").shows == ()
    assert one("DIS QL(A*) ALL").shows is None
    assert one("DIS QL(A*) TRIGTYPE CURDEPTH").shows == ("TRIGTYPE", "CURDEPTH")


def test_a_display_may_be_narrowed_to_a_type():
    assert one("DIS Q(*) TYPE(QALIAS)").q_type == "QALIAS"
    assert one("DIS Q(*) TYPE").shows == ("TYPE",)


def test_end_ends_the_script():
    assert [c.verb for c in read_script("PING QMGR\nEND\nPING QMGR")] == ["PING", "END"]
    assert [c.ends for c in read_script("quit")] == [True]


def test_a_wrong_command_stops_no_other():
    first, second = read_script("DEFINE QLOCL(A)\nDEFINE QLOCAL(A)")
    assert isinstance(first.error, ParmSyntaxError)
    assert second.calls


@pytest.mark.parametrize(
    ("text", "kind", "amq", "said"),
    [
        ("DEFIN QL(A)", None, 0, ""),
        ("DEFN QL(A)", ParmSyntaxError, 8405, "did you mean DEFINE"),
        ("DEFINE", ParmMissing, 8405, "QLOCAL or QALIAS or QREMOTE or QMODEL or PROCESS"),
        ("DEF QL", ParmMissing, 8405, "needs a name"),
        ("DEF QL(A B)", ObjectNameError, 8424, "holds no blanks"),
        ("DEF QL('A B')", ObjectNameError, 8424, "1 to 48"),
        ("DEF QL(A*)", ObjectNameError, 8424, "1 to 48"),
        (f"DEF QL({'A' * 49})", ObjectNameError, 8424, "1 to 48"),
        ("DEF QUEUE(A)", ParmSyntaxError, 8405, "not QUEUE"),
        ("CLEAR QA(A)", ParmSyntaxError, 8405, "QLOCAL"),
        ("PING QMGR(A)", ParmSyntaxError, 8405, "takes no name"),
        ("DIS AUTHREC(A)", ParmSyntaxError, 8405, "takes no name: PROFILE("),
        ("DEF QL(A) TRIGTYP(FIRST)", ParmSyntaxError, 8405, "did you mean TRIGTYPE"),
        ("DEF QL(A) TRIGDPTH(0)", AttrValueError, 8412, "1 to 999999999"),
        ("DEF QL(A) TRIGDPTH(X)", AttrValueError, 8412, "1 to 999999999"),
        ("DEF QL(A) TRIGTYPE(SECOND)", AttrValueError, 8405, "FIRST or EVERY"),
        (f"DEF QL(A) DESCR('{'x' * 65}')", AttrValueError, 8413, "64 bytes"),
        ("DEF QL(A) PROCESS('a b')", AttrValueError, 8424, "a name"),
        ("DEF QL(A) TRIGGER NOTRIGGER", ParmConflict, 8411, "NOTRIGGER"),
        ("DEF QL(A) MAXDEPTH(1) MAXDEPTH(1)", ParmConflict, 8411, "MAXDEPTH"),
        ("DEF QA(A) TARGQ(B) TARGET(C)", ParmConflict, 8411, "TARGET"),
        ("DEF QL(A) TRIGGER(YES)", ParmSyntaxError, 8405, "takes no value"),
        ("DEF QL(A) TRIGTYPE", ParmMissing, 8405, "needs a value"),
        ("DEF QL(A) DESCR(A B)", ParmSyntaxError, 8405, "one value"),
        ("DIS QL(A) CURDEPTH(1)", ParmSyntaxError, 8405, "takes no value"),
        ("DEL QA(A) PURGE", ParmSyntaxError, 8405, "no parameter PURGE"),
        ("ALT QMGR MAXPRTY(9)", AttrValueFixed, 8412, "cannot be changed"),
        ("END NOW", ParmSyntaxError, 8405, "NOW"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_number(text: str, kind: type[MQError] | None, amq: int, said: str):
    command = one(f"\n{text}")
    assert type(command.error) is (kind or type(None))
    assert command.amq == amq
    if command.error is not None:
        assert "line 2, near" in command.error.about
        assert said in command.error.about


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("DEF PRO(A) QSGDISP(GROUP)", "QSGDISP"),
        ("DIS CHANNEL(*)", "CHANNEL"),
        ("DIS CHS(*) ALL", "CHS"),
        ("PING CHANNEL(A)", "CHANNEL"),
        ("MOVE QLOCAL(A) TOQLOCAL(B)", "MOVE"),
        ("STOP QMGR", "STOP"),
    ],
)
def test_what_must_not_be_left_undone_in_silence_is_refused_by_name(text: str, word: str):
    command = one(text)
    assert isinstance(command.error, FunctionNotSupported)
    assert not command.is_syntax_error
    assert command.amq == 8101
    assert f" {word} " in command.error.about


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("REFRESH QMGR TYPE(EXPIRY)", "*"),
        ("REF QMGR TYPE(EXPIRY) OBJECT(A*)", "A*"),
        ("REFRESH QMGR TYPE(EXPIRY) CMDSCOPE(' ')", "*"),
    ],
)
def test_the_refresh_of_expiry_names_the_queues_to_look_through(text: str, name: str):
    assert (one(text).error, one(text).verb, one(text).calls) == (None, "REFRESH", (Refresh(name=name),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("REFRESH QMGR", "needs TYPE(EXPIRY)"),
        ("REFRESH QMGR TYPE", "needs TYPE(EXPIRY)"),
        ("REFRESH QMGR TYPE(EXPIRY) NOW", "no parameter NOW"),
        ("REFRESH QLOCAL(A)", "not QLOCAL"),
        ("REFRESH QMGR TYPE(EXPIRY) OBJECT('A B')", "1 to 48"),
        ("DIS QS(A) OPENTYPE(INPUT)", "goes with TYPE(HANDLE)"),
        ("DIS QS(A) TYPE(HANDLE) OPENTYPE(BROWSE)", "ALL or INPUT or OUTPUT"),
        ("DIS QS(A) TYPE(QUEUES)", "QUEUE or HANDLE"),
        ("DIS QS(A) TYPE(HANDLE) CURDEPTH", "no parameter CURDEPTH"),
        ("START LOCOMOTIVE(A)", "nothing that START is about"),
    ],
)
def test_a_wrong_word_is_reported(text: str, said: str):
    error = one(text).error
    assert error is not None
    assert said in error.about


def test_force_asks_for_nothing_more():
    assert one("ALT QL(A) USAGE(XMITQ) FORCE").calls == one("ALT QL(A) USAGE(XMITQ)").calls


def test_a_queue_status_may_be_narrowed_to_those_who_read_or_write():
    assert one("DIS QS(A) TYPE(HANDLE) OPENTYPE(INPUT)").open_type == "INPUT"
    assert one("DIS QS(A) TYPE(HANDLE)").open_type == "ALL"


@pytest.mark.parametrize("said", ["'+-1'", "'\u00b2'", "'--1'", "'\u0663'", "'1e3'", f"'{'9' * 5000}'", "' '", "''"])
def test_what_only_looks_like_a_number_is_refused(said: str):
    assert one(f"DEF QL(A) TRIGDPTH({said})").amq == 8412
    assert one(f"DEF QL(A) TRIGTYPE({said})").amq == 8405


def test_the_error_of_a_continued_command_names_the_line_of_the_word():
    error = one("DEF QL(A) +\n  TRIGGER +\n* a comment\n  TRIGTYP(FIRST)").error
    assert error is not None
    assert error.about.startswith("line 4, near TRIGTYP(FIRST)")


def test_a_dump_of_mq_reads_back():
    dump = """
ALTER QMGR +
* ALTDATE(2026-01-05) +
   TRIGINT(60000) +
   DEADQ('SYSTEM.DEAD.LETTER.QUEUE') +
   FORCE
DEFINE QLOCAL('SHOP.ORDERS.IN') +
   DESCR('orders waiting for the nightly job') +
*  CRDATE(2026-01-05) +
   PROCESS('SHOP.ORDERS.PROC') +
   TRIGGER +
   TRIGTYPE(DEPTH) +
   TRIGDPTH(50) +
   REPLACE
DEFINE PROCESS('SHOP.ORDERS.PROC') +
   APPLTYPE(UNIX) +
   ENVRDATA('&') +
   REPLACE
"""
    commands = read_script(dump)
    assert [(c.verb, c.noun, c.name, c.line) for c in commands] == [
        ("ALTER", "QMGR", "", 2),
        ("DEFINE", "QLOCAL", "SHOP.ORDERS.IN", 7),
        ("DEFINE", "PROCESS", "SHOP.ORDERS.PROC", 15),
    ]
    assert all(c.error is None for c in commands)
