"""What MQ has and trigmon has not: skipped by its name with its line and reason, and nothing of ours is among it."""

from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Clear, Define, Delete
from trigmon.mq.errors import FunctionNotSupported, ParmSyntaxError
from trigmon.mqsc import keywords, unsupported
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.script import run


def one(text: str) -> Command:
    (command,) = read_script(text)
    return command


VERBS = ("DEFINE", "ALTER", "DELETE", "SET", "START", "STOP", "RESET", "REFRESH")
LEFT_OUT = [
    (verb, noun)
    for verb in VERBS
    for noun in sorted(unsupported.NOUNS)
    if f"{verb} {noun}" not in unsupported.OURS_BUT_NOT_AS_MQSC
]


@pytest.mark.parametrize(("verb", "noun"), LEFT_OUT)
def test_a_command_about_what_is_not_here_is_skipped_whole(verb: str, noun: str):
    command = one(f"\n{verb} {noun}('a.B') WHAT(EVER) REPLACE")
    (skipped,) = command.skipped
    assert (command.error, command.calls) == (None, ())
    assert (skipped.line, skipped.what, skipped.parameter) == (2, f"{verb} {noun}('a.B')", "")
    assert skipped.why == unsupported.NOUNS[noun]


@pytest.mark.parametrize("noun", sorted(unsupported.NOUNS))
def test_a_question_about_what_is_not_here_is_refused_since_no_answer_would_look_like_none(noun: str):
    command = one(f"DISPLAY {noun}(*)")
    assert isinstance(command.error, FunctionNotSupported)
    assert unsupported.NOUNS[noun] in command.error.about


def test_nothing_of_ours_is_among_it():
    for kind, table in ATTRIBUTES.items():
        for attribute in table.values():
            assert unsupported.attribute(kind.name, attribute.mqsc) is None, attribute.mqsc
    assert not set(unsupported.NOUNS) & set(keywords.NOUNS)
    assert not unsupported.VERBS & set(keywords.VERBS)


@pytest.mark.parametrize(
    ("noun", "words_of_mq"),
    [
        (
            "QLOCAL(A)",
            "ACCTQ CLUSTER CUSTOM DEFBIND INDXTYPE SCOPE STGCLASS STREAMQ",
        ),
        ("QALIAS(A)", "CLUSNL DEFREADA PROPCTL SCOPE"),
        ("QREMOTE(A)", "CLUSTER CLWLPRTY DEFPRESP SCOPE"),
        ("QMODEL(A)", "DISTL MONQ NPMCLASS RETINTVL"),
        ("PROCESS(A)", "CMDSCOPE QSGDISP"),
        ("QMGR", "ACCTINT CHLAUTH CLWLLEN CONNAUTH MARKINT PSMODE REPOS SSLKEYR STATINT SUITEB XRCAP"),
    ],
)
def test_an_attribute_that_is_not_here_is_skipped_and_the_rest_is_done(noun: str, words_of_mq: str):
    for word in words_of_mq.split():
        value = "QMGR" if word == "QSGDISP" else "X9"
        command = one(f"ALTER {noun} DESCR('x') +\n  {word}({value})")
        assert command.error is None
        assert [c.attributes for c in command.calls] == [{"description": "x"}]
        (skipped,) = command.skipped
        assert (skipped.line, skipped.what, skipped.parameter) == (2, noun, f"{word}({value})")


@pytest.mark.parametrize(
    ("parameter", "is_default"),
    [
        ("CLUSTER(' ')", True),
        ("CLUSTER()", True),
        ("CLUSTER('')", True),
        ("CLUSTER(C)", False),
        ("MAXFSIZE(DEFAULT)", True),
        ("MAXFSIZE(2)", False),
        ("INDXTYPE(none)", True),
        ("INDXTYPE(MSGID)", False),
        ("CUSTOM('CAPEXPRY(600)')", False),
    ],
)
def test_mqs_default_is_recognized_since_nothing_is_lost_with_it(parameter: str, is_default: bool):
    (skipped,) = one(f"DEF QL(A) {parameter}").skipped
    assert skipped.is_default is is_default


def test_an_alias_of_a_topic_is_skipped_whole_and_one_of_a_queue_is_defined():
    assert one("DEF QA(A) TARGET(T) TARGTYPE(TOPIC)").calls == ()
    assert one("DEF QA(A) TARGET(T) TARGTYPE(QUEUE)").calls == (
        Define(object_type="QALIAS", name="A", attributes={"base_q_name": "T"}),
    )


def test_a_word_that_nobody_knows_stays_an_error():
    assert isinstance(one("DEF QL(A) CLUSTRE(C)").error, ParmSyntaxError)
    assert isinstance(one("DEF CHANEL(A)").error, ParmSyntaxError)
    assert isinstance(one("SET NOTHING(A)").error, ParmSyntaxError)
    assert isinstance(one("DEF PRO(A) CLUSTER(C)").error, ParmSyntaxError)


def test_a_skipped_word_twice_is_an_error_as_any_word_is():
    assert one("DEF QL(A) CLUSTER(C) CLUSTER(C)").amq == 8411


def test_where_a_command_is_to_run_is_skipped_and_it_runs_here():
    deleted, cleared = read_script("DEL QL(A) CMDSCOPE(QM2) AUTHREC(NO) PURGE\nCLEAR QL(A) QSGDISP(PRIVATE)")
    assert deleted.calls == (Delete(object_type="QLOCAL", name="A", purge=True),)
    assert [s.parameter for s in deleted.skipped] == ["CMDSCOPE(QM2)", "AUTHREC(NO)"]
    assert cleared.calls == (Clear(q_name="A", qsg_disp="private"),)


def test_what_a_failed_command_would_have_skipped_is_listed_too():
    qm = InProcess()
    said: list[str] = []
    assert run(["DEF QL(A)", "DEF QL(A) CLUSTER(C)"], qm, said.append, "QM1") == 10
    assert said[-5:-3] == ["   line 2: QLOCAL(A) CLUSTER(C): there are no clusters here", ""]


def test_a_script_without_any_ends_without_a_list():
    said: list[str] = []
    run(["DEF QL(A)"], InProcess(), said.append, "QM1")
    assert not any("kipped" in line for line in said)


def test_a_display_shows_what_there_is_and_lists_what_is_not():
    said: list[str] = []
    assert run(["DIS QL(SYSTEM.CHANNEL.INITQ) CLUSTER USAGE"], InProcess(), said.append, "QM1") == 0
    assert "   USAGE(NORMAL)" in said
    assert "Skipped, line 1: QLOCAL(SYSTEM.CHANNEL.INITQ) CLUSTER: there are no clusters here" in said
