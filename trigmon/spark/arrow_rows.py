"""Conversion between messages and Arrow batches: the columns, their types, and both directions. Pure.

A row has the message's data and every field of its descriptor (MQMD), under the names that the client gives them:

- ``data`` binary: the bytes; nothing is converted
- ``msg_id``, ``correl_id``, ``group_id`` binary, of 24 bytes each, and ``accounting_token`` binary
- ``put_time`` timestamp: an instant in milliseconds, which Spark shows in the session's time zone
  (``spark.sql.session.timeZone``)
- ``expiry`` int: the rest of its lifetime in tenths of a second; -1 is unlimited
- ``persistence`` int: 0 not persistent, 1 persistent
- ``msg_seq_number``, ``offset`` int: its place in its group
- ``report``, ``msg_type``, ``feedback``, ``encoding``, ``coded_char_set_id``, ``priority``, ``backout_count``,
  ``msg_flags``, ``original_length``, ``put_appl_type`` int: MQ's numbers
- ``format``, ``reply_to_q``, ``reply_to_q_mgr``, ``user_identifier``, ``appl_identity_data``, ``put_appl_name``,
  ``appl_origin_data`` string: without trailing blanks
- ``ordinal`` bigint: its place in its batch, from 0, in the order of gets
- ``headers`` map<string,string>, where it is named: the properties in the message's MQRFH2 (:mod:`trigmon.mq.rfh2`).
  Then ``data``, ``format``, ``encoding`` and ``coded_char_set_id`` are of what stands behind that header, as MQ gives
  them to a program that takes properties apart; else of the whole, as MQ gives it to all others (PROPCTL(COMPAT)).

No column is ever null. With ``format`` json the columns are the schema's that was given, see :func:`from_json`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from trigmon.mq.descriptors import CCSID_UTF8, FORMAT_STRING, MessageDescriptor, padded_id
from trigmon.mq.rfh2 import Properties, with_properties
from trigmon.spark.json_columns import fields_of, parsed, unknown_column
from trigmon.spark.messages import Messages

DATA, ORDINAL, PUT_TIME, HEADERS = "data", "ordinal", "put_time", "headers"
JSON_PREFIX = "mq_"
_TYPES: dict[Any, tuple[pa.DataType, str]] = {
    "int": (pa.int32(), "int"),
    "str": (pa.string(), "string"),
    "bytes": (pa.binary(), "binary"),
}
_FIELDS = MessageDescriptor.__struct_fields__


def _columns() -> dict[str, tuple[pa.DataType, str]]:
    annotations = MessageDescriptor.__annotations__
    columns = {DATA: _TYPES["bytes"]}
    for name in _FIELDS:
        if name == "put_ms":
            columns[PUT_TIME] = (pa.timestamp("us", tz="UTC"), "timestamp")
        else:
            columns[name] = _TYPES[annotations[name]]
    columns[ORDINAL] = (pa.int64(), "bigint")
    return columns


COLUMNS = _columns()
"""Every column of format raw, in order: its Arrow type, and its type as Spark writes it."""
NAMED = COLUMNS | {HEADERS: (pa.map_(pa.string(), pa.string()), "map<string,string>")}
"""Every column that can be asked for by name."""


class UnfitRowError(ValueError):
    """A message that is no row of the schema, or a row that is no message. The text names it and the reason."""


class UnreadableError(UnfitRowError):
    """Messages that are no rows of the schema. ``reasons`` are those of each, by its ordinal."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        self.reasons = dict(reasons)
        more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        super().__init__(next(iter(reasons.values())) + more)


class Malformed(NamedTuple):
    """What becomes of data that is no JSON object of the schema: a mode of Spark's own readers.

    FAILFAST raises UnreadableError. DROPMALFORMED leaves the message out. PERMISSIVE makes a row of nulls, with the
    text in the ``column``, where the schema has it; where the messages are taken, it must (:func:`check_kept_text`).
    """

    mode: str = "FAILFAST"
    column: str = "_corrupt_record"


FAILFAST = Malformed()
PERMISSIVE = "PERMISSIVE"
MODES = (PERMISSIVE, "DROPMALFORMED", "FAILFAST")


def ddl(names: Iterable[str] = tuple(COLUMNS)) -> str:
    """Returns these columns as a DDL schema of Spark. Raises UnfitRowError for a name that is no column."""
    return ", ".join(f"`{name}` {NAMED[name][1]}" for name in _checked(names))


def schema_of(names: Iterable[str] = tuple(COLUMNS)) -> pa.Schema:
    """Returns these columns as a schema of Arrow. Raises as :func:`ddl`."""
    return pa.schema([(name, NAMED[name][0]) for name in _checked(names)])


