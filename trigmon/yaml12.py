"""YAML 1.2 for every file of the product: settings, definitions, scenarios.

PyYAML reads YAML 1.1, where ``on`` is true, ``012`` is ten and ``2026-11-20`` is a date object. Here scalars follow the
core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema): ``on``, ``off``, ``yes``, ``no`` and dates are
words, ``012`` is twelve, ``0o12`` is ten. A key that occurs twice in a mapping is an error, and every key's and item's
line is kept, so that an error about a value can name file, line and key. Kept too is how a number was
written, for those who want text: a description ``012`` or a version ``1.10`` is no number to them.
"""

from __future__ import annotations

import difflib
import gc
import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import BaseResolver

from trigmon import files
from trigmon.mq.shortening import shortened

MOST_DIGITS = 1000
"""What has more is a word and no number: Python reads and writes no number of some thousands of digits."""

Step = str | int
"""One step into a document: a mapping's key or a sequence's index from 0."""


class YamlError(ValueError):
    """The text is no YAML 1.2 we take. ``where`` is ``FILE:LINE``, ``str()`` is one line for a person."""

    def __init__(self, where: str, problem: str) -> None:
        self.problem = shortened(problem)
        super().__init__(f"{where}: {self.problem}")
        self.where = where


@dataclass(frozen=True)
class Document:
    """One document: its value (dicts, lists, scalars; None when empty) and where each part stands.

    ``source`` is the name of the file as the caller gave it, ``first_line`` the 1-based line the value begins at.
    """

    value: Any
    source: str
    first_line: int = 1
    _lines: dict[int, dict[Hashable, int]] = field(default_factory=dict, repr=False)
    _written: dict[int, dict[Hashable, str]] = field(default_factory=dict, repr=False)

    def as_written(self, *path: Step) -> Any:
        """Returns the value at this path with every number, true and false in it as the text that stands in the file.

        Null stays None, for nothing was written. KeyError or IndexError where nothing stands.
        """
        inside: Any = None
        value = self.value
        for step in path:
            inside, value = value, value[step]
        return self._as_written(value, inside, path[-1] if path else None)

    def _as_written(self, value: Any, inside: Any, step: Hashable) -> Any:
        if isinstance(value, dict):
            return {key: self._as_written(item, value, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._as_written(item, value, index) for index, item in enumerate(value)]
        if isinstance(value, str) or value is None:
            return value
        # A document that is one scalar has nothing around it that could keep its text.
        return self._written.get(id(inside), {}).get(step, str(value))

    def line(self, *path: Step) -> int:
        """Returns the 1-based line of the key or item at this path; of its nearest parent that has one otherwise."""
        value, line = self.value, self.first_line
        for step in path:
            known = self._lines.get(id(value), {})
            if step not in known:
                break
            line, value = known[step], value[step]
        return line

    def where(self, *path: Step) -> str:
        """Returns ``FILE:LINE`` of the key or item at this path."""
        return f"{self.source}:{self.line(*path)}"

    def error(self, problem: str, *path: Step) -> YamlError:
        """Returns an error about what stands at this path."""
        return YamlError(self.where(*path), problem)

    def unknown_key(self, known: Iterable[str], *path: Step) -> YamlError:
        """Returns an error about the key that ends this path, with the nearest key that is known there."""
        return self.error(f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), known)}", *path)


def load(text: str | bytes, source: str = "<text>") -> Document:
    """Returns the only document of a text; :class:`YamlError` when it is not YAML or holds several documents."""
    documents = load_all(text, source)
    if len(documents) > 1:
        raise documents[1].error("a second document begins here, and this file may hold only one")
    return documents[0] if documents else Document(None, source)


