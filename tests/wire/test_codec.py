import itertools

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import msgpack

from tests.wire.values import CALLS, REPLIES, calls, replies, structs, tag_of
from trigmon.mq.calls import LostConnection, Ping, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done, Refused, WasGot
from trigmon.wire import codec
from trigmon.wire.codec import Hello, UnknownCall, Welcome
from trigmon.wire.frames import FrameReader, ProtocolError

sequences = st.integers(1, 2**63 - 1)


def body_of(frame: bytes) -> bytes:
    (body,) = FrameReader(limit=2**32 - 1).feed(frame)
    return bytes(body)


@given(sequences, calls)
def test_every_call_comes_out_as_it_went_in(sequence, call):
    assert codec.decode_request(body_of(codec.encode_request(sequence, call))) == (sequence, call)


@given(sequences, replies)
def test_every_reply_comes_out_as_it_went_in(sequence, reply):
    assert codec.decode_response(body_of(codec.encode_response(sequence, reply))) == (sequence, reply)


@given(sequences, replies)
def test_a_reply_is_the_same_frame_in_a_buffer_of_its_own(sequence, reply):
    assert codec.encode_long_response(sequence, reply) == codec.encode_response(sequence, reply)


@pytest.mark.parametrize("kind", [*CALLS, *REPLIES], ids=tag_of)
def test_fields_of_a_later_version_are_ignored(kind):
    @given(structs(kind), st.lists(st.integers() | st.text(), min_size=1, max_size=3))
    def it(value, later):
        decode = codec.decode_request if kind in CALLS else codec.decode_response
        known = msgpack.decode(msgpack.encode(value))
        later = [item if isinstance(item, str) else item % 2**32 for item in later]
        assert decode(msgpack.encode([5, known + later])) == (5, value)
        assert decode(msgpack.encode([5, known, *later])) == (5, value)

    it()


@pytest.mark.parametrize("kind", [*CALLS, *REPLIES], ids=tag_of)
def test_fields_missing_at_the_end_have_their_defaults(kind):
    decode = codec.decode_request if kind in CALLS else codec.decode_response
    fields = msgspec.structs.fields(kind)
    trailing = list(itertools.takewhile(lambda field: not field.required, reversed(fields)))

    @given(structs(kind))
    def it(value):
        said = msgpack.decode(msgpack.encode(value))
        _, decoded = decode(msgpack.encode([1, said[: len(said) - len(trailing)]]))
        defaults = {f.name: f.default if f.default is not msgspec.NODEFAULT else f.default_factory() for f in trailing}
        assert decoded == msgspec.structs.replace(value, **defaults)

    it()


def test_an_empty_array_is_a_descriptor_with_the_mqmds_defaults():
    _, call = codec.decode_request(msgpack.encode([1, ["put", 3, "", [], b"one"]]))
    assert call == Put(handle=3, data=b"one", descriptor=MessageDescriptor())


def test_a_greeting_comes_out_as_it_went_in():
    hello = Hello(protocol=1, client_id="4f0c", application="loader", pid=4711, run_id="r1")
    assert codec.decode_hello(body_of(codec.encode_hello(hello))) == hello
    welcome = Welcome(
        protocol=1, q_mgr_name="QM1", server_version="0.1.0", administrator=True, frame_limit=99, monitor=True
    )
    assert codec.decode_welcome(body_of(codec.encode_welcome(welcome))) == welcome
    refused = Refused(reason=2025, about="too many")
    assert codec.decode_welcome(body_of(codec.encode_welcome(refused))) == refused


def test_a_hello_of_another_version_is_read_as_far_as_its_version_and_refused_in_clear_words():
    hello = codec.decode_hello(msgpack.encode(["hello", 2, {"all": "different"}]))
    assert hello == Hello(protocol=2)
    refused = codec.other_version(hello, "0.1.0")
    assert refused.reason == Reason.FUNCTION_NOT_SUPPORTED
    assert refused.about == "the client speaks protocol 2, and trigmon 0.1.0 speaks protocol 1"


@pytest.mark.parametrize(
    "body",
    [b"", b"GET / HTTP/1.1", msgpack.encode(["hello"]), msgpack.encode(["hello", 1, 5]), msgpack.encode({"hello": 1})],
)
def test_what_is_no_hello_is_refused(body):
    with pytest.raises(ProtocolError, match="no hello"):
        codec.decode_hello(body)


