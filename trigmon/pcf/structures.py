"""The structures of a PCF message: the header MQCFH and the parameters behind it, packed and read back.

Read are MQCFIN, MQCFIN64, MQCFST, MQCFBS, their lists, the filters MQCFIF, MQCFSF and MQCFBF, and groups (MQCFGR).
Integers have the byte order that Encoding says; texts are in the structure's CCSID or, where that is 0, in the
message's, and are padded with zeros to a multiple of four bytes. Whatever the bytes are, reading raises PcfError alone.
Sources: the manual's pages of these structures, and the header's constants.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from trigmon.mq.descriptors import CCSID_UTF8, ENCODING_NATIVE, LARGEST_LONG, integer_order
from trigmon.mq.reasons import CompCode
from trigmon.pcf.numbers import PcfReason, StructureType
from trigmon.pcf.texts import text_codec

LAST: Final = 1
"""MQCFC_LAST: no message of the same set follows."""
NOT_LAST: Final = 0
VERSIONS: Final = (1, 2, 3)
_DEEPEST_GROUP: Final = 8
_NUMBERS_OF_TEXTS: Final = range(2001, 4001)
"""MQCA_FIRST to MQCA_LAST."""
_LONGS: Final = (-LARGEST_LONG - 1, LARGEST_LONG)


class PcfError(ValueError):
    """These bytes are no PCF message. ``reason`` is MQ's for it, ``parameter`` the number of what is wrong, or 0."""

    def __init__(self, reason: PcfReason, about: str, parameter: int = 0) -> None:
        super().__init__(f"{reason.mq_name} ({int(reason)}): {about}")
        self.reason = reason
        self.parameter = parameter


class Filter(msgspec.Struct, frozen=True):
    """MQCFIF, MQCFSF, MQCFBF: what a parameter of an object is compared with, and how (``MQCFOP_*``)."""

    operator: int
    value: int | str | bytes


class Group(msgspec.Struct, frozen=True):
    """MQCFGR: parameters that belong together."""

    parameters: tuple[Parameter, ...]


Value = int | str | bytes | tuple[int, ...] | tuple[str, ...] | Filter | Group
Parameter = tuple[int, Value]
"""IBM's number of the parameter, and the value."""


class PcfMessage(msgspec.Struct, frozen=True):
    """A PCF message. ``sequence`` counts the messages of a set from 1, of which one is the last."""

    kind: StructureType
    command: int
    comp_code: CompCode
    reason: int
    parameters: tuple[Parameter, ...]
    sequence: int = 1
    control: int = LAST
    version: int = 1


# -- packing --------------------------------------------------------------------------------------------------


def pack_message(message: PcfMessage, encoding: int = ENCODING_NATIVE, ccsid: int = CCSID_UTF8) -> bytes:
    """Returns the bytes of a message. Raises struct.error for a number beyond 64 bits."""
    order = ">" if integer_order(encoding) == "big" else "<"
    header = (message.kind, 36, message.version, message.command, message.sequence, message.control)
    outcome = (message.comp_code, message.reason, len(message.parameters))
    packed = struct.pack(f"{order}9i", *header, *outcome)
    return packed + b"".join(_packed(order, ccsid, *each) for each in message.parameters)


def _packed(order: str, ccsid: int, number: int, value: Value) -> bytes:
    match value:
        case int():
            return _packed_number(order, number, value)
        case str():
            text = _encoded(value, ccsid)
            fixed = (StructureType.STRING, 20 + _padded(len(text)), number, ccsid, len(text))
            return struct.pack(f"{order}5i", *fixed) + _filled(text)
        case bytes():
            fixed4 = (StructureType.BYTE_STRING, 16 + _padded(len(value)), number, len(value))
            return struct.pack(f"{order}4i", *fixed4) + _filled(value)
        case Filter():
            return _packed_filter(order, ccsid, number, value)
        case Group():
            head = struct.pack(f"{order}4i", StructureType.GROUP, 16, number, len(value.parameters))
            return head + b"".join(_packed(order, ccsid, *each) for each in value.parameters)
        case tuple():
            return _packed_list(order, ccsid, number, value)


