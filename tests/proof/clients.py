"""Clients: generators that yield what they want and are sent what came of it. Whoever plays them is their network.

A client yields a call and is sent its reply; a list of calls, sent ahead of their replies, and is sent the replies;
``LINK`` for a new connection, and is sent its client id; ``CUT`` to end its link without a word; a :class:`Pause`.
Where the link is lost, :class:`Gone` is thrown in. It notes what it tries before it does, and what it hears at once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from tests.proof.history import BACKED_OUT, COMMITTED, UNKNOWN
from trigmon.mq.calls import Backout, Call, Commit, Disconnect, Get, GetMany, Open, Outcome, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption, Persistence, ReportOption, UnitOutcome
from trigmon.mq.replies import Opened, OutcomeWas, Refused, Reply, WasGot, WereGot

LINK, CUT = "link", "cut"
QUEUES = ("A", "B")
"""Plain queues."""
COUNTED = "E"
"""A queue of trigger type EVERY."""
GROUPED = "G"
"""A queue of groups, put and got whole and in order."""
BATCHED = "R"
"""A queue of which each client reserves batches, under its own name as the consumer's."""
POISONED, ASIDE = "P", "P.ASIDE"
"""A queue whose messages the queue manager puts onto the other when they were backed out often enough."""
REPORTS = "REPORTS"
"""Where it is told that a message has expired, with its body; nobody reads there."""
LOADED = (*QUEUES, COUNTED, GROUPED, BATCHED, POISONED, ASIDE)
SYNCPOINT = int(GetOption.SYNCPOINT)
OUTCOMES = {UnitOutcome.COMMITTED: COMMITTED, UnitOutcome.BACKED_OUT: BACKED_OUT, UnitOutcome.UNKNOWN: UNKNOWN}
ASK_AGAIN_MS = 20
PRIORITIES = (0, 4, 4, 9)
BACKED_OUT_INSTEAD = 2003

Talk = Generator[Any, Any, Any]


class Pause(NamedTuple):
    """A client does nothing for so long."""

    ms: int


class Gone(Exception):  # noqa: N818 - it says what is so
    """The link is lost."""


@dataclass
class Doing:
    """The work a client is at: a unit of work by its number, or one call alone (0)."""

    name: str
    unit: int
    client_id: str
    has_asked: bool = False


