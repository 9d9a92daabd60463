"""A plain retelling of seed 001 for private queues: a list of messages that is looked through, none of our rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

QUEUES = ("P", "Q")
INTERVAL = 1000


@dataclass
class Message:
    priority: int
    put_by: str = ""
    taken_by: str = ""


@dataclass
class Queue:
    kind: str = "first"
    on: bool = True
    threshold: int = 0
    depth: int = 2
    gets: bool = True
    messages: list[Message] = field(default_factory=list)
    readers: Counter[str] = field(default_factory=Counter)
    stamp: int | None = None

    def waiting(self) -> int:
        return sum(m.priority >= self.threshold and not m.taken_by for m in self.messages)

    def enough(self) -> bool:
        return self.waiting() >= (self.depth if self.kind == "depth" else 1)


class Retelling:
    """The seed, told once more."""

    def __init__(self) -> None:
        self.queues = {name: Queue() for name in QUEUES}
        self.monitors: Counter[str] = Counter()
        self.takes_puts = True
        self.now = 0
        self.held: list[tuple[str, str, bool]] = []
        self.fired: Counter[str] = Counter()

    def _event(self, name: str, leave_out: str = "", unit_of: str = "") -> None:
        """A trigger message, where all is so that an occasion asks for, less the conditions left out."""
        q = self.queues[name]
        quiet = "4" not in leave_out.split() and q.kind != "every" and q.readers.total() > 0
        deaf = "8" not in leave_out.split() and not self.monitors.total()
        shut = "5" not in leave_out.split() and not q.gets
        if quiet or deaf or shut or not self.takes_puts or not q.on or q.kind == "none":
            return
        q.stamp = self.now
        if unit_of:
            self.held.append((unit_of, name, q.kind != "every"))
        else:
            self.fired[name] += 1
        if q.kind == "depth":
            q.on = False

    def put(self, who: str, name: str, priority: int, in_unit: bool) -> None:
        q = self.queues[name]
        before = q.waiting()
        if priority >= q.threshold:
            waited = q.stamp is None or self.now - q.stamp >= INTERVAL
            third = {"first": before == 0, "every": True, "depth": before == q.depth - 1, "none": False}[q.kind]
            eleventh = (q.kind == "first" and before > 0 and waited) or (q.kind == "depth" and before >= q.depth)
            if third or eleventh:
                self._event(name, unit_of=who if in_unit else "")
        q.messages.append(Message(priority, who if in_unit else ""))

    def get(self, who: str, name: str, in_unit: bool) -> bool:
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

    def end(self, who: str, commits: bool) -> None:
        for q in self.queues.values():
            gone = [m for m in q.messages if (m.taken_by == who if commits else m.put_by == who)]
            q.messages = [m for m in q.messages if not any(m is g for g in gone)]
            for m in q.messages:
                m.put_by = "" if m.put_by == who else m.put_by
                m.taken_by = "" if m.taken_by == who else m.taken_by
        for held in [h for h in self.held if h[0] == who]:
            self.held.remove(held)
            if commits or held[2]:
                self.fired[held[1]] += 1

    def close(self, who: str, name: str) -> None:
        q = self.queues[name]
        q.readers[who] -= 1
        if not q.readers.total() and q.enough() and q.kind in ("first", "depth"):
            self._event(name, leave_out="4 5")

    def monitor(self, who: str) -> None:
        self.monitors[who] += 1
        if self.monitors.total() == 1:
            for name, q in self.queues.items():
                if q.enough():
                    self._event(name)

    def allow_puts(self, allowed: bool) -> None:
        before, self.takes_puts = self.takes_puts, allowed
        if allowed and not before:
            for name, q in self.queues.items():
                if q.enough():
                    self._event(name)

    def change(self, name: str, **new: object) -> None:
        q = self.queues[name]
        before = {key: getattr(q, key) for key in new}
        for key, value in new.items():
            setattr(q, key, value)
        changed = {key for key in new if new[key] != before[key]}
        criteria = changed & {"on", "kind", "threshold"} or (changed & {"depth"} and q.kind == "depth")
        told = self.fired.total()
        if criteria and q.on and q.enough():
            self._event(name, leave_out="8")
        if "gets" in changed and q.gets and q.enough() and self.fired.total() == told:
            self._event(name)
