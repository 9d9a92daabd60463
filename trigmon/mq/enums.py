"""IBM's enumerations under readable names.

A class is an attribute or a field, a member the tail of IBM's constant, the value IBM's number: ``TriggerType.FIRST``
is ``MQTT_FIRST`` is 1. Option words are flags. :func:`read` reads a value as users write it, :func:`word` writes it.
"""

from __future__ import annotations

from contextlib import suppress
from enum import IntEnum, IntFlag
from typing import TypeVar


class ObjectType(IntEnum):
    """What a name in a definition names (``MQOT_*`` joined with ``MQQT_*``; numbers and the last three are ours)."""

    QLOCAL = 1
    QMODEL = 2
    QALIAS = 3
    QREMOTE = 6
    NAMELIST = 12
    PROCESS = 13
    QMGR = 15
    SCHEDULE = 1001
    WATCH = 1002
    AUTHREC = 1003


class QType(IntEnum):
    """``MQQT_*``: the type of a queue."""

    LOCAL = 1
    MODEL = 2
    ALIAS = 3
    REMOTE = 6


class TriggerControl(IntEnum):
    """``MQTC_*``: whether a queue's trigger messages are written."""

    OFF = 0
    ON = 1


class QsgDisp(IntEnum):
    """``MQQSGD_*``: whether an object is one queue manager's own, or its queue-sharing group's."""

    Q_MGR = 0
    COPY = 1
    SHARED = 2
    GROUP = 3


class Rearm(IntEnum):
    """Ours: whether the control that DEPTH switches off when it fires comes back on by itself."""

    MQ = 0
    AUTO = 1


class Coalesce(IntEnum):
    """Ours: whether a trigger message is served by the run that already waits for the same queue and process."""

    NO = 0
    YES = 1


class YesNo(IntEnum):
    """Ours: whether a process asks for the MQTMC2 as an argument, or for a shell, as MQ's monitors have both."""

    NO = 0
    YES = 1


class UnknownEnd(IntEnum):
    """Ours: what follows where nobody knows how a program ended: that is kept on record, or it is tried again."""

    KEEP = 0
    RETRY = 1


class Recover(IntEnum):
    """Ours: how many trigger messages a monitor that comes finds for a queue of EVERY: MQ's one, or all it is due."""

    MQ = 0
    ALL = 1


class SparkStart(IntEnum):
    """Ours: how a Spark job is started: cold, on a warm Spark Connect server, or by a cluster's REST server."""

    SUBMIT = 0
    CONNECT = 1
    REST = 2


class SparkIsolation(IntEnum):
    """Ours: what a job started by CONNECT has to itself: a session of a shared server, or a whole process."""

    SESSION = 0
    PROCESS = 1


class SparkShort(IntEnum):
    """Ours: whether a job is so short that its Java machine had better start fast than become fast."""

    NO = 0
    YES = 1


class SparkDeployMode(IntEnum):
    """Ours, spark-submit's words: where the driver runs."""

    CLIENT = 0
    CLUSTER = 1


class BackoutRequeue(IntEnum):
    """Ours: a message that was backed out BOTHRESH times is moved by programs, as in MQ, or by the queue manager."""

    APPL = 0
    QMGR = 1


class TriggerType(IntEnum):
    """``MQTT_*``: on what a trigger event rests."""

    NONE = 0
    FIRST = 1
    EVERY = 2
    DEPTH = 3


class Usage(IntEnum):
    """``MQUS_*``: an ordinary queue or a transmission queue."""

    NORMAL = 0
    TRANSMISSION = 1


class Inhibit(IntEnum):
    """``MQQA_GET_*`` and ``MQQA_PUT_*``: whether gets or puts are let through."""

    ALLOWED = 0
    INHIBITED = 1


class Shareability(IntEnum):
    """``MQQA_*SHAREABLE``: whether several handles may have the queue open for input."""

    NOT_SHAREABLE = 0
    SHAREABLE = 1


