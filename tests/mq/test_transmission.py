"""MQXQH lies as the C header lays it, byte by byte, with its two Expiry fields as seed 003 has them."""

import struct

import msgspec
import pytest

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.errors import ExpiryError, XqhError
from trigmon.mq.transmission_header import (
    MD_LENGTH,
    MDE_LENGTH,
    XQH_LENGTH,
    aged,
    check_xqh,
    has_extension,
    pack_md,
    pack_mde,
    pack_xqh,
)

MD = MessageDescriptor(
    report=0x80,
    msg_type=1,
    expiry=600,
    feedback=65_536,
    encoding=0x222,
    coded_char_set_id=819,
    format="MQSTR",
    priority=7,
    persistence=1,
    msg_id=bytes(range(24)),
    correl_id=bytes(range(24, 48)),
    backout_count=0,
    reply_to_q="REPLIES",
    reply_to_q_mgr="QM1",
    user_identifier="mq",
    accounting_token=b"\x16\x05",
    appl_identity_data="identity",
    put_appl_type=6,
    put_appl_name="loader",
    put_ms=1_000_000_000_123,  # 2001-09-09 01:46:40.123 GMT
    appl_origin_data="O",
)
# Offset in the MQMD and what stands there: the table of the C header, field by field.
FIELDS: list[tuple[int, bytes]] = [
    (0, b"MD  "),
    (4, struct.pack("<i", 1)),
    (8, struct.pack("<i", 0x80)),
    (12, struct.pack("<i", 1)),
    (16, struct.pack("<i", 600)),
    (20, struct.pack("<i", 65_536)),
    (24, struct.pack("<i", 546)),
    (28, struct.pack("<i", 819)),
    (32, b"MQSTR   "),
    (40, struct.pack("<i", 7)),
    (44, struct.pack("<i", 1)),
    (48, bytes(range(24))),
    (72, bytes(range(24, 48))),
    (96, struct.pack("<i", 0)),
    (100, b"REPLIES".ljust(48)),
    (148, b"QM1".ljust(48)),
    (196, b"mq".ljust(12)),
    (208, b"\x16\x05".ljust(32, b"\0")),
    (240, b"identity".ljust(32)),
    (272, struct.pack("<i", 6)),
    (276, b"loader".ljust(28)),
    (304, b"20010909"),
    (312, b"01464012"),
    (320, b"O   "),
]
MD_BYTES = b"".join(raw for _, raw in FIELDS)
HEADER = b"XQH " + struct.pack("<i", 1) + b"ORDERS".ljust(48) + b"QM9".ljust(48)


def header(expiry=-1, **fields):
    return pack_xqh("X", "QM9", MessageDescriptor(expiry=expiry, **fields))


def message(**fields):
    return MessageDescriptor(format="MQXMIT", **fields)


def test_a_descriptor_of_version_1_has_324_bytes_with_each_field_at_its_offset():
    raw = pack_md(MD)
    assert len(raw) == MD_LENGTH == 324
    for offset, expected in FIELDS:
        assert (offset, raw[offset : offset + len(expected)]) == (offset, expected)


def test_the_header_has_428_bytes_and_no_byte_else():
    assert pack_xqh("ORDERS", "QM9", MD) == HEADER + MD_BYTES
    assert len(HEADER) == 104
    assert len(HEADER + MD_BYTES) == XQH_LENGTH == 428


def test_the_queue_managers_own_character_set_is_named_where_it_leaves():
    assert pack_md(MessageDescriptor(coded_char_set_id=0))[28:32] == struct.pack("<i", 1208)


