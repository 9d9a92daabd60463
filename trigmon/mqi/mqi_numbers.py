"""Numbers of the MQI that only its library needs: options that end here, reasons that only it gives. IBM's numbers."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from trigmon.mq.reasons import Reason


class MqiReason(IntEnum):
    """``MQRC_*`` of calls that are done in the library, and of structures that only it reads."""

    CHAR_ATTRS_TOO_SHORT = Reason.CHAR_ATTRS_TOO_SHORT
    INT_ATTR_COUNT_TOO_SMALL = Reason.INT_ATTR_COUNT_TOO_SMALL
    BUFFER_LENGTH_ERROR = Reason.BUFFER_LENGTH_ERROR
    HCONN_ERROR = Reason.HCONN_ERROR
    HOBJ_ERROR = Reason.HOBJ_ERROR
    MD_ERROR = Reason.MD_ERROR
    OBJECT_TYPE_ERROR = Reason.OBJECT_TYPE_ERROR
    OD_ERROR = Reason.OD_ERROR
    OPTIONS_ERROR = Reason.OPTIONS_ERROR
    Q_MGR_NAME_ERROR = Reason.Q_MGR_NAME_ERROR
    SELECTOR_ERROR = Reason.SELECTOR_ERROR
    UNKNOWN_REMOTE_Q_MGR = Reason.UNKNOWN_REMOTE_Q_MGR
    FORMAT_ERROR = Reason.FORMAT_ERROR
    SOURCE_CCSID_ERROR = 2111
    TARGET_CCSID_ERROR = 2115
    NOT_CONVERTED = Reason.NOT_CONVERTED
    CONVERTED_MSG_TOO_BIG = 2120
    NO_EXTERNAL_PARTICIPANTS = Reason.NO_EXTERNAL_PARTICIPANTS
    CNO_ERROR = Reason.CNO_ERROR
    PMO_ERROR = Reason.PMO_ERROR
    GMO_ERROR = Reason.GMO_ERROR
    UNEXPECTED_ERROR = Reason.UNEXPECTED_ERROR
    HOST_NOT_AVAILABLE = 2538
    CSP_ERROR = 2595
    CALL_IN_PROGRESS = Reason.CALL_IN_PROGRESS
    WRONG_GMO_VERSION = Reason.WRONG_GMO_VERSION
    WRONG_MD_VERSION = Reason.WRONG_MD_VERSION
    CD_ERROR = 2277
    FUNCTION_NOT_SUPPORTED = Reason.FUNCTION_NOT_SUPPORTED
    STS_ERROR = 2426
    STAT_TYPE_ERROR = 2430
    PROPERTY_NAME_ERROR = 2442
    CBD_ERROR = 2444
    CTLO_ERROR = 2445
    NO_CALLBACKS_ACTIVE = 2446
    CALLBACK_NOT_REGISTERED = 2448
    HMSG_ERROR = 2460
    CMHO_ERROR = 2461
    DMHO_ERROR = 2462
    SMPO_ERROR = 2463
    IMPO_ERROR = 2464
    PROPERTY_VALUE_TOO_BIG = 2469
    PROP_CONV_NOT_SUPPORTED = 2470
    PROPERTY_NOT_AVAILABLE = 2471
    PROP_NUMBER_FORMAT_ERROR = 2472
    PROPERTY_TYPE_ERROR = 2473
    DMPO_ERROR = 2481
    PD_ERROR = 2482
    CALLBACK_TYPE_ERROR = 2483
    OPERATION_ERROR = 2488
    HCONN_ASYNC_ACTIVE = Reason.HCONN_ASYNC_ACTIVE
    OPERATION_NOT_ALLOWED = 2534


class MqiError(Exception):
    """A call that ended in the library: ``comp_code`` is 2 (failed) or 1 (warning)."""

    def __init__(self, reason: MqiReason | int, about: str = "", *, comp_code: int = 2) -> None:
        super().__init__(about)
        self.reason = int(reason)
        self.comp_code = comp_code


class ConnectOption(IntFlag):
    """``MQCNO_*`` that have an effect here."""

    HANDLE_SHARE_NONE = 0x20
    HANDLE_SHARE_BLOCK = 0x40
    HANDLE_SHARE_NO_BLOCK = 0x80


OPENS_IGNORED = sum(
    (
        0x1000,  # alternate user authority: rights are those of the connection's user
        0x4000 | 0x8000 | 0x40_0000,  # bind on open, not fixed, on group
        0x1_0000,  # bind as the queue says, and resolve names
        0x2_0000,  # co-operative browse
        0x4_0000,  # resolve the local queue
        0x8_0000 | 0x10_0000,  # no read ahead, read ahead
    )
)
"""``MQOO_*`` that say nothing here: no cluster, no read ahead."""
PUT_ASYNC_RESPONSE = 0x1_0000
PUTS_IGNORED = PUT_ASYNC_RESPONSE | sum(
    (
        0x1000,  # alternate user authority
        0x2_0000,  # synchronous response
        0x4_0000,  # resolve the local queue
        0x80_0000,  # the descriptor is for output only
        0x400_0000 | 0x800_0000 | 0x1000_0000,  # scope, reply and own subscriptions of a publication
    )
)
GET_CONVERT = 0x4000
GET_FORCE_RFH2, GET_NO_PROPERTIES, GET_IN_HANDLE, GET_COMPATIBILITY = 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000
GETS_IGNORED = GET_CONVERT | GET_FORCE_RFH2 | GET_NO_PROPERTIES | GET_IN_HANDLE | GET_COMPATIBILITY
CLOSES_IGNORED = 0x4 | 0x8 | 0x20 | 0x40


class ObjectKind(IntEnum):
    """``MQOT_*``, the types of object that MQOPEN takes."""

    Q = 1
    NAMELIST = 2
    PROCESS = 3
    Q_MGR = 5


class StatType(IntEnum):
    """``MQSTAT_TYPE_*``."""

    ASYNC_ERROR = 0
    RECONNECTION = 1
    RECONNECTION_ERROR = 2


class PropertyType(IntFlag):
    """``MQTYPE_*``: the type of a message property."""

    AS_SET = 0
    NULL = 0x2
    BOOLEAN = 0x4
    BYTE_STRING = 0x8
    INT8 = 0x10
    INT16 = 0x20
    INT32 = 0x40
    INT64 = 0x80
    FLOAT32 = 0x100
    FLOAT64 = 0x200
    STRING = 0x400


class InquireProperty(IntFlag):
    """``MQIMPO_*``."""

    CONVERT_TYPE = 0x2
    QUERY_LENGTH = 0x4
    INQ_NEXT = 0x8
    INQ_PROP_UNDER_CURSOR = 0x10


class SetProperty(IntFlag):
    """``MQSMPO_*``."""

    UNDER_CURSOR = 0x1
    AFTER_CURSOR = 0x2
    APPEND = 0x4
    BEFORE_CURSOR = 0x8


class Operation(IntEnum):
    """``MQOP_*`` of MQCB and MQCTL."""

    START = 0x1
    START_WAIT = 0x2
    STOP = 0x4
    REGISTER = 0x100
    DEREGISTER = 0x200
    SUSPEND = 0x1_0000
    RESUME = 0x2_0000


class CallType(IntEnum):
    """``MQCBCT_*``: why a callback is called."""

    START_CALL = 1
    STOP_CALL = 2
    REGISTER_CALL = 3
    DEREGISTER_CALL = 4
    EVENT_CALL = 5
    MSG_REMOVED = 6
    MSG_NOT_REMOVED = 7


class CallbackOption(IntFlag):
    """``MQCBDO_*``."""

    START_CALL = 0x1
    STOP_CALL = 0x4
    REGISTER_CALL = 0x100
    DEREGISTER_CALL = 0x200