def _packed_number(order: str, number: int, value: int) -> bytes:
    if _LONGS[0] <= value <= _LONGS[1]:
        return struct.pack(f"{order}4i", StructureType.INTEGER, 16, number, value)
    return struct.pack(f"{order}4iq", StructureType.INTEGER64, 24, number, 0, value)


def _packed_list(order: str, ccsid: int, number: int, values: Sequence[int] | Sequence[str]) -> bytes:
    """Returns MQCFIL, MQCFIL64 or MQCFSL; what a list of nothing is, its number says."""
    texts = [_encoded(each, ccsid) for each in values if isinstance(each, str)]
    if texts or (not values and number in _NUMBERS_OF_TEXTS):
        # All have one length, and blanks behind them.
        width = max(map(len, texts), default=0)
        text = b"".join(each.ljust(width) for each in texts)
        fixed = (StructureType.STRING_LIST, 24 + _padded(len(text)), number, ccsid, len(texts), width)
        return struct.pack(f"{order}6i", *fixed) + _filled(text)
    numbers = [int(each) for each in values]
    if all(_LONGS[0] <= each <= _LONGS[1] for each in numbers):
        count = len(numbers)
        return struct.pack(f"{order}{4 + count}i", StructureType.INTEGER_LIST, 16 + 4 * count, number, count, *numbers)
    head = (StructureType.INTEGER64_LIST, 16 + 8 * len(numbers), number, len(numbers))
    return struct.pack(f"{order}4i{len(numbers)}q", *head, *numbers)


def _packed_filter(order: str, ccsid: int, number: int, value: Filter) -> bytes:
    if isinstance(value.value, int):
        return struct.pack(f"{order}5i", StructureType.INTEGER_FILTER, 20, number, value.operator, value.value)
    if isinstance(value.value, bytes):
        raw = value.value
        head = (StructureType.BYTE_STRING_FILTER, 20 + _padded(len(raw)), number, value.operator, len(raw))
        return struct.pack(f"{order}5i", *head) + _filled(raw)
    text = _encoded(value.value, ccsid)
    fixed = (StructureType.STRING_FILTER, 24 + _padded(len(text)), number, value.operator, ccsid, len(text))
    return struct.pack(f"{order}6i", *fixed) + _filled(text)


def _encoded(text: str, ccsid: int) -> bytes:
    return text.encode(text_codec(ccsid) or "utf-8", "replace")


