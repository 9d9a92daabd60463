"""Bodies are JSON objects each by itself: what stands beside one makes no difference."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.spark.json_columns import parsed

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("real", pa.float64())])
WHOLE = [b'{"id":1}', b'{"id":2,"name":"b"}', b'{"real":NaN}', b'{ "name"\n:"c" }', b"{}", b'{"of":{"id":3}}']
BROKEN = [
    b'{"of":',
    b'{"id":4}}',
    b'{"id":5}{"id":6}',
    b'{"id":"x"}',
    b'{"name":"\xff"}',
    b'{"name":"a\nb"}',
    b"",
    b"[]",
]
ODD = [b'{"name":"', b'"}', b'{"of":[{"id":7}', b'{"id":8}]}', b'{"id":9},{"id":10}', b'{"id":11}\n', b'{"name":"\t"}']


def alone(bodies):
    """Returns the rows of bodies that are read one by one, and the places of those that are bad."""
    rows, bad = [], set()
    for at, body in enumerate(bodies):
        table, reasons = parsed([body], SCHEMA)
        rows += table.to_pylist()
        bad |= {at} if reasons else set()
    return rows, bad


@given(st.lists(st.sampled_from([*WHOLE, *BROKEN, *ODD]), max_size=12))
def test_bodies_together_are_read_as_each_alone(bodies):
    table, bad = parsed(bodies, SCHEMA)
    rows, expected = alone(bodies)
    assert str(table.to_pylist()) == str(rows)  # a NaN is not equal to itself
    assert bad.keys() == expected
    table.validate(full=True)


def test_two_halves_of_an_object_beside_two_objects_in_one_body_are_three_bad_bodies():
    table, bad = parsed([b'{"of":', b'{"id":4}}', b'{"id":5}{"id":6}', b'{"id":1}'], SCHEMA)
    assert bad.keys() == {0, 1, 2}
    assert table.column("id").to_pylist() == [None, None, None, 1]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[]", "it is not an object"),
        (b'{"id":1}{"id":2}', "it is more than one object"),
        (b'{"name":"\xff"}', "it is not UTF-8: invalid start byte at byte 9"),
        (b'{"name":"a\nb"}', "Invalid encoding in string"),
    ],
)
def test_a_bad_body_has_its_reason_among_good_ones(body, why):
    _, bad = parsed([*WHOLE, body, *WHOLE], SCHEMA)
    assert bad.keys() == {len(WHOLE)}
    assert why in bad[len(WHOLE)]


def test_bodies_for_arrow_alone_are_read_and_keep_no_other_from_that():
    table, bad = parsed([b'{"real":NaN}', b'{"real":-Infinity}', b'{"real":1.5}'], SCHEMA)
    assert bad == {}
    assert str(table.column("real").to_pylist()) == "[nan, -inf, 1.5]"


def test_where_only_fields_of_the_message_are_asked_for_a_body_is_an_object_still():
    good, cut, two = b'{"id": 1}', b'{"id": ', b'{"id": 1} {"id": 2}'
    _, bad = parsed([good, cut, good, two], pa.schema([]))
    assert bad == {1: "it is no JSON", 3: "it is no JSON"}
    assert parsed([], pa.schema([])) == (pa.table({}), {})
