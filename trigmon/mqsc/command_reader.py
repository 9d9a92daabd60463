"""A command while it is read: verb, noun and name spelled out, then its parameters taken one by one.

What MQ has and trigmon has not differs from what nobody knows: the first is skipped by its name, with the
reason, the second is an error. What trigmon cannot leave undone without harm is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.errors import FunctionNotSupported, MQError, ObjectNameError, ParmConflict, ParmMissing, ParmSyntaxError
from trigmon.mq.names import NAME_LENGTH, is_object_name
from trigmon.mqsc import keywords as words
from trigmon.mqsc import unsupported
from trigmon.mqsc.lexer import Parameter, Statement, Value, parameters
from trigmon.mqsc.unsupported import LATER, Elsewhere

OPPOSITES = {"NOREPLACE": "REPLACE", "NOPURGE": "PURGE", "NOFORCE": "FORCE"} | {
    no: yes for kind in ATTRIBUTES.values() for no, yes in (a.flags for a in kind.values() if a.flags)
}


@dataclass(frozen=True)
class Skipped:
    """A part of a script that has no meaning here: where it stood, what it was, why it means nothing.

    ``parameter`` is empty for a whole command. ``is_default``: it says what MQ assumes anyway, so nothing is lost.
    """

    line: int
    what: str
    parameter: str
    why: str
    is_default: bool = False


class NotHereError(Exception):
    """The command is one of MQ's about something that trigmon has not."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why


@dataclass
class Reading:
    """A command while its parameters are taken one by one.

    ``amq`` is MQ's number for what is wrong with it, ``segment`` its text up to there.
    """

    statement: Statement
    verb: str = ""
    noun: str = ""
    name: str = ""
    rest: list[Parameter] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    amq: int = 8405
    segment: str = ""

    def __post_init__(self) -> None:
        self.segment = self.statement.text

    @property
    def what(self) -> str:
        """Verb and noun, for a sentence."""
        return f"{self.verb} {self.noun}"

    @property
    def about(self) -> str:
        """The object, for a list: ``QLOCAL(A)``."""
        return f"{self.noun}({self.name})" if self.name else self.noun

    def error(self, near: Parameter, what: str, kind: type[MQError] = ParmSyntaxError) -> MQError:
        """Returns an error about a parameter, with its line and the words there."""
        self.segment = self.statement.text[: near.offset + len(near.near)]
        return kind(f"line {self.line_of(near)}, near {near.near.strip()}: {what}")

    def line_of(self, parameter: Parameter) -> int:
        """Returns the number of the line in which a parameter stood."""
        return self.statement.line_at(parameter.offset)

    def take(self, *keywords: str) -> Parameter | None:
        """Returns the parameter of one of these keywords, taken out of the rest."""
        found = next((p for p in self.rest if p.keyword in keywords), None)
        if found is not None:
            self.rest.remove(found)
        return found

    def take_flag(self, yes: str, no: str) -> bool:
        """Returns whether the bare word ``yes`` stands there; ``no`` is the default, written out."""
        found = self.take(yes, no)
        if found is not None and found.values is not None:
            raise self.error(found, f"{found.keyword} takes no value")
        return found is not None and found.keyword == yes

    def skip(self, parameter: Parameter, meaning: Elsewhere) -> None:
        """Notes a parameter as one without meaning here."""
        value_text = " ".join(value.text for value in parameter.values or ()).strip()
        is_default = parameter.values is not None and value_text.upper() == meaning.default
        near = parameter.near.strip()
        self.skipped.append(Skipped(self.line_of(parameter), self.about, near, meaning.why, is_default))


def begin(reading: Reading) -> None:
    """Reads verb, noun and name, spelled out; the noun must be second. Refuses repeated parameters.

    Raises NotHereError for a command about what trigmon has not, MQError for one that is wrong.
    """
    try:
        found = parameters(reading.statement)
    except ParmSyntaxError:
        _check_is_ours(reading)
        raise
    first, reading.rest = found[0], found[1:]
    reading.verb = _verb(reading, first)
    if reading.verb == "END":
        nothing_more(reading)
        return
    if not reading.rest:
        nouns = " or ".join(words.NOUNS_OF.get(reading.verb, ("an object",)))
        raise reading.error(first, f"{reading.verb} needs what it is about: {nouns}", ParmMissing)
    second = reading.rest.pop(0)
    reading.noun = _noun(reading, second)
    reading.name = _name(reading, second)
    _no_repetition(reading)


def _check_is_ours(reading: Reading) -> None:
    """Raises what a command about something that is not here raises: its values are never looked at."""
    found = parameters(reading.statement, is_skipped=True)
    first, reading.rest = found[0], found[1:]
    reading.verb = _verb(reading, first)
    if reading.rest:
        _noun(reading, reading.rest.pop(0))


