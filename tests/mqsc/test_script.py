from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.in_process import InProcess
from trigmon.mq.calls import Call, Get, Open, Put
from trigmon.mq.enums import OpenOption
from trigmon.mq.errors import ConnectionBroken
from trigmon.mq.replies import Reply
from trigmon.mqsc.reply_text import in_columns
from trigmon.mqsc.script import run


@pytest.fixture
def qm() -> InProcess:
    return InProcess()


def play(qm: InProcess, script: str) -> tuple[int, list[str]]:
    said: list[str] = []
    code = run(script.splitlines(keepends=True), qm, said.append, "QM1")
    return code, said


def answer(qm: InProcess, command: str) -> list[str]:
    """What stands between the echo of one command and the counts."""
    said = play(qm, command)[1]
    begin = max(at for at, line in enumerate(said) if line[6:8] == " :")
    return said[begin + 1 : -3]


def test_a_session_is_introduced_echoed_and_counted(qm: InProcess):
    code, said = play(qm, "* a comment\nDEFINE QLOCAL(A) +\n  TRIGGER\nEND\nPING QMGR\n")
    assert code == 0
    assert said[1:] == [
        "Starting MQSC for queue manager QM1.",
        "",
        "",
        "       : * a comment",
        "     1 : DEFINE QLOCAL(A) +",
        "       :   TRIGGER",
        "AMQ8006I: trigmon queue created.",
        "     2 : END",
        "One MQSC command read.",
        "No commands have a syntax error.",
        "All valid MQSC commands were processed.",
    ]


def test_the_counts_tell_wrong_commands_from_those_that_failed(qm: InProcess):
    code, said = play(qm, "DEF QL(A)\nDEF QL(A)\nDEF QL(A) X\nDEL QL(B)\n")
    assert code == 10
    assert said[-3:] == [
        "4 MQSC commands read.",
        "One command has a syntax error.",
        "2 valid MQSC commands could not be processed.",
    ]


def test_every_kind_of_queue_is_defined_altered_shown_and_deleted(qm: InProcess):
    assert answer(qm, "DEF QR(R) RNAME(FAR) RQMNAME(QM2) XMITQ(X)") == ["AMQ8006I: trigmon queue created."]
    assert answer(qm, "DEF QMODEL(M) DEFTYPE(PERMDYN) MAXDEPTH(7)") == ["AMQ8006I: trigmon queue created."]
    assert answer(qm, "ALT QREMOTE(R) XMITQ(Y)") == ["AMQ8008I: trigmon queue changed."]
    assert answer(qm, "ALT QM(M) TRIGGER") == ["AMQ8008I: trigmon queue changed."]
    assert answer(qm, "DIS QR(R) RNAME XMITQ")[1:] == [
        "   QUEUE(R)                                TYPE(QREMOTE)",
        "   RNAME(FAR)                              XMITQ(Y)",
    ]
    assert answer(qm, "DIS QUEUE(M) TYPE(QMODEL) DEFTYPE TRIGGER MAXDEPTH")[1:] == [
        "   QUEUE(M)                                TYPE(QMODEL)",
        "   DEFTYPE(PERMDYN)                        MAXDEPTH(7)",
        "   TRIGGER",
    ]
    assert answer(qm, "DIS QR(M)") == ["AMQ8147E: trigmon object M not found."]
    assert answer(qm, "DEL QR(M)")[0] == "AMQ8151E: trigmon object M has a different type."
    assert answer(qm, "DEF QL(R)")[0] == "AMQ8151E: trigmon object R has a different type."
    assert answer(qm, "DEL QR(R)") == answer(qm, "DEL QM(M)") == ["AMQ8007I: trigmon queue deleted."]


