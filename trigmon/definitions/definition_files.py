"""Definition files to wanted objects: which files, which objects, every mistake with its file and line.

A file that is a list holds objects, ``- qlocal: NAME`` and attributes beside it. A file that is a mapping is one
process, and the file's stem is its name. What a process starts lies beside its file, so its working directory is the
file's directory unless the file names another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trigmon import files, yaml12
from trigmon.definitions.object_models import (
    GROUPS,
    LATER_KEYS,
    LATER_OBJECTS,
    MODELS,
    LaunchGroup,
    SparkGroup,
    is_text,
    key_of,
    keys_of,
    long_name,
)
from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.enums import ObjectType, YesNo
from trigmon.mq.errors import AttrValueError, ObjectNameError
from trigmon.mq.names import NAME_LENGTH, is_object_name
from trigmon.mq.rights import read_record_name
from trigmon.mq.shortening import shortened
from trigmon.rules.runs.check_program import faults

KINDS = {which.name.lower(): which for which in ObjectType}
SETTINGS_FILE = "trigmon.yaml"
"""The settings may lie beside the definitions; a directory's reading leaves them out."""


class DefinitionError(ValueError):
    """Files that define nothing sensible. ``problems`` holds a sentence each, with ``FILE:LINE`` in front.

    ``can_pass``: a file could not be read, and may be later, as it stands.
    """

    def __init__(self, problems: Iterable[str], *, can_pass: bool = False) -> None:
        self.problems = list(map(shortened, problems))
        super().__init__("\n".join(self.problems))
        self.can_pass = can_pass


@dataclass(frozen=True)
class Wanted:
    """An object as a file wants it: attributes by long name as the rules read them, only those the file names.

    ``where`` is the place that names it, for messages. The name of a QMGR may be empty: the one it is sent to.
    """

    object_type: str
    name: str
    attributes: dict[str, Any]
    where: str


@dataclass
class FilesRead:
    """What files say: the objects without a mistake, and every problem in the files' order.

    ``unreadable`` are those of the problems that are about a whole file, which is no YAML or cannot be read.
    """

    wanted: list[Wanted] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    can_pass: bool = False


def read_files(paths: Iterable[Path]) -> list[Wanted]:
    """Returns the objects of files and directories, in order.

    Raises DefinitionError with every problem found, also for a path that is not there or an object named twice.
    """
    read = read_what_can_be(paths)
    if read.problems:
        raise DefinitionError(read.problems, can_pass=read.can_pass)
    return read.wanted


def read_what_can_be(paths: Iterable[Path]) -> FilesRead:
    """Returns the objects of files and directories, in order, and what is wrong with the others."""
    read = FilesRead()
    for path in paths:
        try:
            for file in _files(path):
                found, wrong = _read(yaml12.read(file), file)
                read.wanted += found
                read.problems += wrong
        except yaml12.YamlError as error:
            read.unreadable.append(str(error))
        except OSError as error:
            read.unreadable.append(f"{error.filename or path}: it cannot be read: {error.strerror}")
            read.can_pass = read.can_pass or files.can_pass(error)
        read.problems += [each for each in read.unreadable if each not in read.problems]
    read.problems += _named_twice(read.wanted)
    return read


def read_text(text: str, source: str = "<text>", directory: Path | None = None) -> list[Wanted]:
    """Returns the objects of a list in YAML text; ``directory`` is where relative programs are looked for.

    Raises DefinitionError.
    """
    try:
        wanted, problems = _read(yaml12.load(text, source), (directory or Path.cwd()) / "objects.yaml")
    except yaml12.YamlError as error:
        raise DefinitionError([str(error)]) from None
    problems += _named_twice(wanted)
    if problems:
        raise DefinitionError(problems)
    return wanted


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml") and p.name != SETTINGS_FILE)
    if not found:
        raise yaml12.YamlError(str(path), "the directory holds no definition file (*.yaml)")
    return found


