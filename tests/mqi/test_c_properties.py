"""Message properties by handle and as an MQRFH2, and conversion of text, in the C library."""

from __future__ import annotations

import ctypes
import struct

import pytest

from tests.mqi.mqi_calls import INPUT, OUTPUT, Block, Charv, MqiError
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.rfh2 import with_properties, without_properties

STRING, INT32, INT64, BOOLEAN, BYTES, FLOAT64, NULL = 0x400, 0x40, 0x80, 0x4, 0x8, 0x200, 0x2
IN_HANDLE, NO_PROPERTIES, ACCEPT, CONVERT = 0x8000000, 0x4000000, 0x40, 0x4000
NEXT, CONVERT_TYPE, QUERY_LENGTH = 0x8, 0x2, 0x4
VALUES = {
    "text": (STRING, "grün <&>".encode()),
    "number": (INT32, struct.pack("i", -5)),
    "long": (INT64, struct.pack("q", 1 << 40)),
    "flag": (BOOLEAN, struct.pack("i", 1)),
    "raw": (BYTES, b"\x00\xff\x10"),
    "ratio": (FLOAT64, struct.pack("d", 0.1)),
    "nothing": (NULL, b""),
    "order.item.price": (STRING, b"12"),
}


@pytest.fixture
def hconn(mqi):
    hconn = mqi.connect()
    yield hconn
    mqi.disconnect(hconn)


@pytest.fixture
def hobj(mqi, hconn, q_name):
    return mqi.open(hconn, q_name, INPUT | OUTPUT)


def made(mqi, hconn):
    hmsg = ctypes.c_int64()
    mqi.ask("MQCRTMH", hconn, Block("MQCMHO"), ctypes.byref(hmsg))
    return hmsg.value


def set_value(mqi, hconn, hmsg, name, kind, value):
    arguments = (Block("MQSMPO"), Charv(name), Block("MQPD"), kind, len(value), value)
    mqi.ask("MQSETMP", hconn, ctypes.c_int64(hmsg), *arguments)


def value_of(mqi, hconn, hmsg, name, options=0, kind=0, room=100):
    """Returns (name, type, value)."""
    returned, of_type, length = ctypes.create_string_buffer(50), ctypes.c_int32(kind), ctypes.c_int32()
    impo, buffer = Block("MQIMPO", Options=options), ctypes.create_string_buffer(max(room, 1))
    ctypes.c_uint64.from_buffer(impo.memory, 32).value = ctypes.addressof(returned)
    ctypes.c_int32.from_buffer(impo.memory, 44).value = 50
    arguments = (impo, Charv(name), Block("MQPD"), ctypes.byref(of_type), room, buffer, ctypes.byref(length))
    mqi.ask("MQINQMP", hconn, ctypes.c_int64(hmsg), *arguments)
    return returned.value.decode(), of_type.value, buffer.raw[: length.value]


def refused(call, *arguments, **named):
    with pytest.raises(MqiError) as raised:
        call(*arguments, **named)
    return raised.value.reason


def test_properties_of_each_type_travel_with_a_message_and_are_listed_in_their_order(mqi, hconn, hobj):
    sent, taken = made(mqi, hconn), made(mqi, hconn)
    for name, (kind, value) in VALUES.items():
        set_value(mqi, hconn, sent, name, kind, value)
    md = Block("MQMD", Format="MQSTR")
    mqi.put(hconn, hobj, b"data", md=md, pmo=Block("MQPMO", OriginalMsgHandle=sent))
    got = mqi.get(hconn, hobj, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken))
    assert (got.data, got.length, got.md.Format) == (b"data", 4, "MQSTR")
    for name, (kind, value) in VALUES.items():
        assert value_of(mqi, hconn, taken, name) == (name, kind, value)
    seen = [value_of(mqi, hconn, taken, "%")[0]]
    seen += [value_of(mqi, hconn, taken, "%", NEXT)[0] for _ in range(len(VALUES) - 1)]
    assert seen == list(VALUES)
    assert refused(value_of, mqi, hconn, taken, "%", NEXT) == 2471
    assert value_of(mqi, hconn, taken, "usr.number") == ("number", INT32, struct.pack("i", -5))
    assert refused(value_of, mqi, hconn, taken, "none") == 2471


