"""The functions of message handles: MQCRTMH, MQDLTMH, MQSETMP, MQINQMP, MQDLTMP, with the C module's arguments.

Nothing of them reaches the queue manager: properties travel with the message (:mod:`trigmon.mqi.properties`).
"""

from __future__ import annotations

from typing import Final

from trigmon.mqi.answers import Answer, answering, characters, check
from trigmon.mqi.connection_handles import SESSIONS, UNUSABLE
from trigmon.mqi.md import number
from trigmon.mqi.message_calls import read
from trigmon.mqi.mqi_numbers import InquireProperty, MqiError, MqiReason
from trigmon.mqi.properties import Value, length_of, to_type
from trigmon.mqi.structures import MQCMHO, MQDMHO, MQDMPO, MQIMPO, MQPD, MQSMPO

_TOO_BIG: Final = int(MqiReason.PROPERTY_VALUE_TOO_BIG)


@answering(lambda *_: (UNUSABLE,))
def MQCRTMH(hconn: int, cmho: bytes) -> Answer:
    """Creates a message handle: handle, completion code, reason."""
    check(cmho, MQCMHO)
    read(MQCMHO, cmho, MqiReason.CMHO_ERROR)
    return SESSIONS.create_message(hconn), 0


@answering()
def MQDLTMH(hconn: int, hmsg: int, dmho: bytes) -> Answer:
    """Deletes a message handle."""
    check(dmho, MQDMHO)
    read(MQDMHO, dmho, MqiReason.DMHO_ERROR)
    SESSIONS.delete_message(hmsg)
    return (0,)


@answering()
def MQSETMP(hconn: int, hmsg: int, smpo: bytes, name: bytes, pd: bytes, kind: int, value: Value, length: int) -> Answer:
    """Sets a property of a message handle. ``length`` cuts a text or bytes; below 0 it is all of it."""
    check(smpo, MQSMPO)
    check(pd, MQPD)
    options = number(read(MQSMPO, smpo, MqiReason.SMPO_ERROR)["Options"])
    read(MQPD, pd, MqiReason.PD_ERROR)
    SESSIONS.message(hmsg).put(characters(name), kind, _cut(value, length), options)
    return (0,)


def MQINQMP(hconn: int, hmsg: int, impo: bytes, name: bytes, pd: bytes, kind: int, max_length: int) -> Answer:
    """Inquires a property: value, its length, its name where a wildcard was asked for, completion code, reason."""
    value, length, found, comp_code, reason = _inquired(hconn, hmsg, impo, name, pd, kind, max_length)
    if reason == _TOO_BIG:
        *_, length = SESSIONS.message(hmsg).last
    return value, length, found, comp_code, reason


@answering(lambda *_: (None, 0, None))
def _inquired(hconn: int, hmsg: int, impo: bytes, name: bytes, pd: bytes, kind: int, max_length: int) -> Answer:
    options = number(read(MQIMPO, impo, MqiReason.IMPO_ERROR)["Options"])
    read(MQPD, pd, MqiReason.PD_ERROR)
    handle = SESSIONS.message(hmsg)
    found, of_type, value = handle.find(characters(name), options)
    if options & InquireProperty.CONVERT_TYPE:
        of_type, value = to_type(of_type, value, kind)
    length = length_of(of_type, value)
    handle.last = found, length
    if length > max_length and not options & InquireProperty.QUERY_LENGTH:
        raise MqiError(_TOO_BIG, f"{found} has {length} bytes")
    return value, length, found if b"%" in name else None, 0


@answering()
def MQDLTMP(hconn: int, hmsg: int, dmpo: bytes, name: bytes) -> Answer:
    """Deletes a property."""
    options = number(read(MQDMPO, dmpo, MqiReason.DMPO_ERROR)["Options"])
    SESSIONS.message(hmsg).remove(characters(name), options)
    return (0,)


def _cut(value: Value, length: int) -> Value:
    if length < 0 or not isinstance(value, str | bytes):
        return value
    return value.encode()[:length].decode(errors="ignore") if isinstance(value, str) else value[:length]
