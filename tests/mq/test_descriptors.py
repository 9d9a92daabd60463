"""MQTM, MQTMC2 and MQDLH lie as the C header lays them, byte by byte; ids are padded; dates are GMT."""

import datetime
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.descriptors import (
    DLH_LENGTH,
    TM_LENGTH,
    TMC2_LENGTH,
    DeadLetterHeader,
    MessageDescriptor,
    TriggerMessage,
    date_and_time,
    moment_of,
    pack_dlh,
    pack_tm,
    pack_tmc2,
    padded_id,
    unpack_dlh,
    unpack_tm,
    unpack_tmc2,
)
from trigmon.mq.errors import DlhError, TmcError, TmError

TM = TriggerMessage(
    q_name="FLIGHTS.IN",
    process_name="FLIGHTS.LOAD",
    trigger_data="table=flights",
    appl_type=65_536,
    appl_id="flights_load.py",
    env_data="&",
    user_data="day=1",
)


def field(raw: bytes, offset: int, length: int) -> bytes:
    return raw[offset : offset + length]


class TestMQTM:
    def test_it_has_684_bytes(self):
        assert TM_LENGTH == 684 == len(pack_tm(TM))

    @pytest.mark.parametrize(
        ("offset", "length", "text"),
        [
            (0, 4, "TM"),
            (8, 48, "FLIGHTS.IN"),
            (56, 48, "FLIGHTS.LOAD"),
            (104, 64, "table=flights"),
            (172, 256, "flights_load.py"),
            (428, 128, "&"),
            (556, 128, "day=1"),
        ],
    )
    def test_characters_stand_at_the_headers_offsets_padded_with_blanks(self, offset, length, text):
        assert field(pack_tm(TM), offset, length) == text.encode().ljust(length)

    def test_version_and_application_type_are_little_endian_numbers(self):
        assert struct.unpack("<i", field(pack_tm(TM), 4, 4)) == (1,)
        assert struct.unpack("<i", field(pack_tm(TM), 168, 4)) == (65_536,)

    def test_a_transmission_queues_message_says_unknown_and_blanks(self):
        raw = pack_tm(TriggerMessage(q_name="XQ", trigger_data="TO.QM9"))
        assert struct.unpack("<i", field(raw, 168, 4)) == (-1,)
        for offset, length in [(56, 48), (172, 256), (428, 128), (556, 128)]:
            assert field(raw, offset, length) == b" " * length

    def test_what_is_packed_is_unpacked_again(self):
        assert unpack_tm(pack_tm(TM)) == TM

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            pack_tm(TM)[:-1],
            pack_tm(TM) + b" ",
            b"TMC " + pack_tm(TM)[4:],
            pack_tm(TM)[:4] + b"\2" + pack_tm(TM)[5:],
        ],
        ids=["nothing", "too short", "too long", "another structure", "another version"],
    )
    def test_other_bytes_are_no_trigger_message(self, raw):
        with pytest.raises(TmError):
            unpack_tm(raw)

    def test_text_that_is_too_long_is_cut_between_characters(self):
        raw = pack_tm(TriggerMessage(q_name="Q", user_data="ä" * 70))
        assert field(raw, 556, 128).decode() == "ä" * 64
        odd = pack_tm(TriggerMessage(q_name="Q", user_data="x" + "ä" * 70))
        assert field(odd, 556, 128).decode() == "x" + "ä" * 63 + " "

    @given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), max_size=200))
    def test_any_text_makes_684_bytes_that_are_utf_8(self, text):
        raw = pack_tm(TriggerMessage(q_name="Q", trigger_data=text, user_data=text))
        assert len(raw) == 684
        assert text.startswith(unpack_tm(raw).trigger_data)


class TestMQTMC2:
    def test_it_has_732_bytes(self):
        assert TMC2_LENGTH == 732 == len(pack_tmc2(TM, "QM1").encode())

    @pytest.mark.parametrize(
        ("offset", "length", "text"),
        [
            (0, 4, "TMC"),
            (4, 4, "   2"),
            (8, 48, "FLIGHTS.IN"),
            (56, 48, "FLIGHTS.LOAD"),
            (104, 64, "table=flights"),
            (168, 4, ""),
            (172, 256, "flights_load.py"),
            (428, 128, "&"),
            (556, 128, "day=1"),
            (684, 48, "QM1"),
        ],
    )
    def test_every_field_is_characters_at_the_headers_offset(self, offset, length, text):
        assert field(pack_tmc2(TM, "QM1").encode(), offset, length) == text.encode().ljust(length)

    def test_it_is_read_back_but_for_the_application_type(self):
        told, q_mgr_name = unpack_tmc2(pack_tmc2(TM, "QM1"))
        assert q_mgr_name == "QM1"
        assert told.appl_type == -1
        assert (told.q_name, told.user_data) == (TM.q_name, TM.user_data)

    def test_one_whose_trailing_blanks_were_stripped_is_still_read(self):
        assert unpack_tmc2(pack_tmc2(TM, "QM1").rstrip())[1] == "QM1"

    def test_other_text_is_refused(self):
        with pytest.raises(TmcError):
            unpack_tmc2("TM  ")


