"""Which address of trigmon a program of MQ means: by a queue manager's name, MQSERVER, a CCDT or an MQCD.

MQ's ways name a host and a port of a listener that speaks MQ's protocol; trigmon has none. So they only name a queue
manager, and this is how:

1. What is an address of trigmon's already (``unix:/path``, ``tls://...``, ``tcp://...``) is taken as it is.
2. A name means the queue manager of this machine where one of that name runs, else what ``client.ini`` has for it.
3. Else, with a host: ``tls://host:port/NAME``. Of this machine without a name: the queue manager that trigmon's own
   client would take.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

from trigmon import paths
from trigmon.client.address import default_address
from trigmon.mq.names import is_object_name
from trigmon.mqi.mqi_numbers import MqiError, MqiReason

DEFAULT_PORT = 1414
_SCHEMES = ("unix:", "tls:", "tcp:")
_LOOPBACK = frozenset(("localhost", "localhost.localdomain", "::1", "0.0.0.0", ""))  # noqa: S104 - compared, not bound
_Q_MGR_NAME_ERROR, _CHANNEL_CONFIG_DATABASE_ERROR = 2058, 2537


class Place(NamedTuple):
    """Where to connect: addresses of trigmon's, and the name that must answer, blank for any.

    ``has_host`` says that the program named hosts: where nothing answers the reason is 2538, else 2059.
    """

    addresses: list[str]
    q_mgr_name: str
    has_host: bool = False


def place_of(
    name: str, connection_name: str = "", ccdt_url: str = "", environ: Mapping[str, str] = os.environ
) -> Place:
    """Returns where a program that connects to ``name`` means to go.

    ``connection_name`` is the MQCD's, ``ccdt_url`` the MQCNO's. A ``*`` before the name lets any name answer.
    Raises MqiError: 2058 where nobody can tell, 2537 for a CCDT that cannot be read.
    """
    wanted = name.strip()
    must_answer = "" if wanted.startswith("*") or _is_address(wanted) else wanted
    wanted = wanted.removeprefix("*").strip()
    url = ccdt_url or ("" if connection_name else _ccdt_of(environ))
    if connection_name:
        hosts = list(_hosts(connection_name))
    elif not ccdt_url and (server := environ.get("MQSERVER", "")):
        hosts = list(_hosts(server.split("/", 2)[-1]))
    elif url:
        hosts = list(_of_table(url, wanted))
    else:
        return Place(_by_name(wanted, environ), must_answer)
    addresses = dict.fromkeys(address for host in hosts for address in _addresses(*host, wanted, environ))
    if not addresses:
        raise MqiError(MqiReason.Q_MGR_NAME_ERROR, f"{name!r}: no connection is for it")
    return Place(list(addresses), must_answer, has_host=True)


def _by_name(name: str, environ: Mapping[str, str]) -> list[str]:
    if _is_address(name):
        return [name]
    there = environ.get("TRIGMON_QMGR", "")
    if not name:
        return [default_address()]
    if not is_object_name(name):
        raise MqiError(MqiReason.Q_MGR_NAME_ERROR, f"{name!r} is no name of a queue manager")
    if _is_address(there) and not paths.find_socket(name).exists() and not _is_configured(name):
        return [there]  # a triggered program's: the name that answers is looked at
    return [name]


def _addresses(host: str, port: int, name: str, environ: Mapping[str, str]) -> list[str]:
    if _is_address(host):
        return [host]
    if name and (_is_configured(name) or (_is_here(host) and paths.find_socket(name).exists())):
        return [name]
    if _is_here(host):
        return _by_name(name, environ)
    within = f"[{host}]" if ":" in host else host
    return [f"tls://{within}:{port}/{name}" if name else f"tls://{within}:{port}"]


def _hosts(connection_name: str) -> Iterator[tuple[str, int]]:
    """Yields the hosts of ``host(port),host(port)``."""
    for part in filter(None, map(str.strip, connection_name.split(","))):
        if _is_address(part):
            yield part, 0
            continue
        host, bracket, port = part.rstrip().removesuffix(")").partition("(")
        if bracket and not (port.strip().isdecimal() and 0 < int(port) < 65_536):
            raise MqiError(MqiReason.Q_MGR_NAME_ERROR, f"{part!r} is not host(port)")
        yield host.strip(), int(port) if bracket else DEFAULT_PORT


def _of_table(url: str, name: str) -> Iterator[tuple[str, int]]:
    """Yields the hosts that a client channel definition table in JSON has for a queue manager, blank for any."""
    for channel in _channels(url):
        client = channel.get("clientConnection")
        if not isinstance(client, dict) or str(client.get("queueManager", "")).strip() != name:
            continue
        listed = client.get("connection")
        for one in listed if isinstance(listed, list) else ():
            port = one.get("port", DEFAULT_PORT) if isinstance(one, dict) else 0
            if isinstance(port, int) and 0 < port < 65_536:
                yield str(one.get("host", "")), port


def _channels(url: str) -> list[dict[str, Any]]:
    parsed = urlparse(url)
    if parsed.scheme not in ("", "file"):
        raise MqiError(_CHANNEL_CONFIG_DATABASE_ERROR, f"{url}: a CCDT is read from a file")
    path = Path(unquote(parsed.path))
    try:
        table = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MqiError(_CHANNEL_CONFIG_DATABASE_ERROR, f"{path}: {error}") from None
    listed = table.get("channel") if isinstance(table, dict) else None
    return [channel for channel in listed if isinstance(channel, dict)] if isinstance(listed, list) else []


def _ccdt_of(environ: Mapping[str, str]) -> str:
    """Returns the table that the environment names; one in MQ's binary form is not read."""
    if url := environ.get("MQCCDTURL", ""):
        return url
    table = environ.get("MQCHLTAB", "")
    return str(Path(environ.get("MQCHLLIB", "."), table)) if table.endswith(".json") else ""


def _is_address(text: str) -> bool:
    return text.startswith(_SCHEMES)


def _is_here(host: str) -> bool:
    return host.lower() in _LOOPBACK or host.startswith("127.") or host.lower() == socket.gethostname().lower()


def _is_configured(name: str) -> bool:
    if not is_object_name(name) or not any(path.exists() for path in paths.client_files()):
        return False
    from trigmon.client.tls import configured

    return bool(configured(name))
