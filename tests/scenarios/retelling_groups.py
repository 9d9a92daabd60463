"""A plain retelling of logical order (seed 000): a list of messages that is looked through, none of our rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

Place = tuple[str, int, int]
"""A group, a sequence number and an offset."""


@dataclass
class Message:
    number: int
    priority: int
    data: str
    group: str = ""
    seq: int = 1
    offset: int = 0
    in_group: bool = False
    last_in_group: bool = False
    segment: bool = False
    last_segment: bool = False
    expires: int = 0
    put_by: str = ""
    taken_by: str = ""

    @property
    def place(self) -> Place:
        return self.group, self.seq, self.offset

    @property
    def next(self) -> Place | None:
        """The place that follows within the group or the message, None behind the last."""
        if self.segment and not self.last_segment:
            return self.group, self.seq, self.offset + len(self.data)
        if self.in_group and not self.last_in_group:
            return self.group, self.seq + 1, 0
        return None


@dataclass
class Person:
    """An application with one handle: where it stands on each side, and where it stood before its unit of work."""

    put: Message | None = None
    get: Place | None = None
    browse: Place | None = None
    anchor: Message | None = None
    logical_browse: bool | None = None
    in_unit: bool = False
    is_open: bool = False
    before: tuple[Message | None, Place | None] = (None, None)

    def begins(self) -> None:
        if self.in_unit and not self.is_open:
            self.is_open, self.before = True, (self.put, self.get)


@dataclass
class Queue:
    people: dict[str, Person]
    messages: list[Message] = field(default_factory=list)
    now: int = 0
    numbers: count = field(default_factory=count)

    # -- what is there ------------------------------------------------------------------------------------------

    def seen_by(self, who: str) -> list[Message]:
        there = [m for m in self.messages if not m.taken_by and m.put_by in ("", who) and not 0 < m.expires <= self.now]
        return sorted(there, key=lambda m: (-m.priority, m.number))

    def run(self, seen: list[Message], start: Place) -> list[Message]:
        """The messages that follow each other without a hole from this place on."""
        found: list[Message] = []
        place: Place | None = start
        while place is not None:
            there = [m for m in seen if m.group and m.place == place]
            if not there:
                break
            found.append(there[0])
            place = there[0].next
        return found

    def is_whole(self, seen: list[Message], message: Message, how: str) -> bool:
        if not how or not message.group:
            return True
        if how == "group":
            run = self.run(seen, (message.group, 1, 0))
            return bool(run) and run[-1].next is None
        run = self.run(seen, (message.group, message.seq, 0))
        return any(m.seq == message.seq and (m.last_segment or not m.segment) for m in run)

    def segments(self, seen: list[Message], first: Message) -> list[Message]:
        if not first.segment:
            return [first]
        return [m for m in self.run(seen, first.place) if m.seq == first.seq]

    # -- what is done -------------------------------------------------------------------------------------------

    def add(self, who: str, message: Message) -> None:
        self.people[who].begins()
        message.put_by = who if self.people[who].in_unit else ""
        self.messages.append(message)

    def get(self, who: str, logical: bool, whole: str, complete: bool) -> str | None:
        person = self.people[who]
        seen = self.seen_by(who if person.in_unit else "")
        found = self._found(seen, seen, logical, person.get, whole, complete)
        if not found:
            return None
        person.begins()
        person.get = found[-1].next
        for message in found:
            message.taken_by = who
            if not person.in_unit:
                self.messages.remove(message)
        return "".join(m.data for m in found)

    def browse(self, who: str, first: bool, whole: str, complete: bool) -> str | None:
        person, seen = self.people[who], self.seen_by(who)
        if first:
            person.anchor, person.browse = None, None
        mark, logical = person.anchor, bool(person.logical_browse)
        behind = [m for m in seen if mark is None or (-m.priority, m.number) > (-mark.priority, mark.number)]
        found = self._found(seen, behind, logical, person.browse, whole, complete)
        if not found:
            return None
        if not logical or person.browse is None:
            person.anchor = found[0]
        person.browse = found[-1].next if logical else None
        return "".join(m.data for m in found)

    def _found(
        self, seen: list[Message], among: list[Message], logical: bool, place: Place | None, whole: str, complete: bool
    ) -> list[Message]:
        need = whole or ("message" if complete else "")
        if logical and place is not None:
            fit = [m for m in seen if m.group and m.place == place]
            need = "message" if (complete or whole == "message") and not place[2] else ""
        elif logical:
            fit = [m for m in among if (m.seq, m.offset) == (1, 0)]
        else:
            fit = [m for m in among if not complete or not m.offset]
        fit = [m for m in fit if self.is_whole(seen, m, need)]
        return fit[:1] if not complete or not fit else self.segments(seen, fit[0])

    def end(self, who: str, commits: bool) -> None:
        person = self.people[who]
        gone = [m for m in self.messages if (m.taken_by == who if commits else m.put_by == who)]
        self.messages = [m for m in self.messages if not any(m is g for g in gone)]
        for message in self.messages:
            message.put_by = "" if message.put_by == who else message.put_by
            message.taken_by = "" if message.taken_by == who else message.taken_by
        if person.is_open and not commits:
            person.put, person.get = person.before
        person.is_open = False