def _checked(names: Iterable[str]) -> list[str]:
    for name in (names := list(names)):
        if name not in NAMED:
            near = difflib.get_close_matches(name, NAMED, n=1)
            meant = f": is {near[0]} meant?" if near else f"; they have {', '.join(NAMED)}"
            raise UnfitRowError(f"messages have no column {name!r}{meant}")
    _check_once(names)
    return names


def check_once(fields: Iterable[pa.Field]) -> None:
    """Raises UnfitRowError where a name is there twice, also within a column."""
    fields = list(fields)
    _check_once([field.name for field in fields])
    for field in fields:
        check_once(fields_of(field.type))


def _check_once(names: Sequence[str]) -> None:
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UnfitRowError(f"column {twice[0]} is named {names.count(twice[0])} times: name it once")


def to_batch(messages: Messages, schema: pa.Schema) -> pa.RecordBatch:
    """Returns messages as an Arrow batch of the columns that the schema names, in its order."""
    headers: list[Properties] = []
    if HEADERS in schema.names:
        messages, headers = messages.parted

    def column(field: pa.Field) -> pa.Array:
        if field.name == HEADERS:
            return pa.array([list(each.items()) for each in headers], field.type)
        if field.name == DATA:
            return messages.data(field.type)
        if field.name == ORDINAL:
            return pa.array(messages.ordinals, field.type)
        return _described(field, messages.descriptors)

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def _described(field: pa.Field, descriptors: Sequence[MessageDescriptor]) -> pa.Array:
    """Returns a column of the descriptors."""
    if field.name == PUT_TIME:
        return pa.array([descriptor.put_ms * 1000 for descriptor in descriptors], pa.int64()).cast(field.type)
    return _array(list(map(attrgetter(field.name), descriptors)), field.type)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Returns the values as a column. Most fields are alike in all messages of a batch, which is seen sooner."""
    if values and values[0] == values[-1] and values.count(values[0]) == len(values):
        return pa.repeat(pa.scalar(values[0], kind), len(values))
    return pa.array(values, kind)


def from_json(messages: Messages, schema: pa.Schema, malformed: Malformed = FAILFAST) -> pa.RecordBatch:
    """Returns messages whose data is one JSON object each, as a batch of the schema's columns.

    A column is the object's field of that name, null where the object has none; other fields are left out. A column
    ``mq_priority`` is the column ``priority`` of format raw, and so for every other. ``malformed`` says what becomes of
    data that is no JSON object, or whose fields have other types; UnreadableError names all of these messages.
    """
    own = {name: raw_name(name) for name in schema.names if is_of_message(name)}
    body = pa.schema([field for field in schema if field.name not in own and field.name != malformed.column])
    inner = messages.parted[0] if HEADERS in own.values() else messages
    table, bad = parsed(inner.bodies, body)
    if bad and malformed.mode == "FAILFAST":
        raise UnreadableError({messages.ordinals[at]: _named(messages, at, why) for at, why in bad.items()})
    if bad and malformed.mode == "DROPMALFORMED":
        kept = [at for at in range(len(messages)) if at not in bad]
        table = table.take(pa.array(kept, pa.int64()))
        messages, inner, bad = messages.take(kept), inner.take(kept), {}
    described = to_batch(messages, pa.schema([schema.field(name).with_name(raw) for name, raw in own.items()]))

    def column(field: pa.Field) -> pa.Array | pa.ChunkedArray:
        if field.name in own:
            return described.column(own[field.name])
        if field.name != malformed.column:
            return table.column(field.name)
        texts = [inner.bodies[at].decode(errors="replace") if at in bad else None for at in range(len(inner))]
        return pa.array(texts, field.type)

    arrays = [column(field) for field in schema]
    whole = pa.Table.from_arrays(arrays, schema=schema).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in whole.columns], schema=schema
    )


def check_json(schema: pa.Schema, malformed: Malformed = FAILFAST) -> None:
    """Raises UnfitRowError for a json schema that no message is read by, or whose columns cannot be what they must."""
    if is_of_message(malformed.column):
        raise UnfitRowError(f"columnNameOfCorruptRecord: {malformed.column} is the name of a field of the message")
    body = pa.schema([field for field in schema if not is_of_message(field.name)])
    name = unknown_column(body)
    if name is not None:
        raise UnfitRowError(
            f"column {name} has a type that format json does not read: leave it out of the schema, or read the column "
            "data in format raw, and parse it by Spark's from_json"
        )
    if malformed.column in schema.names and schema.field(malformed.column).type != pa.string():
        raise UnfitRowError(
            f"column {malformed.column} is for the text of what is no JSON (columnNameOfCorruptRecord): string, not "
            f"{schema.field(malformed.column).type}"
        )
    required = [field.name for field in body if not field.nullable]
    if malformed.column in required:
        raise UnfitRowError(f"column {malformed.column} is NOT NULL, and is null for each message that is JSON")
    if required and malformed.mode == PERMISSIVE:
        raise UnfitRowError(f"column {required[0]} is NOT NULL, and mode PERMISSIVE makes a row of nulls of bad data")


def check_kept_text(schema: pa.Schema, malformed: Malformed) -> None:
    """Raises UnfitRowError where messages that are taken would leave rows of nulls, and their text would be lost."""
    if malformed.mode == PERMISSIVE and malformed.column not in schema.names:
        raise UnfitRowError(
            f"mode PERMISSIVE keeps the text of what is no JSON in the column {malformed.column}, and the schema has "
            f"none: add `{malformed.column} string`, or say mode DROPMALFORMED to lose such messages"
        )


def is_of_message(name: str) -> bool:
    """Returns whether a column of a json schema is one of the message's, and not of its data; Spark's names fold."""
    return name.lower().startswith(JSON_PREFIX)


def raw_name(name: str) -> str:
    """Returns the name in format raw of a column ``mq_...`` of format json."""
    return name[len(JSON_PREFIX) :].lower()


def _named(messages: Messages, at: int, why: str) -> str:
    which = f"message {messages.descriptors[at].msg_id.hex()} (ordinal {messages.ordinals[at]})"
    return f"{which} is no JSON object of the schema: {why}"


# -- rows to messages ---------------------------------------------------------------------------------------

WRITABLE = (
    "data", "priority", "persistence", "expiry", "msg_type", "feedback", "format", "encoding", "coded_char_set_id",
    "msg_id", "correl_id", "reply_to_q", "reply_to_q_mgr", "report", "group_id", "msg_seq_number", "offset",
    "msg_flags", "original_length", "headers",
)  # fmt: skip
"""The columns that a put takes. The queue manager writes those of the context itself."""
_FITS: dict[str, Callable[[pa.DataType], bool]] = {
    "binary": lambda kind: kind in (pa.binary(), pa.large_binary()),
    "string": lambda kind: kind in (pa.string(), pa.large_string()),
    "int": pa.types.is_integer,
    "map<string,string>": lambda kind: (
        pa.types.is_map(kind) and kind.key_type == pa.string() and kind.item_type in (pa.string(), pa.null())
    ),
}
_TEXT = MessageDescriptor(format=FORMAT_STRING, coded_char_set_id=CCSID_UTF8)
_IDS = ("msg_id", "correl_id", "group_id")


def to_puts(batch: pa.RecordBatch) -> list[tuple[MessageDescriptor, bytes]]:
    """Returns the message to put for each row: its descriptor and its data. A null is the field's default.

    Raises UnfitRowError for a row without data, and for headers that no property can have.
    """
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    bodies, headers = columns.pop(DATA), columns.pop(HEADERS, None)
    plain = _TEXT if _is_text(batch) else MessageDescriptor()
    puts = []
    for at, body in enumerate(bodies):
        if body is None:
            raise UnfitRowError("a row has no data: the column data is null")
        raw = body.encode() if isinstance(body, str) else body
        fields = {name: values[at] for name, values in columns.items() if values[at] is not None}
        fields |= {name: padded_id(fields[name]) for name in _IDS if name in fields}
        put = msgspec.structs.replace(plain, **fields) if fields else plain, raw
        puts.append(_with_headers(*put, headers[at]) if headers else put)
    return puts


def _with_headers(
    descriptor: MessageDescriptor, data: bytes, headers: list[tuple[str, str | None]] | None
) -> tuple[MessageDescriptor, bytes]:
    try:
        return with_properties(descriptor, data, dict(headers or ()))
    except ValueError as error:
        raise UnfitRowError(f"column headers: {error}") from None


def _is_text(batch: pa.RecordBatch) -> bool:
    return _FITS["string"](batch.schema.field(DATA).type)


def check_writable(names: Iterable[str]) -> None:
    """Raises UnfitRowError unless columns of these names make messages."""
    names = list(names)
    if DATA not in names:
        raise UnfitRowError("rows to write need a column data (binary or string), or the option format=json")
    if unknown := [name for name in names if name not in WRITABLE]:
        raise UnfitRowError(f"a put takes no {', '.join(unknown)}; it takes {', '.join(WRITABLE)}")


def check_types(schema: pa.Schema) -> None:
    """Raises UnfitRowError for a column to write, with or without ``mq_`` before its name, of a type that no put takes.

    A field that is a number takes any whole one: that it is too large is known when it is put. A null is its default.
    """
    for field in schema:
        name = raw_name(field.name) if is_of_message(field.name) else field.name
        written = "binary or string" if name in (DATA, *_IDS) else NAMED[name][1]
        fits = [pa.types.is_null, *(_FITS[each] for each in written.split(" or "))]
        if not any(is_so(field.type) for is_so in fits):
            raise UnfitRowError(f"column {field.name} is {field.type}, and a put takes {written}: cast it")
