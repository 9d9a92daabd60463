"""Tickets of reservations as text: signed with a key of the queue manager, HMAC-SHA256 (RFC 2104, FIPS 180-4).

A ticket is ``BODY.SIGNATURE``, both in the URL's base64. The signature covers what the text is for, the queue manager's
name and the body. The key lies in a file, so that tickets hold over a restart; machines that serve the same queue
manager in turn share the file.
"""

from __future__ import annotations

import base64
import hmac
import os
import stat
from pathlib import Path

import msgspec

from trigmon.rules.model.ticket import Ticket
from trigmon.tls.contexts import TlsFileError

LONGEST = 1024
"""Characters of a ticket at most."""
_KEY_BYTES = 32
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Ticket).decode


class TicketError(ValueError):
    """What came is no ticket of this queue manager. The text has the reason, and nothing of what came."""


class TicketKey:
    """The key by which one queue manager signs tickets."""

    def __init__(self, key: bytes, q_mgr_name: str) -> None:
        self._key = key
        self._purpose = b"trigmon ticket 1\0" + q_mgr_name.encode() + b"\0"

    def signed(self, ticket: Ticket) -> str:
        """Returns the ticket as text."""
        body = base64.urlsafe_b64encode(_encode(ticket)).decode()
        return f"{body}.{self._signature(body)}"

    def read(self, text: str) -> Ticket:
        """Returns the ticket that a text is; whether it still holds is not looked at. Raises TicketError."""
        body, dot, signature = text.partition(".")
        if not dot or len(text) > LONGEST or not text.isascii():
            raise TicketError("this is no ticket")
        # In constant time, before the body is read, and as text: base64 has several texts for the same bytes.
        if not hmac.compare_digest(signature, self._signature(body)):
            raise TicketError(
                "the ticket's signature is not this queue manager's: it was altered, or its key is another"
            )
        try:
            return _decode(base64.urlsafe_b64decode(body))
        except (ValueError, msgspec.MsgspecError):
            raise TicketError("the ticket is of another version of trigmon") from None

    def _signature(self, body: str) -> str:
        digest = hmac.digest(self._key, self._purpose + body.encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode()


def ticket_key(path: Path, q_mgr_name: str) -> TicketKey:
    """Returns the key in a file, which is made where there is none. Raises TlsFileError."""
    try:
        if not path.exists():
            _make(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise TlsFileError(f"{path}: others may read this key: chmod 600 {path}")
        key = bytes.fromhex(path.read_text().strip())
    except OSError as error:
        raise TlsFileError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, TlsFileError):
            raise
        raise TlsFileError(f"{path}: this is no key of tickets, {2 * _KEY_BYTES} hexadecimal digits") from None
    if len(key) < _KEY_BYTES:
        raise TlsFileError(f"{path}: a key of tickets has {2 * _KEY_BYTES} hexadecimal digits")
    return TicketKey(key, q_mgr_name)


def _make(path: Path) -> None:
    """Writes a new key, whole or not at all: a file that is half there would be refused for ever."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f"{os.urandom(_KEY_BYTES).hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(new, path)  # never over another process's
    except FileExistsError:
        pass
    finally:
        new.unlink()
