"""SET AUTHREC, DELETE AUTHREC and DISPLAY AUTHREC: authority records as MQSC has them.

What MQ has rights on and trigmon has not, such as topics and channels, is skipped by name, and so are rights that have
no meaning here. Numbers of messages: AMQ8862, AMQ8863, AMQ8864.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from trigmon.mq.errors import MQError, ParmMissing, ParmValueError
from trigmon.mq.rights import OBJECT_TYPES, SELF, RecordName, read_record_name, read_rights, record_name
from trigmon.mqsc.command_reader import NotHereError, Reading
from trigmon.mqsc.lexer import Parameter
from trigmon.mqsc.unsupported import Elsewhere

_ENTITIES = {"PRINCIPAL": "user", "GROUP": "group"}
_KEYWORDS = {kind: keyword for keyword, kind in _ENTITIES.items()}
_ELSEWHERE = ["AUTHINFO", "CHANNEL", "CLNTCONN", "COMMINFO", "LISTENER", "RQMNAME", "SERVICE", "TOPIC"]
_NO_RIGHTS = {
    word: Elsewhere(why, None)
    for why, words in {
        "the mode of the socket and the accounts of TLS say who may connect": "CONNECT",
        "setting a context is for administrators, and passing one for everybody": "PASSALL PASSID SETALL SETID",
        "there is no such thing here": "ALTUSR CTRLX PUB SUB RESUME SYSTEM",
    }.items()
    for word in words.split()
}
_NOTHING = Elsewhere("nothing here depends on it", None)


def records(reading: Reading) -> list[str]:
    """Returns the names of the records that a command is about, one for each user and group.

    Raises NotHereError for an object that trigmon has not, MQError for a fault.
    """
    profile, of_type = about(reading)
    found = []
    for keyword, kind in _ENTITIES.items():
        if (parameter := reading.take(keyword)) is None:
            continue
        for value in parameter.values or ():
            name = _checked(reading, parameter, partial(record_name, of_type, profile, kind, value.text))
            found.append(str(name))
    if not found:
        raise reading.error(_whole(reading), f"{reading.what} needs PRINCIPAL or GROUP", ParmMissing)
    return found


def about(reading: Reading, *, is_optional: bool = False) -> tuple[str, str]:
    """Returns profile and type of object; blank where they are optional and not given."""
    given, of_type = reading.take("PROFILE"), reading.take("OBJTYPE")
    for keyword in ("SERVCOMP", "CMDSCOPE"):
        if (skipped := reading.take(keyword)) is not None:
            reading.skip(skipped, _NOTHING)
    kind = _one(of_type)
    if kind in _ELSEWHERE:
        raise NotHereError(f"{reading.what} OBJTYPE({kind})", "there are no such objects here")
    if of_type is None and not is_optional:
        raise reading.error(_whole(reading), f"{reading.what} needs OBJTYPE", ParmMissing)
    if kind and kind.lower() not in OBJECT_TYPES:
        allowed = " or ".join(each.upper() for each in OBJECT_TYPES)
        raise reading.error(of_type or _whole(reading), f"OBJTYPE is {allowed}", ParmValueError)
    profile = _one(given) or ("" if is_optional or kind != "QMGR" else SELF)
    if not profile and not is_optional:
        raise reading.error(_whole(reading), f"{reading.what} needs PROFILE", ParmMissing)
    return profile, kind.lower()


def rights(reading: Reading, keyword: str) -> list[str]:
    """Returns the rights of AUTHADD or AUTHRMV; those without meaning here are skipped."""
    parameter = reading.take(keyword)
    if parameter is None:
        return []
    words = []
    for value in parameter.values or ():
        word = value.text.upper()
        if word in _NO_RIGHTS:
            reading.skip(Parameter(word, None, parameter.offset, f"{keyword}({word})"), _NO_RIGHTS[word])
            continue
        _checked(reading, parameter, partial(read_rights, word))
        words.append(word.lower())
    return words or ["none"]


def chosen(reading: Reading) -> tuple[tuple[str, str], ...]:
    """Returns what a DISPLAY chooses its rows by: pairs of a field and its value."""
    profile, kind = about(reading, is_optional=True)
    if (match := reading.take("MATCH")) is not None:
        reading.skip(match, _NOTHING)
    pairs = [("PROFILE", profile), ("OBJTYPE", kind.upper())]
    for keyword in _ENTITIES:
        if (entity := _one(reading.take(keyword))) is not None and entity:
            pairs += [("ENTITY", entity), ("ENTTYPE", keyword)]
    return tuple(pair for pair in pairs if pair[1])


def fields(row: dict[str, Any]) -> dict[str, str]:
    """Returns what a row of DISPLAY AUTHREC is about, by MQSC's words."""
    name = read_record_name(row["name"])
    kind, entity = name.entity
    return {
        "PROFILE": name.profile,
        "ENTITY": entity,
        "ENTTYPE": _KEYWORDS[kind],
        "OBJTYPE": name.object_type.upper(),
    }


def command_of(row: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the command that makes a record again."""
    name: RecordName = read_record_name(row["name"])
    kind, entity = name.entity
    yield f"SET AUTHREC PROFILE('{name.profile}') OBJTYPE({name.object_type.upper()}) +"
    yield f"   {_KEYWORDS[kind]}('{entity}') AUTHADD({str(row['authorities']).upper()})"


def _one(parameter: Parameter | None) -> str:
    values = parameter.values if parameter is not None else None
    return values[0].text.strip() if values else ""


def _whole(reading: Reading) -> Parameter:
    return Parameter(reading.noun, None, 0, reading.statement.text)


def _checked(reading: Reading, parameter: Parameter, read: Callable[[], Any]) -> Any:
    """Returns what ``read`` returns; its error names the place in the text."""
    try:
        return read()
    except MQError as error:
        raise reading.error(parameter, error.about, type(error)) from None
