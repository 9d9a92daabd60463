"""MQSC text to calls: each command of a script with the calls it means, or the error it holds.

A command that is wrong stops no other: :func:`read_script` gives it with its error. Values are checked here against
the table of attributes, so a wrong word or range is an error of the command with its line, before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trigmon.mq.attributes import ATTRIBUTES, Attribute, find_attribute, read_attributes
from trigmon.mq.calls import (
    Alter,
    Call,
    Clear,
    Define,
    Delete,
    Display,
    DisplayConnections,
    DisplayHandles,
    Ping,
    QueueStatus,
    Refresh,
    ResetQueueStatistics,
    SetAuthority,
    Status,
)
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import FunctionNotSupported, MQError, ObjectNameError, ParmConflict, ParmMissing, ParmValueError
from trigmon.mqsc import authority_commands, keywords, unsupported
from trigmon.mqsc.command_reader import (
    OPPOSITES,
    NotHereError,
    Reading,
    Skipped,
    begin,
    nothing_more,
    object_name,
    skip_or_refuse,
)
from trigmon.mqsc.lexer import Parameter, Statement, Value, statements
from trigmon.mqsc.where import Where, read_where

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")


@dataclass(frozen=True)
class Command:
    """One command of a script.

    ``calls`` are what it asks of the queue manager, none for END and for what has no meaning here: ``skipped`` then
    says so. ``error`` is set when it cannot be asked at all; ``amq`` is then MQ's message number for it and
    ``segment`` its text up to what is wrong. ``shows`` are the words a DISPLAY asks for: None is every one, an empty
    tuple the name and type alone; ``where``, ``open_type`` and ``chosen`` choose among its rows. ``source`` are the
    lines as typed, for the echo. ``ignores_missing``: IGNSTATE(YES) of a DELETE, which is done where nothing is there.
    """

    text: str
    line: int
    verb: str = ""
    noun: str = ""
    name: str = ""
    calls: tuple[Call, ...] = ()
    error: MQError | None = None
    amq: int = 0
    segment: str = ""
    shows: tuple[str, ...] | None = None
    q_type: str = ""
    open_type: str = "ALL"
    where: Where | None = None
    chosen: tuple[tuple[str, str], ...] = ()
    ignores_missing: bool = False
    skipped: tuple[Skipped, ...] = ()
    source: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        """Whether it is END, EXIT or QUIT, and without a fault."""
        return self.verb == "END" and self.error is None

    @property
    def is_syntax_error(self) -> bool:
        """Whether it is no MQSC. What MQ would understand and trigmon cannot do is none."""
        return self.error is not None and not isinstance(self.error, FunctionNotSupported)


def read_script(text: str, first_line: int = 1) -> list[Command]:
    """Returns the commands of a script up to its end or END. Never raises for what the script says.

    ``first_line`` is the number of the text's first line, for a script that is read piece by piece.
    """
    return list(each_command(text, first_line))


def each_command(text: str, first_line: int = 1) -> Iterator[Command]:
    """Yields the commands of :func:`read_script`; each is read when it is asked for."""
    for statement in statements(text, first_line):
        command = _read(statement)
        yield command
        if command.ends:
            return


def read_command(text: str) -> Command:
    """Returns the one command that a text is, line ends inside included. Never raises for what the text says."""
    return _read(Statement(text, 1))


def _read(statement: Statement) -> Command:
    reading = Reading(statement)
    blank = Command(statement.text.strip(), statement.line, source=statement.source)
    try:
        begin(reading)
        known = replace(blank, verb=reading.verb, noun=reading.noun, name=reading.name)
        made = known if known.ends else _READERS[reading.verb](reading, known)
    except NotHereError as what:
        skipped = Skipped(statement.line, what.what, "", what.why)
        return replace(blank, verb=reading.verb, noun=reading.noun, skipped=(skipped,))
    except MQError as error:
        amq = _AMQ_OF.get(type(error), reading.amq)
        known = replace(blank, verb=reading.verb, noun=reading.noun, name=reading.name)
        return replace(known, error=error, amq=amq, segment=reading.segment.strip())
    return replace(made, skipped=tuple(reading.skipped))


_AMQ_OF: dict[type[MQError], int] = {ParmConflict: 8411, ObjectNameError: 8424, FunctionNotSupported: 8101}


# -- the verbs ----------------------------------------------------------------------------------------------


def _define(reading: Reading, command: Command) -> Command:
    again = reading.take_flag("REPLACE", "NOREPLACE")
    like = reading.take("LIKE")
    source = object_name(reading, like) if like else ""
    call = Define(
        object_type=reading.noun, name=reading.name, attributes=_attributes(reading), replace=again, like=source
    )
    return replace(command, calls=(call,))


def _alter(reading: Reading, command: Command) -> Command:
    # Nothing is refused here for being open, so FORCE asks for what happens anyway; MQ's dump of QMGR ends with it.
    reading.take_flag("FORCE", "NOFORCE")
    call = Alter(object_type=reading.noun, name=reading.name, attributes=_attributes(reading))
    return replace(command, calls=(call,))


def _delete(reading: Reading, command: Command) -> Command:
    if reading.noun == "AUTHREC":
        names = authority_commands.records(reading)
        nothing_more(reading)
        return replace(command, calls=tuple(Delete(object_type="AUTHREC", name=name) for name in names))
    purge = reading.noun == "QLOCAL" and reading.take_flag("PURGE", "NOPURGE")
    whose = _whose(reading)
    ignores_missing = _choice(reading, "IGNSTATE", ("NO", "YES"), "NO") == "YES"
    nothing_more(reading)
    call = Delete(object_type=reading.noun, name=reading.name, purge=purge, qsg_disp=whose)
    return replace(command, calls=(call,), ignores_missing=ignores_missing)


def _set(reading: Reading, command: Command) -> Command:
    """Reads SET AUTHREC: a call for each user and group."""
    names = authority_commands.records(reading)
    add, remove = (authority_commands.rights(reading, keyword) for keyword in ("AUTHADD", "AUTHRMV"))
    nothing_more(reading)
    return replace(command, calls=tuple(SetAuthority(name=name, add=add, remove=remove) for name in names))


def _clear(reading: Reading, command: Command) -> Command:
    whose = _whose(reading)
    nothing_more(reading)
    return replace(command, calls=(Clear(q_name=reading.name, qsg_disp=whose),))


def _whose(reading: Reading) -> str:
    """Returns whose queue is meant by QSGDISP, in lower case; blank if it is not given, and for what has none."""
    if "qsg_disp" not in ATTRIBUTES[ObjectType[reading.noun]]:
        return ""
    return _choice(reading, "QSGDISP", ("QMGR", "PRIVATE", "COPY", "SHARED", "GROUP"), "").lower()


def _ping(reading: Reading, command: Command) -> Command:
    nothing_more(reading)
    return replace(command, calls=(Ping(),))


def _refresh(reading: Reading, command: Command) -> Command:
    """Reads REFRESH QMGR TYPE(EXPIRY) OBJECT(generic name), which discards expired messages now."""
    found = reading.take("TYPE")
    if found is None or not found.values:
        raise reading.error(found or _noun_of(reading), "REFRESH QMGR needs TYPE(EXPIRY)", ParmMissing)
    if [value.text.upper() for value in found.values] != ["EXPIRY"]:
        raise NotHereError(f"{reading.what} {found.near.strip()}", unsupported.QMGR_ACTS["REFRESH"])
    named = reading.take("OBJECT")
    name = object_name(reading, named, generic=True) if named is not None else "*"
    nothing_more(reading)
    return replace(command, calls=(Refresh(name=name),))


def _noun_of(reading: Reading) -> Parameter:
    return Parameter(reading.noun, None, 0, reading.statement.text)


def _display(reading: Reading, command: Command) -> Command:
    if reading.noun == "QSTATUS":
        return _display_status(reading, command)
    if reading.noun in keywords.WORDS_OF_STATUS:
        where = read_where(reading, reading.noun, "") if reading.noun == "CONN" else None
        if reading.noun == "CONN":
            _check_type_of_connection(reading)
        shows = _shown(reading, keywords.words_shown(reading.noun), where)
        asked: Call = DisplayConnections() if reading.noun == "CONN" else Status()
        return replace(command, calls=(asked,), shows=shows, where=where)
    chosen = authority_commands.chosen(reading) if reading.noun == "AUTHREC" else ()
    object_type = "queue" if reading.noun == "QUEUE" else reading.noun
    q_type, where = "", None
    if reading.noun in ("QUEUE", *keywords.QUEUES):
        q_type = _choice(reading, "TYPE", ("ALL", *keywords.QUEUES), "ALL", bare=True)
        q_type = "" if q_type == "ALL" else q_type
    if reading.noun != "QMGR":
        where = read_where(reading, reading.noun, "")
    if reading.noun in ("QUEUE", *keywords.QUEUES, "NAMELIST"):
        where = _of_whom(reading, where)
    shows = _shown(reading, keywords.words_shown(reading.noun), where)
    call = Display(object_type=object_type, name=reading.name or "*")
    return replace(command, calls=(call,), shows=shows, q_type=q_type, where=where, chosen=chosen)


def _check_type_of_connection(reading: Reading) -> None:
    """Takes TYPE of DISPLAY CONN; that handles are not shown is noted, or refused where they alone are asked for."""
    found = next((p for p in reading.rest if p.keyword == "TYPE" and p.values is not None), None)
    if found is None:
        return
    is_any = [value.text for value in found.values or ()] == ["*"]
    kind = "ALL" if is_any else _choice(reading, "TYPE", ("CONN", "ALL", "HANDLE"), "CONN")
    reading.rest = [each for each in reading.rest if each is not found]
    if kind == "HANDLE":
        raise reading.error(found, unsupported.HANDLES, FunctionNotSupported)
    if kind == "ALL":
        reading.skip(found, unsupported.Elsewhere(unsupported.HANDLES, None))


def _of_whom(reading: Reading, where: Where | None) -> Where | None:
    """Reads QSGDISP(word) of a DISPLAY; LIVE and ALL are every object of this queue manager."""
    found = next((p for p in reading.rest if p.keyword == "QSGDISP" and p.values is not None), None)
    if found is None:
        return where
    scope = _choice(reading, "QSGDISP", ("LIVE", "ALL", "QMGR", "COPY", "SHARED", "GROUP", "PRIVATE"), "LIVE")
    if scope == "GROUP":
        raise reading.error(found, "what is the group's is shown by its copies: QSGDISP(COPY)", FunctionNotSupported)
    if scope in ("LIVE", "ALL"):
        return where
    if where is not None:
        raise reading.error(found, "WHERE and QSGDISP choose both: say one of them", ParmConflict)
    return Where("QSGDISP", "NE", "SHARED") if scope == "PRIVATE" else Where("QSGDISP", "EQ", scope)


def _display_status(reading: Reading, command: Command) -> Command:
    kind = _choice(reading, "TYPE", ("QUEUE", "HANDLE"), "QUEUE")
    opened = next((p for p in reading.rest if p.keyword == "OPENTYPE"), None)
    if opened is not None and kind != "HANDLE":
        raise reading.error(opened, "OPENTYPE goes with TYPE(HANDLE)")
    open_type = _choice(reading, "OPENTYPE", ("ALL", "INPUT", "OUTPUT"), "ALL")
    where = read_where(reading, "QSTATUS", kind)
    monitored = kind == "QUEUE" and reading.take_flag("MONITOR", "MONITOR")
    shows = _shown(reading, keywords.words_shown("QSTATUS", kind), where)
    if monitored:
        shows = tuple({*(shows or ()), *keywords.MONITOR_WORDS})
    call: Call = QueueStatus(q_name=reading.name)
    if kind == "HANDLE":
        call = DisplayHandles(q_name=reading.name)
    return replace(command, calls=(call,), shows=shows, q_type=kind, open_type=open_type, where=where)


def _reset(reading: Reading, command: Command) -> Command:
    nothing_more(reading)
    return replace(command, calls=(ResetQueueStatistics(q_name=reading.name),))


_READERS: dict[str, Callable[[Reading, Command], Command]] = {
    "DEFINE": _define,
    "ALTER": _alter,
    "DELETE": _delete,
    "CLEAR": _clear,
    "PING": _ping,
    "REFRESH": _refresh,
    "DISPLAY": _display,
    "RESET": _reset,
    "SET": _set,
}


# -- parameters ---------------------------------------------------------------------------------------------


def _choice(reading: Reading, keyword: str, allowed: tuple[str, ...], default: str, *, bare: bool = False) -> str:
    """Returns a keyword's one word out of a few. ``bare``: without a value it only asks to be shown, so it stays."""
    found = next((p for p in reading.rest if keywords.SYNONYMS.get(p.keyword, p.keyword) == keyword), None)
    if found is None or (bare and found.values is None):
        return default
    reading.rest.remove(found)
    values = [v.text for v in found.values or ()]
    full = keywords.full_word(values[0].upper(), dict.fromkeys(allowed, 2)) if len(values) == 1 else None
    if full is None:
        raise reading.error(found, f"{keyword} is {' or '.join(allowed)}", ParmValueError)
    return full


