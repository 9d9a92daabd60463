"""MQPUT and MQPUT1: what is checked, what the descriptor becomes, and what is written.

The message is placed and counted at its counted priority: its own, or the queue's DEFPRTY on a FIFO queue.
Deciding a put judges its triggering in the same step, so a put that fires writes two messages instead of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from msgspec.structs import replace

from trigmon.mq.attributes import AliasQueue, LocalQueue, RemoteQueue
from trigmon.mq.calls import Put
from trigmon.mq.descriptors import (
    CCSID_UTF8,
    EXPIRY_UNLIMITED,
    FORMAT_LENGTH,
    ID_LENGTH,
    LARGEST_LONG,
    NO_ID,
    PRIORITY_AS_Q_DEF,
    MessageDescriptor,
)
from trigmon.mq.enums import (
    ApplType,
    DefinitionType,
    Inhibit,
    MsgDeliverySequence,
    MsgType,
    OpenOption,
    Persistence,
    PutOption,
    Usage,
)
from trigmon.mq.errors import (
    ExpiryError,
    HobjError,
    MdError,
    MissingReplyToQ,
    MsgTooBigForQ,
    MsgTooBigForQMgr,
    MsgTypeError,
    NotOpenForOutput,
    OptionsError,
    PersistenceError,
    PriorityError,
    PutInhibited,
    QFull,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply, WasPut
from trigmon.rules.messages.context import CONTEXT_WAYS, context_for
from trigmon.rules.messages.expiry import capped
from trigmon.rules.messages.logical_put import LOGICAL_ORDER, check_flags, put_in_order
from trigmon.rules.messages.reports import arrival_reports, check_report
from trigmon.rules.messages.segmentation import piece_length, segments
from trigmon.rules.messages.transmission import as_it_lies, head_length
from trigmon.rules.messages.units_of_work import SYNCPOINT, check_limit, joined_unit
from trigmon.rules.model.changes import AddMessage, AnyChange
from trigmon.rules.model.decision import DONE, Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import Route
from trigmon.rules.model.internal_calls import Deliver
from trigmon.rules.model.queue_facts import QueueFacts, check_alive
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.triggers.effects import NO_EFFECTS, trigger

KNOWN_OPTIONS = sum(PutOption)
_OUTPUT = OpenOption.OUTPUT.value
_NORMAL, _TEMPORARY = Usage.NORMAL, DefinitionType.TEMPORARY_DYNAMIC
_NEW_MSG_ID = PutOption.NEW_MSG_ID.value
_NEW_CORREL_ID = PutOption.NEW_CORREL_ID.value
_DATAGRAM = MsgType.DATAGRAM.value
_UNIX = ApplType.UNIX.value
_LENGTHS = {
    "reply_to_q": 48,
    "reply_to_q_mgr": 48,
    "accounting_token": 32,
    "appl_identity_data": 32,
    "appl_origin_data": 4,
}
_LONGS = ("feedback", "encoding", "coded_char_set_id", "original_length")
_free = attrgetter(*_LENGTHS, *_LONGS)
_COMMON = (_free(MessageDescriptor()), _free(MessageDescriptor(coded_char_set_id=CCSID_UTF8)))


def decide_put(call: Put, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQPUT through a handle, or MQPUT1 by name."""
    queue, opened, route = destination(call, facts)
    if call.options & ~KNOWN_OPTIONS:
        raise OptionsError(f"put options {call.options:#x}")
    given, handle = call.descriptor, facts.handle
    check_descriptor(given)
    # Most messages are plain: what does not concern them is not asked.
    warned = check_report(given, route is not None) if given.report or given.feedback else 0
    unit_id, changes = joined_unit(call.options, call.unit, facts, now, ids) if call.options & SYNCPOINT else (0, [])
    number = ids.message()
    descriptor, warning = resolved(call, facts, opened, ids.msg_id(number), now)
    if given.msg_flags or call.options & LOGICAL_ORDER or (handle is not None and handle.put_place is not None):
        check_flags(given.msg_flags, is_transmitted=queue.definition.usage is Usage.TRANSMISSION)
        ordered = put_in_order(call, handle, descriptor, unit_id, ids)
        descriptor, warning = ordered.descriptor, max(warning, ordered.warning)
        changes += ordered.changes
    messages = _messages(call, queue, route, descriptor, number, unit_id, facts, now, ids)
    reply = WasPut(
        msg_id=descriptor.msg_id,
        correl_id=descriptor.correl_id,
        priority=descriptor.priority,
        persistence=descriptor.persistence,
        put_ms=now,
        warning=warning or warned,
        group_id=descriptor.group_id,
        msg_seq_number=descriptor.msg_seq_number,
        offset=descriptor.offset,
    )
    decision = _placed(facts, queue, messages, now, ids, changes, reply)
    if not messages[0].descriptor.report:
        return decision
    return replace(
        decision, internal_calls=[*decision.internal_calls, *arrival_reports(decision.changes, queue, facts, now)]
    )