def test_replace_resets_what_is_not_named_and_keeps_the_messages(qm: InProcess):
    play(qm, "ALT QL(SYSTEM.DEFAULT.LOCAL.QUEUE) MAXDEPTH(77)\nDEF QL(Q) DESCR('old') MAXDEPTH(5) TRIGGER")
    qm(Put(q_name="Q", data=b"x"))
    assert answer(qm, "DEF QL(Q) DEFPRTY(3) REPLACE") == ["AMQ8006I: trigmon queue created."]
    assert answer(qm, "DIS QL(Q) CURDEPTH DEFPRTY DESCR MAXDEPTH TRIGGER")[2:] == [
        "   CURDEPTH(1)                             DEFPRTY(3)",
        "   DESCR( )                                MAXDEPTH(77)",
        "   NOTRIGGER",
    ]


def test_like_takes_what_is_not_named_from_another_object_of_the_kind(qm: InProcess):
    play(qm, "DEF QL(Q) DESCR('theirs') MAXDEPTH(5)\nDEF QL(N) LIKE(Q) MAXDEPTH(6)\nDEF QA(A) TARGET(Q)")
    assert answer(qm, "DIS QL(N) DESCR MAXDEPTH")[2:] == ["   DESCR(theirs)                           MAXDEPTH(6)"]
    assert answer(qm, "DEF QL(O) LIKE(A)")[0] == "AMQ8151E: The LIKE object has a different type."
    assert answer(qm, "DEF QL(N) LIKE(A) NOREPLACE")[0] == "AMQ8150E: trigmon object N already exists."


def test_what_mq_would_understand_and_trigmon_cannot_do_is_no_syntax_error(qm: InProcess):
    code, said = play(qm, "DIS CHANNEL(*)\n")
    assert code == 10
    assert said[-2:] == ["No commands have a syntax error.", "One valid MQSC command could not be processed."]


def test_a_wrong_verb_is_answered_with_the_right_ones(qm: InProcess):
    said = answer(qm, "DEFN QL(A)")
    assert said[:2] == ["AMQ8405I: Syntax error detected at or near end of command segment below:-", "DEFN"]
    assert "did you mean DEFINE" in said[2]
    assert said[3:6] == ["AMQ8426I: Valid MQSC commands are:", "", "    ALTER"]


def test_a_wrong_parameter_is_answered_with_the_allowed_ones(qm: InProcess):
    said = answer(qm, "DEF QL(A) TRIGGER TRIGTYP(FIRST) SHARE")
    assert said[1] == "DEF QL(A) TRIGGER TRIGTYP(FIRST)"
    assert said[3:6] == ["AMQ8427I: Valid syntax for the MQSC command:", "", "  DEFINE QLOCAL( name )"]
    assert "   [ TRIGTYPE( NONE | FIRST | EVERY | DEPTH ) ]" in said
    assert "   [ TRIGGER | NOTRIGGER ]" in said
    assert said[-1] == "   [ REPLACE | NOREPLACE ]"


def test_comments_inside_a_command_are_echoed_in_their_place(qm: InProcess):
    said = play(qm, "DEF QL(A) +\n* CRDATE(2026-01-05) +\n\n SHARE\n\nPING QMGR\n")[1]
    assert [line for line in said if line[6:8] == " :" or line.startswith("       :")] == [
        "     1 : DEF QL(A) +",
        "       : * CRDATE(2026-01-05) +",
        "       : ",
        "       :  SHARE",
        "       : ",
        "     2 : PING QMGR",
    ]


def test_bytes_that_are_no_text_are_refused_and_shown_escaped(qm: InProcess):
    line = b"DEF QL(A) DESCR('caf\xe9')".decode(errors="surrogateescape")
    code, said = play(qm, f"{line}\nDEF QL(B)\n")
    assert code == 10
    assert r"     1 : DEF QL(A) DESCR('caf\udce9')" in said
    assert any("no UTF-8" in line for line in said)
    assert "AMQ8006I: trigmon queue created." in said


