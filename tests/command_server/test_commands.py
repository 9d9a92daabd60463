"""The commands of PCF, put as a program puts them, and read from the bytes of the replies."""

import re
from pathlib import Path

import pytest

from tests.command_server.commands import (
    BIG,
    command,
    escape,
    integer,
    integer_filter,
    integers,
    text,
    text_filter,
    texts,
)
from trigmon.mq.calls import Define, Open, Put
from trigmon.mq.enums import OpenOption
from trigmon.pcf.numbers import PcfCommand
from trigmon.pcf.pcf_commands import COMMANDS
from trigmon.pcf.texts import CODECS

CREATE, INQUIRE, CHANGE, DELETE, CLEAR, COPY = 11, 13, 8, 12, 9, 10
Q_NAME, Q_TYPE, DEPTH, MAXDEPTH, DESCR = 2016, 20, 3, 15, 2013
LOCAL = integer(Q_TYPE, 1)


def create(program, name, *parameters):
    return program.one(command(CREATE, text(Q_NAME, name), LOCAL, *parameters))


def test_a_queue_is_created_shown_changed_and_deleted(program):
    done = create(program, "A.QUEUE", integer(MAXDEPTH, 7), text(DESCR, "for a test"))
    assert (done.kind, done.command, done.sequence, done.control) == (2, CREATE, 1, 1)
    assert (done.comp_code, done.reason, done.values) == (0, 0, {})
    shown = program.one(command(INQUIRE, text(Q_NAME, "A.QUEUE")))
    assert shown.order[:2] == [Q_NAME, Q_TYPE]
    assert shown.order[2:] == sorted(shown.order[2:])
    assert (shown.values[Q_NAME], shown.values[Q_TYPE]) == ("A.QUEUE", 1)
    assert (shown.values[MAXDEPTH], shown.values[DESCR], shown.values[DEPTH]) == (7, "for a test", 0)
    assert len(shown.values[2004]) == 10
    program.one(command(CHANGE, text(Q_NAME, "A.QUEUE"), LOCAL, integer(24, 1), integer(28, 3), integer(29, 5)))
    shown = program.one(command(INQUIRE, text(Q_NAME, "A.QUEUE"), integers(1002, 24, 28, 29)))
    assert shown.values == {Q_NAME: "A.QUEUE", Q_TYPE: 1, 24: 1, 28: 3, 29: 5}
    assert program.one(command(DELETE, text(Q_NAME, "A.QUEUE"))).comp_code == 0
    gone = program.one(command(INQUIRE, text(Q_NAME, "A.QUEUE")))
    assert (gone.comp_code, gone.reason) == (2, 2085)


def test_a_generic_name_brings_a_message_an_object_and_the_last_says_so(program):
    for name in ("X.1", "X.2", "X.3"):
        create(program, name)
    found = program.does(command(INQUIRE, text(Q_NAME, "X.*"), integers(1002, MAXDEPTH)))
    assert [each.values for each in found] == [{Q_NAME: f"X.{at}", Q_TYPE: 1, MAXDEPTH: 5000} for at in (1, 2, 3)]
    assert [(each.sequence, each.control) for each in found] == [(1, 0), (2, 0), (3, 1)]
    names = program.one(command(18, text(Q_NAME, "X.*")))
    assert names.values == {3011: ["X.1", "X.2", "X.3"], 1261: [1, 1, 1]}


def test_a_listing_longer_than_a_slice_comes_whole(program):
    for at in range(300):
        program.ask(Define(object_type="QLOCAL", name=f"MANY.{at:03d}"))
    found = program.does(command(INQUIRE, text(Q_NAME, "MANY.*"), integers(1002, MAXDEPTH)))
    assert [each.values[Q_NAME] for each in found] == [f"MANY.{at:03d}" for at in range(300)]
    assert [each.control for each in found] == [0] * 299 + [1]


@pytest.mark.parametrize("as_list", [False, True])
def test_one_attribute_may_be_asked_for_without_a_list(program, as_list):
    create(program, "A")
    asked = integers(1002, DESCR) if as_list else integer(1002, DESCR)
    assert program.one(command(INQUIRE, text(Q_NAME, "A"), asked)).values.keys() == {Q_NAME, Q_TYPE, DESCR}


