"""Rows of plain values to MQSC's words and texts: ``trigger_type: depth`` is ``TRIGTYPE`` and ``DEPTH``.

Times are UTC, dates with hyphens and times with dots, as MQ prints them. What MQ leaves blank while nothing monitors
a queue is blank here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.mq.attributes import ATTRIBUTES, STATUS
from trigmon.mq.descriptors import date_and_time
from trigmon.mq.enums import ObjectType
from trigmon.mqsc.keywords import NOT_OF_OBJECTS, STATUS_WORDS

Row = dict[str, Any]

FLAGS = frozenset(a.mqsc for table in ATTRIBUTES.values() for a in table.values() if a.flags)
"""The attributes that are shown as one bare word."""


def pair(word: str, text: str) -> str:
    """Returns an attribute as a DISPLAY prints it: ``KEY(VALUE)``, a blank one ``KEY( )``, a flag its bare word."""
    return text if word in FLAGS else f"{word}({text or ' '})"


def object_texts(row: Row) -> dict[str, str]:
    """Returns each attribute of an object as text, by MQSC's word."""
    which = ObjectType[row["object_type"]]
    texts = {}
    for attribute in (*STATUS.values(), *ATTRIBUTES[which].values()):
        if attribute.name in row and attribute.name not in ("q_type", *NOT_OF_OBJECTS):
            texts[attribute.mqsc] = attribute.write(attribute.read(row[attribute.name], row["name"]))
    for begin, key in (("CR", "created_ms"), ("ALT", "altered_ms")):
        if row.get(key):
            texts |= _times(begin, int(row[key]))
    return texts


def status_texts(row: Row) -> dict[str, str]:
    """Returns DISPLAY QSTATUS TYPE(QUEUE) of a queue's status; what is not known here is blank."""
    known = {a.mqsc: str(row.get(a.name, 0)) for a in STATUS.values()}
    texts = {word: known.get(word, "") for word in STATUS_WORDS} | {"MSGAGE": str(row["oldest_age_s"])}
    for begin, ms in (("LPUT", row["last_put_ms"]), ("LGET", row["last_get_ms"])):
        texts |= _times(begin, ms) if ms else {}
    q_times = (f"{us}" if us >= 0 else " " for us in (row["q_time_short_us"], row["q_time_long_us"]))
    return texts | {
        "MONQ": "LOW",
        "QTIME": ",".join(q_times),
        "UNCOM": "NO" if texts["UNCOM"] == "0" else texts["UNCOM"],
    }


def connection_id(row: Row) -> str:
    """Returns CONN: the number of a connection in 16 hexadecimal digits."""
    return f"{row['connection']:016X}"


def _reset_texts(row: Row) -> dict[str, str]:
    counted = {"HIQDEPTH": row["high_q_depth"], "MSGSIN": row["puts"], "MSGSOUT": row["gets"]}
    return {word: str(count) for word, count in counted.items()} | {"RESETINT": str(row["since_s"])}


def _manager_texts(row: Row) -> dict[str, str]:
    day, clock = _times("", row["started_ms"]).values()
    return {"STATUS": "RUNNING", "CONNS": str(row["connections"]), "STARTDA": day, "STARTTI": clock}


def _connection_texts(row: Row) -> dict[str, str]:
    state = "ACTIVE" if row["in_unit"] else "NONE"
    known = {"APPLTAG": row["application"], "PID": str(row["pid"]), "USERID": row["user"]}
    return known | {"APPLTYPE": "USER", "UOWSTATE": state}


_STATUS_TEXTS: dict[str, Callable[[Row], dict[str, str]]] = {
    "QSTATS": _reset_texts,
    "QMSTATUS": _manager_texts,
    "CONN": _connection_texts,
}


def handle_texts(row: Row) -> dict[str, str]:
    """Returns DISPLAY QSTATUS TYPE(HANDLE): which application has a queue open, and how."""
    yes_or_no = {word: "YES" if row[word.lower()] else "NO" for word in ("BROWSE", "INQUIRE", "OUTPUT", "SET")}
    return yes_or_no | {
        "APPLTAG": str(row["application"]),
        "APPLTYPE": "USER",
        "ASTATE": "NONE",
        "INPUT": {"exclusive": "EXCL"}.get(row["input"], str(row["input"]).upper()),
        "PID": str(row["pid"]),
        "USERID": str(row["user"]),
    }


def texts_of(row: Row, noun: str, q_type: str) -> dict[str, str]:
    """Returns what a DISPLAY of this noun may show of a row."""
    if noun in _STATUS_TEXTS:
        return _STATUS_TEXTS[noun](row)
    if noun != "QSTATUS":
        return object_texts(row)
    return handle_texts(row) if q_type == "HANDLE" else status_texts(row)


def _times(begin: str, ms: int) -> dict[str, str]:
    day, clock = date_and_time(ms)
    return {
        f"{begin}DATE": f"{day[:4]}-{day[4:6]}-{day[6:]}",
        f"{begin}TIME": f"{clock[:2]}.{clock[2:4]}.{clock[4:6]}",
    }
