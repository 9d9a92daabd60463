"""Reservations: a fixed batch of messages that a consumer reads as often as it has to, and settles when it is done.

For a job whose work is planned at one place and done at others, and repeated: a connection reserves, any others read,
and what was reserved stays the same batch, hidden from every getter, whichever program ends. It is a unit of work that
no connection's end and no restart backs out; MAXUMSGS does not count it, expiry does not touch it, and what is reserved
survives a restart even if it is not persistent. While a connection holds it, it does not count, as what was got and
not committed does not; else it counts as waiting, for its consumer alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from trigmon.mq.calls import Attempt, Call, ReadReserved, Release, Reservations, Reserve, Settle
from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import BackoutRequeue, DefinitionType, Inhibit, OpenOption, UnitOutcome
from trigmon.mq.errors import (
    AttrValueError,
    BackedOut,
    CommandFailed,
    FunctionNotSupported,
    GetInhibited,
    HobjError,
    NotAuthorized,
    NotOpenForInput,
    ObjectDamaged,
    ObjectInUse,
    OptionsError,
    QTypeError,
    SyncpointLimitReached,
    UnitOfWorkNotStarted,
    UnknownObjectName,
)
from trigmon.mq.names import matches
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Counted, Done, Listing, Refused, Reply, Reserved, Settled, WereReserved
from trigmon.rules.messages.get import MOST_BYTES, MOST_MESSAGES, given
from trigmon.rules.messages.reports import delivery_report, expiration_reports
from trigmon.rules.model.access import check_may_end, check_reservations, is_of
from trigmon.rules.model.changes import (
    AnyChange,
    ReserveMessages,
    ReturnReserved,
    SetReservation,
    SettleReserved,
    met_on_the_way,
)
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import SweepDue
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.group_position import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.internal_calls import LeaveReservation, PutOff, Seal, Sweep, TakeIn
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Due, Reservation, cut, ended, longer, offered_anew, without
from trigmon.rules.model.resolve_name import check_alive
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, StoredMessage
from trigmon.rules.triggers.effects import trigger

LARGEST = 10_000_000
"""Messages of a reservation at most."""
LONGEST_NAME = 256
MOST_ROWS = 256
"""So many reservations are shown at once at most: each may say a thousand stretches."""
MOST_STRETCHES = 1000
"""Into so many pieces what is left may fall at most: each step writes all of them down."""
_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value
_MOST_OF_A_GROUP = 64 << 20


# -- making one ---------------------------------------------------------------------------------------------


def look_for_reserve(call: Reserve, facts: Facts, now: int) -> Selection | None:
    """Checks the call, and selects the messages that come next, where the reservation is still to be made.

    Raises ObjectInUse (2042) while another connection holds it, ResourceProblem (2102) for one more than its user may
    have, and what a get raises.
    """
    handle = _checked(call, facts)
    if facts.queue is not None and facts.queue.shared is not None:
        raise FunctionNotSupported(
            f"QLOCAL({handle.q_name}) is shared in {facts.group}, and only what is on a queue manager's own queue can "
            "be reserved, as Spark does to drain it: put to a queue of QSGDISP(QMGR) what is to be drained, or get "
            "from this one under syncpoint"
        )
    own = _own(call, facts)
    if own is not None and own.holder not in (0, facts.connection.connection):
        raise ObjectInUse(f"{own.q_name}: a reservation of {own.consumer} is held by another connection of {own.by}")
    if own is None:
        check_reservations(facts)
    elif own.is_sealed:
        return None
    wanted = own or _new(call, facts, 0, now)
    whole = Whole.GROUP if wanted.whole_groups else Whole.NOTHING
    limit = max(1, min(_slice(wanted), wanted.max_messages - wanted.count))
    return Selection(handle.q_name, now, limit=limit, handle=handle.handle, starts=whole, whole=whole)


def decide_reserve(call: Reserve, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Reserves the consumer's batch: the one it has, offered anew to another connection, or a slice of a new one."""
    own = _own(call, facts)
    if found is None:
        return _offered(own, facts) if own is not None else Decision()
    discards = met_on_the_way(found)
    reports = expiration_reports(found.expired, facts, now)
    reservation = own or _new(call, facts, ids.unit(), now)
    is_all = len(found.messages) < _slice(reservation) and len(discards) < SLICE
    is_all = is_all and _size(found.messages) < MOST_BYTES
    if not found.messages and not (own is not None and own.count):
        empties = [SetReservation(ended(own, (), UnitOutcome.COMMITTED, now))] if own is not None and is_all else []
        nothing = Refused(reason=Reason.NO_MSG_AVAILABLE.value, about=call.consumer)
        reply: Reply = nothing if is_all else Reserved(reservation=own.number if own is not None else 0, more=True)
        return Decision(reply, [*discards, *empties], reports)
    held = _held_by(reservation, facts)
    until = reservation.count + SLICE
    parts = _parts(found.messages, held, call.handle, until, facts)
    seal = Seal(reservation=held.number, is_all=is_all, until=until)
    return Decision(
        changes=[*discards, SetReservation(held, is_stored=False)],
        internal_calls=[*parts, seal, *reports],
        gather=lambda replies: replies[len(parts)],
    )


