"""MQOPEN, MQPUT, MQPUT1 and MQGET on a connection: structures in bytes to calls, replies to structures."""

from __future__ import annotations

import time
from typing import Any, Final, Literal, NamedTuple

from trigmon.mq.calls import Close, Display, Get, Open, Put
from trigmon.mq.descriptors import LARGEST_LONG, NO_ID, MessageDescriptor, date_and_time
from trigmon.mq.enums import GetOption, MatchOption, ObjectType, PutOption
from trigmon.mq.errors import MQError, NoMsgAvailable
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Listing, Opened, WasGot, WasPut
from trigmon.mq.rfh2 import FORMAT_RULES_2, with_typed_properties, without_typed_properties
from trigmon.mqi.connection_handles import SESSIONS, OpenObject, Session
from trigmon.mqi.conversion import converted
from trigmon.mqi.layout import Structure, Values
from trigmon.mqi.md import descriptor_of, md_of, number, raw, read_md, text
from trigmon.mqi.mqi_numbers import (
    CLOSES_IGNORED,
    GET_CONVERT,
    GET_FORCE_RFH2,
    GET_IN_HANDLE,
    GET_NO_PROPERTIES,
    GETS_IGNORED,
    OPENS_IGNORED,
    PUT_ASYNC_RESPONSE,
    PUTS_IGNORED,
    MqiError,
    MqiReason,
    ObjectKind,
)
from trigmon.mqi.structures import MQGMO, MQMD, MQOD, MQPMO, MQRFH2

_IN_UNIT: Final = int(GetOption.SYNCPOINT | GetOption.SYNCPOINT_IF_PERSISTENT)
_ACCEPT: Final = int(GetOption.ACCEPT_TRUNCATED_MSG)
_TRUNCATED: Final = frozenset((int(Reason.TRUNCATED_MSG_ACCEPTED), int(Reason.TRUNCATED_MSG_FAILED)))
_IDS_BY_BIT: Final = (
    (int(MatchOption.MSG_ID), "MsgId"),
    (int(MatchOption.CORREL_ID), "CorrelId"),
    (int(MatchOption.GROUP_ID), "GroupId"),
)
_MATCH_MSG_TOKEN: Final = 0x20
_FORWARD: Final = 1


def read(structure: Structure, given: bytes, reason: MqiReason) -> Values:
    """Returns the fields of an option structure. Raises MqiError with ``reason`` for what is none."""
    if not structure.is_one(given):
        raise MqiError(reason, f"no {structure.name}")
    return structure.unpack(given)


# -- MQOPEN, MQCLOSE ----------------------------------------------------------------------------------------


def open_object(session: Session, given: bytes, options: int) -> tuple[int, bytes]:
    """Opens what an MQOD names; returns the object handle and the MQOD as it is then."""
    od = read(MQOD, given, MqiReason.OD_ERROR)
    kind, name = _named(session, od)
    with session.used() as connection:
        call = Open(
            object_name="" if kind is ObjectKind.Q_MGR else name,
            options=options & ~OPENS_IGNORED,
            object_type=_TYPES[kind],
            dynamic_q_name=text(od["DynamicQName"]),
        )
        reply = connection.ask(call, Opened)
    stem = text(od["DynamicQName"]).removesuffix("*")
    is_dynamic = reply.q_name not in ("", name) and reply.q_name.startswith(stem) and _is_model(session, name)
    resolved = reply.q_name or name
    opened = OpenObject(reply.handle, kind, resolved if is_dynamic else name, resolved)
    od["ObjectName"] = opened.name.encode()
    if is_dynamic:
        od["ObjectQMgrName"] = session.connection.q_mgr_name.encode()
    od["ResolvedQName"] = resolved.encode()
    od["ResolvedQMgrName"] = session.connection.q_mgr_name.encode()
    od["ResolvedType"] = int(kind)
    return session.add(opened), MQOD.pack(od)


def close_object(session: Session, hobj: int, options: int) -> None:
    """Closes an object; its handle is gone where that succeeds or the queue is gone."""
    opened = session.opened(hobj)
    with session.used() as connection:
        connection.call(Close(handle=opened.handle, options=options & ~CLOSES_IGNORED))
    del session.objects[hobj]


