"""The structures of a PCF message: the header MQCFH and the parameters MQCFIN and MQCFST, packed and read back.

Integers have four bytes, least significant first (:data:`trigmon.mq.descriptors.ENCODING_NATIVE`); texts are UTF-8, and
padded with zeros to a multiple of four bytes.
Sources: the manual's pages of MQCFH, MQCFIN and MQCFST, and the header's constants.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from trigmon.mq.descriptors import CCSID_UTF8
from trigmon.mq.reasons import CompCode


class StructureType(IntEnum):
    """``MQCFT_*``: what a structure is."""

    INTEGER = 3
    STRING = 4
    EVENT = 7


class PcfCommand(IntEnum):
    """``MQCMD_*``: what a PCF message is about."""

    PERFM_EVENT = 45


LAST = 1
"""MQCFC_LAST: no message of the same set follows."""

Parameter = tuple[int, int | str]
"""IBM's selector and the value."""

_CFH = struct.Struct("<9i")
_CFIN = struct.Struct("<4i")
_CFST = struct.Struct("<5i")


class PcfMessage(msgspec.Struct, frozen=True):
    """A PCF message, as far as event messages have its fields."""

    kind: StructureType
    command: PcfCommand
    comp_code: CompCode
    reason: int
    parameters: tuple[Parameter, ...]


def pack_message(message: PcfMessage) -> bytes:
    """Returns the bytes of a message. Raises struct.error for a number beyond 32 bits."""
    version = sequence = 1
    header = (message.kind, _CFH.size, version, message.command, sequence, LAST)
    outcome = (message.comp_code, message.reason, len(message.parameters))
    return _CFH.pack(*header, *outcome) + b"".join(_parameter(*each) for each in message.parameters)


def _parameter(selector: int, value: int | str) -> bytes:
    if isinstance(value, int):
        return _CFIN.pack(StructureType.INTEGER, _CFIN.size, selector, value)
    text = value.encode()
    padded = text.ljust(-(-len(text) // 4) * 4, b"\0")
    return _CFST.pack(StructureType.STRING, _CFST.size + len(padded), selector, CCSID_UTF8, len(text)) + padded


def unpack_message(data: bytes) -> PcfMessage:
    """Returns the message of these bytes. Raises ValueError where they are none, or of a kind that is not known."""
    try:
        kind, _, _, command, _, _, comp_code, reason, count = _CFH.unpack_from(data)
        parameters = tuple(_parameters(data, count))
        return PcfMessage(StructureType(kind), PcfCommand(command), CompCode(comp_code), reason, parameters)
    except struct.error as error:
        raise ValueError(f"no PCF message: {error}") from None


def _parameters(data: bytes, count: int) -> Iterator[Parameter]:
    at = _CFH.size
    for _ in range(count):
        kind, length, selector, value = _CFIN.unpack_from(data, at)
        if kind == StructureType.INTEGER:
            yield selector, value
        elif kind == StructureType.STRING:
            *_, size = _CFST.unpack_from(data, at)
            yield selector, data[at + _CFST.size : at + _CFST.size + size].decode()
        else:
            raise ValueError(f"parameter type {kind}: MQCFIN (3) and MQCFST (4) are known")
        at += length
