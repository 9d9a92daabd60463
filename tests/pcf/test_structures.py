"""PCF as IBM lays it out: the bytes of a performance event, field by field."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.reasons import CompCode, Reason
from trigmon.pcf.performance_event import QueueFigures, pack_performance_event
from trigmon.pcf.structures import PcfCommand, PcfMessage, StructureType, pack_message, unpack_message


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


@given(st.lists(st.tuples(st.integers(1, 4000), st.one_of(st.integers(-(2**31), 2**31 - 1), st.text(max_size=60)))))
def test_a_message_is_read_as_it_was_written(parameters):
    message = PcfMessage(StructureType.EVENT, PcfCommand.PERFM_EVENT, CompCode.WARNING, 2053, tuple(parameters))
    data = pack_message(message)
    assert len(data) % 4 == 0
    assert unpack_message(data) == message


@pytest.mark.parametrize("data", [b"", b"x" * 35, pack_performance_event(Reason.Q_FULL, "Q", "Q", QueueFigures())[:-1]])
def test_what_is_cut_is_no_message(data):
    with pytest.raises(ValueError):
        unpack_message(data)
