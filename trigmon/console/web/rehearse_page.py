"""Rehearse: change a queue's attributes on a page, and see which conditions would hold and what lint says."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trigmon.client.connection import Connection
from trigmon.console.error_text import sentence
from trigmon.console.web.page_templates import queue_path, with_query
from trigmon.console.web.queue_page import row_of
from trigmon.console.web.web_console import console_of
from trigmon.mq.attribute_meanings import MEANINGS
from trigmon.mq.attributes import ATTRIBUTES, EVERY_TYPE, Attribute, read_attributes
from trigmon.mq.calls import Alter, Display
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import AttrValueError, AttrValueFixed, ObjectTypeError
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Explained, Listing
from trigmon.rules.lint import Finding, definitions, lint
from trigmon.rules.remedies import quoted_name, quoted_text

OFFERED = {
    "Triggering": (
        *("trigger_control", "trigger_type", "trigger_depth", "trigger_msg_priority", "process_name"),
        *("initiation_q_name", "trigger_data", "rearm", "backstop_s", "max_wait_s"),
    ),
    "Messages": (
        *("inhibit_get", "inhibit_put", "max_q_depth", "max_msg_length", "def_priority", "def_persistence"),
        "msg_delivery_sequence",
    ),
    "Backed out messages": ("backout_threshold", "backout_requeue", "backout_requeue_q_name"),
}
"""The attributes that the page offers, by the heading they stand below."""
_TABLE = ATTRIBUTES[ObjectType.QLOCAL]
_NAMES = [name for names in OFFERED.values() for name in names]


class Field(msgspec.Struct, frozen=True):
    """One attribute on the form. ``choices`` are its words; ``low`` and ``high`` the ends of its range."""

    name: str
    mqsc: str
    meaning: str
    value: str
    before: str
    choices: list[str]
    is_number: bool
    low: int
    high: int


class Change(msgspec.Struct, frozen=True):
    """An attribute that differs."""

    name: str
    before: object
    after: object


class RehearsalView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows. ``then`` is None where nothing differs, and where ``problem`` says why it cannot be.

    ``was`` is what the form has before a person changes it. ``is_altered_meanwhile``: since the page it was asked from.
    """

    name: str
    altered_ms: int
    was: str
    is_altered_meanwhile: bool
    fields: dict[str, list[Field]]
    changes: list[Change]
    mqsc: str
    now: Explained
    then: Explained | None
    new_findings: list[Finding]
    gone_findings: list[Finding]
    other_findings: list[Finding]
    problem: str


async def rehearse_page(request: Request) -> Response:
    """Returns the page. From its own form it leads on to the page of what a person has changed there.

    A browser sends every field: those that nobody touched would take back what others have altered meanwhile.
    """
    console, given = console_of(request), dict(request.query_params)
    name, altered_ms = given.pop("queue", ""), given.pop("altered_ms", "")
    if "was" in given:
        changed = _changed(given.pop("was"), given)
        return RedirectResponse(with_query("/rehearse", queue=name, altered_ms=altered_ms, **changed), 303)
    view = await console.clients.read(lambda qm: read_rehearsal(qm, name, given, altered_ms))
    return console.page("rehearse.html", view=view, name=name, verdicts=verdicts(view))


async def alter_action(request: Request) -> Response:
    """Alters a queue as it was rehearsed, and leads to its page."""
    console = console_of(request)
    fields = await console.form(request)
    name, altered_ms = fields.pop("queue", ""), fields.pop("altered_ms", "")

    def alter(qm: Connection) -> None:
        if str(row_of(qm, name)["altered_ms"]) != altered_ms:
            raise HTTPException(409, f"{name} was altered meanwhile: rehearse the change again.")
        qm.call(Alter(object_type="QLOCAL", name=name, attributes=_given(name, fields)))

    await console.clients.act(alter)
    console.shared.forget()
    return RedirectResponse(with_query(queue_path(name), note=console.add_note(f"{name} is altered.")), 303)


def _changed(was: str, fields: dict[str, str]) -> dict[str, str]:
    """Returns the fields of the form that differ from what it had. Raises HTTPException where that cannot be read."""
    try:
        before = msgspec.json.decode(was, type=dict[str, str])
    except msgspec.DecodeError:
        raise HTTPException(400, "The form does not say what it had before.") from None
    return {key: fields[key] for key in _NAMES if key in fields and fields[key] != before.get(key)}