def test_every_kind_of_queue_has_its_type_and_its_own_attributes(program):
    program.one(command(CREATE, text(Q_NAME, "AN.ALIAS"), integer(Q_TYPE, 3), text(2002, "A")))
    program.one(command(CREATE, text(Q_NAME, "A.MODEL"), integer(Q_TYPE, 2), integer(7, 2)))
    program.one(command(CREATE, text(Q_NAME, "A.REMOTE"), integer(Q_TYPE, 6), text(2018, "R"), text(2017, "QM2")))
    found = program.does(command(INQUIRE, text(Q_NAME, "A*")))
    assert [(each.values[Q_NAME], each.values[Q_TYPE]) for each in found] == [
        ("A.MODEL", 2),
        ("A.REMOTE", 6),
        ("AN.ALIAS", 3),
    ]
    assert (found[1].values[2018], found[2].values[2002]) == ("R", "A")
    assert DEPTH not in found[0].values
    only = program.one(command(INQUIRE, text(Q_NAME, "*"), integer(Q_TYPE, 6), text_filter(Q_NAME, 18, "A*")))
    assert only.values[Q_NAME] == "A.REMOTE"


def test_a_filter_chooses_and_what_it_looks_at_is_shown(program):
    create(program, "EMPTY")
    create(program, "FILLED", text(DESCR, "IBM MQ is not here"))
    program.ask(Put(q_name="FILLED", data=b"x"))
    by_depth = integer_filter(DEPTH, 4, 0)
    found = program.does(command(INQUIRE, text(Q_NAME, "*"), integers(1002, DESCR), by_depth))
    assert [(each.values[Q_NAME], each.values[DEPTH]) for each in found] == [("FILLED", 1)]
    for operator, value, names in ((18, "IBM MQ*", ["FILLED"]), (2, "IBM MQ is not here", ["FILLED"])):
        found = program.does(command(INQUIRE, text(Q_NAME, "*"), LOCAL, text_filter(DESCR, operator, value)))
        assert [each.values[Q_NAME] for each in found] == names
    nothing = program.one(command(INQUIRE, text(Q_NAME, "*"), integer_filter(DEPTH, 4, 5)))
    assert (nothing.comp_code, nothing.reason) == (2, 2085)


def test_a_queue_is_cleared_and_deleted_with_what_is_on_it(program):
    create(program, "A")
    for _ in range(300):
        program.ask(Put(q_name="A", data=b"x"))
    refused = program.one(command(DELETE, text(Q_NAME, "A"), LOCAL))
    assert (refused.comp_code, refused.reason) == (2, 2055)
    assert program.one(command(CLEAR, text(Q_NAME, "A"))).comp_code == 0
    assert program.one(command(INQUIRE, text(Q_NAME, "A"))).values[DEPTH] == 0
    program.ask(Put(q_name="A", data=b"x"))
    assert program.one(command(DELETE, text(Q_NAME, "A"), integer(1007, 1))).comp_code == 0


def test_a_copy_has_the_attributes_of_its_source(program):
    create(program, "A", integer(MAXDEPTH, 7))
    program.one(command(COPY, text(3001, "A"), text(3002, "B"), LOCAL, integer(13, 99)))
    shown = program.one(command(INQUIRE, text(Q_NAME, "B")))
    assert (shown.values[MAXDEPTH], shown.values[13]) == (7, 99)


def test_a_process_is_created_shown_changed_copied_and_deleted(program):
    program.one(command(5, text(2012, "P"), text(2001, "/bin/true"), integer(1, 6), text(2011, "a process")))
    program.one(command(3, text(2012, "P"), text(2007, "env")))
    shown = program.one(command(7, text(2012, "P")))
    assert [shown.values[number] for number in (2012, 2001, 1, 2011, 2007)] == ["P", "/bin/true", 6, "a process", "env"]
    program.one(command(4, text(3003, "P"), text(3004, "P2"), text(2021, "user")))
    assert program.one(command(19, text(2012, "P*"))).values == {3012: ["P", "P2"]}
    assert program.one(command(6, text(2012, "P"))).comp_code == 0
    assert program.one(command(7, text(2012, "P"), integers(1003, 2001))).reason == 2085


@pytest.mark.parametrize("names", [[], ["ONE"], ["ONE", "TWO", "THREE.THREE"]])
def test_a_namelist_is_created_shown_changed_copied_and_deleted(program, names):
    program.one(command(34, text(2010, "N"), texts(2020, *names), integer(1006, 1), text(2009, "names")))
    shown = program.one(command(36, text(2010, "N"), integers(1004, 2020, 19)))
    assert shown.values == {2010: "N", 19: len(names), 2020: names}
    program.one(command(33, text(3005, "N"), text(3006, "N2")))
    program.one(command(32, text(2010, "N2"), texts(2020, "OTHER")))
    assert program.one(command(36, text(2010, "N2"))).values[2020] == ["OTHER"]
    assert program.one(command(37, text(2010, "N*"))).values == {3013: ["N", "N2"]}
    assert program.one(command(35, text(2010, "N"))).comp_code == 0
    assert program.one(command(36, text(2010, "N"))).reason == 2085


