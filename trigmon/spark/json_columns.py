"""JSON objects as columns of Arrow. Pure.

Arrow's reader takes a date as a number of days alone. Here it is a text as ``2024-02-29``, as Spark has it.
"""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import pyarrow as pa
import pyarrow.json

_MARKS = {b"variant", b"geometry", b"geography"}
"""In the metadata of a struct's field they say that Spark has a type of that name, and not a struct."""
_value = msgspec.json.Decoder(msgspec.Raw).decode
"""Passes over one value of JSON. Raises an error of _NO_VALUE where it is none, or more than one."""
_NO_VALUE = (msgspec.DecodeError, ValueError, RecursionError)


def unknown_column(schema: pa.Schema) -> str | None:
    """Returns the first column of a type that no JSON is read as, such as a map; None where there is none."""
    return next((str(field.name) for field in schema if not _is_known(field)), None)


def _is_known(field: pa.Field) -> bool:
    if _has_no_text(field.type):
        return False
    with suppress(pa.ArrowInvalid):  # the object lacks a field that must be there
        try:
            _read(b"{}", pa.schema([field]))
        except pa.ArrowNotImplementedError:
            return False
    return True


def _has_no_text(kind: pa.DataType) -> bool:
    """Returns whether Arrow makes no value of a type, or of one within, from a text: a time, void, a marked struct."""
    if pa.types.is_null(kind) or pa.types.is_time(kind):
        return True
    return is_marked(kind) or any(_has_no_text(field.type) for field in fields_of(kind))


def fields_of(kind: pa.DataType) -> list[pa.Field]:
    """Returns the fields within a type."""
    return [kind.field(at) for at in range(kind.num_fields)]


def is_marked(kind: pa.DataType) -> bool:
    """Returns whether a struct is a type of Spark's that Arrow has no other for, as a variant."""
    return any(_MARKS & (field.metadata or {}).keys() for field in fields_of(kind))


def parsed(bodies: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """Returns a row for each body, and the places of those that are no JSON objects of the schema, with the reasons.

    The rows of these have nulls. They are found by halves.
    """
    try:
        return _parsed(bodies, schema), {}
    except pa.ArrowException as error:
        if len(bodies) == 1:
            return _nulls(1, schema), {0: str(error)}
    half = len(bodies) // 2
    first, bad = parsed(bodies[:half], schema)
    second, more = parsed(bodies[half:], schema)
    return pa.concat_tables([first, second]), bad | {half + at: why for at, why in more.items()}


def _parsed(bodies: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Returns a row for each body. Raises ArrowException where one is no object of the schema."""
    if not all(body.lstrip()[:1] == b"{" for body in bodies):
        raise pa.ArrowInvalid("it is not an object")
    if not len(schema):
        if any(not (_is_read(_value, body) or _is_read(json.loads, body)) for body in bodies):
            raise pa.ArrowInvalid("it is no JSON")
        return _nulls(len(bodies), schema)
    if not bodies:
        return _nulls(0, schema)
    lines = b"\n".join(bodies)
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    table = _read(lines, schema)
    if table.num_rows != len(bodies):
        raise pa.ArrowInvalid("it is more than one object")
    if len(bodies) > 1:
        _check_each(bodies, schema)
    return table


def _check_each(bodies: Sequence[bytes], schema: pa.Schema) -> None:
    """Raises ArrowException where one is no object: two halves of one make a row, as one that is two makes two."""
    with suppress(*_NO_VALUE):
        deque(map(_value, bodies), maxlen=0)
        return
    for body in bodies:
        # What msgspec does not read may be read by Arrow: Python reads NaN as well, and is fast beside Arrow for one.
        if not (_is_read(_value, body) or _is_read(json.loads, body)) and _read(body, schema).num_rows != 1:
            raise pa.ArrowInvalid("it is more than one object")


def _is_read(read: Callable[[bytes], object], body: bytes) -> bool:
    try:
        read(body)
    except _NO_VALUE:
        return False
    return True


def _nulls(count: int, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)


def _read(lines: bytes, schema: pa.Schema) -> pa.Table:
    named = pa.schema([field.with_type(_named_type(field.type)) for field in schema])
    options = pyarrow.json.ParseOptions(explicit_schema=named, unexpected_field_behavior="ignore")
    block = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = pyarrow.json.read_json(io.BytesIO(lines), read_options=block, parse_options=options).select(schema.names)
    return table if table.schema == schema else table.cast(schema)


def _named_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type by which a value is read: a date is a text, wherever it is."""
    if pa.types.is_date32(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_named_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_named_type(field.type)) for field in kind])
    return kind