def test_what_is_no_welcome_is_refused():
    with pytest.raises(ProtocolError, match="no welcome"):
        codec.decode_welcome(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_an_unknown_call_comes_out_with_its_name_and_is_answered_2298():
    sequence, call = codec.decode_request(msgpack.encode([7, ["teleport", 1, {"x": [2]}]]))
    assert (sequence, call) == (7, UnknownCall(name="teleport"))
    assert codec.not_supported(call) == Refused(
        reason=2298, about="this queue manager does not know the call 'teleport'"
    )


def test_no_client_can_say_that_a_connection_was_lost():
    _, call = codec.decode_request(msgpack.encode([1, LostConnection()]))
    assert call == UnknownCall(name="lost_connection")


@pytest.mark.parametrize(
    ("body", "sequence", "said"),
    [
        (b"", 0, "truncated"),
        (b"\xc1", 0, "neither a call nor a reply"),
        (msgpack.encode(5), 0, "Expected `array`, got `int`"),
        (msgpack.encode([5]), 0, "at least length 2"),
        (msgpack.encode(["5", ["ping"]]), 0, "Expected `int`, got `str`"),
        (msgpack.encode([5, []]), 5, "has no name"),
        (msgpack.encode([5, [9]]), 5, "has no name"),
        (msgpack.encode([5, {"put": 1}]), 0, "Expected `array`, got `object`"),
        (msgpack.encode([5, ["open"]]), 5, "the call 'open' is malformed: Expected `array` of at least length 3"),
        (msgpack.encode([5, ["open", 1, 2]]), 5, r"the call 'open' is malformed: Expected `str`, got `int`"),
        (msgpack.encode([5, ["close", "1"]]), 5, r"the call 'close' is malformed: Expected `int`, got `str`"),
        (msgpack.encode([5, ["put", 1, "", [], "text"]]), 5, "the call 'put' is malformed"),
        (msgpack.encode([5, ["put_many", [b"a", None]]]), 5, "the call 'put_many' is malformed"),
        (b"\x92\x05\x92\xa5close\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 5, "Expected `int`, got `float`"),
        (b"\x92\x05\x91\xa4ping\x00", 0, "trailing characters"),
        (b"\x92\x05\x93\xa4open\xa2\xff\xfe\x00", 0, "(?i)utf-8"),
        (b"\x92\x05\x93\xa3set\x01\x81\xa1a\xc7\x01\x07x", 0, "an extension of type 7"),
        (b"\x92\x05\x93\xa3set\x01" + b"\x81\xa1a" * 100_000 + b"\x01", 0, "recursion"),
        (b"\x92\x05\x93\xa3set\x01\x81\xa1a" + b"\x91" * 100_000, 0, "recursion"),
        (b"\x92\x05\x92\xa8put_many\xdd\xff\xff\xff\xff", 0, "truncated"),
    ],
)
def test_a_malformed_request_is_refused_and_says_what_is_wrong(body, sequence, said):
    with pytest.raises(ProtocolError, match=said) as caught:
        codec.decode_request(body)
    assert caught.value.sequence == sequence
    assert codec.broken_off(caught.value).reason == Reason.CONNECTION_BROKEN


@given(st.binary(max_size=400))
@example(b"\x92\x01\x91\xa4ping")
def test_any_bytes_are_a_request_or_a_protocol_error(body):
    for decode in (codec.decode_request, codec.decode_response, codec.decode_hello, codec.decode_welcome):
        try:
            decode(body)
        except ProtocolError as error:
            assert str(error)


@given(sequences, calls, st.data())
def test_a_request_with_a_byte_changed_is_a_request_or_a_protocol_error(sequence, call, data):
    body = bytearray(body_of(codec.encode_request(sequence, call)))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        codec.decode_request(body)
    except ProtocolError as error:
        assert str(error)


@given(sequences, calls, st.integers(1, 50))
def test_a_request_cut_short_is_a_protocol_error(sequence, call, missing):
    body = body_of(codec.encode_request(sequence, call))
    with pytest.raises(ProtocolError):
        codec.decode_request(body[: max(0, len(body) - missing)])


def test_an_unknown_or_malformed_reply_is_refused_by_name():
    with pytest.raises(ProtocolError, match="the reply 'applause' is unknown"):
        codec.decode_response(msgpack.encode([1, ["applause"]]))
    with pytest.raises(ProtocolError, match="the reply 'opened' is malformed"):
        codec.decode_response(msgpack.encode([1, ["opened", 0, "one"]]))


def test_messages_of_a_reply_begin_with_their_own_word():
    got = WasGot(descriptor=MessageDescriptor(), data=b"one", data_length=3)
    assert msgpack.decode(msgpack.encode(got))[0] == "was_got"


def test_a_reply_and_a_call_without_fields_are_short():
    assert body_of(codec.encode_request(1, Ping())) == b"\x92\x01\x91\xa4ping"
    assert body_of(codec.encode_response(1, Done())) == b"\x92\x01\x92\xa4done\x00"
