from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.errors import ParmSyntaxError
from trigmon.mqsc.lexer import parameters, statements


def texts(script: str) -> list[str]:
    return [statement.text for statement in statements(script)]


def values(command: str) -> dict[str, list[str] | None]:
    (statement,) = statements(command)
    return {p.keyword: None if p.values is None else [v.text for v in p.values] for p in parameters(statement)}


def test_a_line_is_a_command():
    assert texts("DEF QL(A)\nDEF QL(B)\n") == ["DEF QL(A)", "DEF QL(B)"]


def test_comments_and_blank_lines_say_nothing():
    assert texts("* hello\n\n   \nDEF QL(A)\n*DEF QL(B)") == ["DEF QL(A)"]


def test_only_a_star_in_column_one_begins_a_comment():
    assert texts(" DIS Q(*)") == ["DIS Q(*)"]


def test_plus_continues_at_the_first_non_blank():
    assert texts("DEF QL(A) +\n     TRIGGER") == ["DEF QL(A) TRIGGER"]


def test_minus_continues_at_column_one():
    assert texts("DEF QL(A)-\n  TRIGGER") == ["DEF QL(A)  TRIGGER"]


@pytest.mark.parametrize("script", ["DEF QL(A) DESCR('Fr+\n   ed')", "DEF QL(A) DESCR('Fr-\ned')"])
def test_continuation_may_cut_inside_quotes(script: str):
    assert values(script)["DESCR"] == ["Fred"]


def test_blanks_behind_the_continuation_mark_do_not_hide_it():
    assert texts("DEF QL(A) +   \n TRIGGER") == ["DEF QL(A) TRIGGER"]


def test_comments_and_blank_lines_may_stand_inside_a_continued_command():
    assert texts("DEF QL(A) +\n*  CRDATE(2026-01-05) +\n\n  TRIGGER") == ["DEF QL(A) TRIGGER"]


def test_a_semicolon_ends_a_command_even_after_plus():
    assert texts("DEF QL(A) +\n;\nDEF QL(B)") == ["DEF QL(A) ", "DEF QL(B)"]


def test_a_semicolon_inside_quotes_is_text():
    assert texts("DEF QL(A) DESCR('a;b'); DEF QL(B)") == ["DEF QL(A) DESCR('a;b')", " DEF QL(B)"]


@pytest.mark.parametrize("nothing", ["", " ", ",", "\t", "\x85", "\u2028", " , \x1c"])
def test_nothing_between_semicolons_is_no_command(nothing: str):
    assert texts(f"DEF QL(A);{nothing};DEF QL(B)") == ["DEF QL(A)", "DEF QL(B)"]


def test_each_command_of_a_line_knows_the_lines_of_its_own_words():
    first, second, third = statements("DEF +\n QL(A); DEF QL(B) +\n X; +\n DEF +\n QL(C)")
    assert [s.line for s in (first, second, third)] == [1, 2, 4]
    assert [first.line_at(first.text.index("QL")), second.line_at(second.text.index("X"))] == [2, 3]
    assert third.line_at(third.text.index("QL")) == 5


def test_keywords_and_unquoted_values_are_folded_and_quoted_ones_are_not():
    assert values("def ql(orders) descr('Orders of the day')") == {
        "DEF": None,
        "QL": ["ORDERS"],
        "DESCR": ["Orders of the day"],
    }


def test_two_quotes_are_one():
    assert values("ALT QL(A) DESCR('it''s')")["DESCR"] == ["it's"]


def test_blanks_and_commas_separate():
    assert values("DEF,QL ( A ),TRIGDPTH(  1 ) ,, TRIGGER") == {
        "DEF": None,
        "QL": ["A"],
        "TRIGDPTH": ["1"],
        "TRIGGER": None,
    }


@pytest.mark.parametrize("blank", ["( )", "()", "('')", "(' ')"])
def test_nothing_between_parentheses_is_blank(blank: str):
    assert [v.strip() for v in values(f"ALT QL(A) DESCR{blank}")["DESCR"] or [""]] == [""]


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("DEF QL(A) DESCR('abc", "a quote is not closed"),
        ("DEF QL(A", "a parenthesis is not closed"),
        ("DEF QL(A) DESCR(a(b))", "needs quotes"),
        ("DEF QL(A) DESCR(a=b)", "needs quotes: 'a=b'"),
        ("DEF QL(A) 'x'", "a word was expected"),
        ("DEF QL(A) )", "a word was expected"),
        ("DEF QL(A) +", "ends in the middle"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(command: str, near: str):
    with pytest.raises(ParmSyntaxError, match=near) as caught:
        values(f"\n{command}")
    assert "line 2" in str(caught.value)


def test_an_error_names_the_line_of_its_part_of_a_continued_command():
    with pytest.raises(ParmSyntaxError, match="line 3"):
        values("DEF QL(A) +\n TRIGGER +\n DESCR(a=b)")


@given(st.text("AB '()+-*;,\n", max_size=40))
def test_any_text_is_read_or_refused(script: str):
    for statement in statements(script):
        try:
            parameters(statement)
        except ParmSyntaxError:
            continue


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_any_quoted_text_is_itself(text: str):
    quoted = text.replace("'", "''")
    assert values(f"ALT QL(A) DESCR('{quoted}')")["DESCR"] == [text]


@pytest.mark.parametrize(
    ("head", "line"), [("DEF QL(A) DESCR('-", "0123456789" * 8 + "-"), ("DEF QL(A)-", " DESCR(X)-")]
)
def test_a_command_of_many_lines_takes_as_much_longer_as_it_has_lines(head, line):
    """It took time by their square: more than 40 s of a processor, where now it is about one."""
    script = "\n".join([head, *[line] * 200_000, "')"])
    began_s = time.process_time()
    (statement,) = statements(script)
    assert all(statement.line_at(at) > 1 for at in range(len(statement.text) // 2, len(statement.text), 1000))
    assert len(statement.marks) == 200_002
    assert time.process_time() - began_s < 15
