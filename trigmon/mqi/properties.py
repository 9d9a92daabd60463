"""Message handles: the properties of a message, which travel as MQRFH2 before its data. Pure.

A property is kept as the header has it, as a text with a type. Numbers and truth become Python's; text stays text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from trigmon.mq.rfh2 import TypedProperties, TypedValue
from trigmon.mqi.mqi_numbers import InquireProperty, MqiError, MqiReason, PropertyType, SetProperty

Value = bool | int | float | str | bytes | None
_DT: Final = {
    PropertyType.BOOLEAN: "boolean",
    PropertyType.BYTE_STRING: "bin.hex",
    PropertyType.INT8: "i1",
    PropertyType.INT16: "i2",
    PropertyType.INT32: "i4",
    PropertyType.INT64: "i8",
    PropertyType.FLOAT32: "r4",
    PropertyType.FLOAT64: "r8",
    PropertyType.STRING: "",
}
_TYPES: Final = {dt: kind for kind, dt in _DT.items()} | {"int": PropertyType.INT64, "string": PropertyType.STRING}
_BITS: Final = {PropertyType.INT8: 8, PropertyType.INT16: 16, PropertyType.INT32: 32, PropertyType.INT64: 64}
_LENGTHS: Final = {kind: bits // 8 for kind, bits in _BITS.items()} | {
    PropertyType.BOOLEAN: 4,
    PropertyType.FLOAT32: 4,
    PropertyType.FLOAT64: 8,
    PropertyType.NULL: 0,
}
N = TypeVar("N")
_WILD = "%"
_USER_FOLDER = "usr."


class MessageHandle:
    """The properties of a message, in their order, and the cursor that an iteration is at.

    ``last`` is the property that was found last, and the length of its value.
    """

    def __init__(self) -> None:
        self.last = ("", 0)
        self._properties: dict[str, TypedValue] = {}
        self._cursor = ""

    def to_send(self) -> TypedProperties:
        """Returns the properties by the names that an MQRFH2 has them by."""
        return {name if "." in name else _USER_FOLDER + name: value for name, value in self._properties.items()}

    def take(self, found: TypedProperties) -> None:
        """Takes the properties of a message that was got in place of those that were there."""
        self._properties = {_plain(name): value for name, value in found.items()}
        self._cursor = ""

    def put(self, name: str, kind: int, value: Value, options: int) -> None:
        """Sets a property (MQSETMP). Raises MqiError."""
        typed = to_text(_type(kind), value)
        if options & SetProperty.UNDER_CURSOR:
            name = self._under_cursor()
        elif options & (SetProperty.AFTER_CURSOR | SetProperty.BEFORE_CURSOR):
            self._place(_checked(name), typed, behind=bool(options & SetProperty.AFTER_CURSOR))
            return
        name = _checked(name)
        if options & SetProperty.APPEND:
            self._properties.pop(name, None)
        self._properties[name] = typed

    def find(self, name: str, options: int) -> tuple[str, PropertyType, Value]:
        """Returns a property's name, type and value (MQINQMP). Raises MqiError: 2471 where there is none."""
        if options & InquireProperty.INQ_PROP_UNDER_CURSOR:
            found = self._under_cursor()
        else:
            found = self._next(name, behind=self._cursor if options & InquireProperty.INQ_NEXT else "")
        self._cursor = found
        kind, value = from_text(self._properties[found])
        return found, kind, value

    def remove(self, name: str, options: int) -> None:
        """Removes a property (MQDLTMP). Raises MqiError: 2471 where there is none."""
        found = self._under_cursor() if options else self._next(name, behind="")
        del self._properties[found]
        if found == self._cursor:
            self._cursor = ""

    def _under_cursor(self) -> str:
        if self._cursor not in self._properties:
            raise MqiError(MqiReason.PROPERTY_NOT_AVAILABLE, "there is no property under the cursor")
        return self._cursor

    def _place(self, name: str, typed: TypedValue, *, behind: bool) -> None:
        here = self._under_cursor()
        placed: dict[str, TypedValue] = {}
        for each, value in self._properties.items():
            if each == here and not behind:
                placed[name] = typed
            if each != name:
                placed[each] = value
            if each == here and behind:
                placed[name] = typed
        self._properties = placed

    def _next(self, name: str, behind: str) -> str:
        """Returns the first property of a name, or of a wildcard ``%`` or ``folder.%``, behind another."""
        names = list(self._properties)
        if behind in self._properties:
            names = names[names.index(behind) + 1 :]
        name = _plain(name)
        for each in names:
            if each == name or (name.endswith(_WILD) and _of_folder(each, name.removesuffix(_WILD))):
                return each
        raise MqiError(MqiReason.PROPERTY_NOT_AVAILABLE, f"there is no property {name}")


