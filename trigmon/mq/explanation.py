"""What a verdict says to a person: each condition with its evidence, and what came of what happened last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from trigmon.mq.descriptors import date_and_time

SEEN_IN_GROUP = "group"
"""The call of a verdict on what another member of the group did, on the wire."""
NOT_SEEN: Final = "not seen"
"""The answer of a condition of a queue elsewhere that rests on what could not be seen."""


class Explanation(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One condition of a verdict, for a person: ``holds`` is "yes", "NO", "does not apply" or "not yet".

    Of a queue elsewhere it may be "not seen": ``seen`` says then why it could not be seen.
    """

    number: str
    fact: str
    holds: str
    seen: str
    needed: str
    remedy: str = ""

    def lines(self) -> Iterator[str]:
        """Yields the condition as text: the answer first, its evidence and what would help indented below."""
        yield f"{self.number:>4}  {self.holds:<14}  {self.fact}"
        if self.seen:
            what = f"seen {self.seen}" if self.holds != NOT_SEEN else self.seen
            yield f"{'':22}{what}" + (f"; needed {self.needed}" if self.needed else "")
        if self.remedy:
            yield f"{'':22}remedy: {self.remedy}"


class Looked(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The last verdict when a thing of one kind happened to a queue: when, by whom, and what came of it.

    ``happened`` is put, close, change, initiation_put_allowed, get_allowed, monitor_opened, backstop, max_wait,
    reservation_lost or moment; ``call`` the call that brought it about. The same conditions have held and failed
    ``times`` times on end, since ``since_ms``. ``fate`` is what became of a trigger message that its initiation queue
    did not take.
    """

    happened: str
    at_ms: int
    since_ms: int
    times: int
    call: str
    application: str
    pid: int
    user: str
    run_id: str
    fires: bool
    occasion: str
    fails: list[str]
    conditions: list[Explanation]
    msg_id: bytes = b""
    priority: int = -1
    fate: str = ""

    @property
    def headline(self) -> str:
        """What happened, by whom and when, and what came of it."""
        what = EVENT_WORDS[self.happened]
        who = f"{self.application or 'no name'}, pid {self.pid}" if self.pid else self.application or "no name"
        by = f" by {who} ({self.call})" if self.call != SEEN_IN_GROUP else ", seen in the group"
        text = f"{moment(self.at_ms)}  {what}{by}"
        if self.priority >= 0:
            text += f", priority {self.priority}"
        if self.fires:
            made = f"{text}: a trigger message was written (by condition {self.occasion})"
            return f"{made}, but {self.fate}" if self.fate else made
        return f"{text}: NO trigger message, since {not_holding(self.fails)}"

    def lines(self) -> Iterator[str]:
        """Yields the headline, how long it has been so, and the conditions that did not hold with their evidence."""
        yield self.headline
        if self.repeated:
            yield self.repeated
        for condition in self.failing:
            yield from condition.lines()

    @property
    def repeated(self) -> str:
        """How long it has been so; empty when it came once."""
        return f"{'':22}the same {self.times} times on end, since {moment(self.since_ms)}" if self.times > 1 else ""

    @property
    def failing(self) -> list[Explanation]:
        """What did not hold; nothing for a verdict that fired."""
        return [] if self.fires else [condition for condition in self.conditions if condition.holds == "NO"]


EVENT_WORDS: Final = {
    "put": "put",
    "close": "closed after reading",
    "change": "trigger attributes changed",
    "initiation_put_allowed": "puts allowed on the initiation queue",
    "get_allowed": "gets allowed",
    "monitor_opened": "initiation queue opened for input",
    "backstop": "looked at for BACKSTOP",
    "max_wait": "looked at for MAXWAIT",
    "reservation_lost": "reservation ended with its last connection",
    "moment": "moment of a schedule",
}


def moment(ms: int) -> str:
    """Returns milliseconds since 1970 as a person reads them, to the second, in UTC."""
    day, clock = date_and_time(ms)
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:4]}:{clock[4:6]} UTC"


def not_holding(fails: list[str]) -> str:
    """Returns which conditions do not hold, as the end of a sentence."""
    if not fails:
        return "what happened is no occasion for this queue"
    *others, last = fails
    return f"{', '.join(others)} and {last} do not hold" if others else f"{last} does not hold"
