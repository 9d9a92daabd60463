"""What clients tried, were answered and saw: a history is a list of events, and a work is what belongs together in it.

A work is a unit of work, or one call outside any. Its name is unique, and so is every body, so that one pass over a
history finds everything. Each event has ``event``, ``who``, ``at`` (its place in the order of things), ``ms`` (time):

- ``put``: before a put: ``work``, ``body``, ``queue``, ``priority``, ``kind`` (``"volatile"`` may go in a crash),
  ``expiry_ms`` (0: never);
- ``refused``: the put of ``body`` was refused;
- ``asks``: before a get: ``work``, ``queue``, ``n`` messages at most;
- ``seen``: a get of ``work`` (a browse: of none) returned ``body`` of ``queue`` with ``count``, its backout count;
- ``carried``: the backout of ``source`` has left ``body`` in ``work``, the unit behind it;
- ``heard``: the last call of ``work`` was answered;
- ``write``: before the call that writes ``value`` under ``key`` (a definition, a run) in ``work``;
- ``ends``: before the commit or backout of a unit, or the call itself outside of one: ``work``;
- ``ended``: ``work``, ``outcome``: committed, backed out, or unknown; ``was_cut``: its client had to ask;
- ``told``: the queue manager told the outside that a trigger message for ``queue`` is there;
- ``watch``: a monitor opened an initiation queue, which may write trigger messages for messages that waited;
- ``crash``: ``how``: the process was killed (``kill``) or the power cut (``power``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

COMMITTED, BACKED_OUT, UNKNOWN = "committed", "backed out", "unknown"

NOTICES_MS = 5000
"""After so long at most the queue manager knows that a client is no more."""

Event = dict[str, Any]


@dataclass
class Put:
    """A body that was tried."""

    body: str
    queue: str
    priority: int
    is_volatile: bool
    expiry_ms: int
    ms: int
    place: int
    work: Work

    @property
    def producer(self) -> str:
        """Whose it is; the number behind it ascends."""
        return self.body.partition("#")[0]

    @property
    def number(self) -> int:
        """Its place among its producer's."""
        return int(self.body.partition("#")[2])


@dataclass
class Take:
    """A message that a get returned."""

    body: str
    count: int
    queue: str
    who: str
    ms: int
    place: int
    work: Work | None


@dataclass
class Work:
    """A unit of work, or one call outside any."""

    name: str
    who: str
    place: int
    puts: dict[str, Put] = field(default_factory=dict)
    takes: list[Take] = field(default_factory=list)
    unheard: tuple[str, int] | None = None
    """The queue, and the most messages, of a get whose answer has not come."""
    writes: dict[str, Any] = field(default_factory=dict)
    has_done: bool = False
    """A put or get of it was answered, so the queue manager knows of it."""
    is_alone: bool = False
    has_asked: bool = False
    """Its end was asked for; otherwise its client died or lost its link."""
    outcome: str = ""
    ended_ms: int = 0
    last_place: int = 0


class Crash(NamedTuple):
    """The end of the process: ``how`` is kill, power or stop."""

    place: int
    how: str
    ms: int


class Left:
    """What a last look found: messages in get order as (queue, body, priority, backout count), values by key.

    ``reports`` are the bodies of which it was reported that they had expired. The look began at ``ms`` and ended at
    ``until_ms``.
    """

    def __init__(
        self,
        messages: list[tuple[str, str, int, int]],
        values: dict[str, Any],
        ms: int,
        reports: list[str],
        until_ms: int = 0,
    ) -> None:
        self.until_ms = until_ms or ms
        self.messages = messages
        self.reports = reports
        self.values = values
        self.ms = ms


class History:
    """Events, sorted into works."""

    def __init__(self, events: list[Event]) -> None:
        self.works: dict[str, Work] = {}
        self.puts: dict[str, Put] = {}
        self.takes: list[Take] = []
        self.told: dict[str, int] = defaultdict(int)
        self.watches = 0
        self.crashes: list[Crash] = []
        for place, event in enumerate(events):
            getattr(self, "_" + event["event"])(event, place)

    def _work(self, event: Event, place: int) -> Work:
        name = event["work"]
        work = self.works.get(name)
        if work is None:
            work = self.works[name] = Work(name, event["who"], place)
        work.last_place = place
        return work

    def _put(self, event: Event, place: int) -> None:
        work = self._work(event, place)
        put = Put(
            event["body"],
            event["queue"],
            event["priority"],
            event.get("kind") == "volatile",
            event.get("expiry_ms", 0),
            event["ms"],
            place,
            work,
        )
        work.puts[put.body] = self.puts[put.body] = put

    def _refused(self, event: Event, place: int) -> None:
        self._work(event, place).puts.pop(event["body"], None)
        self.puts.pop(event["body"], None)

    def _asks(self, event: Event, place: int) -> None:
        self._work(event, place).unheard = (event["queue"], event["n"])

    def _seen(self, event: Event, place: int) -> None:
        work = self._work(event, place) if event["work"] else None
        take = Take(event["body"], event["count"], event["queue"], event["who"], event["ms"], place, work)
        self.takes.append(take)
        if work is not None:
            work.takes.append(take)

    def _carried(self, event: Event, place: int) -> None:
        work, source = self._work(event, place), self.works[event["source"]]
        (take,) = (take for take in source.takes if take.body == event["body"])
        source.takes.remove(take)
        take.work = work
        work.takes.append(take)
        work.has_done = True

    def _heard(self, event: Event, place: int) -> None:
        work = self._work(event, place)
        work.has_done = work.has_done or bool(work.puts or work.takes)
        work.unheard = None

    def _write(self, event: Event, place: int) -> None:
        self._work(event, place).writes[event["key"]] = event["value"]

    def _ends(self, event: Event, place: int) -> None:
        work = self._work(event, place)
        work.is_alone = bool(event.get("alone"))
        work.has_asked = True

    def _ended(self, event: Event, place: int) -> None:
        work = self._work(event, place)
        work.outcome, work.ended_ms = event["outcome"], event["ms"]

    def _told(self, event: Event, place: int) -> None:
        self.told[event["queue"]] += 1

    def _watch(self, event: Event, place: int) -> None:
        self.watches += bool(self.puts)

    def _crash(self, event: Event, place: int) -> None:
        self.crashes.append(Crash(place, event["how"], event["ms"]))

    def crashed_since(self, place: int, how: str = "") -> bool:
        """Whether there was a crash (of this kind) behind this place."""
        return any(crash.place > place and how in ("", crash.how) for crash in self.crashes)

    def was_cut_by_power(self, work: Work) -> bool:
        """Whether a power cut may have come before the queue manager had ended this work.

        It notices that a client has died some time after that.
        """
        return any(
            work.place < crash.place
            and (crash.place < work.last_place or (not work.has_asked and crash.ms <= work.ended_ms + NOTICES_MS))
            for crash in self.crashes
            if crash.how == "power"
        )


class Ledger:
    """A client's own file of events; a line is with the kernel before the call it speaks of is made."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def append(self, event: Event) -> None:
        """Writes one event."""
        self._file.write(json.dumps(event) + "\n")


def read(paths: list[Path], more: list[Event]) -> list[Event]:
    """The events of several ledgers, and more, in the order of time."""
    lines = (line for path in paths for line in path.read_text().splitlines())
    return sorted([*map(json.loads, lines), *more], key=lambda event: event["at"])
