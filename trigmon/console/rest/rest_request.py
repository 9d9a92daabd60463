"""What a request of MQ's REST interface says, and the headers and errors of its answers.

Source: the manual's pages of ``/messaging/qmgr/{qmgrName}/queue/{queueName}/message``, of ``.../messagelist``, of
``/admin/action/qmgr/{qmgrName}/mqsc`` and of ``/login``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import Persistence
from trigmon.mq.errors import MQError
from trigmon.mq.names import is_object_name

_PATH = re.compile(r"/ibmmq/rest/v([123])/messaging/qmgr/([^/]+)/queue/([^/]+)/(message|messagelist)\Z")
_ACTION_PATH = re.compile(r"/ibmmq/rest/v([123])/admin/action/qmgr/([^/]+)/mqsc\Z")
_LOGIN_PATH = re.compile(r"/ibmmq/rest/v([123])/login\Z")
METHODS = {
    "message": ("GET", "HEAD", "POST", "DELETE"),
    "messagelist": ("GET", "HEAD"),
    "mqsc": ("POST",),
    "login": ("GET", "HEAD", "POST", "DELETE"),
}
"""The methods of each kind of resource."""
_TYPES = ("text/plain", "text/html", "text/xml", "application/json", "application/xml")
_PREFIX = "ibm-mq-md-"
CSRF = "ibm-mq-rest-csrf-token"
USER_PROPERTIES = "ibm-mq-usr"
LONGEST_EXPIRY_MS = 99_999_999_900
_STATUS_OF = {
    400: (2013, 2030, 2031, 2046, 2050),
    403: (2035, 2217),
    404: (2082, 2085, 2086, 2087, 2152),
    405: (2016, 2051),
    409: (2042, 2053),
    503: (2009, 2025, 2058, 2059, 2161, 2162, 2202, 2203, 2393),
}


class Target(NamedTuple):
    """What a path names: a queue's message or its list, MQSC commands, or the login; ``kind`` is one of METHODS."""

    version: int
    q_mgr_name: str
    q_name: str
    kind: str