_TYPES: Final = {
    ObjectKind.Q: "queue",
    ObjectKind.PROCESS: ObjectType.PROCESS.name,
    ObjectKind.Q_MGR: ObjectType.QMGR.name,
    ObjectKind.NAMELIST: "NAMELIST",
}


def queue_named(session: Session, given: bytes) -> str:
    """Returns the queue that MQPUT1's MQOD names. Raises MqiError."""
    kind, name = _named(session, read(MQOD, given, MqiReason.OD_ERROR))
    if kind is not ObjectKind.Q:
        raise MqiError(MqiReason.OBJECT_TYPE_ERROR, "messages are put to queues")
    return name


def _named(session: Session, od: Values) -> tuple[ObjectKind, str]:
    """Returns type and name of what an MQOD names. Raises MqiError: 2043, 2085, 2087."""
    given = number(od["ObjectType"])
    if given not in ObjectKind._value2member_map_:
        raise MqiError(MqiReason.OBJECT_TYPE_ERROR, f"object type {given}: there are queues, processes, the manager")
    kind, name = ObjectKind(given), text(od["ObjectName"])
    here = session.connection.q_mgr_name
    there = text(od["ObjectQMgrName"])
    if there not in ("", here):
        raise MqiError(MqiReason.UNKNOWN_REMOTE_Q_MGR, f"{there}: there is no way to another queue manager by its name")
    if kind is ObjectKind.Q_MGR and name not in ("", here):
        raise MqiError(Reason.UNKNOWN_OBJECT_NAME, f"QMGR({name})")
    if kind is ObjectKind.NAMELIST and "NAMELIST" not in ObjectType.__members__:
        raise MqiError(Reason.UNKNOWN_OBJECT_NAME, f"NAMELIST({name})")
    return kind, name


def _is_model(session: Session, name: str) -> bool:
    """Returns whether a name is a model queue's: what was opened has another name, as behind an alias."""
    with session.used() as connection:
        try:
            return bool(connection.ask(Display(object_type="QMODEL", name=name), Listing).rows)
        except MQError:
            return True  # who may not look at the model opened it all the same


# -- MQPUT, MQPUT1 ------------------------------------------------------------------------------------------


def put_message(
    session: Session, opened: OpenObject | None, q_name: str, given: bytes, options: bytes, data: bytes
) -> tuple[bytes, bytes, int]:
    """Puts a message; returns MQMD and MQPMO as they are then, and the reason of a warning, 0 for none."""
    md = read_md(given)
    pmo = read(MQPMO, options, MqiReason.PMO_ERROR)
    bits = number(pmo["Options"])
    descriptor, data = _with_properties(pmo, descriptor_of(md), data)
    context = number(pmo["Context"])
    in_unit = bool(bits & PutOption.SYNCPOINT)
    resolved = opened.resolved if opened else q_name
    try:
        with session.used() as connection:
            call = Put(
                handle=opened.handle if opened else 0,
                q_name="" if opened else q_name,
                descriptor=descriptor,
                data=data,
                options=bits & ~PUTS_IGNORED,
                unit=connection.unit if in_unit else 0,
                context=session.opened(context).handle if context else 0,
            )
            reply = connection.ask(call, WasPut)
    except MQError as error:
        if not bits & PUT_ASYNC_RESPONSE or not session.connection.alive:
            raise
        session.async_puts.count(int(error.comp_code), int(error.reason), resolved, in_unit=in_unit)
        return given, options, 0
    if bits & PUT_ASYNC_RESPONSE:
        session.async_puts.count(1 if reply.warning else 0, reply.warning, resolved, in_unit=in_unit)
    pmo["ResolvedQName"] = resolved.encode()
    pmo["ResolvedQMgrName"] = session.connection.q_mgr_name.encode()
    return _as_put(md, reply), MQPMO.pack(pmo), reply.warning


