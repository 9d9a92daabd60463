"""The plan of apply: which calls make the objects equal to what the files want, and what differs.

Only the attributes that the files name are looked at, so what an operator altered elsewhere stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trigmon.definitions.definition_files import DefinitionError, Wanted
from trigmon.mq.attributes import ATTRIBUTES, QUEUE_KINDS, is_dynamic
from trigmon.mq.calls import Alter, Call, Define, Delete
from trigmon.mq.enums import ObjectType

Row = dict[str, Any]
QUEUES = tuple(kind.name for kind in QUEUE_KINDS)


@dataclass(frozen=True)
class Change:
    """One attribute that differs: plain values as JSON shows them; ``before`` is None for a new object."""

    attribute: str
    before: object
    after: object


@dataclass(frozen=True)
class Step:
    """One call of the plan. ``action`` is define, alter or delete; ``where`` is the place in the files, if any."""

    action: str
    object_type: str
    name: str
    changes: tuple[Change, ...]
    call: Call
    where: str = ""


def plan(wanted: Iterable[Wanted], existing: Iterable[Row], *, prune: bool = False, create: bool = False) -> list[Step]:
    """Returns the steps from the existing objects to the wanted ones, in the files' order, deletions last.

    ``existing`` are rows of DISPLAY, of every object. ``prune`` deletes what no file names,
    except SYSTEM objects. ``create`` only defines what does not exist: a start undoes no operator's ALTER.
    Raises DefinitionError for a name that exists with another type, or a file meant for another queue manager.
    """
    given = list(wanted)
    there = {_key(row["object_type"], row["name"]): row for row in existing}
    problems = list(_conflicts(given, there))
    if problems:
        raise DefinitionError(problems)
    steps = []
    for one in given:
        row = there.get(_key(one.object_type, one.name))
        if row is None:
            steps.append(_define(one))
        elif not create and (step := _alter(one, row)) is not None:
            steps.append(step)
    if prune:
        steps += _deletions(given, there.values())
    return steps


def _key(object_type: str, name: str) -> tuple[str, str]:
    if object_type == "QMGR":
        return "QMGR", ""
    return ("queue" if object_type in QUEUES else object_type), name


def _conflicts(wanted: list[Wanted], there: dict[tuple[str, str], Row]) -> Iterator[str]:
    for one in wanted:
        row = there.get(_key(one.object_type, one.name))
        if row is None:
            continue
        if row["object_type"] != one.object_type:
            kind = row["object_type"]
            yield f"{one.where}: {one.name} exists as a {kind}, not a {one.object_type}: delete the {kind} first"
        if one.object_type == "QMGR" and one.name and one.name != row["name"]:
            yield f"{one.where}: this file is for queue manager {one.name}, and this one is {row['name']}"


def _plain(which: ObjectType, values: Row) -> Row:
    return {name: ATTRIBUTES[which][name].plain(value) for name, value in values.items()}


def _define(one: Wanted) -> Step:
    values = _plain(ObjectType[one.object_type], one.attributes)
    call = Define(object_type=one.object_type, name=one.name, attributes=values)
    changes = tuple(Change(name, None, value) for name, value in values.items())
    return Step("define", one.object_type, one.name, changes, call, one.where)


def _alter(one: Wanted, row: Row) -> Step | None:
    which = ObjectType[one.object_type]
    table = ATTRIBUTES[which]
    different = {
        name: value
        for name, value in one.attributes.items()
        if table[name].read(row.get(name, table[name].default), one.where) != value
    }
    if not different:
        return None
    values = _plain(which, different)
    changes = tuple(Change(name, row.get(name), value) for name, value in values.items())
    name = "" if which is ObjectType.QMGR else one.name
    call = Alter(object_type=which.name, name=name, attributes=values)
    return Step("alter", one.object_type, row["name"], changes, call, one.where)


def _deletions(wanted: list[Wanted], there: Iterable[Row]) -> Iterator[Step]:
    names_rights = any(one.object_type == "AUTHREC" for one in wanted)
    named = {_key(one.object_type, one.name) for one in wanted}
    # What points at others goes first: those may go with it. Dynamic queues are their programs' own.
    order = dict.fromkeys(("AUTHREC", "SCHEDULE", "WATCH", "NAMELIST"), 0)
    order |= {"QALIAS": 1, "QREMOTE": 2, "QMODEL": 3, "QLOCAL": 4, "PROCESS": 5}
    for row in sorted(there, key=lambda r: (order.get(r["object_type"], 6), r["name"])):
        kind, name = row["object_type"], row["name"]
        if kind == "AUTHREC" and not names_rights:
            continue  # without any record every user could do everything again: files that name none mean none
        if kind in order and not is_dynamic(row) and not name.startswith("SYSTEM.") and _key(kind, name) not in named:
            yield Step("delete", kind, name, (), Delete(object_type=kind, name=name))
