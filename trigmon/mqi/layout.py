"""The layout of a structure of the MQI, as a C compiler of a 64-bit machine lays it out. Pure.

A table says it, a line for each run of fields of one type: the version that has them, the type, the names. A name may
have its default: ``Expiry=-1``; without it that is zero, nulls or blanks. Types are ``long`` (MQLONG, 4 bytes),
``int64`` (8), ``ptr`` (8), ``charN`` (characters, padded with blanks or ended by a null), ``byteN``, ``longN`` (an
array) and ``charv`` (MQCHARV, 24 bytes, whose parts have the field's name before their own). Integers are native.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple, cast

_TYPE = re.compile(r"(long|int64|ptr|char|byte|charv)(\d*)")
_SIZES = {"long": 4, "int64": 8, "ptr": 8, "char": 1, "byte": 1}
_CODES = {"long": "i", "int64": "q", "ptr": "Q"}
_OF_CHARV = (("VSPtr", "ptr", 0), ("VSOffset", "long", 0), ("VSBufSize", "long", 0), ("VSLength", "long", 0))
CCSID_APPL = -3

Value = int | bytes
Values = dict[str, Value]


class Field(NamedTuple):
    """One field: ``kind`` is long, int64, ptr, char or byte, ``length`` is in bytes."""

    name: str
    kind: str
    length: int
    offset: int
    version: int
    default: Value


class Structure:
    """One structure of the MQI: its fields with offsets, and its length in each version.

    ``lengths`` has the length in each version, filled up to the alignment that its widest field asks for; ``size`` is
    that of the last, which is what C's ``sizeof`` says.
    """

    def __init__(self, name: str, table: str) -> None:
        self.name = name
        self.fields = tuple(_laid_out(table))
        self.struc_id = cast(bytes, self.fields[0].default)
        self.lengths = _lengths(self.fields)
        self.current_version = max(self.lengths)
        self.size = self.lengths[self.current_version]
        self.defaults: Values = {f.name: f.default for f in self.fields}
        self._names = frozenset(self.defaults)
        self._packer = struct.Struct(_format(self.fields, self.size))

    def pack(self, values: Mapping[str, Value] = {}) -> bytes:
        """Packs the whole structure; a field that is not named has its default. Raises KeyError for no field's name.

        Characters that are too many are cut, too few are padded with blanks (bytes with nulls). A field's integer that
        is out of range raises struct.error.
        """
        if unknown := values.keys() - self._names:
            raise KeyError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        return self._packer.pack(*(_packed(f, values.get(f.name, f.default)) for f in self.fields))

    def unpack(self, raw: bytes) -> Values:
        """Returns the fields' values; characters are whole, as they lie there. Fields that ``raw`` lacks are defaults.

        A field's value counts only where the structure's Version has it: of a later one it is the default.
        """
        found = self._packer.unpack(raw[: self.size].ljust(self.size, b"\0"))
        values = dict(zip(self.defaults, found, strict=True))
        version = values.get("Version", self.current_version)
        has = version if isinstance(version, int) else self.current_version
        for f in self.fields:
            if f.version > has or f.offset + f.length > len(raw):
                values[f.name] = f.default
        return values

    def is_one(self, raw: bytes) -> bool:
        """Returns whether bytes begin as this structure does: its StrucId, and a Version that it has."""
        if len(raw) < 8 or raw[:4] != self.struc_id:
            return False
        version = int.from_bytes(raw[4:8], "little", signed=True)
        return version in range(1, self.current_version + 1) and len(raw) >= self.length_of(version)

    def length_of(self, version: int) -> int:
        """Returns how many bytes a structure of this version has at least."""
        return max(length for of, length in self.lengths.items() if of <= max(version, min(self.lengths)))


def _laid_out(table: str) -> list[Field]:
    fields: list[Field] = []
    at = 0
    for line in filter(None, map(str.strip, table.splitlines())):
        version, kind, rest = line.split(None, 2)
        for entry in re.findall(r"\w+(?:='[^']*'|=\S+)?", rest):
            name, _, default = entry.partition("=")
            for field in _parts(name, kind, default, int(version)):
                at += -at % _SIZES[field.kind]
                fields.append(field._replace(offset=at))
                at += field.length
    return fields


def _parts(name: str, kind: str, default: str, version: int) -> list[Field]:
    matched = _TYPE.fullmatch(kind)
    assert matched, f"{kind} is no type"
    if kind == "charv":
        parts = (*_OF_CHARV, ("VSCCSID", "long", CCSID_APPL))
        return [Field(f"{name}{tail}", of, _SIZES[of], 0, version, value) for tail, of, value in parts]
    base, count = matched[1], int(matched[2] or 1)
    length = _SIZES[base] * count
    if base in _CODES and count == 1:
        return [Field(name, base, length, 0, version, int(default or 0))]
    if base == "long":
        return [Field(f"{name}{n}", base, 4, 0, version, int(default or 0)) for n in range(count)]
    fill = b" " if base == "char" else b"\0"
    return [Field(name, base, length, 0, version, default.strip("'").encode().ljust(length, fill))]


def _lengths(fields: tuple[Field, ...]) -> dict[int, int]:
    """Returns the length of each version; padding that a later version's field will use belongs to none."""
    lengths: dict[int, int] = {}
    widest = 1
    for f in fields:
        widest = max(widest, _SIZES[f.kind])
        end = f.offset + f.length
        lengths[f.version] = end + -end % widest
    return lengths


def _packed(field: Field, value: Value) -> Value:
    if isinstance(value, bytes) and field.kind == "char":
        return value.ljust(field.length)
    return value


def _format(fields: tuple[Field, ...], size: int) -> str:
    """Returns a format of the module struct whose gaps are those that C leaves."""
    parts, at = ["<"], 0
    for f in fields:
        parts.append(f"{f.offset - at}x" if f.offset > at else "")
        parts.append(_CODES.get(f.kind) or f"{f.length}s")
        at = f.offset + f.length
    return "".join(parts) + (f"{size - at}x" if size > at else "")
