"""The verbs of a step: one reader a verb, from its arguments in the file to what is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trigmon.mq.attributes import ATTRIBUTES, STATUS, Attribute
from trigmon.mq.enums import CloseOption, GetOption, MatchOption, ObjectType, OpenOption, PutOption, bits_by_word
from trigmon.mq.errors import AttrValueError, FunctionNotSupported
from trigmon.mqsc.commands import Command, read_script
from trigmon.simulate import reservation_verbs
from trigmon.simulate import scenario as act
from trigmon.simulate.mapping import (
    Fields,
    Place,
    Reader,
    count,
    flags,
    number,
    shown,
    text,
)
from trigmon.simulate.message_fields import GIVEN, MATCHED, priority, read_descriptor

FOR = bits_by_word(OpenOption)
_CLOSE_OPTIONS = flags(bits_by_word(CloseOption))
SETTABLE = {name: a for name, a in ATTRIBUTES[ObjectType.QLOCAL].items() if a.settable}

# Of an attribute that several types have, the last one's words are taken.
_QUEUES_CHECKED = (ObjectType.QMODEL, ObjectType.QREMOTE, ObjectType.QALIAS, ObjectType.QLOCAL)
_CHECKED = {a.mqsc: a for table in (*(ATTRIBUTES[kind] for kind in _QUEUES_CHECKED), STATUS) for a in table.values()}
LATER_CHECKED = frozenset({"INDXTYPE", "QDEPTHHI", "QDEPTHLO", "MSGAGE"})


def commands(value: Any, place: Place) -> tuple[Command, ...]:
    """Returns the commands of an MQSC text.

    A command that has no meaning in a scenario is refused; a wrong one fails when it is run.
    """
    script = text(value, place)
    found = read_script(script)
    for command in found:
        if isinstance(command.error, FunctionNotSupported):
            raise _error_in_mqsc(command, command.error.about, script, place)
        for skipped in command.skipped:
            if not skipped.is_default:
                about = f"line {skipped.line}, near {skipped.parameter or skipped.what}: {skipped.why}"
                raise _error_in_mqsc(command, about, script, place)
    return tuple(found)


def _error_in_mqsc(command: Command, about: str, script: str, place: Place) -> Exception:
    """Returns an error of a command, moved from its line in the MQSC text to the line in the file."""
    counted = re.match(r"line (\d+), ", about)
    line = int(counted.group(1)) if counted else command.line
    # A block of several lines begins on the line below its key.
    line = place.line + line if "\n" in script else place.line
    error = place.error(about[counted.end() :] if counted else about)
    return type(error)(f"{place.document.source}:{line}", f"{place.path[-1]}: {error.problem}")


def _mqsc(value: Any, place: Place) -> act.Mqsc:
    return act.Mqsc(commands(value, place))


def _open(value: Any, place: Place) -> act.Open:
    fields = Fields(value, place, "open", ("queue", "for", "handle", "dynamic_q_name"))
    queue = fields.need("queue", text)
    return act.Open(
        queue=queue,
        options=fields.need("for", flags(FOR)),
        handle=fields.take("handle", text, queue),
        dynamic_q_name=fields.take("dynamic_q_name", text, act.DYNAMIC_Q_NAME),
    )


def _handle(fields: Fields) -> str:
    """Returns the handle a step means: named, or by the queue it was opened for."""
    if "handle" not in fields:
        return fields.need("queue", text)
    fields.take("queue", text, "")
    return fields.need("handle", text)


def _close(value: Any, place: Place) -> act.Close:
    fields = Fields(value, place, "close", ("queue", "handle", "options"))
    return act.Close(handle=_handle(fields), options=fields.take("options", _CLOSE_OPTIONS, 0))


def _put(value: Any, place: Place) -> act.Put:
    keys = ("queue", "handle", "data", "size", "options", "context", *GIVEN)
    fields = Fields(value, place, "put", keys)
    if "handle" not in fields:
        fields.need("queue", text)
    if "data" in fields and "size" in fields:
        raise place.at("size").error("put has data and size: one of them")
    return act.Put(
        queue=fields.take("queue", text, ""),
        handle=fields.take("handle", text, ""),
        data=fields.take("data", text, "").encode() or b"x" * fields.take("size", count, 0),
        options=fields.take("options", flags(bits_by_word(PutOption)), 0),
        descriptor=read_descriptor(fields),
        context=fields.take("context", text, ""),
    )


def _get(value: Any, place: Place) -> act.Get:
    fields = Fields(value, place, "get", ("queue", "handle", "options", "wait_interval", "max_length", "match"))
    options = fields.take("options", flags(bits_by_word(GetOption)), 0)
    # An interval without a word about waiting can only mean to wait that long.
    if "wait_interval" in fields and "no_wait" not in fields.values.get("options", ()):
        options |= GetOption.WAIT
    match = Fields(fields.values.get("match"), place.at("match"), "match", MATCHED)
    return act.Get(
        handle=_handle(fields),
        options=options,
        wait_interval_ms=fields.take("wait_interval", _wait_interval, 0),
        max_length=fields.take("max_length", count, -1),
        match=sum(MatchOption[key.upper()] for key in match.values),
        matched={key: match.need(key, reader) for key, reader in MATCHED.items() if key in match},
    )


def _wait_interval(value: Any, place: Place) -> int:
    return -1 if value in (-1, "unlimited") else count(value, place)


def _set(value: Any, place: Place) -> act.SetAttributes:
    fields = Fields(value, place, "set", ("queue", "handle", *SETTABLE))
    given: dict[str | int, Any] = {
        name: fields.take(name, _settable(a), None) for name, a in SETTABLE.items() if name in fields
    }
    if not given:
        raise place.error(f"set names at least one of {', '.join(SETTABLE)}")
    return act.SetAttributes(handle=_handle(fields), attributes=given)


def _settable(attribute: Attribute) -> Reader[Any]:
    """Returns a reader of a value for MQSET. Words are checked here; a number out of range is the call's to refuse."""
    if not attribute.words and not attribute.flags:
        return text if attribute.is_text else number

    def read(value: Any, place: Place) -> Any:
        try:
            return attribute.plain(attribute.read(value, "set"))
        except AttrValueError:
            allowed = ", ".join(member.name.lower() for member in type(attribute.default))
            raise place.error(f"{attribute.name} does not know {shown(value)}; known are {allowed}") from None

    return read