def _read(document: yaml12.Document, file: Path) -> tuple[list[Wanted], list[str]]:
    value = document.value
    if value is None:
        return [], []
    if isinstance(value, dict):
        return _one_process(document, file)
    if not isinstance(value, list):
        return [], [f"{document.where()}: a definition file is a list of objects, or one process as a mapping"]
    wanted, problems, directory = [], [], _directory(file)
    for index, item in enumerate(value):
        head = _head(document, item, index)
        if isinstance(head, str):
            problems.append(head)
            continue
        which, key = head
        rest = {k: v for k, v in item.items() if k != key}
        name = str(document.as_written(index, key) or "")
        if which is ObjectType.AUTHREC:
            name = _record_name(name, rest, document, index)
        found = _Item(document, (index,), which, name, document.where(index, key), directory)
        attributes = found.read(rest)
        problems += found.problems
        if not found.problems:
            wanted.append(Wanted(which.name, found.name, attributes, found.where))
    return wanted, problems


def _record_name(profile: str, rest: dict[Any, Any], document: yaml12.Document, index: int) -> str:
    """Returns the name of an authority record, from its profile and the keys that say whose and of what it is."""
    given = {key: document.as_written(index, key) for key in ("user", "group", "object_type") if key in rest}
    for key in given:
        del rest[key]
    of_type = given.pop("object_type", "queue")
    kind, entity = next(iter(given.items()), ("user or group", ""))
    return f"{of_type} {profile} {kind} {entity}" if len(given) == 1 else f"{of_type} {profile}"


def _fault_of_record(name: str) -> str:
    try:
        read_record_name(name)
    except ObjectNameError as error:
        return f"an authority record has a profile, and user or group: {error.about}"
    return ""


def _directory(file: Path) -> str:
    return str(file.absolute().parent.resolve())


def _one_process(document: yaml12.Document, file: Path) -> tuple[list[Wanted], list[str]]:
    key = next((key for key in document.value if str(key).lower() in KINDS), None)
    if key is not None:
        return [], [f'{document.where(key)}: objects stand in a list: write "- {key}: {document.value[key]}"']
    item = _Item(document, (), ObjectType.PROCESS, file.stem, f"{document.source}:1", _directory(file))
    attributes = item.read(document.value)
    wanted = Wanted("PROCESS", item.name, attributes, item.where)
    return [] if item.problems else [wanted], item.problems


def _head(document: yaml12.Document, item: object, index: int) -> tuple[ObjectType, str] | str:
    """Returns the kind of object a list's item is and the key that says so, or what is wrong with it."""
    if not isinstance(item, dict):
        return f"{document.where(index)}: an item is a mapping that begins with {' or '.join(KINDS)}"
    heads = [str(key) for key in item if str(key).lower() in KINDS]
    # "process" heads a PROCESS and is MQSC's word for a queue's process, so only the first key of an item is asked.
    first = str(next(iter(item), ""))
    if first.lower() in KINDS:
        return KINDS[first.lower()], first
    if first.lower() in LATER_OBJECTS:
        return f"{document.where(index)}: {first} comes with a later release of trigmon"
    if heads:
        return f'{document.where(index)}: an item begins with what it is: put "{heads[0]}: ..." first'
    where = document.where(index, first)
    return f"{where}: unknown kind of object {first!r}{yaml12.did_you_mean(first, KINDS)}"