def _parts(messages: Sequence[StoredMessage], of: Reservation, handle: int, until: int, facts: Facts) -> list[Call]:
    """Returns the calls of a slice, in its order: messages together, each group by itself, and poison moved away."""
    if messages and not of.whole_groups and not _has_poison(facts.queue):
        return [TakeIn(reservation=of.number, messages=tuple(messages), handle=handle, until=until)]
    parts: list[Call] = []
    chunk: list[StoredMessage] = []

    def close() -> None:
        if chunk:
            parts.append(TakeIn(reservation=of.number, messages=tuple(chunk), handle=handle, until=until))
            chunk.clear()

    for message in messages:
        is_first_of_group = of.whole_groups and message.descriptor.group_id != NO_ID
        is_bad = not is_first_of_group and _is_poison(message, facts.queue)
        if is_first_of_group or is_bad:
            close()
        chunk.append(message)
        if is_first_of_group:
            close()
        elif is_bad:
            taken = TakeIn(reservation=of.number, messages=(message,), handle=handle, until=until)
            parts.append(_put_off(message, facts, taken))
            chunk.clear()
    close()
    return parts


def _slice(reservation: Reservation) -> int:
    """Returns how many messages one call looks at; of groups the first ones, each of which is looked through."""
    return SLICE // 4 if reservation.whole_groups else SLICE


def _is_poison(message: StoredMessage, queue: QueueFacts | None) -> bool:
    """Returns whether a get would put the message aside, as a reservation does, but not messages of a group."""
    if queue is None or not _has_poison(queue):
        return False
    return queue.definition.backout_threshold <= message.descriptor.backout_count


def _has_poison(queue: QueueFacts | None) -> bool:
    """Returns whether any message of the queue could be put aside for its backout count."""
    if queue is None or queue.definition.backout_requeue is not BackoutRequeue.QMGR:
        return False
    return queue.definition.backout_threshold > 0


def _put_off(message: StoredMessage, facts: Facts, otherwise: TakeIn) -> PutOff:
    assert facts.queue is not None
    to_q_name = facts.queue.definition.backout_requeue_q_name
    return PutOff(message=message, to_q_name=to_q_name, otherwise=otherwise)


def look_for_take_in(call: TakeIn, facts: Facts, now: int) -> Selection | None:
    """Selects the rest of a group."""
    first, reservation = call.messages[0], facts.reservation
    if reservation is None or not reservation.whole_groups or first.descriptor.group_id == NO_ID:
        return None
    return Selection(
        first.q_name,
        now,
        limit=MOST_MESSAGES + 1,
        limit_bytes=_MOST_OF_A_GROUP,
        group_id=first.descriptor.group_id,
        handle=call.handle,
    )