class RestError(Exception):
    """An answer that is an error: its status, MQ's number of the message where it is known, and the texts.

    ``headers`` are those that the status asks for.
    """

    def __init__(
        self,
        status: int,
        text: str,
        action: str,
        number: str = "",
        reason: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.action = action
        self.number = number
        self.reason = reason
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Returns the JSON object of the answer."""
        text = f"{self.number}: {self}" if self.number else str(self)
        error = {"type": "rest", "message": text, "explanation": str(self), "action": self.action}
        if self.number:
            error["msgId"] = self.number
        return {"error": [error | ({"completionCode": 2, "reasonCode": self.reason} if self.reason else {})]}


def refused(error: MQError, remedy: str) -> RestError:
    """Returns the answer for a call that the queue manager refused."""
    reason = int(error.reason)
    status = next((status for status, reasons in _STATUS_OF.items() if reason in reasons), 500)
    return RestError(status, str(error), remedy, "MQWB0303E", reason)


def target(path: str) -> Target:
    """Returns what a path means, before its percent signs are read. Raises RestError."""
    if (action := _ACTION_PATH.match(path)) is not None:
        return Target(int(action[1]), unquote(action[2]), "", "mqsc")
    if (login := _LOGIN_PATH.match(path)) is not None:
        return Target(int(login[1]), "", "", "login")
    found = _PATH.match(path)
    if found is None:
        raise RestError(404, f"There is no resource {path}", "See the paths in trigmon's documentation")
    return Target(int(found[1]), unquote(found[2]), unquote(found[3]), found[4])


def account(headers: Mapping[str, str]) -> tuple[str, str]:
    """Returns user and password of basic authentication. Raises RestError."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        user = colon = password = ""
    if kind.lower() != "basic" or not (user and colon):
        raise not_authenticated("Basic authentication is missing")
    return user, password


def not_authenticated(text: str) -> RestError:
    """Returns the answer for a client that has not proved its user."""
    action = "Give the user and the password of an account of trigmon tls user, or log in"
    return RestError(401, text, action, "MQWB0104E", headers={"WWW-Authenticate": 'Basic realm="trigmon"'})


def check_method(method: str, kind: str) -> None:
    """Checks that a kind of resource has a method. Raises RestError."""
    if method not in (allowed := METHODS[kind]):
        action = f"Send {' or '.join(allowed)}"
        headers = {"Allow": ", ".join(allowed)}
        raise RestError(405, f"{method} is no method of this resource", action, headers=headers)


def credentials(body: str) -> tuple[str, str]:
    """Returns user and password of the body of a login. Raises RestError."""
    try:
        given: Any = json.loads(body)
        user, password = given["username"], given["password"]
        if not isinstance(user, str) or not isinstance(password, str) or not user:
            raise ValueError(user)
        f"{user}{password}".encode()
    except (ValueError, RecursionError, KeyError, TypeError):
        action = 'Send {"username": "NAME", "password": "PASSWORD"}'
        raise RestError(400, "The body holds no username and password", action) from None
    return user, password


def check_change(headers: Mapping[str, str]) -> None:
    """Checks the header that no form of another site can send. Raises RestError."""
    if CSRF not in headers:
        raise RestError(403, f"The header {CSRF} is missing", "Send it, with any value")


def check_json(headers: Mapping[str, str]) -> None:
    """Checks that a body is JSON in UTF-8. Raises RestError."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RestError(415, "The media type is not application/json", "Send it", "MQWB0306E")
    check_type(headers)


def check_type(headers: Mapping[str, str]) -> None:
    """Checks that a body is text in UTF-8. Raises RestError."""
    kind, _, rest = headers.get("content-type", "").partition(";")
    if kind.strip().lower() not in _TYPES:
        action = f"Send Content-Type as one of {', '.join(_TYPES)}, with charset=utf-8"
        raise RestError(415, f"The media type {kind.strip() or '(none)'} is not supported", action, "MQWB0306E")
    charset = re.search(r'charset\s*=\s*"?([^";\s]+)', rest, re.IGNORECASE)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8"):
        raise RestError(415, f"The character set {charset[1]} is not acceptable", "Send UTF-8", "MQWB0305E")


def put_words(version: int, headers: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options of the put that the headers ``ibm-mq-md-*`` mean. Raises RestError."""
    words: dict[str, Any] = {"persistence": "not_persistent"}
    for header, text in headers.items():
        if header == USER_PROPERTIES and version < 3:
            raise _wrong(header, text)
        if not header.startswith(_PREFIX):
            continue
        name = header.removeprefix(_PREFIX)
        if name == "priority" and version < 3:
            raise _wrong(header, text)
        try:
            words |= _WORDS[name](version, text.strip())
        except (KeyError, ValueError):
            raise _wrong(header, text) from None
    return words


def matched(version: int, query: Mapping[str, str]) -> tuple[dict[str, bytes], int]:
    """Returns the ids that a query chooses a message by, and its ``wait`` in milliseconds. Raises RestError."""
    match = {}
    for name, field in (("messageId", "msg_id"), ("correlationId", "correl_id")):
        if name in query:
            try:
                match[field] = _id(version, query[name])
            except ValueError:
                raise RestError(400, f"{name}={query[name]} is no id", "Send 48 hexadecimal digits") from None
    wait = query.get("wait", "0")
    if not re.fullmatch("[0-9]{1,9}", wait):
        raise RestError(400, f"wait={wait} is no number of milliseconds", "Send a number")
    return match, int(wait)


def limit(query: Mapping[str, str]) -> int:
    """Returns how many messages a list has at most. Raises RestError."""
    text = query.get("limit", "10")
    if not re.fullmatch("[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise RestError(400, f"limit={text} is no number from 1 to 1000", "Send a number from 1 to 1000")
    return int(text)


def described(version: int, of: MessageDescriptor) -> dict[str, str]:
    """Returns the headers that describe a message."""
    found = {
        "messageId": shown_id(version, of.msg_id),
        "persistence": "persistent" if of.persistence == Persistence.PERSISTENT else "nonPersistent",
        "expiry": "unlimited" if of.expiry < 0 else str(of.expiry * 100),
    }
    if of.correl_id != NO_ID:
        found["correlationId"] = shown_id(version, of.correl_id)
    # Any program may have put any text there; a header takes none with a line's end.
    if is_object_name(of.reply_to_q):
        q_mgr = f"@{of.reply_to_q_mgr}" if is_object_name(of.reply_to_q_mgr) else ""
        found["replyTo"] = of.reply_to_q + q_mgr
    if version == 3:
        found["priority"] = str(of.priority)
    return {_PREFIX + name: value for name, value in found.items()}


def shown_id(version: int, value: bytes) -> str:
    """Returns an id as a version of the interface shows it."""
    return ("ID:" if version == 3 else "") + value.hex()


def _wrong(header: str, text: str) -> RestError:
    action = "Resubmit the request with a valid value"
    return RestError(400, f"The header {header} cannot be set: {text!r} is no valid value", action, "MQWB0302E")


def _id(version: int, text: str) -> bytes:
    digits = text.removeprefix("ID:") if version == 3 else text
    if not re.fullmatch(r"[0-9A-Fa-f]{1,48}", digits):
        raise ValueError(text)
    return bytes.fromhex(digits.ljust(48, "0"))


def _correl_id(version: int, text: str) -> dict[str, Any]:
    if version == 3 and not text.startswith("ID:"):
        if not 0 < len(text.encode()) <= 24:
            raise ValueError(text)
        return {"correl_id": text}
    return {"correl_id": _id(version, text)}


def _expiry(version: int, text: str) -> dict[str, Any]:
    if text == "unlimited":
        return {}
    milliseconds = int(text)
    if not 0 <= milliseconds <= LONGEST_EXPIRY_MS:
        raise ValueError(text)
    return {"expiry_tenths": max(1, round(milliseconds / 100))}


def _persistence(version: int, text: str) -> dict[str, Any]:
    return {"persistence": {"persistent": "persistent", "nonPersistent": "not_persistent"}[text]}


def _reply_to(version: int, text: str) -> dict[str, Any]:
    q_name, at, q_mgr_name = text.partition("@")
    if not is_object_name(q_name) or (at and not is_object_name(q_mgr_name)):
        raise ValueError(text)
    return {"reply_to_q": q_name} | ({"reply_to_q_mgr": q_mgr_name} if at else {})


def _priority(version: int, text: str) -> dict[str, Any]:
    if text == "asDestination":
        return {}
    if not re.fullmatch("[0-9]", text):
        raise ValueError(text)
    return {"priority": int(text)}


_WORDS = {
    "correlationid": _correl_id,
    "expiry": _expiry,
    "persistence": _persistence,
    "replyto": _reply_to,
    "priority": _priority,
}
