"""Definitions out as MQSC, in the shape of MQ's own dump: one attribute a line, names and text quoted, REPLACE.

MQ's attributes are all written, so that the script means the same whatever the default objects say where it is
loaded. Those of ours are written where they say something, so that MQ itself can read the script of objects that
do not use them. The Spark attributes are checked as a whole, so a process with any of them writes them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trigmon.mq.attributes import ATTRIBUTES, Attribute, is_dynamic
from trigmon.mq.enums import ObjectType
from trigmon.mqsc.authority_commands import command_of
from trigmon.rules.objects.define import DEFAULT_OBJECTS

_SPARK = "spark"
_ORDER = ("QMGR", "PROCESS", "NAMELIST", "QMODEL", "QLOCAL", "QREMOTE", "QALIAS", "SCHEDULE", "WATCH", "AUTHREC")


def script(rows: Iterable[dict[str, Any]], *, system: bool = False) -> Iterator[str]:
    """Yields the lines of a script that defines the objects of these rows; SYSTEM objects only when asked for.

    Dynamic queues are left out: programs make them, by opening a model queue.
    """
    given = [row for row in rows if not is_dynamic(row)]
    references = {reference for row in given for reference in _of_ours(row)}
    chosen = [r for r in given if system or r["object_type"] == "QMGR" or not r["name"].startswith("SYSTEM.")]
    for row in sorted(chosen, key=lambda r: (_ORDER.index(r["object_type"]), r["name"])):
        yield from _command(row, references)


def _of_ours(row: dict[str, Any]) -> Iterator[tuple[ObjectType, str]]:
    """Yields what a default object says in attributes of ours: every other object must then say it too."""
    which = ObjectType[row["object_type"]]
    if row["name"] != DEFAULT_OBJECTS.get(which):
        return
    for attribute in ATTRIBUTES[which].values():
        default = attribute.plain(attribute.default)
        if attribute.ours and row.get(attribute.name, default) != default:
            yield which, attribute.name


def _command(row: dict[str, Any], references: set[tuple[ObjectType, str]]) -> Iterator[str]:
    which = ObjectType[row["object_type"]]
    if which is ObjectType.AUTHREC:
        yield from command_of(row)
        return
    begin = "ALTER QMGR" if which is ObjectType.QMGR else f"DEFINE {which.name}('{row['name']}')"
    ours = _names_to_write(row, which) | {name for of, name in references if of is which}
    pairs = [
        _pair(attribute, row[attribute.name], row["name"])
        for attribute in sorted(ATTRIBUTES[which].values(), key=lambda a: a.mqsc)
        if attribute.name in row and not attribute.read_only
        if not attribute.ours or attribute.name in ours
    ]
    if which is not ObjectType.QMGR:
        pairs.append("REPLACE")
    lines = [begin, *(f"   {pair}" for pair in pairs)]
    yield from (f"{line} +" for line in lines[:-1])
    yield lines[-1]


def _names_to_write(row: dict[str, Any], which: ObjectType) -> set[str]:
    """Returns the attributes of ours that an object says something in, or that belong to what it says."""
    ours = [attribute for attribute in ATTRIBUTES[which].values() if attribute.ours and attribute.name in row]
    changed = {attribute.name for attribute in ours if row[attribute.name] != attribute.plain(attribute.default)}
    is_spark = row.get("appl_type") == _SPARK or any(name.startswith("spark_") for name in changed)
    return changed | {a.name for a in ours if is_spark and a.name.startswith("spark_")}


def _pair(attribute: Attribute, value: Any, name: str) -> str:
    written = attribute.write(attribute.read(value, name))
    if attribute.flags:
        return written
    if attribute.is_names:
        quoted = ",".join(f"'{name}'" for name in value) or "' '"
        return f"{attribute.mqsc}({quoted})"
    if attribute.is_text:
        quoted = written.replace("'", "''") or " "
        return f"{attribute.mqsc}('{quoted}')"
    return f"{attribute.mqsc}({written})"