def _given(name: str, fields: dict[str, str]) -> dict[str, Any]:
    """Returns the attributes of a form as plain values, of those that the page offers. Raises AttrValueError."""
    chosen = {key: fields[key] for key in _NAMES if key in fields}
    read = read_attributes(ObjectType.QLOCAL, name, chosen)
    return {key: _TABLE[key].plain(value) for key, value in read.items()}


def read_rehearsal(qm: Connection, name: str, given: dict[str, str], altered_ms: str = "") -> RehearsalView:
    """Reads what the page shows of a local queue and the values that are ``given``. Raises UnknownObjectName.

    ``altered_ms`` is when the queue had been altered that the values were chosen for; blank where nobody says.
    """
    row = row_of(qm, name)
    if row["object_type"] != "QLOCAL":
        raise ObjectTypeError(f"{name} is a {row['object_type']}: only local queues trigger")
    problem, then, changed = "", None, {}
    try:
        changed = {key: value for key, value in _given(name, given).items() if value != row[key]}
        then = qm.rehearse(name, **changed) if changed else None
    except (AttrValueError, AttrValueFixed) as error:
        problem = sentence(error)
    rows = [each for kind in EVERY_TYPE for each in _rows(qm, kind)]
    before = lint(definitions(rows))
    after = lint(definitions([each | changed if each["name"] == name and _is_queue(each) else each for each in rows]))
    return RehearsalView(
        name=name,
        altered_ms=row["altered_ms"],
        was=msgspec.json.encode({key: str(row[key]) for key in _NAMES}).decode(),
        is_altered_meanwhile=bool(altered_ms) and altered_ms != str(row["altered_ms"]),
        fields={heading: [_field(key, row, given) for key in names] for heading, names in OFFERED.items()},
        changes=[Change(key, row[key], value) for key, value in changed.items()],
        mqsc=_mqsc(name, changed) if changed else "",
        now=qm.explain(name),
        then=then,
        new_findings=_without(after, before),
        gone_findings=_without(before, after),
        other_findings=[each for each in after if each.name == name and each not in _without(after, before)],
        problem=problem,
    )


def _without(findings: list[Finding], others: list[Finding]) -> list[Finding]:
    """Returns the findings of a rule on an object that are not among the others, whatever each has found there."""
    known = {(each.rule, each.object_type, each.name) for each in others}
    return [each for each in findings if (each.rule, each.object_type, each.name) not in known]


def _rows(qm: Connection, kind: str) -> list[dict[str, Any]]:
    return list(all_rows(lambda call: qm.ask(call, Listing), Display(object_type=kind)))


def _is_queue(row: dict[str, Any]) -> bool:
    return bool(row["object_type"] == "QLOCAL")


def _field(key: str, row: dict[str, Any], given: dict[str, str]) -> Field:
    attribute = _TABLE[key]
    before = str(row[key])
    return Field(
        key,
        attribute.mqsc,
        MEANINGS.get(key, ""),
        given.get(key, before),
        before,
        _choices(attribute),
        not attribute.is_text and not attribute.words and not attribute.flags,
        attribute.low,
        attribute.high,
    )


def _choices(attribute: Attribute) -> list[str]:
    members = attribute.words.values() if attribute.words else type(attribute.default) if attribute.flags else ()
    return [str(attribute.plain(member)) for member in members]


def _mqsc(name: str, changed: dict[str, Any]) -> str:
    """Returns the change as a command."""
    words = []
    for key, value in changed.items():
        attribute = _TABLE[key]
        text = attribute.write(attribute.read(value, name))
        quoted = quoted_name(text) if attribute.is_name and text else quoted_text(text) if attribute.is_text else text
        words.append(text if attribute.flags else f"{attribute.mqsc}({quoted})")
    return f"ALTER QLOCAL({quoted_name(name)}) {' '.join(words)}"


def verdicts(view: RehearsalView) -> list[tuple[Any, Any]]:
    """Returns each condition as it is now, with the same one as it would be."""
    after = {each.number: each for each in view.then.conditions} if view.then is not None else {}
    now = {each.number: each for each in view.now.conditions}
    return [(now.get(number), after.get(number)) for number in dict.fromkeys([*now, *after])]