def _nothing(done: act.Act) -> Reader[act.Act]:
    """Returns a reader of a verb without arguments: ``{}``."""

    def read(value: Any, place: Place) -> act.Act:
        Fields(value, place, str(place.path[-1]), ())
        return done

    return read


def _advance(value: Any, place: Place) -> act.Advance:
    return act.Advance(count(value, place))


def _restart(value: Any, place: Place) -> act.Restart:
    return act.Restart(text(value, place))


def _crash(value: Any, place: Place) -> act.Crash:
    return act.Crash(text(value, place))


def _explain(value: Any, place: Place) -> act.Explain:
    fields = Fields(value, place, "explain", ("queue", "priority"))
    return act.Explain(queue=fields.need("queue", text), priority=fields.take("priority", priority, -1))


def _check(value: Any, place: Place) -> act.Check:
    fields = Fields(value, place, "check", ("queue", *_CHECKED), later=LATER_CHECKED)
    wanted = tuple((a, fields.take(word, _checkable(a), None)) for word, a in _CHECKED.items() if word in fields)
    return act.Check(queue=fields.need("queue", text), wanted=wanted)


def _checkable(attribute: Attribute) -> Reader[Any]:
    """Returns a reader of the value that an attribute is compared with, as the table reads it."""

    def read(value: Any, place: Place) -> Any:
        if attribute.name == "uncommitted_msgs" and value in ("YES", "NO"):
            return value == "YES"
        if attribute.name == "q_type" and isinstance(value, str):
            value = value.upper().removeprefix("Q")
        try:
            return attribute.read(str(value) if attribute.is_text else value, "check")
        except AttrValueError:
            raise place.error(f"{attribute.mqsc} is {attribute.allowed}, not {shown(value)}") from None

    return read


ACTS: Mapping[str, Reader[act.Act]] = {
    "mqsc": _mqsc,
    "open": _open,
    "close": _close,
    "put": _put,
    "get": _get,
    "set": _set,
    "commit": _nothing(act.Commit()),
    "backout": _nothing(act.Backout()),
    "disconnect": _nothing(act.Disconnect()),
    "kill": _nothing(act.Kill()),
    "advance": _advance,
    "restart": _restart,
    "crash": _crash,
    "explain": _explain,
    "check": _check,
    **reservation_verbs.ACTS,
}
"""Every verb of a step."""
