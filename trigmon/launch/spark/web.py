"""HTTP client for Spark's web servers: one request, with a deadline for all of it and a limit for the answer.

Standard library only: the supervisor of a cluster's driver uses it, and imports nothing else.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

LARGEST = 4 << 20
"""Bytes an answer may have."""


class NotReachedError(OSError):
    """No connection was made, so nothing was sent."""


class NoAnswerError(OSError):
    """The request may have been sent, and there was no full HTTP answer in time."""


class Answer:
    """An HTTP status and a body."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body


def ask(
    url: str,
    deadline_s: float,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    largest: int = LARGEST,
) -> Answer:
    """Sends one request and returns the answer. Follows no redirection and uses no proxy.

    Raises NotReachedError, NoAnswerError.
    """
    until = time.monotonic() + deadline_s
    link = _link(url, deadline_s)
    link.response_class = lambda *given, **more: _in_time(until, *given, **more)  # type: ignore[assignment]
    try:
        try:
            link.connect()
        except (OSError, ValueError) as error:  # a host name with a forbidden character
            raise NotReachedError(f"{url}: {_reason(error)}") from None
        try:
            parts = urlsplit(url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            _until(link, until)
            link.request(method, target, body, dict(headers or {}))
            response = link.getresponse()
            return Answer(response.status, _body(response, largest))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswerError(f"{url}: {_reason(error)}") from None
    finally:
        link.close()


def _link(url: str, deadline_s: float) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=deadline_s)
        if parts.scheme == "http" and host:
            return http.client.HTTPConnection(host, port, timeout=deadline_s)
    except (ValueError, http.client.InvalidURL) as error:
        raise NotReachedError(f"{url!r}: {error}") from None
    raise NotReachedError(f"{url} is no http:// or https:// address")


def _body(response: http.client.HTTPResponse, largest: int) -> bytes:
    pieces, length = [], 0
    while piece := response.read1(1 << 16):
        pieces.append(piece)
        length += len(piece)
        if length > largest:
            raise ValueError(f"an answer of more than {largest} bytes")
    if response.length:
        raise ValueError("the answer was cut short")
    return b"".join(pieces)


def _until(link: http.client.HTTPConnection, until: float) -> None:
    """Limits the time in which the rest of the request is sent."""
    assert link.sock is not None
    link.sock.settimeout(_rest_s(until))


def _rest_s(until: float) -> float:
    rest_s = until - time.monotonic()
    if rest_s <= 0:
        raise TimeoutError("timed out")
    return rest_s


class _InTime(io.RawIOBase):
    """A stream from a socket with one deadline for head and body together, however slowly the bytes come."""

    def __init__(self, source: io.RawIOBase, link: socket.socket, until: float) -> None:
        self._source = source
        self._link = link
        self._until = until

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Reads into the buffer and returns the number of bytes. Raises TimeoutError."""
        self._link.settimeout(_rest_s(self._until))
        return self._source.readinto(buffer)

    def close(self) -> None:
        """Closes the stream. The socket closes with the last stream that uses it."""
        self._source.close()
        super().close()


def _in_time(until: float, link: socket.socket, *given: Any, **more: Any) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(link, *given, **more)
    response.fp = io.BufferedReader(_InTime(response.fp.detach(), link, until))
    return response


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