class TestWhatAnApplicationWrites:
    def test_a_header_with_data_or_without_is_taken(self):
        check_xqh(message(), header())
        check_xqh(message(expiry=50), header(expiry=600) + b"data")

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            header()[:-1],
            b"XQH" + header()[3:].replace(b"MD  ", b"MDE "),
            header()[:4] + struct.pack("<i", 2) + header()[8:],
            header()[:104] + b"DLH " + header()[108:],
        ],
        ids=["nothing", "too short", "no descriptor", "version 2", "another structure in it"],
    )
    def test_other_bytes_are_no_header(self, data):
        with pytest.raises(XqhError):
            check_xqh(message(), data)

    def test_the_format_must_say_so(self):
        with pytest.raises(XqhError, match="MQXMIT"):
            check_xqh(MessageDescriptor(format="MQSTR"), header())

    @pytest.mark.parametrize("expiry", [0, -2, -(2**31)])
    def test_an_expiry_in_it_that_is_none_is_refused(self, expiry):
        with pytest.raises(ExpiryError, match=str(expiry)):
            check_xqh(message(expiry=10), header(expiry=expiry))

    @pytest.mark.parametrize(("outer", "inner"), [(-1, 10), (10, -1)])
    def test_limited_in_one_place_and_unlimited_in_the_other_is_inconsistent(self, outer, inner):
        with pytest.raises(ExpiryError, match="inconsistent"):
            check_xqh(message(expiry=outer), header(expiry=inner))

    def test_numbers_are_read_by_the_messages_encoding(self):
        big = bytearray(header(expiry=10))
        for offset in (4, 120):
            big[offset : offset + 4] = bytes(reversed(big[offset : offset + 4]))
        check_xqh(message(expiry=10, encoding=0x111), bytes(big))
        with pytest.raises(XqhError):
            check_xqh(message(expiry=10), bytes(big))


class TestTheTimeSpentOnTheQueue:
    @pytest.mark.parametrize(
        ("expiry", "passed_ms", "left"),
        [(600, 0, 600), (600, 1000, 590), (600, 1001, 589), (10, 950, 1), (10, 1000, 0), (10, 99_000, 0), (-1, 99, -1)],
    )
    def test_is_taken_off_down_to_zero(self, expiry, passed_ms, left):
        raw = header(expiry=expiry) + b"data"
        got = aged(message(), raw, passed_ms)
        assert struct.unpack("<i", got[120:124]) == (left,)
        assert (got[:120], got[124:]) == (raw[:120], raw[124:])

    def test_data_too_short_for_the_field_is_left_as_it_is(self):
        assert aged(message(), header(expiry=1)[:123], 10**9) == header(expiry=1)[:123]

    def test_it_is_written_in_the_messages_encoding(self):
        raw = bytes(120) + (600).to_bytes(4, "big")
        assert aged(message(encoding=0x111), raw, 1000)[120:] == (590).to_bytes(4, "big")


GROUPED = msgspec.structs.replace(
    MD, group_id=bytes(range(48, 72)), msg_seq_number=3, offset=16, msg_flags=0x0B, original_length=99
)


def test_an_extension_has_72_bytes_with_each_field_at_its_offset():
    raw = pack_mde(GROUPED)
    assert len(raw) == MDE_LENGTH == 72
    for offset, expected in [
        (0, b"MDE "),
        (4, struct.pack("<i", 2)),
        (8, struct.pack("<i", 72)),
        (12, struct.pack("<i", 0x222)),
        (16, struct.pack("<i", 819)),
        (20, b"MQSTR   "),
        (28, struct.pack("<i", 0)),
        (32, bytes(range(48, 72))),
        (56, struct.pack("<i", 3)),
        (60, struct.pack("<i", 16)),
        (64, struct.pack("<i", 0x0B)),
        (68, struct.pack("<i", 99)),
    ]:
        assert (offset, raw[offset : offset + len(expected)]) == (offset, expected)


def test_the_descriptor_before_an_extension_tells_of_it_and_the_extension_of_the_data():
    raw = pack_xqh("ORDERS", "QM9", GROUPED)
    assert len(raw) == XQH_LENGTH + MDE_LENGTH
    assert raw[104 + 32 : 104 + 40] == b"MQHMDE  "
    assert raw[104 + 28 : 104 + 32] == struct.pack("<i", 1208)  # the extension's characters are the queue manager's
    assert raw[428:] == pack_mde(GROUPED)
    plain = pack_xqh("ORDERS", "QM9", MD)
    assert raw[:128] == plain[:128]
    assert raw[144:428] == plain[144:]


@pytest.mark.parametrize(
    "field",
    [{"group_id": b"g" * 24}, {"msg_seq_number": 2}, {"offset": 1}, {"msg_flags": 1}, {"original_length": 0}],
)
def test_each_field_that_only_the_second_version_has_calls_for_the_extension(field):
    assert not has_extension(MD)
    assert has_extension(msgspec.structs.replace(MD, **field))
