"""Warnings about a process definition that is valid, for a person who makes or alters it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.enums import ObjectType
from trigmon.rules.runs import shell_text, spark_ports


def warnings(name: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yields the warnings about a process with these attributes, by long name as they are listed."""
    table = ATTRIBUTES[ObjectType.PROCESS]
    known = {key: table[key].read(value, name) for key, value in attributes.items() if key in table}
    process = Process(name=name, **known)
    yield from filter(None, (spark_ports.warning(process), shell_text.warning(process)))
