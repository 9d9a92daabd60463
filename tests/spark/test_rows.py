"""Messages as rows and back: types, JSON, and what is refused; without a Spark."""

from __future__ import annotations

from datetime import date

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.packed_messages import encoded, pack
from trigmon.mq.replies import WasGot
from trigmon.mq.rfh2 import with_properties, without_properties
from trigmon.spark import arrow_rows, options
from trigmon.spark.arrow_rows import COLUMNS, Malformed, UnfitRowError
from trigmon.spark.json_rows import objects
from trigmon.spark.messages import Messages, PackedMessages
from trigmon.spark.reader import stretches

RAW = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


def got(data=b"x", **fields):
    message = MessageDescriptor(**{"priority": 4, "put_ms": 1_767_323_045_678, "persistence": 1} | fields)
    return WasGot(descriptor=message, data=data, data_length=len(data))


def to_batch(messages, ordinals, schema):
    return arrow_rows.to_batch(Messages.of_got(messages, ordinals), schema)


def from_json(messages, ordinals, schema):
    return arrow_rows.from_json(Messages.of_got(messages, ordinals), schema)


def test_every_field_of_the_descriptor_is_a_column():
    fields = set(MessageDescriptor.__struct_fields__)
    assert set(COLUMNS) == fields - {"put_ms"} | {"data", "put_time", "ordinal"}


def test_a_batch_has_the_columns_of_the_schema_in_its_order_and_an_instant_to_the_millisecond():
    batch = to_batch([got(b"1", msg_id=padded_id("a")), got(b"2")], [5, 6], RAW)
    assert batch.schema == RAW
    assert batch.column("data").to_pylist() == [b"1", b"2"]
    assert batch.column("ordinal").to_pylist() == [5, 6]
    assert batch.column("msg_id")[0].as_py() == padded_id("a")
    assert batch.column("put_time")[0].as_py().isoformat() == "2026-01-02T03:04:05.678000+00:00"
    few = pa.schema([RAW.field("priority"), RAW.field("data")])
    assert to_batch([got()], [0], few).to_pylist() == [{"priority": 4, "data": b"x"}]
    assert to_batch([], [], RAW).num_rows == 0


def test_a_field_that_differs_in_one_message_alone_is_that_message_s_own():
    for at in range(3):
        messages = [got(priority=7, correl_id=padded_id("c"), reply_to_q="R") if n == at else got() for n in range(3)]
        rows = to_batch(messages, [0, 1, 2], RAW).to_pylist()
        for n, row in enumerate(rows):
            expected = (7, padded_id("c"), "R") if n == at else (4, padded_id(""), "")
            assert (row["priority"], row["correl_id"], row["reply_to_q"]) == expected


def test_json_of_any_layout_is_a_row_and_a_field_that_is_missing_is_null():
    schema = pa.schema([("id", pa.int64()), ("mq_priority", pa.int32()), ("tags", pa.list_(pa.string()))])
    bodies = [b'{"id":1,"tags":["a\\nb"]}', b'\n {\r\n "id" : 2,\n "other": {"deep": 1} }\n', b"{}"]
    batch = from_json([got(body) for body in bodies], [0, 1, 2], schema)
    assert batch.to_pylist() == [
        {"id": 1, "mq_priority": 4, "tags": ["a\nb"]},
        {"id": 2, "mq_priority": 4, "tags": None},
        {"id": None, "mq_priority": 4, "tags": None},
    ]


def packed(*messages, descriptors=None):
    of = [one.descriptor for one in messages] if descriptors is None else []
    rows = pack(encoded(of), [one.data for one in messages], list(range(len(messages))), len(messages), more=False)
    return PackedMessages(rows if descriptors is None else replace(rows, descriptors=descriptors))


