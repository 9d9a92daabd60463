"""The header that says why a message was rejected: MQ's layout to the byte, and the message as it was behind it."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.rejection import Rejection, with_rejection, without_rejection

SAID = Rejection(why='ValueError: 1 < 2 & "so on"', q_name="ORDERS", ms=1_700_000_000_123)
PLAIN = MessageDescriptor(format="MQSTR", encoding=0x111, coded_char_set_id=819, msg_id=b"m" * 24)


def test_the_header_is_an_mqrfh2_by_the_c_header_with_the_properties_in_folder_usr():
    descriptor, data = with_rejection(PLAIN, b"the data", SAID)
    assert (descriptor.format, descriptor.encoding, descriptor.coded_char_set_id) == ("MQHRF2", 0x222, 1208)
    assert descriptor.msg_id == PLAIN.msg_id
    struc_id, version, length, encoding, ccsid, format_, flags, name_ccsid, folder_length = struct.unpack(
        "<4siiii8siii", data[:40]
    )
    assert (struc_id, version, flags, name_ccsid) == (b"RFH ", 2, 0, 1208)
    assert (encoding, ccsid, format_) == (0x111, 819, b"MQSTR   ")
    assert (length, folder_length % 4) == (40 + folder_length, 0)
    assert data[40:length].rstrip() == (
        b'<usr><trigmon_why>ValueError: 1 &lt; 2 &amp; "so on"</trigmon_why>'
        b"<trigmon_q_name>ORDERS</trigmon_q_name><trigmon_ms dt='i8'>1700000000123</trigmon_ms></usr>"
    )
    assert data[length:] == b"the data"


@given(
    st.builds(
        MessageDescriptor,
        format=st.sampled_from(["", "MQSTR", "MQHRF2", "MQDEAD"]),
        encoding=st.integers(0, 2**31 - 1),
        coded_char_set_id=st.integers(-3, 2**31 - 1),
    ),
    st.binary(max_size=200),
    st.text(max_size=200),
)
def test_any_reason_given_for_any_message_comes_back_exactly(descriptor, data, why):
    outer, headed = with_rejection(descriptor, data, Rejection(why=why, q_name="Q", ms=5))
    inner, body, said = without_rejection(outer, headed)
    assert (inner, body) == (descriptor, data)
    assert said.why == "".join(c if c.isprintable() else " " for c in why)
    again, twice = with_rejection(outer, headed, SAID)
    assert without_rejection(again, twice)[:2] == (outer, headed)


@given(st.binary(max_size=200), st.integers(0, 300))
def test_what_has_no_such_header_is_left_as_it_is(noise, cut):
    _, headed = with_rejection(PLAIN, b"", SAID)
    rules = MessageDescriptor(format="MQHRF2")
    for descriptor, data in ((PLAIN, headed), (rules, noise), (rules, headed[: min(cut, len(headed) - 1)])):
        assert without_rejection(descriptor, data) == (descriptor, data, None)
    other = headed.replace(b"trigmon_why", b"another_why")
    assert without_rejection(rules, other) == (rules, other, None)
