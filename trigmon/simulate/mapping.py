"""Reading a mapping of a file key by key: every fault is named with file, line, key and the nearest known key.

A *reader* turns one value of the file into what it means: ``reader(value, place)``, raising ``place.error(...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from trigmon.mq.descriptors import padded_id
from trigmon.yaml12 import Document, YamlError

T = TypeVar("T")
D = TypeVar("D")
COMES_LATER = "comes with a later release of trigmon"


@dataclass(frozen=True)
class Place:
    """A place in a file: the document and the path to a key or an item of it."""

    document: Document
    path: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> Place:
        """Returns a place further in."""
        return Place(self.document, self.path + steps)

    @property
    def line(self) -> int:
        """The 1-based line."""
        return self.document.line(*self.path)

    def error(self, problem: str) -> YamlError:
        """Returns what is wrong here, as ``FILE:LINE: problem``."""
        return self.document.error(problem, *self.path)


Reader = Callable[[Any, Place], T]


def nearest(given: object, known: Iterable[str]) -> str:
    """Returns ``; did you mean X?`` for a near word, else the known words if they are few, else the nearest."""
    lower = {word.lower(): word for word in known}
    found = str(given).lower()
    near = get_close_matches(found, lower, n=1, cutoff=0.6) or [word for word in lower if word.startswith(found)]
    if near:
        return f"; did you mean {lower[near[0]]}?"
    if len(lower) <= 20:
        return f"; known are {', '.join(lower.values())}"
    return f"; the nearest known is {lower[get_close_matches(found, lower, n=1, cutoff=0)[0]]}"


class Fields:
    """A mapping whose keys are all known: ``keys`` now, ``later`` in a release to come.

    ``what`` names the mapping in an error: ``put``, ``a step``. A missing mapping (``commit:`` with nothing behind
    it) is an empty one. Raises YamlError for anything else.
    """

    def __init__(
        self, value: object, place: Place, what: str, keys: Iterable[str], *, later: Iterable[str] = ()
    ) -> None:
        self.place = place
        self.what = what
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise place.error(f"{what} is a mapping of {', '.join(keys)}, not {shown(value)}")
        self.values: dict[str, Any] = value
        known = list(keys)
        for key in self.values:
            if key in later:
                raise place.at(key).error(f"{what}: {key} {COMES_LATER}")
            if key not in known:
                raise place.at(key).error(f"{what} has no key {worded(key)}{nearest(key, known)}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def take(self, key: str, reader: Reader[T], default: D) -> T | D:
        """Returns the value of a key as its reader reads it, or the default when the key is not there."""
        if key not in self.values:
            return default
        return reader(self.values[key], self.place.at(key))

    def need(self, key: str, reader: Reader[T]) -> T:
        """Returns the value of a key that must be there."""
        if key not in self.values:
            raise self.place.error(f"{self.what} needs the key {key}")
        return reader(self.values[key], self.place.at(key))


def worded(value: object) -> str:
    """Returns a word in an error as it is, anything else as :func:`shown`."""
    return value if isinstance(value, str) and value.isprintable() and value.strip() else shown(value)


def shown(value: object) -> str:
    """Returns a value in an error: short, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


# -- readers ------------------------------------------------------------------------------------------------


def text(value: Any, place: Place) -> str:
    """Returns a text; a whole number becomes its text, since an unquoted word of digits is meant so."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise place.error(f"{_key(place)} is text, not {shown(value)}: quote it")


def number(value: Any, place: Place) -> int:
    """Returns a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise place.error(f"{_key(place)} is a whole number, not {shown(value)}")


def count(value: Any, place: Place) -> int:
    """Returns a whole number from 0."""
    found = number(value, place)
    if found < 0:
        raise place.error(f"{_key(place)} is a number from 0, not {found}")
    return found


def truth(value: Any, place: Place) -> bool:
    """Returns a truth value, written ``true`` or ``false``."""
    if isinstance(value, bool):
        return value
    raise place.error(f"{_key(place)} is true or false, not {shown(value)}")


def mq_id(value: Any, place: Place) -> bytes:
    """Returns a message or correlation id: text, padded with nulls to 24 bytes."""
    try:
        return padded_id(text(value, place))
    except ValueError as error:
        raise place.error(f"{_key(place)}: {error}") from None


def items(value: Any, place: Place) -> list[tuple[Any, Place]]:
    """Returns the items of a list, each with its place."""
    if not isinstance(value, list):
        raise place.error(f"{_key(place)} is a list, not {shown(value)}")
    return [(item, place.at(index)) for index, item in enumerate(value)]


def one_of(table: Mapping[str, T]) -> Reader[T]:
    """Returns a reader of one word of a table."""

    def read(value: Any, place: Place) -> T:
        if isinstance(value, str) and value in table:
            return table[value]
        raise place.error(f"{_key(place)} does not know {worded(value)}{nearest(value, table)}")

    return read


def flags(table: Mapping[str, int]) -> Reader[int]:
    """Returns a reader of a list of words, each a bit."""
    word = one_of(table)

    def read(value: Any, place: Place) -> int:
        bits = 0
        for item, where in items(value, place):
            bits |= word(item, where)
        return bits

    return read


def _key(place: Place) -> str:
    """Returns the name of the last key on the way to a place."""
    return next((str(step) for step in reversed(place.path) if isinstance(step, str)), "this")
