"""A link by TLS: what its address says, and the file that says it once for all programs of a user.

    tls://mq1.example.com:1415/QM1?authority=/etc/trigmon/ca.crt&certificate=alice.crt&key=alice.key

The file has a section for each queue manager, which its name then means (``TRIGMON_QMGR=QM1``):

    [QM1]
    address = tls://mq1.example.com:1415, tls://mq2.example.com:1415
    authority = authority.crt
    certificate = alice.crt
    key = alice.key

It is ``$TRIGMON_CLIENT_FILE``, else ``~/.config/trigmon/client.ini``, else ``/etc/trigmon/client.ini``; its relative
paths start from its directory. In place of a certificate: ``user`` and ``password_file``, a file that only its owner
may read, or ``credential``, a name in ``$CREDENTIALS_DIRECTORY`` (systemd's LoadCredential).
"""

from __future__ import annotations

import configparser
import datetime
import os
import socket
import ssl
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from trigmon import paths
from trigmon.client.transport import open_tcp, shown
from trigmon.mq.errors import MQError, QMgrNameError, QMgrNotAvailable, SslInitializationError
from trigmon.mq.names import is_object_name
from trigmon.tls.certificate_expiry import expiry
from trigmon.tls.contexts import TlsFileError, client_context

DEFAULT_PORT = 1415
_FILES = ("authority", "certificate", "key", "password_file")
_KEYS = (*_FILES, "user", "credential")
_ENDED = (
    "it closed the connection within the handshake of TLS: it serves nobody now, or too many come that prove no user; "
    "its log says which"
)


class TlsAddress(NamedTuple):
    """What an address of TLS says; empty is what it does not."""

    host: str
    port: int
    q_mgr_name: str = ""
    authority: str = ""
    certificate: str = ""
    key: str = ""
    user: str = ""
    password_file: str = ""
    credential: str = ""


def tls_address(address: str) -> TlsAddress:
    """Returns the parts of ``tls://host:port/NAME?key=value&...``; all behind the host is optional.

    Raises QMgrNameError.
    """
    rest, _, query = address.removeprefix("tls:").removeprefix("//").partition("?")
    rest, _, name = rest.partition("/")
    has_port = ":" in rest.rpartition("]")[2]
    host, _, port = rest.rpartition(":") if has_port else (rest, "", str(DEFAULT_PORT))
    given = dict(parse_qsl(query, keep_blank_values=True))
    is_sound = port.isdecimal() and 0 < int(port) < 65_536 and (not name or is_object_name(name))
    if not host or not is_sound or "@" in rest:
        raise QMgrNameError(
            f"{shown(address)!r} is not tls://host:port, with /NAME and ?key=value behind it if you like"
        )
    if unknown := [key for key in given if key not in _KEYS]:
        raise QMgrNameError(f"{shown(address)}: there is no {unknown[0]}; there are {', '.join(_KEYS)}")
    found = TlsAddress(host.removeprefix("[").removesuffix("]"), int(port), name, **given)
    if bool(found.certificate) != bool(found.key):
        raise QMgrNameError(f"{shown(address)}: a certificate needs its key, and a key its certificate")
    if bool(found.user) != bool(found.password_file or found.credential):
        raise QMgrNameError(f"{shown(address)}: a user needs a password_file or a credential, and those need a user")
    return found


