"""Objects out as a definition file that loads back equal: a list of objects, attributes by their long names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from trigmon import yaml12
from trigmon.definitions.object_models import spark_group
from trigmon.mq.attributes import ATTRIBUTES, is_dynamic
from trigmon.mq.enums import ObjectType
from trigmon.mq.rights import read_record_name

Row = dict[str, Any]
_ORDER = ("QMGR", "PROCESS", "NAMELIST", "QMODEL", "QLOCAL", "QREMOTE", "QALIAS", "SCHEDULE", "WATCH", "AUTHREC")
_DEFAULT_OBJECTS = {
    "QLOCAL": "SYSTEM.DEFAULT.LOCAL.QUEUE",
    "QALIAS": "SYSTEM.DEFAULT.ALIAS.QUEUE",
    "QREMOTE": "SYSTEM.DEFAULT.REMOTE.QUEUE",
    "QMODEL": "SYSTEM.DEFAULT.MODEL.QUEUE",
    "NAMELIST": "SYSTEM.DEFAULT.NAMELIST",
    "PROCESS": "SYSTEM.DEFAULT.PROCESS",
}


def yaml_text(rows: Iterable[Row], *, system: bool = False, everything: bool = False) -> str:
    """Returns the file of these rows of DISPLAY; SYSTEM objects only on request, dynamic queues never.

    Written are the attributes that say something: those that differ from MQ's default or from the default object
    among the rows. ``everything`` writes them all.
    """
    given = [row for row in rows if not is_dynamic(row)]
    defaults = {row["object_type"]: row for row in given if row["name"] == _DEFAULT_OBJECTS.get(row["object_type"])}
    chosen = [r for r in given if system or r["object_type"] == "QMGR" or not r["name"].startswith("SYSTEM.")]
    chosen.sort(key=lambda r: (_ORDER.index(r["object_type"]), r["name"]))
    items = [_item(row, defaults.get(row["object_type"], {}), everything) for row in chosen]
    # A long text stays in one line: folded, an editor would see a longer one with other blanks.
    text = yaml.dump(
        items, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20, default_flow_style=False
    )
    return str(text) if items else "[]\n"


def _item(row: Row, default_object: Row, everything: bool) -> dict[str, Any]:
    which = ObjectType[row["object_type"]]
    # A queue manager's file is for whichever it is sent to, so that it loads elsewhere too.
    item: dict[str, Any] = {which.name.lower(): None if which is ObjectType.QMGR else row["name"]}
    values: Row = {}
    if which is ObjectType.AUTHREC:
        item, values = _record(row["name"])
    for attribute in ATTRIBUTES[which].values():
        if attribute.read_only or attribute.name not in row:
            continue
        value = row[attribute.name]
        plain_default = attribute.plain(attribute.default)
        if everything or value != plain_default or default_object.get(attribute.name, plain_default) != value:
            values[attribute.name] = value
    group = spark_group(values) if which is ObjectType.PROCESS else None
    if group and set(group) == {"environment"}:
        values = {name: value for name, value in values.items() if name != "spark_environment"} | group
    elif group:
        values = {name: value for name, value in values.items() if not name.startswith("spark_")} | {"spark": group}
    if which is ObjectType.PROCESS:
        # A file that says nothing means its own directory, and a program without the MQTMC2.
        values.setdefault("working_directory", row.get("working_directory", ""))
        if row.get("tmc_argument", "yes") == "yes":
            values["tmc_argument"] = "yes"
        elif not everything:
            values.pop("tmc_argument", None)
    return item | values


def _record(name: str) -> tuple[Row, Row]:
    """Returns an authority record's profile, and whose it is and of which type of object."""
    about = read_record_name(name)
    of_type = {} if about.object_type == "queue" else {"object_type": about.object_type}
    return {"authrec": about.profile}, {about.entity.kind: about.entity.name, **of_type}


class _Dumper(yaml.SafeDumper):
    """PyYAML's dumper without YAML 1.1's words (``on`` would be quoted) and with the few kinds that occur here."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own name and kind of table

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indents a list inside a mapping, as the files we ship do."""
        super().increase_indent(flow, False)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    simple = text.replace(".", "").replace("_", "").replace("/", "").isalnum() and text.isascii()
    plain = simple and yaml12.scalar(text) == text
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(type(None), lambda dumper, _: yaml.ScalarNode("tag:yaml.org,2002:null", ""))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