def test_a_script_of_nothing_is_well(qm: InProcess):
    code, said = play(qm, "* nothing\n\n")
    assert code == 0
    assert said[-3] == "No MQSC commands read."


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("DEF PRO(P)", "AMQ8010I: trigmon process created."),
        ("DEF QL(Q)", "AMQ8150E: trigmon object Q already exists."),
        ("DEF QL(Q) REPLACE", "AMQ8006I: trigmon queue created."),
        ("ALT QL(Q) TRIGGER", "AMQ8008I: trigmon queue changed."),
        ("ALT QMGR TRIGINT(1)", "AMQ8005I: trigmon queue manager changed."),
        ("ALT PRO(SYSTEM.DEFAULT.PROCESS) DESCR(X)", "AMQ8012I: trigmon process changed."),
        ("CLEAR QL(Q)", "AMQ8022I: trigmon queue cleared."),
        ("DEL QL(Q)", "AMQ8007I: trigmon queue deleted."),
        ("DEL QL(NONE)", "AMQ8147E: trigmon object NONE not found."),
        ("DEL QA(Q)", "AMQ8151E: trigmon object Q has a different type."),
        ("DEF QL(N) LIKE(NONE)", "AMQ8147E: trigmon object NONE not found."),
        ("DIS QL(NONE)", "AMQ8147E: trigmon object NONE not found."),
        ("DIS AUTHREC", "AMQ8147E: trigmon object AUTHREC not found."),
        (
            "DIS AUTHREC PROFILE(N) OBJTYPE(QUEUE)",
            "AMQ8147E: trigmon object AUTHREC PROFILE(N) OBJTYPE(QUEUE) not found.",
        ),
        ("DEL AUTHREC PROFILE(N) OBJTYPE(QUEUE) GROUP('g')", "AMQ8147E: trigmon object AUTHREC not found."),
        ("DIS QS(Q) TYPE(HANDLE)", "AMQ8565W: Queue status not found."),
        (
            "REFRESH QMGR TYPE(EXPIRY)",
            "CSQ9022I: REFRESH QMGR normal completion; expired messages are being discarded.",
        ),
        ("DIS CHANNEL(*)", "AMQ8101E: trigmon error 2298 has occurred."),
        ("DIS QL(*) WHERE(CURDEPTH LK 1*)", "AMQ8569E: Error in filter specification."),
        ("DIS QL(*) WHERE(CURDEPTH GT 7)", "AMQ8147E: trigmon object * not found."),
        ("PING QMGR", "AMQ8415I: Ping trigmon Queue Manager command complete."),
        ("DEF QL(N) TRIGDPTH(0)", "AMQ8412E: Numeric Range Error."),
        ("DEF QL(N) TRIGGER TRIGGER", "AMQ8411E: Duplicate Keyword Error."),
        ("DEF QL('N N')", "AMQ8424E: Error detected in a name keyword."),
        ("DEF XX(N)", "AMQ8405I: Syntax error detected at or near end of command segment below:-"),
    ],
)
def test_each_answer_has_mqs_number(qm: InProcess, command: str, first: str):
    play(qm, "DEF QL(Q)")
    assert answer(qm, command)[0] == first


def test_a_queue_in_use_or_not_empty_is_not_deleted(qm: InProcess):
    play(qm, "DEF QL(Q)\nDEF QL(R)")
    qm(Open(object_name="Q", options=int(OpenOption.OUTPUT)))
    qm(Put(q_name="R", data=b"x"))
    assert answer(qm, "DEL QL(Q)")[0] == "AMQ8148E: trigmon object Q in use."
    assert answer(qm, "CLEAR QL(Q)")[0] == "AMQ8148E: trigmon object Q in use."
    assert answer(qm, "DEL QL(R)")[0] == "AMQ8143E: trigmon queue R not empty."
    assert answer(qm, "DEL QL(R) PURGE")[0] == "AMQ8007I: trigmon queue deleted."


def test_a_queue_of_more_than_a_slice_is_cleared_whole(qm: InProcess):
    play(qm, "DEF QL(Q)")
    for _ in range(600):
        qm(Put(q_name="Q", data=b"x"))
    assert answer(qm, "CLEAR QL(Q)") == ["AMQ8022I: trigmon queue cleared."]
    assert "   CURDEPTH(0)" in answer(qm, "DIS QS(Q) CURDEPTH")


