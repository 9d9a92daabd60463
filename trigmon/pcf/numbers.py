"""The numbers of PCF: structure types, commands, reasons, parameters. Names without the prefix, IBM's numbers.

Source: the header's constants. Numbers of attributes stand in the table of attributes (:mod:`trigmon.mq.attributes`).
"""

from __future__ import annotations

from enum import IntEnum


class StructureType(IntEnum):
    """``MQCFT_*``: what a message or a parameter is."""

    COMMAND = 1
    RESPONSE = 2
    INTEGER = 3
    STRING = 4
    INTEGER_LIST = 5
    STRING_LIST = 6
    EVENT = 7
    USER = 8
    BYTE_STRING = 9
    INTEGER_FILTER = 13
    STRING_FILTER = 14
    BYTE_STRING_FILTER = 15
    COMMAND_XR = 16
    XR_MSG = 17
    XR_ITEM = 18
    XR_SUMMARY = 19
    GROUP = 20
    STATISTICS = 21
    ACCOUNTING = 22
    INTEGER64 = 23
    INTEGER64_LIST = 25


class PcfCommand(IntEnum):
    """``MQCMD_*``: what a PCF message is about. Only these have an answer here, but for PERFM_EVENT, an event."""

    PERFM_EVENT = 45


class PcfReason(IntEnum):
    """``MQRCCF_*``: what is wrong with a PCF message."""

    CFH_TYPE_ERROR = 3001
    CFH_LENGTH_ERROR = 3002
    CFH_VERSION_ERROR = 3003
    CFH_MSG_SEQ_NUMBER_ERR = 3004
    CFH_CONTROL_ERROR = 3005
    CFH_PARM_COUNT_ERROR = 3006
    CFIN_LENGTH_ERROR = 3009
    CFST_LENGTH_ERROR = 3010
    CFST_STRING_LENGTH_ERR = 3011
    STRUCTURE_TYPE_ERROR = 3013
    MSG_LENGTH_ERROR = 3016
    CFSL_LENGTH_ERROR = 3024
    CFIL_COUNT_ERROR = 3027
    CFIL_LENGTH_ERROR = 3028
    CCSID_ERROR = 3049
    CFSL_COUNT_ERROR = 3068
    CFSL_STRING_LENGTH_ERR = 3069
    CFIF_LENGTH_ERROR = 3241
    CFSF_FILTER_VAL_LEN_ERR = 3244
    CFSF_LENGTH_ERROR = 3245
    CFBS_LENGTH_ERROR = 3255
    CFBS_STRING_LENGTH_ERR = 3257
    CFGR_LENGTH_ERROR = 3258
    CFGR_PARM_COUNT_ERROR = 3259
    CFBF_LENGTH_ERROR = 3264
    CFBF_FILTER_VAL_LEN_ERR = 3267

    @property
    def mq_name(self) -> str:
        """The constant as IBM writes it."""
        return f"MQRCCF_{self.name}"