def decide_deliver(call: Deliver, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the put of a message moved by an operator, or of the queue manager's own: its descriptor stays."""
    queue, route = base_queue(call.q_name, facts)
    descriptor, number = call.descriptor, ids.message()
    check_room(queue, len(call.data) + (head_length(descriptor) if route is not None else 0), facts)
    if route is not None and call.expires_ms:
        descriptor = replace(descriptor, expiry=max(1, (call.expires_ms - now) // 100))
    descriptor, data = as_it_lies(queue, route, descriptor, call.data, facts, now, ids)
    added = added_message(facts, queue, descriptor, data, number, call.expires_ms, call.unit_id)
    return _placed(facts, queue, [added], now, ids, [], DONE)


def counted_priority(definition: LocalQueue, priority: int) -> int:
    """Returns the priority at which a message is placed and counted (condition 14)."""
    return definition.def_priority if definition.msg_delivery_sequence is MsgDeliverySequence.FIFO else priority


def put_situation(facts: Facts, queue: QueueFacts, priority: int, now: int, arriving: int = 1) -> Situation:
    """Returns the situation that a put of this priority meets; ``explain`` judges the same one."""
    return Situation(
        Happened.PUT,
        queue,
        facts.process,
        facts.initiation,
        facts.q_mgr.trigger_interval,
        now,
        counted_priority(queue.definition, priority),
        priority,
        arriving,
    )


Named = LocalQueue | AliasQueue | RemoteQueue


def destination(call: Put, facts: Facts) -> tuple[QueueFacts, Named, Route | None]:
    """Returns the local queue, the definition that was named, and for a remote queue where its messages go from there.

    The defaults are those of the definition named; PUT may be inhibited by every definition on the way.
    """
    if call.handle:
        handle = facts.handle
        if handle is None:
            raise HobjError(f"handle {call.handle}")
        if not handle.options & _OUTPUT:
            raise NotOpenForOutput(handle.object_name)
        queue = facts.queue
        if queue is None:
            raise HobjError(f"handle {call.handle}")
        check_alive(queue)
        route = handle.route
    else:
        queue, route = base_queue(call.q_name, facts)
    check_puts_allowed(facts, queue)
    return queue, facts.alias or facts.remote or queue.definition, route


def check_puts_allowed(facts: Facts, queue: QueueFacts) -> None:
    """Raises PutInhibited (2051) where PUT is disabled by a definition on the way to the queue."""
    for definition in (facts.alias, facts.remote, queue.definition):
        if definition is not None and definition.inhibit_put is Inhibit.INHIBITED:
            raise PutInhibited(definition.name)


def check_descriptor(descriptor: MessageDescriptor) -> None:
    """Raises the reason of the first field that no put may have."""
    if not PRIORITY_AS_Q_DEF <= descriptor.priority <= LARGEST_LONG:
        raise PriorityError(f"priority {descriptor.priority}: 0 to 9, or -1 as the queue defines")
    if not 0 <= descriptor.persistence <= 2:
        raise PersistenceError(f"persistence {descriptor.persistence}")
    if descriptor.expiry != EXPIRY_UNLIMITED and not 0 < descriptor.expiry <= LARGEST_LONG:
        raise ExpiryError(f"expiry {descriptor.expiry}: tenths of a second above 0, or -1 for none")
    kind = descriptor.msg_type
    if kind != _DATAGRAM and kind not in (1, 2, 4) and not 65_536 <= kind <= 999_999_999:
        raise MsgTypeError(f"msg_type {kind}")
    if kind == MsgType.REQUEST and not descriptor.reply_to_q:
        raise MissingReplyToQ("msg_type request needs reply_to_q")
    if len(descriptor.msg_id) != ID_LENGTH or len(descriptor.correl_id) != ID_LENGTH:
        raise MdError(f"msg_id and correl_id have {ID_LENGTH} bytes")
    if len(descriptor.format) > FORMAT_LENGTH:
        raise MdError(f"format has at most {FORMAT_LENGTH} characters")
    if _free(descriptor) not in _COMMON:
        _check_free(descriptor)


def _check_free(descriptor: MessageDescriptor) -> None:
    """Raises MdError where a field that the sender sets freely does not fit into the MQMD."""
    for name, length in _LENGTHS.items():
        if len(getattr(descriptor, name)) > length:
            raise MdError(f"{name} has at most {length} bytes or characters")
    for name in _LONGS:
        if not -LARGEST_LONG <= getattr(descriptor, name) <= LARGEST_LONG:
            raise MdError(f"{name} is beyond 32 bits")


def check_room(queue: QueueFacts, length: int, facts: Facts, arriving: int = 1) -> None:
    """Raises MsgTooBigForQ (2030), MsgTooBigForQMgr (2031), or QFull (2053) where no place is left for so many."""
    definition = queue.definition
    if length > definition.max_msg_length:
        raise MsgTooBigForQ(f"{definition.name}: {length} bytes, MAXMSGL({definition.max_msg_length})")
    if length > facts.q_mgr.max_msg_length:
        raise MsgTooBigForQMgr(f"{length} bytes, the queue manager's MAXMSGL({facts.q_mgr.max_msg_length})")
    if queue.lying + arriving > definition.max_q_depth:
        raise QFull(f"{definition.name}: MAXDEPTH({definition.max_q_depth})")


def resolved(call: Put, facts: Facts, opened: Named, msg_id: bytes, now: int) -> tuple[MessageDescriptor, int]:
    """Returns the descriptor as stored: defaults from the definition that was named, ids and context filled in."""
    given, connection = call.descriptor, facts.connection
    warning = Reason.PRIORITY_EXCEEDS_MAXIMUM if given.priority > facts.q_mgr.max_priority else 0
    keeps_msg_id = given.msg_id != NO_ID and not call.options & _NEW_MSG_ID
    descriptor = replace(
        given,
        priority=opened.def_priority if given.priority < 0 else given.priority,
        persistence=int(opened.def_persistence if given.persistence == Persistence.AS_Q_DEF else given.persistence),
        msg_id=given.msg_id if keeps_msg_id else msg_id,
        correl_id=msg_id if call.options & _NEW_CORREL_ID else given.correl_id,
        reply_to_q_mgr=given.reply_to_q_mgr or (facts.q_mgr.name if given.reply_to_q else ""),
        group_id=NO_ID,
        msg_seq_number=1,
        offset=0,
        backout_count=0,
        # The context of the application itself.
        user_identifier=connection.user[:12],
        accounting_token=b"",
        appl_identity_data="",
        put_appl_type=_UNIX,
        put_appl_name=connection.application[:28],
        put_ms=now,
        appl_origin_data="",
    )
    if call.options & CONTEXT_WAYS:
        descriptor = replace(descriptor, **context_for(call, facts, now))
    return descriptor, int(warning)


def _messages(
    call: Put,
    queue: QueueFacts,
    route: Route | None,
    descriptor: MessageDescriptor,
    number: int,
    unit_id: int,
    facts: Facts,
    now: int,
    ids: Ids,
) -> list[AddMessage]:
    """Returns the message that a put adds to the queue, or the segments into which it is cut.

    Raises the reasons of :func:`check_room`, :func:`piece_length` and :func:`as_it_lies`.
    """
    definition = queue.definition
    length, head = len(call.data), head_length(descriptor) if route is not None else 0
    piece = piece_length(descriptor, length, head, queue, facts, unit_id) if call.descriptor.msg_flags else 0
    # What is put straight onto a transmission queue is held against its header as the application made it.
    lasting = descriptor if route is None else capped(descriptor, queue, facts)
    if piece:
        pieces = segments(lasting, call.data, piece)
        check_room(queue, head + piece, facts, len(pieces))
        lying = [as_it_lies(queue, route, *each, facts, now, ids) for each in pieces]
        (placed, data), *further = [(capped(each, queue, facts), data) for each, data in lying]
    else:
        check_room(queue, head + length, facts)
        placed, data, further = lasting, call.data, []
        if route is not None or definition.usage is not _NORMAL or definition.definition_type is _TEMPORARY:
            placed, data = as_it_lies(queue, route, lasting, call.data, facts, now, ids)
        if definition.cap_expiry > 0 or facts.alias is not None or facts.remote is not None:
            placed = capped(placed, queue, facts)
    expires_ms = now + placed.expiry * 100 if placed.expiry > 0 else 0
    added = added_message(facts, queue, placed, data, number, expires_ms, unit_id)
    return _with_segments(added, further, ids) if further else [added]


def added_message(
    facts: Facts,
    queue: QueueFacts,
    descriptor: MessageDescriptor,
    data: bytes,
    number: int,
    expires_ms: int,
    unit_id: int,
) -> AddMessage:
    """Returns the change that puts this message on the queue, at its counted priority."""
    priority = min(descriptor.priority, facts.q_mgr.max_priority)
    return AddMessage(
        queue.definition.name,
        number,
        counted_priority(queue.definition, priority),
        descriptor.persistence == Persistence.PERSISTENT,
        descriptor,
        data,
        expires_ms,
        unit_id,
    )


def _with_segments(first: AddMessage, further: Iterable[tuple[MessageDescriptor, bytes]], ids: Ids) -> list[AddMessage]:
    """Returns the first segment and those behind it, which have its place in all but the number and the content."""
    return [
        first,
        *(
            replace(first, number=ids.message(), descriptor=segment, data=body, is_further=True)
            for segment, body in further
        ),
    ]


def _placed(
    facts: Facts, queue: QueueFacts, added: list[AddMessage], now: int, ids: Ids, begins: list[AnyChange], reply: Reply
) -> Decision:
    """Returns the decision of a put: the message, or its segments, and what its arrival triggers.

    All segments are there before the put is judged, once (seed 001, note 2), and MAXUMSGS counts them as one.
    """
    unit_id = added[0].unit_id
    priority = min(added[0].descriptor.priority, facts.q_mgr.max_priority)
    # A shared queue is judged when what was put is committed, by each member behind the call that does it.
    if queue.shared is None:
        effects = trigger(put_situation(facts, queue, priority, now, len(added)), facts.q_mgr.name, ids, unit_id)
    else:
        effects = NO_EFFECTS
    if unit_id:
        check_limit(facts, 1 + effects.in_unit)
    changes = [*begins, *added, *effects.changes]
    return Decision(reply, changes, effects.internal_calls, effects.events, judged=effects.judged)
