from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mqi.mqi_program import ACCEPT, IN_HANDLE, INPUT, NO_PROPERTIES, OUTPUT, Failed
from trigmon.mqi.mqi_numbers import MqiError
from trigmon.mqi.mqi_numbers import PropertyType as Kind
from trigmon.mqi.properties import MessageHandle, from_text, to_text

INQ_NEXT, CONVERT_TYPE, QUERY_LENGTH, UNDER_CURSOR = 0x8, 0x2, 0x4, 0x10
VALUES = [
    (Kind.STRING, "Grüße & <mehr>"),
    (Kind.BYTE_STRING, b"\0\xff'"),
    (Kind.BOOLEAN, True),
    (Kind.INT8, -128),
    (Kind.INT16, -32_768),
    (Kind.INT32, -(2**31)),
    (Kind.INT64, -(2**63)),
    (Kind.FLOAT32, 1.1754943508222875e-38),
    (Kind.FLOAT64, 2.2250738585072014e-308),
    (Kind.NULL, None),
]


@pytest.fixture
def hobj(program, queue):
    return program.open(queue(), INPUT | OUTPUT)


def test_properties_of_every_type_travel_with_a_message(program, hobj):
    sent = program.message()
    for kind, value in VALUES:
        program.set_property(sent, f"p.{kind.name}".encode(), kind, value)
    program.put(hobj, b"data", pmo={"OriginalMsgHandle": sent})
    got = program.message()
    data, md, _ = program.get(hobj, IN_HANDLE, gmo={"MsgHandle": got})
    assert (data, md["Format"].rstrip()) == (b"data", b"")
    assert [program.property(got, f"p.{kind.name}".encode())[0] for kind, _ in VALUES] == [value for _, value in VALUES]


def test_without_a_handle_they_stand_before_the_data_or_nowhere(program, hobj):
    sent = program.message()
    program.set_property(sent, b"color", Kind.STRING, "red")
    for _ in range(2):
        program.put(hobj, b"data", Format=b"MQSTR", pmo={"NewMsgHandle": sent})
    data, md, _ = program.get(hobj)
    assert data.startswith(b"RFH ")
    assert data.endswith(b"<usr><color>red</color></usr>   data")
    assert md["Format"].rstrip() == b"MQHRF2"
    data, md, _ = program.get(hobj, NO_PROPERTIES)
    assert (data, md["Format"].rstrip()) == (b"data", b"MQSTR")


def test_a_header_does_not_count_against_the_buffer(program, hobj):
    sent = program.message()
    program.set_property(sent, b"long", Kind.STRING, "x" * 500)
    program.put(hobj, b"0123456789", pmo={"NewMsgHandle": sent})
    got = program.message()
    with pytest.raises(Failed) as failed:
        program.get(hobj, IN_HANDLE, length=4, gmo={"MsgHandle": got})
    assert (failed.value.reason, failed.value.results[0], failed.value.results[3]) == (2080, b"0123", 10)
    with pytest.raises(Failed) as failed:
        program.get(hobj, IN_HANDLE | ACCEPT, length=4, gmo={"MsgHandle": got})
    assert (failed.value.reason, failed.value.results[0]) == (2079, b"0123")
    assert program.property(got, b"long")[1] == 500
    program.put(hobj, b"0123456789", pmo={"NewMsgHandle": sent})
    assert program.data(hobj, IN_HANDLE, length=10, gmo={"MsgHandle": got}) == b"0123456789"


def test_a_wildcard_goes_through_them(program):
    handle = program.message()
    for name in (b"a", b"usr.b", b"other.c"):
        program.set_property(handle, name, Kind.STRING, name.decode())
    found = [program.property(handle, b"%")[2]]
    with pytest.raises(Failed) as failed:
        while True:
            found.append(program.property(handle, b"%", INQ_NEXT)[2])
    assert (failed.value.reason, found) == (2471, ["a", "b", "other.c"])
    assert program.property(handle, b"other.%")[2] == "other.c"
    assert program.property(handle, b"a")[2] is None