def open_tls(address: TlsAddress, timeout_s: float, trusted: str = "") -> socket.socket:
    """Returns a connected socket whose other end has proved the host's name.

    ``trusted`` is an authority as text, in place of a file.
    Raises QMgrNotAvailable, and SslInitializationError (2393) for files that cannot be used and for a server that
    cannot prove its name.
    """
    where = f"{address.host}:{address.port}"
    files = (Path(name) if name else None for name in (address.authority, address.certificate, address.key))
    try:
        context = client_context(*files, trusted=trusted)
    except TlsFileError as error:
        raise SslInitializationError(str(error)) from None
    link = open_tcp(address.host, address.port, timeout_s)
    try:
        return context.wrap_socket(link, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        link.close()
        raise SslInitializationError(
            f"{where} did not prove that it is {address.host}: {error.verify_message}. Nothing was sent; the authority "
            "that signed its certificate is named by authority="
        ) from None
    except ssl.SSLEOFError:
        link.close()
        raise QMgrNotAvailable(f"{where}: {_ENDED}") from None
    except ssl.SSLError as error:
        link.close()
        raise SslInitializationError(f"{where}: no TLS 1.3 with it: {error.reason or error}") from None
    except OSError as error:
        link.close()
        if isinstance(error, ConnectionError):
            raise QMgrNotAvailable(f"{where}: {_ENDED}") from None
        raise QMgrNotAvailable(f"{where}: no handshake of TLS: {error.strerror or error}") from None


def refused(error: QMgrNotAvailable, where: str, certificate: str = "") -> MQError:
    """Returns the error of a greeting: 2393 where it was TLS that ended it, which no other try would mend.

    A server may close the link before its alert has gone; then nobody can tell that from one that serves nobody, unless
    this client's ``certificate`` (a file) has expired.
    """
    cause = error.__context__
    if not isinstance(cause, ssl.SSLError | EOFError | ConnectionError):
        return error
    until = expiry(Path(certificate)) if certificate else None
    if until is not None and until < datetime.datetime.now(datetime.UTC):
        return SslInitializationError(
            f"{where} does not take this client's certificate: {certificate} expired on {until:%Y-%m-%d}; on the "
            "server trigmon tls user NAME --certificate makes another"
        )
    if isinstance(cause, ssl.SSLError):
        return SslInitializationError(f"{where} does not take this client's certificate: {cause.reason}")
    why = "it closed the connection behind the handshake: it does not take this client's certificate"
    return QMgrNotAvailable(f"{where}: {why}; its log says why")


def password(address: TlsAddress) -> str:
    """Returns the password that the address names. Raises SslInitializationError for a file that others may read."""
    if address.credential:
        directory = os.environ.get("CREDENTIALS_DIRECTORY", "")
        if not directory or "/" in address.credential or address.credential.startswith("."):
            raise SslInitializationError(f"credential={address.credential}: there is none in $CREDENTIALS_DIRECTORY")
        return _secret(Path(directory, address.credential))
    return _secret(Path(address.password_file)) if address.password_file else ""


def _secret(path: Path) -> str:
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and not os.environ.get("CREDENTIALS_DIRECTORY"):
            raise SslInitializationError(f"{path}: others may read this password: chmod 600 {path}")
        return path.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise SslInitializationError(f"{path}: {why}") from None


def configured(name: str) -> str:
    """Returns the addresses that the client's file gives a queue manager, with commas between; "" where it has none.

    Raises QMgrNameError for a file that cannot be used.
    """
    for path in paths.client_files():
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(path.read_text(), str(path))
        except FileNotFoundError:
            continue
        except configparser.MissingSectionHeaderError as error:
            raise QMgrNameError(f"{path}:{error.lineno}: it stands before the first [NAME]") from None
        except configparser.ParsingError as error:
            # The text of a line may be a password.
            raise QMgrNameError(f"{path}:{error.errors[0][0]}: it is neither [NAME] nor key = value") from None
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise QMgrNameError(f"{path}: {' '.join(str(error).split())}") from None
        if parser.has_section(name):
            return _addresses(dict(parser.items(name)), name, path)
    return ""


def _addresses(given: dict[str, str], name: str, path: Path) -> str:
    if unknown := [key for key in given if key not in (*_KEYS, "address")]:
        raise QMgrNameError(f"{path}: [{name}] has no {unknown[0]}; it has address, {', '.join(_KEYS)}")
    addresses = [part.strip() for part in given.pop("address", "").split(",") if part.strip()]
    if not addresses or not all(one.startswith("tls:") for one in addresses):
        raise QMgrNameError(f"{path}: [{name}] needs address = tls://host:port, several with commas between them")
    values = {key: str(path.parent / value) if key in _FILES else value for key, value in given.items() if value}
    query = urlencode(values, safe="/", quote_via=quote)
    return ",".join(f"{one.rstrip('/')}/{name}?{query}" if "?" not in one else one for one in addresses)