def length_of(kind: PropertyType, value: Value) -> int:
    """Returns how many bytes a value has in the MQI."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        return len(value.encode())
    return _LENGTHS.get(kind, 0)


def to_type(found: PropertyType, value: Value, asked: int) -> tuple[PropertyType, Value]:
    """Returns a value as the type that was asked for.

    Raises MqiError: 2470 where it cannot be that, 2472 for no number.
    """
    kind = _type(asked)
    if kind in (PropertyType.AS_SET, found):
        return found, value
    if kind is PropertyType.STRING:
        dt, text = to_text(found, value)
        return kind, ("TRUE" if value else "FALSE") if dt == "boolean" else text
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in _BITS and (isinstance(value, str) or (isinstance(value, int) and is_number)):
        return kind, _in_range(_number(value, int), _BITS[kind])
    if kind in (PropertyType.FLOAT32, PropertyType.FLOAT64) and (is_number or isinstance(value, str)):
        return kind, _number(value, float)
    raise MqiError(MqiReason.PROP_CONV_NOT_SUPPORTED, f"a {found.name} is no {kind.name}")


def to_text(kind: PropertyType, value: Value) -> TypedValue:
    """Returns a value as a header has it. Raises MqiError: 2473 for no type, 2472 for a number that does not fit."""
    if kind is PropertyType.NULL:
        return "", None
    if kind is PropertyType.BOOLEAN:
        return _DT[kind], "1" if value else "0"
    if kind is PropertyType.BYTE_STRING and isinstance(value, bytes):
        return _DT[kind], value.hex().upper()
    if kind in _BITS:
        return _DT[kind], str(_in_range(_number(value, int), _BITS[kind]))
    if kind is PropertyType.FLOAT32:
        return _DT[kind], f"{_number(value, float):.9g}"
    if kind is PropertyType.FLOAT64:
        return _DT[kind], repr(_number(value, float))
    if kind is PropertyType.STRING:
        return "", value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    raise MqiError(MqiReason.PROPERTY_TYPE_ERROR, f"a {type(value).__name__} is no value of type {kind!r}")


def from_text(typed: TypedValue) -> tuple[PropertyType, Value]:
    """Returns type and value of what a header has. Raises MqiError (2472) for what is no value of its type."""
    dt, text = typed
    kind = _TYPES.get(dt, PropertyType.STRING)
    if text is None:
        return PropertyType.NULL, None
    if kind is PropertyType.BOOLEAN:
        return kind, text.strip().lower() in ("1", "true")
    if kind in _BITS:
        return kind, _in_range(_number(text, int), _BITS[kind])
    if kind is PropertyType.FLOAT32:
        try:
            return kind, struct.unpack("<f", struct.pack("<f", _number(text, float)))[0]
        except OverflowError:
            raise MqiError(MqiReason.PROP_NUMBER_FORMAT_ERROR, text) from None
    if kind is PropertyType.FLOAT64:
        return kind, _number(text, float)
    if kind is PropertyType.BYTE_STRING:
        return kind, _number(text, bytes.fromhex)
    return kind, text


def _number(value: Value, read: Callable[[Any], N]) -> N:
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError):
        raise MqiError(MqiReason.PROP_NUMBER_FORMAT_ERROR, f"{value!r} is no number") from None


def _in_range(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise MqiError(MqiReason.PROP_NUMBER_FORMAT_ERROR, f"{value} has more than {bits} bits")
    return value


def _type(kind: int) -> PropertyType:
    if kind and (kind not in PropertyType._value2member_map_):
        raise MqiError(MqiReason.PROPERTY_TYPE_ERROR, f"there is no type {kind:#x}")
    return PropertyType(kind)


def _checked(name: str) -> str:
    if not name or any(not c.isprintable() or c in "%<>&'\" " for c in name) or name.startswith("."):
        raise MqiError(MqiReason.PROPERTY_NAME_ERROR, f"{name!r} is no name of a property")
    return _plain(name)


def _plain(name: str) -> str:
    """Returns a name without the folder ``usr``, which those have that name no folder."""
    rest = name.removeprefix(_USER_FOLDER)
    return rest if "." not in rest else name


def _of_folder(name: str, folder: str) -> bool:
    return name.startswith(folder) or (folder == _USER_FOLDER and "." not in name)
