"""MQRFH2: the properties of a message in its folders, by MQ's names, and the message behind the header."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.rejection import Rejection, with_rejection
from trigmon.mq.rfh2 import with_properties, without_properties

PLAIN = MessageDescriptor(format="MQSTR", encoding=0x111, coded_char_set_id=819, msg_id=b"m" * 24)
NAMES = st.from_regex(r"\A(usr|mcd|mq_usr|own)\.[a-z_][a-z0-9_-]{0,9}\Z")
# What XML cannot hold at all is not tried; \r is a line's end to every parser.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


def header(folders, order="<", ccsid=1208, length=None):
    """Returns an MQRFH2 as the C header lays it out, of a message in MQSTR."""
    body = b"".join(struct.pack(f"{order}i", len(folder)) + folder for folder in folders)
    fixed = (b"RFH ", 2, 36 + len(body) if length is None else length, 0x222, 1208, b"MQSTR   ", 0, ccsid)
    return struct.pack(f"{order}4siiii8sii", *fixed) + body


def of(data, encoding=0x222):
    return without_properties(MessageDescriptor(format="MQHRF2", encoding=encoding), data)


def test_folders_of_a_jms_client_become_names_with_their_folders_and_the_data_is_behind_them():
    folders = [
        b"<mcd><Msd>jms_text</Msd></mcd> ",
        b"<jms><Dst>queue:///ORDERS</Dst><Tms>1700000000123</Tms></jms>",
        b"<usr><color>red &amp; blue</color><size dt='i4'>7</size><none xsi:nil='true'></none><empty></empty></usr>",
        b"<mq_usr><a><b>1</b><c>2</c></a></mq_usr>",
    ]
    descriptor, data, properties = of(header(folders) + b"the data")
    assert (descriptor.format, descriptor.encoding, descriptor.coded_char_set_id) == ("MQSTR", 0x222, 1208)
    assert data == b"the data"
    assert properties == {
        "mcd.Msd": "jms_text",
        "jms.Dst": "queue:///ORDERS",
        "jms.Tms": "1700000000123",
        "usr.color": "red & blue",
        "usr.size": "7",
        "usr.none": None,
        "usr.empty": "",
        "mq_usr.a.b": "1",
        "mq_usr.a.c": "2",
    }


@pytest.mark.parametrize(
    ("order", "encoding", "ccsid", "coding"),
    [(">", 0x111, 1208, "utf-8"), ("<", 0x222, 1200, "utf-16-le"), (">", 0x111, 17584, "utf-16-be")],
)
def test_a_header_of_another_machine_or_character_set_is_read(order, encoding, ccsid, coding):
    folder = "<usr><name>Zoë</name></usr>".encode(coding)
    assert of(header([folder], order, ccsid) + b"x", encoding)[1:] == (b"x", {"usr.name": "Zoë"})


def test_of_two_headers_both_are_read_and_the_first_counts():
    inner = header([b"<usr><a>inner</a><b>inner</b></usr>"])
    outer = header([b"<usr><a>outer</a></usr>"]).replace(b"MQSTR   ", b"MQHRF2  ")
    assert of(outer + inner + b"x")[1:] == (b"x", {"usr.a": "outer", "usr.b": "inner"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RFH ",
        header([b"<usr><a>1</a></usr>"])[:50],
        header([b"<usr><a>1</a></usr>"], ccsid=37),
        header([b"<usr><a>1</b></usr>"]),
        header([b"<usr><a>\xff</a></usr>"]),
        header([b"<usr><a>1</a></usr>"], length=38),
        header([b"<usr><a>1</a></usr>"], length=-4),
        header([b"<!DOCTYPE x [<!ENTITY e 'x'>]><usr><a>&e;</a></usr>"]),
        b"XXXX" + header([b"<usr><a>1</a></usr>"])[4:],
    ],
)
def test_what_cannot_be_read_stays_where_it_is(data):
    descriptor, left, properties = of(data)
    assert (descriptor.format, left, properties) == ("MQHRF2", data, {})


@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_it_fail(noise):
    of(noise)
    of(header([noise]))


@given(st.dictionaries(NAMES, st.none() | TEXTS, max_size=6), st.binary(max_size=50))
def test_what_is_written_is_read_again(properties, data):
    outer, headed = with_properties(PLAIN, data, properties)
    assert without_properties(outer, headed) == (PLAIN, data, properties)
    if properties:
        assert outer.format == "MQHRF2"
        assert struct.unpack_from("<i", headed, 8)[0] % 4 == 0
        assert len(headed) == struct.unpack_from("<i", headed, 8)[0] + len(data)


def test_a_property_without_a_folder_is_the_user_s_and_a_folder_of_another_name_says_that_it_holds_properties():
    _, headed = with_properties(PLAIN, b"", {"color": "red", "usr.a.b": "1", "own.x.y": "2"})
    assert b"<usr><color>red</color><a.b>1</a.b></usr>" in headed
    assert b"<own content='properties'><x><y>2</y></x></own>" in headed


@pytest.mark.parametrize("name", ["", ".", "usr.", "a b", "usr.<a>", "1a", "usr.1"])
def test_a_name_that_no_property_can_have_is_refused(name):
    with pytest.raises(ValueError, match="no name of a message property"):
        with_properties(PLAIN, b"", {name: "x"})


def test_the_reason_of_a_rejected_message_is_such_properties():
    outer, headed = with_rejection(PLAIN, b"data", Rejection(why="a < b", q_name="Q", ms=5))
    expected = {"usr.trigmon_why": "a < b", "usr.trigmon_q_name": "Q", "usr.trigmon_ms": "5"}
    assert without_properties(outer, headed) == (PLAIN, b"data", expected)
