"""Reads a queue's first messages by columns and without their data, for a reservation of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.rules.model.stored_messages import SLICE, Found, MessageColumns, Selection, kind_of
from trigmon.store.sql import statements as sql
from trigmon.store.sql.available_rows import open_available
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sql.row_stream import OpenRows

_decode = msgspec.msgpack.Decoder(list[MessageDescriptor]).decode
_put_ms = attrgetter("put_ms")
_expires_ms = itemgetter(2)
_PRIORITIES = frozenset(range(10))
_ARRAY = b"\xdd"
"""MessagePack's type of an array with a length of four bytes."""


def find_columns(open_rows: OpenRows, ranges: ReservedRanges, selection: Selection, number: int) -> Found | None:
    """Returns the first messages of the queue with this number; None where they have to be read one by one.

    The queue has no messages of groups, and none is locked. ``limit_bytes`` does not matter, since no data is read.
    """

    def open_columns(statement: str, values: tuple[object, ...]) -> Any:
        return open_rows(sql.by_columns(statement), values)

    rows = open_available(open_columns, ranges, sql.FIND_FIRST["plain"], (number,))
    try:
        return read_columns(rows, selection.q_name, selection.limit)
    finally:
        rows.close(True)


def read_columns(rows: Iterable[Any], q_name: str, limit: int) -> Found | None:
    """Returns the messages of the first rows of :func:`trigmon.store.sql.statements.by_columns`.

    None where there are none, and where one of the first :data:`SLICE` has to be looked at by itself: it expires, or
    what is read of it cannot be right. Where one behind these has to, these alone. Other damage is found when the
    message is read.
    """
    rows = iter(rows)
    first = list(islice(rows, min(limit, SLICE)))
    if any(map(_expires_ms, first)):
        return None
    read = first + list(islice(rows, max(0, limit - SLICE)))
    found = _columns(read, q_name)
    if found is not None:
        return Found(columns=found)
    found = _columns(first, q_name) if len(read) > len(first) else None
    return None if found is None else Found(columns=found, most=SLICE)


def _columns(rows: list[Any], q_name: str) -> MessageColumns | None:
    """Returns the messages of rows; None where there are none, and where one has to be looked at by itself."""
    if not rows:
        return None
    numbers, priorities, expiries, sizes, heads = map(list, zip(*rows, strict=True))
    types = {*map(type, priorities), *map(type, expiries), *map(type, sizes)}
    if types != {int} or any(expiries) or not set(priorities) <= _PRIORITIES:
        return None
    try:
        descriptors = _decode(_ARRAY + len(heads).to_bytes(4, "big") + b"".join(heads))
    except (msgspec.MsgspecError, TypeError, ValueError):  # ValueError: a text is no UTF-8
        return None
    return MessageColumns(
        q_name, numbers, priorities, sizes, list(map(_put_ms, descriptors)), list(map(kind_of, descriptors))
    )
