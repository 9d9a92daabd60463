"""Management of dead letters and of messages put aside: an operator lists, returns and discards them.

A queue is looked through in slices, in get order, wherever its messages were put by; no program needs to have it open.
A message goes back to the queue that its MQDLH names. What lies on a backout queue has none: it goes to the one queue
whose BOQNAME leads there. The reason of a rejected message stands in a header of its own, and goes as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from trigmon.mq.calls import AnySift, Call, DeadLetters, DiscardDeadLetters, RetryDeadLetters, Sieve
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, DeadLetterHeader, MessageDescriptor, moment_of, unpack_dlh
from trigmon.mq.enums import Feedback, Persistence, word
from trigmon.mq.errors import DlhError, MQError, OptionsError, QWrongType, UnknownObjectName
from trigmon.mq.reasons import Reason
from trigmon.mq.rejection import Rejection, without_rejection
from trigmon.mq.replies import Refused, Reply, Sifted
from trigmon.rules.dead_letters.backout_requeue import aside_ms, backouts_before, moved, unmarked
from trigmon.rules.messages.reports import expiration_reports
from trigmon.rules.model.changes import AnyChange, RemoveMessage, met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WorldFacts
from trigmon.rules.model.internal_calls import SendBack
from trigmon.rules.model.queue_facts import QueueFacts, check_alive
from trigmon.rules.model.stored_messages import SLICE, Cursor, Found, Selection, StoredMessage

_LARGEST = 2**63 - 1


class DeadMessage(msgspec.Struct, frozen=True):
    """A message with the headers that it lies behind, those it has, and its data without them.

    ``descriptor`` is that of the data, as it was before it lay here but for the backout count, which is 0.
    """

    message: StoredMessage
    header: DeadLetterHeader | None
    rejection: Rejection | None
    descriptor: MessageDescriptor
    data: bytes

    @property
    def reason(self) -> int:
        """Why it lies here, 0 where nothing is recorded."""
        if self.header is not None:
            return self.header.reason
        is_aside = backouts_before(self.message.descriptor) is not None
        return Reason.BACKOUT_THRESHOLD_REACHED.value if is_aside else 0

    @property
    def dead_ms(self) -> int:
        """When it came here or, where that is not recorded, when it was put."""
        if self.rejection is not None:
            return self.rejection.ms
        written_ms = moment_of(self.header.put_date, self.header.put_time) if self.header is not None else 0
        return written_ms or aside_ms(self.message.descriptor) or self.message.descriptor.put_ms


class WayBack(msgspec.Struct, frozen=True):
    """The queue a message is to go back to, or why there is none."""

    q_name: str = ""
    reason: Reason = Reason.NONE
    about: str = ""


def look_for_dead_letters(call: AnySift, facts: Facts, now: int) -> Selection:
    """Selects the next slice; what fits is seen when it is read, but for a message id, which has an index."""
    queue = _queue(call, facts)
    after = None
    if call.after:
        if len(call.after) != 2 or not all(0 <= number <= _LARGEST for number in call.after):
            raise OptionsError(f"after {call.after}: the value of the last answer")
        after = Cursor(*call.after)
    return Selection(queue.definition.name, now, limit=SLICE, after=after, msg_id=call.where.msg_id or None)


def decide_dead_letters(call: DeadLetters, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists what fits."""
    chosen, reply, discards, reports = _sifted(call, facts, found, now)
    rows = [_row(dead, _way_back(dead, facts), now) for dead in chosen]
    if call.with_data:
        rows = [row | _all_of(dead) for row, dead in zip(rows, chosen, strict=True)]
    return Decision(replace(reply, rows=rows), discards, reports)


