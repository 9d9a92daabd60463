"""The user and the password that a program gives in an MQCSP, and the connection that they make."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trigmon.client.address import CONNECT_S, connect, connect_as, resolved
from trigmon.client.connection import Connection
from trigmon.client.reconnect import MAY_PASS
from trigmon.mqi.md import number
from trigmon.mqi.memory import read_text
from trigmon.mqi.mqi_numbers import MqiError, MqiReason
from trigmon.mqi.structures import MQCSP

LONGEST = 1024
_USER_AND_PASSWORD = 1
"""``MQCSP_AUTH_USER_ID_AND_PWD``."""


class Credentials:
    """A user and a password; both are empty where the program gave none. They are never shown."""

    def __init__(self, csp: bytes | None) -> None:
        """Reads an MQCSP. Raises MqiError (2595)."""
        self.user = self._password = ""
        if not csp:
            return
        if not MQCSP.is_one(csp):
            raise MqiError(MqiReason.CSP_ERROR, "this is no MQCSP")
        values = MQCSP.unpack(csp)
        if values["AuthenticationType"] != _USER_AND_PASSWORD:
            return
        lengths = number(values["CSPUserIdLength"]), number(values["CSPPasswordLength"])
        if not all(0 <= length <= LONGEST for length in lengths):
            raise MqiError(MqiReason.CSP_ERROR, "a user or a password of a length that it cannot have")
        self.user = read_text(number(values["CSPUserIdPtr"]), lengths[0])
        self._password = read_text(number(values["CSPPasswordPtr"]), lengths[1])

    def connect(self, addresses: Sequence[str], application: str | None) -> Connection:
        """Returns a connection to the first of the addresses that lets the program in.

        A user comes by TLS, in the place of the certificate that the address names. On this machine the system says
        who it is, and no password is looked at. Raises what :func:`trigmon.client.address.connect` raises.
        """
        if not self.user:
            return connect(",".join(addresses), application=application, reconnect_s=0)
        found = resolved(",".join(addresses))
        for address in found[:-1]:
            try:
                return self._connected(address, application, CONNECT_S / len(found))
            except MAY_PASS:
                continue
        return self._connected(found[-1], application, CONNECT_S / len(found))

    def _connected(self, address: str, application: str | None, timeout_s: float) -> Connection:
        if not address.startswith("tls:"):
            return connect(address, application=application, timeout_s=timeout_s, reconnect_s=0)
        name = application or Path(sys.argv[0] if sys.argv else "").name or "python"
        return connect_as(address, self.user, self._password, application=name[:28], timeout_s=timeout_s)
