"""Rights on objects: MQ's authorizations, the words for them, profiles with generic names, names of authority records.

An authority record gives rights on the objects that its profile fits, to a user or to a group. Its name holds what it
is about: ``queue ORDERS.** group etl``. A profile is a name in which ``?`` is one character, ``*`` any number of
characters of one qualifier (the parts between the dots), and ``**`` as a qualifier any number of qualifiers. Sources:
the manual's pages of SET AUTHREC and of generic profiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntFlag
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from trigmon.mq.errors import ObjectNameError, ParmValueError
from trigmon.mq.names import NAME_LENGTH

EVERYONE = "*"
"""The group that every user is in, also those by plain TCP, whom nobody knows."""
SELF = "SELF"
"""The profile of the queue manager itself, as in MQ."""


class Right(IntFlag):
    """What may be done with an object; the names are MQSC's words. No record gives the last two."""

    PUT = 1
    GET = 2
    BROWSE = 4
    INQ = 8
    SET = 16
    DSP = 32
    CTRL = 64
    CLR = 128
    CRT = 256
    CHG = 512
    DLT = 1024
    MONITOR = 2048  # to write the ledger of runs: server.monitors
    SYSTEM = 4096  # what administrators alone may


MQI = Right.PUT | Right.GET | Right.BROWSE | Right.INQ | Right.SET
ADMIN = Right.DSP | Right.CTRL | Right.CLR | Right.CRT | Right.CHG | Right.DLT
RIGHTS = MQI | ADMIN
"""What a record can give."""
NONE = Right(0)

_PLAIN = {"inquire": Right.INQ | Right.DSP, "pause": Right.CTRL, "administer": ADMIN}
"""The plain words, the longest last: ``put``, ``get``, ``browse`` and ``set`` are MQSC's too."""
_WORDS = {right.name.lower(): right for right in RIGHTS if right.name} | _PLAIN
_WORDS |= {"allmqi": MQI, "alladm": ADMIN, "all": RIGHTS, "none": NONE}
PLAIN_WORDS = ("put", "get", "browse", "inquire", "set", "pause", "administer")
WORDS = tuple(_WORDS)
_SEPARATORS = re.compile(r"[,\s]+")

OBJECT_TYPES = ("queue", "namelist", "process", "qmgr", "schedule", "watch")
"""The kinds of object that a record can be about: all kinds of queue are one."""
ENTITY_TYPES = ("user", "group")
_PROFILE = re.compile(rf"[A-Za-z0-9./_%*?]{{1,{NAME_LENGTH}}}\Z")
_ENTITY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,63}\Z")


def read_rights(given: object) -> Right:
    """Returns the rights that words mean: a text with commas or blanks, or a list. Raises ParmValueError."""
    items = given if isinstance(given, list) else [given]
    words = [word for item in items for word in _SEPARATORS.split(str(item))]
    rights = NONE
    for word in words:
        text = word.lower().removeprefix("+")
        if text not in _WORDS and text:
            raise ParmValueError(f"{word} is no right: they are {', '.join(WORDS)}")
        rights |= _WORDS.get(text, NONE)
    return rights


def rights_explained(rows: Iterable[Mapping[str, Any]]) -> Right:
    """Returns the rights that an answer to ExplainRights says a user has."""
    found = (read_rights(row["right"] if row["has"] else row.get("only", [])) for row in rows)
    return reduce(or_, found, NONE)


def mq_words(rights: Right) -> list[str]:
    """Returns MQ's words, in lower case and in one order, each right by its own."""
    return [str(right.name).lower() for right in RIGHTS if right & rights]


def plain_words(rights: Right) -> list[str]:
    """Returns the plain words where they say the same, MQ's for what they do not."""
    words: list[str] = []
    rest = rights
    for word in ("administer", "inquire", "pause"):
        meant = _PLAIN[word]
        if meant & rights == meant and meant & rest:
            words.append(word)
            rest &= ~meant
    found = [*mq_words(rest), *words]
    order = {word: at for at, word in enumerate(PLAIN_WORDS)}
    return sorted(found, key=lambda word: order.get(word, len(order)))


