"""Data conversion of MQGET with MQGMO_CONVERT. Pure.

Converted are texts (MQSTR), and the headers MQRFH2 and MQDLH with what stands behind them. Of other formats nothing is
converted: where character set and encoding are the program's, that is no matter; else a warning says so.
"""

from __future__ import annotations

import codecs
import struct
from typing import Final

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    FORMAT_DEAD_LETTER,
    FORMAT_STRING,
    MessageDescriptor,
    integer_order,
    pack_dlh,
    unpack_dlh,
)
from trigmon.mq.errors import DlhError
from trigmon.mq.rfh2 import FORMAT_RULES_2, behind_header, header_parts
from trigmon.mqi.mqi_numbers import MqiError, MqiReason

CODECS: Final = {
    37: "cp037",
    367: "ascii",
    437: "cp437",
    500: "cp500",
    813: "iso8859-7",
    819: "latin-1",
    850: "cp850",
    852: "cp852",
    912: "iso8859-2",
    920: "iso8859-9",
    923: "iso8859-15",
    943: "cp932",
    1026: "cp1026",
    1047: "cp1047",
    1140: "cp1140",
    1200: "utf-16",
    1202: "utf-16-le",
    1208: "utf-8",
    1250: "cp1250",
    1251: "cp1251",
    1252: "cp1252",
    13488: "utf-16",
    17584: "utf-16",
}
"""Python's codec of a coded character set id; of 1200 and its kin the byte order is the message's Encoding."""


def _latin_by_1047(code: int) -> str:
    """Returns the character of an EBCDIC byte of code page 1047: that of 37 but for the few places that differ."""
    return _DIFFERS.get(code, bytes((code,)).decode("cp037"))


_DIFFERS: Final = {
    0x5F: "^",
    0xAD: "[",
    0xB0: "\xac",
    0xBA: "\xdd",
    0xBB: "\xa8",
    0xBD: "]",
}
_DECODE_1047: Final = "".join(map(_latin_by_1047, range(256)))
_ENCODE_1047: Final = codecs.charmap_build(_DECODE_1047)


def decoded(data: bytes, ccsid: int, encoding: int) -> str:
    """Returns a text. Raises MqiError: 2111 for a character set that is not known, 2119 for bytes that are no text."""
    name = _codec(ccsid, encoding)
    if not name:
        raise MqiError(MqiReason.SOURCE_CCSID_ERROR, f"CCSID {ccsid}", comp_code=1)
    try:
        if name == "cp1047":
            return codecs.charmap_decode(data, "strict", _DECODE_1047)[0]
        return data.decode(name)
    except UnicodeDecodeError:
        raise MqiError(MqiReason.NOT_CONVERTED, f"no text of CCSID {ccsid}", comp_code=1) from None


def encoded(text: str, ccsid: int, encoding: int) -> bytes:
    """Returns a text's bytes; a character that there is not becomes a substitute. Raises MqiError (2115)."""
    name = _codec(ccsid, encoding)
    if not name:
        raise MqiError(MqiReason.TARGET_CCSID_ERROR, f"CCSID {ccsid}", comp_code=1)
    if name == "cp1047":
        return b"".join(_of_1047(c) for c in text)
    return text.encode(name, "replace")


def converted(descriptor: MessageDescriptor, data: bytes, ccsid: int, encoding: int) -> tuple[MessageDescriptor, bytes]:
    """Returns the message as the program asked for it; ``ccsid`` 0 is UTF-8. Raises MqiError with a warning."""
    ccsid = ccsid if ccsid > 0 else CCSID_UTF8
    encoding = encoding or ENCODING_NATIVE
    form = descriptor.format.rstrip()
    source = descriptor.coded_char_set_id if descriptor.coded_char_set_id > 0 else CCSID_UTF8
    if source == ccsid and integer_order(descriptor.encoding) == integer_order(encoding):
        return descriptor, data
    if form == FORMAT_STRING:
        text = decoded(data, source, descriptor.encoding)
        return replace(descriptor, coded_char_set_id=ccsid, encoding=encoding), encoded(text, ccsid, encoding)
    if form == FORMAT_DEAD_LETTER:
        return _dead_letter(descriptor, data, ccsid, encoding)
    if form == FORMAT_RULES_2:
        return _rules(descriptor, data, ccsid, encoding)
    raise MqiError(MqiReason.FORMAT_ERROR, f"format {form!r} is not converted", comp_code=1)


def _of_1047(character: str) -> bytes:
    try:
        return codecs.charmap_encode(character, "strict", _ENCODE_1047)[0]
    except UnicodeEncodeError:
        return b"\x6f"  # a question mark


def _codec(ccsid: int, encoding: int) -> str:
    name = CODECS.get(ccsid, "")
    return f"utf-16-{integer_order(encoding)[0]}e" if name == "utf-16" else name


def _dead_letter(
    descriptor: MessageDescriptor, data: bytes, ccsid: int, encoding: int
) -> tuple[MessageDescriptor, bytes]:
    """Converts an MQDLH, whose characters are those of UTF-8 too, and what stands behind it."""
    try:
        header, rest = unpack_dlh(data, descriptor.encoding)
    except DlhError:
        raise MqiError(MqiReason.FORMAT_ERROR, "no MQDLH", comp_code=1) from None
    if ccsid != CCSID_UTF8 or integer_order(encoding) != integer_order(ENCODING_NATIVE):
        raise MqiError(MqiReason.NOT_CONVERTED, "an MQDLH is converted to UTF-8, native", comp_code=1)
    of_rest = MessageDescriptor(
        format=header.format, encoding=header.encoding, coded_char_set_id=header.coded_char_set_id
    )
    inner, rest = _as_far_as_possible(of_rest, rest, ccsid, encoding)
    header = replace(header, encoding=inner.encoding, coded_char_set_id=inner.coded_char_set_id)
    outer = replace(descriptor, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)
    return outer, pack_dlh(header) + rest


def _rules(descriptor: MessageDescriptor, data: bytes, ccsid: int, encoding: int) -> tuple[MessageDescriptor, bytes]:
    """Converts an MQRFH2 to native integers and UTF-8, and what stands behind it to what was asked for."""
    try:
        inner, rest, folders = header_parts(descriptor, data)
    except (struct.error, ValueError):
        raise MqiError(MqiReason.FORMAT_ERROR, "no MQRFH2", comp_code=1) from None
    inner, rest = _as_far_as_possible(inner, rest, ccsid, encoding)
    return behind_header(inner, rest, [folder.encode() for folder in folders])


def _as_far_as_possible(
    descriptor: MessageDescriptor, data: bytes, ccsid: int, encoding: int
) -> tuple[MessageDescriptor, bytes]:
    """Converts what stands behind a header; that which cannot be stays as it is, and its header says so."""
    try:
        return converted(descriptor, data, ccsid, encoding)
    except MqiError:
        return descriptor, data
