"""A plain retelling of seed 001 for the shared queues of a group: a list of messages, none of our rules.

``P`` is triggered by an initiation queue that each member has for itself, ``S`` by one that is shared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MEMBERS = ("QM1", "QM2", "QM3")
QUEUES = ("P", "S")
INTERVAL = 1000

Person = tuple[str, str]
"""A member, and who is connected to it."""


@dataclass
class Message:
    priority: int
    put_by: Person | None = None
    taken_by: Person | None = None


@dataclass
class Queue:
    kind: str = "first"
    on: bool = True
    threshold: int = 0
    depth: int = 2
    gets: bool = True
    messages: list[Message] = field(default_factory=list)
    readers: Counter[Person] = field(default_factory=Counter)
    exclusive: bool = False
    stamps: dict[str, int] = field(default_factory=dict)

    def waiting(self, threshold: int) -> int:
        """Committed messages, and none that somebody has got."""
        return sum(m.priority >= threshold and not m.put_by and not m.taken_by for m in self.messages)

    def reads(self, member: str) -> int:
        return sum(count for person, count in self.readers.items() if person[0] == member)

    def criteria(self, member: str) -> tuple[str, int]:
        """4 note a: while another member reads it for shared input, FIRST and priority zero."""
        read_elsewhere = self.readers.total() > self.reads(member) and not self.exclusive
        return ("first", 0) if read_elsewhere and self.kind != "none" else (self.kind, self.threshold)

    def enough(self, member: str) -> bool:
        kind, threshold = self.criteria(member)
        return self.waiting(threshold) >= (self.depth if kind == "depth" else 1)


class Retelling:
    """The seed, told once more, for a group."""

    def __init__(self) -> None:
        self.queues = {name: Queue() for name in QUEUES}
        self.monitors: Counter[tuple[str, str]] = Counter()  # by member and queue
        self.own: Counter[str] = Counter()  # what lies on each member's own queue
        self.own_puts: Counter[Person] = Counter()
        self.order = list(MEMBERS)
        self.now = 0
        self.fired: Counter[tuple[str, str]] = Counter()  # by who wrote it, and queue

    def _judged(self, name: str, acting: str, occasion) -> None:
        """Every member judges what happened, the acting one first; on S one trigger message does for all."""
        q = self.queues[name]
        was_on, switched_off = q.on, False
        for member in sorted(self.order, key=lambda m: m != acting):
            times, leave_out = occasion(q, member)
            kind, _ = q.criteria(member)
            quiet = "4" not in leave_out and (q.exclusive or (kind != "every" and q.reads(member) > 0))
            deaf = "8" not in leave_out and not self._monitored(name, member)
            shut = "5" not in leave_out and not q.gets
            if not times or quiet or deaf or shut or not was_on or kind == "none":
                continue
            self.fired[member, name] += times
            switched_off = switched_off or kind == "depth"
            if name == "S":
                q.stamps.update(dict.fromkeys(MEMBERS, self.now))
                break
            q.stamps[member] = self.now
        q.on = q.on and not switched_off

    def _monitored(self, name: str, member: str) -> int:
        if name == "S":
            return sum(count for (_, queue), count in self.monitors.items() if queue == "S")
        return self.monitors[member, name]

    def came(self, acting: str, name: str, priorities: list[int]) -> None:
        """Messages that are committed now. They lie there already."""

        def put(q: Queue, member: str) -> tuple[int, str]:
            kind, threshold = q.criteria(member)
            more = sum(p >= threshold for p in priorities)
            before = q.waiting(threshold) - more
            waited = member not in q.stamps or self.now - q.stamps[member] >= INTERVAL
            if not more or kind == "none":
                return 0, ""
            if kind == "every":
                return (more if member == acting else 0), ""
            if kind == "first":
                return int(before == 0 or waited), ""
            return int(before < q.depth <= before + more or before >= q.depth), ""

        self._judged(name, acting, put)

    def put(self, who: Person, name: str, priority: int, in_unit: bool) -> None:
        self.queues[name].messages.append(Message(priority, who if in_unit else None))
        if not in_unit:
            self.came(who[0], name, [priority])

    def put_own(self, who: Person, in_unit: bool) -> None:
        if in_unit:
            self.own_puts[who] += 1
        else:
            self.own[who[0]] += 1

    def get(self, who: Person, name: str, in_unit: bool) -> bool:
        q = self.queues[name]
        seen = [m for m in q.messages if not m.taken_by and (not m.put_by or (in_unit and m.put_by == who))]
        if not seen:
            return False
        best = max(seen, key=lambda m: m.priority)
        if in_unit:
            best.taken_by = who
        else:
            q.messages.remove(best)
        return True

    def end(self, who: Person, commits: bool) -> None:
        self.own[who[0]] += self.own_puts.pop(who, 0) * commits
        came: dict[str, list[int]] = {}
        for name, q in self.queues.items():
            gone = [m for m in q.messages if (m.taken_by == who if commits else m.put_by == who)]
            q.messages = [m for m in q.messages if not any(m is g for g in gone)]
            came[name] = [m.priority for m in q.messages if m.put_by == who]
            for m in q.messages:
                m.put_by = None if m.put_by == who else m.put_by
                m.taken_by = None if m.taken_by == who else m.taken_by
        for name, priorities in came.items():
            if priorities:
                self.came(who[0], name, priorities)

    def opens(self, who: Person, name: str, exclusive: bool) -> bool:
        q = self.queues[name]
        if q.exclusive or (exclusive and q.readers.total()):
            return False
        q.readers[who] += 1
        q.exclusive = exclusive
        return True

    def close(self, who: Person, name: str) -> None:
        q = self.queues[name]
        q.readers[who] -= 1
        q.exclusive = False
        self._closed(name, who[0])

    def _closed(self, name: str, acting: str, ended: str = "") -> None:
        def last_reader(q: Queue, member: str) -> tuple[int, str]:
            """12: of this member, or of all."""
            is_his = member == acting and not q.reads(member)
            serves = q.criteria(member)[0] in ("first", "depth")
            is_due = member != ended and (is_his or not q.readers.total()) and serves and q.enough(member)
            return int(is_due), "4 5"

        self._judged(name, acting, last_reader)

    def monitor(self, member: str, name: str) -> None:
        is_first = not self._monitored(name, member)
        self.monitors[member, name] += 1

        def first_opened(q: Queue, judging: str) -> tuple[int, str]:
            """13c: of one's own initiation queue, or of the group's."""
            return int(is_first and (name == "S" or judging == member) and q.enough(judging)), ""

        self._judged(name, member, first_opened)

    def change(self, acting: str, name: str, **new: object) -> None:
        q = self.queues[name]
        changed = {key for key in new if new[key] != getattr(q, key)}
        for key, value in new.items():
            setattr(q, key, value)

        def criteria_changed(q: Queue, member: str) -> tuple[int, str]:
            """13, and 13b where that does not fire."""
            by_depth = "depth" in changed and q.criteria(member)[0] == "depth"
            by_13 = bool(changed & {"on", "kind", "threshold"}) or by_depth
            by_13b = "gets" in changed and q.gets
            if by_13 and q.gets:
                return int(q.enough(member)), "8" if not (by_13b and self._monitored(name, member)) else ""
            return int(by_13b and q.enough(member)), ""

        self._judged(name, acting, criteria_changed)

    def crash(self, member: str, people: list[Person]) -> None:
        """What it had is given back, its readers are gone, and the others find that out."""
        read = {name for name, q in self.queues.items() if q.reads(member)}
        for person in people:
            self.end(person, False)
        self.own_puts = Counter({p: n for p, n in self.own_puts.items() if p[0] != member})
        for key in [key for key in self.monitors if key[0] == member]:
            del self.monitors[key]
        self.order.remove(member)
        for name in sorted(read):
            q = self.queues[name]
            for person in [p for p in q.readers if p[0] == member]:
                del q.readers[person]
            q.exclusive = False
            self._closed(name, "", member)
        self.order.append(member)
        for q in self.queues.values():
            q.stamps.pop(member, None)
