"""Rows as JSON objects, as Spark's ``to_json`` writes them. Pure.

A null field of a struct is left out, one of an array or a map is written. NaN and the infinities are texts, as JSON has
no such numbers. Decimals keep their digits, bytes are base64. A timestamp is ISO 8601 in UTC with milliseconds; one
with microseconds keeps them, where ``to_json`` cuts them off.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from trigmon.spark.json_columns import fields_of, is_marked

Write = Callable[[Any], str]
"""Writes a value that is not null."""


def unwritten_column(schema: pa.Schema) -> str | None:
    """Returns the first column of a type that is not written as ``to_json`` writes it; None where there is none."""
    return next((str(field.name) for field in schema if not _is_written(field.type)), None)


def _is_written(kind: pa.DataType) -> bool:
    if is_marked(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return False
    if pa.types.is_map(kind) and (pa.types.is_nested(kind.key_type) or pa.types.is_binary(kind.key_type)):
        return False
    return all(_is_written(field.type) for field in fields_of(kind))


def writer(kind: pa.DataType) -> Write:
    """Returns what writes the values of an Arrow type, as ``to_pylist`` gives them."""
    if pa.types.is_struct(kind):
        return _struct([(field.name, writer(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return _map(writer(kind.key_type), writer(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(writer(kind.value_type))
    for is_so, write in _PLAIN:
        if is_so(kind):
            return write
    return lambda value: _text(str(value))


def objects(batch: pa.RecordBatch) -> list[str]:
    """Returns each row of a batch as a JSON object."""
    write = _struct([(field.name, writer(field.type)) for field in batch.schema])
    return [write(row) for row in batch.to_pylist()]


def _struct(fields: list[tuple[str, Write]]) -> Write:
    named = [(name, f"{_text(name)}:", write) for name, write in fields]

    def written(value: Any) -> str:
        return "{" + ",".join(key + write(value[name]) for name, key, write in named if value[name] is not None) + "}"

    return written


def _map(write_key: Write, write: Write) -> Write:
    def key(value: Any) -> str:
        text = write_key(value)
        return text if text.startswith('"') else f'"{text}"'

    def written(value: Any) -> str:
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{key(name)}:{_or_null(write, item)}" for name, item in pairs) + "}"

    return written


def _list(write: Write) -> Write:
    return lambda value: "[" + ",".join(_or_null(write, item) for item in value) + "]"


def _or_null(write: Write, value: Any) -> str:
    return "null" if value is None else write(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _single(value: float) -> str:
    """Writes a float of 4 bytes by the fewest digits that tell it from its neighbours, as 0.1."""
    if not math.isfinite(value):
        return _float(value)
    texts = (f"{value:.{digits}g}" for digits in range(6, 10))
    return _float(float(next(text for text in texts if struct.pack("f", float(text)) == struct.pack("f", value))))


def _timestamp(value: datetime) -> str:
    text = (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None)
    digits = text.isoformat(timespec="microseconds" if text.microsecond % 1000 else "milliseconds")
    return f'"{digits}Z"' if value.tzinfo else f'"{digits}"'


_PLAIN: list[tuple[Callable[[pa.DataType], bool], Write]] = [
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (pa.types.is_boolean, lambda value: "true" if value else "false"),
    (pa.types.is_integer, str),
    (pa.types.is_float32, _single),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, lambda value: f"{value:f}"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), lambda value: _base64(value)),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, lambda value: f'"{value.isoformat()}"'),
]


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'