def decide_retry(call: RetryDeadLetters, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Sends back what fits, each in a step of its own: one that is refused stays, and the others go."""
    chosen, reply, discards, reports = _sifted(call, facts, found, now)
    ways = [WayBack(call.to_q_name) if call.to_q_name else _way_back(dead, facts) for dead in chosen]
    internal_calls: list[Call] = [
        SendBack(message=dead.message, to_q_name=way.q_name, descriptor=dead.descriptor, data=dead.data)
        for dead, way in zip(chosen, ways, strict=True)
        if way.q_name
    ]
    lost = [way for way in ways if not way.q_name]
    targets = [way.q_name for way in ways if way.q_name]

    def gather(replies: list[Reply]) -> Reply:
        no = [
            WayBack(to_q_name, Reason(answer.reason), answer.about)
            for to_q_name, answer in zip(targets, replies, strict=False)
            if isinstance(answer, Refused)
        ]
        return replace(reply, count=len(targets) - len(no), refused=_refusals(lost + no))

    return Decision(
        replace(reply, count=0, refused=_refusals(lost)), discards, [*internal_calls, *reports], gather=gather
    )


def decide_send_back(call: SendBack, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Moves a message off the one queue and onto the other, or neither."""
    try:
        return moved(call.message, call.to_q_name, call.descriptor, call.data, facts, now, ids)
    except MQError as error:
        return Decision(Refused(reason=int(error.reason), about=error.about))


def decide_discard(call: DiscardDeadLetters, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Deletes what fits."""
    chosen, reply, discards, reports = _sifted(call, facts, found, now)
    return Decision(reply, [*discards, *(RemoveMessage(dead.message) for dead in chosen)], reports)


def _queue(call: AnySift, facts: Facts) -> QueueFacts:
    """Returns the queue that is named, or DEADQ, itself or behind an alias."""
    name = call.q_name or facts.q_mgr.dead_letter_q_name
    if not name:
        raise UnknownObjectName("DEADQ( ): the queue manager names no dead-letter queue")
    if facts.queue is None or facts.remote is not None:
        if facts.remote is not None or facts.model is not None:
            raise QWrongType(f"QLOCAL({name})")
        raise UnknownObjectName(f"QLOCAL({name})")
    check_alive(facts.queue)
    return facts.queue


def _sifted(
    call: AnySift, facts: WorldFacts, found: Found | None, now: int
) -> tuple[list[DeadMessage], Sifted, list[AnyChange], list[Call]]:
    """Returns those of a slice that fit, at most so many, with the answer's rows, the discards and the reports."""
    queue = _queue(call, facts)
    found = found or Found()
    limit = max(1, min(call.limit, SLICE))
    chosen: list[DeadMessage] = []
    after, looked_at = call.after, 0
    for message in found.messages:
        dead = dead_message(message)
        if _fits(dead, call.where, facts):
            if len(chosen) == limit:
                break
            chosen.append(dead)
        after, looked_at = [message.priority, message.number], looked_at + 1
    discards = met_on_the_way(found)
    reply = Sifted(
        q_name=queue.definition.name,
        count=len(chosen),
        looked_at=looked_at,
        depth=queue.depth,
        after=after,
        more=bool(found.messages or discards),
    )
    return chosen, reply, discards, expiration_reports(found.expired, facts, now)


def dead_message(message: StoredMessage) -> DeadMessage:
    """Returns a message with its headers taken apart."""
    outer, data = message.descriptor, message.data
    descriptor, header = replace(unmarked(outer), backout_count=0), None
    if outer.format.rstrip() == FORMAT_DEAD_LETTER:
        try:
            header, data = unpack_dlh(data, outer.encoding)
        except DlhError:
            return DeadMessage(message, None, None, descriptor, data)  # it only says that it has a header
        of_data = {"format": header.format, "encoding": header.encoding}
        descriptor = replace(descriptor, **of_data, coded_char_set_id=header.coded_char_set_id)
    if backouts_before(outer) is None:
        return DeadMessage(message, header, None, descriptor, data)
    descriptor, data, rejection = without_rejection(descriptor, data)
    return DeadMessage(message, header, rejection, descriptor, data)


def _fits(dead: DeadMessage, where: Sieve, facts: WorldFacts) -> bool:
    if where.reason and dead.reason != where.reason:
        return False
    if where.since_ms and dead.dead_ms < where.since_ms:
        return False
    if where.before_ms and dead.dead_ms >= where.before_ms:
        return False
    return not where.dest_q_name or _dest(dead, facts) == where.dest_q_name


def _dest(dead: DeadMessage, facts: WorldFacts) -> str:
    """Returns the queue it was meant for, of whichever queue manager."""
    return dead.header.dest_q_name if dead.header is not None else _way_back(dead, facts).q_name


def _way_back(dead: DeadMessage, facts: WorldFacts) -> WayBack:
    header = dead.header
    if header is not None:
        if header.dest_q_mgr_name not in ("", facts.q_mgr.name):
            about = f"it was meant for {header.dest_q_name} of queue manager {header.dest_q_mgr_name}"
            return WayBack("", Reason.UNKNOWN_REMOTE_Q_MGR, about)
        if header.dest_q_name:
            return WayBack(header.dest_q_name)
        return WayBack("", Reason.DLH_ERROR, "its header names no queue")
    name = dead.message.q_name
    sources = _sources(name, facts)
    if len(sources) == 1:
        return WayBack(sources[0])
    if sources:
        shown = " and ".join(sources[:3]) + (" and others" if len(sources) > 3 else "")
        return WayBack("", Reason.OBJECT_NOT_UNIQUE, f"{shown} have BOQNAME({name})")
    return WayBack("", Reason.DLH_ERROR, f"it has no header, and no queue has BOQNAME({name})")


def _sources(q_name: str, facts: WorldFacts) -> list[str]:
    """Returns the queues whose BOQNAME leads to this one, by name."""
    names = {q_name, *(alias.name for alias in facts.world.aliases if alias.base_q_name == q_name)}
    definitions = (queue.definition for queue in facts.world.queues if not queue.is_deleted)
    return sorted(d.name for d in definitions if d.backout_requeue_q_name in names and d.name != q_name)


def _row(dead: DeadMessage, way: WayBack, now: int) -> dict[str, Any]:
    message, header = dead.message, dead.header
    descriptor = message.descriptor
    return {
        "msg_id": descriptor.msg_id,
        "q_name": message.q_name,
        "dead_ms": dead.dead_ms,
        "reason": dead.reason,
        "reason_name": name_of(dead.reason),
        "said": dead.rejection.why if dead.rejection is not None else "",
        "dest_q_name": header.dest_q_name if header is not None else way.q_name,
        "dest_q_mgr_name": header.dest_q_mgr_name if header is not None else "",
        "return_q_name": way.q_name,
        "why_not": way.about,
        "put_ms": descriptor.put_ms,
        "put_appl_name": descriptor.put_appl_name,
        "user_identifier": descriptor.user_identifier,
        "backout_count": backouts_before(descriptor) or 0,
        "priority": descriptor.priority,
        "persistence": word(Persistence(descriptor.persistence)),
        "expiry_s": (message.expires_ms - now) // 100 / 10 if message.expires_ms else None,
        "format": dead.descriptor.format,
        "length": len(dead.data),
    }


def _all_of(dead: DeadMessage) -> dict[str, Any]:
    """Returns what is shown of one message alone: the header, the descriptor and the data behind the header."""
    header = asdict(dead.header) if dead.header is not None else None
    return {"dead_letter": header, "descriptor": asdict(dead.descriptor), "data": dead.data}


def _refusals(refusals: list[WayBack]) -> list[dict[str, Any]]:
    """Returns refusals by reason and queue, with the text of the first."""
    by_queue: dict[tuple[int, str], dict[str, Any]] = {}
    for way in refusals:
        row = by_queue.setdefault(
            (int(way.reason), way.q_name),
            {"reason": int(way.reason), "reason_name": way.reason.name, "to_q_name": way.q_name, "about": way.about}
            | {"count": 0},
        )
        row["count"] += 1
    return list(by_queue.values())


_NAMES: tuple[Callable[[int], Any], ...] = (Reason, Feedback)


def name_of(reason: int) -> str:
    """Returns the name of a reason or a feedback code, "" for what is neither."""
    for kind in _NAMES:
        try:
            return str(kind(reason).name) if reason else ""
        except ValueError:
            continue
    return ""
