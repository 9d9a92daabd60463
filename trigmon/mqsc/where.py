"""WHERE(keyword operator value): one condition on what a DISPLAY shows.

Numbers are compared by LT GT EQ NE LE GE, attributes of fixed words by EQ and NE, texts by all of these and, against
a generic value, by LK and NL. CT, EX, CTG and EXG are about lists: NAMES of a namelist is the only one.
Source: the manual's page of DISPLAY QUEUE, ``mq-facts`` 9.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trigmon.mq.errors import MQError, ParmSyntaxError, ParmValueError
from trigmon.mq.names import matches
from trigmon.mqsc import keywords, unsupported
from trigmon.mqsc.command_reader import OPPOSITES, Reading
from trigmon.mqsc.display_values import Row, texts_of
from trigmon.mqsc.lexer import Parameter

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "LT": lambda seen, given: bool(seen < given),
    "GT": lambda seen, given: bool(seen > given),
    "EQ": lambda seen, given: bool(seen == given),
    "NE": lambda seen, given: bool(seen != given),
    "LE": lambda seen, given: bool(seen <= given),
    "GE": lambda seen, given: bool(seen >= given),
}
_GENERIC: dict[str, Callable[[str, str], bool]] = {
    "LK": matches,
    "NL": lambda seen, given: not matches(seen, given),
}
_OPERATORS = {**_COMPARED, **_GENERIC}
_OF_LISTS: dict[str, Callable[[list[str], str], bool]] = {
    "CT": lambda seen, given: given in seen,
    "EX": lambda seen, given: given not in seen,
    "CTG": lambda seen, given: any(matches(each, given) for each in seen),
    "EXG": lambda seen, given: not any(matches(each, given) for each in seen),
}
_HANDLE_WORDS = {
    **dict.fromkeys(("BROWSE", "INQUIRE", "OUTPUT", "SET"), ("YES", "NO")),
    "APPLTYPE": ("USER",),
    "ASTATE": ("NONE",),
    "INPUT": ("NO", "SHARED", "EXCL"),
}
_NUMBERS_OF_STATUS = frozenset({"PID", "MSGAGE", "CURFSIZE", "CURMAXFS", "UNCOM"})
_NOT_FILTERED = ("TYPE",)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
AMQ_FILTER = 8569


@dataclass(frozen=True)
class Where:
    """One condition. ``value`` is a number when the attribute's values are numbers, text otherwise."""

    word: str
    operator: str
    value: int | str

    def fits(self, row: Row, noun: str, q_type: str) -> bool:
        """Returns whether a row is shown; one without the attribute, or with nothing in it to count, is not."""
        text = texts_of(row, noun, q_type).get(self.word)
        if text is None:
            return False
        if self.operator in _OF_LISTS:
            return _OF_LISTS[self.operator](text.split(",") if text else [], str(self.value))
        if isinstance(self.value, str):
            return _OPERATORS[self.operator](text, self.value)
        number = "0" if (self.word, text) == ("UNCOM", "NO") else text
        return number.isdecimal() and _COMPARED[self.operator](int(number), self.value)


def read_where(reading: Reading, noun: str, q_type: str) -> Where | None:
    """Returns the WHERE of a DISPLAY, taken out of its parameters. Raises ParmSyntaxError, ParmValueError."""
    found = reading.take("WHERE")
    if found is None:
        return None
    reading.amq = AMQ_FILTER
    values = found.values or ()
    if len(values) != 3:
        raise reading.error(found, "WHERE takes an attribute, an operator and a value: WHERE(CURDEPTH GT 0)")
    keyword, operator, given = (value.text for value in values)
    word = keywords.SYNONYMS.get(keyword.upper(), OPPOSITES.get(keyword.upper(), keyword.upper()))
    where = Where(word, operator.upper(), _value(reading, found, noun, q_type, word, operator.upper(), given))
    reading.amq = 8405
    return where


def _value(
    reading: Reading, found: Parameter, noun: str, q_type: str, word: str, operator: str, given: str
) -> int | str:
    """Returns the value as it is compared, once word and operator are known to go together."""
    if word not in keywords.words_shown(noun, q_type) or word in _NOT_FILTERED:
        meaning = unsupported.attribute(noun, word)
        why = f": {meaning.why}" if meaning else keywords.nearest(word, keywords.words_shown(noun, q_type))
        raise reading.error(found, f"{noun} cannot be asked WHERE({word} ...){why}")
    kind, allowed = _kind(noun, q_type, word)
    of_kind = {"number": _COMPARED, "word": ("EQ", "NE"), "text": _OPERATORS, "list": _OF_LISTS}
    fitting = tuple(of_kind[kind])
    if operator in _OF_LISTS and kind != "list":
        raise reading.error(found, f"{operator} is about lists, and {word} is none; {word} takes {' '.join(fitting)}")
    if operator not in fitting:
        raise reading.error(found, f"{word} is compared by {' '.join(fitting)}, not by {operator}")
    if kind == "number":
        return _number(reading, found, given)
    if kind == "word":
        return _fixed_word(reading, found, noun, word, given, allowed)
    if operator in (*_GENERIC, "CTG", "EXG") and not given.endswith("*"):
        raise reading.error(found, f"{operator} wants a generic value, one that ends in an asterisk", ParmValueError)
    return given.rstrip(" ")


def _kind(noun: str, q_type: str, word: str) -> tuple[str, tuple[str, ...]]:
    """Returns whether a word's values are numbers, fixed words (these too), lists of names or text."""
    if q_type == "HANDLE":
        allowed = _HANDLE_WORDS.get(word, ())
        return ("word" if allowed else "number" if word in _NUMBERS_OF_STATUS else "text"), allowed
    if noun in keywords.WORDS_OF_STATUS:
        return ("number" if word == "PID" else "text"), ()
    if noun == "QSTATUS" and (word in _NUMBERS_OF_STATUS or keywords.attribute_of(noun, word) is not None):
        return "number", ()
    attribute = keywords.attribute_of(noun, word)
    if attribute is None:
        return "text", ()
    if attribute.words or attribute.flags:
        return "word", tuple(attribute.words or attribute.flags or ())
    return ("list" if attribute.is_names else "text" if attribute.is_text else "number"), ()


def _number(reading: Reading, found: Parameter, given: str) -> int:
    text = given.strip()
    if text.upper() == "NO":  # UNCOM's word for none
        return 0
    if not _WHOLE.match(text):
        raise reading.error(found, f"a number is wanted, not {given}", ParmValueError)
    return int(text)


def _fixed_word(reading: Reading, found: Parameter, noun: str, word: str, given: str, allowed: tuple[str, ...]) -> str:
    """Returns the word as it is displayed, in whichever form it was given."""
    attribute = None if word in _HANDLE_WORDS and noun == "QSTATUS" else keywords.attribute_of(noun, word)
    if attribute is None:
        if given.upper() in allowed:
            return given.upper()
        raise reading.error(found, f"{word} is {' or '.join(allowed)}", ParmValueError)
    try:
        return attribute.write(attribute.read(given, word))
    except MQError as error:
        raise reading.error(found, f"{word} is {attribute.allowed}", ParmSyntaxError) from error