def test_a_header_is_the_same_for_the_library_and_for_python(mqi, hconn, hobj, qm, q_name):
    properties = {"usr.colour": "red & blue", "mcd.Msd": "none", "a.b.c": "1", "usr.gone": None}
    _, data = with_properties(MessageDescriptor(format="MQSTR", coded_char_set_id=1208), b"body", properties)
    md = Block("MQMD", Format="MQHRF2", CodedCharSetId=1208)
    mqi.put(hconn, hobj, data, md=md)
    taken = made(mqi, hconn)
    got = mqi.get(hconn, hobj, gmo=Block("MQGMO", MsgHandle=taken))
    assert (got.data, got.md.Format) == (b"body", "MQSTR")
    assert value_of(mqi, hconn, taken, "colour")[2] == b"red & blue"
    assert value_of(mqi, hconn, taken, "a.b.c")[2] == b"1"
    assert value_of(mqi, hconn, taken, "gone")[1] == NULL
    mqi.put(hconn, hobj, b"body", md=Block("MQMD", Format="MQSTR"), pmo=Block("MQPMO", NewMsgHandle=taken))
    with qm.open(q_name, "input_shared") as queue:
        message = queue.get()
    found, inner, read = without_properties(message.descriptor, message.data)
    assert (inner, found.format, read) == (b"body", "MQSTR", properties)


def test_values_change_their_type_where_that_is_asked_for(mqi, hconn):
    hmsg = made(mqi, hconn)
    for name, (kind, value) in VALUES.items():
        set_value(mqi, hconn, hmsg, name, kind, value)
    assert value_of(mqi, hconn, hmsg, "number", CONVERT_TYPE, STRING) == ("number", STRING, b"-5")
    assert value_of(mqi, hconn, hmsg, "number", CONVERT_TYPE, INT64) == ("number", INT64, struct.pack("q", -5))
    assert value_of(mqi, hconn, hmsg, "raw", CONVERT_TYPE, STRING) == ("raw", STRING, b"00FF10")
    assert value_of(mqi, hconn, hmsg, "order.item.price", CONVERT_TYPE, INT32)[2] == struct.pack("i", 12)
    assert refused(value_of, mqi, hconn, hmsg, "text", CONVERT_TYPE, INT32) == 2472
    assert refused(value_of, mqi, hconn, hmsg, "long", CONVERT_TYPE, INT32) == 2470
    assert refused(value_of, mqi, hconn, hmsg, "text", room=3) == 2469


def test_names_handles_and_structures_are_checked(mqi, hconn):
    hmsg = made(mqi, hconn)
    for name in ("1a", "a..b", "a.", "a b", "%", "a%", b"gr\xfcn", "\U00010400"):
        assert refused(set_value, mqi, hconn, hmsg, name, STRING, b"x") == 2442
    for name in ("", "a" * 4096):
        assert refused(set_value, mqi, hconn, hmsg, name, STRING, b"x") == 2513
    assert refused(set_value, mqi, hconn, 4711 << 16, "a", STRING, b"x") == 2460
    assert refused(set_value, mqi, hconn, hmsg, "a", 0x999, b"x") == 2473
    set_value(mqi, hconn, hmsg, "a", STRING, b"1")
    set_value(mqi, hconn, hmsg, "a", STRING, b"2")
    assert value_of(mqi, hconn, hmsg, "a")[2] == b"2"
    mqi.ask("MQDLTMP", hconn, ctypes.c_int64(hmsg), Block("MQDMPO"), Charv("a"))
    assert mqi.call("MQDLTMP", hconn, ctypes.c_int64(hmsg), Block("MQDMPO"), Charv("a")) == (1, 2471)
    handle = ctypes.c_int64(hmsg)
    mqi.ask("MQDLTMH", hconn, ctypes.byref(handle), Block("MQDMHO"))
    assert handle.value == -1
    assert refused(value_of, mqi, hconn, hmsg, "a") == 2460
    assert mqi.call("MQCRTMH", hconn, Block("MQBO"), ctypes.byref(handle)) == (2, 2461)


