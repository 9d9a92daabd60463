"""A message as the queue holds it: for a remote queue behind a transmission header (the manual's page of MQXQH)."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    FORMAT_XMIT_Q_HEADER,
    NO_ID,
    MessageDescriptor,
)
from trigmon.mq.enums import ApplType, DefinitionType, MsgFlag, Persistence, Usage
from trigmon.mq.errors import PersistentNotAllowed
from trigmon.mq.transmission_header import MDE_LENGTH, XQH_LENGTH, check_xqh, has_extension, pack_xqh
from trigmon.rules.model.decision import Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import Route
from trigmon.rules.model.queue_facts import QueueFacts

_TEMPORARY, _TRANSMISSION = DefinitionType.TEMPORARY_DYNAMIC, Usage.TRANSMISSION
_PERSISTENT = Persistence.PERSISTENT.value
# MQRO_ACCEPT_UNSUP_IF_XMIT_MASK: reports on arrival and delivery are for the queue at the end of the way.
_NOT_HERE = 0x3FF00


def head_length(descriptor: MessageDescriptor) -> int:
    """Returns how many bytes stand before a message for a remote queue, by its own descriptor."""
    return XQH_LENGTH + (MDE_LENGTH if has_extension(descriptor) else 0)


def as_it_lies(
    queue: QueueFacts,
    route: Route | None,
    descriptor: MessageDescriptor,
    data: bytes,
    facts: Facts,
    now: int,
    ids: Ids,
) -> tuple[MessageDescriptor, bytes]:
    """Returns the message as this queue holds it: one for a remote queue behind a transmission header.

    Raises PersistentNotAllowed (2048) for a temporary dynamic queue, XqhError (2260) for a transmission queue.
    """
    definition = queue.definition
    if descriptor.persistence == _PERSISTENT and definition.definition_type is _TEMPORARY:
        raise PersistentNotAllowed(f"{definition.name} is a temporary dynamic queue")
    if route is not None:
        return transmitted(descriptor, data, route, facts.q_mgr.name, ids.msg_id(ids.message()), now)
    if definition.usage is _TRANSMISSION:
        check_xqh(descriptor, data)
    return descriptor, data


def transmitted(
    descriptor: MessageDescriptor, data: bytes, route: Route, q_mgr_name: str, msg_id: bytes, now: int
) -> tuple[MessageDescriptor, bytes]:
    """Returns the separate descriptor, with the new ``msg_id``, and the data behind an MQXQH with the message's own.

    Both have the same expiry, priority and persistence; CorrelId is the message's MsgId, by which a report is matched.
    """
    separate = replace(
        descriptor,
        report=descriptor.report & ~_NOT_HERE,
        encoding=ENCODING_NATIVE,
        coded_char_set_id=CCSID_UTF8,
        format=FORMAT_XMIT_Q_HEADER,
        msg_id=msg_id,
        correl_id=descriptor.msg_id,
        backout_count=0,
        put_appl_type=int(ApplType.QMGR),
        put_appl_name=q_mgr_name[:28],
        put_ms=now,
        appl_origin_data="",
        group_id=NO_ID,
        msg_seq_number=1,
        offset=0,
        msg_flags=MsgFlag.NONE.value,
        original_length=-1,
    )
    return separate, pack_xqh(route.remote_q_name, route.remote_q_mgr_name, descriptor) + data
