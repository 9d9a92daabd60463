"""What clients tried, were answered and saw, and whether a queue manager can have behaved so.

Every body is unique, so the check is one pass. An event is one of

- ``put``: before a unit of puts (or a single put): ``unit``, ``bodies``;
- ``put-end``: ``unit``, ``outcome``: committed, backed out, or unknown (a single put whose answer never came);
- ``seen``: a get returned ``body`` with ``count`` as its backout count, whatever became of it;
- ``get``: before the commit of a unit of gets: ``unit``, ``bodies``;
- ``get-end``: ``unit``, ``outcome``.

and has ``at`` (nanoseconds of the machine's monotonic clock) and ``who``.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict

COMMITTED, BACKED_OUT, UNKNOWN = "committed", "backed out", "unknown"


class Ledger:
    """A client's own file of events; a line is with the kernel before the call it speaks of is made."""

    def __init__(self, path, who):
        self.file = path.open("a", buffering=1)
        self.who = who

    def note(self, event, **what):
        """Writes one event."""
        self.file.write(json.dumps({"at": time.monotonic_ns(), "who": self.who, "event": event} | what) + "\n")


def read(paths):
    """The events of several ledgers, in the order of time."""
    lines = (line for path in paths for line in path.read_text().splitlines())
    return sorted((json.loads(line) for line in lines), key=lambda event: event["at"])


def problems(events, left):
    """Every way in which this history and the bodies that were left at its end are impossible, as sentences."""
    puts = {event["unit"]: set(event["bodies"]) for event in events if event["event"] == "put"}
    put_outcomes = {event["unit"]: event["outcome"] for event in events if event["event"] == "put-end"}
    gets = {event["unit"]: event["bodies"] for event in events if event["event"] == "get"}
    got = Counter(
        body
        for event in events
        if event["event"] == "get-end" and event["outcome"] == COMMITTED
        for body in gets[event["unit"]]
    )
    seen = {event["body"] for event in events if event["event"] == "seen"}
    there = got + Counter(left)
    tried = set().union(*puts.values())
    acknowledged = {body for unit, bodies in puts.items() if put_outcomes.get(unit) == COMMITTED for body in bodies}
    refused = {body for unit, bodies in puts.items() if put_outcomes.get(unit) == BACKED_OUT for body in bodies}
    everything = seen | set(there)
    return [
        *(f"lost: {body} was acknowledged and is neither got nor left" for body in sorted(acknowledged - set(there))),
        *(f"double: {body} is there {count} times" for body, count in sorted(there.items()) if count > 1),
        *(f"phantom: {body} was never put" for body in sorted(everything - tried)),
        *(f"phantom: {body} was backed out and is there" for body in sorted(set(there) & refused)),
        *(f"aborted read: {body} was seen and its put never was" for body in sorted(seen - set(there) - refused)),
        *(f"aborted read: {body} was seen and its put was backed out" for body in sorted(seen & refused)),
        *_without_outcome(events, puts, put_outcomes, gets),
        *_out_of_order(events),
        *_falling_counts(events),
    ]


def _without_outcome(events, puts, put_outcomes, gets):
    """A cut commit must be answered by its outcome; only a put outside a unit may stay unknown."""
    get_outcomes = {event["unit"]: event["outcome"] for event in events if event["event"] == "get-end"}
    for unit in puts:
        outcome = put_outcomes.get(unit)
        if outcome not in (COMMITTED, BACKED_OUT) and not (outcome == UNKNOWN and len(puts[unit]) == 1):
            yield f"no outcome: the puts of {unit} ended as {outcome}"
    for unit in gets:
        if get_outcomes.get(unit) not in (COMMITTED, BACKED_OUT):
            yield f"no outcome: the gets of {unit} ended as {get_outcomes.get(unit)}"


def _out_of_order(events):
    """A consumer meets the messages of one producer in the order of their puts, but for those that were backed out."""
    last = defaultdict(lambda: -1)
    for event in events:
        if event["event"] == "seen" and event["count"] == 0:
            producer, _, number = event["body"].partition("#")
            if int(number) <= last[event["who"], producer]:
                yield f"out of order: {event['who']} saw {event['body']} behind {last[event['who'], producer]}"
            last[event["who"], producer] = int(number)


def _falling_counts(events):
    """A backout count never falls, and is above 0 for a message that was seen before."""
    last = {}
    for event in events:
        if event["event"] == "seen":
            if event["count"] <= last.get(event["body"], -1):
                yield f"backout count: {event['body']} came with {event['count']} behind {last[event['body']]}"
            last[event["body"]] = event["count"]