class Entity(NamedTuple):
    """The user or the group that a record gives rights to; ``kind`` is one of ENTITY_TYPES."""

    kind: str
    name: str

    def __str__(self) -> str:
        return "everyone" if self == (ENTITY_TYPES[1], EVERYONE) else f"{self.kind} {self.name}"


class RecordName(NamedTuple):
    """What an authority record is about."""

    object_type: str
    profile: str
    entity: Entity

    def __str__(self) -> str:
        return f"{self.object_type} {self.profile} {self.entity.kind} {self.entity.name}"


def record_name(object_type: str, profile: str, kind: str, entity: str) -> RecordName:
    """Returns the name of a record that is valid. Raises ObjectNameError."""
    where = f"AUTHREC({profile})"
    of_type = object_type.lower()
    if of_type not in OBJECT_TYPES:
        raise ObjectNameError(f"{where}: the type of object is {' or '.join(OBJECT_TYPES)}, not {object_type}")
    if not is_profile(profile) or (of_type == "qmgr" and profile != SELF):
        allowed = f"the profile is {SELF}" if of_type == "qmgr" else f"a profile is a name with ? * **, not {profile!r}"
        raise ObjectNameError(f"{where}: {allowed}")
    if kind not in ENTITY_TYPES or not (_ENTITY.match(entity) or (kind == "group" and entity == EVERYONE)):
        raise ObjectNameError(f"{where}: user or group, and its name, not {kind} {entity!r}")
    return RecordName(of_type, profile, Entity(kind, entity))


def read_record_name(name: str) -> RecordName:
    """Returns what the name of a record says. Raises ObjectNameError."""
    words = name.split(" ")
    if len(words) != 4:
        raise ObjectNameError(
            f"AUTHREC({name}): its name is: type profile user|group name, as queue ORDERS.** group etl"
        )
    return record_name(*words)


def is_record_name(name: str) -> bool:
    """Returns whether this can be the name of a record, as it is stored."""
    try:
        return str(read_record_name(name)) == name
    except ObjectNameError:
        return False


def is_profile(profile: str) -> bool:
    """Returns whether this is a name or a generic name; ``**`` is a whole qualifier, and stands once."""
    if not _PROFILE.match(profile):
        return False
    qualifiers = profile.split(".")
    return qualifiers.count("**") <= 1 and all("**" not in each or each == "**" for each in qualifiers)


def profile_pattern(profile: str) -> re.Pattern[str]:
    """Returns the regular expression of a valid profile."""
    text = ""
    for qualifier in profile.split("."):
        if qualifier == "**":
            # No qualifier at all is some number of them, so the dot belongs to each.
            text += r"(?:\.[^.]*)*"
        else:
            text += r"\." + re.escape(qualifier).replace(r"\*", "[^.]*").replace(r"\?", "[^.]")
    return re.compile(text + r"\Z")


def fits(pattern: re.Pattern[str], name: str) -> bool:
    """Returns whether a name fits the pattern of a profile."""
    return pattern.match("." + name) is not None


def specificity(profile: str) -> tuple[bool, tuple[int, ...]]:
    """Returns the key by which the most specific of the profiles that fit a name comes first.

    A name without ``? * **`` does; then from the left a character before ``?``, that before ``*``, that before ``**``.
    """
    text = profile.replace("**", "\0")
    classes = {"?": 1, "*": 2, "\0": 3}
    return any(each in text for each in classes), (*(classes.get(each, 0) for each in text), 4)


def rights_of_group(rows: Iterable[Mapping[str, Any]], object_type: str, name: str, group: str) -> Right:
    """Returns what the most specific record of a group gives on an object; ``rows`` are authority records."""
    found = []
    for row in rows:
        about = read_record_name(row["name"])
        is_of_group = about.object_type == object_type and about.entity == ("group", group)
        if is_of_group and fits(profile_pattern(about.profile), name):
            found.append((specificity(about.profile), read_rights(row["authorities"])))
    return min(found)[1] if found else NONE


def canonical(given: object) -> str:
    """Returns rights as a record holds them: MQ's words with commas, ``none`` for none. Raises ParmValueError."""
    return ",".join(mq_words(read_rights(given))) or "none"
