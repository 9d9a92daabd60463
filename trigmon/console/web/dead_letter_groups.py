"""Dead letters grouped by the queue they were meant for and by their error, and what may be done with a group."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from trigmon.client.connection import Connection
from trigmon.console.dead_letter_text import remedy, why
from trigmon.console.error_text import sentence
from trigmon.mq.calls import DeadLetters, DiscardDeadLetters, RetryDeadLetters, Sieve, Status
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Sifted, Values

SLICE = 256
MOST_LOOKED_AT = 4096
"""So many messages of a queue are looked through for its groups."""
_AHEAD = 16


class GroupKey(msgspec.Struct, frozen=True, order=True):
    """What the messages of a group have in common; ``error`` is the first line of their program's reason."""

    q_name: str
    dest: str
    reason: int
    error: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a queue with the same destination and error. ``row`` is that of the newest."""

    key: GroupKey
    reason_name: str
    count: int
    oldest_ms: int
    newest_ms: int
    why: str
    remedy: str
    row: dict[str, Any]


class DeadQueue(msgspec.Struct, frozen=True):
    """A dead-letter queue or backout queue; ``looked_at`` of its ``depth`` messages are in the groups."""

    name: str
    depth: int
    looked_at: int
    groups: list[Group]


class Rehearsed(msgspec.Struct, frozen=True, kw_only=True):
    """What an action would do to the messages of a group that are there now, and died not later than ``newest_ms``."""

    what: str
    key: GroupKey
    to: str
    count: int
    newest_ms: int
    goes: dict[str, int]
    stays: dict[str, int]

    @property
    def purpose(self) -> str:
        """What the ticket of this rehearsal proves."""
        return msgspec.json.encode([self.what, self.key, self.to, self.count, self.newest_ms]).decode()


def dead_queues(qm: Connection) -> list[str]:
    """Returns the names of the dead-letter queue, and of backout queues that hold messages."""
    values = qm.ask(Status(), Values).values
    found = [each["name"] for each in values["attention"] if each["kind"] in ("dead_letters", "put_aside")]
    dead: str = values["dead_letter_q_name"]
    return list(dict.fromkeys([*([dead] if dead else []), *found]))


def read_dead_queue(qm: Connection, q_name: str) -> DeadQueue:
    """Reads the groups of a queue, the largest first. Raises UnknownObjectName."""
    by_key: dict[GroupKey, list[dict[str, Any]]] = {}
    rows, depth, looked_at = _listed(qm, q_name)
    for row in rows:
        by_key.setdefault(key_of(row), []).append(row)
    groups = [_group(key, of_key) for key, of_key in by_key.items()]
    return DeadQueue(q_name, depth, looked_at, sorted(groups, key=lambda group: (-group.count, group.key)))


def key_of(row: dict[str, Any]) -> GroupKey:
    """Returns the group of a dead letter."""
    error = str(row["said"]).partition("\n")[0][:200]
    return GroupKey(row["q_name"], row["dest_q_name"], row["reason"], error)


def _group(key: GroupKey, rows: list[dict[str, Any]]) -> Group:
    newest = max(rows, key=lambda row: int(row["dead_ms"]))
    return Group(
        key=key,
        reason_name=newest["reason_name"],
        count=len(rows),
        oldest_ms=min(row["dead_ms"] for row in rows),
        newest_ms=newest["dead_ms"],
        why=why(newest),
        remedy=remedy(newest).partition("; then: ")[0],
        row=newest,
    )


def _listed(qm: Connection, q_name: str, where: Sieve | None = None) -> tuple[list[dict[str, Any]], int, int]:
    """Returns the dead letters of a queue, its depth, and how many messages were looked at."""
    rows: list[dict[str, Any]] = []
    after: list[int] = []
    depth, looked_at = -1, 0
    while looked_at < MOST_LOOKED_AT:
        call = DeadLetters(q_name=q_name, where=where or Sieve(), after=after, limit=SLICE)
        sifted = qm.ask(call, Sifted)
        rows += sifted.rows
        depth = sifted.depth if depth < 0 else depth
        looked_at += sifted.looked_at
        after = sifted.after
        if not sifted.more:
            break
    return rows, depth, looked_at


def sample(qm: Connection, row: dict[str, Any]) -> dict[str, Any] | None:
    """Returns a dead letter with its data; None where it has gone meanwhile."""
    call = DeadLetters(q_name=row["q_name"], where=Sieve(msg_id=row["msg_id"]), limit=1, with_data=True)
    rows = qm.ask(call, Sifted).rows
    return rows[0] if rows else None


def rehearse_group(qm: Connection, what: str, key: GroupKey, to: str, until_ms: int = 0) -> Rehearsed:
    """Returns what ``retry`` or ``discard`` would do to a group; nothing is changed."""
    rows = _of_group(qm, key, until_ms)
    goes = Counter(to or row["return_q_name"] for row in rows) if what == "retry" else Counter()
    stays = (
        Counter(row["why_not"] for row in rows if not (to or row["return_q_name"])) if what == "retry" else Counter()
    )
    return Rehearsed(
        what=what,
        key=key,
        to=to,
        count=len(rows),
        newest_ms=max((row["dead_ms"] for row in rows), default=0),
        goes={name: count for name, count in goes.items() if name},
        stays=dict(stays),
    )


def _of_group(qm: Connection, key: GroupKey, until_ms: int) -> list[dict[str, Any]]:
    rows, _, _ = _listed(qm, key.q_name, Sieve(reason=key.reason, dest_q_name=key.dest))
    return [row for row in rows if key_of(row) == key and (not until_ms or row["dead_ms"] <= until_ms)]


def perform(qm: Connection, rehearsed: Rehearsed) -> tuple[int, list[str]]:
    """Returns or discards the messages that were rehearsed, no more; how many it were, and why others stay."""
    rows = _of_group(qm, rehearsed.key, rehearsed.newest_ms)[: rehearsed.count]
    key = rehearsed.key
    calls: list[RetryDeadLetters | DiscardDeadLetters] = []
    # Several messages may have one id, that an application gave them.
    for msg_id, count in Counter(row["msg_id"] for row in rows).items():
        where = Sieve(reason=key.reason, dest_q_name=key.dest, msg_id=msg_id)
        if rehearsed.what == "retry":
            calls.append(RetryDeadLetters(q_name=key.q_name, where=where, limit=count, to_q_name=rehearsed.to))
        else:
            calls.append(DiscardDeadLetters(q_name=key.q_name, where=where, limit=count))
    done, refused = 0, Counter[str]()
    for reply in qm.pipeline(calls, window=_AHEAD):
        assert isinstance(reply, Sifted)
        done += reply.count
        for row in reply.refused:
            text = sentence(MQError.of(row["reason"], row["about"])) if row["to_q_name"] else str(row["about"])
            refused[text] += row["count"]
    return done, [f"{count} stay: {text}" for text, count in refused.items()]
