"""The data of MQ's performance events: a PCF message on SYSTEM.ADMIN.PERFM.EVENT.

Source: the manual's event message reference: Queue Depth High, Queue Depth Low, Queue Full, Queue Service Interval High
and OK. All five have the same parameters in the same order.
"""

from __future__ import annotations

from typing import Final

import msgspec

from trigmon.mq.names import NAME_LENGTH
from trigmon.mq.reasons import CompCode, Reason
from trigmon.pcf.numbers import PcfCommand, StructureType
from trigmon.pcf.structures import PcfMessage, pack_message

Q_MGR_NAME: Final = 2015
BASE_OBJECT_NAME: Final = 2002
TIME_SINCE_RESET: Final = 35
HIGH_Q_DEPTH: Final = 36
MSG_ENQ_COUNT: Final = 37
MSG_DEQ_COUNT: Final = 38


class QueueFigures(msgspec.Struct, frozen=True):
    """What went through a queue since its last event: seconds, the greatest depth, messages put and messages got."""

    time_since_reset_s: int = 0
    high_q_depth: int = 0
    msg_enq_count: int = 0
    msg_deq_count: int = 0


def pack_performance_event(reason: Reason, q_mgr_name: str, q_name: str, figures: QueueFigures) -> bytes:
    """Returns the data of the event message. Names are padded with blanks to their length, as MQ's are."""
    parameters = (
        (Q_MGR_NAME, q_mgr_name.ljust(NAME_LENGTH)),
        (BASE_OBJECT_NAME, q_name.ljust(NAME_LENGTH)),
        (TIME_SINCE_RESET, figures.time_since_reset_s),
        (HIGH_Q_DEPTH, figures.high_q_depth),
        (MSG_ENQ_COUNT, figures.msg_enq_count),
        (MSG_DEQ_COUNT, figures.msg_deq_count),
    )
    message = PcfMessage(StructureType.EVENT, PcfCommand.PERFM_EVENT, CompCode.WARNING, int(reason), parameters)
    return pack_message(message)
