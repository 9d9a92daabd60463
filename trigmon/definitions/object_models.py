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


def _name(value: object) -> object:
    if isinstance(value, str) and "," not in value and value.strip():
        return value
    raise PydanticCustomError("name", "an item is one name, without a comma, not {value}", {"value": repr(value)})


Word = Annotated[Any, BeforeValidator(_word)]
"""A scalar of a file, as it is written."""

Name = Annotated[Any, BeforeValidator(_name)]
"""An item of a list whose items stand with commas between them."""


LATER_KEYS = {"spark": ("reservation",), "qlocal": ("indxtype",), "qmodel": ("indxtype",)}
"""Keys that belong to a later release: refused by name, never silently accepted."""

LATER_OBJECTS = ("service",)

GROUPS = ("spark", "launch", "environment")
"""Keys of a process that hold others: ``environment`` is the one of ``spark:``, for every type of program."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkGroup(_Strict):
    """``spark:`` of a process, its keys as spark-submit names them.

    What is a list or a mapping here is words or names with commas in the attribute; the others are as they stand.
    """

    start: Word = None
    isolation: Word = None
    short: Word = None
    master: Word = None
    deploy_mode: Word = None
    name: Word = None
    class_: Word = Field(None, alias="class")
    conf: dict[str, Word] = Field(default_factory=dict)
    py_files: list[Name] = Field(default_factory=list)
    files: list[Name] = Field(default_factory=list)
    archives: list[Name] = Field(default_factory=list)
    jars: list[Name] = Field(default_factory=list)
    packages: list[Name] = Field(default_factory=list)
    driver_memory: Word = None
    driver_cores: Word = None
    executor_memory: Word = None
    executor_cores: Word = None
    num_executors: Word = None
    principal: Word = None
    keytab: Word = None
    environment: dict[str, Word] = Field(default_factory=dict)
    arguments: list[Word] = Field(default_factory=list)

    def attributes(self) -> dict[str, Any]:
        """Returns the named parts as attributes of the process: words quoted like a shell's, files with commas."""
        return {f"spark_{key_of(part)}": self._attribute(part) for part in self.model_fields_set}

    def _attribute(self, part: str) -> str:
        value: Any = getattr(self, part)
        if isinstance(value, dict):
            return shlex.join(f"{key}={word}" for key, word in value.items())
        if isinstance(value, list):
            return shlex.join(value) if part == "arguments" else ",".join(value)
        # A yes or no is written in YAML's words too.
        return str({"true": "yes", "false": "no"}.get(value, value) if part == "short" else value)


def key_of(part: str) -> str:
    """Returns the key of a file that a part of the group is: ``class`` is a word of Python's own."""
    return part.removesuffix("_")


class LaunchGroup(_Strict):
    """``launch:`` of a process."""

    instances: int | None = None
    coalesce: str | int | None = None
    open_wait_s: int | None = None
    retry: int | None = None
    retry_wait_s: int | None = None
    breaker: int | None = None
    unknown: str | int | None = None
    recover: str | int | None = None
    time_limit_s: int | None = None
    memory_limit_mib: int | None = None
    cpu_limit_s: int | None = None
    open_files_limit: int | None = None
    run_as: str | None = None
    secrets: str | None = None

    def attributes(self) -> dict[str, Any]:
        """Returns the named parts as attributes of the process."""
        return {part: getattr(self, part) for part in self.model_fields_set}


def spark_group(values: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the group that says these attributes of a process, None when it would not say them to the letter."""
    spark = {name.removeprefix("spark_"): value for name, value in values.items() if name.startswith("spark_")}
    try:
        group = {key: _read_back(key, value) for key, value in spark.items()}
        written = SparkGroup(**{key: _as_written(value) for key, value in group.items()}).attributes()
    except ValueError:
        return None
    same = written == {f"spark_{key}": str(value) for key, value in spark.items()}
    return group if same else None


def _read_back(key: str, value: Any) -> Any:
    """Returns what a key of the group holds where its attribute holds this. Raises ValueError for an open quote."""
    if key in ("conf", "environment"):
        return dict(word.split("=", 1) for word in shlex.split(value))
    if key == "arguments":
        return shlex.split(value)
    if key in ("py_files", "files", "archives", "jars", "packages"):
        return value.split(",") if value else []
    return value


def _as_written(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


def long_name(which: ObjectType, key: str) -> str | None:
    """Returns the long name of a key: itself, ``default_...`` for ``def_...``, or of MQSC's word in either case."""
    try:
        found = find_attribute(which, key)
    except SelectorError:
        return None
    return None if found.read_only else found.name


def keys_of(which: ObjectType) -> list[str]:
    """Returns every key a file may use for an object of this type, for the nearest one to a wrong key."""
    table = ATTRIBUTES[which]
    keys = [name for a in table.values() if not a.read_only for name in (a.name, a.mqsc.lower())]
    return keys + ([*GROUPS] if which is ObjectType.PROCESS else [])


def _reader(attribute: Attribute) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if value is None:
            raise PydanticCustomError("attribute", "{key} has no value", {"key": attribute.name})
        try:
            return attribute.read(value, "")
        except AttrValueError:
            fields = {"key": attribute.name, "allowed": attribute.allowed, "value": str(value)}
            raise PydanticCustomError("attribute", "{key} must be {allowed}, not {value}", fields) from None

    return read


def is_text(which: ObjectType, name: str) -> bool:
    """Returns whether the value of this long name, or group, is text as written: 012 and 1.10 are no numbers."""
    attribute = ATTRIBUTES[which].get(name)
    return name in ("spark", "environment") if attribute is None else attribute.is_text or attribute.is_names


def _model(which: ObjectType) -> type[BaseModel]:
    fields: dict[str, Any] = {
        attribute.name: (Annotated[Any, BeforeValidator(_reader(attribute))], None)
        for attribute in ATTRIBUTES[which].values()
        if not attribute.read_only
    }
    if which is ObjectType.PROCESS:
        groups: dict[str, Any] = {"spark": SparkGroup, "launch": LaunchGroup, "environment": dict[str, Word]}
        fields |= {name: (group | None, None) for name, group in groups.items()}
    return create_model(f"{which.name.title()}File", __base__=_Strict, **fields)


MODELS: dict[ObjectType, type[BaseModel]] = {which: _model(which) for which in ObjectType}