def test_the_queue_manager_is_shown_and_changed(program):
    assert program.one(command(40)).comp_code == 0
    program.one(command(1, integer(25, 4711), text(2014, "ours"), text(2006, "SYSTEM.DEAD.LETTER.QUEUE")))
    shown = program.one(command(2))
    assert shown.values[2015] == "QM1"
    assert (shown.values[25], shown.values[2014]) == (4711, "ours")
    assert program.one(command(2, integers(1001, 25))).values == {2015: "QM1", 25: 4711}


def test_the_status_of_a_queue_and_of_its_handles(program):
    create(program, "A")
    program.ask(Put(q_name="A", data=b"x"))
    program.ask(Open(object_name="A", options=(OpenOption.BROWSE | OpenOption.INPUT_EXCLUSIVE).value))
    shown = program.one(command(41, text(Q_NAME, "A")))
    assert [shown.values[number] for number in (Q_NAME, 1103, DEPTH, 17, 18, 1027)] == ["A", 1105, 1, 1, 0, 0]
    assert shown.values[1226] == [-1, -1]
    assert len(shown.values[3128]) == 10
    some = program.one(command(41, text(Q_NAME, "A"), integers(1026, DEPTH)))
    assert some.values == {Q_NAME: "A", 1103: 1105, DEPTH: 1}
    handle = program.one(command(41, text(Q_NAME, "A"), integer(1103, 1104), integer(1023, 2)))
    assert [handle.values[number] for number in (3058, 1098, 1099, 1102, 3025)] == ["a program", 2, 0, 1, "root"]
    nobody = program.one(command(41, text(Q_NAME, "A"), integer(1103, 1104), integer(1023, 3)))
    assert (nobody.comp_code, nobody.values) == (0, {})
    assert program.one(command(41, text(Q_NAME, "NONE"), integer(1103, 1104))).reason == 2085


def test_the_statistics_of_a_queue_begin_again(program):
    create(program, "A")
    for _ in range(3):
        program.ask(Put(q_name="A", data=b"x"))
    assert len(program.got("A")) == 3
    assert program.one(command(17, text(Q_NAME, "A"))).values == {Q_NAME: "A", 36: 3, 37: 3, 38: 3, 35: 0}
    assert program.one(command(17, text(Q_NAME, "A"))).values == {Q_NAME: "A", 36: 0, 37: 0, 38: 0, 35: 0}


def test_an_escape_is_performed_as_mqsc_and_answered_with_the_text_of_runmqsc(program):
    done = program.one(escape("DEFINE QLOCAL(ESC) BACKSTOP(60)"))
    assert (done.command, done.comp_code) == (38, 0)
    assert done.values == {1017: 1, 3014: "AMQ8006I: trigmon queue created."}
    shown = program.one(escape("DISPLAY QLOCAL(ESC) MAXDEPTH")).values[3014].splitlines()
    assert shown[0] == "AMQ8409I: Display Queue details."
    assert shown[1].split() == ["QUEUE(ESC)", "TYPE(QLOCAL)"]
    refused = program.one(escape("DEFINE QLOCAL(ESC)"))
    assert (refused.comp_code, refused.reason) == (2, 4001)
    assert refused.values[3014].startswith("AMQ8150E")
    missing = program.one(escape("DISPLAY QLOCAL(NOT.THERE)"))
    assert (missing.comp_code, missing.reason) == (2, 2085)
    wrong = program.one(escape("DEFINE QLOCAL(ESC) MAXDEPTH(X)"))
    assert (wrong.comp_code, wrong.reason) == (2, 3097)


def test_a_program_of_the_other_byte_order_is_answered_in_it(program):
    data = command(INQUIRE, text(Q_NAME, "SYSTEM.DEFAULT.LOCAL.QUEUE", ">"), integers(1002, 15, order=">"), order=">")
    (reply,) = program.does(data, ">", encoding=BIG)
    assert reply.values == {Q_NAME: "SYSTEM.DEFAULT.LOCAL.QUEUE", Q_TYPE: 1, MAXDEPTH: 5000}
    assert reply.descriptor.encoding == BIG