def test_a_property_is_changed_deleted_and_converted(program):
    handle = program.message()
    program.set_property(handle, b"n", Kind.INT32, 42)
    assert program.property(handle, b"usr.n")[:2] == [42, 4]
    assert program.property(handle, b"n", CONVERT_TYPE, Kind.STRING)[0] == "42"
    assert program.property(handle, b"n", CONVERT_TYPE, Kind.FLOAT64)[0] == 42.0
    with pytest.raises(Failed, match="2470"):
        program.property(handle, b"n", CONVERT_TYPE, Kind.BOOLEAN)
    program.set_property(handle, b"", Kind.STRING, "under the cursor", 0x1)
    assert program.property(handle, b"n")[0] == "under the cursor"
    program.set_property(handle, b"after", Kind.INT8, 1, 0x2)
    program.set_property(handle, b"before", Kind.INT8, 1, 0x8)
    assert [program.property(handle, b"%", o)[2] for o in (0, INQ_NEXT, INQ_NEXT)] == ["before", "n", "after"]
    program.delete_property(handle, b"n")
    with pytest.raises(Failed, match="2471"):
        program.property(handle, b"n")


def test_a_value_that_is_too_long_is_2469_and_says_how_long(program):
    handle = program.message()
    program.set_property(handle, b"n", Kind.STRING, "0123456789")
    with pytest.raises(Failed) as failed:
        program.property(handle, b"n", length=4)
    assert (failed.value.reason, failed.value.results[1]) == (2469, 10)
    assert program.property(handle, b"n", QUERY_LENGTH, length=0)[1] == 10


def test_what_is_no_property_is_refused(program):
    handle = program.message()
    for name, kind, value, reason in (
        (b"", Kind.STRING, "x", "2442"),
        (b"a b", Kind.STRING, "x", "2442"),
        (b"n", 0x800, "x", "2473"),
        (b"n", Kind.INT8, 128, "2472"),
        (b"n", Kind.INT8, "x", "2472"),
    ):
        with pytest.raises(Failed, match=reason):
            program.set_property(handle, name, kind, value)
    program.delete_message(handle)
    with pytest.raises(Failed, match="2460"):
        program.set_property(handle, b"n", Kind.STRING, "x")


def test_a_put_of_names_that_no_header_can_have_is_2442(program, hobj):
    handle = program.message()
    program.set_property(handle, b"1x", Kind.STRING, "x")
    with pytest.raises(Failed, match="2442"):
        program.put(hobj, pmo={"NewMsgHandle": handle})


KINDS = {
    Kind.STRING: st.text(),
    Kind.BYTE_STRING: st.binary(),
    Kind.BOOLEAN: st.booleans(),
    Kind.INT8: st.integers(-128, 127),
    Kind.INT16: st.integers(-(2**15), 2**15 - 1),
    Kind.INT32: st.integers(-(2**31), 2**31 - 1),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT32: st.floats(width=32, allow_nan=False),
    Kind.FLOAT64: st.floats(allow_nan=False),
}


@given(st.data())
def test_a_value_keeps_its_type_as_a_text(data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    value = data.draw(KINDS[kind])
    assert from_text(to_text(kind, value)) == (kind, value)


@given(st.text(), st.one_of(st.none(), st.text()), st.integers(0, 0xFFF), st.binary())
def test_no_property_that_others_wrote_is_an_error_of_python(dt, text, asked, raw):
    handle = MessageHandle()
    handle.take({"usr.n": (dt, text), "usr.m": ("i4", text)})
    for name in ("n", "m", "%", raw.decode(errors="replace")):
        try:
            handle.find(name, asked)
            handle.put(name, asked, raw, asked)
        except MqiError as error:
            assert error.comp_code == 2
