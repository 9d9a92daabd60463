from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mqi.mqi_program import CONVERT, INPUT, OUTPUT, Failed
from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor, pack_dlh, unpack_dlh
from trigmon.mq.rfh2 import with_properties, without_properties
from trigmon.mqi.conversion import CODECS, converted, decoded, encoded
from trigmon.mqi.mqi_numbers import MqiError

NATIVE, BIG = 0x222, 0x111
TEXT = "Größe [1] ^ 2"


@pytest.mark.parametrize(
    ("ccsid", "raw"),
    [
        (1208, TEXT.encode()),
        (819, TEXT.encode("latin-1")),
        (1200, TEXT.encode("utf-16-le")),
        (1202, TEXT.encode("utf-16-le")),
        (37, TEXT.encode("cp037")),
        (500, TEXT.encode("cp500")),
    ],
)
def test_a_text_is_converted_between_character_sets(program, queue, ccsid, raw):
    hobj = program.open(queue(), INPUT | OUTPUT)
    program.put(hobj, raw, Format=b"MQSTR", CodedCharSetId=ccsid)
    data, md, _ = program.get(hobj, CONVERT)
    assert (data.decode(), md["CodedCharSetId"]) == (TEXT, 1208)
    program.put(hobj, TEXT.encode(), Format=b"MQSTR", CodedCharSetId=1208)
    data, md, _ = program.get(hobj, CONVERT, CodedCharSetId=ccsid)
    assert (data, md["CodedCharSetId"]) == (raw, ccsid)


def test_code_page_1047_has_its_brackets():
    assert encoded("[]^\xac\xdd\xa8", 1047, NATIVE).hex() == "adbd5fb0babb"
    assert encoded("Hello", 1047, NATIVE).hex() == "c8859393 96".replace(" ", "")
    assert decoded(encoded("日", 1047, NATIVE), 1047, NATIVE) == "?"


@given(st.sampled_from([37, 500, 1047, 819]), st.binary())
def test_each_byte_of_a_single_byte_set_is_a_character(ccsid, raw):
    assert encoded(decoded(raw, ccsid, NATIVE), ccsid, NATIVE) == raw


@given(st.sampled_from(list(CODECS)), st.sampled_from(list(CODECS)), st.sampled_from([NATIVE, BIG]), st.binary())
def test_any_bytes_are_converted_or_left_with_a_warning(source, target, encoding, raw):
    for form in ("MQSTR", "MQDEAD", "MQHRF2", "MQIMS", ""):
        descriptor = MessageDescriptor(format=form, coded_char_set_id=source, encoding=encoding)
        try:
            converted(descriptor, raw, target, NATIVE)
        except MqiError as error:
            assert error.comp_code == 1


def test_utf_16_has_the_order_of_the_encoding():
    message = MessageDescriptor(format="MQSTR", coded_char_set_id=1200, encoding=BIG)
    assert converted(message, "é".encode("utf-16-be"), 1208, NATIVE)[1].decode() == "é"


def test_what_cannot_be_converted_comes_as_it_is_with_a_warning(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    for fields, options, reason in (
        ({"Format": b"MQSTR", "CodedCharSetId": 9999}, {}, 2111),
        ({"Format": b"MQSTR", "CodedCharSetId": 819}, {"CodedCharSetId": 9999}, 2115),
        ({"Format": b"", "CodedCharSetId": 819}, {}, 2110),
        ({"Format": b"MQSTR", "CodedCharSetId": 819}, {"length": 1}, 2120),
        ({"Format": b"MQSTR", "CodedCharSetId": 367}, {}, 2119),
    ):
        program.put(hobj, b"\xe9", **fields)
        with pytest.raises(Failed) as failed:
            program.get(hobj, CONVERT, **options)
        assert (failed.value.comp_code, failed.value.reason, failed.value.results[0]) == (1, reason, b"\xe9")


def test_what_needs_no_conversion_is_not_touched(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    program.put(hobj, b"\xff", CodedCharSetId=1208)
    assert program.data(hobj, CONVERT) == b"\xff"


def test_headers_are_converted_with_what_stands_behind_them():
    text = MessageDescriptor(format="MQSTR", coded_char_set_id=500, encoding=BIG)
    descriptor, data = with_properties(text, "ü".encode("cp500"), {"usr.color": "rot"})
    latin = MessageDescriptor(format=descriptor.format, coded_char_set_id=819, encoding=descriptor.encoding)
    outer, found = converted(latin, data, 1208, NATIVE)
    inner, body, properties = without_properties(outer, found)
    assert (inner.coded_char_set_id, body.decode(), properties) == (1208, "ü", {"usr.color": "rot"})
    header = DeadLetterHeader(
        reason=2053, dest_q_name="Q", dest_q_mgr_name="QM", encoding=BIG, coded_char_set_id=500, format="MQSTR"
    )
    letter = MessageDescriptor(format="MQDEAD", coded_char_set_id=819)
    outer, found = converted(letter, pack_dlh(header) + "ü".encode("cp500"), 1208, NATIVE)
    header, body = unpack_dlh(found)
    assert (outer.coded_char_set_id, header.coded_char_set_id, body.decode()) == (1208, 1208, "ü")