def _shown(reading: Reading, known: frozenset[str], where: Where | None) -> tuple[str, ...] | None:
    """Returns what a DISPLAY asks for. An exact name without any word is everything, a generic one the name and type.

    What a WHERE looks at is shown with them.
    """
    everything = reading.take("ALL") is not None
    shown = []
    is_asked = bool(reading.rest)
    for parameter in reading.rest:
        word = keywords.SYNONYMS.get(parameter.keyword, parameter.keyword)
        if word not in known:
            skip_or_refuse(reading, parameter, known)
        elif parameter.values is not None:
            raise reading.error(parameter, f"{word} takes no value in a DISPLAY")
        else:
            shown.append(word)
    if everything or not (is_asked or reading.name.endswith("*")):
        return None
    return (*shown, where.word) if where is not None else tuple(shown)


def _attributes(reading: Reading) -> dict[str, object]:
    """Returns the attributes by long name with MQSC's words and numbers, checked by the table."""
    which = ObjectType[reading.noun]
    given: dict[str, object] = {}
    for parameter in reading.rest:
        attribute = _attribute(reading, which, parameter)
        if attribute is None:
            continue
        value = _attribute_value(reading, attribute, parameter)
        try:
            read_attributes(which, reading.name, {attribute.name: value})
        except MQError as error:
            reading.amq = _amq_of_value(attribute)
            raise reading.error(parameter, error.about, type(error)) from error
        given[attribute.name] = value
    return given