def decide_take_in(call: TakeIn, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Reserves the messages that there is room for, of a group all or none; without room it is complete."""
    reservation = open_one(facts)
    if reservation.is_sealed or reservation.count >= call.until:
        return Decision()
    messages = call.messages if found is None else _group(found.messages)
    chosen = _with_room(reservation, messages)
    if found is not None and len(chosen) < len(messages):
        chosen = [] if reservation.count else list(messages)  # the first group comes whatever its size
    longer_one = replace(
        reservation,
        runs=longer(reservation.runs, [message.priority for message in chosen]),
        size=reservation.size + _size(chosen),
        is_sealed=len(chosen) < len(messages),
    )
    changes: list[AnyChange] = [ReserveMessages(reservation.number, tuple(chosen), reservation.count)] if chosen else []
    return Decision(changes=[*changes, SetReservation(longer_one, is_stored=False)])


def _with_room(reservation: Reservation, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Returns those of the messages, from the first on, that there is room for."""
    number, size = reservation.count, reservation.size
    if number + len(messages) <= reservation.max_messages and size + _size(messages) <= reservation.max_bytes:
        return list(messages)
    chosen: list[StoredMessage] = []
    for message in messages:
        number, size = number + 1, size + len(message.data)
        if number > reservation.max_messages or (size > reservation.max_bytes and number > 1):
            break
        chosen.append(message)
    return chosen


def decide_seal(call: Seal, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Writes down the slice of the reservation. It is complete when full, or when nothing more was there.

    From then on it lasts, and may be read.
    """
    reservation = open_one(facts)
    is_full = reservation.count >= reservation.max_messages
    is_complete = is_full or (call.is_all and reservation.count < call.until)
    if is_complete and reservation.count:
        reservation = replace(reservation, is_sealed=True)
    return Decision(_as_reply(reservation), [SetReservation(reservation, must_last=reservation.is_sealed)])


def _group(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Returns the messages of a group in the order of their places, of several at one place the first.

    Raises SyncpointLimitReached (2024) for one that is too large for one step.
    """
    if len(messages) > MOST_MESSAGES or _size(messages) >= _MOST_OF_A_GROUP:
        raise SyncpointLimitReached(f"a group of more than {MOST_MESSAGES} messages or 64 MB cannot be reserved whole")
    group: list[StoredMessage] = []
    place = (0, 0)
    for message in sorted(messages, key=_place):
        if _place(message)[:2] == place:
            continue
        group.append(message)
        place, flags = _place(message)[:2], message.descriptor.msg_flags
        ends_message = not flags & SEGMENT or flags & LAST_SEGMENT
        if ends_message and (flags & LAST_IN_GROUP or not flags & IN_GROUP):
            break
    return group


def _place(message: StoredMessage) -> tuple[int, int, int, int]:
    descriptor = message.descriptor
    return descriptor.msg_seq_number, descriptor.offset, -message.priority, message.number


def _size(messages: Sequence[StoredMessage]) -> int:
    return sum([len(message.data) for message in messages])


def _offered(own: Reservation, facts: Facts) -> Decision:
    """Returns the same batch once more. To another connection it is offered anew: the earlier holder is gone."""
    if own.holder == facts.connection.connection:
        return Decision(_as_reply(own, again=True))
    anew = offered_anew(_held_by(own, facts))
    return Decision(_as_reply(anew, again=True), [SetReservation(anew)])


def _held_by(reservation: Reservation, facts: Facts) -> Reservation:
    connection = facts.connection.connection
    who = f"{facts.connection.application or 'an application'} (pid {facts.connection.pid})"
    return replace(without(reservation, connection), holder=connection, by=who, user=facts.connection.user)


def _new(call: Reserve, facts: Facts, number: int, now: int) -> Reservation:
    assert facts.handle is not None
    return Reservation(
        number,
        facts.handle.q_name,
        call.consumer,
        call.token,
        now,
        call.max_messages,
        call.max_bytes,
        call.whole_groups,
    )


def _own(call: Reserve, facts: Facts) -> Reservation | None:
    """Returns the consumer's reservation of this queue of which anything is left, if there is one.

    Each user has consumer names of its own: another user's reservation of the same name is none of this one. One whose
    record is older than its user's field is anybody's.
    """
    is_open = [r for r in facts.reservations if r.consumer == call.consumer and r.outcome is UnitOutcome.OPEN]
    by_user = {r.user: r for r in is_open}
    return by_user.get(facts.connection.user) or by_user.get(None)


def _checked(call: Reserve, facts: Facts) -> HandleFacts:
    handle, queue = facts.handle, facts.queue
    if handle is None or queue is None:
        raise HobjError(f"handle {call.handle}")
    if not handle.options & _INPUT:
        raise NotOpenForInput(handle.object_name)
    if not 0 < call.max_messages <= LARGEST or not 0 < call.max_bytes < 2**63:
        raise OptionsError(f"max_messages is 1 to {LARGEST}, max_bytes 1 or more")
    for name, text in (("consumer", call.consumer), ("token", call.token)):
        if len(text) > LONGEST_NAME or not text.isprintable() or (name == "consumer" and not text.strip()):
            raise AttrValueError(f"a {name} is one line of at most {LONGEST_NAME} characters")
    check_alive(queue)
    for definition in (facts.alias, queue.definition):
        if definition is not None and definition.inhibit_get is Inhibit.INHIBITED:
            raise GetInhibited(definition.name)
    if queue.definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC:
        raise QTypeError(f"{queue.definition.name} ends with its creator, and a reservation outlives connections")
    return handle


def _as_reply(reservation: Reservation, *, again: bool = False) -> Reserved:
    return Reserved(
        reservation=reservation.number,
        count=reservation.count,
        size=reservation.size,
        left=reservation.left,
        left_ordinals=[list(stretch) for stretch in reservation.stretches],
        token=reservation.token,
        again=again,
        offers=reservation.offers,
        more=not reservation.is_sealed,
        deaths=[list(death) for death in reservation.deaths],
        settled=reservation.settled,
    )


# -- reading it ---------------------------------------------------------------------------------------------


def look_for_read_reserved(call: ReadReserved, facts: Facts, now: int) -> Selection | None:
    """Selects the first stretch of what is asked for that is left."""
    if call.ordinal < 0 or call.count < 1:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and 1 or more")
    reservation = open_one(facts, call.reservation)
    if not reservation.is_sealed:
        raise CommandFailed(f"{named(reservation)} is still being made: reserve again until it is complete")
    wanted = _wanted(call, reservation)
    if not wanted:
        return None
    first, end = wanted[0]
    return Selection(
        reservation.q_name,
        now,
        limit=min(end - first, MOST_MESSAGES),
        limit_bytes=MOST_BYTES,
        reserved_by=reservation.number,
        ordinals=(first, end),
    )


def decide_read_reserved(call: ReadReserved, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the messages, as a get would return them; their time left is what is left of it, and never nothing."""
    reservation = open_one(facts, call.reservation)
    stands: list[AnyChange] = []
    connection = facts.connection.connection
    if connection not in reservation.behind and is_of(reservation, facts.connection):
        # Who is behind it keeps its job from being started again: another user only looks.
        read = replace(reservation, readers=(*reservation.readers, connection))
        stands.append(SetReservation(read, is_stored=False))
    if found is None:
        return Decision(WereReserved(ordinals=[], messages=[], ordinal=reservation.count), stands)
    damaged = [message.ordinal for message in found.damaged]
    if damaged:
        raise ObjectDamaged(f"{named(reservation)}: what has the ordinal {damaged[0]} is not what was written")
    ordinals = [message.ordinal for message in found.messages]
    messages = [given(_counted_up(message, reservation.offers), now, -1, False) for message in found.messages]
    after = ordinals[-1] + 1 if ordinals else call.ordinal + call.count
    more = cut(_wanted(call, reservation), after, reservation.count)
    following = more[0][0] if more else min(call.ordinal + call.count, reservation.count)
    return Decision(
        WereReserved(ordinals=ordinals, messages=messages, ordinal=following, more=bool(more)),
        stands,
    )


def _wanted(call: ReadReserved | Settle | Release, reservation: Reservation) -> list[tuple[int, int]]:
    end = reservation.count if call.count < 0 else call.ordinal + call.count
    return cut(reservation.stretches, call.ordinal, end)


def _counted_up(message: StoredMessage, by: int) -> StoredMessage:
    if not by:
        return message
    descriptor = message.descriptor
    return replace(message, descriptor=replace(descriptor, backout_count=descriptor.backout_count + by))


# -- ending it ----------------------------------------------------------------------------------------------


def decide_settle(call: Settle, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Settles all of it before it is answered; its rows go later, with the reports that senders asked for."""
    reservation = _asked_for(call, facts)
    check_may_end(reservation, named(reservation), facts.connection)
    if reservation.outcome is UnitOutcome.COMMITTED:
        return Decision(Settled(count=0, already=True))
    if reservation.outcome is UnitOutcome.BACKED_OUT:
        raise BackedOut(f"{named(reservation)} was given back")
    if not reservation.is_sealed:
        raise CommandFailed(f"{named(reservation)} is still being made: nobody can have read it")
    parts = [Due(first, end) for first, end in _wanted(call, reservation)]
    return _end(reservation, parts, UnitOutcome.COMMITTED, now)


def decide_release(call: Release, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the messages to the queue. That is no occasion, like a backout: the close of the queue is judged."""
    reservation = _asked_for(call, facts)
    if reservation.outcome is UnitOutcome.BACKED_OUT:
        return Decision(Settled(count=0, already=True))
    if reservation.outcome is UnitOutcome.COMMITTED:
        raise UnitOfWorkNotStarted(f"{named(reservation)} was settled")
    connection = facts.connection
    if reservation.holder not in (0, connection.connection) and not connection.is_administrator:
        raise NotAuthorized(
            f"{named(reservation)} is held by {reservation.by}: that or an administrator may release it"
        )
    adds = reservation.offers + 1 if call.counts else 0
    parts = [Due(first, end, True, adds) for first, end in _wanted(call, reservation)]
    return _end(reservation, parts, UnitOutcome.BACKED_OUT, now)


def _end(reservation: Reservation, parts: list[Due], outcome: UnitOutcome, now: int) -> Decision:
    if not parts:
        return Decision(Settled(count=0, left=reservation.left, already=True))
    count = sum(part.end - part.first for part in parts)
    after = ended(reservation, parts, outcome, now)
    if outcome is UnitOutcome.COMMITTED:
        after = replace(after, settled=after.settled + count)
    check_stretches(after)
    sweep = Sweep(reservation=reservation.number)
    return Decision(Settled(count=count, left=after.left), [SetReservation(after)], [sweep])


def check_stretches(reservation: Reservation) -> None:
    """Raises SyncpointLimitReached (2024) for a reservation that falls into too many pieces."""
    if len(reservation.gone) > MOST_STRETCHES:
        raise SyncpointLimitReached(f"{named(reservation)} would fall into more than {MOST_STRETCHES} pieces")


def look_for_sweep(call: Sweep, facts: Facts, now: int) -> Selection | None:
    """Selects a slice of what the reservation is done with."""
    reservation = facts.reservation
    if reservation is None or not reservation.due:
        return None
    due = reservation.due[0]
    return Selection(
        reservation.q_name,
        now,
        limit=SLICE,
        limit_bytes=MOST_BYTES,
        reserved_by=reservation.number,
        ordinals=(due.first, due.end),
    )


def decide_sweep(call: Sweep, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Deletes rows, or gives them back. A damaged one goes back: the next one that reads it sets it aside."""
    reservation = facts.reservation
    if reservation is None or found is None:
        return Decision(Counted(count=0))
    due, *others = reservation.due
    rows = (*found.messages, *found.damaged)
    at = max((row.ordinal for row in rows), default=due.end - 1) + 1
    rest = [replace(due, first=at)] if at < due.end else []
    after = replace(reservation, due=(*rest, *others))
    backs = rows if due.returns else found.damaged
    changes: list[AnyChange] = [ReturnReserved(backs, due.adds)] if backs else []
    internal_calls: list[Call] = []
    if not due.returns and found.messages:
        changes.append(SettleReserved(found.messages))
        internal_calls = [each for message in found.messages for each in delivery_report(message, facts, now, 0)]
    # A message that is back may be got and be gone: then the record must not bring it back once more.
    changes.append(SetReservation(after, must_last=bool(backs)))
    events = (SweepDue((reservation.number,)),) if after.due else ()
    return Decision(Counted(count=len(rows), more=bool(after.due)), changes, internal_calls, events)


def decide_leave_reservation(call: LeaveReservation, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Removes an ended connection. Behind the last one the messages wait again, which is occasion R."""
    reservation, queue = facts.reservation, facts.queue
    if reservation is None or queue is None:
        return Decision(Done())
    after = without(reservation, facts.connection.connection)
    changes: list[AnyChange] = [SetReservation(after, is_stored=False)]
    if after.behind or not after.left:
        return Decision(Done(), changes)
    depths = tuple(
        depth + new - old for depth, old, new in zip(queue.depths, reservation.waiting, after.waiting, strict=True)
    )
    waits = replace(queue, depths=depths, reserved=queue.reserved - reservation.held)
    situation = Situation(
        Happened.RESERVATION_LOST, waits, facts.process, facts.initiation, facts.q_mgr.trigger_interval, now
    )
    effects = trigger(situation, facts.q_mgr.name, ids)
    return Decision(Done(), [*changes, *effects.changes], effects.internal_calls, effects.events, judged=effects.judged)


def open_one(facts: Facts, number: int = 0) -> Reservation:
    """Returns the reservation, of which something is left. Raises what tells why there is none."""
    reservation = facts.reservation
    if reservation is None:
        raise _unknown(number)
    if reservation.outcome is not UnitOutcome.OPEN:
        how = "settled" if reservation.outcome is UnitOutcome.COMMITTED else "given back"
        raise UnitOfWorkNotStarted(f"{named(reservation)} was {how}")
    return reservation


def decide_attempt(call: Attempt, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Records what its holder works on alone, for the holder that is offered it after that one's end."""
    reservation = open_one(facts, call.reservation)
    if call.ordinal < 0 or call.count < 0 or call.ordinal + call.count > reservation.count:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and within {reservation.count}")
    if reservation.holder != facts.connection.connection or not reservation.is_sealed:
        raise NotAuthorized(f"{named(reservation)}: only its holder works on it, and when it is complete")
    attempt = (call.ordinal, call.ordinal + call.count) if call.count else None
    return Decision(Done(), [SetReservation(replace(reservation, attempt=attempt), must_last=True)])


def _asked_for(call: Settle | Release, facts: Facts) -> Reservation:
    if call.ordinal < 0 or call.count < -1:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and -1 for all behind")
    if facts.reservation is None:
        raise _unknown(call.reservation)
    return facts.reservation


def _unknown(number: int) -> UnknownObjectName:
    return UnknownObjectName(f"RESERVATION({number}): it never was, or ended long ago")


def named(reservation: Reservation) -> str:
    """Returns a reservation as an error names it."""
    return f"RESERVATION({reservation.number}) of {reservation.consumer} on {reservation.q_name}"


# -- telling of it ------------------------------------------------------------------------------------------


def decide_reservations(call: Reservations, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists those of which anything is left, by number, a page of them. ``own``: those of the user who asks."""
    assert facts.world is not None
    limit = max(1, min(call.limit, MOST_ROWS))
    behind = sorted((r for r in facts.world.reservations if r.number > call.after), key=lambda r: r.number)
    of = list(islice((r for r in behind if r.left and matches(r.q_name, call.q_name)), limit + 1))
    page = of[:limit]
    owned = [{**row, "own": r.user in (None, facts.connection.user)} for r, row in zip(page, rows(page), strict=True)]
    return Decision(Listing(rows=owned, more=len(of) > limit))


def rows(reservations: Sequence[Reservation]) -> list[dict[str, Any]]:
    """Returns reservations as they are shown, the first MOST_ROWS, with a sentence for a person."""
    shown = islice((r for r in reservations if r.left), MOST_ROWS)
    return [
        {
            "reservation": r.number,
            "q_name": r.q_name,
            "consumer": r.consumer,
            "count": r.count,
            "left": r.left,
            "left_ordinals": [list(stretch) for stretch in r.stretches],
            "size": r.size,
            "token": r.token,
            "complete": r.is_sealed,
            "whole_groups": r.whole_groups,
            "offers": r.offers,
            "since_ms": r.made_ms,
            "by": r.by,
            "user": r.user or "",
            "held": bool(r.holder),
            "readers": len(r.readers),
            "summary": _sentence(r),
        }
        for r in shown
    ]


def _sentence(reservation: Reservation) -> str:
    if reservation.behind:
        who = f"held by {reservation.by}" if reservation.holder else f"read by {len(reservation.readers)}"
        return f"{reservation.left} reserved for {reservation.consumer}, {who}, which do not count"
    return f"{reservation.left} reserved for {reservation.consumer} alone, held by nobody, which count"
