"""What a setting's value may be, and how a person writes it: sizes, modes, addresses, names.

Each type reads what its layer wrote (a YAML value, or the text of a variable) and refuses with a sentence that says
what would be allowed.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer


def _size(value: Any) -> Any:
    """Returns bytes of ``64 MiB``, ``1GB``, ``4096``; what is no text passes on to the model."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([kKMGT]?)(i?)[bB]?\s*", value)
    if not found:
        raise ValueError(f"{value!r} is no size such as 64 MiB or 1 GB")
    number, prefix, binary = found.groups()
    power = ("", "k", "m", "g", "t").index(prefix.lower())
    return int(float(number) * (1024 if binary else 1000) ** power)


def _mode(value: Any) -> Any:
    """Returns a socket's mode as a number, from the digits a person writes for chmod, quoted or not."""
    # YAML 1.2 reads 0660 as the number 660. 0o660 arrives as 432, which lets the owner not write: it is refused below.
    text = str(value) if isinstance(value, int) else value
    if not isinstance(text, str) or not re.fullmatch(r"0?[0-7]{3}", text):
        raise ValueError(f'{value!r} is no mode such as "0660"')
    mode = int(text, 8)
    if mode & 0o600 != 0o600 or mode & 0o111:
        raise ValueError(f'{text} must let the owner read and write and nobody execute; write it as "0660"')
    return mode


def _loopback(value: str) -> str:
    """Returns ``HOST:PORT`` as written; the host must be this machine's own."""
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{value!r} is no HOST:PORT such as 127.0.0.1:1414")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ValueError(f"{host!r} is no address; write 127.0.0.1 or [::1]") from None
    if not loopback:
        raise ValueError(f"{host} is no loopback address, and TCP does not authenticate")
    return value


def _any_address(value: str) -> str:
    """Returns ``ADDRESS:PORT`` as written; 0.0.0.0 and [::] are all addresses of the machine."""
    host, _, port = value.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{value!r} is no ADDRESS:PORT such as 0.0.0.0:1415")
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(f"{host!r} is no address of this machine; write 0.0.0.0 or [::] for all of them") from None
    return value


def host_and_port(address: str | None) -> tuple[str, int] | None:
    """Returns host and port of an ``Address``."""
    if address is None:
        return None
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _without_password(value: str) -> str:
    """Returns a connection string of libpq.

    What opens the database is read by libpq from where only its user can read it.
    """
    if re.search(r"\bpassword\s*=", value) or re.match(r"\w+://[^/@]*:[^/@]*@", value):
        raise ValueError("a password has no place in settings, which are shown: put it into a passfile (~/.pgpass)")
    return value


def _qmgr_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9./_%]{1,48}", value):
        raise ValueError(f"{value!r} is no name of a queue manager: 1 to 48 of A-Z a-z 0-9 . / _ %")
    return value


def _group_name(value: str) -> str:
    if not re.fullmatch(r"[A-Z@#$][A-Z0-9@#$]{0,3}", value):
        raise ValueError(f"{value!r} is no name of a queue-sharing group: 1 to 4 of A-Z 0-9 @ # $, no digit first")
    return value


def _variable(value: str) -> str:
    """Returns ``NAME`` or ``NAME=value`` of an environment. Raises ValueError for anything else."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(=[^\0]*)?", value, re.DOTALL):
        raise ValueError(f"{value.partition('=')[0]!r} is no name of a variable; write NAME, or NAME=value")
    return value


def _channel_text(value: str) -> str:
    """Returns ``CHANNEL/TCP/host(port)`` as written, MQSERVER's text. Raises ValueError for anything else."""
    if not re.fullmatch(r"[A-Za-z0-9./_%]{1,20}/TCP/[!-~]{1,264}", value):
        raise ValueError(f"{value!r} is no CHANNEL/TCP/host(port) such as DEV.APP.SVRCONN/TCP/mq.example.com(1414)")
    return value


def _bridge_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,48}", value):
        raise ValueError(f"{value!r} is no name of a bridge: 1 to 48 of A-Z a-z 0-9 _ -")
    return value


Bytes = Annotated[int, BeforeValidator(_size), Field(ge=0)]
Mode = Annotated[int, BeforeValidator(_mode), PlainSerializer(lambda mode: f"{mode:04o}")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Address = Annotated[str, AfterValidator(_loopback)]
AnyAddress = Annotated[str, AfterValidator(_any_address)]
QmgrName = Annotated[str, AfterValidator(_qmgr_name)]
HttpAddress = Annotated[str, Field(pattern=r"^https?://[!-~]+$")]
GroupName = Annotated[str, AfterValidator(_group_name)]
Schema = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_./%]{0,62}$")]
User = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
Variable = Annotated[str, AfterValidator(_variable)]
ConnectionString = Annotated[str, Field(min_length=1), AfterValidator(_without_password)]
ChannelText = Annotated[str, AfterValidator(_channel_text)]
BridgeName = Annotated[str, AfterValidator(_bridge_name)]
ObjectName = Annotated[str, Field(pattern=r"^[A-Za-z0-9./_%]{1,48}$")]
SecretName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
