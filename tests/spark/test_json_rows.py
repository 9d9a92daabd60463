"""Rows as JSON: valid whatever is in them, and as Spark's to_json writes them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.spark.json_rows import objects, unwritten_column

ROWS = """
select * from values
  (1L, 1.5D, 'text "quoted" \\n grün', true, date'2026-01-02', timestamp'2026-01-02 03:04:05.678', 12.50, X'00ff',
   array(1, null, 3), map('a', 1, 'b', null), named_struct('x', 1, 'y', cast(null as string)),
   timestamp_ntz'2026-01-02 03:04:05', 0.1F, map(1, 'a'), map(true, 1)),
  (null, double('NaN'), null, null, null, null, null, null, null, null, null, null, float('NaN'), null, null),
  (-1L, double('-Infinity'), '', false, date'0001-01-01', timestamp'1969-12-31 23:59:59', -0.01, X'',
   array(), map(), named_struct('x', cast(null as int), 'y', 'z'), timestamp_ntz'1999-12-31 23:59:59.5',
   -3.25F, map(), map(false, null))
as t(number, real, text, flag, day, at, price, raw, list, map, nested, ntz, single, of_ints, of_flags)
"""


@pytest.mark.spark
def test_each_cell_is_as_to_json_writes_it(spark):
    frame = spark.sql(ROWS)
    wanted = [row[0] for row in frame.selectExpr("to_json(struct(*), map('timeZone', 'UTC'))").collect()]
    assert objects(frame.toArrow().combine_chunks().to_batches()[0]) == wanted


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "real": st.none() | st.floats(),
                "text": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
                "map": st.none()
                | st.dictionaries(st.integers(0, 9), st.none() | st.floats(), max_size=3).map(
                    lambda pairs: list(pairs.items())
                ),
            }
        ),
        min_size=1,
    )
)
def test_every_row_is_valid_json(rows):
    schema = pa.schema([("real", pa.float64()), ("text", pa.string()), ("map", pa.map_(pa.int32(), pa.float64()))])

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    for row, text in zip(rows, objects(pa.RecordBatch.from_pylist(rows, schema=schema)), strict=True):
        read = json.loads(text, parse_constant=refuse)
        assert read.get("text") == row["text"]
        assert read.keys() == {name for name, value in row.items() if value is not None}


def test_microseconds_are_kept():
    at = pa.array([1_767_323_045_678_901], pa.timestamp("us", tz="UTC"))
    assert objects(pa.RecordBatch.from_arrays([at], ["at"])) == ['{"at":"2026-01-02T03:04:05.678901Z"}']


@given(st.floats(width=32))
def test_a_float_of_four_bytes_has_the_fewest_digits_by_which_it_is_read_back(value):
    (text,) = objects(pa.RecordBatch.from_pydict({"f": pa.array([value], pa.float32())}))
    read = json.loads(text)["f"]
    back = pa.scalar(float(read.replace("Infinity", "inf") if isinstance(read, str) else read), pa.float32()).as_py()
    assert back == value or (back != back and value != value)


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.map_(pa.binary(), pa.int32()), pa.list_(pa.duration("us"))])
def test_a_column_that_is_not_written_as_spark_writes_it_is_named(kind):
    schema = pa.schema([("id", pa.int64()), ("of", pa.struct([("it", kind)])), ("more", pa.string())])
    assert unwritten_column(schema) == "of"
    assert unwritten_column(schema.remove(1)) is None
