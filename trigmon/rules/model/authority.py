"""Who may do what: the authority records as one value, and the pure function that decides on one right.

An administrator may do everything. While there is no authority record, every user may put, get, browse, inquire and
display, and all else is an administrator's. As soon as there is one, other users may do what records give them: of
the records of one user, or of one group, the one with the most specific profile counts, and what a user and all
groups of that user have is united. A monitor keeps what every user has without records. The settings name
administrators, monitors and setters (:mod:`trigmon.server.peer_identity`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from trigmon.mq.attributes import AuthorityRecord
from trigmon.mq.errors import NotAuthorized
from trigmon.mq.rights import (
    ADMIN,
    EVERYONE,
    Entity,
    RecordName,
    Right,
    fits,
    plain_words,
    profile_pattern,
    read_record_name,
    read_rights,
    specificity,
)

OF_EVERY_USER = Right.PUT | Right.GET | Right.BROWSE | Right.INQ | Right.DSP
"""What every user may while there is no authority record."""
_MESSAGES = Right.PUT | Right.GET | Right.BROWSE
_OURS = "SYSTEM.TRIGMON."
_SYSTEM = "SYSTEM."
_MOST_REMEMBERED = 1024
_EVERY_BIT = int(OF_EVERY_USER)
_and = int.__and__  # of members of a flag; their own operator costs ten times as much


class Need(NamedTuple):
    """A right that a call needs on an object. ``owner`` is the user who has every right on it, as its maker."""

    right: Right
    object_type: str
    name: str
    owner: str = ""


class User(Protocol):
    """A user as the rules know one: :class:`trigmon.rules.model.handles.ConnectionFacts` is."""

    @property
    def user(self) -> str:
        """The name; empty where nobody proved one."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""

    @property
    def is_administrator(self) -> bool:
        """Whether the settings or the kernel say so."""

    @property
    def is_monitor(self) -> bool:
        """Whether the settings say so."""

    @property
    def is_setter(self) -> bool:
        """Whether the settings say so."""


class UserFacts(NamedTuple):
    """A user who need not be connected."""

    user: str
    groups: tuple[str, ...] = ()
    is_administrator: bool = False
    is_monitor: bool = False
    is_setter: bool = False


class Given(NamedTuple):
    """The rights of one entity that counts for an object, and the profile that gives them."""

    entity: Entity
    profile: str
    rights: Right


class _Profile(NamedTuple):
    text: str
    pattern: re.Pattern[str]
    of: dict[Entity, Right]


class AuthorityRecords:
    """All authority records of a queue manager, made anew when one changes."""

    def __init__(self, records: Iterable[AuthorityRecord]) -> None:
        found: dict[str, dict[str, _Profile]] = {}
        for record in records:
            about = read_record_name(record.name)
            profiles = found.setdefault(about.object_type, {})
            new = _Profile(about.profile, profile_pattern(about.profile), {})
            profiles.setdefault(about.profile, new).of[about.entity] = read_rights(record.authorities)
        self._by_type = {
            kind: sorted(profiles.values(), key=lambda one: specificity(one.text)) for kind, profiles in found.items()
        }
        self._remembered: dict[tuple[str, str], dict[Entity, Given]] = {}
        self._granted: set[tuple[str, tuple[str, ...], int, str, str]] = set()

    def has_granted(self, need: Need, user: User) -> bool:
        """Returns whether this right was found to be given before: a put by name asks each time."""
        return (user.user, user.groups, int(need.right), need.object_type, need.name) in self._granted

    def remember(self, need: Need, user: User) -> None:
        """Remembers that a record gives this right."""
        if len(self._granted) >= _MOST_REMEMBERED:
            self._granted.clear()
        self._granted.add((user.user, user.groups, int(need.right), need.object_type, need.name))

    def given(self, user: User, object_type: str, name: str) -> list[Given]:
        """Returns what counts for this user and this object: that of the user, and of each group."""
        of = self._remembered.get((object_type, name))
        if of is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            of = self._remembered[object_type, name] = self._of(object_type, name)
        entities = [Entity("user", user.user), *(Entity("group", group) for group in (*user.groups, EVERYONE))]
        return [of[entity] for entity in entities if entity in of]

    def _of(self, object_type: str, name: str) -> dict[Entity, Given]:
        of: dict[Entity, Given] = {}
        for profile in self._by_type.get(object_type, ()):
            if fits(profile.pattern, name):
                for entity, rights in profile.of.items():
                    of.setdefault(entity, Given(entity, profile.text, rights))
        return of


class Verdict(NamedTuple):
    """Whether a user has a right, and why, as part of a sentence."""

    has: bool
    why: str


