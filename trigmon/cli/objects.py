"""The commands that queues and processes share: KEY=VALUE, list, show, define, alter, delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli import output
from trigmon.cli.command import invocation, nearest
from trigmon.mq.attributes import ATTRIBUTES, find_attribute, read_attributes
from trigmon.mq.calls import Alter, Define, Delete, Display
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import MQError, SelectorError, UnknownObjectName
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Listing

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

Row = dict[str, Any]


def attributes(which: ObjectType, name: str, words: Iterable[str]) -> Row:
    """Returns ``KEY=VALUE`` words, and flags such as ``TRIGGER``, as plain values by long name. Raises UsageError."""
    values: Row = {}
    for word in words:
        key, equals, value = word.partition("=")
        found = _flag(which, key) if not equals else _long_name(which, key)
        if found is None:
            known = [n for a in ATTRIBUTES[which].values() for n in (a.name, a.mqsc)]
            raise click.UsageError(f"{word!r}: {which.name} has no attribute {key}{nearest(key, known)}")
        if found in values:
            raise click.UsageError(f"{word!r}: {found} was already given")
        try:
            read = read_attributes(which, name, {found: value if equals else key})
        except MQError as error:
            raise click.UsageError(error.about) from None
        values[found] = ATTRIBUTES[which][found].plain(read[found])
    return values


def _long_name(which: ObjectType, key: str) -> str | None:
    try:
        return find_attribute(which, key).name
    except SelectorError:
        return None


def _flag(which: ObjectType, key: str) -> str | None:
    return next((a.name for a in ATTRIBUTES[which].values() if key.upper() in (a.flags or ())), None)


def rows(qm: Connection, object_type: str, name: str = "*") -> Iterator[Row]:
    """Returns every object of a type (or ``queue``) whose name fits, page after page."""
    return all_rows(lambda call: qm.ask(call, Listing), Display(object_type=object_type, name=name))


def row(qm: Connection, object_type: str, name: str) -> Row:
    """Returns one object. Raises UnknownObjectName."""
    found = next((r for r in rows(qm, object_type, name) if r["name"] == name), None)
    if found is None:
        raise UnknownObjectName(_named(object_type, name))
    return found


def _named(object_type: str, name: str) -> str:
    """Returns the object as an error names it: a queue by its name alone, whatever its type."""
    return name if object_type == "queue" else f"{object_type}({name})"


def show_list(object_type: str, pattern: str, columns: list[str], *, system: bool) -> None:
    """Prints the objects that fit; SYSTEM objects only by the option or by name."""
    with invocation().connected() as qm:
        found = rows(qm, object_type, pattern)
        wanted = system or pattern.startswith("SYSTEM")
        shown = (r for r in found if wanted or not r["name"].startswith("SYSTEM."))
        count = output.listing(shown, columns, lambda row: bool(row.get("held")))
    if not count and "*" not in pattern:
        raise UnknownObjectName(_named(object_type, pattern))
    if not count:
        nothing = f"there is no {object_type.lower()}" if pattern == "*" else f"nothing is named {pattern}"
        output.note(f"{nothing}; --system shows the SYSTEM objects too")


def show_one(object_type: str, name: str) -> None:
    """Prints one object with all its attributes; a table leaves out Spark's where a process has another type."""
    with invocation().connected() as qm:
        shown = row(qm, object_type, name)
    if not invocation().is_json and object_type == "PROCESS" and shown["appl_type"] != "spark":
        shown = {key: value for key, value in shown.items() if not _is_unset(key, value)}
    output.one(shown)


def _is_unset(key: str, value: Any) -> bool:
    """Returns whether this is an attribute of Spark jobs that has its default."""
    attribute = ATTRIBUTES[ObjectType.PROCESS].get(key)
    return key.startswith("spark_") and attribute is not None and attribute.read(value, key) == attribute.default


def define(which: ObjectType, name: str, values: Row, *, replace: bool, like: str) -> None:
    """Defines an object and prints a confirmation."""
    call = Define(object_type=which.name, name=name, attributes=values, replace=replace, like=like)
    with invocation().connected() as qm:
        qm.call(call)
        _done("defined", which.name, name)
        _warn(qm, which, name)


def alter(qm: Connection, which: ObjectType, name: str, words: tuple[str, ...]) -> None:
    """Alters the named attributes and prints a confirmation."""
    qm.call(Alter(object_type=which.name, name=name, attributes=attributes(which, name, words)))
    _done("altered", which.name, name)
    _warn(qm, which, name)


def delete(qm: Connection, object_type: str, name: str, *, purge: bool = False) -> None:
    """Deletes an object and prints a confirmation."""
    qm.call(Delete(object_type=object_type, name=name, purge=purge))
    _done("deleted", object_type, name)


def _warn(qm: Connection, which: ObjectType, name: str) -> None:
    """Prints warnings about a process."""
    from trigmon.mq.enums import ObjectType
    from trigmon.rules.runs.process_warnings import warnings

    for text in warnings(name, row(qm, which.name, name)) if which is ObjectType.PROCESS else ():
        output.note(f"warning: {text}")


def _done(action: str, object_type: str, name: str) -> None:
    output.done(f"{object_type} {name} {action}", {"action": action, "object_type": object_type, "name": name})
