"""MQINQ and MQSET: selectors in order, integers and characters behind one another. Pure.

What a selector means is in the table of attributes (:mod:`trigmon.mq.attributes`); here is only what MQ has more than
one number for, and the times that an object keeps as milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trigmon.mq.attributes import ATTRIBUTES, STATUS, Attribute
from trigmon.mq.descriptors import date_and_time
from trigmon.mq.enums import ObjectType
from trigmon.mq.names import NAME_LENGTH
from trigmon.mqi.mqi_numbers import MqiError, MqiReason

LAST_INTEGER: Final = 2000
"""Selectors above are of characters."""
_NAMES: Final = frozenset((2010, 2012, 2015, 2016))
_DESCRIPTIONS: Final = frozenset((2009, 2011, 2014))
_DESCRIPTION = 2013
_TIMES: Final = {
    2004: ("created_ms", True),
    2005: ("created_ms", False),
    2027: ("altered_ms", True),
    2028: ("altered_ms", False),
}
_FIXED: Final = {34: 0, 61: 0, 184: 1, 188: 0, 190: 0}
"""What is always so here: no distribution lists, binding on open, synchronous puts, no read ahead, properties
as PROPCTL(COMPAT)."""
_DATE_LENGTH, _TIME_LENGTH = 12, 8
NOT_APPLICABLE = -1


def _by_selector() -> dict[int, Attribute]:
    found = {a.selector: a for a in STATUS.values() if a.selector}
    for which in ObjectType:
        for attribute in ATTRIBUTES.get(which, {}).values():
            if attribute.selector:
                found.setdefault(attribute.selector, attribute)
    return found


_ATTRIBUTES: Final = _by_selector()


def asked_of(selectors: Sequence[int]) -> list[str | int]:
    """Returns what a call has to ask for these selectors. Raises MqiError (2067) for one that is none."""
    names: dict[str | int, None] = {}
    for selector in selectors:
        if selector in _TIMES:
            names["created_ms"] = names["altered_ms"] = None
        elif selector in _NAMES or selector in _FIXED:
            names["name"] = None
        elif attribute := _ATTRIBUTES.get(_common(selector)):
            names[attribute.name] = None
        else:
            raise MqiError(MqiReason.SELECTOR_ERROR, f"selector {selector}")
    return list(names)


def answered(selectors: Sequence[int], row: Mapping[str, Any]) -> tuple[list[int], bytes]:
    """Returns the integers and the characters of an object's row, each in the order of the selectors."""
    integers: list[int] = []
    characters: list[bytes] = []
    for selector in selectors:
        if selector > LAST_INTEGER:
            characters.append(_characters(selector, row))
        else:
            fixed = _FIXED.get(selector)
            integers.append(_integer(_ATTRIBUTES[selector], row) if fixed is None else fixed)
    return integers, b"".join(characters)


def to_set(selectors: Sequence[int], integers: Sequence[int], characters: bytes) -> dict[str | int, Any]:
    """Returns the attributes of an MQSET. Raises MqiError: 2067, 2022 and 2008 where values are missing."""
    values: dict[str | int, Any] = {}
    left = list(integers)
    at = 0
    for selector in selectors:
        attribute = _ATTRIBUTES.get(selector)
        if attribute is None:
            raise MqiError(MqiReason.SELECTOR_ERROR, f"selector {selector}")
        if selector <= LAST_INTEGER:
            if not left:
                raise MqiError(MqiReason.INT_ATTR_COUNT_TOO_SMALL)
            values[selector] = left.pop(0)
            continue
        field = characters[at : at + _length(attribute)]
        if len(field) < _length(attribute):
            raise MqiError(MqiReason.CHAR_ATTRS_TOO_SHORT)
        values[selector] = field.partition(b"\0")[0].rstrip(b" ").decode(errors="replace")
        at += len(field)
    return values


def _common(selector: int) -> int:
    return _DESCRIPTION if selector in _DESCRIPTIONS else selector


def _length(attribute: Attribute) -> int:
    return attribute.length or NAME_LENGTH


def _characters(selector: int, row: Mapping[str, Any]) -> bytes:
    if selector in _NAMES:
        return _field(str(row["name"]), NAME_LENGTH)
    if selector in _TIMES:
        return _moment(*_TIMES[selector], row)
    attribute = _ATTRIBUTES[_common(selector)]
    if attribute.is_names:
        return b"".join(_field(str(name), NAME_LENGTH) for name in row[attribute.name])
    return _field(str(row[attribute.name]), _length(attribute))


def _moment(name: str, is_date: bool, row: Mapping[str, Any]) -> bytes:
    """Returns a date as YYYY-MM-DD in 12 characters, or a time as HH.MM.SS."""
    if not row.get(name):
        return b" " * (_DATE_LENGTH if is_date else _TIME_LENGTH)
    date, time = date_and_time(int(row[name]))
    if is_date:
        return _field(f"{date[:4]}-{date[4:6]}-{date[6:]}", _DATE_LENGTH)
    return _field(f"{time[:2]}.{time[2:4]}.{time[4:6]}", _TIME_LENGTH)


def _integer(attribute: Attribute, row: Mapping[str, Any]) -> int:
    value = row[attribute.name]
    return value if type(value) is int else int(attribute.read(value, attribute.name))


def _field(text: str, length: int) -> bytes:
    return text.encode()[:length].ljust(length)
