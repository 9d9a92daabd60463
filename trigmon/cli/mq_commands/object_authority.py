"""What setmqaut and dspmqaut have in common: the object, the users and groups, and the exit statuses of MQ's pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.rights import OBJECT_TYPES

DONE, FAILED, INVALID_ARGUMENTS, NOT_AVAILABLE, NAME_ERROR = 0, 71, 36, 40, 72
UNKNOWN_OBJECT, UNEXPECTED_NAME, NO_NAME, NO_TYPE, BAD_TYPE, NO_ENTITY = 133, 145, 146, 147, 148, 149
NO_RIGHTS, BAD_RIGHTS = 150, 151

TYPES = {
    **dict.fromkeys(("queue", "q"), "QUEUE"),
    **dict.fromkeys(("process", "prcs"), "PROCESS"),
    "qmgr": "QMGR",
    "authinfo": "AUTHINFO",
    **dict.fromkeys(("channel", "chl"), "CHANNEL"),
    **dict.fromkeys(("clntconn", "clcn"), "CLNTCONN"),
    "comminfo": "COMMINFO",
    **dict.fromkeys(("listener", "lstr"), "LISTENER"),
    **dict.fromkeys(("namelist", "nl"), "NAMELIST"),
    **dict.fromkeys(("rqmname", "rqmn"), "RQMNAME"),
    **dict.fromkeys(("service", "srvc"), "SERVICE"),
    **dict.fromkeys(("topic", "top"), "TOPIC"),
}
"""MQSC's OBJTYPE by the value of ``-t``."""
HERE = frozenset(kind.upper() for kind in OBJECT_TYPES)
_LETTERS = "mntspg"


class Asked(NamedTuple):
    """What a command line asks about: who are pairs of PRINCIPAL or GROUP and a name."""

    q_mgr_name: str
    profile: str
    of_type: str
    who: list[tuple[str, str]]
    rights: list[str]


class RefusedError(Exception):
    """A command line that MQ refuses with a status of its own."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def asked(arguments: Sequence[str]) -> Asked:
    """Returns what the arguments say; rights are ``+put``, ``-put`` and ``-remove``. Raises RefusedError."""
    options: dict[str, str] = {}
    who: list[tuple[str, str]] = []
    rights: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word[:1] == "+" or (word[:1] == "-" and word[1:2] not in _LETTERS) or _is_right(word):
            rights.append(word.lower())
            continue
        if word[:1] != "-":
            raise RefusedError(INVALID_ARGUMENTS, f"{word} is no option")
        value = word[2:] or (left.pop(0) if left else "")
        if not value:
            raise RefusedError(INVALID_ARGUMENTS, f"{word} needs a value")
        if word[1] in "pg":
            who.append(("GROUP" if word[1] == "g" else "PRINCIPAL", value))
        else:
            options[word[1]] = value
    kind = TYPES.get(options.get("t", "").lower(), "")
    if not kind:
        status, problem = (BAD_TYPE, f"-t {options['t']} is no type") if "t" in options else (NO_TYPE, "-t is missing")
        raise RefusedError(status, f"{problem}: {', '.join(TYPES)}")
    if (kind == "QMGR") == ("n" in options):
        is_qmgr = kind == "QMGR"
        problem = "-n goes with no queue manager: -m names it" if is_qmgr else "-n, the object's name, is missing"
        raise RefusedError(UNEXPECTED_NAME if is_qmgr else NO_NAME, problem)
    if not who:
        raise RefusedError(NO_ENTITY, "-p or -g is missing")
    return Asked(options.get("m", ""), options.get("n", ""), kind, who, rights)


def _is_right(word: str) -> bool:
    """Returns whether ``-put`` and others are rights, though ``-p`` with a value behind it would be an option."""
    return word[1:].lower() in _WORDS


_WORDS = {
    *("put", "get", "browse", "inq", "set", "dsp", "ctrl", "ctrlx", "clr", "crt", "chg", "dlt", "connect", "altusr"),
    *("passall", "passid", "setall", "setid", "pub", "sub", "resume", "system", "all", "alladm", "allmqi", "none"),
    "remove",
}
RIGHT_WORDS = frozenset(_WORDS)


def failed(command: str, error: MQError) -> int:
    """Prints why a call failed and returns MQ's status of it."""
    from trigmon.console.error_text import sentence

    click.echo(f"{command}: {sentence(error)}", err=True)
    statuses = {
        Reason.UNKNOWN_OBJECT_NAME: UNKNOWN_OBJECT,
        Reason.Q_MGR_NAME_ERROR: NAME_ERROR,
        Reason.Q_MGR_NOT_AVAILABLE: NOT_AVAILABLE,
        Reason.CONNECTION_BROKEN: NOT_AVAILABLE,
    }
    return statuses.get(error.reason, FAILED)
