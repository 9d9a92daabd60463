"""A reservation as a value, and its arithmetic: what is left, what counts as waiting, which connections are behind it.

Its messages have ordinals from 0, in get order, which never change. What was settled or given back is remembered by
ordinals and is done at once, whatever the number; its rows follow in slices (``due``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from msgspec.structs import replace

from trigmon.mq.enums import UnitOutcome

Ordinals = tuple[int, int]
"""The first of a stretch, and the one behind its last."""
Death = tuple[int, int, int]
"""A stretch that holders worked on alone when they were gone, and how many of them."""
_MOST_DEATHS = 1000
"""Each step writes all of them down; the oldest are forgotten."""


class Due(msgspec.Struct, frozen=True, array_like=True):
    """Rows that are to go for good or, with ``returns``, back to the queue, ``adds`` on their backout counts."""

    first: int
    end: int
    returns: bool = False
    adds: int = 0


class ReservationTerms(msgspec.Struct, frozen=True):
    """What was asked to be reserved, and when: it never changes."""

    number: int
    q_name: str
    consumer: str
    token: str = ""
    made_ms: int = 0
    max_messages: int = 0
    max_bytes: int = 0
    whole_groups: bool = False


class Reservation(ReservationTerms, frozen=True):
    """A fixed batch of a queue's messages for one consumer: a unit of work that outlives its connections.

    A record holds its terms and its state as fields of one object.

    ``runs`` are the counted priorities of its messages in the order of the ordinals, each with how many have it;
    ``size`` their bytes. Until it ``is_sealed`` it is still being made, and may not be read. ``offers`` is how often
    it was offered anew, which adds to each message's backout count. ``gone`` is what was settled, given back or
    rejected, ``settled`` how many were settled. ``outcome`` is OPEN while anything is left.

    ``is_plain``: none of its messages asks for a confirmation of delivery, is large, or is shown to a reader otherwise
    than it is stored; so its rows are read as they are, and removed unread. Not so in records older than this field.

    ``attempt`` is what the holder declared to work on alone, ``deaths`` what earlier holders did when they were gone.

    ``holder`` is the connection that made it or took it again, ``readers`` are others that read from it: these are
    the connections behind it. A restart forgets them. ``user`` is the holder's, or the last holder's, None in records
    older than this field.
    """

    by: str = ""
    runs: tuple[tuple[int, int], ...] = ()
    size: int = 0
    is_sealed: bool = False
    offers: int = 0
    gone: tuple[Ordinals, ...] = ()
    due: tuple[Due, ...] = ()
    outcome: UnitOutcome = UnitOutcome.OPEN
    ended_ms: int = 0
    settled: int = 0
    attempt: Ordinals | None = None
    deaths: tuple[Death, ...] = ()
    holder: int = 0
    readers: tuple[int, ...] = ()
    user: str | None = None
    is_plain: bool = False

    @property
    def count(self) -> int:
        """How many messages were reserved; the ordinals are those below it."""
        return sum(count for _, count in self.runs)

    @property
    def stretches(self) -> list[Ordinals]:
        """What is left, by ordinals."""
        return between(self.gone, self.count) if self.outcome is UnitOutcome.OPEN else []

    @property
    def left(self) -> int:
        """How many messages are left."""
        return sum(end - first for first, end in self.stretches)

    @property
    def behind(self) -> tuple[int, ...]:
        """The connections behind it: its holder and its readers."""
        return (self.holder, *self.readers) if self.holder else self.readers

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left, nor any row."""
        return self.outcome is not UnitOutcome.OPEN and not self.due

    @property
    def held(self) -> int:
        """How many of its messages do not count as waiting, since a connection is behind them."""
        return self.left if self.behind else 0

    @property
    def waiting(self) -> list[int]:
        """How many count as waiting, by priority: what is left with no connection behind it, and what goes back."""
        stretches = [] if self.behind else self.stretches
        return by_priority(self.runs, [*stretches, *((due.first, due.end) for due in self.due if due.returns)])


def between(gone: Sequence[Ordinals], count: int) -> list[Ordinals]:
    """Returns the ordinals below ``count`` that are not gone; ``gone`` is in order and without overlaps."""
    left: list[Ordinals] = []
    at = 0
    for first, end in (*gone, (count, count)):
        if at < first:
            left.append((at, first))
        at = max(at, end)
    return left


def cut(stretches: Iterable[Ordinals], first: int, end: int) -> list[Ordinals]:
    """Returns what of these stretches lies from ``first`` to before ``end``."""
    parts = ((max(a, first), min(b, end)) for a, b in stretches)
    return [(a, b) for a, b in parts if a < b]


def together(*of: Iterable[Ordinals]) -> tuple[Ordinals, ...]:
    """Returns all these stretches in order, those that touch as one."""
    merged: list[Ordinals] = []
    for first, end in sorted(stretch for stretches in of for stretch in stretches):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((first, end))
    return tuple(merged)


def by_priority(runs: Iterable[tuple[int, int]], stretches: Sequence[Ordinals]) -> list[int]:
    """Returns how many messages of these stretches have each priority."""
    counts = [0] * 10
    at = 0
    for priority, count in runs:
        counts[priority] += sum(end - first for first, end in cut(stretches, at, at + count))
        at += count
    return counts


def longer(runs: Sequence[tuple[int, int]], priorities: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Returns the runs with messages of these priorities behind them."""
    extended = list(runs)
    for priority, same in groupby(priorities):
        count = len(list(same))
        if extended and extended[-1][0] == priority:
            extended[-1] = priority, extended[-1][1] + count
        else:
            extended.append((priority, count))
    return tuple(extended)


def without(reservation: Reservation, connection: int) -> Reservation:
    """Returns the reservation without this connection behind it."""
    holder = 0 if reservation.holder == connection else reservation.holder
    return replace(reservation, holder=holder, readers=tuple(r for r in reservation.readers if r != connection))


def offered_anew(reservation: Reservation) -> Reservation:
    """Returns the reservation after its holder is gone: what that holder worked on counts, as far as it is left."""
    counts = {(first, end): times for first, end, times in reservation.deaths}
    if reservation.attempt is not None:
        counts[reservation.attempt] = counts.get(reservation.attempt, 0) + 1
    left = reservation.stretches
    deaths = tuple((first, end, times) for (first, end), times in counts.items() if cut(left, first, end))
    return replace(reservation, offers=reservation.offers + 1, attempt=None, deaths=deaths[-_MOST_DEATHS:])


def ended(reservation: Reservation, parts: Iterable[Due], outcome: UnitOutcome, now: int) -> Reservation:
    """Returns the reservation after these parts are settled or given back; it is over when nothing else was left."""
    parts = list(parts)
    gone = together(reservation.gone, [(part.first, part.end) for part in parts])
    after = replace(reservation, gone=gone, due=(*reservation.due, *parts))
    if after.left:
        return after
    return replace(after, outcome=outcome, ended_ms=now, is_sealed=True, holder=0, readers=())