def test_a_value_has_the_length_of_its_type(mqi, hconn):
    hmsg = made(mqi, hconn)
    for kind, size in ((BOOLEAN, 4), (0x10, 1), (0x20, 2), (INT32, 4), (INT64, 8), (0x100, 4), (FLOAT64, 8)):
        for wrong in (0, size - 1, size + 1):
            assert refused(set_value, mqi, hconn, hmsg, "a", kind, b"\1" * wrong) == 2005
        set_value(mqi, hconn, hmsg, "a", kind, b"\1" * size)
    everything = (Block("MQSMPO"), Charv("a"), Block("MQPD"))
    for kind, length in ((INT32, -1), (BYTES, -1), (STRING, -2), (STRING, 2**31 - 1)):
        assert mqi.call("MQSETMP", hconn, ctypes.c_int64(hmsg), *everything, kind, length, b"text") == (2, 2005)
    assert refused(set_value, mqi, hconn, hmsg, "a", STRING, b"gr\xfcn") == 2466


def test_whatever_is_set_comes_back_by_its_name(mqi, hconn, hobj):
    sent, taken = made(mqi, hconn), made(mqi, hconn)
    names = ["n" * 4095, ".".join("g" * 2000), "usr.usr.inner", "inner", "grün", "a", "a.b"]
    for number, name in enumerate(names):
        set_value(mqi, hconn, sent, name, STRING, b"%d" % number)
    mqi.put(hconn, hobj, b"data", pmo=Block("MQPMO", OriginalMsgHandle=sent))
    assert mqi.get(hconn, hobj, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken)).data == b"data"
    kind, buffer, length = ctypes.c_int32(), ctypes.create_string_buffer(20), ctypes.c_int32()
    for number, name in enumerate(names):
        asked = (Block("MQIMPO"), Charv(name), Block("MQPD"), ctypes.byref(kind), 20, buffer, ctypes.byref(length))
        mqi.ask("MQINQMP", hconn, ctypes.c_int64(taken), *asked)
        assert buffer.raw[: length.value] == b"%d" % number


def test_properties_of_one_name_stay_several_on_their_way(mqi, hconn, hobj):
    sent, taken = made(mqi, hconn), made(mqi, hconn)
    for value in (b"1", b"2", b"3"):
        arguments = (Block("MQSMPO", Options=0x4), Charv("same"), Block("MQPD"), STRING, 1, value)
        mqi.ask("MQSETMP", hconn, ctypes.c_int64(sent), *arguments)
    mqi.put(hconn, hobj, b"", pmo=Block("MQPMO", OriginalMsgHandle=sent))
    mqi.get(hconn, hobj, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken))
    seen = [value_of(mqi, hconn, taken, "same")[2]]
    seen += [value_of(mqi, hconn, taken, "same", NEXT)[2] for _ in range(2)]
    assert seen == [b"1", b"2", b"3"]


def test_a_buffer_that_is_shorter_than_the_header_is_enough_for_the_data(mqi, hconn, hobj):
    sent, taken = made(mqi, hconn), made(mqi, hconn)
    set_value(mqi, hconn, sent, "text", STRING, b"x" * 200)
    for _ in range(4):
        mqi.put(hconn, hobj, b"12345678", pmo=Block("MQPMO", OriginalMsgHandle=sent))
    in_handle = Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken)
    assert mqi.get(hconn, hobj, room=8, gmo=in_handle).data == b"12345678"
    assert mqi.get(hconn, hobj, room=40, gmo=Block("MQGMO", Options=NO_PROPERTIES)).data == b"12345678"
    short = mqi.get(hconn, hobj, room=5, gmo=Block("MQGMO", Options=IN_HANDLE, MsgHandle=taken))
    assert short.reason == 2080
    cut = mqi.get(hconn, hobj, room=5, gmo=Block("MQGMO", Options=IN_HANDLE | ACCEPT, MsgHandle=taken))
    assert (cut.reason, cut.data, cut.length) == (2079, b"12345", 8)
    whole = mqi.get(hconn, hobj)
    assert whole.md.Format == "MQHRF2" and whole.data.startswith(b"RFH ")


