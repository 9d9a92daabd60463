"""Reservations: a fixed batch of messages that a consumer reads as often as it has to, and settles when it is done.

For a job whose work is planned at one place and done at others, and repeated: a connection reserves, any others read,
and what was reserved stays the same batch, hidden from every getter, whichever program ends. It is a unit of work that
no connection's end and no restart backs out; MAXUMSGS does not count it, expiry does not touch it, and what is reserved
survives a restart even if it is not persistent. While a connection holds it, it does not count, as what was got and
not committed does not; else it counts as waiting, for its consumer alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from trigmon.mq.calls import Call, Reserve
from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import BackoutRequeue, DefinitionType, Inhibit, OpenOption, UnitOutcome
from trigmon.mq.errors import (
    AttrValueError,
    FunctionNotSupported,
    GetInhibited,
    HobjError,
    NotOpenForInput,
    ObjectInUse,
    OptionsError,
    QTypeError,
    SyncpointLimitReached,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply, Reserved
from trigmon.rules.messages.get import MOST_BYTES, MOST_MESSAGES, is_seen_as_stored
from trigmon.rules.messages.reports import asks_for_delivery_report, expiration_reports
from trigmon.rules.model.access import check_reservations
from trigmon.rules.model.changes import AnyChange, met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WideFacts
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.group_position import ends_group, is_whole_group
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.internal_calls import PutOff, Seal, TakeIn
from trigmon.rules.model.queue_facts import QueueFacts, check_alive
from trigmon.rules.model.reservation import Reservation, ended, longer, offered_anew, without
from trigmon.rules.model.reservation_changes import ReserveMessages, SetReservation
from trigmon.rules.model.stored_messages import (
    LARGE_SLICE,
    SLICE,
    Form,
    Found,
    MessageColumns,
    Selection,
    StoredMessage,
    columns_of,
    is_simple,
)
from trigmon.rules.reservations.find_reservation import open_one

LARGEST = 10_000_000
"""Messages of a reservation at most."""
LONGEST_NAME = 256
_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value
_MOST_OF_A_GROUP = 64 << 20
_LARGE = MOST_BYTES // SLICE
"""Bytes: messages up to here are removed a slice at a time without a look at their sizes."""


def look_for_reserve(call: Reserve, facts: WideFacts, now: int) -> Selection | None:
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
    limit = max(1, min(_slice(wanted, facts.queue), wanted.max_messages - wanted.count))
    form = Form.WHOLE if _is_looked_through(wanted, facts.queue) else Form.COLUMNS
    return Selection(handle.q_name, now, limit=limit, handle=handle.handle, starts=whole, whole=whole, form=form)


def decide_reserve(call: Reserve, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Reserves the consumer's batch: the one it has, offered anew to another connection, or a slice of a new one."""
    own = _own(call, facts)
    if found is None:
        return _offered(own, facts) if own is not None else Decision()
    discards = met_on_the_way(found)
    reports = expiration_reports(found.expired, facts, now)
    reservation = own or _new(call, facts, ids.unit(), now)
    count = len(found.messages if found.columns is None else found.columns)
    most = found.most or _slice(reservation, facts.queue)
    is_all = count < most and len(discards) < SLICE and _size(found.messages) < MOST_BYTES
    if not count and not (own is not None and own.count):
        empties = [SetReservation(ended(own, (), UnitOutcome.COMMITTED, now))] if own is not None and is_all else []
        nothing = Refused(reason=Reason.NO_MSG_AVAILABLE.value, about=call.consumer)
        reply: Reply = nothing if is_all else Reserved(reservation=own.number if own is not None else 0, more=True)
        return Decision(reply, [*discards, *empties], reports)
    held = _held_by(reservation, facts)
    if found.columns is not None:
        room = _room(held, found.columns.sizes)
        longer_one, changes = _extended(held, found.columns.first(room), is_full=room < count)
        written = _written(longer_one, is_all=is_all)
        return Decision(_as_reply(written.reservation), [*changes, written])
    until = reservation.count + max(SLICE, most)
    parts = _parts(found.messages, held, call.handle, until, facts)
    seal = Seal(reservation=held.number, is_all=is_all, until=until)
    return Decision(
        changes=[*discards, SetReservation(held, is_stored=False)],
        internal_calls=[*parts, seal, *reports],
        gather=lambda replies: replies[len(parts)],
    )


