"""What a definition file may say of one object: pydantic models, made from the one table of attributes.

A model's fields are the long names; each value is read by its attribute, so a file, a command and MQSET are held to
the same rules. The groups ``spark`` and ``launch`` of a process are the only shapes that are the files' own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from trigmon.mq.attributes import ATTRIBUTES, Attribute, find_attribute
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import AttrValueError, SelectorError


def _word(value: object) -> object:
    if isinstance(value, str):
        return value
    raise PydanticCustomError("word", "a word or a number belongs here, not {value}", {"value": str(value)})


def _start(value: object) -> object:
    if value == "submit":
        return value
    said = {"value": str(value)}
    raise PydanticCustomError("start", "{value}: submit is what there is; others come with a later release", said)


Word = Annotated[Any, BeforeValidator(_word)]
"""A scalar of a file, as it is written."""


LATER_KEYS = {
    "spark": ("session", "connect", "master_url", "reservation"),
    "launch": (),
    "process": (),
    "qlocal": ("rearm", "backstop", "maxwait", "indxtype"),
    "qmodel": ("rearm", "backstop", "maxwait", "indxtype"),
}
"""Keys that belong to a later release: refused by name, never silently accepted."""

LATER_OBJECTS = ("service",)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkGroup(_Strict):
    """``spark:`` of a process; ``start`` says how it is started, and submit is what this release has."""

    master: str | None = None
    start: Annotated[str, BeforeValidator(_start)] = "submit"
    conf: dict[str, Word] = Field(default_factory=dict)
    py_files: list[str] = Field(default_factory=list)
    arguments: list[Word] = Field(default_factory=list)

    def attributes(self) -> dict[str, Any]:
        """The named parts as attributes of the process: words quoted like a shell's, files with commas."""
        made: dict[str, Callable[[], object]] = {
            "master": lambda: self.master or "",
            "conf": lambda: shlex.join(f"{key}={value}" for key, value in self.conf.items()),
            "py_files": lambda: ",".join(self.py_files),
            "arguments": lambda: shlex.join(self.arguments),
        }
        return {f"spark_{part}": make() for part, make in made.items() if part in self.model_fields_set}


class LaunchGroup(_Strict):
    """``launch:`` of a process."""

    instances: int | None = None
    coalesce: str | int | None = None
    open_wait_s: int | None = None
    retry: int | None = None
    retry_wait_s: int | None = None
    breaker: int | None = None
    time_limit_s: int | None = None
    memory_limit_mib: int | None = None
    cpu_limit_s: int | None = None
    open_files_limit: int | None = None
    run_as: str | None = None
    secrets: str | None = None

    def attributes(self) -> dict[str, Any]:
        """The named parts as attributes of the process."""
        return {part: getattr(self, part) for part in self.model_fields_set}


def spark_group(values: dict[str, Any]) -> dict[str, Any] | None:
    """The group that says these attributes of a process, None when it would not say them to the letter."""
    try:
        conf = dict(word.split("=", 1) for word in shlex.split(values.get("spark_conf", "")))
        arguments = shlex.split(values.get("spark_arguments", ""))
    except ValueError:
        return None
    parts: dict[str, Any] = {
        "master": values.get("spark_master"),
        "conf": conf,
        "py_files": values["spark_py_files"].split(",") if values.get("spark_py_files") else [],
        "arguments": arguments,
    }
    group = {part: value for part, value in parts.items() if f"spark_{part}" in values}
    if SparkGroup(**group).attributes() != {k: v for k, v in values.items() if k.startswith("spark_")}:
        return None
    return group


def long_name(which: ObjectType, key: str) -> str | None:
    """The long name that a key means: itself, ``default_...`` for ``def_...``, or MQSC's word in either case."""
    try:
        found = find_attribute(which, key)
    except SelectorError:
        return None
    return None if found.read_only else found.name


def keys_of(which: ObjectType) -> list[str]:
    """Every key a file may use for an object of this type, for the nearest one to a wrong key."""
    table = ATTRIBUTES[which]
    keys = [name for a in table.values() if not a.read_only for name in (a.name, a.mqsc.lower())]
    return keys + (["spark", "launch"] if which is ObjectType.PROCESS else [])


def _reader(attribute: Attribute) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if value is None:
            raise PydanticCustomError("attribute", "{key} has no value", {"key": attribute.name})
        try:
            return attribute.read(value, "")
        except AttrValueError:
            said = {"key": attribute.name, "allowed": attribute.allowed, "value": str(value)}
            raise PydanticCustomError("attribute", "{key} must be {allowed}, not {value}", said) from None

    return read


def is_text(which: ObjectType, name: str) -> bool:
    """Whether what stands behind this long name, or group, is text, as it is written: 012 and 1.10 are no numbers."""
    attribute = ATTRIBUTES[which].get(name)
    return name == "spark" if attribute is None else attribute.is_text


def _model(which: ObjectType) -> type[BaseModel]:
    fields: dict[str, Any] = {
        attribute.name: (Annotated[Any, BeforeValidator(_reader(attribute))], None)
        for attribute in ATTRIBUTES[which].values()
        if not attribute.read_only
    }
    if which is ObjectType.PROCESS:
        fields |= {"spark": (SparkGroup | None, None), "launch": (LaunchGroup | None, None)}
    return create_model(f"{which.name.title()}File", __base__=_Strict, **fields)


MODELS: dict[ObjectType, type[BaseModel]] = {which: _model(which) for which in ObjectType}
