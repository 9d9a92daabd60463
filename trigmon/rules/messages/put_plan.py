"""The plan of a put: what a put's way, options and descriptor come to, worked out once for the puts of one kind.

Most puts through a handle are alike, so the handle keeps the plan of the last plain one. One that holds gives what a
new one would: it names all that it was made from.
"""

from __future__ import annotations

from operator import attrgetter

from msgspec.structs import replace

from trigmon.mq.attributes import AliasQueue, LocalQueue, RemoteQueue
from trigmon.mq.calls import Put, PutMany
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
    MsgTypeError,
    NotOpenForOutput,
    OptionsError,
    PersistenceError,
    PriorityError,
    PutInhibited,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.traceparent import is_traceparent
from trigmon.rules.messages.context import BLANK, CONTEXT_WAYS, NO_CONTEXT, ORDINARY_WAYS
from trigmon.rules.messages.expiry import capped
from trigmon.rules.messages.logical_put import LOGICAL_ORDER
from trigmon.rules.messages.reports import check_report
from trigmon.rules.model.access import check_may_use
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import PutPlan, Route
from trigmon.rules.model.queue_facts import QueueFacts, check_alive, counted_priority
from trigmon.rules.model.resolve_name import base_queue

KNOWN_OPTIONS = sum(PutOption)
_OUTPUT = OpenOption.OUTPUT.value
_NORMAL, _TEMPORARY = Usage.NORMAL, DefinitionType.TEMPORARY_DYNAMIC
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


def put_plan(call: Put | PutMany, facts: Facts) -> tuple[QueueFacts, PutPlan]:
    """Returns the local queue of a put, and a new plan.

    Raises the reasons of :func:`destination`, :func:`check_descriptor` and :func:`check_report`, and OptionsError.
    """
    queue, opened, route = destination(call, facts)
    options, given, definition, q_mgr = call.options, call.descriptor, queue.definition, facts.q_mgr
    if options & ~KNOWN_OPTIONS:
        raise OptionsError(f"put options {options:#x}")
    check_descriptor(given)
    # Most messages are plain: what does not concern them is not asked.
    warning = check_report(given, route is not None) if given.report or given.feedback else 0
    if given.priority > q_mgr.max_priority:
        warning = Reason.PRIORITY_EXCEEDS_MAXIMUM.value
    descriptor = _resolved(given, options, opened, facts)
    is_plain = (
        route is None
        and not given.msg_flags
        and not options & LOGICAL_ORDER
        and options & CONTEXT_WAYS in ORDINARY_WAYS
        and definition.usage is _NORMAL
        and (definition.definition_type is not _TEMPORARY or descriptor.persistence == Persistence.NOT_PERSISTENT)
    )
    priority = counted_priority(definition, min(descriptor.priority, q_mgr.max_priority))
    plan = PutPlan(
        definition,
        facts.alias,
        q_mgr,
        options,
        without_ids(given),
        route,
        capped(descriptor, queue, facts) if is_plain else descriptor,
        priority,
        warning,
        is_plain,
    )
    return queue, plan


def without_ids(descriptor: MessageDescriptor) -> MessageDescriptor:
    """Returns the descriptor without MsgId, CorrelId and traceparent; unchanged where one of them has not its form."""
    if len(descriptor.msg_id) != ID_LENGTH or len(descriptor.correl_id) != ID_LENGTH:
        return descriptor
    if descriptor.traceparent and not is_traceparent(descriptor.traceparent):
        return descriptor
    return replace(descriptor, msg_id=NO_ID, correl_id=NO_ID, traceparent="")


Named = LocalQueue | AliasQueue | RemoteQueue


def destination(call: Put | PutMany, facts: Facts) -> tuple[QueueFacts, Named, Route | None]:
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
        check_may_use(queue.definition.name, facts.connection)
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
    if descriptor.traceparent and not is_traceparent(descriptor.traceparent):
        raise MdError(f"traceparent {descriptor.traceparent!r}: 00-TRACE-SPAN-FLAGS of W3C Trace Context")
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


def _resolved(given: MessageDescriptor, options: int, opened: Named, facts: Facts) -> MessageDescriptor:
    """Returns the descriptor as stored, but for its ids and the time of its put.

    Defaults come from the definition that was named. The context is the application's own, or none; another one is
    set for each put.
    """
    connection = facts.connection
    descriptor = replace(
        given,
        priority=opened.def_priority if given.priority < 0 else given.priority,
        persistence=int(opened.def_persistence if given.persistence == Persistence.AS_Q_DEF else given.persistence),
        reply_to_q_mgr=given.reply_to_q_mgr or (facts.q_mgr.name if given.reply_to_q else ""),
        group_id=NO_ID,
        msg_seq_number=1,
        offset=0,
        backout_count=0,
        user_identifier=connection.user[:12],
        accounting_token=b"",
        appl_identity_data="",
        put_appl_type=_UNIX,
        put_appl_name=connection.application[:28],
        appl_origin_data="",
    )
    return replace(descriptor, **BLANK) if options & CONTEXT_WAYS == NO_CONTEXT else descriptor