@dataclass
class _Item:
    """One object while it is read."""

    document: yaml12.Document
    path: tuple[str | int, ...]
    which: ObjectType
    name: str
    where: str
    directory: str

    def __post_init__(self) -> None:
        self.problems: list[str] = []
        if self.which is ObjectType.AUTHREC:
            with_fault = _fault_of_record(self.name)
            self.problems += [f"{self.where}: {with_fault}"] if with_fault else []
        elif not (is_object_name(self.name) or (self.which is ObjectType.QMGR and not self.name)):
            allowed = f"1 to {NAME_LENGTH} of the characters A-Z a-z 0-9 . / _ %"
            self.problems.append(f"{self.where}: {self.which.name} {self.name!r}: a name has {allowed}")

    def read(self, given: dict[Any, Any]) -> dict[str, Any]:
        """Returns the attributes by long name, read; what is wrong goes to ``problems``."""
        keys = self._keys(given)
        values = {
            name: self.document.as_written(*self.path, key) if is_text(self.which, name) else given[key]
            for name, key in keys.items()
        }
        try:
            model = MODELS[self.which].model_validate(values)
        except ValidationError as error:
            for one in error.errors():
                location = (keys.get(str(one["loc"][0]), one["loc"][0]), *one["loc"][1:])
                self._problem(location, one["type"], one["msg"])
            return {}
        attributes = {name: getattr(model, name) for name in keys if name not in GROUPS}
        if self.which is ObjectType.PROCESS:
            self._add_groups(model, attributes)
            self._set_defaults(attributes)
            self._check_program(attributes, keys)
        return attributes

    def _keys(self, given: dict[Any, Any]) -> dict[str, Any]:
        """Returns what each key means, an unknown one itself; a key given twice, by two names, is a problem."""
        keys: dict[str, Any] = {}
        for key in given:
            name = long_name(self.which, str(key)) or str(key)
            if name in keys:
                self._add((key,), f"{key} sets again what {keys[name]} sets")
            else:
                keys[name] = key
        return keys

    def _add_groups(self, model: Any, attributes: dict[str, Any]) -> None:
        variables = None if model.environment is None else SparkGroup.model_validate({"environment": model.environment})
        for group in (model.spark, variables, model.launch):
            for name, value in (group.attributes() if group else {}).items():
                if name in attributes:
                    self._add((), f"{name} is set twice: alone, and in its group")
                try:
                    attributes[name] = ATTRIBUTES[self.which][name].read(value, f"PROCESS({self.name})")
                except AttrValueError as error:
                    self._add(_in_group(name), error.about)

    def _set_defaults(self, attributes: dict[str, Any]) -> None:
        """Sets what a file means: paths from its own directory, where it says nothing that, and no MQTMC2."""
        attributes.setdefault("working_directory", ".")
        for name in ("working_directory", "virtualenv"):
            if given := attributes.get(name):
                attributes[name] = str(Path(self.directory, os.path.expanduser(given)))  # noqa: PTH111 - no error
        attributes.setdefault("tmc_argument", YesNo.NO)

    def _check_program(self, attributes: dict[str, Any], keys: dict[str, Any]) -> None:
        """Refuses what the queue manager would refuse, before anything of the file is done."""
        for name, wanted in faults(Process(name=self.name, **attributes)):
            attribute = ATTRIBUTES[self.which][name]
            value = attribute.write(attributes.get(name, attribute.default))
            location = (keys[name],) if name in keys else _in_group(name)
            if name == "spark_environment" and "environment" in keys:
                location = ("environment",)
            self._add(location, f"{name} must be {wanted}, not {value or 'blank'}")

    def _problem(self, location: tuple[Any, ...], kind: str, message: str) -> None:
        """Adds a mistake that pydantic found, with the name of the key."""
        key = str(location[-1])
        if kind == "attribute":
            self._add(location, message)
        elif kind != "extra_forbidden":
            self._add(location, f"{'.'.join(map(str, location))}: {message[:1].lower()}{message[1:]}")
        else:
            group = str(location[0]) if len(location) > 1 else self.which.name.lower()
            if key.lower() in LATER_KEYS.get(group, ()):
                self._add(location, f"{key} comes with a later release of trigmon")
            else:
                known = keys_of(self.which) if len(location) == 1 else _group_keys(group)
                self._add(location, f"unknown key {key!r}{yaml12.did_you_mean(key, known)}")

    def _add(self, location: tuple[Any, ...], problem: str) -> None:
        where = self.document.where(*self.path, *location)
        self.problems.append(f"{where}: {self.which.name} {self.name}: {problem}")


def _group_keys(group: str) -> list[str]:
    return [key_of(part) for part in (SparkGroup if group == "spark" else LaunchGroup).model_fields]


def _in_group(name: str) -> tuple[str, ...]:
    """Returns the path of an attribute that a group sets: its key there, else the group."""
    if name.startswith("spark_"):
        return "spark", name.removeprefix("spark_")
    return ("launch", name) if name in LaunchGroup.model_fields else ()


def _named_twice(wanted: list[Wanted]) -> Iterator[str]:
    """Yields an error for each object that was defined before: queues of every type share one space of names."""
    seen: dict[tuple[str, str], Wanted] = {}
    for one in wanted:
        space = "queue" if one.object_type in ("QLOCAL", "QALIAS") else one.object_type
        first = seen.setdefault((space, one.name if space != "QMGR" else ""), one)
        if first is not one:
            yield f"{one.where}: {one.object_type} {one.name} was already defined at {first.where}"