class Client:
    """One program. ``note`` takes its events, ``steps`` are what it may do, ``goes_on`` says whether it still works."""

    def __init__(
        self, who: str, chance: random.Random, note: Callable[..., None], steps: Iterable, goes_on: Callable[[], bool]
    ) -> None:
        self.who = who
        self.chance = chance
        self.note = note
        self.steps = list(steps)
        self.goes_on = goes_on
        self.puts_to = self.gets_from = (*QUEUES, COUNTED, BATCHED, POISONED)
        self.client_id = ""
        self.unit = 1
        self.doing: Doing | None = None
        self.runs: list[str] = []
        self.batches: dict[int, dict[int, str]] = {}  # by reservation what is left of it
        self.attempts: Counter[int] = Counter()  # by reservation how often it was said what is worked on alone
        self.ended_units = 0
        self.played: Counter[str] = Counter()
        self._handles: dict[tuple[str, int], int] = {}
        self._works = count()
        self._bodies = count()
        self._values = count()

    # -- its life -----------------------------------------------------------------------------------------

    def life(self) -> Talk:
        """One step after another, and a new link after each loss."""
        yield from self.link()
        while self.goes_on():
            step = self.chance.choices(self.steps, [step.weight for step in self.steps])[0]
            try:
                yield from step.play(self)
                self.played[step.name] += 1
            except Gone:
                yield from self.recover()
        with suppress(Gone):
            yield Disconnect()

    def link(self) -> Talk:
        """Connects, however long it takes."""
        while True:
            try:
                self.client_id = yield LINK
            except Gone:
                continue
            self.unit = 1
            self._handles.clear()
            return

    def recover(self) -> Talk:
        """A new link, and the end of the work that was cut: a unit whose end was asked for has an outcome."""
        doing, self.doing = self.doing, None
        if doing is not None and not doing.has_asked:
            self.ended(doing, BACKED_OUT)
            doing = None
        yield from self.link()
        if doing is None:
            return
        outcome = UNKNOWN
        if doing.unit:
            outcome = yield from self.fate(doing)
        self.ended(doing, outcome, was_cut=True)

    def fate(self, doing: Doing) -> Talk:
        """Asks what became of a unit until it is over."""
        while True:
            try:
                reply = yield Outcome(client_id=doing.client_id, unit=doing.unit)
                if isinstance(reply, OutcomeWas) and reply.outcome in OUTCOMES:
                    return OUTCOMES[reply.outcome]
                yield Pause(ASK_AGAIN_MS)  # it may still come
            except Gone:
                yield from self.link()

    # -- works --------------------------------------------------------------------------------------------

    def begin(self) -> Doing:
        """A unit of work begins."""
        self.doing = Doing(f"{self.who}/{next(self._works)}", self.unit, self.client_id)
        return self.doing

    def alone(self) -> Doing:
        """One call begins that is outside any unit."""
        self.doing = Doing(f"{self.who}/{next(self._works)}", 0, self.client_id)
        self.asks_end(self.doing)
        return self.doing

    def asks_end(self, doing: Doing) -> None:
        """Notes that from now on the work may end."""
        doing.has_asked = True
        self.note("ends", work=doing.name, unit=doing.unit, client_id=doing.client_id, alone=doing.unit == 0)

    def ended(self, doing: Doing, outcome: str, *, was_cut: bool = False) -> None:
        """Notes what became of the work."""
        self.note("ended", work=doing.name, outcome=outcome, was_cut=was_cut)
        self.ended_units += 1

    def finish(self, doing: Doing, reply: Reply) -> None:
        """The call alone was answered: done, or refused and nothing was done."""
        self.doing = None
        self.ended(doing, BACKED_OUT if isinstance(reply, Refused) else COMMITTED)

    def end(self, doing: Doing, call: type[Commit] | type[Backout]) -> Talk:
        """Commits or backs out."""
        self.asks_end(doing)
        reply = yield call(unit=doing.unit)
        self.settle(doing, call, reply)

    def settle(self, doing: Doing, call: type[Call], reply: Reply) -> None:
        """The end of the unit was answered."""
        was_backed_out = isinstance(reply, Refused) and reply.reason == BACKED_OUT_INSTEAD
        if isinstance(reply, Refused) and not was_backed_out:
            raise AssertionError(f"{self.who}: {call.__name__} of unit {doing.unit} was answered {reply}")
        self.unit += 1
        self.doing = None
        self.ended(doing, BACKED_OUT if was_backed_out or call is Backout else COMMITTED)

    def end_somehow(self, doing: Doing) -> Talk:
        """Mostly commits; backs out, or loses its link."""
        end = self.chance.random()
        if end < 0.05:
            yield CUT
        yield from self.end(doing, Backout if end < 0.25 else Commit)

    # -- calls --------------------------------------------------------------------------------------------

    def handle(self, q_name: str, options: int = int(OpenOption.INPUT_SHARED | OpenOption.BROWSE)) -> Talk:
        """A handle on a queue, opened at its first use."""
        key = (q_name, options)
        if key not in self._handles:
            reply = yield Open(object_name=q_name, options=options)
            if not isinstance(reply, Opened):
                raise AssertionError(f"{self.who}: open {q_name} was answered {reply}")
            self._handles[key] = reply.handle
        return self._handles[key]

    def a_put(
        self, doing: Doing, q_name: str, *, kind: str = "", expiry_ms: int = 0, priority: int = -1
    ) -> tuple[str, Put]:
        """A put of a new body, noted: the body and the call."""
        body = f"{self.who}#{next(self._bodies)}"
        priority = self.chance.choice(PRIORITIES) if priority < 0 else priority
        self.note("put", work=doing.name, body=body, queue=q_name, priority=priority, kind=kind, expiry_ms=expiry_ms)
        descriptor = MessageDescriptor(
            priority=priority,
            persistence=int(Persistence.NOT_PERSISTENT if kind == "volatile" else Persistence.PERSISTENT),
            expiry=expiry_ms // 100 or -1,
            report=int(ReportOption.EXPIRATION_WITH_FULL_DATA) if expiry_ms else 0,
            reply_to_q=REPORTS if expiry_ms else "",
        )
        options = SYNCPOINT if doing.unit else 0
        return body, Put(q_name=q_name, descriptor=descriptor, data=body.encode(), options=options, unit=doing.unit)

    def put(self, doing: Doing, q_name: str, **what: Any) -> Talk:
        """One put; the reply."""
        body, call = self.a_put(doing, q_name, **what)
        reply = yield call
        self.heard_put(doing, body, reply)
        return reply

    def heard_put(self, doing: Doing, body: str, reply: Reply) -> None:
        """Notes the answer to a put."""
        if isinstance(reply, Refused):
            self.note("refused", work=doing.name, body=body)
        else:
            self.note("heard", work=doing.name)

    def get(self, doing: Doing, q_name: str, *, n: int = 0, wait_ms: int = 0, more: int = 0) -> Talk:
        """One get, or up to ``n``, with ``more`` options; what it returned."""
        handle = yield from self.handle(q_name)
        options = (SYNCPOINT if doing.unit else 0) | (int(GetOption.WAIT) if wait_ms else 0) | more
        self.note("asks", work=doing.name, queue=q_name, n=max(1, n))
        if n:
            reply = yield GetMany(handle=handle, count=n, options=options, wait_interval_ms=wait_ms, unit=doing.unit)
        else:
            reply = yield Get(handle=handle, options=options, wait_interval_ms=wait_ms, unit=doing.unit)
        messages = reply.messages if isinstance(reply, WereGot) else [reply] if isinstance(reply, WasGot) else []
        for message in messages:
            self.saw(doing.name, q_name, message)
        self.note("heard", work=doing.name)
        return messages

    def saw(self, work: str, q_name: str, message: WasGot) -> None:
        """Notes a message that was returned."""
        body, times = message.data.decode(), message.descriptor.backout_count
        self.note("seen", work=work, queue=q_name, body=body, count=times)

    def write(self, doing: Doing, key: str, value: object) -> None:
        """Notes that a value is about to be written."""
        self.note("write", work=doing.name, key=key, value=value)

    def new_value(self) -> str:
        """A text that nobody wrote before."""
        return f"{self.who}={next(self._values)}"
