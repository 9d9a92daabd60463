"""Inquiries about what MQ has and trigmon has not: channels, listeners, topics, clusters. There is none to be found.

A tool that watches a queue manager asks about all of it. It takes MQ's reason for "there is none" as an answer, and
MQRCCF_CFH_COMMAND_ERROR as a fault of the queue manager. Commands that would make or start such an object are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trigmon.mq.reasons import Reason
from trigmon.pcf.numbers import Parameter, PcfCommand, PcfReason
from trigmon.pcf.request import Answers, Ask, CommandFailedError, Request

NO_SUBSCRIPTION: Final = 2428
"""MQRC_NO_SUBSCRIPTION, which no call here answers with."""

REASONS: Final[dict[PcfCommand, int]] = {
    PcfCommand.INQUIRE_CHANNEL: PcfReason.CHANNEL_NOT_FOUND,
    PcfCommand.INQUIRE_CHANNEL_STATUS: PcfReason.CHL_STATUS_NOT_FOUND,
    PcfCommand.INQUIRE_CHLAUTH_RECS: PcfReason.CHLAUTH_NOT_FOUND,
    PcfCommand.INQUIRE_LISTENER: Reason.UNKNOWN_OBJECT_NAME,
    PcfCommand.INQUIRE_LISTENER_STATUS: PcfReason.LSTR_STATUS_NOT_FOUND,
    PcfCommand.INQUIRE_SERVICE: Reason.UNKNOWN_OBJECT_NAME,
    PcfCommand.INQUIRE_SERVICE_STATUS: PcfReason.SERV_STATUS_NOT_FOUND,
    PcfCommand.INQUIRE_TOPIC: Reason.UNKNOWN_OBJECT_NAME,
    PcfCommand.INQUIRE_TOPIC_STATUS: PcfReason.TOPIC_STRING_NOT_FOUND,
    PcfCommand.INQUIRE_SUBSCRIPTION: NO_SUBSCRIPTION,
    PcfCommand.INQUIRE_SUB_STATUS: NO_SUBSCRIPTION,
    PcfCommand.INQUIRE_COMM_INFO: Reason.UNKNOWN_OBJECT_NAME,
    PcfCommand.INQUIRE_CLUSTER_Q_MGR: Reason.UNKNOWN_OBJECT_NAME,
    PcfCommand.INQUIRE_PROT_POLICY: PcfReason.POLICY_NOT_FOUND,
    PcfCommand.INQUIRE_APPL_STATUS: PcfReason.APPL_STATUS_NOT_FOUND,
}
"""By inquiry MQ's reason for "there is none"."""

LISTS: Final[dict[PcfCommand, Parameter]] = {
    PcfCommand.INQUIRE_CHANNEL_NAMES: Parameter.CHANNEL_NAMES,
    PcfCommand.INQUIRE_TOPIC_NAMES: Parameter.TOPIC_NAMES,
}
"""By inquiry of names the number of the list, which is empty."""


def none_found(reason: int) -> Callable[[Request, Ask], Answers]:
    """Returns the handler of an inquiry that finds nothing, whatever its parameters choose by."""

    def inquire(request: Request, ask: Ask) -> Answers:
        raise CommandFailedError(reason)
        yield  # a handler is a generator

    return inquire


def empty_list(number: Parameter) -> Callable[[Request, Ask], Answers]:
    """Returns the handler of an inquiry of names, of which there are none."""

    def inquire(request: Request, ask: Ask) -> Answers:
        yield [(number, ())]

    return inquire
