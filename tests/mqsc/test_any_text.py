"""The reader against any text: it answers every command, raises nothing, and reads a cut text as the whole one."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.in_process import InProcess
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.script import run

DUMPS = Path(__file__).parent / "dumps"
LINES = [line for file in sorted(DUMPS.glob("*.mqsc")) for line in file.read_text("utf-8").splitlines()]
_ECHO = re.compile(r"^ *\d+ : ")
_ANSWER = re.compile(r"(AMQ\d{4}[IEW]|CSQ9022I|Skipped, )")

any_text = st.text(st.one_of(st.characters(), st.sampled_from("'()+-*;,\n \t\r\x00\x85\u2028\ud800")), max_size=200)
marks = st.text("'()+-*;,\n \t\r\x85\u2028\x1c\xa0A1", max_size=30)
# Words by which a text gets past the first look.
_PIECES = """
    DEFINE ALTER DELETE CLEAR DISPLAY PING REFRESH END SET START DEF ALT DIS QLOCAL QL QALIAS QREMOTE QMODEL PROCESS
    QMGR QUEUE QSTATUS CHANNEL AUTHREC TRIGGER NOTRIGGER TRIGDPTH DESCR WHERE TYPE ALL LIKE REPLACE FORCE PURGE TARGET
    APPLTYPE MAXDEPTH USAGE CLUSTER QSGDISP TARGTYPE CURDEPTH EXPIRY HANDLE OPENTYPE INPUT GT LK EQ ( ) (A) (A*) ('a
    b') (1) (-1) (99999999999999999999) ( ' '' ; + - * , (CURDEPTH~GT~0) (DESCR~LK~'a*') (TOPIC) (SHARED) ('²')
"""
pieces = st.sampled_from([piece.replace("~", " ") for piece in _PIECES.split()])
soup = st.lists(st.tuples(pieces, st.sampled_from(["", " ", "\n", " +\n ", " -\n", ";"])), max_size=12).map(
    lambda parts: "".join(piece + between for piece, between in parts)
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Some lines of a dump with a few characters taken out, changed or put in."""
    begin = draw(st.integers(0, len(LINES) - 1))
    text = "\n".join(LINES[begin : begin + draw(st.integers(1, 40))])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.text("'()+-*; A1\n", max_size=2)) + text[at + draw(st.integers(0, 3)) :]
    return text


def commands_of(text: str) -> list[Command]:
    return [c for c in read_script(text) if not c.ends]


@given(st.one_of(any_text, marks, soup, damaged()))
def test_any_text_is_answered_command_by_command(text: str):
    said: list[str] = []
    code = run(io.StringIO(text), InProcess(), said.append, "QM1")
    assert code in (0, 10)
    "\n".join(said).encode()
    echoes = [at for at, line in enumerate(said) if _ECHO.match(line)]
    ends = any(c.ends for c in read_script(text))
    for at, following in pairwise([*echoes, len(said)]):
        is_end = ends and at == echoes[-1]
        assert is_end or any(_ANSWER.match(line) for line in said[at:following]), said[at:following]
    count = len(echoes) - ends
    assert said[-3] == f"{ {0: 'No', 1: 'One'}.get(count, count) } MQSC command{'s' * (count != 1)} read."


@given(st.one_of(any_text, marks, soup, damaged()))
def test_what_is_wrong_names_a_line_of_the_text(text: str):
    for command in commands_of(text):
        if command.error is not None:
            line = re.match(r"line (\d+), near ", command.error.about)
            assert line, command.error.about
            assert 1 <= int(line.group(1)) <= text.count("\n") + 1
            assert not command.calls
        else:
            assert command.calls or command.skipped
        for skipped in command.skipped:
            assert 1 <= skipped.line <= text.count("\n") + 1
            assert skipped.why


WHOLE = [
    "DEFINE QLOCAL('a.b') TRIGGER DESCR('it''s (a) *day* + night - and; more') TRIGDPTH( 7 ) REPLACE",
    "ALTER QMGR TRIGINT(1000) DEADQ('SYSTEM.DEAD.LETTER.QUEUE') CLUSTER('C') FORCE",
    "DISPLAY QUEUE('a*') WHERE(DESCR LK 'x y*') CURDEPTH, TRIGTYPE ALL",
    "DEFINE PROCESS(P) APPLICID('/bin/run  --a  ''b c''') USERDATA('   ') APPLTYPE(UNIX)",
    "SET AUTHREC PROFILE('A.**') GROUP('ops') OBJTYPE(QUEUE) AUTHADD(GET,PUT)",
    "DEFINE QALIAS(X) TARGQ(",
    "DEFINE QLOCAL(A) NOT.A.WORD",
]
_KEPT = ("verb", "noun", "name", "calls", "amq", "shows", "where", "open_type")


@given(st.sampled_from(WHOLE), st.data())
def test_a_command_cut_anywhere_is_the_same_command(whole: str, data: st.DataObject):
    (expected,) = read_script(whole)
    cuts = data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=5))
    text, last = "", 0
    for cut in [*sorted(cuts), len(whole)]:
        text += whole[last:cut]
        last = cut
        if cut == len(whole):
            break
        rest = whole[cut:]
        # "-" goes on in column one, where a line of blanks or one with a star says nothing; "+" at the first non-blank.
        if rest[0] == "*" or rest[0] == " " or (data.draw(st.booleans())):
            if rest[0] == " ":
                text, last = text + rest[0], cut + 1
                while whole[last] == " ":
                    text, last = text + " ", last + 1
            text += "+\n" + data.draw(st.sampled_from([" ", "   ", "\t"]))
        else:
            text += "-\n"
        text += (
            data.draw(st.sampled_from(["", "* a comment ' ( ; +\n", "\n   \n"]))
            if not text.endswith((" ", "\t"))
            else ""
        )
    (found,) = read_script(text)
    assert {name: getattr(found, name) for name in _KEPT} == {name: getattr(expected, name) for name in _KEPT}
    assert [s.why for s in found.skipped] == [s.why for s in expected.skipped]
