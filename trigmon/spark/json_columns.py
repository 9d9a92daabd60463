"""JSON objects as columns of Arrow. Pure.

Arrow's reader takes a date as a number of days alone. Here it is a text as ``2024-02-29``, as Spark has it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.json

_MARKS = {b"variant", b"geometry", b"geography"}
"""In the metadata of a struct's field they say that Spark has a type of that name, and not a struct."""


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
    """Returns whether Arrow makes no value of a type, or of one within, from a text: a time, a marked struct."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if any(_MARKS & (field.metadata or {}).keys() for field in fields):
        return True
    return pa.types.is_time(kind) or any(_has_no_text(field.type) for field in fields)


def parsed_or_bad(bodies: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table | None, dict[int, str]]:
    """Returns a row for each body; where some are no JSON objects of the schema, their places with the reasons."""
    try:
        return parsed(bodies, schema), {}
    except pa.ArrowException as error:
        return None, _unreadable(bodies, schema, 0, error)


def _unreadable(bodies: Sequence[bytes], schema: pa.Schema, first: int, error: pa.ArrowException) -> dict[int, str]:
    """Returns the places of those that cannot be read, by halves; together they raised this error."""
    if len(bodies) == 1:
        return {first: str(error)}
    half = len(bodies) // 2
    bad: dict[int, str] = {}
    for at, part in ((first, bodies[:half]), (first + half, bodies[half:])):
        try:
            parsed(part, schema)
        except pa.ArrowException as why:
            bad |= _unreadable(part, schema, at, why)
    return bad


def parsed(bodies: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Returns a row for each body. Raises ArrowException where one is no object of the schema."""
    if not all(body.lstrip()[:1] == b"{" for body in bodies):
        raise pa.ArrowInvalid("it is not an object")
    if not bodies or not len(schema):
        return pa.table({field.name: pa.nulls(len(bodies), field.type) for field in schema})
    lines = b"\n".join(bodies)
    if lines.count(b"\n") >= len(bodies) or b"\r" in lines:
        # JSON has line breaks only between its tokens, so each object can be made one line.
        lines = b"\n".join(body.replace(b"\n", b" ").replace(b"\r", b" ") for body in bodies)
    table = _read(lines, schema)
    if table.num_rows != len(bodies):
        raise pa.ArrowInvalid("it is more than one object")
    return table


def _read(lines: bytes, schema: pa.Schema) -> pa.Table:
    named = pa.schema([field.with_type(_named_type(field.type)) for field in schema])
    options = pyarrow.json.ParseOptions(explicit_schema=named, unexpected_field_behavior="ignore")
    block = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = pyarrow.json.read_json(io.BytesIO(lines), read_options=block, parse_options=options).select(schema.names)
    return table if named == schema else table.cast(schema)


def _named_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type by which a value is read: a date is a text, wherever it is."""
    if pa.types.is_date32(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_named_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_named_type(field.type)) for field in kind])
    return kind