def test_a_display_has_name_and_type_first_and_the_rest_by_the_alphabet(qm: InProcess):
    play(qm, "DEF QL(TI.LOG) TRIGTYPE(DEPTH) DESCR('a')")
    assert answer(qm, "DIS QL(TI.*) TRIGGER DESCR TRIGTYPE CURDEPTH") == [
        "AMQ8409I: Display Queue details.",
        "   QUEUE(TI.LOG)                           TYPE(QLOCAL)",
        "   CURDEPTH(0)                             DESCR(a)",
        "   NOTRIGGER                               TRIGTYPE(DEPTH)",
    ]


def test_a_generic_display_shows_names_and_types(qm: InProcess):
    play(qm, "DEF QL(TI.LOG)\nDEF QA(TI.ALIAS) TARGET(TI.LOG)")
    assert answer(qm, "DIS QUEUE(TI*)") == [
        "AMQ8409I: Display Queue details.",
        "   QUEUE(TI.ALIAS)                         TYPE(QALIAS)",
        "AMQ8409I: Display Queue details.",
        "   QUEUE(TI.LOG)                           TYPE(QLOCAL)",
    ]
    assert answer(qm, "DIS QUEUE(TI*) TYPE(QA)")[1:] == ["   QUEUE(TI.ALIAS)                         TYPE(QALIAS)"]


def test_blank_values_show_as_a_blank(qm: InProcess):
    play(qm, "DEF QL(Q)")
    assert answer(qm, "DIS QL(Q) INITQ")[-1] == "   INITQ( )"


def test_times_are_dates_with_hyphens_and_times_with_dots(qm: InProcess):
    play(qm, "DEF QL(Q)")
    assert answer(qm, "DIS QL(Q) CRDATE CRTIME")[-1] == "   CRDATE(2026-01-01)                      CRTIME(00.00.00)"


def test_process_and_queue_manager_have_their_own_heads(qm: InProcess):
    play(qm, "DEF PRO(P) APPLICID('/bin/true')")
    assert answer(qm, "DIS PRO(P) APPLICID APPLTYPE") == [
        "AMQ8407I: Display Process details.",
        "   PROCESS(P)                              APPLICID(/bin/true)",
        "   APPLTYPE(UNIX)",
    ]
    assert answer(qm, "DIS QMGR TRIGINT MAXUMSGS") == [
        "AMQ8408I: Display Queue Manager details.",
        "   QMNAME(QM1)                             MAXUMSGS(10000)",
        "   TRIGINT(999999999)",
    ]


def test_queue_status_shows_the_last_put_and_get_and_a_reset_what_was_counted(qm: InProcess):
    play(qm, "DEF QL(Q)")
    handle = qm(Open(object_name="Q", options=int(OpenOption.INPUT_SHARED))).handle
    for _ in range(3):
        qm(Put(q_name="Q", data=b"m"))
    qm(Get(handle=handle))
    assert answer(qm, "DIS QS(Q) LPUTDATE LPUTTIME LGETTIME MSGAGE QTIME")[1:] == [
        "   QUEUE(Q)                                TYPE(QUEUE)",
        "   LGETTIME(00.00.00)                      LPUTDATE(2026-01-01)",
        "   LPUTTIME(00.00.00)                      MSGAGE(0)",
        "   QTIME(0,0)",
    ]
    counted = ["CSQM201I: RESET QSTATS details.", "   QSTATS(Q)                               HIQDEPTH(3)"]
    assert answer(qm, "RESET QSTATS(Q)") == [
        *counted,
        "   MSGSIN(3)                               MSGSOUT(1)",
        "   RESETINT(0)",
    ]
    assert answer(qm, "RESET QSTATS(Q)")[1:3] == [
        "   QSTATS(Q)                               HIQDEPTH(2)",
        "   MSGSIN(0)                               MSGSOUT(0)",
    ]
    assert answer(qm, "RESET QSTATS(NONE)") == ["AMQ8147E: trigmon object NONE not found."]