def load_all(text: str | bytes, source: str = "<text>") -> list[Document]:
    """Returns every document of a text, divided by ``---``; those without content are left out."""
    try:
        if yaml.__with_libyaml__ and not _SCHEMAS_DIFFER(text if isinstance(text, str) else text.decode()):
            with _no_collections():
                return _documents(_FastLoader(text), source)
    except (yaml.YAMLError, RecursionError, ValueError):
        pass  # read again below, where every mistake has its words
    return _exactly(text, source)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Nodes are many and hold no cycle: looking through them for garbage again and again costs as much as reading."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _exactly(text: str | bytes, source: str) -> list[Document]:
    """Returns every document of a text as PyYAML itself reads it, or its mistake."""
    try:
        return _documents(_Loader(text, source), source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"{source}:{mark.line + 1 if mark else 1}", _problem(error)) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"{source}:1", f"it is no UTF-8 text: {error.reason}") from None
    except RecursionError:
        raise YamlError(f"{source}:1", "it is nested too deeply") from None


def _documents(loader: _Mappings, source: str) -> list[Document]:
    documents: list[Document] = []
    while loader.check_node():
        node = loader.get_node()
        assert node is not None
        loader.lines, loader.written = {}, {}
        value = loader.construct_document(node)
        if value is not None:
            documents.append(Document(value, source, node.start_mark.line + 1, loader.lines, loader.written))
    return documents


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns the end of an error's sentence: ``; the nearest known one is 'x'``, or the whole list if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    if near:
        return f"; the nearest known one is {near[0]!r}"
    return f"; known are {', '.join(names)}" if names else ""


def read(path: Path) -> Document:
    """Returns the only document of a file, as :func:`trigmon.files.read` reads it. Raises OSError."""
    return load(files.read(path), str(path))


def read_all(path: Path) -> list[Document]:
    """Returns every document of a file."""
    return load_all(files.read(path), str(path))


def scalar(text: str) -> Any:
    """Returns what a bare word means: the value a plain scalar of this text has in a file."""
    for tag, pattern in _CORE:
        if pattern.match(text):
            return _VALUES[tag](text)
    return text


class _Mappings(yaml.composer.Composer, SafeConstructor, BaseResolver):
    """PyYAML's composer with the core schema's words and our mappings; a parser stands behind it.

    Not PyYAML's composer in C: one that calls itself without end ends the process.
    """

    def __init__(self) -> None:
        yaml.composer.Composer.__init__(self)
        SafeConstructor.__init__(self)
        BaseResolver.__init__(self)
        self.lines: dict[int, dict[Hashable, int]] = {}
        self.written: dict[int, dict[Hashable, str]] = {}

    def construct_plain_mapping(self, node: MappingNode) -> dict[Hashable, Any]:
        """Returns a dict, and its keys' lines."""
        _check_kind(node, MappingNode)
        mapping: dict[Hashable, Any] = {}
        lines: dict[Hashable, int] = {}
        written: dict[Hashable, str] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            line = key_node.start_mark.line + 1
            if key in mapping:
                problem = f"the key {key!r} was already given in line {lines[key]}"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            # Deep, so that an alias to what it stands in is an error here and no endless value for those who read it.
            mapping[key] = self.construct_object(value_node, deep=True)
            lines[key] = line
            if isinstance(value_node, ScalarNode):
                written[key] = value_node.value
        # The value lives in the document, so its id stays its own as long as somebody can ask for it.
        self.lines[id(mapping)], self.written[id(mapping)] = lines, written
        return mapping

    def construct_plain_sequence(self, node: SequenceNode) -> list[Any]:
        """Returns a list, and its items' lines."""
        _check_kind(node, SequenceNode)
        items = [self.construct_object(item, deep=True) for item in node.value]
        self.lines[id(items)] = {index: item.start_mark.line + 1 for index, item in enumerate(node.value)}
        self.written[id(items)] = {i: item.value for i, item in enumerate(node.value) if isinstance(item, ScalarNode)}
        return items

    def construct_core_scalar(self, node: ScalarNode) -> Any:
        """Returns a word, a number, true, false or null; a tag that does not fit its text is an error."""
        _check_kind(node, ScalarNode)
        kind = node.tag.rpartition(":")[2]
        pattern = next((pattern for tag, pattern in _CORE if tag == kind), None)
        if pattern is not None and not pattern.match(node.value):
            raise ConstructorError(None, None, f"{node.value!r} is no {kind}", node.start_mark)
        return _VALUES[kind](node.value)

    def construct_unknown(self, node: Node) -> Any:
        """Refuses a tag: no file of ours makes objects."""
        raise ConstructorError(None, None, f"the tag {node.tag!r} has no meaning here", node.start_mark)

    def _key(self, node: Node) -> Hashable:
        if not isinstance(node, ScalarNode):
            raise ConstructorError(None, None, "a key is a word or a number", node.start_mark)
        key: Hashable = self.construct_object(node)
        return key


