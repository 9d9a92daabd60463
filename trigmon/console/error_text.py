"""Error messages for people: the reason, the object, and the command that helps."""

from __future__ import annotations

import re

# {name} is the object that the reason is about. The queue manager's text for 2192 holds the remedy already.
_REMEDIES = {
    2009: "whether the last call was done is unknown: look before you repeat it",
    2016: "allow gets: trigmon queue alter {name} GET=ENABLED",
    2018: "trigmon connections list shows what there is",
    2042: "see who has it open: DISPLAY QSTATUS({name}) TYPE(HANDLE) in trigmon mqsc",
    2048: "a temporary dynamic queue takes no persistent message: give --not-persistent",
    2051: "allow puts: trigmon queue alter {name} PUT=ENABLED",
    2053: "get messages, or raise the limit: trigmon queue alter {name} MAXDEPTH=NUMBER",
    2058: "name one of those that run with --qmgr",
    2059: "start it: trigmon run, or systemctl start trigmon@NAME",
    2082: "the alias points at no queue: trigmon queue alter {name} TARGET=QUEUE",
    2100: "change it with alter, or give --replace",
    2087: "name it and its transmission queue: trigmon queue alter {name} RQMNAME=NAME XMITQ=QUEUE",
    2092: "make it one: trigmon queue alter {name} USAGE=XMITQ",
    2345: "it comes back by itself; trigmon group of another member shows the group",
    4002: "see its type: trigmon queue list",
    4007: "see its type: trigmon queue list",
}
NOT_REACHABLE = frozenset({2009, 2025, 2058, 2059, 2161, 2162, 2202, 2203, 2223, 2345})
"""The reasons by which no queue manager is there to talk to: a console says so, and tries again."""
_UNKNOWN_NAME, _NOT_AUTHORIZED = 2085, 2035
_LISTS = {
    "": "trigmon queue list shows what there is",
    "PROCESS": "trigmon process list shows what there is",
    "DEADQ": "name one: ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE) in trigmon mqsc, or give --queue",
    "MESSAGE": "trigmon dlq list shows what there is",
    "RESERVATION": "trigmon spark reservations list shows what there is",
    "NAMELIST": "trigmon namelist list shows what there is",
    "AUTHREC": "trigmon rights lists the records",
    "SCHEDULE": "trigmon schedule list shows what there is",
    "WATCH": "trigmon watch list shows what there is",
    "RUN": "trigmon runs list --all shows what there is",
}
"""The command that lists the known names, by the kind of object."""


def sentence(error: Exception) -> str:
    """Returns the reason, the object and, where there is one, the remedy."""
    reason, about = int(getattr(error, "reason", 0)), str(getattr(error, "about", ""))
    named = re.match(r"(?:[A-Z]+\()?([A-Za-z0-9./_%]+)", about)
    remedy = remedy_of(reason, named[1] if named else "QUEUE")
    if reason == _UNKNOWN_NAME:
        remedy = _LISTS.get(about.partition("(")[0], _LISTS[""])
    if reason == _NOT_AUTHORIZED and " needs a" in about:  # 2035 at the connect has another remedy
        remedy = "trigmon config show lists server.administrators and server.monitors"
    return f"{error}; {remedy}" if remedy else str(error)


def remedy_of(reason: int, name: str) -> str:
    """Returns what to do about a reason that concerns an object of this name, "" if there is no general remedy."""
    return _REMEDIES.get(reason, "").replace("{name}", name)
