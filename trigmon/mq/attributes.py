"""The attributes of every object, in ONE table: the fields of the structs below.

A field's name is the long MQI name in snake_case, its type is what a rule reads, its default is MQ's, and the
``Attribute`` beside it says the rest: MQSC's word, IBM's selector, what is allowed, whether MQSET may change it.
Definitions, MQSC, MQINQ, MQSET and the command line all read this table and no other.
Sources: the manual's pages of DEFINE QLOCAL, QALIAS, QREMOTE, QMODEL, NAMELIST, PROCESS and ALTER QMGR, and the
header's selectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

import msgspec

from trigmon.mq.compatibility import (
    CODED_CHAR_SET_ID,
    COMMAND_INPUT_Q,
    COMMAND_LEVEL,
    VERSION,
    CommandServerControl,
    Platform,
)
from trigmon.mq.enums import (
    ApplType,
    BackoutRequeue,
    CapExpiry,
    Coalesce,
    DefinitionType,
    DefInputOpenOption,
    ExpiryInterval,
    HardenGetBackout,
    Inhibit,
    MsgDeliverySequence,
    ObjectType,
    Persistence,
    QsgDisp,
    QType,
    Rearm,
    Recover,
    Shareability,
    SparkDeployMode,
    SparkIsolation,
    SparkShort,
    SparkStart,
    TriggerControl,
    TriggerType,
    UnknownEnd,
    Usage,
    YesNo,
    word,
)
from trigmon.mq.errors import AttrValueError, AttrValueFixed, ParmValueError, SelectorError
from trigmon.mq.event_kinds import EventRule, ServiceIntervalEvent
from trigmon.mq.names import NAME_LENGTH, is_object_name
from trigmon.mq.rights import PLAIN_WORDS, canonical
from trigmon.mq.timed_enums import Content, Missed, OnlyIf

ENABLED = MappingProxyType({"ENABLED": Inhibit.ALLOWED, "DISABLED": Inhibit.INHIBITED})
BILLION = 999_999_999
MOST_NAMES = 256
"""The most names of a namelist."""
_SEPARATORS = re.compile(r"[,\s]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
_DURATION = re.compile(r"([0-9]{1,9})([smhd])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_YES_OR_NO = {"YES": 1, "TRUE": 1, "NO": 0, "FALSE": 0}


class Attribute(msgspec.Struct, frozen=True):
    """What one attribute may hold and how it is called. ``name`` and ``default`` are filled from the field."""

    mqsc: str
    selector: int = 0
    low: int = 0
    high: int = BILLION
    length: int = 0
    is_name: bool = False
    words: MappingProxyType[str, IntEnum] | None = None
    flags: tuple[str, str] | None = None
    user_range: bool = False
    is_duration: bool = False  # in seconds; 90s, 15m, 2h and 1d are read too
    is_names: bool = False  # several names: a text with commas or blanks, or a list; held as a tuple
    is_rights: bool = False  # words of rights, as a text or a list; held as MQ's words with commas
    settable: bool = False
    read_only: bool = False
    ours: bool = False
    name: str = ""
    default: Any = None

    @property
    def is_text(self) -> bool:
        """Whether values are text rather than numbers."""
        return self.length > 0 or self.is_name

    @property
    def allowed(self) -> str:
        """What is allowed, in words for a person."""
        if self.flags:
            return f"{self.flags[1]} or {self.flags[0]}"
        if self.words:
            return " or ".join(self.words) + (f" or {self.low} to {self.high}" if self.user_range else "")
        if self.is_name:
            return f"a name of at most {NAME_LENGTH} of the characters A-Z a-z 0-9 . / _ %, or blank"
        if self.length:
            return f"text of at most {self.length} bytes"
        if self.is_names or self.is_rights:
            rights = f"some of {', '.join(PLAIN_WORDS)}, or of MQ's words for them"
            return rights if self.is_rights else f"at most {MOST_NAMES} names of objects"
        return f"{self.low} to {self.high}" + (" seconds, or a time such as 90s, 15m, 2h or 1d" * self.is_duration)

    def read(self, value: object, where: str) -> Any:
        """Returns ``value`` as this attribute holds it; ``where`` names the object for the error.

        A value may be the member, IBM's number, the constant's tail or MQSC's word. Raises AttrValueError.
        """
        if self.flags or self.words:
            return self._read_word(value, where)
        if self.is_text:
            return self._read_text(value, where)
        if self.is_names:
            return self._read_names(value, where)
        if self.is_rights:
            try:
                return canonical(value)
            except ParmValueError:
                raise self._refusal(value, where) from None
        if isinstance(value, str):
            value = self._number(value.strip().lower())
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise self._refusal(value, where)
        return value

    def write(self, value: Any) -> str:
        """Returns the value as MQSC shows it: ``FIRST``, ``DISABLED``, ``NOTRIGGER``, ``5000``, text as it is."""
        if self.flags:
            return self.flags[int(value)]
        if self.is_rights:
            return str(value).upper()
        if self.is_names:
            return ",".join(value)
        for text, member in (self.words or {}).items():
            if member == value:
                return text
        return str(int(value)) if isinstance(value, int) else str(value)

    def plain(self, value: Any) -> object:
        """Returns the value as JSON and YAML show it: enumerations as words, the rest as it is."""
        kind = type(self.default)
        if isinstance(self.default, IntEnum) and value in kind._value2member_map_:
            return word(kind(value))
        return list(value) if self.is_names else value

    def _number(self, text: str) -> int | str:
        """Returns the number that a text is, in seconds where it is a time; the text where it is none."""
        if _WHOLE.match(text):
            return int(text)
        found = _DURATION.match(text) if self.is_duration else None
        return int(found[1]) * _SECONDS[found[2]] if found is not None else text

    def _read_word(self, value: object, where: str) -> Any:
        kind = type(self.default)
        if isinstance(value, str):
            member = self._word(value.strip().upper(), kind)
            if member is not None:
                return member
            value = int(value) if _WHOLE.match(value.strip()) else value
        if isinstance(value, int) and not (isinstance(value, bool) and not self.flags):
            if value in kind._value2member_map_ and self._is_allowed(kind(value)):
                return kind(value)
            if self.user_range and self.low <= value <= self.high:
                return int(value)
        raise self._refusal(value, where)

    def _word(self, text: str, kind: type[IntEnum]) -> IntEnum | None:
        """Returns the member a word means: MQSC's word, a flag, yes and no for a flag, or the constant's tail."""
        if self.words and text in self.words:
            return self.words[text]
        if self.flags:
            if text in self.flags:
                return kind(self.flags.index(text))
            if text in _YES_OR_NO:
                return kind(_YES_OR_NO[text])
        return kind[text] if text in kind.__members__ and self._is_allowed(kind[text]) else None

    def _is_allowed(self, member: IntEnum) -> bool:
        return self.words is None or self.user_range or member in self.words.values()

    def _read_text(self, value: object, where: str) -> str:
        if not isinstance(value, str):
            raise self._refusal(value, where)
        text = value.rstrip(" ")
        if self.is_name:
            if text and not is_object_name(text):
                raise self._refusal(value, where)
        elif len(text.encode()) > self.length or any(ord(c) < 32 or ord(c) == 127 for c in text):
            raise self._refusal(value, where)
        return text

    def _read_names(self, value: object, where: str) -> tuple[str, ...]:
        items = _SEPARATORS.split(value) if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not all(isinstance(name, str) for name in items):
            raise self._refusal(value, where)
        names = tuple(name.strip() for name in items if name.strip())
        if len(names) > MOST_NAMES or not all(map(is_object_name, names)):
            raise self._refusal(value, where)
        return names

    def _refusal(self, value: object, where: str) -> AttrValueError:
        shown = value if isinstance(value, (int, str)) else repr(value)
        return AttrValueError(f"{where} {self.mqsc}({shown}): {self.name} must be {self.allowed}")


def _words(kind: type[IntEnum], **other: str) -> MappingProxyType[str, IntEnum]:
    """Returns MQSC's words of an enumeration: the members' names, but for those given ``member=word``."""
    return MappingProxyType({other.get(m.name, m.name): m for m in kind})


Description = Annotated[str, Attribute("DESCR", 2013, length=64)]
GetInhibited = Annotated[Inhibit, Attribute("GET", 9, words=ENABLED, settable=True)]
PutInhibited = Annotated[Inhibit, Attribute("PUT", 10, words=ENABLED, settable=True)]
DefPriority = Annotated[int, Attribute("DEFPRTY", 6, high=9)]
DefPersistence = Annotated[
    Persistence,
    Attribute(
        "DEFPSIST",
        5,
        words=MappingProxyType({"NO": Persistence.NOT_PERSISTENT, "YES": Persistence.PERSISTENT}),
    ),
]
CapExpiryTenths = Annotated[int, Attribute("CAPEXPRY", 276, words=_words(CapExpiry), user_range=True, low=1)]
QSG_DISPS = _words(QsgDisp, Q_MGR="QMGR")
NEVER_SHARED = MappingProxyType({text: disp for text, disp in QSG_DISPS.items() if text != "SHARED"})
QsgDisposition = Annotated[QsgDisp, Attribute("QSGDISP", 63, words=NEVER_SHARED)]
CfStrucName = Annotated[str, Attribute("CFSTRUCT", 2039, length=12)]
MaxMsgLength = Annotated[int, Attribute("MAXMSGL", 13, high=104_857_600)]
DEFINITION_TYPES = _words(DefinitionType, PERMANENT_DYNAMIC="PERMDYN", TEMPORARY_DYNAMIC="TEMPDYN")
When = Annotated[int, Attribute("", read_only=True, high=2**62)]
EVENT_RULES = _words(EventRule)


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every object has: a name, and when it was defined and last altered (milliseconds since 1970)."""

    name: str
    created_ms: When = 0
    altered_ms: When = 0


