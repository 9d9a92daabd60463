"""What may not be, after members of a group and their database were struck again and again under load.

A work is a unit of work of one client through one member: bodies put and got, each body unique, and an outcome that
was answered or, where that was cut, asked for. Moments are seconds of one clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

COMMITTED, BACKED_OUT = "committed", "backed out"
FORGETS_S = 1.0
"""So long at most PostgreSQL takes to keep what nobody waits for (three times wal_writer_delay)."""


@dataclass
class Work:
    """A unit of work. ``linked_s``: its connection was made; ``asked_s``: its end was asked for, 0 if it never was.

    It began at ``began_s``; one that ``was_cut`` was so before ``cut_s``.
    """

    who: str
    member: str
    linked_s: float
    puts: list[tuple[str, str]] = field(default_factory=list)
    gets: list[tuple[str, str, int]] = field(default_factory=list)
    asked_s: float = 0.0
    outcome: str = ""
    was_cut: bool = False
    began_s: float = 0.0
    cut_s: float = 0.0


class Recovery(NamedTuple):
    """A member was recovered by another, which said so behind it."""

    member: str
    at_s: float


class Left(NamedTuple):
    """A message that a last look found, with its backout count."""

    queue: str
    body: str
    backout_count: int


def problems(
    works: Sequence[Work], left: Iterable[Left], recoveries: Iterable[Recovery], crashes: Sequence[float] = ()
) -> list[str]:
    """Everything that could not be, a sentence each. ``crashes`` are the moments when the database was killed."""
    found = list(left)
    return [
        *_unended(works),
        *_of_messages(works, found),
        *_counts(works, found, crashes),
        *_of_the_fenced(works, recoveries),
    ]


def _unended(works: Sequence[Work]) -> Iterator[str]:
    for work in works:
        if work.outcome not in (COMMITTED, BACKED_OUT):
            yield f"no outcome: a unit of {work.who} through {work.member} is {work.outcome or 'open'}"


def _of_messages(works: Sequence[Work], left: Sequence[Left]) -> Iterator[str]:
    put = {body: (queue, work) for work in works for queue, body in work.puts}
    got = Counter(body for work in works if work.outcome == COMMITTED for _, body, _ in work.gets)
    lies = Counter(message.body for message in left)
    for body, (queue, work) in put.items():
        times = got[body] + lies[body]
        if work.outcome == COMMITTED and not times:
            yield f"lost: {body} was committed to {queue}, and is nowhere; {_touched(body, works)}"
        if times > 1:
            lie = f"lies there {lies[body]} times"
            yield f"doubled: {body} was got {got[body]} times, and {lie}; {_touched(body, works)}"
    for work in works:
        for _, body, _ in work.gets:
            if body not in put:
                yield f"phantom: {work.who} got {body}, which nobody put"
            elif put[body][1].outcome == BACKED_OUT and put[body][1] is not work:
                yield f"aborted read: {work.who} got {body}, whose put was backed out"
    for message in left:
        if message.body not in put:
            yield f"phantom: {message.body} lies there, and nobody put it"
        elif put[message.body][1].outcome == BACKED_OUT:
            yield f"not backed out: {message.body} lies there, and its put was backed out"


def _touched(body: str, works: Sequence[Work]) -> str:
    """The units of work that put or got a body, for who looks for what went wrong."""
    return "; ".join(
        f"{did} by {work.who} from {work.began_s:.3f}, asked {work.asked_s:.3f}, {work.outcome}"
        + (f", cut {work.cut_s:.3f}" if work.was_cut else "")
        for did, work in (
            *(("put", work) for work in works if any(put == body for _, put in work.puts)),
            *(("got", work) for work in works if any(got == body for _, got, _ in work.gets)),
        )
    )


def _counts(works: Sequence[Work], left: Sequence[Left], crashes: Sequence[float]) -> Iterator[str]:
    """A backout count is at least how often clients know that they gave the message back.

    But for units that a crash of the database cut: it may forget the last gets, which it had not to keep yet.
    """
    known = [work for work in works if work.outcome == BACKED_OUT and not _was_cut_by(crashes, work)]
    backed_out = Counter(body for work in known for _, body, _ in work.gets)
    last = {body: count for work in works if work.outcome == COMMITTED for _, body, count in work.gets}
    last |= {message.body: message.backout_count for message in left}
    for body, times in backed_out.items():
        if body in last and last[body] < times:
            said = f"was backed out {times} times, and its count is {last[body]}"
            yield f"backout count: {body} {said}; {_touched(body, works)}"


def _was_cut_by(crashes: Sequence[float], work: Work) -> bool:
    return work.was_cut and any(work.began_s <= at_s <= work.cut_s + FORGETS_S for at_s in crashes)


def _of_the_fenced(works: Sequence[Work], recoveries: Iterable[Recovery]) -> Iterator[str]:
    for member, at_s in recoveries:
        for work in works:
            was_asked_late = work.member == member and work.linked_s < at_s < work.asked_s
            if was_asked_late and work.outcome == COMMITTED and not work.was_cut:
                yield (
                    f"commit of a fenced member: {work.who} was answered through {member}, "
                    f"{work.asked_s - at_s:.3f} s behind its recovery"
                )
