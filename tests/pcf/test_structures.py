"""PCF as IBM lays it out: the bytes of a performance event, field by field."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trigmon.mq.reasons import CompCode, Reason
from trigmon.pcf.performance_event import QueueFigures, pack_performance_event
from trigmon.pcf.structures import (
    Filter,
    Group,
    PcfError,
    PcfMessage,
    StructureType,
    Value,
    pack_message,
    unpack_message,
)

BIG_ENDIAN, LITTLE_ENDIAN = 273, 546
LONGS = st.integers(-(2**31), 2**31 - 1)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=60)
# Texts of a list have blanks or zeros behind them up to one length, which are no part of any.
LISTED = TEXTS.map(lambda text: text.rstrip(" \0"))
VALUES: st.SearchStrategy[Value] = st.one_of(
    NUMBERS,
    TEXTS,
    st.binary(max_size=60),
    st.lists(NUMBERS, max_size=6).map(tuple),
    st.lists(LISTED, min_size=1, max_size=6).map(tuple),
    st.builds(Filter, LONGS, st.one_of(LONGS, TEXTS, st.binary(max_size=20))),
)
PARAMETERS = st.lists(st.tuples(st.integers(1, 9000), VALUES), max_size=6)
IN_GROUPS = st.recursive(
    PARAMETERS.map(tuple),
    lambda inner: st.lists(st.tuples(st.integers(8001, 8021), st.builds(Group, inner)), max_size=3).map(tuple),
    max_leaves=6,
)
MESSAGES = st.builds(
    PcfMessage,
    st.sampled_from(StructureType),
    LONGS,
    st.sampled_from(CompCode),
    LONGS,
    IN_GROUPS,
    LONGS,
    LONGS,
    st.sampled_from((1, 2, 3)),
)


def test_a_performance_event_has_the_bytes_that_the_manual_gives():
    data = pack_performance_event(Reason.Q_DEPTH_HIGH, "QM1", "ORDERS", QueueFigures(65, 80, 81, 1))
    # MQCFH: MQCFT_EVENT, 36, version 1, MQCMD_PERFM_EVENT, 1, MQCFC_LAST, MQCC_WARNING, the reason, 6 parameters.
    assert struct.unpack("<9i", data[:36]) == (7, 36, 1, 45, 1, 1, 1, 2224, 6)
    # MQCFST: type 4, its length, the selector, CCSID, the text's length; a name is padded to 48.
    assert struct.unpack("<5i", data[36:56]) == (4, 68, 2015, 1208, 48)
    assert data[56:104] == b"QM1".ljust(48)
    assert struct.unpack("<5i", data[104:124]) == (4, 68, 2002, 1208, 48)
    assert data[124:172] == b"ORDERS".ljust(48)
    # MQCFIN: type 3, 16, the selector, the value.
    numbers = [struct.unpack_from("<4i", data, at) for at in range(172, len(data), 16)]
    assert numbers == [(3, 16, 35, 65), (3, 16, 36, 80), (3, 16, 37, 81), (3, 16, 38, 1)]
    assert len(data) == 236


@given(MESSAGES, st.sampled_from((BIG_ENDIAN, LITTLE_ENDIAN)))
def test_a_message_is_read_as_it_was_written_in_both_byte_orders(message, encoding):
    data = pack_message(message, encoding)
    assert len(data) % 4 == 0
    assert unpack_message(data, encoding) == message


@pytest.mark.parametrize("ccsid", [367, 819, 850, 1208, 37, 500])
def test_texts_are_read_in_the_character_set_of_their_structure(ccsid):
    message = PcfMessage(StructureType.COMMAND, 13, CompCode.OK, 0, ((2016, "A.QUEUE"), (2020, ("ONE", "TWO"))))
    assert unpack_message(pack_message(message, ccsid=ccsid), ccsid=1208) == message


def test_a_text_without_a_character_set_of_its_own_has_that_of_the_message():
    data = bytearray(pack_message(PcfMessage(StructureType.COMMAND, 13, CompCode.OK, 0, ((2016, "ÄÖ"),)), ccsid=819))
    struct.pack_into("<i", data, 36 + 12, 0)
    assert unpack_message(bytes(data), ccsid=819).parameters == ((2016, "ÄÖ"),)
    with pytest.raises(PcfError, match="MQRCCF_CCSID_ERROR"):
        unpack_message(bytes(data), ccsid=1208)
    with pytest.raises(PcfError, match="CCSID 4711 is not known"):
        unpack_message(bytes(data), ccsid=4711)


@given(MESSAGES, st.data())
@settings(max_examples=150)
def test_changed_bytes_are_read_or_are_a_pcf_error_and_nothing_else(message, data):
    raw = bytearray(pack_message(message))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from((0, 1, 4, 16, 36, 127, 128, 255)))
    for each in (bytes(raw), bytes(raw[: data.draw(st.integers(0, len(raw)))]), bytes(raw) + b"\0\0\0\0"):
        try:
            unpack_message(each, ccsid=data.draw(st.sampled_from((0, 1208, 819, 4711))))
        except PcfError as error:
            assert 3001 <= error.reason < 3400


def test_a_group_in_a_group_without_end_is_no_message():
    depth = 1000
    groups = struct.pack("<4i", 20, 16, 8001, 1) * depth
    data = struct.pack("<9i", 1, 36, 1, 13, 1, 1, 0, 0, 1) + groups
    with pytest.raises(PcfError, match="MQRCCF_CFGR_PARM_COUNT_ERROR"):
        unpack_message(data)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, 99, 3001),
        (4, 40, 3002),
        (8, 4, 3003),
        (32, -1, 3006),
        (32, 2**31 - 1, 3006),
        (32, 0, 3016),
        (36, 11, 3013),
        (40, 12, 3010),
        (40, 400, 3010),
        (48, 99_999, 3049),
        (52, 9, 3011),
        (52, -1, 3011),
    ],
)
def test_each_fault_has_the_reason_of_its_field(at, value, reason):
    data = bytearray(pack_message(PcfMessage(StructureType.COMMAND, 13, CompCode.OK, 0, ((2016, "A.QUEUE"),))))
    struct.pack_into("<i", data, at, value)
    with pytest.raises(PcfError) as raised:
        unpack_message(bytes(data))
    assert raised.value.reason == reason


@pytest.mark.parametrize("data", [b"", b"x" * 35, pack_performance_event(Reason.Q_FULL, "Q", "Q", QueueFigures())[:-1]])
def test_what_is_cut_is_no_message(data):
    with pytest.raises(PcfError):
        unpack_message(data)
