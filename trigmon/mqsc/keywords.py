"""The words of MQSC: verbs, nouns and their short forms, and the words that a DISPLAY may be asked for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

from trigmon.mq.attributes import ATTRIBUTES, OUR_KINDS, QUEUE_KINDS, STATUS, Attribute
from trigmon.mq.enums import ObjectType

# The full word, and the fewest letters that mean it (the manual's synonyms: DEF, ALT, DEL, DIS, QL, QA, PRO, QS).
VERBS = {"ALTER": 3, "CLEAR": 3, "DEFINE": 3, "DELETE": 3, "DISPLAY": 3, "END": 3, "PING": 4, "REFRESH": 3, "RESET": 3}
VERBS |= {"SET": 3}
ENDINGS = ("END", "EXIT", "QUIT")
QUEUES = tuple(kind.name for kind in QUEUE_KINDS)
OURS = tuple(kind.name for kind in OUR_KINDS)
OBJECTS = (*QUEUES, "PROCESS", "NAMELIST", *OURS)
NOUNS = dict.fromkeys(QUEUES, 2) | {"PROCESS": 3, "QMGR": 4, "QUEUE": 1, "QSTATUS": 2}
NOUNS |= {"NAMELIST": 8, "SCHEDULE": 5, "WATCH": 5, "AUTHREC": 7}
NOUNS |= {"QSTATS": 6, "QMSTATUS": 8, "CONN": 4}

SHORT_NOUNS = {"NL": "NAMELIST"}
"""Short forms that are no beginnings of their words."""

NOUNS_OF = {
    "ALTER": (*OBJECTS, "QMGR"),
    "CLEAR": ("QLOCAL",),
    "DEFINE": OBJECTS,
    "DELETE": (*OBJECTS, "AUTHREC"),
    "DISPLAY": (*OBJECTS, "QMGR", "QUEUE", "QSTATUS", "QMSTATUS", "CONN", "AUTHREC"),
    "PING": ("QMGR",),
    "REFRESH": ("QMGR",),
    "RESET": ("QSTATS",),
    "SET": ("AUTHREC",),
}

# Attributes under their older or other names.
SYNONYMS = {"TARGQ": "TARGET", "QTYPE": "TYPE"}

STATUS_WORDS = (
    *("CURDEPTH", "CURFSIZE", "CURMAXFS", "IPPROCS", "LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME"),
    *("MEDIALOG", "MONQ", "MSGAGE", "OPPROCS", "QTIME", "UNCOM"),
)
MONITOR_WORDS = tuple(word for word in STATUS_WORDS if word[:4] in ("LGET", "LPUT", "MEDI", "MONQ", "MSGA", "QTIM"))
"""What DISPLAY QSTATUS shows for the one word MONITOR."""
HANDLE_WORDS = (*("APPLTAG", "APPLTYPE", "ASTATE", "BROWSE", "INPUT", "INQUIRE", "OUTPUT", "PID", "SET", "USERID"),)
WORDS_OF_STATUS = {
    "QSTATS": ("HIQDEPTH", "MSGSIN", "MSGSOUT", "RESETINT"),
    "QMSTATUS": ("CONNS", "QMNAME", "STARTDA", "STARTTI", "STATUS"),
    "CONN": ("APPLTAG", "APPLTYPE", "PID", "UOWSTATE", "USERID"),
}
"""What is shown of what is no object, by noun."""
TIME_WORDS = ("ALTDATE", "ALTTIME", "CRDATE", "CRTIME")
NOT_OF_OBJECTS = ("uncommitted_msgs",)


def kinds_of(noun: str) -> tuple[ObjectType, ...]:
    """Returns the kinds of object that a noun of DISPLAY may show."""
    return QUEUE_KINDS if noun == "QUEUE" else (ObjectType[noun],)


def attribute_of(noun: str, word: str) -> Attribute | None:
    """Returns the attribute that a word means for a noun, among its kinds and what is only displayed."""
    if noun == "QSTATUS":
        return next((a for a in STATUS.values() if a.mqsc == word), None)
    if noun in WORDS_OF_STATUS:
        return None
    own = (a for kind in kinds_of(noun) for a in ATTRIBUTES[kind].values())
    shown = (a for a in STATUS.values() if a.name not in NOT_OF_OBJECTS) if noun in ("QUEUE", *QUEUES) else ()
    return next((a for a in (*own, *shown) if a.mqsc == word), None)


@cache
def is_ours(noun: str, word: str) -> bool:
    """Returns whether a word that a DISPLAY of a noun shows is none of MQ's."""
    found = attribute_of(noun, word) if noun in ("QUEUE", *OBJECTS, "QMGR") else None
    return found is not None and found.ours


def words_shown(noun: str, q_type: str = "") -> frozenset[str]:
    """Returns every word that DISPLAY of a noun may be asked for; ``q_type`` is QSTATUS's TYPE."""
    if noun == "QSTATUS":
        return frozenset(HANDLE_WORDS if q_type == "HANDLE" else STATUS_WORDS)
    if noun in WORDS_OF_STATUS:
        return frozenset(WORDS_OF_STATUS[noun])
    shown = {a.mqsc for kind in kinds_of(noun) for a in ATTRIBUTES[kind].values()} | set(TIME_WORDS)
    if noun in ("QUEUE", "QLOCAL"):
        shown |= {a.mqsc for a in STATUS.values() if a.name not in NOT_OF_OBJECTS}
    if noun in ("QUEUE", *QUEUES):
        shown |= {"TYPE"}
    if noun == "QMGR":
        shown |= {"QMNAME"}
    return frozenset(shown)


def full_word(given: str, table: dict[str, int]) -> str | None:
    """Returns the word of ``table`` that ``given`` is, or is a long enough beginning of."""
    return next((word for word, fewest in table.items() if len(given) >= fewest and word.startswith(given)), None)


def nearest(given: str, allowed: Iterable[str]) -> str:
    """Returns ``; did you mean X?`` for the nearest allowed word, or nothing."""
    near = get_close_matches(given[:48], sorted(allowed), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