def test_the_queue_manager_and_its_connections_have_a_status(qm: InProcess):
    assert answer(qm, "DIS QMSTATUS") == [
        "AMQ8705I: Display Queue Manager Status Details.",
        "   QMNAME(QM1)                             CONNS(1)",
        "   STARTDA(2026-01-01)                     STARTTI(00.00.00)",
        "   STATUS(RUNNING)",
    ]
    shown = answer(qm, "DIS CONN(*) ALL")
    number = shown[1].split("(")[1].split(")")[0]
    assert shown == [
        "AMQ8276I: Display Connection details.",
        f"   CONN({number})                  TYPE(CONN)",
        "   APPLTAG(test)                           APPLTYPE(USER)",
        "   PID(1)                                  UOWSTATE(NONE)",
        "   USERID(root)",
    ]
    assert answer(qm, f"DIS CONN({number}) PID")[2:] == ["   PID(1)"]
    assert answer(qm, "DIS CONN(FFFF)") == ["AMQ8147E: trigmon object FFFF not found."]


def test_queue_status_counts_and_names_who_has_it_open(qm: InProcess):
    play(qm, "DEF QL(Q)")
    qm(Open(object_name="Q", options=int(OpenOption.INPUT_EXCLUSIVE | OpenOption.BROWSE)))
    assert answer(qm, "DIS QS(Q)") == [
        "AMQ8450I: Display queue status details.",
        "   QUEUE(Q)                                TYPE(QUEUE)",
        "   CURDEPTH(0)                             CURFSIZE( )",
        "   CURMAXFS( )                             IPPROCS(1)",
        "   LGETDATE( )                             LGETTIME( )",
        "   LPUTDATE( )                             LPUTTIME( )",
        "   MEDIALOG( )                             MONQ(LOW)",
        "   MSGAGE(0)                               OPPROCS(0)",
        "   QTIME( , )                              UNCOM(NO)",
    ]
    assert answer(qm, "DIS QS(Q) TYPE(HANDLE)") == [
        "AMQ8450I: Display queue status details.",
        "   QUEUE(Q)                                TYPE(HANDLE)",
        "   APPLTAG(test)                           APPLTYPE(USER)",
        "   ASTATE(NONE)                            BROWSE(YES)",
        "   INPUT(EXCL)                             INQUIRE(NO)",
        "   OUTPUT(NO)                              PID(1)",
        "   SET(NO)                                 USERID(root)",
    ]


def test_handles_may_be_narrowed_to_those_that_read_or_write(qm: InProcess):
    play(qm, "DEF QL(Q)")
    qm(Open(object_name="Q", options=int(OpenOption.INPUT_SHARED)))
    qm(Open(object_name="Q", options=int(OpenOption.OUTPUT)))
    assert len(answer(qm, "DIS QS(Q) TYPE(HANDLE) OPENTYPE(ALL) INPUT")) == 6
    assert answer(qm, "DIS QS(Q) TYPE(HANDLE) OPENTYPE(INPUT) INPUT")[2:] == ["   INPUT(SHARED)"]
    assert answer(qm, "DIS QS(Q) TYPE(HANDLE) OPENTYPE(OUTPUT) INPUT")[2:] == ["   INPUT(NO)"]


def test_a_pair_too_wide_for_its_column_has_a_line_of_its_own():
    wide = f"DESCR({'x' * 40})"
    assert in_columns(["A(1)", wide, "B(2)", "C(3)"]) == [
        "   A(1)",
        f"   {wide}",
        f"   {'B(2)':<40}C(3)",
    ]


def test_commands_are_answered_as_they_come(qm: InProcess):
    said: list[str] = []

    def typed() -> Iterator[str]:
        yield "DEF QL(A) +\n"
        assert said[-1] == ""
        yield "TRIGGER\n"
        assert said[-1] == "AMQ8006I: trigmon queue created."
        yield "END\n"

    assert run(typed(), qm, said.append, "QM1") == 0


def test_a_broken_connection_ends_the_script_with_20():
    def ask(call: Call) -> Reply:
        raise ConnectionBroken("gone")

    said: list[str] = []
    assert run(["PING QMGR\n", "PING QMGR\n"], ask, said.append, "QM1") == 20
    assert sum(" : PING" in line for line in said) == 1
    assert "AMQ8146E: trigmon queue manager not available." in said
