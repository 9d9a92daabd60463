"""Puts, browses and takes messages for a client of the REST interface."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from trigmon.console.rest.rest_request import RestError, shown_id
from trigmon.console.rest.user_properties import put_with, shown
from trigmon.mq.descriptors import FORMAT_STRING
from trigmon.mq.errors import NoMsgAvailable, NoMsgUnderCursor
from trigmon.mq.rfh2 import TypedProperties, without_typed_properties

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message

LONGEST_WAIT_MS = 30_000


def put(qm: Connection, q_name: str, text: str, words: dict[str, Any], properties: TypedProperties) -> bytes:
    """Puts one message and returns its id."""
    if not properties:
        return qm.put(q_name, text, **words).msg_id
    of, data = put_with(text, properties)
    header = {"format": of.format, "encoding": of.encoding, "coded_char_set_id": of.coded_char_set_id}
    return qm.put(q_name, data, **words | header).msg_id


def first(
    qm: Connection, q_name: str, match: dict[str, Any], wait_ms: int, *, takes: bool
) -> tuple[Message, str, str] | None:
    """Returns the first message that fits, its text and its user properties; ``takes`` it off the queue.

    None where none came in time. Raises RestError (501) for a message that is no text, which stays.
    """
    wait = min(wait_ms, LONGEST_WAIT_MS) or None
    with qm.open(q_name, "browse", *(["input_shared"] if takes else [])) as queue:
        while True:
            try:
                message = queue.get(browse_first=True, wait_interval_ms=wait, match=match or None)  # type: ignore[arg-type]
            except NoMsgAvailable:
                return None
            text, properties = _text(message)
            if not takes:
                return message, text, properties
            try:
                queue.get(msg_under_cursor=True, syncpoint=True)
            except (NoMsgUnderCursor, NoMsgAvailable):
                # Another program was faster.
                continue
            qm.commit()
            return message, text, properties


def listed(qm: Connection, q_name: str, version: int, most: int) -> list[dict[str, str]]:
    """Returns id and format of the first messages."""
    with qm.open(q_name, "browse") as queue:
        return [
            {"messageId": shown_id(version, message.msg_id), "format": _format(message)}
            for message in islice(queue.browse(), most)
        ]


def _format(message: Message) -> str:
    """Returns the format of what is behind the headers with properties."""
    return without_typed_properties(message.descriptor, message.data)[0].format.rstrip() or "MQNONE"


def _text(message: Message) -> tuple[str, str]:
    """Returns the text behind the headers with properties, and the user properties. Raises RestError (501)."""
    of, data, properties = without_typed_properties(message.descriptor, message.data)
    try:
        if of.format.rstrip() != FORMAT_STRING:
            raise ValueError(of.format)
        return data.decode(), shown(properties)
    except ValueError:
        about = f"The message {message.msg_id.hex()} has the format {of.format or '(none)'}"
        action = "Take it by a program; it is left on the queue"
        raise RestError(501, f"{about} or is no text in UTF-8", action) from None