class HardenGetBackout(IntEnum):
    """``MQQA_BACKOUT_*``: accepted for MQ's sake; backout counts are always hardened here."""

    NOT_HARDENED = 0
    HARDENED = 1


class MsgDeliverySequence(IntEnum):
    """``MQMDS_*``: messages are placed by priority, or in order of arrival."""

    PRIORITY = 0
    FIFO = 1


class DefinitionType(IntEnum):
    """``MQQDT_*``: how the queue came to be."""

    PREDEFINED = 1
    PERMANENT_DYNAMIC = 2
    TEMPORARY_DYNAMIC = 3


class Persistence(IntEnum):
    """``MQPER_*``: whether a message survives a restart."""

    NOT_PERSISTENT = 0
    PERSISTENT = 1
    AS_Q_DEF = 2


class DefInputOpenOption(IntEnum):
    """``MQOO_INPUT_*`` as a queue's default share option (DEFSOPT)."""

    INPUT_SHARED = 2
    INPUT_EXCLUSIVE = 4


class MsgType(IntEnum):
    """``MQMT_*``: what a message is to its receiver; 65536 to 999999999 are the application's own."""

    REQUEST = 1
    REPLY = 2
    REPORT = 4
    DATAGRAM = 8


class ApplType(IntEnum):
    """``MQAT_*``: what kind of program a process starts. SPARK lies in the user range and is ours."""

    UNKNOWN = -1
    NO_CONTEXT = 0
    CICS = 1
    MVS = 2
    IMS = 3
    UNIX = 6
    QMGR = 7
    OS400 = 8
    WINDOWS = 9
    WINDOWS_NT = 11
    NSK = 13
    NOTES_AGENT = 22
    USER = 25
    JAVA = 28
    WLM = 31
    SPARK = 65_536


class Feedback(IntEnum):
    """``MQFB_*``: why a report, or a dead letter, was written."""

    NONE = 0
    QUIT = 256
    EXPIRATION = 258
    COA = 259
    COD = 260
    APPL_CANNOT_BE_STARTED = 265
    TM_ERROR = 266
    APPL_TYPE_ERROR = 267
    PAN = 275
    NAN = 276


class OpenOption(IntFlag):
    """``MQOO_*``, the ones that have a meaning here."""

    INPUT_AS_Q_DEF = 0x1
    INPUT_SHARED = 0x2
    INPUT_EXCLUSIVE = 0x4
    BROWSE = 0x8
    OUTPUT = 0x10
    INQUIRE = 0x20
    SET = 0x40
    SAVE_ALL_CONTEXT = 0x80
    PASS_IDENTITY_CONTEXT = 0x100
    PASS_ALL_CONTEXT = 0x200
    SET_IDENTITY_CONTEXT = 0x400
    SET_ALL_CONTEXT = 0x800
    FAIL_IF_QUIESCING = 0x2000


class CloseOption(IntFlag):
    """``MQCO_*``; deletion on close belongs to permanent dynamic queues."""

    NONE = 0
    DELETE = 1
    DELETE_PURGE = 2


class PutOption(IntFlag):
    """``MQPMO_*``, the ones that have a meaning here."""

    NONE = 0
    SYNCPOINT = 0x2
    NO_SYNCPOINT = 0x4
    DEFAULT_CONTEXT = 0x20
    NEW_MSG_ID = 0x40
    NEW_CORREL_ID = 0x80
    PASS_IDENTITY_CONTEXT = 0x100
    PASS_ALL_CONTEXT = 0x200
    SET_IDENTITY_CONTEXT = 0x400
    SET_ALL_CONTEXT = 0x800
    FAIL_IF_QUIESCING = 0x2000
    NO_CONTEXT = 0x4000
    LOGICAL_ORDER = 0x8000


