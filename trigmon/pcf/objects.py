"""Objects as PCF has them: attributes by IBM's numbers, texts at their full length with blanks.

The table of attributes (:mod:`trigmon.mq.attributes`) is the list. An attribute of ours has no number in MQ, so PCF
neither shows nor takes it; MQSC in an Escape command does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trigmon.mq.attributes import ATTRIBUTES, STATUS, Attribute
from trigmon.mq.descriptors import date_and_time
from trigmon.mq.enums import ObjectType, QType
from trigmon.mq.names import NAME_LENGTH
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.request import Parameters, not_known
from trigmon.pcf.structures import PcfError, Value

DATE_LENGTH: Final = 12
TIME_LENGTH: Final = 8
LONGEST_ATTRIBUTE: Final = 4000

Q_KINDS: Final = {
    QType.LOCAL: ObjectType.QLOCAL,
    QType.MODEL: ObjectType.QMODEL,
    QType.ALIAS: ObjectType.QALIAS,
    QType.REMOTE: ObjectType.QREMOTE,
}
ALL_Q_TYPES: Final = 1001
"""MQQT_ALL."""

NAMES: Final = {
    **dict.fromkeys(Q_KINDS.values(), Parameter.Q_NAME),
    ObjectType.NAMELIST: Parameter.NAMELIST_NAME,
    ObjectType.PROCESS: Parameter.PROCESS_NAME,
    ObjectType.QMGR: Parameter.Q_MGR_NAME,
}
"""By kind of object the number of its name."""

_TIMES: Final = {
    "created_ms": (Parameter.CREATION_DATE, Parameter.CREATION_TIME),
    "altered_ms": (Parameter.ALTERATION_DATE, Parameter.ALTERATION_TIME),
}
_STATUS_NUMBERS: Final = {a.selector: a for a in STATUS.values() if a.selector and a.name != "q_type"}


NUMBERS: Final = {kind: {a.selector: a for a in ATTRIBUTES[kind].values() if a.selector} for kind in NAMES}
"""By kind of object its attributes by number."""


def name_text(name: str) -> str:
    """Returns a name as PCF has it."""
    return name.ljust(NAME_LENGTH)


def times(ms: int, of: tuple[int, int]) -> Parameters:
    """Returns a date and a time, blank where there is none."""
    if not ms:
        return [(of[0], " " * DATE_LENGTH), (of[1], " " * TIME_LENGTH)]
    day, clock = date_and_time(ms)
    date = f"{day[:4]}-{day[4:6]}-{day[6:]}"
    return [(of[0], date.ljust(DATE_LENGTH)), (of[1], f"{clock[:2]}.{clock[2:4]}.{clock[4:6]}")]


def object_parameters(row: Mapping[str, Any]) -> Parameters:
    """Returns an object, as DISPLAY has it, as parameters: name and type first, then by number."""
    kind = ObjectType[row["object_type"]]
    head: Parameters = [(NAMES[kind], name_text(row["name"]))]
    q_type = next((number for number, of in Q_KINDS.items() if of is kind), None)
    if q_type is not None:
        head.append((Parameter.Q_TYPE, int(q_type)))
    found: Parameters = [
        (number, _shown(attribute, row[attribute.name]))
        for number, attribute in (NUMBERS[kind] | _STATUS_NUMBERS).items()
        if attribute.name in row
    ]
    for field, numbers in _TIMES.items():
        found += times(row.get(field, 0), numbers) if kind is not ObjectType.QMGR or field == "altered_ms" else []
    return head + sorted(found, key=lambda each: each[0])


def _shown(attribute: Attribute, value: Any) -> Value:
    """Returns a plain value as PCF has it: enumerations as IBM's numbers, texts at their full length."""
    read = attribute.read(value, attribute.name)
    if isinstance(read, tuple):
        return tuple(name_text(each) for each in read)
    if isinstance(read, str):
        return read.ljust(NAME_LENGTH if attribute.is_name else attribute.length)
    return int(read)


def read_attributes(kind: ObjectType, given: Mapping[int, Value]) -> dict[str, Any]:
    """Returns attributes by long name. What MQ has and trigmon has not is passed over, as by MQSC. Raises PcfError."""
    attributes: dict[str, Any] = {}
    for number, value in given.items():
        attribute = NUMBERS[kind].get(number)
        if attribute is None:
            if number not in WITHOUT_MEANING:
                raise not_known(number, value)
            continue
        attributes[attribute.name] = _read(attribute, number, value)
    return attributes


def _read(attribute: Attribute, number: int, value: Value) -> Any:
    if attribute.is_names and isinstance(value, tuple | str):
        # A list of nothing has no type of its own.
        return [str(each) for each in value] if isinstance(value, tuple) else [value]
    if isinstance(value, str) is not attribute.is_text or not isinstance(value, int | str) or attribute.is_names:
        raise not_known(number, value)
    return value.rstrip(" \0") if isinstance(value, str) else value


WITHOUT_MEANING: Final = {
    21: "RETENTION_INTERVAL",
    34: "DIST_LISTS",
    45: "SCOPE",
    57: "INDEX_TYPE",
    61: "DEF_BIND",
    78: "NPM_CLASS",
    95: "CLWL_Q_RANK",
    96: "CLWL_Q_PRIORITY",
    98: "CLWL_USEQ",
    123: "MONITORING_Q",
    128: "STATISTICS_Q",
    134: "ACCOUNTING_Q",
    184: "DEF_PUT_RESPONSE_TYPE",
    188: "DEF_READ_AHEAD",
    190: "PROPERTY_CONTROL",
    193: "BASE_TYPE",
    272: "MEDIA_IMAGE_RECOVER_Q",
    274: "MAX_Q_FILE_SIZE",
    275: "STREAM_QUEUE_QOS",
    1005: "FORCE",
    2022: "STORAGE_CLASS",
    2029: "CLUSTER_NAME",
    2030: "CLUSTER_NAMELIST",
    2119: "CUSTOM",
    2124: "CLUS_CHL_NAME",
    2138: "STREAM_QUEUE_NAME",
}
"""MQ's attributes of queues that trigmon has not: accepted in a definition, and not kept."""


def chosen(parameters: Parameters, wanted: tuple[int, ...] | None, always: int) -> Parameters:
    """Returns the parameters that an inquiry asks for; ``always`` of them, from the first on, come in any case.

    Without a list, or with MQIACF_ALL in it, all do. Raises PcfError for a number that no attribute has.
    """
    if wanted is None or Parameter.ALL in wanted:
        return parameters
    for number in wanted:
        if not 1 <= number <= LONGEST_ATTRIBUTE:
            raise PcfError(PcfReason.CFIL_PARM_ID_ERROR, f"{number} is no attribute", number)
    return parameters[:always] + [each for each in parameters[always:] if each[0] in wanted]