def _parts(messages: Sequence[StoredMessage], of: Reservation, handle: int, until: int, facts: Facts) -> list[Call]:
    """Returns the calls of a slice, in its order: messages together, each group by itself, and poison moved away.

    A message that is all of its group is among the others.
    """
    if messages and not _is_looked_through(of, facts.queue):
        return [TakeIn(reservation=of.number, messages=tuple(messages), handle=handle, until=until)]
    parts: list[Call] = []
    chunk: list[StoredMessage] = []

    def close() -> None:
        if chunk:
            parts.append(TakeIn(reservation=of.number, messages=tuple(chunk), handle=handle, until=until))
            chunk.clear()

    for message in messages:
        is_of_group = of.whole_groups and message.descriptor.group_id != NO_ID
        is_first_of_group = is_of_group and not is_whole_group(message.descriptor)
        is_bad = not is_of_group and _is_poison(message, facts.queue)
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


def _slice(reservation: Reservation, queue: QueueFacts | None) -> int:
    """Returns how many messages one call looks at; of groups the first ones, each of which is looked through."""
    if reservation.whole_groups:
        return SLICE // 4
    return SLICE if _has_poison(queue) else LARGE_SLICE


def _is_looked_through(reservation: Reservation, queue: QueueFacts | None) -> bool:
    """Returns whether each message is looked at by itself: it may be of a group, or be put aside."""
    return reservation.whole_groups or _has_poison(queue)


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
    if is_whole_group(first.descriptor):
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
    messages = call.messages if found is None else tuple(_group(found.messages))
    room = _room(reservation, [len(message.data) for message in messages])
    if found is not None and room < len(messages):
        room = 0 if reservation.count else len(messages)  # the first group comes whatever its size
    chosen = messages[:room]
    marked = () if is_simple(chosen) else chosen
    columns = columns_of(reservation.q_name, chosen)
    longer_one, changes = _extended(reservation, columns, is_full=room < len(messages), marked=marked)
    return Decision(changes=[*changes, SetReservation(longer_one, is_stored=False)])


def _extended(
    reservation: Reservation, chosen: MessageColumns, *, is_full: bool, marked: tuple[StoredMessage, ...] = ()
) -> tuple[Reservation, list[AnyChange]]:
    """Returns the reservation with these messages behind its own, and the changes that reserve them: one, or none.

    ``is_full``: there is no room for the next one. ``marked`` are the same messages, where rows have to be marked.
    """
    if not chosen.numbers:
        return replace(reservation, is_sealed=is_full), []
    longer_one = replace(
        reservation,
        runs=longer(reservation.runs, chosen.priorities),
        size=reservation.size + sum(chosen.sizes),
        is_sealed=is_full,
        is_plain=(reservation.is_plain or not reservation.count) and _are_plain(chosen),
    )
    return longer_one, [ReserveMessages(reservation.number, chosen, reservation.count, marked)]


def _are_plain(columns: MessageColumns) -> bool:
    """Returns whether all can be read as they are stored, and removed unread."""
    return max(columns.sizes, default=0) <= _LARGE and all(
        not asks_for_delivery_report(report) and is_seen_as_stored(form, put_appl_type)
        for report, form, put_appl_type in set(columns.kinds)
    )


def _room(reservation: Reservation, sizes: Sequence[int]) -> int:
    """Returns how many messages of these sizes there is room for, from the first on."""
    number, size = reservation.count, reservation.size
    if number + len(sizes) <= reservation.max_messages and size + sum(sizes) <= reservation.max_bytes:
        return len(sizes)
    for at, each in enumerate(sizes):
        number, size = number + 1, size + each
        if number > reservation.max_messages or (size > reservation.max_bytes and number > 1):
            return at
    return len(sizes)


def decide_seal(call: Seal, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Writes down the slice of the reservation, whose parts have been taken in."""
    reservation = open_one(facts)
    written = _written(reservation, is_all=call.is_all and reservation.count < call.until)
    return Decision(_as_reply(written.reservation), [written])


def _written(reservation: Reservation, *, is_all: bool) -> SetReservation:
    """Returns the record of the reservation behind a slice.

    A reservation is complete when it is full, or when nothing more was there. From then on it lasts, and may be read.
    """
    if reservation.count and (is_all or reservation.count >= reservation.max_messages):
        reservation = replace(reservation, is_sealed=True)
    return SetReservation(reservation, must_last=reservation.is_sealed)


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
        place = _place(message)[:2]
        if ends_group(message.descriptor.msg_flags):
            break
    return group


def _place(message: StoredMessage) -> tuple[int, int, int, int]:
    descriptor = message.descriptor
    return descriptor.msg_seq_number, descriptor.offset, -message.priority, message.number


def _size(messages: Sequence[StoredMessage]) -> int:
    return sum(len(message.data) for message in messages)


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


def _own(call: Reserve, facts: WideFacts) -> Reservation | None:
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
