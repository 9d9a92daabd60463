"""MQRFH2, the header before the data in which a message's properties travel, by folders. Pure.

A property is named by its folder and its name in it, as ``usr.color`` or ``mcd.Msd``, groups between them. The values
are texts; what ``dt`` says of their type is kept where it is asked for. Layout by the C header: StrucId 0, Version 4,
StrucLength 8, Encoding 12, CodedCharSetId 16, Format 20, Flags 28, NameValueCCSID 32, then each folder behind its
length, filled up with blanks to a multiple of four. What is written here is native little-endian and UTF-8.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from xml.parsers import expat
from xml.sax.saxutils import escape

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    MessageDescriptor,
    chars,
    integer_order,
    text_of,
)

FORMAT_RULES_2 = "MQHRF2"
RFH2 = struct.Struct("<4s4i8siii")
_BIG = struct.Struct(">4s4i8siii")
_LENGTH = {"little": struct.Struct("<i"), "big": struct.Struct(">i")}
VERSION = 2
_UTF_16 = frozenset((1200, 13488, 17584))
_NAME = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*")
_OF_PROPERTIES = frozenset(
    (
        *("usr", "mq_usr", "jms", "mcd", "sib", "sib_context", "sib_usr"),
        *("ibm", "mq", "mqema", "mqext", "mqps", "mq_svc", "mqtt"),
    )
)
"""The folders that hold properties whatever their start tag says."""

Properties = dict[str, str | None]
"""By name; None is a null."""
TypedValue = tuple[str, str | None]
"""What ``dt`` says, "" for a text, and the value."""
TypedProperties = dict[str, TypedValue]


def behind_header(descriptor: MessageDescriptor, data: bytes, folders: list[bytes]) -> tuple[MessageDescriptor, bytes]:
    """Returns a message behind a header with these folders, which are UTF-8."""
    padded = [folder + b" " * (-len(folder) % 4) for folder in folders]
    body = b"".join(_LENGTH["little"].pack(len(folder)) + folder for folder in padded)
    fixed = RFH2.size - _LENGTH["little"].size
    head = RFH2.pack(
        b"RFH ",
        VERSION,
        fixed + len(body),
        descriptor.encoding,
        descriptor.coded_char_set_id,
        chars(descriptor.format, 8),
        0,
        CCSID_UTF8,
        0,
    )
    outer = replace(descriptor, format=FORMAT_RULES_2, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)
    return outer, head[:fixed] + body + data


def with_properties(
    descriptor: MessageDescriptor, data: bytes, properties: Mapping[str, str | None]
) -> tuple[MessageDescriptor, bytes]:
    """Returns a message behind a header with these properties; one without a folder is of ``usr``.

    Without properties the message stays as it is. Raises ValueError for a name that no property can have.
    """
    return with_typed_properties(descriptor, data, {name: ("", value) for name, value in properties.items()})


def with_typed_properties(
    descriptor: MessageDescriptor, data: bytes, properties: Mapping[str, TypedValue]
) -> tuple[MessageDescriptor, bytes]:
    """Returns a message behind a header as :func:`with_properties`, with the type that each value has (``dt``)."""
    folders: dict[str, list[str]] = {}
    for name, value in properties.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a message property: folder.name, of letters, digits, _ and -")
        folder, _, rest = (name if "." in name else f"usr.{name}").partition(".")
        folders.setdefault(folder, []).append(_element(folder, rest, value))
    if not folders:
        return descriptor, data
    return behind_header(descriptor, data, [_folder(name, "".join(each)) for name, each in folders.items()])


def without_properties(descriptor: MessageDescriptor, data: bytes) -> tuple[MessageDescriptor, bytes, Properties]:
    """Returns the message behind its headers, and their properties; of a name that is there twice, the first.

    A header that cannot be read stays where it is.
    """
    descriptor, data, typed = without_typed_properties(descriptor, data)
    return descriptor, data, {name: value for name, (_, value) in typed.items()}


def without_typed_properties(
    descriptor: MessageDescriptor, data: bytes
) -> tuple[MessageDescriptor, bytes, TypedProperties]:
    """Returns the message behind its headers as :func:`without_properties`, with the type that each value has."""
    properties: TypedProperties = {}
    while descriptor.format.rstrip() == FORMAT_RULES_2:
        try:
            inner, rest, folders = header_parts(descriptor, data)
            properties = _properties("".join(folders)) | properties
        except (struct.error, ValueError, expat.ExpatError):
            break
        descriptor, data = inner, rest
    return descriptor, data, properties


def _element(folder: str, name: str, typed: TypedValue) -> str:
    """Returns a property as XML. Groups are elements of their own, but for ``usr``, which has none."""
    path = [name] if folder == "usr" else name.split(".")
    dt, value = typed
    type_of = f" dt='{dt}'" if dt else ""
    inner = f"<{path[-1]} xsi:nil='true'/>" if value is None else f"<{path[-1]}{type_of}>{escape(value)}</{path[-1]}>"
    for group in reversed(path[:-1]):
        inner = f"<{group}>{inner}</{group}>"
    return inner


def _folder(name: str, inner: str) -> bytes:
    says = "" if name in _OF_PROPERTIES else " content='properties'"
    return f"<{name}{says}>{inner}</{name}>".encode()


def header_parts(descriptor: MessageDescriptor, data: bytes) -> tuple[MessageDescriptor, bytes, list[str]]:
    """Returns what is behind the first header, and its folders. Raises struct.error, ValueError."""
    order = integer_order(descriptor.encoding)
    layout = RFH2 if order == "little" else _BIG
    struc_id, version, length, encoding, ccsid, form, _, name_ccsid, _ = layout.unpack_from(data.ljust(layout.size))
    fixed = layout.size - _LENGTH[order].size
    if (struc_id, version) != (b"RFH ", VERSION) or not fixed <= length <= len(data):
        raise ValueError("it is no MQRFH2")
    coding = "utf-8" if name_ccsid == CCSID_UTF8 else f"utf-16-{order[0]}e" if name_ccsid in _UTF_16 else ""
    if not coding:
        raise ValueError(f"NameValueCCSID {name_ccsid}")
    inner = replace(descriptor, format=text_of(form), encoding=encoding, coded_char_set_id=ccsid)
    return inner, data[length:], [folder.decode(coding) for folder in _folders(data[fixed:length], order)]


def _folders(body: bytes, order: str) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        (length,) = _LENGTH[order].unpack_from(body, at)
        at += _LENGTH[order].size
        if not 0 <= length <= len(body) - at:
            raise ValueError("a folder is longer than its header")
        yield body[at : at + length]
        at += length


def _properties(folders: str) -> TypedProperties:
    """Returns the values of the elements that hold no other element. Raises ExpatError, ValueError."""
    properties: TypedProperties = {}
    path: list[str] = []
    texts: list[str] = []
    is_leaf = is_nil = False
    dt = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal is_leaf, is_nil, dt
        path.append(name)
        texts.clear()
        dt = attributes.get("dt", "")
        is_leaf, is_nil = True, attributes.get("xsi:nil") in ("true", "1")

    def end(name: str) -> None:
        nonlocal is_leaf
        if is_leaf and len(path) > 2:  # the root and the folder
            properties.setdefault(".".join(path[1:]), (dt, None if is_nil else "".join(texts)))
        is_leaf = False
        path.pop()

    def refuse(*_: object) -> None:
        raise ValueError("a folder has no document type")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = texts.append, refuse
    parser.Parse(f"<MQRFH2>{folders}</MQRFH2>".encode(), True)
    return properties
