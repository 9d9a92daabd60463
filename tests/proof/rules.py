"""Whether a queue manager can have behaved so: every way in which a history is impossible, as a sentence.

No search is needed, since every body is unique. The first word of a sentence is the rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.proof.clients import GROUPED
from tests.proof.history import BACKED_OUT, COMMITTED, UNKNOWN, Event, History, Left, Put, Work

Lying = tuple[str, str]
"""A queue and a body on it."""

SLACK_MS = 5000
"""How long an answer may have been on its way: by so much later than its end a message may be seen."""


class Judged:
    """A history, what was left at its end, and what follows from both."""

    def __init__(self, events: list[Event], left: Left) -> None:
        self.history = history = History(events)
        self.left = left
        self.left_bodies = Counter(body for _, body, _, _ in left.messages)
        self.got = Counter(
            take.body for work in history.works.values() if work.outcome == COMMITTED for take in work.takes
        )
        self.there = self.got + self.left_bodies + Counter(left.reports)
        self.seen = {take.body for take in history.takes}

    def may_vanish(self, put: Put) -> bool:
        """Whether it need not be there: it was volatile when a crash came. What has expired was reported."""
        return put.is_volatile and self.history.crashed_since(put.place)

    def unheard(self) -> Counter[str]:
        """Returns how many messages of each queue may have been got by those who did not hear of it."""
        unheard: Counter[str] = Counter()
        for work in self.history.works.values():
            if work.unheard and (work.is_alone or work.outcome == UNKNOWN):
                unheard[work.unheard[0]] += work.unheard[1]
        return unheard


def problems(events: list[Event], left: Left) -> list[str]:
    """Everything that is wrong with a history at whose end ``left`` was found."""
    judged = Judged(events, left)
    rules = (
        _lost,
        _double,
        _phantom,
        _aborted_read,
        _torn,
        _without_outcome,
        _out_of_order,
        _left_out_of_order,
        _backout_count,
        _expired,
        _value,
        _told,
    )
    return [problem for rule in rules for problem in rule(judged)]


def _lost(judged: Judged) -> Iterator[str]:
    """Acknowledged, and neither got nor left nor reported as expired.

    But a get outside a unit whose answer was lost may have had one.
    """
    missing: dict[str, list[str]] = defaultdict(list)
    for body, put in judged.history.puts.items():
        if put.work.outcome == COMMITTED and not judged.there[body] and not judged.may_vanish(put):
            missing[put.queue].append(body)
    unheard = judged.unheard()
    for work in judged.history.works.values():
        if work.outcome == UNKNOWN:
            unheard.update(take.queue for take in work.takes)
    for queue, bodies in missing.items():
        if len(bodies) > unheard[queue]:
            yield from (f"lost: {body} of {queue} was acknowledged and is neither got nor left" for body in bodies)


def _double(judged: Judged) -> Iterator[str]:
    for body, count in judged.there.items():
        if count > 1:
            yield f"double: {body} is there {count} times"


def _phantom(judged: Judged) -> Iterator[str]:
    puts = judged.history.puts
    for body in judged.seen | set(judged.there):
        if body not in puts:
            yield f"phantom: {body} was never put, or its put was refused"
        elif puts[body].work.outcome == BACKED_OUT and judged.there[body]:
            yield f"phantom: {body} was backed out and is there"


def _aborted_read(judged: Judged) -> Iterator[str]:
    """Seen by whomever, in a unit or not, committed or not: then its put was."""
    for take in judged.history.takes:
        put = judged.history.puts.get(take.body)
        if put is None or (take.work is not None and take.work is put.work):
            continue  # a unit sees its own
        if put.work.outcome == BACKED_OUT:
            yield f"aborted read: {take.body} was seen by {take.who} and its put was backed out"
        elif put.work.outcome == UNKNOWN and not judged.there[take.body] and not judged.may_vanish(put):
            yield f"aborted read: {take.body} was seen by {take.who} and its put never was"


def _torn(judged: Judged) -> Iterator[str]:
    """Of a work whose outcome nobody knows, all happened or nothing. Where it is known, the other rules say more.

    But what it put may have been got by somebody whose answer was lost with its own.
    """
    unheard = judged.unheard()
    for work in judged.history.works.values():
        if work.outcome != UNKNOWN:
            continue
        puts = [(body, put) for body, put in work.puts.items() if not judged.may_vanish(put)]
        gone = Counter(put.queue for body, put in puts if not judged.there[body])
        happened = set()
        if any(judged.there[body] for body, _ in puts):
            happened.add(True)
        if any(count > unheard[queue] for queue, count in gone.items()):
            happened.add(False)
        for take in work.takes:
            put = judged.history.puts.get(take.body)
            if put is not None and take.body not in work.puts and not judged.may_vanish(put):
                happened.add(not judged.there[take.body])
        if len(happened) > 1:
            yield f"torn: of {work.name} only a part happened"


def _without_outcome(judged: Judged) -> Iterator[str]:
    """A unit that was cut is known to be committed or backed out, unless nobody can have heard of it."""
    history = judged.history
    for work in history.works.values():
        if work.outcome in (COMMITTED, BACKED_OUT):
            continue
        nobody_knows = not work.has_done or history.was_cut_by_power(work)
        if work.outcome != UNKNOWN or not (work.is_alone or nobody_knows):
            yield f"no outcome: {work.name} ended as {work.outcome or 'nothing'}"


def _out_of_order(judged: Judged) -> Iterator[str]:
    """A consumer meets one producer's messages of a queue and priority in the order of their puts.

    But for those that were backed out; a power cut may forget that one was taken by a unit it cut. Groups are got one
    after the other, and a consumer may have to leave one to another.
    """
    history = judged.history
    last: dict[tuple[str, str, int, str], Put] = {}
    power_cuts = [crash.place for crash in history.crashes if crash.how == "power"]
    for take in history.takes:
        while power_cuts and power_cuts[0] < take.place:
            power_cuts.pop(0)
            last.clear()
        put = history.puts.get(take.body)
        if put is None or take.count or take.work is None or take.queue != put.queue or put.queue == GROUPED:
            continue
        if history.was_cut_by_power(take.work):
            continue  # its answer may have been read behind the cut
        key = (take.who, put.queue, put.priority, put.producer)
        before = last.get(key)
        if before is not None and put.number <= before.number:
            yield f"out of order: {take.who} saw {put.body} behind {before.body}"
        last[key] = put


def _left_out_of_order(judged: Judged) -> Iterator[str]:
    """What lies on a queue lies there by priority, and a producer's messages by their puts, backed out or not."""
    last_priority: dict[str, int] = {}
    last: dict[tuple[str, int, str], int] = {}
    for queue, body, priority, _ in judged.left.messages:
        if priority > last_priority.get(queue, 9):
            yield f"out of order: {body} of priority {priority} lies on {queue} behind a lower one"
        last_priority[queue] = priority
        producer, _, number = body.partition("#")
        put = judged.history.puts.get(body)
        if put is not None and put.queue != queue:
            continue  # it was put aside, and came here when that happened
        if int(number) <= last.get((queue, priority, producer), -1):
            yield f"out of order: {body} lies on {queue} behind one that was put later"
        last[queue, priority, producer] = int(number)