class MessageQueue(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """What a local queue and the model of one have in common. The attributes from ``rearm`` on are ours.

    ``cf_struc_name`` is kept, and nothing is looked up by it: where a group's messages lie is its store's affair.
    """

    description: Description = ""
    inhibit_get: GetInhibited = Inhibit.ALLOWED
    inhibit_put: PutInhibited = Inhibit.ALLOWED
    def_priority: DefPriority = 0
    def_persistence: DefPersistence = Persistence.NOT_PERSISTENT
    def_input_open_option: Annotated[
        DefInputOpenOption,
        Attribute(
            "DEFSOPT",
            4,
            words=_words(DefInputOpenOption, INPUT_SHARED="SHARED", INPUT_EXCLUSIVE="EXCL"),
        ),
    ] = DefInputOpenOption.INPUT_SHARED
    shareability: Annotated[Shareability, Attribute("SHARE", 23, flags=("NOSHARE", "SHARE"))] = Shareability.SHAREABLE
    max_q_depth: Annotated[int, Attribute("MAXDEPTH", 15)] = 5000
    max_msg_length: MaxMsgLength = 4_194_304
    msg_delivery_sequence: Annotated[
        MsgDeliverySequence, Attribute("MSGDLVSQ", 16, words=_words(MsgDeliverySequence))
    ] = MsgDeliverySequence.PRIORITY
    usage: Annotated[Usage, Attribute("USAGE", 12, words=_words(Usage, TRANSMISSION="XMITQ"))] = Usage.NORMAL
    backout_threshold: Annotated[int, Attribute("BOTHRESH", 22)] = 0
    backout_requeue_q_name: Annotated[str, Attribute("BOQNAME", 2019, is_name=True)] = ""
    harden_get_backout: Annotated[HardenGetBackout, Attribute("HARDENBO", 8, flags=("NOHARDENBO", "HARDENBO"))] = (
        HardenGetBackout.HARDENED
    )
    trigger_control: Annotated[
        TriggerControl, Attribute("TRIGGER", 24, flags=("NOTRIGGER", "TRIGGER"), settable=True)
    ] = TriggerControl.OFF
    trigger_type: Annotated[TriggerType, Attribute("TRIGTYPE", 28, words=_words(TriggerType), settable=True)] = (
        TriggerType.FIRST
    )
    trigger_depth: Annotated[int, Attribute("TRIGDPTH", 29, low=1, settable=True)] = 1
    trigger_msg_priority: Annotated[int, Attribute("TRIGMPRI", 26, high=9, settable=True)] = 0
    trigger_data: Annotated[str, Attribute("TRIGDATA", 2023, length=64, settable=True)] = ""
    process_name: Annotated[str, Attribute("PROCESS", 2012, is_name=True)] = ""
    initiation_q_name: Annotated[str, Attribute("INITQ", 2008, is_name=True)] = ""
    cap_expiry: CapExpiryTenths = CapExpiry.NOLIMIT
    cf_struc_name: CfStrucName = ""
    q_depth_high_limit: Annotated[int, Attribute("QDEPTHHI", 40, high=100)] = 80
    q_depth_low_limit: Annotated[int, Attribute("QDEPTHLO", 41, high=100)] = 20
    q_depth_max_event: Annotated[EventRule, Attribute("QDPMAXEV", 42, words=EVENT_RULES)] = EventRule.ENABLED
    q_depth_high_event: Annotated[EventRule, Attribute("QDPHIEV", 43, words=EVENT_RULES)] = EventRule.DISABLED
    q_depth_low_event: Annotated[EventRule, Attribute("QDPLOEV", 44, words=EVENT_RULES)] = EventRule.DISABLED
    q_service_interval: Annotated[int, Attribute("QSVCINT", 54)] = BILLION
    q_service_interval_event: Annotated[
        ServiceIntervalEvent, Attribute("QSVCIEV", 46, words=_words(ServiceIntervalEvent))
    ] = ServiceIntervalEvent.NONE
    rearm: Annotated[Rearm, Attribute("REARM", words=_words(Rearm), ours=True)] = Rearm.MQ
    backstop_s: Annotated[int, Attribute("BACKSTOP", ours=True)] = 0
    max_wait_s: Annotated[int, Attribute("MAXWAIT", ours=True)] = 0
    backout_requeue: Annotated[BackoutRequeue, Attribute("BOREQ", words=_words(BackoutRequeue), ours=True)] = (
        BackoutRequeue.APPL
    )


class LocalQueue(MessageQueue, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE QLOCAL: a queue that holds messages. Opening a model queue makes one that is dynamic.

    Four are no attributes. ``made_by`` is the user who made a dynamic queue. ``is_disarmed``: control is off because
    DEPTH fired, and REARM(AUTO) is to turn it on again.
    ``is_drained``: since then its last reader has closed and left only what it could not see, since it was not
    committed. ``moments``, of an initiation queue that is shared: the last moment of each schedule, by name, for which
    a member of the group wrote a trigger message, and when the group's schedule had been timed (0: a member's own).
    """

    definition_type: Annotated[DefinitionType, Attribute("DEFTYPE", 7, words=DEFINITION_TYPES, read_only=True)] = (
        DefinitionType.PREDEFINED
    )
    qsg_disp: Annotated[QsgDisp, Attribute("QSGDISP", 63, words=QSG_DISPS)] = QsgDisp.Q_MGR
    is_disarmed: bool = False
    is_drained: bool = False
    made_by: str = ""
    moments: dict[str, tuple[int, int]] = {}

    @property
    def is_dynamic(self) -> bool:
        """Whether it was made from a model queue."""
        return self.definition_type is not DefinitionType.PREDEFINED

    @property
    def is_shared(self) -> bool:
        """Whether it is its queue-sharing group's: one queue, whichever member it is called through."""
        return self.qsg_disp is QsgDisp.SHARED


class ModelQueue(MessageQueue, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE QMODEL: what the local queues look like that opening it makes."""

    definition_type: Annotated[
        DefinitionType,
        Attribute(
            "DEFTYPE",
            7,
            words=MappingProxyType({w: d for w, d in DEFINITION_TYPES.items() if w != "PREDEFINED"}),
        ),
    ] = DefinitionType.TEMPORARY_DYNAMIC
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR


class RemoteQueue(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE QREMOTE: a queue of another queue manager; what is put goes to a transmission queue here."""

    remote_q_name: Annotated[str, Attribute("RNAME", 2018, is_name=True)] = ""
    remote_q_mgr_name: Annotated[str, Attribute("RQMNAME", 2017, is_name=True)] = ""
    xmit_q_name: Annotated[str, Attribute("XMITQ", 2024, is_name=True)] = ""
    description: Description = ""
    inhibit_put: PutInhibited = Inhibit.ALLOWED
    def_priority: DefPriority = 0
    def_persistence: DefPersistence = Persistence.NOT_PERSISTENT
    cap_expiry: CapExpiryTenths = CapExpiry.NOLIMIT
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR


class AliasQueue(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE QALIAS: another name, with its own defaults, for a queue."""

    base_q_name: Annotated[str, Attribute("TARGET", 2002, is_name=True)] = ""
    description: Description = ""
    inhibit_get: GetInhibited = Inhibit.ALLOWED
    inhibit_put: PutInhibited = Inhibit.ALLOWED
    def_priority: DefPriority = 0
    def_persistence: DefPersistence = Persistence.NOT_PERSISTENT
    cap_expiry: CapExpiryTenths = CapExpiry.NOLIMIT
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR


class Namelist(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE NAMELIST: names of objects, in an order, which programs inquire. What they name need not be there.

    ``name_count`` is no attribute that is set: it is the number of ``names`` where the object is shown.
    """

    description: Annotated[str, Attribute("DESCR", 2009, length=64)] = ""
    names: Annotated[tuple[str, ...], Attribute("NAMES", 2020, is_names=True)] = ()
    name_count: Annotated[int, Attribute("NAMCOUNT", 19, high=MOST_NAMES, read_only=True)] = 0
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR


class Process(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE PROCESS: what a monitor starts. The attributes from ``instances`` on are ours."""

    description: Annotated[str, Attribute("DESCR", 2011, length=64)] = ""
    appl_type: Annotated[
        int,
        Attribute(
            "APPLTYPE",
            1,
            words=_words(ApplType, WINDOWS_NT="WINDOWSNT", NOTES_AGENT="NOTESAGENT"),
            user_range=True,
            low=-1,
        ),
    ] = ApplType.UNIX
    appl_id: Annotated[str, Attribute("APPLICID", 2001, length=256)] = ""
    env_data: Annotated[str, Attribute("ENVRDATA", 2007, length=128)] = ""
    user_data: Annotated[str, Attribute("USERDATA", 2021, length=128)] = ""
    tmc_argument: Annotated[YesNo, Attribute("TMCARG", words=_words(YesNo), ours=True)] = YesNo.YES
    shell: Annotated[YesNo, Attribute("SHELL", words=_words(YesNo), ours=True)] = YesNo.NO
    instances: Annotated[int, Attribute("INSTANCES", low=0, high=10_000, ours=True)] = 0
    coalesce: Annotated[Coalesce, Attribute("COALESCE", words=_words(Coalesce), ours=True)] = Coalesce.NO
    open_wait_s: Annotated[int, Attribute("OPENWAIT", ours=True)] = 0
    retry: Annotated[int, Attribute("RETRY", high=10_000, ours=True)] = 3
    retry_wait_s: Annotated[int, Attribute("RETRYWAIT", low=1, high=86_400, ours=True)] = 1
    breaker: Annotated[int, Attribute("BREAKER", high=10_000, ours=True)] = 5
    unknown: Annotated[UnknownEnd, Attribute("UNKNOWN", words=_words(UnknownEnd), ours=True)] = UnknownEnd.KEEP
    recover: Annotated[Recover, Attribute("RECOVER", words=_words(Recover), ours=True)] = Recover.MQ
    time_limit_s: Annotated[int, Attribute("TIMELIMIT", ours=True)] = 0
    memory_limit_mib: Annotated[int, Attribute("MEMLIMIT", high=1 << 24, ours=True)] = 0
    cpu_limit_s: Annotated[int, Attribute("CPULIMIT", ours=True)] = 0
    open_files_limit: Annotated[int, Attribute("FILELIMIT", high=1 << 20, ours=True)] = 0
    run_as: Annotated[str, Attribute("RUNAS", length=32, ours=True)] = ""
    secrets: Annotated[str, Attribute("SECRETS", length=1024, ours=True)] = ""
    working_directory: Annotated[str, Attribute("WORKDIR", length=1024, ours=True)] = ""
    virtualenv: Annotated[str, Attribute("VIRTENV", length=1024, ours=True)] = ""
    warm_interpreter: Annotated[YesNo, Attribute("WARM", words=_words(YesNo), ours=True)] = YesNo.NO
    warm_modules: Annotated[str, Attribute("WARMMODS", length=1024, ours=True)] = ""
    spark_start: Annotated[SparkStart, Attribute("SPKSTART", words=_words(SparkStart), ours=True)] = SparkStart.SUBMIT
    spark_isolation: Annotated[SparkIsolation, Attribute("SPKISOL", words=_words(SparkIsolation), ours=True)] = (
        SparkIsolation.SESSION
    )
    spark_short: Annotated[SparkShort, Attribute("SPKSHORT", words=_words(SparkShort), ours=True)] = SparkShort.NO
    spark_master: Annotated[str, Attribute("SPKMASTER", length=256, ours=True)] = ""
    spark_deploy_mode: Annotated[SparkDeployMode, Attribute("SPKDEPLOY", words=_words(SparkDeployMode), ours=True)] = (
        SparkDeployMode.CLIENT
    )
    spark_name: Annotated[str, Attribute("SPKNAME", length=256, ours=True)] = ""
    spark_class: Annotated[str, Attribute("SPKCLASS", length=256, ours=True)] = ""
    spark_conf: Annotated[str, Attribute("SPKCONF", length=8192, ours=True)] = ""
    spark_py_files: Annotated[str, Attribute("SPKPYFILES", length=4096, ours=True)] = ""
    spark_files: Annotated[str, Attribute("SPKFILES", length=4096, ours=True)] = ""
    spark_archives: Annotated[str, Attribute("SPKARCHS", length=4096, ours=True)] = ""
    spark_jars: Annotated[str, Attribute("SPKJARS", length=4096, ours=True)] = ""
    spark_packages: Annotated[str, Attribute("SPKPKGS", length=4096, ours=True)] = ""
    spark_driver_memory: Annotated[str, Attribute("SPKDRVMEM", length=16, ours=True)] = ""
    spark_driver_cores: Annotated[int, Attribute("SPKDRVCORES", high=10_000, ours=True)] = 0
    spark_executor_memory: Annotated[str, Attribute("SPKEXCMEM", length=16, ours=True)] = ""
    spark_executor_cores: Annotated[int, Attribute("SPKEXCCORES", high=10_000, ours=True)] = 0
    spark_num_executors: Annotated[int, Attribute("SPKEXECS", high=100_000, ours=True)] = 0
    spark_principal: Annotated[str, Attribute("SPKPRINC", length=256, ours=True)] = ""
    spark_keytab: Annotated[str, Attribute("SPKKEYTAB", length=256, ours=True)] = ""
    spark_environment: Annotated[str, Attribute("SPKENV", length=8192, ours=True)] = ""
    spark_arguments: Annotated[str, Attribute("SPKARGS", length=4096, ours=True)] = ""


class Schedule(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE SCHEDULE, which is ours: at which moments a queue's process, or a process without a queue, is started.

    The last three attributes are written by the queue manager, in the same step as the trigger message of a moment:
    so no moment is started twice. Three are no attributes. ``timed_ms``: when CRON, EVERY or TIMEZONE was set last, by
    the queue manager's own time. ``from_ms``: the same by the wall clock as it was then, 0 until it is written; no
    earlier moment is the schedule's. ``fails``: the conditions that did not hold at the last moment.
    """

    description: Description = ""
    cron: Annotated[str, Attribute("CRON", length=256, ours=True)] = ""
    every_s: Annotated[int, Attribute("EVERY", is_duration=True, ours=True)] = 0
    timezone: Annotated[str, Attribute("TIMEZONE", length=64, ours=True)] = "UTC"
    q_name: Annotated[str, Attribute("QUEUE", is_name=True, ours=True)] = ""
    process_name: Annotated[str, Attribute("PROCESS", is_name=True, ours=True)] = ""
    initiation_q_name: Annotated[str, Attribute("INITQ", is_name=True, ours=True)] = "SYSTEM.DEFAULT.INITIATION.QUEUE"
    only_if: Annotated[OnlyIf, Attribute("ONLYIF", words=_words(OnlyIf), ours=True)] = OnlyIf.NONE
    missed: Annotated[Missed, Attribute("MISSED", words=_words(Missed), ours=True)] = Missed.ONCE
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR
    last_moment_ms: Annotated[int, Attribute("LASTMOMENT", high=2**62, read_only=True, ours=True)] = 0
    last_start_ms: Annotated[int, Attribute("LASTSTART", high=2**62, read_only=True, ours=True)] = 0
    why_not: Annotated[str, Attribute("WHYNOT", length=1024, read_only=True, ours=True)] = ""
    timed_ms: int = 0
    from_ms: int = 0
    fails: tuple[str, ...] = ()


class Watch(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """DEFINE WATCH, which is ours: a directory, each of whose files becomes one message on a queue."""

    description: Description = ""
    directory: Annotated[str, Attribute("DIRECTORY", length=1024, ours=True)] = ""
    pattern: Annotated[str, Attribute("PATTERN", length=256, ours=True)] = "*"
    quiet_s: Annotated[int, Attribute("QUIET", is_duration=True, ours=True)] = 5
    q_name: Annotated[str, Attribute("QUEUE", is_name=True, ours=True)] = ""
    content: Annotated[Content, Attribute("CONTENT", words=_words(Content), ours=True)] = Content.REFERENCE
    done: Annotated[str, Attribute("DONE", length=1024, ours=True)] = ""
    failed: Annotated[str, Attribute("FAILED", length=1024, ours=True)] = ""


class AuthorityRecord(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """SET AUTHREC: what a user or a group may do with the objects that a profile fits; the name says which of each.

    See :class:`trigmon.mq.rights.RecordName`.
    """

    authorities: Annotated[str, Attribute("AUTHLIST", 1115, is_rights=True)] = "none"
    qsg_disp: QsgDisposition = QsgDisp.Q_MGR


class QueueManagerDefinition(Definition, frozen=True, kw_only=True, omit_defaults=True):
    """ALTER QMGR: the queue manager's own attributes. What a program asks first is fixed: see ``compatibility``."""

    description: Annotated[str, Attribute("DESCR", 2014, length=64)] = ""
    trigger_interval: Annotated[int, Attribute("TRIGINT", 25)] = BILLION
    dead_letter_q_name: Annotated[str, Attribute("DEADQ", 2006, is_name=True)] = ""
    def_xmit_q_name: Annotated[str, Attribute("DEFXMITQ", 2025, is_name=True)] = ""
    max_uncommitted_msgs: Annotated[int, Attribute("MAXUMSGS", 33, low=1)] = 10_000
    max_handles: Annotated[int, Attribute("MAXHANDS", 11)] = 256
    max_msg_length: Annotated[int, Attribute("MAXMSGL", 13, low=32_768, high=104_857_600)] = 4_194_304
    expiry_interval: Annotated[
        int, Attribute("EXPRYINT", 39, words=_words(ExpiryInterval), user_range=True, low=1, high=99_999_999)
    ] = ExpiryInterval.OFF
    max_priority: Annotated[int, Attribute("MAXPRTY", 14, low=9, high=9, read_only=True)] = 9
    command_level: Annotated[int, Attribute("CMDLEVEL", 31, read_only=True)] = COMMAND_LEVEL
    version: Annotated[str, Attribute("VERSION", 2120, length=8, read_only=True)] = VERSION
    platform: Annotated[Platform, Attribute("PLATFORM", 32, words=_words(Platform), read_only=True)] = Platform.UNIX
    coded_char_set_id: Annotated[int, Attribute("CCSID", 2, read_only=True)] = CODED_CHAR_SET_ID
    command_input_q_name: Annotated[str, Attribute("COMMANDQ", 2003, is_name=True, read_only=True)] = COMMAND_INPUT_Q
    q_mgr_identifier: Annotated[str, Attribute("QMID", 2032, length=48, read_only=True)] = ""
    command_server_control: Annotated[
        CommandServerControl, Attribute("SCMDSERV", 120, words=_words(CommandServerControl, Q_MGR="QMGR"))
    ] = CommandServerControl.Q_MGR
    performance_event: Annotated[EventRule, Attribute("PERFMEV", 53, words=EVENT_RULES)] = EventRule.DISABLED
    trigmon_event: Annotated[EventRule, Attribute("TRIGEV", words=EVENT_RULES, ours=True)] = EventRule.DISABLED

    @property
    def reports_events(self) -> bool:
        """Whether any event is reported."""
        return bool(self.performance_event or self.trigmon_event)


AnyQueue = LocalQueue | AliasQueue | RemoteQueue | ModelQueue
AnyDefinition = AnyQueue | Namelist | Process | Schedule | Watch | AuthorityRecord | QueueManagerDefinition

KINDS: dict[ObjectType, type[Definition]] = {
    ObjectType.QLOCAL: LocalQueue,
    ObjectType.QALIAS: AliasQueue,
    ObjectType.QREMOTE: RemoteQueue,
    ObjectType.QMODEL: ModelQueue,
    ObjectType.NAMELIST: Namelist,
    ObjectType.PROCESS: Process,
    ObjectType.SCHEDULE: Schedule,
    ObjectType.WATCH: Watch,
    ObjectType.AUTHREC: AuthorityRecord,
    ObjectType.QMGR: QueueManagerDefinition,
}
OBJECT_TYPES = {kind: which for which, kind in KINDS.items()}
QUEUE_KINDS = (ObjectType.QLOCAL, ObjectType.QALIAS, ObjectType.QREMOTE, ObjectType.QMODEL)
OUR_KINDS = (ObjectType.SCHEDULE, ObjectType.WATCH)
"""The kinds of object that MQ has not."""
EVERY_TYPE = ("queue", "NAMELIST", "PROCESS", *(kind.name for kind in OUR_KINDS), "AUTHREC", "QMGR")
"""What DISPLAY is asked for, one after the other, to see every object."""


def _table(kind: type[Definition]) -> dict[str, Attribute]:
    hints = get_type_hints(kind, include_extras=True)
    table = {}
    for field in msgspec.structs.fields(kind):
        extras = [a for a in getattr(hints[field.name], "__metadata__", ()) if isinstance(a, Attribute)]
        if extras and extras[0].mqsc:
            table[field.name] = msgspec.structs.replace(extras[0], name=field.name, default=field.default)
    return table


ATTRIBUTES: dict[ObjectType, dict[str, Attribute]] = {which: _table(kind) for which, kind in KINDS.items()}

# What only the queue manager knows and says: DISPLAY, MQINQ and status answer these, nobody sets them.
STATUS: dict[str, Attribute] = {
    a.name: a
    for a in (
        Attribute("CURDEPTH", 3, read_only=True, name="current_q_depth", default=0),
        Attribute("IPPROCS", 17, read_only=True, name="open_input_count", default=0),
        Attribute("OPPROCS", 18, read_only=True, name="open_output_count", default=0),
        Attribute("UNCOM", read_only=True, name="uncommitted_msgs", default=0),
        Attribute("TYPE", 20, read_only=True, words=_words(QType), name="q_type", default=QType.LOCAL),
    )
}


def is_dynamic(row: Mapping[str, Any]) -> bool:
    """Returns whether a row of DISPLAY is a queue that a program made by opening a model queue, and no file defines."""
    return bool(row["object_type"] == "QLOCAL" and row.get("definition_type", "predefined") != "predefined")


def find_attribute(which: ObjectType, name: str | int) -> Attribute:
    """Returns the attribute that a long name, an MQSC word or IBM's selector means for this kind of object.

    ``default_persistence`` and its like are ``def_persistence``. ``NOTRIGGER`` and its like are no names of
    attributes; MQSC's own reader knows them. Raises SelectorError.
    """
    table = ATTRIBUTES[which]
    if isinstance(name, int):
        by_selector = next((a for a in table.values() if name and a.selector == name), None)
        if by_selector is None:
            raise SelectorError(f"{which.name} has no attribute of selector {name}")
        return by_selector
    found = table.get(re.sub("^default_", "def_", name.lower()))
    if found is None:
        text = "TARGET" if name.upper() == "TARGQ" else name.upper()
        found = next((a for a in table.values() if a.mqsc == text), None)
    if found is None:
        raise SelectorError(f"{which.name} has no attribute {name}")
    return found


def read_attributes(which: ObjectType, object_name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Returns values by long name, each read and checked. Raises AttrValueError, AttrValueFixed, SelectorError."""
    where = f"{which.name}({object_name})"
    values = {}
    for name, value in given.items():
        attribute = find_attribute(which, name)
        if attribute.read_only:
            raise AttrValueFixed(f"{where} {attribute.mqsc}: {attribute.name} cannot be changed")
        values[attribute.name] = attribute.read(value, where)
    return values