def test_a_buffer_becomes_a_handle_and_a_handle_a_buffer(mqi, hconn):
    hmsg, other, length = made(mqi, hconn), made(mqi, hconn), ctypes.c_int32()
    set_value(mqi, hconn, hmsg, "colour", STRING, b"red")
    buffer, md = ctypes.create_string_buffer(200), Block("MQMD", Format="MQSTR")
    every = ("MQMHBUF", hconn, ctypes.c_int64(hmsg), Block("MQMHBO", Options=1), Charv("%"), md)
    assert mqi.call(*every, 10, buffer, ctypes.byref(length)) == (2, 2469)
    mqi.ask(*every, 200, buffer, ctypes.byref(length))
    assert md.Format == "MQHRF2"
    ctypes.memmove(ctypes.addressof(buffer) + length.value, b"body", 4)
    back = ("MQBUFMH", hconn, ctypes.c_int64(other), Block("MQBMHO", Options=1), md, length.value + 4, buffer)
    mqi.ask(*back, ctypes.byref(length))
    assert (buffer.raw[: length.value], md.Format) == (b"body", "MQSTR")
    assert value_of(mqi, hconn, other, "colour")[2] == b"red"


@pytest.mark.parametrize(
    ("ccsid", "codec"),
    [(819, "latin-1"), (1200, "utf-16-be"), (1202, "utf-16-le"), (37, "cp037"), (500, "cp500"), (1208, "utf-8")],
)
def test_text_is_converted_into_what_the_program_asks_for(mqi, hconn, hobj, ccsid, codec):
    text = "Grüße ¢[]^ 1"
    mqi.put(hconn, hobj, text.encode(), md=Block("MQMD", Format="MQSTR", CodedCharSetId=1208))
    big = 0x111 if ccsid == 1200 else 0x222
    got = mqi.get(hconn, hobj, CONVERT, md=Block("MQMD", CodedCharSetId=ccsid, Encoding=big))
    assert (got.data, got.md.CodedCharSetId, got.reason) == (text.encode(codec), ccsid, 0)
    mqi.put(hconn, hobj, got.data, md=Block("MQMD", Format="MQSTR", CodedCharSetId=ccsid, Encoding=big))
    assert mqi.get(hconn, hobj, CONVERT).data == text.encode()


def test_what_cannot_be_converted_is_a_warning_and_the_data_are_as_they_were(mqi, hconn, hobj):
    for ccsid, form, data, reason in (
        (1208, "MQSTR", b"\xff\xfe", 2119),
        (4711, "MQSTR", b"x", 2111),
        (37, "OWN", b"x", 2110),
    ):
        mqi.put(hconn, hobj, data, md=Block("MQMD", Format=form, CodedCharSetId=ccsid))
        got = mqi.get(hconn, hobj, CONVERT, md=Block("MQMD", CodedCharSetId=819))
        assert (got.comp_code, got.reason, got.data) == (1, reason, data)
    mqi.put(hconn, hobj, "ü€".encode(), md=Block("MQMD", Format="MQSTR"))
    assert mqi.get(hconn, hobj, CONVERT, md=Block("MQMD", CodedCharSetId=819)).data == b"\xfc\x1a"


@pytest.mark.parametrize("accepts", [0, ACCEPT])
def test_text_that_becomes_longer_than_the_buffer_comes_whole_as_it_was(mqi, hconn, hobj, accepts):
    mqi.put(hconn, hobj, b"abc", md=Block("MQMD", Format="MQSTR", CodedCharSetId=819))
    got = mqi.get(hconn, hobj, CONVERT | accepts, room=4, md=Block("MQMD", CodedCharSetId=1202))
    assert (got.comp_code, got.reason, got.length, got.data, got.md.CodedCharSetId) == (1, 2120, 3, b"abc", 819)


def test_text_is_converted_without_a_queue_manager(mqi):
    target, length = ctypes.create_string_buffer(20), ctypes.c_int32()
    text = "[A]".encode("cp037")
    mqi.ask("MQXCNVC", 0, 0, 37, len(text), text, 1208, 20, target, ctypes.byref(length))
    assert target.raw[: length.value] == b"[A]"
    mqi.ask("MQXCNVC", 0, 0, 1047, 3, b"\xad\xc1\xbd", 1208, 20, target, ctypes.byref(length))
    assert target.raw[: length.value] == b"[A]"
    short = mqi.call("MQXCNVC", 0, 0, 819, 3, b"abc", 1200, 4, target, ctypes.byref(length))
    assert (short, length.value) == ((1, 2120), 6)
    assert mqi.call("MQXCNVC", 0, 0, 4711, 3, b"abc", 1200, 4, target, ctypes.byref(length)) == (2, 2111)
    assert mqi.call("MQXCNVC", 0, 0, 819, 3, b"abc", 4711, 4, target, ctypes.byref(length)) == (2, 2115)
