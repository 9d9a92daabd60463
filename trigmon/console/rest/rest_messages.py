"""Puts, browses and takes messages for a client of the REST interface."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from trigmon.console.rest.rest_request import RestError, shown_id
from trigmon.mq.descriptors import FORMAT_STRING
from trigmon.mq.errors import NoMsgAvailable, NoMsgUnderCursor

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message

LONGEST_WAIT_MS = 30_000


def put(qm: Connection, q_name: str, text: str, words: dict[str, Any]) -> bytes:
    """Puts one message and returns its id."""
    return qm.put(q_name, text, **words).msg_id


def first(
    qm: Connection, q_name: str, match: dict[str, Any], wait_ms: int, *, takes: bool
) -> tuple[Message, str] | None:
    """Returns the first message that fits and its text, None where none came in time; ``takes`` it off the queue.

    Raises RestError (501) for a message that is no text, which stays.
    """
    wait = min(wait_ms, LONGEST_WAIT_MS) or None
    with qm.open(q_name, "browse", *(["input_shared"] if takes else [])) as queue:
        while True:
            try:
                message = queue.get(browse_first=True, wait_interval_ms=wait, match=match or None)  # type: ignore[arg-type]
            except NoMsgAvailable:
                return None
            text = _text(message)
            if not takes:
                return message, text
            try:
                queue.get(msg_under_cursor=True, syncpoint=True)
            except (NoMsgUnderCursor, NoMsgAvailable):
                # Another program was faster.
                continue
            qm.commit()
            return message, text


def listed(qm: Connection, q_name: str, version: int, most: int) -> list[dict[str, str]]:
    """Returns id and format of the first messages."""
    with qm.open(q_name, "browse") as queue:
        return [
            {"messageId": shown_id(version, message.msg_id), "format": message.format or "MQNONE"}
            for message in islice(queue.browse(), most)
        ]


def _text(message: Message) -> str:
    try:
        if message.format != FORMAT_STRING:
            raise ValueError(message.format)
        return message.data.decode()
    except ValueError:
        about = f"The message {message.msg_id.hex()} has the format {message.format or '(none)'}"
        action = "Take it by a program; it is left on the queue"
        raise RestError(501, f"{about} or is no text in UTF-8", action) from None
