"""The header ``ibm-mq-usr``: the user properties of a message, as ``name;value;type`` with commas between them.

They travel before the body as MQRFH2, in the folder ``usr``, and programs get them by MQINQMP or as properties of JMS.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Final

from trigmon.console.rest.rest_request import USER_PROPERTIES, RestError
from trigmon.mq.descriptors import CCSID_UTF8, FORMAT_STRING, MessageDescriptor
from trigmon.mq.rfh2 import TypedProperties, with_typed_properties
from trigmon.mqi.mqi_numbers import MqiError, PropertyType
from trigmon.mqi.properties import Value, from_text, to_text

LONGEST_ANSWER: Final = 16_384
"""Bytes of properties in an answer: clients refuse longer headers."""
_TYPES: Final = {
    "boolean": PropertyType.BOOLEAN,
    "byte": PropertyType.INT8,
    "short": PropertyType.INT16,
    "integer": PropertyType.INT32,
    "long": PropertyType.INT64,
    "float": PropertyType.FLOAT32,
    "double": PropertyType.FLOAT64,
    "string": PropertyType.STRING,
}
_SHORT: Final = {"i1": "byte", "i2": "short", "i4": "integer", "i8": "long", "r4": "float", "r8": "double"}
_WORDS: Final = {kind: word for word, kind in _TYPES.items()}
_TRUTH: Final = {"TRUE": True, "FALSE": False, "1": True, "0": False}
# Nothing in it matches a run of blanks in two ways: a long header takes no longer than its length.
_PROPERTY = re.compile(r'\s*([A-Za-z_]\w*)\s*;(\s*"(?:[^"\\]|\\.)*"\s*|[^;,"]*);\s*(\w+)\s*(?:,|\Z)', re.ASCII)
_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FOLDER: Final = "usr."
_OF_JMS: Final = {"mcd.Msd": ("", "jms_text")}
"""What MQ says of a text with user properties: it is a JMS TextMessage."""


def read_properties(headers: Iterable[str]) -> TypedProperties:
    """Returns the properties of these headers by the names that an MQRFH2 has them by. Raises RestError."""
    found: TypedProperties = {}
    for header in headers:
        try:
            text = header.encode("latin-1").decode()  # HTTP has bytes there, and so has MQ
        except UnicodeError:
            raise _wrong(header, "it is no UTF-8") from None
        at = 0
        while at < len(text):
            one = _PROPERTY.match(text, at)
            if one is None:
                raise _wrong(text[at:], "a property is name;value;type")
            name, value, word = one.groups()
            if _FOLDER + name in found:
                raise _wrong(name, "it is there twice")
            found[_FOLDER + name] = _typed(value.strip(), word)
            at = one.end()
    return found


def _typed(text: str, word: str) -> tuple[str, str | None]:
    kind = _TYPES.get(_SHORT.get(word.lower(), word.lower()))
    try:
        value: Value = json.loads(text) if text.startswith('"') else text
        if kind is None:
            raise _wrong(word, f"a type is {', '.join(_TYPES)}")
        if kind is not PropertyType.STRING and text.startswith('"'):
            raise _wrong(text, "only a string has quotes")
        if kind is PropertyType.BOOLEAN:
            value = _TRUTH[text.upper()]
        if kind in (PropertyType.FLOAT32, PropertyType.FLOAT64) and not math.isfinite(float(text)):
            raise ValueError(text)
        if isinstance(value, str) and _NOT_IN_XML.search(value):
            raise ValueError(value)
        return to_text(kind, value)
    except (ValueError, KeyError, MqiError):
        raise _wrong(text, f"it is no value of type {word}") from None


def _wrong(text: str, why: str) -> RestError:
    action = f'Send {USER_PROPERTIES}: name;value;type, as count;5;integer, place;"a b";string'
    return RestError(400, f"The header {USER_PROPERTIES} cannot be set: {why}: {text[:100]!a}", action, "MQWB0302E")


def put_with(text: str, properties: TypedProperties) -> tuple[MessageDescriptor, bytes]:
    """Returns how a text is put with properties."""
    of_text = MessageDescriptor(format=FORMAT_STRING, coded_char_set_id=CCSID_UTF8)
    return with_typed_properties(of_text, text.encode(), {**_OF_JMS, **properties})


def shown(properties: TypedProperties) -> str:
    """Returns the header of an answer, blank without user properties. Raises RestError (501) where it is too long."""
    of_user = {name.removeprefix(_FOLDER): typed for name, typed in properties.items() if name.startswith(_FOLDER)}
    text = ", ".join(filter(None, (_shown(name, typed) for name, typed in of_user.items())))
    if len(text) > LONGEST_ANSWER:
        about = f"The user properties of the message have {len(text)} bytes, and an answer at most {LONGEST_ANSWER}"
        raise RestError(501, about, "Take it by a program; it is left on the queue")
    return text


def _shown(name: str, typed: tuple[str, str | None]) -> str:
    try:
        kind, value = from_text(typed)
    except MqiError:
        kind, value = PropertyType.STRING, typed[1]
    if kind not in _WORDS or value is None:
        return ""
    if kind is PropertyType.BOOLEAN:
        text = "TRUE" if value else "FALSE"
    else:
        text = json.dumps(value) if kind is PropertyType.STRING else str(value)
    return f"{name.encode().decode('latin-1')};{text};{_WORDS[kind]}"