def test_descriptors_of_packed_json_are_decoded_where_a_column_or_an_error_needs_one():
    good, bad = got(b'{"id": 1}'), got(b"{", msg_id=padded_id("bad"))
    schema, more = pa.schema([("id", pa.int64())]), pa.schema([("id", pa.int64()), ("mq_priority", pa.int32())])
    nothing = packed(good, good, descriptors=b"what is no array")
    assert arrow_rows.from_json(nothing, schema).to_pylist() == [{"id": 1}] * 2
    with pytest.raises(msgspec.DecodeError):
        arrow_rows.from_json(nothing, more)
    assert arrow_rows.from_json(packed(good), more).to_pylist() == [{"id": 1, "mq_priority": 4}]
    with pytest.raises(UnfitRowError, match=f"message {padded_id('bad').hex()} .ordinal 1."):
        arrow_rows.from_json(packed(good, bad), schema)
    left = arrow_rows.from_json(packed(good, bad, good), more, Malformed("DROPMALFORMED"))
    assert left.to_pylist() == [{"id": 1, "mq_priority": 4}] * 2


@pytest.mark.parametrize("schema", [RAW, pa.schema([("mq_priority", pa.int32()), ("id", pa.int64())])])
def test_a_reply_whose_parts_are_not_of_as_many_messages_is_an_error_and_no_rows_are_lost(schema):
    make = arrow_rows.to_batch if schema is RAW else arrow_rows.from_json
    rows = pack(encoded([got().descriptor] * 3), [b"{}"] * 3, [0, 1, 2], 3, more=False)
    assert make(PackedMessages(rows), schema).num_rows == 3
    two = encoded([got().descriptor] * 2)
    wrong = [
        ("descriptors", pack(two, [b""] * 2, [0, 1], 2, more=False).descriptors),
        ("ordinals", [0, 1]),
        ("lengths", [2, 2]),
        ("lengths", [8, -4, 2]),
        ("data", b"{}{}"),
    ]
    for name, value in wrong:
        with pytest.raises(ValueError, match="messages have"):
            make(PackedMessages(replace(rows, **{name: value})), schema)


STRICT = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("day", pa.date32()),
        ("of", pa.struct([pa.field("x", pa.int32(), nullable=False)])),
        ("list", pa.list_(pa.field("item", pa.struct([pa.field("y", pa.string(), nullable=False)])))),
    ]
)


@pytest.mark.parametrize("schema", [STRICT, pa.schema([pa.field("id", pa.int64(), nullable=False)])])
@pytest.mark.parametrize(("bodies", "good"), [("gb", [1]), ("bg", [1]), ("bb", []), ("gg", [1, 1]), ("gbbg", [1, 1])])
def test_bad_bodies_are_named_or_left_out_whatever_may_not_be_null(bodies, good, schema):
    kinds = {"g": b'{"id":1,"day":"2024-02-29","of":{"x":1},"list":[{"y":"z"}]}', "b": b'{"day":"2024-02-29"}'}
    messages = packed(*[got(kinds[each]) for each in bodies])
    left = arrow_rows.from_json(messages, schema, Malformed("DROPMALFORMED"))
    assert (left.schema, left.column("id").to_pylist()) == (schema, good)
    if "b" in bodies:
        with pytest.raises(arrow_rows.UnreadableError) as caught:
            arrow_rows.from_json(messages, schema)
        assert caught.value.reasons.keys() == {at for at, each in enumerate(bodies) if each == "b"}


def test_a_date_is_a_text_in_json_wherever_it_is_as_it_is_written():
    day = pa.date32()
    schema = pa.schema([("day", day), ("days", pa.list_(day)), ("of", pa.struct([("day", day), ("n", pa.int32())]))])
    values = {"day": date(2024, 2, 29), "days": [date(1582, 10, 4), None], "of": {"day": date(9999, 12, 31), "n": 1}}
    (body,) = objects(pa.RecordBatch.from_pylist([values], schema=schema))
    batch = from_json([got(body.encode()), got(b"{}")], [0, 1], schema)
    assert batch.to_pylist() == [values, dict.fromkeys(values)]


@pytest.mark.parametrize("value", [b'"2023-02-29"', b'"29.2.2024"', b"19782", b'""'])
def test_what_is_no_date_is_refused_by_the_message_s_id(value):
    bodies = [got(b'{"day":"2024-02-29"}'), got(b'{"day":%s}' % value, msg_id=padded_id("bad"))]
    with pytest.raises(UnfitRowError, match=f"message {padded_id('bad').hex()} .ordinal 8. is no JSON object"):
        from_json(bodies, [7, 8], pa.schema([("day", pa.date32())]))