class GetOption(IntFlag):
    """``MQGMO_*``, the ones that have a meaning here."""

    NO_WAIT = 0
    WAIT = 0x1
    SYNCPOINT = 0x2
    NO_SYNCPOINT = 0x4
    BROWSE_FIRST = 0x10
    BROWSE_NEXT = 0x20
    ACCEPT_TRUNCATED_MSG = 0x40
    MARK_SKIP_BACKOUT = 0x80
    MSG_UNDER_CURSOR = 0x100
    LOCK = 0x200
    UNLOCK = 0x400
    BROWSE_MSG_UNDER_CURSOR = 0x800
    SYNCPOINT_IF_PERSISTENT = 0x1000
    FAIL_IF_QUIESCING = 0x2000
    LOGICAL_ORDER = 0x8000
    COMPLETE_MSG = 0x10000
    ALL_MSGS_AVAILABLE = 0x20000
    ALL_SEGMENTS_AVAILABLE = 0x40000


class MatchOption(IntFlag):
    """``MQMO_*``: which fields a message must agree in to be got."""

    NONE = 0
    MSG_ID = 0x1
    CORREL_ID = 0x2
    GROUP_ID = 0x4
    MSG_SEQ_NUMBER = 0x8
    OFFSET = 0x10


class MsgFlag(IntFlag):
    """``MQMF_*``: a message's place in its group and its logical message."""

    NONE = 0
    SEGMENTATION_ALLOWED = 0x1
    SEGMENT = 0x2
    LAST_SEGMENT = 0x4
    MSG_IN_GROUP = 0x8
    LAST_MSG_IN_GROUP = 0x10


class ReportOption(IntFlag):
    """``MQRO_*``: which reports a message asks for, and which ids they carry. ``WITH_DATA`` contains the plain bit."""

    NONE = 0
    PAN = 0x1
    NAN = 0x2
    ACTIVITY = 0x4
    PASS_CORREL_ID = 0x40
    PASS_MSG_ID = 0x80
    COA = 0x100
    COA_WITH_DATA = 0x300
    COA_WITH_FULL_DATA = 0x700
    COD = 0x800
    COD_WITH_DATA = 0x1800
    COD_WITH_FULL_DATA = 0x3800
    PASS_DISCARD_AND_EXPIRY = 0x4000
    EXPIRATION = 0x0020_0000
    EXPIRATION_WITH_DATA = 0x0060_0000
    EXPIRATION_WITH_FULL_DATA = 0x00E0_0000
    EXCEPTION = 0x0100_0000
    EXCEPTION_WITH_DATA = 0x0300_0000
    EXCEPTION_WITH_FULL_DATA = 0x0700_0000
    DISCARD_MSG = 0x0800_0000
    NEW_MSG_ID = 0
    COPY_MSG_ID_TO_CORREL_ID = 0
    DEAD_LETTER_Q = 0


class CapExpiry(IntEnum):
    """``MQCEX_*``: the limit that an object sets to how long a message lives; others are tenths of a second."""

    NOLIMIT = -1


class ExpiryInterval(IntEnum):
    """``MQEXPI_*``: how often expired messages are looked for; others are seconds."""

    OFF = 0


class UnitOutcome(IntEnum):
    """What became of a unit of work, as the queue manager remembers it."""

    UNKNOWN = 0
    OPEN = 1
    COMMITTED = 2
    BACKED_OUT = 3


def bits_by_word(kind: type[IntFlag]) -> dict[str, int]:
    """Returns each option by its word, as a plain integer: or-ing members of a flag costs a microsecond a call."""
    return {name.lower(): int(member) for name, member in kind.__members__.items()}


E = TypeVar("E", bound=IntEnum)


def word(member: IntEnum) -> str:
    """Returns the member as users write it: the constant's tail in lower case."""
    return member.name.lower()


def read(kind: type[E], value: object) -> E:
    """Returns the member that ``value`` means: a member, IBM's number, or the word in either case.

    Raises ValueError with the allowed words.
    """
    if isinstance(value, str):
        name = value.strip().upper()
        if name in kind.__members__:
            return kind[name]
    elif isinstance(value, int) and not isinstance(value, bool):
        with suppress(ValueError):
            return kind(value)
    raise ValueError(f"{value!r} is none of {', '.join(word(m) for m in kind)}")
