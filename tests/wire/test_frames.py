import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.wire.frames import DEFAULT_LIMIT, OVERHEAD, FrameReader, ProtocolError, frame, frame_limit

bodies = st.lists(st.binary(max_size=300), max_size=8)


def read_in_pieces(data: bytes, cuts: list[int], limit: int = DEFAULT_LIMIT) -> list[bytes]:
    reader, found = FrameReader(limit), []
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        found += [bytes(body) for body in reader.feed(data[start:end])]
    assert not reader.mid_frame
    return found


def test_a_frame_is_four_bytes_of_length_big_endian_and_the_body():
    assert frame(b"abc") == b"\x00\x00\x00\x03abc"
    assert frame(b"") == b"\x00\x00\x00\x00"


@given(bodies, st.lists(st.integers(0, 10_000), max_size=12))
def test_bodies_come_out_whole_and_in_order_however_the_bytes_are_cut(sent, cuts):
    assert read_in_pieces(b"".join(map(frame, sent)), cuts) == sent


@given(bodies)
def test_bodies_come_out_whole_when_bytes_arrive_one_by_one(sent):
    data = b"".join(map(frame, sent))
    assert read_in_pieces(data, list(range(len(data)))) == sent


def test_a_long_frame_in_many_pieces_comes_out_whole():
    body = bytes(range(256)) * 16_384
    data = frame(body) + frame(b"next")
    assert read_in_pieces(data, list(range(0, len(data), 65_536))) == [body, b"next"]


class Stream:
    """Bytes that come in pieces of these sizes, and then no more."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, itertools.cycle(sizes)

    def receive_into(self, place: memoryview) -> int:
        piece = self.data[: min(len(place), next(self.sizes))]
        place[: len(piece)] = piece
        self.data = self.data[len(piece) :]
        return len(piece)


@given(st.binary(min_size=1, max_size=300), st.integers(0, 299), st.lists(st.integers(1, 99), min_size=1, max_size=9))
def test_the_rest_of_a_frame_is_received_to_its_place_and_nothing_of_the_next(body, begun, sizes):
    data, at = frame(body), 4 + begun % len(body)
    reader, stream = FrameReader(), Stream(data[at:] + frame(b"next"), sizes)
    assert list(reader.feed(data[:at])) == []
    assert bytes(reader.receive_rest(stream.receive_into)) == body
    assert not reader.mid_frame
    assert [bytes(each) for each in reader.feed(stream.data)] == [b"next"]


def test_a_stream_that_ends_within_a_frame_is_an_error():
    reader = FrameReader()
    assert list(reader.feed(frame(b"body")[:6])) == []
    with pytest.raises(EOFError):
        reader.receive_rest(Stream(b"d", [1]).receive_into)


def test_a_length_over_the_limit_is_refused_before_its_body_arrives():
    reader = FrameReader(limit=10)
    with pytest.raises(ProtocolError, match="a frame of 11 bytes, where at most 10 are let in"):
        list(reader.feed((11).to_bytes(4, "big")))


def test_a_length_over_the_limit_is_refused_when_it_arrives_whole_and_alone():
    with pytest.raises(ProtocolError, match="at most 10"):
        list(FrameReader(limit=10).feed(frame(b"x" * 11)))


def test_frames_before_a_length_over_the_limit_are_still_read():
    found = []
    with pytest.raises(ProtocolError):
        found.extend(FrameReader(limit=10).feed(frame(b"good") + b"\xff\xff\xff\xff"))
    assert found == [b"good"]


def test_the_limit_may_be_raised_between_frames():
    reader = FrameReader(limit=4)
    assert [bytes(body) for body in reader.feed(frame(b"hi") + frame(b"longer")[:3])] == [b"hi"]
    reader.limit = 6
    assert [bytes(body) for body in reader.feed(frame(b"longer")[3:])] == [b"longer"]


def test_a_frame_that_has_begun_and_not_ended_is_seen():
    reader = FrameReader()
    assert not reader.mid_frame
    assert list(reader.feed(b"\x00")) == []
    assert (reader.mid_frame, reader.missing) == (True, 3)
    assert list(reader.feed(b"\x00\x00\x05abc")) == []
    assert (reader.mid_frame, reader.missing) == (True, 2)
    assert [bytes(body) for body in reader.feed(b"de")] == [b"abcde"]
    assert (reader.mid_frame, reader.missing) == (False, 4)


def test_the_limit_leaves_room_for_the_longest_message_and_what_surrounds_it():
    assert frame_limit(4_194_304) == DEFAULT_LIMIT == 4_194_304 + OVERHEAD