@pytest.mark.parametrize("body", [b"", b"5", b"[1]", b"{", b'{"id":"x"}', b'{"id":1} {"id":2}', b"\xff{}", b"null"])
def test_what_is_no_object_of_the_schema_is_refused_by_the_message_s_id(body):
    with pytest.raises(UnfitRowError, match=f"message {padded_id('bad').hex()} .ordinal 8. is no JSON object"):
        from_json([got(b"{}"), got(body, msg_id=padded_id("bad"))], [7, 8], pa.schema([("id", pa.int64())]))


def test_rows_become_puts_and_a_null_is_the_field_s_default():
    batch = pa.RecordBatch.from_pydict({"data": [b"1", b"2"], "priority": [7, None], "correl_id": [b"c", None]})
    (first, one), (second, two) = arrow_rows.to_puts(batch)
    assert (one, first.priority, first.correl_id, first.format) == (b"1", 7, padded_id("c"), "")
    assert (two, second) == (b"2", MessageDescriptor())
    ((text, body),) = arrow_rows.to_puts(pa.RecordBatch.from_pydict({"data": ["grün"]}))
    assert (body, text.format, text.coded_char_set_id) == ("grün".encode(), "MQSTR", 1208)


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["body"], "need a column data"), (["data", "put_time"], "a put takes no put_time"), ([], "need a column data")],
)
def test_columns_that_make_no_message_are_refused(names, expected):
    with pytest.raises(UnfitRowError, match=expected):
        arrow_rows.check_writable(names)


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("data", pa.int32(), "column data is int32, and a put takes binary or string: cast it"),
        ("data", pa.struct([("id", pa.int32())]), "column data is struct<id: int32>, and a put takes binary or string"),
        ("priority", pa.string(), "column priority is string, and a put takes int"),
        ("expiry", pa.float64(), "column expiry is double, and a put takes int"),
        ("correl_id", pa.int64(), "column correl_id is int64, and a put takes binary or string"),
        ("reply_to_q", pa.binary(), "column reply_to_q is binary, and a put takes string"),
        ("headers", pa.map_(pa.string(), pa.int32()), "column headers is .*, and a put takes map<string,string>"),
    ],
)
def test_a_column_of_a_type_that_no_put_takes_is_refused(name, kind, expected):
    with pytest.raises(UnfitRowError, match=expected):
        arrow_rows.check_types(pa.schema([(name, kind)]))


def test_an_id_is_written_as_text_too():
    arrow_rows.check_types(pa.schema([("data", pa.string()), ("msg_id", pa.string()), ("mq_correl_id", pa.string())]))


def test_a_put_takes_nulls_for_the_defaults():
    arrow_rows.check_types(pa.schema([("data", pa.binary()), ("priority", pa.null()), ("headers", pa.null())]))
    arrow_rows.check_types(pa.schema([("data", pa.null()), ("headers", pa.map_(pa.string(), pa.null()))]))


def test_a_put_takes_whole_numbers_of_any_size_and_text_or_bytes_as_data():
    for kind in (pa.binary(), pa.string(), pa.large_string(), pa.large_binary()):
        fields = [("data", kind), ("priority", pa.int64()), ("expiry", pa.int8())]
        headers = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
        arrow_rows.check_types(pa.schema([*fields, ("headers", headers)]))


def test_a_json_column_that_must_be_there_is_read_and_a_message_without_it_is_named():
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    arrow_rows.check_json(schema)
    assert from_json([got(b'{"id": 1}')], [0], schema).to_pylist() == [{"id": 1}]
    with pytest.raises(UnfitRowError, match=r"no JSON object of the schema: .* a required field was"):
        from_json([got(b"{}")], [0], schema)


