"""Every enumeration has IBM's numbers, and is read in any of the ways a user may write it."""

import pytest

from trigmon.mq import enums
from trigmon.mq.enums import read, word

IBMS_NUMBERS = {
    "QType": {"LOCAL": 1, "MODEL": 2, "ALIAS": 3, "REMOTE": 6},
    "TriggerControl": {"OFF": 0, "ON": 1},
    "TriggerType": {"NONE": 0, "FIRST": 1, "EVERY": 2, "DEPTH": 3},
    "Usage": {"NORMAL": 0, "TRANSMISSION": 1},
    "Inhibit": {"ALLOWED": 0, "INHIBITED": 1},
    "Shareability": {"NOT_SHAREABLE": 0, "SHAREABLE": 1},
    "HardenGetBackout": {"NOT_HARDENED": 0, "HARDENED": 1},
    "MsgDeliverySequence": {"PRIORITY": 0, "FIFO": 1},
    "DefinitionType": {"PREDEFINED": 1, "PERMANENT_DYNAMIC": 2, "TEMPORARY_DYNAMIC": 3},
    "Persistence": {"NOT_PERSISTENT": 0, "PERSISTENT": 1, "AS_Q_DEF": 2},
    "DefInputOpenOption": {"INPUT_SHARED": 2, "INPUT_EXCLUSIVE": 4},
    "MsgType": {"REQUEST": 1, "REPLY": 2, "REPORT": 4, "DATAGRAM": 8},
    "ApplType": {
        "UNKNOWN": -1,
        "NO_CONTEXT": 0,
        "CICS": 1,
        "MVS": 2,
        "IMS": 3,
        "UNIX": 6,
        "QMGR": 7,
        "OS400": 8,
        "WINDOWS": 9,
        "WINDOWS_NT": 11,
        "NSK": 13,
        "USER": 25,
        "JAVA": 28,
        "WLM": 31,
        "SPARK": 65_536,
    },
    "Feedback": {
        "NONE": 0,
        "QUIT": 256,
        "EXPIRATION": 258,
        "COA": 259,
        "COD": 260,
        "APPL_CANNOT_BE_STARTED": 265,
        "TM_ERROR": 266,
        "APPL_TYPE_ERROR": 267,
    },
    "OpenOption": {
        "INPUT_AS_Q_DEF": 1,
        "INPUT_SHARED": 2,
        "INPUT_EXCLUSIVE": 4,
        "BROWSE": 8,
        "OUTPUT": 0x10,
        "INQUIRE": 0x20,
        "SET": 0x40,
        "FAIL_IF_QUIESCING": 0x2000,
    },
    "CloseOption": {"NONE": 0, "DELETE": 1, "DELETE_PURGE": 2},
    "PutOption": {
        "NONE": 0,
        "SYNCPOINT": 2,
        "NO_SYNCPOINT": 4,
        "NEW_MSG_ID": 0x40,
        "NEW_CORREL_ID": 0x80,
        "FAIL_IF_QUIESCING": 0x2000,
    },
    "GetOption": {
        "NO_WAIT": 0,
        "WAIT": 1,
        "SYNCPOINT": 2,
        "NO_SYNCPOINT": 4,
        "BROWSE_FIRST": 0x10,
        "BROWSE_NEXT": 0x20,
        "ACCEPT_TRUNCATED_MSG": 0x40,
        "MSG_UNDER_CURSOR": 0x100,
        "BROWSE_MSG_UNDER_CURSOR": 0x800,
        "FAIL_IF_QUIESCING": 0x2000,
    },
    "MatchOption": {"NONE": 0, "MSG_ID": 1, "CORREL_ID": 2},
    "MsgFlag": {
        "NONE": 0,
        "SEGMENTATION_ALLOWED": 1,
        "SEGMENT": 2,
        "LAST_SEGMENT": 4,
        "MSG_IN_GROUP": 8,
        "LAST_MSG_IN_GROUP": 0x10,
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "number"), [(k, n, v) for k, ns in IBMS_NUMBERS.items() for n, v in ns.items()]
)
def test_a_member_has_ibms_number(kind, name, number):
    assert getattr(enums, kind)[name] == number


def test_a_word_is_the_constants_tail_in_lower_case():
    assert word(enums.TriggerType.FIRST) == "first"
    assert word(enums.MsgDeliverySequence.FIFO) == "fifo"


@pytest.mark.parametrize("said", [enums.Persistence.PERSISTENT, 1, "persistent", "PERSISTENT", " Persistent "])
def test_a_value_is_read_from_member_number_or_word(said):
    assert read(enums.Persistence, said) is enums.Persistence.PERSISTENT


@pytest.mark.parametrize("said", ["always", 7, True, None, 1.0, ""])
def test_anything_else_is_refused_with_the_allowed_words(said):
    with pytest.raises(ValueError, match="not_persistent, persistent, as_q_def"):
        read(enums.Persistence, said)