def test_texts_are_read_and_answered_in_the_character_set_of_the_command(program):
    described = text(DESCR, "Ärger", codec="cp500", ccsid=500)
    data = command(CREATE, text(Q_NAME, "A", codec="cp500"), LOCAL, described)
    assert program.one(data, coded_char_set_id=500).comp_code == 0
    asked = command(INQUIRE, text(Q_NAME, "A", codec="latin-1"), integers(1002, DESCR))
    (reply,) = program.does(asked, codec="latin-1", coded_char_set_id=819)
    assert reply.values[DESCR] == "Ärger"
    assert reply.descriptor.coded_char_set_id == 819


def test_an_attribute_that_mq_has_and_trigmon_has_not_is_accepted_and_not_kept(program):
    assert create(program, "A", integer(188, 1), integer(34, 0), text(2029, "")).comp_code == 0
    shown = program.one(command(INQUIRE, text(Q_NAME, "A"), integers(1002, 188, MAXDEPTH)))
    assert shown.values == {Q_NAME: "A", Q_TYPE: 1, MAXDEPTH: 5000}


NAMED = text(Q_NAME, "SYSTEM.DEFAULT.LOCAL.QUEUE")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", 3016),
        (b"x" * 36, 3001),
        (command(INQUIRE, NAMED, kind=7), 3001),
        (command(INQUIRE, NAMED, control=0), 3005),
        (command(4711), 3007),
        (command(45), 3007),
        (command(INQUIRE), 3019),
        (command(CREATE, text(Q_NAME, "A")), 3019),
        (command(CREATE, text(Q_NAME, "A"), integer(Q_TYPE, 1001)), 3022),
        (command(CREATE, text(Q_NAME, "A"), integer(Q_TYPE, 77)), 3022),
        (command(INQUIRE, NAMED, NAMED), 3018),
        (command(INQUIRE, NAMED, integer(Q_TYPE, 1), integer(Q_TYPE, 1)), 3017),
        (command(INQUIRE, integer(Q_NAME, 1)), 3014),
        (command(INQUIRE, NAMED, text(Q_TYPE, "1")), 3015),
        (command(INQUIRE, NAMED, integer(4711, 1)), 3014),
        (command(INQUIRE, NAMED, integers(4711, 1)), 3047),
        (command(INQUIRE, NAMED, integers(1002, -5)), 3047),
        (command(INQUIRE, NAMED, integer_filter(3, 99, 0)), 3242),
        (command(INQUIRE, NAMED, text_filter(2013, 99, "x")), 3246),
        (command(INQUIRE, NAMED, integer_filter(3, 2, 0), integer_filter(3, 2, 0)), 3248),
        (command(CREATE, text(Q_NAME, "A"), LOCAL, integer(MAXDEPTH, -1)), 4005),
        (command(CREATE, text(Q_NAME, "A"), LOCAL, integer(1006, 7)), 3229),
        (command(CREATE, text(Q_NAME, "A"), LOCAL, text(MAXDEPTH, "x")), 3015),
        (command(CREATE, text(Q_NAME, "SYSTEM.DEFAULT.LOCAL.QUEUE"), LOCAL), 4001),
        (command(CREATE, text(Q_NAME, "NOT A NAME"), LOCAL), 4008),
        (command(DELETE, text(Q_NAME, "NOT.THERE")), 2085),
        (command(DELETE, text(Q_NAME, "SYSTEM.ADMIN.COMMAND.QUEUE")), 4004),
        (command(38, integer(1017, 9), text(3014, "PING QMGR")), 3054),
        (command(38, integer(1017, 1), text(3014, "")), 3097),
        (command(41, NAMED, integer(1103, 1)), 3229),
    ],
)
def test_a_wrong_command_has_mqs_reason(program, data, reason):
    reply = program.one(data)
    assert (reply.kind, reply.comp_code, reply.reason, reply.control) == (2, 2, reason, 1)


def test_a_parameter_that_is_wrong_is_named(program):
    assert program.one(command(INQUIRE, NAMED, integer(4711, 1))).values == {1012: 4711}


def test_the_reference_has_every_command():
    page = (Path(__file__).parents[2] / "docs/reference/command-server.md").read_text()
    shown = dict(re.findall(r"^\| `MQCMD_(\w+)` \| (\d+) \|", page, re.MULTILINE))
    assert shown == {each.name: str(int(each)) for each in sorted((*COMMANDS, PcfCommand.ESCAPE))}


def test_the_reference_has_every_character_set():
    page = (Path(__file__).parents[2] / "docs/reference/command-server.md").read_text()
    listed = page.split("Known are")[1].split("\n- ")[0]
    assert set(map(int, re.findall(r"\d+", listed.replace("UTF-8", "")))) == set(CODECS)