def _as_put(md: Values, reply: WasPut) -> bytes:
    date, time_of_day = date_and_time(reply.put_ms)
    changed: Values = {
        "MsgId": reply.msg_id,
        "CorrelId": reply.correl_id,
        "Priority": reply.priority,
        "Persistence": reply.persistence,
        "PutDate": date.encode(),
        "PutTime": time_of_day.encode(),
        "GroupId": reply.group_id,
        "MsgSeqNumber": reply.msg_seq_number,
        "Offset": reply.offset,
    }
    return MQMD.pack(md | changed)


def _with_properties(pmo: Values, descriptor: MessageDescriptor, data: bytes) -> tuple[MessageDescriptor, bytes]:
    """Returns the message behind the properties of its message handles. Raises MqiError: 2460, 2442."""
    original, new = number(pmo["OriginalMsgHandle"]), number(pmo["NewMsgHandle"])
    properties = SESSIONS.message(original).to_send() if original and (not new or pmo["Action"] == _FORWARD) else {}
    if new:
        properties |= SESSIONS.message(new).to_send()
    try:
        return with_typed_properties(descriptor, data, properties)
    except ValueError as error:
        raise MqiError(MqiReason.PROPERTY_NAME_ERROR, str(error)) from None


# -- MQGET --------------------------------------------------------------------------------------------------


class Got(NamedTuple):
    """A message as MQGET gives it: the data, the structures as they are then, and how it ended."""

    data: bytes
    md: bytes
    gmo: bytes
    length: int
    comp_code: int
    reason: int


def get_message(
    session: Session, opened: OpenObject, given: bytes, options: bytes, max_length: int, wait_ms: int | None = None
) -> Got:
    """Gets a message into a buffer of ``max_length`` bytes; ``wait_ms`` is in place of the MQGMO's WaitInterval."""
    md = read_md(given)
    if options[:4] == MQGMO.struc_id and not MQGMO.is_one(options):
        raise MqiError(MqiReason.WRONG_GMO_VERSION, "an MQGMO has versions 1 to 4")
    gmo = read(MQGMO, options, MqiReason.GMO_ERROR)
    if not 0 <= max_length <= LARGEST_LONG:
        raise MqiError(MqiReason.BUFFER_LENGTH_ERROR, f"a buffer of {max_length} bytes")
    bits = number(gmo["Options"])
    with session.used() as connection:
        call = Get(
            handle=opened.handle,
            options=bits & ~GETS_IGNORED,
            wait_interval_ms=number(gmo["WaitInterval"]) if wait_ms is None else wait_ms,
            max_length=max_length,
            unit=connection.unit if bits & _IN_UNIT else 0,
            **_matched(session, md, gmo),
        )
        if number(gmo["MsgHandle"]):
            SESSIONS.message(number(gmo["MsgHandle"]))
        strips = bits & (GET_NO_PROPERTIES | GET_IN_HANDLE) or (gmo["MsgHandle"] and not bits & GET_FORCE_RFH2)
        reply = _stripped(session, call) if strips else connection.ask(call, WasGot)
    descriptor, data, length = reply.descriptor, reply.data, reply.data_length
    reason = reply.warning
    if strips:
        descriptor, data, found = without_typed_properties(descriptor, data)
        length -= len(reply.data) - len(data)
        if gmo["MsgHandle"] and not bits & GET_NO_PROPERTIES:
            SESSIONS.message(number(gmo["MsgHandle"])).take(found)
        if len(data) > max_length:  # its header could not be read when all of it was here
            data, reason = data[:max_length], int(Reason.TRUNCATED_MSG_ACCEPTED)
    if bits & GET_CONVERT:
        descriptor, data, length, reason = _converted(md, descriptor, data, length, reason, max_length)
    gmo["ResolvedQName"] = opened.resolved.encode()
    gmo["GroupStatus"], gmo["SegmentStatus"] = reply.group_status.encode(), reply.segment_status.encode()
    gmo["ReturnedLength"] = len(data)
    gmo["MsgToken"] = session.token_for(descriptor.msg_id, descriptor.correl_id)
    return Got(data, md_of(descriptor, md["Version"]), MQGMO.pack(gmo), length, 1 if reason else 0, reason)


