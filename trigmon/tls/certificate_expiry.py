"""Until when a certificate is valid, read by the standard library alone: a client needs no package to come by TLS."""

from __future__ import annotations

import datetime
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17
_VALIDITY = 3  # behind the serial number, the signature's algorithm and the issuer


def expiry(certificate: Path) -> datetime.datetime | None:
    """Returns until when the first certificate of a PEM file is valid (RFC 5280, 4.1); None where none can be read."""
    try:
        found = _PEM.search(certificate.read_text(errors="replace"))
        return _not_after(ssl.PEM_cert_to_DER_cert(found[0])) if found else None
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _not_after(der: bytes) -> datetime.datetime:
    """Returns notAfter. Raises ValueError, IndexError or StopIteration for what is none."""
    signed = next(_elements(next(_elements(der))[1]))[1]
    fields = [content for tag, content in _elements(signed) if tag != _VERSION]
    _, (tag, until) = _elements(fields[_VALIDITY])
    text = until.decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year: up to 49 they are of this century
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%S%z")


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields tag and content of each element that a value is made of (X.690, DER)."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        yield tag, der[at : at + length]
        at += length