def decide_right(need: Need, user: User, records: AuthorityRecords | None) -> Verdict:
    """Decides whether a user has a right on an object; ``records`` is None where there is no authority record."""
    return _by_settings(need, user) or _without_records(need, user, records) or _by_records(need, user, records)


def _by_settings(need: Need, user: User) -> Verdict | None:
    """Returns what no record changes, None where the records decide."""
    is_of_system = need.object_type == "queue" and need.name.startswith(_SYSTEM)
    if user.is_administrator:
        return Verdict(True, "an administrator")
    if need.right in (Right.SYSTEM, Right.MONITOR):
        return Verdict(need.right is Right.MONITOR and user.is_monitor, "server.monitors")
    if is_of_system and need.name.startswith(_OURS) and need.right & _MESSAGES:
        return Verdict(False, "messages of trigmon's own queues are for administrators")
    if need.right is Right.SET and (is_of_system or user.is_setter):
        why = "attributes of a SYSTEM object are for administrators" if is_of_system else "server.setters"
        return Verdict(not is_of_system, why)
    return None


def _without_records(need: Need, user: User, records: AuthorityRecords | None) -> Verdict | None:
    """Returns what holds for the maker of the object, for every user without records, and for monitors with them."""
    if need.owner and need.owner == user.user:
        return Verdict(True, "made by this user")
    if not need.right & OF_EVERY_USER:
        return None
    if records is None:
        return Verdict(True, "there is no authority record")
    return Verdict(True, "server.monitors") if user.is_monitor else None


def _by_records(need: Need, user: User, records: AuthorityRecords | None) -> Verdict:
    given = records.given(user, need.object_type, need.name) if records is not None else []
    by = next((one for one in given if one.rights & need.right), None)
    if by is not None and records is not None:
        records.remember(need, user)
        return Verdict(True, f"{by.profile} for {by.entity}")
    counted = (f"{one.profile} gives {one.entity} {', '.join(plain_words(one.rights)) or 'none'}" for one in given)
    return Verdict(False, "; ".join(counted) or "no authority record fits")


def check_right(need: Need, user: User, records: AuthorityRecords | None, what: str = "") -> None:
    """Raises NotAuthorized (2035), which names the user, the right, the object and the remedy."""
    if user.is_administrator:
        return
    if records is None:
        if _and(need.right, _EVERY_BIT) and not need.name.startswith(_OURS):
            return  # as decide_right says too, at a tenth of the cost
    elif records.has_granted(need, user):
        return
    verdict = decide_right(need, user, records)
    if not verdict.has:
        raise NotAuthorized(refusal(need, user, verdict, what))


def has_right(need: Need, user: User, records: AuthorityRecords | None) -> bool:
    """Returns whether a user has a right on an object."""
    return user.is_administrator or decide_right(need, user, records).has


def refusal(need: Need, user: User, verdict: Verdict, what: str = "") -> str:
    """Returns the sentence of a refusal."""
    who = user.user or "a user who is not known (plain TCP)"
    about = f"{what or right_word(need.right)} needs "
    if need.right is Right.SYSTEM:
        who_are = "root, the daemon's own user and those in server.administrators are"
        return f"{about}an administrator, which {who} is not: {who_are}"
    if need.right is Right.MONITOR:
        return f"{about}a monitor (server.monitors), which {who} is not"
    where = object_text(need)
    word = right_word(need.right)
    if need.name.startswith(_OURS if need.right & _MESSAGES else _SYSTEM) and "are for" in verdict.why:
        return f"{need.name}: {who} has not the right {word}: {verdict.why}"
    more = "an administrator, or " if need.right & ADMIN & ~Right.DSP else ""
    more += "server.setters, or " if need.right is Right.SET else ""
    return f"{about}{more}the right {word} on {where}, which {who} has not ({verdict.why}): {grant_command(need, user)}"


def right_word(right: Right) -> str:
    """Returns the plain word by which a right is granted."""
    for word, meant in (("inquire", Right.INQ | Right.DSP), ("pause", Right.CTRL), ("administer", ADMIN)):
        if right & meant:
            return word
    return str(right.name).lower()


def object_text(need: Need) -> str:
    """Returns the object as a sentence names it."""
    return "the queue manager" if need.object_type == "qmgr" else f"{need.object_type} {need.name}"


def grant_command(need: Need, user: User, word: str = "") -> str:
    """Returns the command by which an administrator gives what lacks, or the whole of what a plain word means."""
    who = user.user or "everyone"
    kind = "" if need.object_type == "queue" else f" --type {need.object_type}"
    return f"trigmon grant {who} {word or right_word(need.right)} {need.name}{kind}"


def is_own(name: RecordName, user: User) -> bool:
    """Returns whether a record is about this user, or a group of this user."""
    kind, entity = name.entity
    return entity == user.user if kind == "user" else entity == EVERYONE or entity in user.groups
