"""What a queue's name means: itself, through an alias its base queue, for a remote queue a transmission queue here.

Sources: mq-facts' reasons (4.10) and the manual's page of each: 2085, 2082, 2001, 2057, 2184, 2087, 2091, 2092,
2196 to 2199.
"""

from __future__ import annotations

from trigmon.mq.attributes import RemoteQueue
from trigmon.mq.enums import ObjectType, Usage
from trigmon.mq.errors import (
    AliasBaseQTypeError,
    DefXmitQTypeError,
    DefXmitQUsageError,
    MQError,
    ObjectNotUnique,
    ObjectTypeError,
    QTypeError,
    RemoteQNameError,
    UnknownAliasBaseQ,
    UnknownDefXmitQ,
    UnknownObjectName,
    UnknownRemoteQMgr,
    UnknownXmitQ,
    XmitQTypeError,
    XmitQUsageError,
)
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import Route
from trigmon.rules.model.queue_facts import QueueFacts, check_alive


def object_type_of(word: str) -> ObjectType:
    """Returns the kind of object a call names. Raises ObjectTypeError (2043)."""
    try:
        return ObjectType[word.upper()]
    except KeyError:
        known = " ".join(kind.name for kind in ObjectType)
        raise ObjectTypeError(f"{word}: known are {known}") from None


def base_queue(name: str, facts: Facts) -> tuple[QueueFacts, Route | None]:
    """Returns the local queue a name leads to, and for a remote queue where messages go from there.

    Raises UnknownObjectName (2085), UnknownAliasBaseQ (2082), AliasBaseQTypeError (2001), QTypeError (2057) for a
    model queue, QDeleted (2052), ObjectNotUnique (2343) for a name that is shared and private, and what a remote
    queue's way may lack.
    """
    if facts.is_ambiguous:
        raise ObjectNotUnique(f"{name} is a shared queue of {facts.group}, and an object of {facts.q_mgr.name} alone")
    if facts.remote is not None:
        return _transmission_queue(facts.remote, facts), route_of(facts.remote)
    if facts.queue is not None:
        check_alive(facts.queue)
        return facts.queue, None
    if facts.model is not None:
        raise QTypeError(f"{name} is a model queue: opening it makes a queue, nothing can be put to it")
    if facts.alias is None:
        raise UnknownObjectName(name)
    if facts.target_exists:
        raise AliasBaseQTypeError(f"{name} points at {facts.alias.base_q_name}, which is an alias or a model")
    raise UnknownAliasBaseQ(f"{name} points at {facts.alias.base_q_name or 'nothing'}")


def route_of(remote: RemoteQueue) -> Route:
    """Returns where messages for a remote queue go."""
    return Route(remote.name, remote.remote_q_name, remote.remote_q_mgr_name)


_Errors = tuple[type[MQError], type[MQError], type[MQError]]
_NAMED: _Errors = (UnknownXmitQ, XmitQTypeError, XmitQUsageError)
_DEFAULT: _Errors = (UnknownDefXmitQ, DefXmitQTypeError, DefXmitQUsageError)


def _transmission_queue(remote: RemoteQueue, facts: Facts) -> QueueFacts:
    """Returns the transmission queue of a remote queue.

    Raises RemoteQNameError (2184), UnknownRemoteQMgr (2087), and for the queue that XMITQ or RQMNAME names 2196, 2091
    or 2092, for the one that DEFXMITQ names 2197, 2198 or 2199.
    """
    where = f"QREMOTE({remote.name})"
    if not remote.remote_q_name:
        raise RemoteQNameError(f"{where}: RNAME is blank")
    if remote.remote_q_mgr_name in ("", facts.q_mgr.name):
        raise UnknownRemoteQMgr(f"{where}: RQMNAME({remote.remote_q_mgr_name or ' '}) names no other queue manager")
    way = facts.transmission
    if way is None or not way.q_name:
        other = remote.remote_q_mgr_name
        raise UnknownRemoteQMgr(f"{where}: XMITQ and DEFXMITQ are blank, and no queue is named {other}")
    unknown, wrong_type, wrong_usage = _DEFAULT if way.is_default else _NAMED
    queue = facts.queue
    if queue is None:
        if way.exists:
            raise wrong_type(f"{where}: {way.q_name} is no local queue")
        raise unknown(f"{where}: {way.q_name} does not exist")
    check_alive(queue)
    if queue.definition.usage is not Usage.TRANSMISSION:
        raise wrong_usage(f"{where}: {way.q_name} has USAGE(NORMAL)")
    return queue