class TestMQDLH:
    header = DeadLetterHeader(
        reason=2053,
        dest_q_name="INITQ",
        dest_q_mgr_name="QM1",
        format="MQTRIG",
        put_appl_type=7,
        put_appl_name="QM1",
        put_date="20130101",
        put_time="23595999",
    )

    def test_it_has_172_bytes(self):
        assert DLH_LENGTH == 172 == len(pack_dlh(self.header))

    @pytest.mark.parametrize(
        ("offset", "length", "text"),
        [
            (0, 4, "DLH"),
            (12, 48, "INITQ"),
            (60, 48, "QM1"),
            (116, 8, "MQTRIG"),
            (128, 28, "QM1"),
            (156, 8, "20130101"),
            (164, 8, "23595999"),
        ],
    )
    def test_characters_stand_at_the_headers_offsets(self, offset, length, text):
        assert field(pack_dlh(self.header), offset, length) == text.encode().ljust(length)

    @pytest.mark.parametrize(("offset", "number"), [(4, 1), (8, 2053), (108, 0x222), (112, 1208), (124, 7)])
    def test_numbers_stand_at_the_headers_offsets(self, offset, number):
        assert struct.unpack("<i", field(pack_dlh(self.header), offset, 4)) == (number,)

    def test_header_and_message_come_apart_again(self):
        assert unpack_dlh(pack_dlh(self.header) + b"the message") == (self.header, b"the message")

    @pytest.mark.parametrize(
        ("encoding", "reason"),
        [
            (0x222, b"\x05\x08\x00\x00"),
            (0x111, b"\x00\x00\x08\x05"),
            (0x311, b"\x00\x00\x08\x05"),
            (0x221, b"\x00\x00\x08\x05"),
            (0x112, b"\x05\x08\x00\x00"),
            (0, b"\x05\x08\x00\x00"),
        ],
    )
    def test_its_integers_are_read_by_what_the_encoding_says_of_integers(self, encoding, reason):
        raw = b"DLH " + bytes(4) + reason + bytes(172 - 12)
        assert unpack_dlh(raw, encoding)[0].reason == 2053

    def test_each_of_its_numbers_is_read_in_the_other_order(self):
        texts = b"INITQ".ljust(48) + b"QM1".ljust(48)
        after = b"MQTRIG  " + b"\0\0\0\x07" + b"QM1".ljust(28) + b"2013010123595999"
        raw = b"DLH \0\0\0\x01\0\0\x08\x05" + texts + b"\0\0\x02\x22\0\0\x04\xb8" + after
        assert unpack_dlh(raw + b"rest", 0x111) == (self.header, b"rest")

    @pytest.mark.parametrize("raw", [b"", b"DLH ", b"TM  " + bytes(200)])
    def test_other_bytes_are_no_dead_letter(self, raw):
        with pytest.raises(DlhError):
            unpack_dlh(raw)


class TestDescriptor:
    def test_its_defaults_are_mqmd_default(self):
        md = MessageDescriptor()
        assert (md.report, md.msg_type, md.expiry, md.feedback) == (0, 8, -1, 0)
        assert (md.encoding, md.coded_char_set_id, md.format) == (546, 0, "")
        assert (md.priority, md.persistence, md.backout_count) == (-1, 2, 0)
        assert md.msg_id == md.correl_id == md.group_id == bytes(24)
        assert (md.msg_seq_number, md.offset, md.msg_flags, md.original_length) == (1, 0, 0, -1)


class TestPaddedId:
    @pytest.mark.parametrize("given_id", ["M1", b"M1"])
    def test_text_and_bytes_are_padded_with_nulls_to_24_bytes(self, given_id):
        assert padded_id(given_id) == b"M1" + bytes(22)

    def test_24_bytes_are_as_they_are_and_25_are_too_many(self):
        assert padded_id(b"x" * 24) == b"x" * 24
        with pytest.raises(ValueError, match="at most 24 bytes, not 25"):
            padded_id("x" * 25)


class TestDateAndTime:
    def test_hundredths_of_a_second_gmt(self):
        assert date_and_time(0) == ("19700101", "00000000")
        assert date_and_time(1_357_084_799_999) == ("20130101", "23595999")
        assert date_and_time(1_709_210_096_070) == ("20240229", "12345607")

    @given(st.integers(0, 253_402_300_799_999))
    def test_they_agree_with_the_standard_library(self, ms):
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=ms)
        date, clock = date_and_time(ms)
        assert date == f"{moment:%Y%m%d}"
        assert clock == f"{moment:%H%M%S}{moment.microsecond // 10_000:02d}"
        assert moment_of(date, clock) == ms - ms % 10

    @given(st.text("0123456789 x", max_size=9), st.text("0123456789 x", max_size=9))
    def test_what_a_stranger_wrote_there_is_a_moment_or_none(self, date, clock):
        assert 0 <= moment_of(date, clock) < 253_402_300_800_000

    @pytest.mark.parametrize(
        "said", [("", ""), ("20130100", "00000000"), ("20131301", "00000000"), ("20130101", "24000000")]
    )
    def test_what_is_no_moment_is_none(self, said):
        assert moment_of(*said) == 0
