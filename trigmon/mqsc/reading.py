"""A command while it is read: verb, noun and name spelled out, then its parameters taken one by one.

What MQ knows and this release does not is refused here by its name, never silently dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.errors import FunctionNotSupported, MQError, ObjectNameError, ParmConflict, ParmMissing, ParmSyntaxError
from trigmon.mq.names import NAME_LENGTH, is_object_name
from trigmon.mqsc import words
from trigmon.mqsc.lexer import Parameter, Statement, Value, parameters

OPPOSITES = {"NOREPLACE": "REPLACE", "NOPURGE": "PURGE"} | {
    no: yes for kind in ATTRIBUTES.values() for no, yes in (a.flags for a in kind.values() if a.flags)
}


@dataclass
class Reading:
    """A command while its parameters are taken one by one. ``amq`` is MQ's number for what is wrong with it."""

    statement: Statement
    verb: str = ""
    noun: str = ""
    name: str = ""
    rest: list[Parameter] = field(default_factory=list)
    amq: int = 8405

    @property
    def what(self) -> str:
        """Verb and noun, for a sentence."""
        return f"{self.verb} {self.noun}"

    def error(self, near: Parameter, what: str, kind: type[MQError] = ParmSyntaxError) -> MQError:
        """An error about a parameter, with its line and the words there."""
        return kind(f"line {self.statement.line_at(near.offset)}, near {near.near.strip()}: {what}")

    def take(self, *keywords: str) -> Parameter | None:
        """The parameter of one of these keywords, taken out of the rest."""
        found = next((p for p in self.rest if p.keyword in keywords), None)
        if found is not None:
            self.rest.remove(found)
        return found

    def take_flag(self, yes: str, no: str) -> bool:
        """Whether the bare word ``yes`` stands there; ``no`` is the default said aloud."""
        found = self.take(yes, no)
        if found is not None and found.values is not None:
            raise self.error(found, f"{found.keyword} takes no value")
        return found is not None and found.keyword == yes


def begin(reading: Reading) -> None:
    """Verb, noun and name, spelled out; the noun must be second. Repeated parameters are refused here."""
    found = parameters(reading.statement)
    first, reading.rest = found[0], found[1:]
    reading.verb = _verb(reading, first)
    if reading.verb == "END":
        nothing_more(reading)
        return
    if not reading.rest:
        nouns = " or ".join(words.NOUNS_OF[reading.verb])
        raise reading.error(first, f"{reading.verb} needs what it is about: {nouns}", ParmMissing)
    second = reading.rest.pop(0)
    reading.noun = _noun(reading, second)
    reading.name = _name(reading, second)
    _no_repetition(reading)


def _verb(reading: Reading, first: Parameter) -> str:
    said = first.keyword
    if first.values is not None:
        raise reading.error(first, "a command begins with a verb")
    if said in words.ENDINGS:
        return "END"
    verb = words.full_word(said, words.VERBS)
    if verb is None:
        if said in words.LATER_VERBS:
            raise reading.error(first, f"{said} comes with a later release of trigmon", FunctionNotSupported)
        if said in words.OTHER_VERBS:
            raise reading.error(first, f"{said} is a command of MQ that trigmon does not have", FunctionNotSupported)
        known = ", ".join(words.VERBS)
        raise reading.error(first, f"{said} is no command{words.nearest(said, tuple(words.VERBS))}; they are {known}")
    return verb


def _noun(reading: Reading, second: Parameter) -> str:
    said = second.keyword
    allowed = words.NOUNS_OF[reading.verb]
    noun = words.full_word(said, words.NOUNS)
    if noun in allowed:
        return str(noun)
    later = words.full_word(said, words.LATER_NOUNS)
    if later is not None:
        raise reading.error(second, f"{later} comes with a later release of trigmon", FunctionNotSupported)
    other = words.full_word(said, words.OTHER_NOUNS)
    if other is not None:
        raise reading.error(second, f"{other} is an object of MQ that trigmon does not have", FunctionNotSupported)
    hint = words.nearest(said, allowed)
    raise reading.error(second, f"{reading.verb} is followed by {' or '.join(allowed)}, not {said}{hint}")


def _name(reading: Reading, second: Parameter) -> str:
    if reading.noun == "QMGR":
        if second.values is not None:
            raise reading.error(second, "QMGR takes no name: a command is always for the queue manager it is sent to")
        return ""
    if not second.values:
        raise reading.error(second, f"{reading.what} needs a name: {reading.noun}(NAME)", ParmMissing)
    if len(second.values) > 1:
        raise reading.error(second, "one name, please; a name holds no blanks", ObjectNameError)
    return object_name(reading, second, generic=reading.verb == "DISPLAY")


def object_name(reading: Reading, parameter: Parameter, *, generic: bool = False) -> str:
    """The name in a parameter's parentheses; a generic one may end in an asterisk. Raises ObjectNameError."""
    value = parameter.values[0] if parameter.values else Value("")
    name = value.text.rstrip(" ")
    plain = name[:-1] if generic and name.endswith("*") else name
    if not is_object_name(plain) and not (generic and name == "*"):
        allowed = f"a name has 1 to {NAME_LENGTH} of the characters A-Z a-z 0-9 . / _ %"
        raise reading.error(parameter, allowed + (", and * at its end" if generic else ""), ObjectNameError)
    return name


def _no_repetition(reading: Reading) -> None:
    seen: set[str] = set()
    for parameter in reading.rest:
        key = "TARGET" if parameter.keyword == "TARGQ" else OPPOSITES.get(parameter.keyword, parameter.keyword)
        if key in seen:
            raise reading.error(parameter, f"{parameter.keyword} contradicts or repeats an earlier word", ParmConflict)
        seen.add(key)


def unknown_word(reading: Reading, parameter: Parameter, known: frozenset[str]) -> MQError:
    """The error of a word that does not belong there: MQ's, of a later release, or none at all."""
    word = parameter.keyword
    if word in words.LATER_WORDS:
        return reading.error(parameter, f"{word} comes with a later release of trigmon", FunctionNotSupported)
    if word in words.OTHER_WORDS:
        return reading.error(parameter, f"{word} is a word of MQ that has no meaning here", FunctionNotSupported)
    return reading.error(parameter, f"{reading.what} has no parameter {word}{words.nearest(word, known)}")


def nothing_more(reading: Reading) -> None:
    """Refuses whatever is left."""
    for parameter in reading.rest:
        raise unknown_word(reading, parameter, frozenset())