class _Loader(_Mappings, yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """With PyYAML's own parser, whose words for a mistake are ours."""

    def __init__(self, text: str | bytes, source: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        _Mappings.__init__(self)
        self.name = source


def _check_kind(node: Node, wanted: type[Node]) -> None:
    """Raises ConstructorError for a tag that stands before another kind of thing than it is for: ``!!int [1]``."""
    if not isinstance(node, wanted):
        kind = node.tag.rpartition(":")[2]
        raise ConstructorError(None, None, f"what stands behind !!{kind} is no {kind}", node.start_mark)


def _problem(error: yaml.MarkedYAMLError) -> str:
    text = error.problem or error.context or "it cannot be read"
    words = f"{error.context}: {text}" if error.context and error.problem else text
    hint = next((hint for part, hint in _HINTS.items() if part in words), "")
    line = error.context_mark.line + 1 if error.context_mark else 0
    return f"{hint.format(line=line)} (YAML: {words})" if hint else words


_HINTS = {
    "expected <block end>": "this line does not fit those before it: look at its indentation",
    "mapping values are not allowed": (
        "a value with ': ' in it wants quotes around it, or this line does not fit those before it: look at its "
        "indentation"
    ),
    r"found character '\t'": "indent with blanks, not with a tab",
    "that cannot start any token": "a value that begins so wants quotes around it",
    "while scanning a quoted scalar": "the quote of line {line} is not closed",
    "expected ',' or": "the bracket of line {line} is not closed",
    "could not find expected ':'": "a ':' is missing here, or in the line before",
}
"""By a part of PyYAML's sentence what a person is to look at; ``line``: where that begins which it is about."""


def _float(text: str) -> float:
    special = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
    return special[text.lower()] if text.lower() in special else float(text)


def _int(text: str) -> int | str:
    if len(text) > MOST_DIGITS:
        return text
    # int(text, 0) would refuse 012, which a person reads as twelve.
    bases = {"0o": 8, "0x": 16}
    return int(text[2:], bases[text[:2]]) if text[:2] in bases else int(text)


_SCHEMAS_DIFFER = re.compile(
    r"[^\n -~\u00a0-\u2027\u202a-\ud7ff]|[?!]|[|>][-+0-9]*#|^%|^(?:---|\.\.\.)(?!\n)", re.MULTILINE
).search
"""What the two parsers may read differently: the slower one reads it."""

_CORE = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z")),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")),
    ("int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")),
    (
        "float",
        re.compile(
            r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
        ),
    ),
)
"""The core schema's tags in the order they are tried; what fits none is a word."""

_VALUES: dict[str, Any] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": _int,
    "float": _float,
    "str": str,
}

for _tag, _pattern in _CORE:
    _Mappings.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, None)
_Mappings.yaml_constructors = {
    **{f"tag:yaml.org,2002:{kind}": _Mappings.construct_core_scalar for kind in _VALUES},
    "tag:yaml.org,2002:map": _Mappings.construct_plain_mapping,
    "tag:yaml.org,2002:seq": _Mappings.construct_plain_sequence,
    None: _Mappings.construct_unknown,
}

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _FastLoader(_Mappings, CParser):
        """With libyaml's parser, four times as fast."""

        def __init__(self, text: str | bytes) -> None:
            CParser.__init__(self, text)
            _Mappings.__init__(self)
