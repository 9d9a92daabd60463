"""Which queue manager is meant, where it listens, and who we say we are."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from trigmon import paths
from trigmon.client import driver, reconnect
from trigmon.client.connection import Connection
from trigmon.client.transport import Transport, open_tcp, open_unix, shown
from trigmon.mq.errors import QMgrNameError, QMgrNotAvailable
from trigmon.mq.names import is_object_name
from trigmon.wire.codec import PROTOCOL_VERSION, Hello

if TYPE_CHECKING:
    from trigmon.client.tls import TlsAddress

CONNECT_S = 10.0
DEFAULT_PORT = 1414
CALL_TIMEOUT = "TRIGMON_CALL_TIMEOUT"
DEFAULT_CALL_TIMEOUT_S = 60.0
SYSTEM_CONFIG = Path("/etc/trigmon/trigmon.yaml")
APPL_NAME_LENGTH = 28  # PutApplName's


def connect(
    address: str | None = None,
    *,
    application: str | None = None,
    run_id: str | None = None,
    timeout_s: float = CONNECT_S,
    call_timeout_s: float | None = None,
    reconnect_s: float | None = None,
) -> Connection:
    """Returns a connection to a queue manager: by name, or at ``unix:/path``, ``tls://host:port/NAME`` or ``tcp://...``.

    By TLS the server proves its name and the client its user; :mod:`trigmon.client.tls` says how, and how a file says
    it for a name. A name means the queue manager of this machine where one of this name runs.

    An address of TCP may name the queue manager: what answers and is another one is refused. Where it is on this
    machine, it must be served by root, by this program's user, or by the owner of the runtime directory of that queue
    manager; ``tcp://host:port/NAME?user=USER`` says that it is another user, as behind a forwarded port. That is
    checked when it has sent its name, and before anything is put.

    Several of these with commas between them are tried in their order, as where another may serve in its place.

    Without an address: ``$TRIGMON_QMGR``, then the configuration, then the only one running. ``application`` is
    the name others see (default: the program's), ``run_id`` the run this program is (default ``$TRIGMON_RUN``),
    ``timeout_s`` how long connecting may take, each of several its part of it. ``call_timeout_s`` is how long the
    answer to a call may take besides what its get may wait: default ``$TRIGMON_CALL_TIMEOUT``, else 60; 0 is any time.
    Behind it the call raises ConnectionBroken, and what became of it is not known: a new connection may ask.

    ``reconnect_s`` is how long the connection is made again after it was lost, and how long a first one is tried:
    default ``$TRIGMON_RECONNECT``, else 60 for a program that a monitor started and 0 for others.
    :class:`trigmon.client.reconnectable.ReconnectableConnection` says what an application sees of it.
    Raises QMgrNotAvailable, QMgrNameError, NotAuthorized; and the ValueError SettingsError when nobody names a queue
    manager and a configuration file there is cannot be used.
    """
    where = address or default_address()
    started = os.environ.get("TRIGMON_RUN", "") if run_id is None else ""
    hello = Hello(
        protocol=PROTOCOL_VERSION,
        client_id="",
        application=(_program() if application is None else application)[:APPL_NAME_LENGTH],
        pid=os.getpid(),
        run_id=started if run_id is None else run_id,
    )
    driver.end_with_it()
    patience_s = _call_timeout_s() if call_timeout_s is None else call_timeout_s
    addresses = resolved(where)

    def greeted() -> tuple[Transport, str]:
        client_id = os.urandom(16).hex()
        return _first(addresses, where, replace(hello, client_id=client_id), timeout_s, patience_s), client_id

    longest_s = reconnect.reconnect_s(reconnect_s, started)
    if not longest_s:
        return Connection(*greeted())
    from trigmon.client.reconnectable import ReconnectableConnection

    return ReconnectableConnection(greeted, longest_s)


def connect_by_ticket(
    addresses: Sequence[str], ticket: str, trusted: str, *, application: str, reconnect_s: float
) -> Connection:
    """Returns a connection that may read one reservation and nothing else; end it by its ``drop``.

    ``addresses`` are of TLS, tried in their order; ``trusted`` is the text of the authority, empty for the machine's
    own list. A lost link is made again for ``reconnect_s``. Raises NotAuthorized for a ticket that does not hold.
    """
    from trigmon.client.reconnectable import ReconnectableConnection

    patience_s = _call_timeout_s()
    hello = Hello(protocol=PROTOCOL_VERSION, application=application[:APPL_NAME_LENGTH], pid=os.getpid(), ticket=ticket)

    def greeted() -> tuple[Transport, str]:
        client_id = os.urandom(16).hex()
        mine, where = replace(hello, client_id=client_id), ", ".join(addresses)
        return _first(addresses, where, mine, CONNECT_S, patience_s, trusted), client_id

    return ReconnectableConnection(greeted, reconnect_s)


def _first(
    addresses: Sequence[str], where: str, hello: Hello, timeout_s: float, patience_s: float, trusted: str = ""
) -> Transport:
    """Returns a greeted link to the first address that lets the client in."""
    each_s = timeout_s / max(1, len(addresses))
    refusals: list[str] = []
    for address in addresses:
        try:
            if hello.ticket:
                return _tls_transport(address, hello, each_s, patience_s, trusted)
            return _transport(address, hello, each_s, patience_s)
        except reconnect.MAY_PASS as error:
            if len(addresses) == 1:
                raise
            refusals.append(error.about)
    if not addresses:
        raise QMgrNameError(f"{shown(where)!r} names no queue manager")
    raise QMgrNotAvailable("; ".join(refusals))


def resolved(where: str) -> list[str]:
    """Returns the addresses that are meant, in their order, with what a client's file says of a name."""
    return [one for part in map(str.strip, where.split(",")) if part for one in _resolved(part)]


def _resolved(address: str) -> list[str]:
    """Returns the addresses by which a client's file has a queue manager that is not on this machine, else itself."""
    if not is_object_name(address) or not any(map(_is_there, paths.client_files())):
        return [address]
    if _is_there(paths.find_socket(address)):
        return [address]
    from trigmon.client.tls import configured

    return (configured(address) or address).split(",")


def _is_there(path: Path) -> bool:
    """Returns whether a file is there; one that this user may not see counts, so that its refusal is shown."""
    try:
        return path.exists()
    except OSError:
        return True


def _transport(address: str, hello: Hello, timeout_s: float, patience_s: float) -> Transport:
    """Opens one address and greets. What answers over TCP is checked before anything is put."""
    if address.startswith("tls:"):
        return _tls_transport(address, hello, timeout_s, patience_s)
    link = _open(address, timeout_s)
    transport = Transport(link, address, hello, timeout_s, patience_s)
    if address.startswith("tcp:"):
        try:
            _check_peer(link, address, transport.welcome.q_mgr_name)
        except BaseException:
            transport.close()
            raise
    return transport


def connect_as(address: str, user: str, password: str, *, application: str, timeout_s: float = 10.0) -> Connection:
    """Returns a connection of an account by its password, as a gateway makes it for a client that it serves.

    ``address`` is one of TLS, of which host, port, name and authority count. Raises QMgrNotAvailable, QMgrNameError,
    SslInitializationError, and NotAuthorized for a wrong user or password.
    """
    from trigmon.client import tls

    parts = tls.tls_address(address)
    named = tls.TlsAddress(parts.host, parts.port, parts.q_mgr_name, parts.authority, user=user)
    client_id = os.urandom(16).hex()
    hello = Hello(protocol=PROTOCOL_VERSION, client_id=client_id, application=application, pid=os.getpid())
    hello = replace(hello, user=user, password=password)
    return Connection(_by_tls(named, address, hello, timeout_s, DEFAULT_CALL_TIMEOUT_S), client_id)


def _tls_transport(address: str, hello: Hello, timeout_s: float, patience_s: float, trusted: str = "") -> Transport:
    """Opens an address of TLS with the password that it names, or with the ticket that the hello has."""
    from trigmon.client import tls  # only programs that come by TLS pay for it

    parts = tls.tls_address(address)
    if not hello.ticket:
        hello = replace(hello, user=parts.user, password=tls.password(parts))
    return _by_tls(parts, address, hello, timeout_s, patience_s, trusted)


def _by_tls(
    parts: TlsAddress, address: str, hello: Hello, timeout_s: float, patience_s: float, trusted: str = ""
) -> Transport:
    """Opens an address of TLS; a password, or a ticket, goes to a server that has proved its name, and to no other."""
    from trigmon.client import tls

    link = tls.open_tls(parts, timeout_s, trusted)
    where = address.partition("?")[0]
    try:
        transport = Transport(link, where, hello, timeout_s, patience_s)
    except QMgrNotAvailable as error:
        # In TLS 1.3 a server refuses a certificate behind the handshake: the first read meets its alert.
        raise tls.refused(error, where, parts.certificate) from None
    answers = transport.welcome.q_mgr_name
    if parts.q_mgr_name not in ("", answers):
        transport.close()
        raise QMgrNameError(f"{where}: the queue manager {answers} answers there, not {parts.q_mgr_name}")
    return transport


def _call_timeout_s() -> float:
    """Returns what ``$TRIGMON_CALL_TIMEOUT`` says. Raises VariableError for what is no number of seconds."""
    return reconnect.seconds_of(CALL_TIMEOUT, DEFAULT_CALL_TIMEOUT_S, zero="any time")


def default_address() -> str:
    """Returns the queue manager that is meant when nobody says which. Raises QMgrNameError when several could be.

    Raises SettingsError for a configuration file that cannot be used.
    """
    if named := os.environ.get("TRIGMON_QMGR") or os.environ.get("TRIGMON_QMGR_NAME"):
        return named
    # A file that somebody names for this call comes before the choice for all calls, the machine's own behind it.
    if named := (os.environ.get("TRIGMON_CONFIG") and _configured()) or paths.default_qmgr() or _configured():
        return named
    running = paths.running()
    if len(running) > 1:
        which = f"say which: {', '.join(running)} (trigmon use NAME, --qmgr NAME or TRIGMON_QMGR_NAME)"
        raise QMgrNameError(f"several queue managers are running, so {which}")
    return running[0] if running else paths.DEFAULT_QMGR


def _configured() -> str:
    """Returns the name that a configuration file of this machine gives, not the shipped default."""
    if not (os.environ.get("TRIGMON_CONFIG") or SYSTEM_CONFIG.exists()):
        return ""
    # Only who names nobody on a configured machine pays for pydantic; a started program has TRIGMON_QMGR.
    from trigmon import settings

    found = settings.load()
    is_default = found.origin("qmgr.name").startswith(str(paths.shipped("config")))
    return "" if is_default else found.qmgr.name


def _open(where: str, timeout_s: float) -> socket.socket:
    if where.startswith("unix:"):
        return _open_socket(Path(where.removeprefix("unix:").removeprefix("//")), timeout_s)
    if where.startswith("tcp:"):
        address = tcp_address(where)
        return open_tcp(address.host, address.port, timeout_s)
    if not is_object_name(where):
        raise QMgrNameError(
            f"{shown(where)!r} is neither a queue manager's name nor unix:/path nor tls://host:port/NAME nor tcp://..."
        )
    return _open_socket(paths.find_socket(where), timeout_s)


def _open_socket(path: Path, timeout_s: float) -> socket.socket:
    """Opens a socket of this machine. An error says where ``trigmon use`` keeps the name, which is easily forgotten."""
    try:
        return open_unix(str(path), timeout_s)
    except QMgrNotAvailable as error:
        meant = paths.default_qmgr()
        if not is_object_name(meant) or path.parent.name != paths.file_name(meant):
            raise
        kept = f"trigmon use has made {meant} the default, in {paths.default_qmgr_file()}"
        raise QMgrNotAvailable(f"{error.about} ({kept})") from None


class TcpAddress(NamedTuple):
    """What an address of TCP says; ``q_mgr_name`` and ``user`` are empty where it does not."""

    host: str
    port: int
    q_mgr_name: str = ""
    user: str = ""


def tcp_address(address: str) -> TcpAddress:
    """Returns the parts of ``tcp://host:port/NAME?user=USER``; all behind the host is optional, IPv6 in brackets.

    Raises QMgrNameError.
    """
    rest, _, query = address.removeprefix("tcp:").removeprefix("//").partition("?")
    rest, _, name = rest.partition("/")
    host, _, port = rest.rpartition(":") if _has_port(rest) else (rest, "", str(DEFAULT_PORT))
    key, _, user = query.partition("=")
    is_sound = port.isdecimal() and 0 < int(port) < 65_536 and (not name or is_object_name(name))
    if not host or "@" in address or not is_sound or (query and (key != "user" or not user)):
        raise QMgrNameError(f"{shown(address)!r} is not tcp://host:port, /NAME and ?user=USER if you like")
    return TcpAddress(host.removeprefix("[").removesuffix("]"), int(port), name, user)


def _check_peer(link: socket.socket, where: str, answers: str) -> None:
    """Checks that what answers is what the address names. Raises QMgrNameError (2058)."""
    from trigmon.client import peer  # only programs that come over TCP pay for it

    address = tcp_address(where)
    if address.q_mgr_name not in ("", answers):
        raise QMgrNameError(f"{where}: the queue manager {answers} answers there, not {address.q_mgr_name}")
    peer.check_served_by(link, where, address.q_mgr_name or answers, address.user)


def _has_port(rest: str) -> bool:
    return ":" in rest.rpartition("]")[2]


def _program() -> str:
    return Path(sys.argv[0] if sys.argv and sys.argv[0] else sys.executable).name or "python"
