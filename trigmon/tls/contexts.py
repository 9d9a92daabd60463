"""TLS contexts of the listener and of the client: TLS 1.3 alone, and the other end is always verified.

The listener asks for a certificate where it has an authority of clients, and takes a client without one: such a client
brings a user and a password. A client refuses a server whose certificate does not bear the name it asked for.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path


class TlsFileError(ValueError):
    """A file of TLS cannot be used. The text names it, and the remedy."""


def server_context(certificate: Path, private_key: Path, client_authority: Path | None) -> ssl.SSLContext:
    """Returns the listener's context. Raises TlsFileError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    _load(lambda: context.load_cert_chain(certificate, private_key), f"{certificate} and {private_key}")
    context.num_tickets = 0  # a resumed session would outlive a change of the files
    if client_authority is not None:
        _load(lambda: context.load_verify_locations(client_authority), str(client_authority))
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_context(
    authority: Path | None, certificate: Path | None = None, private_key: Path | None = None, *, trusted: str = ""
) -> ssl.SSLContext:
    """Returns a client's context; without an authority the machine's own list is trusted. Raises TlsFileError.

    ``trusted`` is an authority as text, where there is no file.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    if trusted:
        _load(lambda: context.load_verify_locations(cadata=trusted), "the authority's certificate")
    elif authority is not None:
        _load(lambda: context.load_verify_locations(authority), str(authority))
    else:
        context.load_default_certs()
    if certificate is not None:
        _load(lambda: context.load_cert_chain(certificate, private_key), f"{certificate} and {private_key}")
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _load(load: Callable[[], None], what: str) -> None:
    try:
        load()
    except ssl.SSLError as error:
        why = "the key is not this certificate's" if "MISMATCH" in str(error) else "this is no PEM of the right kind"
        raise TlsFileError(f"{what}: {why} ({error.reason or error})") from None
    except OSError as error:
        raise TlsFileError(f"{what}: {error.strerror or error}") from None
