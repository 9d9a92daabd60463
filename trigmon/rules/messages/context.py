"""Message context: the user a message is from (identity) and the program (origin), and how both are passed or set.

A put has one of six ways: by default, and with DEFAULT_CONTEXT, the queue manager writes both parts; NO_CONTEXT leaves
both blank; PASS_IDENTITY_CONTEXT and PASS_ALL_CONTEXT take them from the message last got through another handle;
SET_IDENTITY_CONTEXT and SET_ALL_CONTEXT let the application give them. Sources: the manual's pages of MQOPEN, MQPUT and
MQPUT1, "Rules for validating MQI options", and those of reasons 2093 to 2098.

MQ asks for an authority here. Every application may pass on what it got, except the mark that the queue manager wrote
it. To set a context freely, so that a message seems to be from another user, is for administrators.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq.calls import Put
from trigmon.mq.descriptors import LARGEST_LONG, MessageDescriptor
from trigmon.mq.enums import ApplType, OpenOption, PutOption
from trigmon.mq.errors import (
    ContextHandleError,
    ContextNotAvailable,
    MdError,
    MQError,
    NotAuthorized,
    NotOpenForPassAll,
    NotOpenForPassIdent,
    NotOpenForSetAll,
    NotOpenForSetIdent,
    OptionsError,
)
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handle_changes import SaveContext
from trigmon.rules.model.handles import HandleFacts

IDENTITY = ("user_identifier", "accounting_token", "appl_identity_data")
ORIGIN = ("put_appl_type", "put_appl_name", "put_ms", "appl_origin_data")

_DEFAULT = PutOption.DEFAULT_CONTEXT.value
NO_CONTEXT = PutOption.NO_CONTEXT.value
_PASSES = (PutOption.PASS_IDENTITY_CONTEXT | PutOption.PASS_ALL_CONTEXT).value
_SETS = (PutOption.SET_IDENTITY_CONTEXT | PutOption.SET_ALL_CONTEXT).value
_ALL = (PutOption.PASS_ALL_CONTEXT | PutOption.SET_ALL_CONTEXT).value
CONTEXT_WAYS = _DEFAULT | NO_CONTEXT | _PASSES | _SETS
ORDINARY_WAYS = (0, _DEFAULT, NO_CONTEXT)
"""The ways that need neither another message nor an authority: what they set is the same for each put."""
_SAVE = OpenOption.SAVE_ALL_CONTEXT.value
_OPEN_SETS = (OpenOption.SET_IDENTITY_CONTEXT | OpenOption.SET_ALL_CONTEXT).value
_OPEN_WAYS = _OPEN_SETS | (OpenOption.PASS_IDENTITY_CONTEXT | OpenOption.PASS_ALL_CONTEXT).value
_INPUT = (OpenOption.INPUT_AS_Q_DEF | OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value
_OUTPUT = OpenOption.OUTPUT.value
_NOT_OPEN: dict[int, type[MQError]] = {
    PutOption.PASS_IDENTITY_CONTEXT.value: NotOpenForPassIdent,
    PutOption.PASS_ALL_CONTEXT.value: NotOpenForPassAll,
    PutOption.SET_IDENTITY_CONTEXT.value: NotOpenForSetIdent,
    PutOption.SET_ALL_CONTEXT.value: NotOpenForSetAll,
}
BLANK: dict[str, Any] = {
    "user_identifier": "",
    "accounting_token": b"",
    "appl_identity_data": "",
    "put_appl_type": ApplType.NO_CONTEXT.value,
    "put_appl_name": "",
    "appl_origin_data": "",
}
"""No context at all: MQAT_NO_CONTEXT, and blanks. The store keeps the time of arrival, which a get does not show."""
_LARGEST_MS = 253_402_300_799_999
"""The last moment of the year 9999: PutDate has four digits for it."""


def check_opened(options: int, facts: Facts) -> None:
    """Checks the context options of an open. Raises OptionsError (2046), and NotAuthorized (2035) for setting one."""
    if options & _SAVE and not options & _INPUT:
        raise OptionsError("save_all_context goes with one of the ways of input")
    if options & _OPEN_WAYS and not options & _OUTPUT:
        raise OptionsError("passing and setting contexts goes with output")
    if options & _OPEN_SETS:
        _check_authority(facts)


def saved(handle: HandleFacts, last: MessageDescriptor | None) -> list[AnyChange]:
    """Returns the change after a get by a handle that saves contexts; ``last`` is None after a browse."""
    if not handle.options & _SAVE or handle.context == last:
        return []
    return [SaveContext(handle.handle, last)]


def context_for(call: Put, facts: Facts, now: int) -> dict[str, Any]:
    """Returns the context fields that a put's options set in place of the application's own context.

    Raises OptionsError (2046) for several ways at once, NotOpenForPassAll to NotOpenForSetIdent (2093 to 2096) where
    the queue was not opened for it, ContextHandleError (2097), ContextNotAvailable (2098), NotAuthorized (2035).
    """
    way = call.options & CONTEXT_WAYS
    if way & (way - 1):
        raise OptionsError(f"put options {call.options:#x}: one way of context at most")
    if way == _DEFAULT:
        return {}
    if way == NO_CONTEXT:
        return BLANK
    if facts.handle is not None and not _is_open_for(facts.handle, way):
        raise _NOT_OPEN[way](facts.handle.object_name)
    source = _passed(call, facts) if way & _PASSES else _given(call, facts)
    names = (*IDENTITY, *ORIGIN) if way & _ALL else IDENTITY
    fields = {name: getattr(source, name) for name in names}
    if fields.get("put_appl_type") == ApplType.QMGR and not facts.connection.is_administrator:
        # By this a monitor knows the queue manager's own trigger messages, and runs what they name.
        fields["put_appl_type"] = ApplType.UNIX.value
    if way & _ALL and (not fields["put_ms"] or fields["put_appl_type"] == ApplType.NO_CONTEXT):
        fields["put_ms"] = now
    return fields


def shown(descriptor: MessageDescriptor) -> MessageDescriptor:
    """Returns the descriptor as a get returns it: a message without context has no time of its put."""
    return replace(descriptor, put_ms=0) if descriptor.put_appl_type == ApplType.NO_CONTEXT else descriptor


def _is_open_for(handle: HandleFacts, way: int) -> bool:
    """Returns whether the handle may be used so: MQOO and MQPMO have the same bits, and each implies those below it."""
    return (handle.options & _OPEN_WAYS) >= way


def _passed(call: Put, facts: Facts) -> MessageDescriptor:
    handle = facts.context
    if handle is None or not handle.options & _SAVE:
        raise ContextHandleError(f"handle {call.context} was not opened with save_all_context")
    if handle.context is None:
        raise ContextNotAvailable(f"{handle.object_name}: nothing was got through this handle, or it was a browse")
    return handle.context


def _given(call: Put, facts: Facts) -> MessageDescriptor:
    _check_authority(facts)
    given = call.descriptor
    for name, length in (("user_identifier", 12), ("put_appl_name", 28)):
        if len(getattr(given, name)) > length:
            raise MdError(f"{name} has at most {length} characters")
    if not -LARGEST_LONG <= given.put_appl_type <= LARGEST_LONG:
        raise MdError("put_appl_type is beyond 32 bits")
    if not 0 <= given.put_ms <= _LARGEST_MS:
        raise MdError("put_ms is beyond what PutDate can say")
    return given


def _check_authority(facts: Facts) -> None:
    if not facts.connection.is_administrator:
        raise NotAuthorized("setting a context needs an administrator")