def _padded(length: int) -> int:
    return -(-length // 4) * 4


def _filled(raw: bytes) -> bytes:
    return raw.ljust(_padded(len(raw)), b"\0")


# -- reading --------------------------------------------------------------------------------------------------


def unpack_message(data: bytes, encoding: int = ENCODING_NATIVE, ccsid: int = CCSID_UTF8) -> PcfMessage:
    """Returns the message of these bytes. Raises PcfError where they are none."""
    order = ">" if integer_order(encoding) == "big" else "<"
    if len(data) < 36:
        raise PcfError(PcfReason.MSG_LENGTH_ERROR, f"an MQCFH has 36 bytes, not {len(data)}")
    kind, length, version, command, sequence, control, comp_code, reason, count = struct.unpack_from(f"{order}9i", data)
    if kind not in StructureType._value2member_map_:
        raise PcfError(PcfReason.CFH_TYPE_ERROR, f"type {kind}")
    if length != 36:
        raise PcfError(PcfReason.CFH_LENGTH_ERROR, f"length {length}, not 36")
    if version not in VERSIONS:
        raise PcfError(PcfReason.CFH_VERSION_ERROR, f"version {version}")
    if comp_code not in CompCode._value2member_map_:
        raise PcfError(PcfReason.CFH_TYPE_ERROR, f"completion code {comp_code}")
    if count < 0:
        raise PcfError(PcfReason.CFH_PARM_COUNT_ERROR, f"{count} parameters")
    reader = _Reader(data, order, ccsid)
    parameters = reader.parameters(count, 0)
    if reader.at < len(data):
        raise PcfError(PcfReason.MSG_LENGTH_ERROR, f"{len(data) - reader.at} bytes behind the last parameter")
    of_set = {"sequence": sequence, "control": control, "version": version}
    return PcfMessage(StructureType(kind), command, CompCode(comp_code), reason, parameters, **of_set)


class _Reader:
    """Reads parameters one behind the other. ``at`` is where the next begins."""

    def __init__(self, data: bytes, order: str, ccsid: int) -> None:
        self._data = data
        self._order = order
        self._ccsid = ccsid
        self.at = 36

    def parameters(self, count: int, depth: int) -> tuple[Parameter, ...]:
        if count > (len(self._data) - self.at) // 16:
            raise PcfError(PcfReason.CFH_PARM_COUNT_ERROR, f"{count} parameters do not lie there")
        return tuple(self._parameter(depth) for _ in range(count))

    def _parameter(self, depth: int) -> Parameter:
        """Returns the next parameter, and passes over what a group holds."""
        begin = self.at
        if len(self._data) - begin < 16:
            raise PcfError(PcfReason.CFH_PARM_COUNT_ERROR, "fewer parameters than MQCFH says")
        kind, length, number = struct.unpack_from(f"{self._order}3i", self._data, begin)
        read = _READERS.get(kind)
        if read is None:
            raise PcfError(PcfReason.STRUCTURE_TYPE_ERROR, f"parameter type {kind}", number)
        fixed, wrong = _LENGTHS[kind]
        if not fixed <= length <= len(self._data) - begin or length % 4:
            raise PcfError(wrong, f"length {length}", number)
        self.at = begin + length
        if kind == StructureType.GROUP:
            return number, self._group(begin, number, depth)
        return number, read(self, begin, length, number)

    def _group(self, begin: int, number: int, depth: int) -> Group:
        (count,) = self.numbers(begin + 12, 1)
        if depth >= _DEEPEST_GROUP or count < 0:
            raise PcfError(PcfReason.CFGR_PARM_COUNT_ERROR, f"{count} parameters, in {depth} groups", number)
        return Group(self.parameters(count, depth + 1))

    def numbers(self, at: int, count: int, form: str = "i") -> tuple[int, ...]:
        return struct.unpack_from(f"{self._order}{count}{form}", self._data, at)

    def raw(self, at: int, size: int, end: int, wrong: PcfReason, number: int) -> bytes:
        """Returns so many bytes of a structure that ends at ``end``."""
        if not 0 <= size <= end - at:
            raise PcfError(wrong, f"{size} bytes of text or data", number)
        return self._data[at : at + size]

    def text(self, raw: bytes, ccsid: int, number: int) -> str:
        codec = text_codec(ccsid or self._ccsid)
        if codec is None:
            raise PcfError(PcfReason.CCSID_ERROR, f"CCSID {ccsid or self._ccsid} is not known here", number)
        try:
            return raw.decode(codec)
        except UnicodeDecodeError:
            raise PcfError(PcfReason.CCSID_ERROR, f"no text in CCSID {ccsid or self._ccsid}", number) from None

    def read_integer(self, begin: int, length: int, number: int) -> int:
        return self.numbers(begin + 12, 1)[0]

    def read_integer64(self, begin: int, length: int, number: int) -> int:
        return self.numbers(begin + 16, 1, "q")[0]

    def read_string(self, begin: int, length: int, number: int) -> str:
        ccsid, size = self.numbers(begin + 12, 2)
        raw = self.raw(begin + 20, size, begin + length, PcfReason.CFST_STRING_LENGTH_ERR, number)
        return self.text(raw, ccsid, number)

    def read_bytes(self, begin: int, length: int, number: int) -> bytes:
        (size,) = self.numbers(begin + 12, 1)
        return self.raw(begin + 16, size, begin + length, PcfReason.CFBS_STRING_LENGTH_ERR, number)

    def read_integers(self, begin: int, length: int, number: int) -> tuple[int, ...]:
        return self.numbers(begin + 16, self._count(begin, length, 4, number))

    def read_integers64(self, begin: int, length: int, number: int) -> tuple[int, ...]:
        return self.numbers(begin + 16, self._count(begin, length, 8, number), "q")

    def _count(self, begin: int, length: int, size: int, number: int) -> int:
        (count,) = self.numbers(begin + 12, 1)
        if not 0 <= count <= (length - 16) // size:
            raise PcfError(PcfReason.CFIL_COUNT_ERROR, f"{count} integers", number)
        return count

    def read_strings(self, begin: int, length: int, number: int) -> tuple[str, ...]:
        ccsid, count, size = self.numbers(begin + 12, 3)
        if count < 0 or (size and count > (length - 24) // max(size, 1)):
            raise PcfError(PcfReason.CFSL_COUNT_ERROR, f"{count} texts", number)
        if not 0 <= size <= length - 24 or count > length:
            raise PcfError(PcfReason.CFSL_STRING_LENGTH_ERR, f"{count} texts of {size} bytes", number)
        raw = self._data[begin + 24 : begin + 24 + count * size]
        each = (raw[at * size : (at + 1) * size].rstrip(b" \0") for at in range(count))
        return tuple(self.text(one, ccsid, number).rstrip(" \0") for one in each)

    def read_integer_filter(self, begin: int, length: int, number: int) -> Filter:
        return Filter(*self.numbers(begin + 12, 2))

    def read_string_filter(self, begin: int, length: int, number: int) -> Filter:
        operator, ccsid, size = self.numbers(begin + 12, 3)
        raw = self.raw(begin + 24, size, begin + length, PcfReason.CFSF_FILTER_VAL_LEN_ERR, number)
        return Filter(operator, self.text(raw, ccsid, number))

    def read_byte_filter(self, begin: int, length: int, number: int) -> Filter:
        operator, size = self.numbers(begin + 12, 2)
        return Filter(operator, self.raw(begin + 20, size, begin + length, PcfReason.CFBF_FILTER_VAL_LEN_ERR, number))


_READERS: dict[int, Callable[[_Reader, int, int, int], Value]] = {
    StructureType.INTEGER: _Reader.read_integer,
    StructureType.STRING: _Reader.read_string,
    StructureType.INTEGER_LIST: _Reader.read_integers,
    StructureType.STRING_LIST: _Reader.read_strings,
    StructureType.BYTE_STRING: _Reader.read_bytes,
    StructureType.INTEGER_FILTER: _Reader.read_integer_filter,
    StructureType.STRING_FILTER: _Reader.read_string_filter,
    StructureType.BYTE_STRING_FILTER: _Reader.read_byte_filter,
    StructureType.GROUP: _Reader.read_integer,
    StructureType.INTEGER64: _Reader.read_integer64,
    StructureType.INTEGER64_LIST: _Reader.read_integers64,
}
_LENGTHS: dict[int, tuple[int, PcfReason]] = {
    StructureType.INTEGER: (16, PcfReason.CFIN_LENGTH_ERROR),
    StructureType.STRING: (20, PcfReason.CFST_LENGTH_ERROR),
    StructureType.INTEGER_LIST: (16, PcfReason.CFIL_LENGTH_ERROR),
    StructureType.STRING_LIST: (24, PcfReason.CFSL_LENGTH_ERROR),
    StructureType.BYTE_STRING: (16, PcfReason.CFBS_LENGTH_ERROR),
    StructureType.INTEGER_FILTER: (20, PcfReason.CFIF_LENGTH_ERROR),
    StructureType.STRING_FILTER: (24, PcfReason.CFSF_LENGTH_ERROR),
    StructureType.BYTE_STRING_FILTER: (20, PcfReason.CFBF_LENGTH_ERROR),
    StructureType.GROUP: (16, PcfReason.CFGR_LENGTH_ERROR),
    StructureType.INTEGER64: (24, PcfReason.CFIN_LENGTH_ERROR),
    StructureType.INTEGER64_LIST: (16, PcfReason.CFIL_LENGTH_ERROR),
}
"""By structure the bytes that it has at least, and the reason where its length is another."""