def _backout_count(judged: Judged) -> Iterator[str]:
    """Each time a message is taken and backed out its count rises by one: no take meets the count of another.

    One that is put aside is a new message there.     A power cut may take back the count of a unit it cut.
    """
    history = judged.history
    counts: dict[Lying, list[int]] = defaultdict(list)
    for work in history.works.values():
        if work.outcome == COMMITTED or not history.was_cut_by_power(work):
            for take in work.takes:
                counts[take.queue, take.body].append(take.count)
    for queue, body, _, count in judged.left.messages:
        before = counts[queue, body]
        if any(count <= other for other in before):
            yield f"backout count: {body} was taken with {max(before)} and is left with {count}"
        before.append(count)
    for (_, body), of_body in counts.items():
        for count, times in Counter(of_body).items():
            if times > 1:
                yield f"backout count: {body} came {times} times with {count}"
    yield from _too_high(judged, {lying: max(of_body) for lying, of_body in counts.items() if of_body})


def _too_high(judged: Judged, highest: dict[Lying, int]) -> Iterator[str]:
    """Each backout of a message was seen, but for takes whose answer was lost: those were seen by nobody."""
    times = Counter((take.queue, take.body) for work in judged.history.works.values() for take in work.takes)
    times.update((queue, body) for queue, body, _, _ in judged.left.messages)
    unheard: Counter[str] = Counter()
    for work in judged.history.works.values():
        if work.unheard:
            unheard[work.unheard[0]] += work.unheard[1]
    excess: Counter[str] = Counter()
    for (queue, body), count in highest.items():
        excess[queue] += max(0, count - (times[queue, body] - 1))
    for queue, count in excess.items():
        if count > unheard[queue]:
            yield f"backout count: on {queue} counts are {count} higher than there were backouts"


def _expired(judged: Judged) -> Iterator[str]:
    """Behind its end a message is neither got nor left, and before it it is not reported."""
    ends = {
        body: put.work.ended_ms + put.expiry_ms
        for body, put in judged.history.puts.items()
        if put.expiry_ms and put.work.outcome == COMMITTED
    }
    for body, end in ends.items():
        if judged.left_bodies[body] and judged.left.ms > end:
            yield f"expired: {body} is there {judged.left.ms - end} ms after its end"
    for body in judged.left.reports:
        put = judged.history.puts.get(body)
        if put is not None and judged.left.until_ms < put.ms + put.expiry_ms:
            yield f"expired: {body} was reported {put.ms + put.expiry_ms - judged.left.until_ms} ms before its end"
    for take in judged.history.takes:
        late = take.ms - ends.get(take.body, take.ms)
        if late > SLACK_MS:
            yield f"expired: {take.body} was seen {late} ms after its end"


def _value(judged: Judged) -> Iterator[str]:
    """A definition or a run reads as it was written last, or as one wrote since of whom nobody knows."""
    writes: dict[str, list[Work]] = defaultdict(list)
    for work in judged.history.works.values():
        for key in work.writes:
            writes[key].append(work)
    for key, works in writes.items():
        may_be: list[object] = [None]
        for work in works:
            if work.outcome == COMMITTED:
                may_be = [work.writes[key]]
            elif work.outcome == UNKNOWN:
                may_be.append(work.writes[key])
        found = judged.left.values.get(key)
        if found not in may_be:
            yield f"value: {key} is {found!r} where it can only be {may_be!r}"


def _told(judged: Judged) -> Iterator[str]:
    """A trigger message of a message that never was would start a program for nothing."""
    for queue, told in judged.history.told.items():
        there = sum(
            put.queue == queue and (put.work.outcome == COMMITTED or bool(judged.there[body]))
            for body, put in judged.history.puts.items()
        )
        if told > there + judged.history.watches:
            yield f"told: {told} trigger messages for {there} messages that ever were on {queue}"