def _verb(reading: Reading, first: Parameter) -> str:
    keyword = first.keyword
    if first.values is not None:
        raise reading.error(first, "a command begins with a verb")
    if keyword in words.ENDINGS:
        return "END"
    verb = words.full_word(keyword, words.VERBS)
    if verb is not None:
        return verb
    if keyword in unsupported.OURS_BUT_NOT_AS_MQSC:
        way = unsupported.OURS_BUT_NOT_AS_MQSC[keyword]
        raise reading.error(first, f"{keyword} is no command here: {way}", FunctionNotSupported)
    if keyword in unsupported.VERBS:
        return keyword
    known = ", ".join(words.VERBS)
    raise reading.error(first, f"{keyword} is no command{words.nearest(keyword, words.VERBS)}; they are {known}")


def _noun(reading: Reading, second: Parameter) -> str:
    keyword = second.keyword
    allowed = words.NOUNS_OF.get(reading.verb, ())
    noun = words.SHORT_NOUNS.get(keyword) or words.full_word(keyword, words.NOUNS)
    if noun in allowed:
        return str(noun)
    way = unsupported.OURS_BUT_NOT_AS_MQSC.get(f"{reading.verb} {keyword}")
    if way is not None:
        raise reading.error(second, f"{reading.verb} {keyword} is no command here: {way}", FunctionNotSupported)
    why = unsupported.NOUNS.get(keyword) or (unsupported.QMGR_ACTS.get(reading.verb) if noun == "QMGR" else None)
    if why is None:
        expected = (
            f"{reading.verb} is followed by {' or '.join(allowed)}, not {keyword}{words.nearest(keyword, allowed)}"
        )
        raise reading.error(second, expected if allowed else f"{keyword} is nothing that {reading.verb} is about")
    kinds = [value.text.upper() for each in reading.rest if each.keyword == "TYPE" for value in each.values or ()]
    if (reading.verb, noun, kinds) == ("RESET", "QMGR", ["STATISTICS"]):
        raise reading.error(second, f"RESET QMGR TYPE(STATISTICS): {unsupported.STATISTICS}", FunctionNotSupported)
    if reading.verb in ("DISPLAY", "PING"):
        # A question that is not answered must not look like one whose answer is nothing.
        raise reading.error(second, f"{reading.verb} {keyword} has no answer: {why}", FunctionNotSupported)
    raise NotHereError(f"{reading.verb} {_named(reading, second)}", why)


def _named(reading: Reading, second: Parameter) -> str:
    """Returns the object of a command that is skipped, as it was typed."""
    return " ".join(second.near.split())


def _name(reading: Reading, second: Parameter) -> str:
    if reading.noun in ("QMGR", "QMSTATUS", "AUTHREC"):
        if second.values is not None:
            instead = "the command is for the queue manager it is sent to"
            if reading.noun == "AUTHREC":
                instead = "PROFILE('ORDERS.**') OBJTYPE(QUEUE) say which records are meant"
            raise reading.error(second, f"{reading.noun} takes no name: {instead}")
        return ""
    if not second.values:
        raise reading.error(second, f"{reading.what} needs a name: {reading.noun}(NAME)", ParmMissing)
    if len(second.values) > 1:
        raise reading.error(second, "one name, please; a name holds no blanks", ObjectNameError)
    return object_name(reading, second, generic=reading.verb in ("DISPLAY", "RESET"))


def object_name(reading: Reading, parameter: Parameter, *, generic: bool = False) -> str:
    """Returns the name in a parameter's parentheses; a generic one may end in an asterisk. Raises ObjectNameError."""
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
        key = words.SYNONYMS.get(parameter.keyword, OPPOSITES.get(parameter.keyword, parameter.keyword))
        if key in seen:
            raise reading.error(parameter, f"{parameter.keyword} contradicts or repeats an earlier word", ParmConflict)
        seen.add(key)


def skip_or_refuse(reading: Reading, parameter: Parameter, known: frozenset[str]) -> None:
    """Skips a word of MQ's that is no attribute of this object; any other raises ParmSyntaxError."""
    meaning = unsupported.attribute(reading.noun, parameter.keyword)
    if meaning is None:
        hint = words.nearest(parameter.keyword, known)
        raise reading.error(parameter, f"{reading.what} has no parameter {parameter.keyword}{hint}")
    values = [value.text.upper() for value in parameter.values or ()]
    if parameter.keyword == "TARGTYPE" and values == ["TOPIC"]:
        raise NotHereError(f"{reading.what}({reading.name}) {parameter.near.strip()}", meaning.why)
    if parameter.keyword == "QSGDISP" and values and values[0] not in ("QMGR", "PRIVATE", "COPY"):
        # A queue meant for a whole group would become one that this queue manager has alone.
        raise reading.error(parameter, f"QSGDISP {LATER}", FunctionNotSupported)
    reading.skip(parameter, meaning)


def nothing_more(reading: Reading) -> None:
    """Refuses whatever is left, but for where and with what rights MQ would do it."""
    for parameter in reading.rest:
        if parameter.keyword not in ("AUTHREC", "CMDSCOPE", "QSGDISP"):
            raise reading.error(parameter, f"{reading.what} has no parameter {parameter.keyword}")
        skip_or_refuse(reading, parameter, frozenset())