def _attribute(reading: Reading, which: ObjectType, parameter: Parameter) -> Attribute | None:
    """Returns the attribute a parameter means; None when it is one of MQ's that is skipped."""
    known = frozenset(a.mqsc for a in ATTRIBUTES[which].values())
    word = OPPOSITES.get(parameter.keyword, parameter.keyword)
    word = keywords.SYNONYMS.get(word, word)
    if fixed := unsupported.FIXED.get((which.name, word)):
        reading.skip(parameter, fixed)
        return None
    if word in known:
        return find_attribute(which, word)
    skip_or_refuse(reading, parameter, known)
    return None


def _attribute_value(reading: Reading, attribute: Attribute, parameter: Parameter) -> object:
    if attribute.flags:
        if parameter.values is not None:
            raise reading.error(parameter, f"{parameter.keyword} takes no value: say {attribute.allowed}")
        return parameter.keyword
    if parameter.values is None:
        raise reading.error(parameter, f"{parameter.keyword} needs a value: {attribute.allowed}", ParmMissing)
    if attribute.is_names:
        return [value.text for value in parameter.values]
    if len(parameter.values) > 1:
        raise reading.error(parameter, f"{parameter.keyword} takes one value; quote text that holds blanks")
    value = parameter.values[0] if parameter.values else Value("", quoted=True)
    if attribute.is_text:
        return value.text
    text = value.text.strip()
    if _WHOLE.match(text):
        return int(text)
    # MQ's word for the platform's own type of program.
    return "UNIX" if attribute.mqsc == "APPLTYPE" and text == "DEF" else text


def _amq_of_value(attribute: Attribute) -> int:
    """Returns MQ's message number of a wrong value: a name, a string's length, a number's range, another word."""
    if attribute.is_name or attribute.is_names:
        return 8424
    if attribute.is_text:
        return 8413
    return 8405 if attribute.words else 8412