def test_a_reservation_is_cut_into_parts_of_much_the_same_number_and_none_is_lost():
    row = {"reservation": 5, "left_ordinals": [[0, 10], [15, 16], [20, 29]]}
    parts = stretches(row, 3)
    assert [part.parts for part in parts] == [[(0, 7)], [(7, 10), (15, 16), (20, 23)], [(23, 29)]]
    assert [part.parts for part in stretches(row, 0)] == [[(0, 10), (15, 16), (20, 29)]]
    assert [part.parts for part in stretches(row | {"left_ordinals": []}, 4)] == [[]]


def test_options_are_read_in_any_case_and_the_address_is_one_that_every_worker_understands(monkeypatch):
    monkeypatch.setenv("TRIGMON_QMGR", "QM9")
    reported = options.read({"Queue": "ORDERS", "MAXROWS": "5", "Groups": "TRUE", "columns": "data, msg_id"})
    assert (reported.queue, reported.max_rows, reported.groups, reported.columns) == (
        "ORDERS",
        5,
        True,
        ("data", "msg_id"),
    )
    assert reported.address.startswith("unix:")
    assert "QM9" in reported.address
    assert options.read({"path": "ORDERS", "address": "tcp://here:1"}).address == "tcp://here:1"
    assert reported.consumer == "spark ORDERS"


@pytest.mark.parametrize("given", [{}, {"queue": "no name!"}, {"queue": "Q", "partitions": "0"}])
def test_an_option_that_cannot_be_meant_is_refused(given):
    with pytest.raises(options.OptionError):
        options.read({"address": "unix:/x"} | given)


HEADERS = ("headers", arrow_rows.NAMED["headers"][0])


def with_header(data=b"body", **properties):
    named = {f"usr.{name}": value for name, value in properties.items()}
    descriptor, headed = with_properties(MessageDescriptor(format="MQSTR", coded_char_set_id=1208), data, named)
    return WasGot(descriptor=descriptor, data=headed, data_length=len(headed))


def test_headers_are_parted_from_the_data_where_they_are_asked_for_and_else_left_there():
    messages = [with_header(color="red", none=None), got(b"plain"), got(b"torn", format="MQHRF2")]
    schema = pa.schema([HEADERS, *(RAW.field(name) for name in ("data", "format", "coded_char_set_id"))])
    rows = to_batch(messages, [0, 1, 2], schema).to_pylist()
    assert [dict(row["headers"]) for row in rows] == [{"usr.color": "red", "usr.none": None}, {}, {}]
    assert [(row["data"], row["format"]) for row in rows] == [(b"body", "MQSTR"), (b"plain", ""), (b"torn", "MQHRF2")]
    assert rows[0]["coded_char_set_id"] == 1208
    without = to_batch(messages[:1], [0], pa.schema([RAW.field("data"), RAW.field("format")])).to_pylist()
    assert without == [{"data": messages[0].data, "format": "MQHRF2"}]


def test_json_is_read_behind_the_headers_where_they_are_asked_for():
    message = with_header(b'{"id": 7}', color="red")
    schema = pa.schema([("id", pa.int64()), ("mq_headers", HEADERS[1])])
    assert from_json([message], [0], schema).to_pylist() == [{"id": 7, "mq_headers": [("usr.color", "red")]}]
    with pytest.raises(UnfitRowError, match="no JSON object"):
        from_json([message], [0], schema.remove(1))


def test_a_column_of_headers_makes_a_header_and_no_headers_none():
    headers = pa.array([[("color", "red"), ("mcd.Msd", "jms_text")], [], None], HEADERS[1])
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "c"]), headers], ["data", "headers"])
    (first, data), *others = arrow_rows.to_puts(batch)
    assert first.format == "MQHRF2"
    inner, body, properties = without_properties(first, data)
    assert (inner.format, body, properties) == ("MQSTR", b"a", {"usr.color": "red", "mcd.Msd": "jms_text"})
    assert [(put.format, body) for put, body in others] == [("MQSTR", b"b"), ("MQSTR", b"c")]
    wrong = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array([[("a b", "1")]], HEADERS[1])], ["data", "headers"])
    with pytest.raises(UnfitRowError, match="column headers: 'a b' is no name of a message property"):
        arrow_rows.to_puts(wrong)
