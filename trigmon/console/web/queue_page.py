"""The page of a queue: its depth, its first messages, why it triggers or does not, its definition, its runs."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trigmon.client.connection import Connection
from trigmon.client.message import Message
from trigmon.client.option_names import GetWords
from trigmon.console.dead_letter_text import readable
from trigmon.console.error_text import sentence
from trigmon.console.web.depth_chart import depth_chart
from trigmon.console.web.run_list import RunRow, run_rows
from trigmon.console.web.web_console import WebConsole, console_of, now_ms
from trigmon.mq.attribute_meanings import MEANINGS
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Display, QueueStatus, Runs
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import MQError, NoMsgAvailable, UnknownObjectName
from trigmon.mq.replies import Explained, Listing

MOST_MESSAGES = 10
MOST_RUNS = 10
_LOOKED_AT = 32
LONGEST_SHOWN = 2048
"""So many bytes of a message's data are shown."""


class AttributeRow(msgspec.Struct, frozen=True):
    """An attribute of the definition, by both of its names."""

    name: str
    mqsc: str
    value: object
    meaning: str
    is_default: bool


class MessageRow(msgspec.Struct, frozen=True):
    """A message that waits; ``data`` is None where it is withheld."""

    msg_id: str
    put_ms: int
    priority: int
    persistence: str
    backout_count: int
    format: str
    length: int
    appl_name: str
    data: str | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows. ``status`` and ``explained`` are None of what is no local queue."""

    row: dict[str, Any]
    definition: list[AttributeRow]
    status: dict[str, Any] | None
    explained: Explained | None
    messages: list[MessageRow]
    no_messages: str
    runs: list[RunRow]


async def queue_page(request: Request) -> Response:
    """Returns the page."""
    console, name = console_of(request), request.path_params["name"]
    fragment = await console.shared.get(("queue", name), lambda: _fragment(console, name))
    return console.page("queue.html", name=name, fragment=fragment, note=console.note(request))


async def queue_events(request: Request) -> Response:
    """Returns its changes as server-sent events. Raises UnknownObjectName where it is not there from the first."""
    console, name = console_of(request), request.path_params["name"]
    key = ("queue", name)
    await console.must_be_there(key, lambda: _fragment(console, name))
    return console.live(console.changes(key, lambda: _fragment(console, name)))


async def _fragment(console: WebConsole, name: str) -> str:
    view = await console.clients.read(lambda qm: read_queue(qm, name, show_data=console.show_data))
    samples = console.depths.of(name)
    if samples and view.status is not None:
        samples.append(samples[-1]._replace(at_ms=now_ms(), depth=view.status["current_q_depth"]))
    return console.fragment(
        "queue_part.html",
        view=view,
        name=name,
        chart=depth_chart(samples),
        sampled_since_ms=samples[0].at_ms if samples else 0,
        now_ms=now_ms(),
    )


def read_queue(qm: Connection, name: str, *, show_data: bool) -> QueueView:
    """Reads what the page shows. Raises UnknownObjectName."""
    row = row_of(qm, name)
    which = ObjectType[row["object_type"]]
    is_local = which is ObjectType.QLOCAL
    messages, why_none = _first_messages(qm, name, show_data) if is_local else ([], "")
    runs = qm.ask(Runs(where={"q_name": name}, limit=_LOOKED_AT), Listing).rows if is_local else []
    status = qm.ask(QueueStatus(q_name=name), Listing).rows if is_local else []
    return QueueView(
        row=row,
        definition=definition_of(which, row),
        status=status[0] if status else None,
        explained=qm.explain(name, why_not=True) if is_local else None,
        messages=messages,
        no_messages=why_none,
        runs=run_rows(runs)[:MOST_RUNS],
    )


def row_of(qm: Connection, name: str) -> dict[str, Any]:
    """Returns a queue of whichever type as DISPLAY shows it. Raises UnknownObjectName."""
    rows = qm.ask(Display(object_type="queue", name=name), Listing).rows
    found = next((row for row in rows if row["name"] == name), None)
    if found is None:
        raise UnknownObjectName(name)
    return found


def definition_of(which: ObjectType, row: dict[str, Any]) -> list[AttributeRow]:
    """Returns the attributes of an object, those that differ from the default first."""
    found = [
        AttributeRow(
            each.name,
            each.mqsc,
            row[each.name],
            MEANINGS.get(each.name, ""),
            each.read(row[each.name], which.name) == each.default,
        )
        for each in ATTRIBUTES[which].values()
        if each.name in row
    ]
    return sorted(found, key=lambda each: each.is_default)


def _first_messages(qm: Connection, name: str, show_data: bool) -> tuple[list[MessageRow], str]:
    """Returns the first messages of a local queue, or why they cannot be looked at; none is taken."""
    found: list[MessageRow] = []
    length = LONGEST_SHOWN if show_data else 0
    try:
        with qm.open(name, "browse") as queue:
            while len(found) < MOST_MESSAGES:
                place: GetWords = {"browse_next": True} if found else {"browse_first": True}
                place["accept_truncated_msg"] = True
                message = queue.get(max_length=length, **place)
                found.append(_message_row(message, show_data))
    except NoMsgAvailable:
        return found, ""
    except MQError as error:
        if not qm.alive:
            raise
        return [], sentence(error)
    return found, ""


def _message_row(message: Message, show_data: bool) -> MessageRow:
    data = None
    if show_data:
        shown = readable(message.format, message.data)
        data = shown.get("data") or shown.get("data_hex") or " ".join(f"{key}={value}" for key, value in shown.items())
        data += f"\n… {message.data_length} bytes in all" if message.data_length > len(message.data) else ""
    return MessageRow(
        message.msg_id.hex(),
        message.put_ms,
        message.priority,
        message.persistence.name.lower().replace("_", " "),
        message.backout_count,
        message.format,
        message.data_length,
        message.put_appl_name,
        data,
    )
