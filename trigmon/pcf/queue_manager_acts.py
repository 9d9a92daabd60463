"""Commands that have the queue manager do something now: discard expired messages, read its security anew.

Source: the manual's pages of Refresh Queue Manager, Reset Queue Manager and Refresh Security.
"""

from __future__ import annotations

from typing import Final

from trigmon.mq.calls import Ping, Refresh
from trigmon.mq.errors import FunctionNotSupported
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.request import Answers, Ask, Request
from trigmon.pcf.structures import PcfError

_EXPIRY: Final = 2
_OTHER_REFRESHES: Final = {1: "configuration events", 3: "a local namespace", 4: "proxy subscriptions", 5: "topics"}
"""MQRT_*."""
_OF_LOGS: Final = (2, 10, 11)
_OTHER_RESETS: Final = {3: "statistics messages", 4: "publish and subscribe"}
"""MQACT_*."""


def refresh(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_REFRESH_Q_MGR: with MQRT_EXPIRY expired messages are discarded, and what else there is is 2298."""
    kind = request.integer(Parameter.REFRESH_TYPE)
    name = request.optional_text(Parameter.OBJECT_NAME) or "*"
    if kind in _OTHER_REFRESHES:
        raise FunctionNotSupported(f"there are no {_OTHER_REFRESHES[kind]} here")
    request.nothing_more()
    if kind != _EXPIRY:
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"refresh type {kind}", Parameter.REFRESH_TYPE)
    ask(Refresh(name=name))
    yield from ()


def reset(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_RESET_Q_MGR: nothing of it is here.

    The log is no linear one of MQ's, which is MQ's reason to refuse its acts.
    """
    act = request.integer(Parameter.ACTION)
    if act in _OF_LOGS:
        raise PcfError(PcfReason.LOG_TYPE_ERROR, "the store keeps its journal itself")
    if act in _OTHER_RESETS:
        raise FunctionNotSupported(f"there are no {_OTHER_RESETS[act]} here")
    raise PcfError(PcfReason.ACTION_VALUE_ERROR, f"act {act}", Parameter.ACTION)
    yield  # a handler is a generator


def refresh_security(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_REFRESH_SECURITY: done, since rights count from the next call on."""
    request.optional_integer(Parameter.SECURITY_TYPE, 1)
    request.nothing_more()
    ask(Ping())
    yield from ()