def _matched(session: Session, md: Values, gmo: Values) -> dict[str, Any]:
    """Returns which message is wanted: an id of nulls matches every message, and a token one that was got before."""
    match = number(gmo["MatchOptions"])
    token = raw(gmo["MsgToken"])
    if match & _MATCH_MSG_TOKEN and token.strip(b"\0"):
        ids = session.ids_of(token)
        if ids is None:
            raise NoMsgAvailable("the token is of another connection, or of a message of long ago")
        return {"match": int(MatchOption.MSG_ID | MatchOption.CORREL_ID), "msg_id": ids[0], "correl_id": ids[1]}
    match &= ~_MATCH_MSG_TOKEN
    for bit, name in _IDS_BY_BIT:
        if md[name] == NO_ID:
            match &= ~bit
    return {
        "match": match,
        "msg_id": raw(md["MsgId"]),
        "correl_id": raw(md["CorrelId"]),
        "group_id": raw(md["GroupId"]),
        "msg_seq_number": number(md["MsgSeqNumber"]),
        "offset": number(md["Offset"]),
    }


def _stripped(session: Session, call: Get) -> WasGot:
    """Gets a message whose MQRFH2 does not count against the buffer.

    One that does not fit is not taken at first. Then it is looked at how long its header is, and the same message is
    got with so much more room; where another program took it in between, it begins again.
    """
    connection = session.connection
    deadline = time.monotonic() + max(0, call.wait_ms) / 1000
    fields = {f: getattr(call, f) for f in Get.__struct_fields__}
    while True:
        reply = connection.ask(Get(**fields | {"options": call.options & ~_ACCEPT}), WasGot)
        if reply.warning not in _TRUNCATED:
            return reply
        fields |= {"options": call.options & ~int(GetOption.WAIT), "wait_interval_ms": 0}
        if not call.options & GetOption.LOGICAL_ORDER:
            fields |= {"match": call.match | int(MatchOption.MSG_ID), "msg_id": reply.descriptor.msg_id}
        try:
            return _with_room(session, fields, reply, call)
        except NoMsgAvailable:
            left_ms = round((deadline - time.monotonic()) * 1000)
            if call.wait_ms >= 0 and left_ms <= 0:
                raise
            fields |= {"options": call.options, "match": call.match, "msg_id": call.msg_id}
            fields["wait_interval_ms"] = left_ms if call.wait_ms >= 0 else call.wait_interval_ms


def _with_room(session: Session, fields: dict[str, Any], reply: WasGot, call: Get) -> WasGot:
    """Gets the message of ``reply`` with the room that its header needs, which has 36 bytes at least."""
    room = 0
    if reply.descriptor.format.rstrip() == FORMAT_RULES_2:
        least = fields | {"options": fields["options"] & ~_ACCEPT, "max_length": call.max_length + MQRFH2.size}
        reply = session.connection.ask(Get(**least), WasGot)
        if reply.warning not in _TRUNCATED:
            return reply
        room = _heads(reply)
    return session.connection.ask(Get(**fields | {"max_length": call.max_length + room}), WasGot)


def _heads(reply: WasGot) -> int:
    """Returns how many bytes the first MQRFH2 of a message has, as far as its beginning was got."""
    data = reply.data
    if reply.descriptor.format.rstrip() != FORMAT_RULES_2 or len(data) < 12 or data[:4] != b"RFH ":
        return 0
    order: Literal["little", "big"] = "little" if data[4:8] == b"\2\0\0\0" else "big"
    return min(max(0, int.from_bytes(data[8:12], order, signed=True)), reply.data_length)


def _converted(
    md: Values, descriptor: MessageDescriptor, data: bytes, length: int, reason: int, max_length: int
) -> tuple[MessageDescriptor, bytes, int, int]:
    """Returns the message as the MQMD asks for it; where that cannot be, as it was, with a warning."""
    try:
        inner, found = converted(descriptor, data, number(md["CodedCharSetId"]), number(md["Encoding"]))
    except MqiError as error:
        return descriptor, data, length, reason or error.reason
    if len(found) > max_length:
        return descriptor, data, length, reason or int(MqiReason.CONVERTED_MSG_TOO_BIG)
    return inner, found, length if reason else len(found), reason
