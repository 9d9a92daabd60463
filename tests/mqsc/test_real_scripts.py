"""Scripts in the style of those that MQ's users have: no valid command is a syntax error, and nothing is lost silently.

The scripts are our own. Each shows a deviation that was found with files of others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import InProcess
from trigmon.mq.calls import Display
from trigmon.mq.errors import FunctionNotSupported
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.script import run

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.mqsc"))


def one(text: str) -> Command:
    (command,) = read_script(text)
    return command


def play(*lines: str) -> tuple[int, str]:
    said: list[str] = []
    code = run(lines, InProcess(), said.append, "QM1")
    return code, "\n".join(said)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_each_command_of_a_script_is_done_or_skipped_by_name(script: Path):
    code, text = play(*script.read_text().splitlines())
    assert code == 0, text
    assert "No commands have a syntax error." in text
    assert "All valid MQSC commands were processed." in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_says_of_what_is_not_here_is_in_the_list_at_its_end(script: Path):
    commands = read_script(script.read_text())
    left = [skipped.what for command in commands for skipped in command.skipped]
    _, text = play(*script.read_text().splitlines())
    assert all(what in text.partition("Skipped, since they have no meaning here")[2] for what in left)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("DISPLAY QCLUSTER(*)", "clusters"),
        ("DISPLAY QC(*) CLUSQMGR", "clusters"),
        ("RESET QMGR TYPE(STATISTICS)", "RESET QSTATS"),
        ("DISPLAY CONN(*) TYPE(HANDLE)", "DISPLAY QSTATUS"),
        ("DISPLAY CHLAUTH(10.*.1) MATCH(RUNCHECK)", "channels"),
    ],
)
def test_a_question_without_an_answer_is_valid_and_says_why_it_has_none(command: str, word: str):
    read = one(command)
    assert isinstance(read.error, FunctionNotSupported)
    assert word in read.error.about
    assert not read.is_syntax_error


@pytest.mark.parametrize("value", ["+QMNAME+", "TO.+QMNAME+", "+AUTOCL+.+QMNAME+"])
def test_an_insert_is_a_value_without_quotes(value: str):
    assert one(f"DEFINE QLOCAL(A) DESCR({value})").calls[0].attributes == {"description": value}


@pytest.mark.parametrize(
    "command",
    [
        "DEFINE QLOCAL(A) DESCR(a:b)",
        "DEFINE QLOCAL(A) PROCESS(*ANY)x",
        "DEFINE QLOCAL(A) DESCR(+)",
        "ALTER QMGR DESCR(h(1414))",
        "DEFINE CHANNEL(C) CONNAME('open",
        "DEFINE CHANNEL(C) CONNAME(open",
        "DEFINE CHANEL(C) CONNAME(h(1414))",
    ],
)
def test_what_mq_refuses_of_our_objects_and_what_is_left_open_is_a_syntax_error_still(command: str):
    assert one(command).is_syntax_error


def test_words_are_shown_in_the_order_of_what_is_shown_and_ours_behind_mqs():
    _, text = play("DEFINE QLOCAL(A)", "DISPLAY QLOCAL(A) ALL")
    lines = [line for line in text.splitlines() if line.startswith("   ") and " : " not in line]
    words = [part.strip().partition("(")[0] for line in lines for part in (line[:43], line[43:]) if part]
    assert words.index("MSGDLVSQ") < words.index("NOTRIGGER") < words.index("OPPROCS")
    assert words[-4:] == ["BACKSTOP", "BOREQ", "MAXWAIT", "REARM"]
    assert words[2:-4] == sorted(words[2:-4])


def test_a_process_shows_what_mq_has_before_what_is_ours():
    _, text = play("DEFINE PROCESS(P) APPLICID('/bin/true')", "DISPLAY PROCESS(P) ALL")
    assert text.index("USERDATA(") < text.index("BREAKER(")


def test_ignstate_ignores_what_is_missing_and_nothing_else():
    code, text = play("DEFINE QALIAS(A)", "DELETE QLOCAL(A) IGNSTATE(YES)", "DELETE QLOCAL(B) IGNSTATE(NO)")
    assert code == 10
    assert "2 valid MQSC commands could not be processed." in text
    assert play("DELETE QLOCAL(B) IGNSTATE(YES)")[0] == 0


def test_the_monitoring_words_of_a_queues_status_are_asked_for_by_one_word():
    command = one("DISPLAY QSTATUS(A) MONITOR")
    assert set(command.shows or ()) == {
        *("LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME", "MONQ", "MSGAGE", "QTIME", "MEDIALOG")
    }
    assert not isinstance(command.calls[0], Display)


@pytest.mark.parametrize(
    "command",
    [
        "DISPLAY QUEUE(*) CLUSQT QMID CLUSTER",
        "DISPLAY QMGR AUTHEVSC OTELPCTL SCYCASE",
        "DISPLAY QMSTATUS LOGTYPE LOGPRIM CHKPTCNT",
        "DISPLAY CONN(*) TYPE(*) OBJNAME OBJTYPE CONNOPTS CMDSCOPE",
        "DISPLAY CONN(*) TYPE(ALL) ALL",
        "DISPLAY NAMELIST(*) QSGDISP(LIVE) NAMES",
        "DISPLAY NL(*) QSGDISP(COPY)",
    ],
)
def test_a_question_may_name_words_of_mqs_that_are_not_here(command: str):
    assert one(command).error is None
