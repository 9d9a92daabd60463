"""Reads a queue elsewhere by MQINQ, and by PCF what MQINQ does not tell: uncommitted messages, handles by process.

Where the user of the bridge has no right to one of the two, the other tells what it can; what neither tells is kept
with the reason. Nothing is changed there: a queue is opened for MQINQ alone, and a model queue makes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from trigmon.bridge.connection import NOT_AUTHORIZED, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.pcf_inquiry import TIMEOUT_S, CommandQueue, NoAnswerError
from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen, ObjectValues, OpenHandle, SeenQueue, Source, seen_queue
from trigmon.mq.attributes import ATTRIBUTES, STATUS
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.enums import ObjectType, QType
from trigmon.mq.errors import QWrongType, UnknownObjectName
from trigmon.pcf.numbers import Parameter, PcfCommand

QUEUE_ATTRIBUTES: Final = (
    *("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth", "trigger_data", "process_name"),
    *("initiation_q_name", "inhibit_get", "inhibit_put", "usage", "def_priority", "msg_delivery_sequence"),
    *("max_q_depth", "max_msg_length", "backout_threshold", "backout_requeue_q_name", "shareability"),
)
"""What is inquired of a local queue, besides its counts."""
INITIATION_ATTRIBUTES: Final = ("inhibit_get", "inhibit_put", "usage", "def_priority")
PROCESS_ATTRIBUTES: Final = ("appl_type", "appl_id", "env_data", "user_data")
_COUNTS: Final = ("current_q_depth", "open_input_count", "open_output_count")
_UNKNOWN, _MODEL, _WRONG_TYPE, _SELECTOR = 2085, 2011, 2068, 2067
_NO_STATUS: Final = (4091, 2085, 3065)
"""MQRCCF_Q_STATUS_NOT_FOUND and its like: nobody has the queue open."""
_LONGEST_WAY: Final = 2
_INQUIRES: Final = "MQINQ of the queue manager"


class QueueManagerFacts:
    """What a queue manager says of itself; each is None where it could not be seen, and :attr:`unseen` says why."""

    def __init__(self, connection: RemoteConnection) -> None:
        self.unseen = ""
        try:
            values = inquire_q_mgr(connection, _Q_MGR.values())
        except RemoteError as error:
            if error.may_pass:
                raise
            values, self.unseen = {}, str(error)
        self.name = _text(values.get(_Q_MGR["name"])) or connection.settings.queue_manager.lstrip("*")
        self.trigger_interval_ms: int | None = values.get(_Q_MGR["trigger_interval"])
        self.command_level: int = values.get(_Q_MGR["command_level"], 0)
        self.platform: int = values.get(_Q_MGR["platform"], 0)
        self.command_q_name = _text(values.get(_Q_MGR["command_input_q_name"])) or COMMAND_INPUT_Q


_Q_MGR: Final = {
    "name": int(Parameter.Q_MGR_NAME),
    **{
        name: ATTRIBUTES[ObjectType.QMGR][name].selector
        for name in ("trigger_interval", "command_level", "platform", "command_input_q_name")
    },
}


def look_at_queue(
    connection: RemoteConnection,
    q_name: str,
    *,
    also: Mapping[str, Any] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> SeenQueue:
    """Returns the queue of this name, of the queue that an alias leads to, with its process and initiation queue.

    ``also`` are attributes that a rehearsed change gives it: the objects that they name are looked at too.
    ``timeout_s`` limits the wait for each answer of the command server. Raises RemoteError where the queue manager
    cannot be reached or there is no such queue, QWrongType for a queue that is no local one.
    """
    looking = _Look(connection, timeout_s)
    try:
        return seen_queue(looking.source(q_name, dict(also or {})))
    finally:
        looking.commands.close()


class _Look:
    """One look at a queue and at what its triggering looks at."""

    def __init__(self, connection: RemoteConnection, timeout_s: float) -> None:
        self._connection = connection
        self._manager = QueueManagerFacts(connection)
        self.commands = CommandQueue(connection, self._manager.command_q_name, timeout_s)

    def source(self, q_name: str, also: Mapping[str, Any]) -> Source:
        manager, unseen = self._manager, dict[Fact, str]()
        base = self._base(q_name)
        values, why = self._queue(base, QUEUE_ATTRIBUTES)
        if why:
            unseen |= dict.fromkeys((Fact.ATTRIBUTES, Fact.DEPTH, Fact.READERS), why)
        if manager.unseen:
            unseen[Fact.INTERVAL] = manager.unseen
        self._add_uncommitted(base, values, unseen)
        handles = self._handles(base, unseen, Fact.HANDLES)
        named = _named(values, also)
        initiations = {name: self._initiation(name) for name in named["initiation_q_name"]}
        initiation_q = next(iter(initiations), "")
        is_there = isinstance(initiations.get(initiation_q), ObjectValues)
        return Source(
            asked=q_name,
            q_mgr_name=manager.name,
            queue=ObjectValues(base, values),
            processes={name: self._process(name) for name in named["process_name"]},
            initiations=initiations,
            trigger_interval_ms=manager.trigger_interval_ms,
            platform=manager.platform,
            handles=handles,
            monitors=self._handles(initiation_q, {}, Fact.MONITOR) if is_there else (),
            unseen=unseen,
        )

    def _base(self, name: str) -> str:
        """Returns the local queue that a name leads to. Raises QWrongType, RemoteError for one that is not there.

        A queue that may not be inquired is taken for a local one: what PCF says of it is asked for next.
        """
        kind_number, base_number = STATUS["q_type"].selector, ATTRIBUTES[ObjectType.QALIAS]["base_q_name"].selector
        for _ in range(_LONGEST_WAY):
            try:
                kind = inquire_queue(self._connection, name, [kind_number])[kind_number]
                if kind == QType.LOCAL:
                    return name
                if kind != QType.ALIAS:
                    raise QWrongType(f"{name} is no local queue there, nor an alias of one: nothing triggers for it")
                name = _text(inquire_queue(self._connection, name, [base_number])[base_number])
            except RemoteError as error:
                if error.reason in (_MODEL, _SELECTOR, _WRONG_TYPE):
                    raise QWrongType(f"{name} is no local queue there: nothing triggers for it") from None
                if error.reason == _UNKNOWN:
                    raise UnknownObjectName(f"{name} at {self._manager.name}") from None
                if error.may_pass:
                    raise
                return name
        raise QWrongType(f"{name}: an alias of an alias leads to no local queue")

    def _queue(self, name: str, attributes: Iterable[str]) -> tuple[dict[Any, Any], str]:
        """Returns the values of a local queue by number, by MQINQ or else by PCF, and why not where there are none.

        Raises RemoteError with 2085 where there is no such queue.
        """
        numbers = [ATTRIBUTES[ObjectType.QLOCAL][each].selector for each in attributes]
        numbers += [STATUS[each].selector for each in (*_COUNTS, "q_type")]
        if self._manager.platform == ZOS:
            numbers.append(int(Parameter.QSG_DISP))
        try:
            return inquire_queue(self._connection, name, numbers), ""
        except RemoteError as error:
            if error.may_pass or error.reason == _UNKNOWN:
                raise
            inquired = str(error)
        try:
            found = self.commands.ask(PcfCommand.INQUIRE_Q, (Parameter.Q_NAME, name))
            return (found[0], "") if found else ({}, inquired)
        except (RemoteError, NoAnswerError) as error:
            raise_if_away(error)
            return {}, f"{inquired}; {error}"

    def _add_uncommitted(self, name: str, values: dict[Any, Any], unseen: dict[Fact, str]) -> None:
        """Adds what INQUIRE_Q_STATUS says of the queue; MQINQ's counts are kept where they are there."""
        try:
            row = status_of(self.commands, name)
        except (RemoteError, NoAnswerError) as error:
            raise_if_away(error)
            unseen[Fact.UNCOMMITTED] = str(error)
            return
        uncommitted = row.get(Parameter.UNCOMMITTED_MSGS)
        if isinstance(uncommitted, int):
            values["uncommitted_msgs"] = uncommitted
        for number in (STATUS[each].selector for each in _COUNTS):
            if number in row:
                values.setdefault(number, row[number])
        if row and unseen.keys() & {Fact.DEPTH, Fact.READERS}:
            unseen.pop(Fact.DEPTH, None)
            unseen.pop(Fact.READERS, None)

    def _handles(self, name: str, unseen: dict[Fact, str], fact: Fact) -> tuple[OpenHandle, ...]:
        """Returns who has a queue open; one that cannot be asked for is added to what was not seen."""
        try:
            handles = handles_of(self.commands, name)
        except (RemoteError, NoAnswerError) as error:
            raise_if_away(error)
            unseen[fact] = str(error)
            return ()
        return tuple(handle for handle in handles if handle.for_input or handle.for_output)

    def _process(self, name: str) -> ObjectValues | NotSeen | None:
        numbers = [ATTRIBUTES[ObjectType.PROCESS][each].selector for each in PROCESS_ATTRIBUTES]
        try:
            return ObjectValues(name, inquire(self._connection, name, ibmmq().CMQC.MQOT_PROCESS, numbers))
        except RemoteError as error:
            if error.reason == _UNKNOWN:
                return None
            raise_if_away(error)
            inquired = str(error)
        try:
            found = self.commands.ask(PcfCommand.INQUIRE_PROCESS, (Parameter.PROCESS_NAME, name))
            return ObjectValues(name, found[0]) if found else NotSeen(inquired)
        except (RemoteError, NoAnswerError) as error:
            raise_if_away(error)
            return None if error.reason == _UNKNOWN else NotSeen(f"{inquired}; {error}")

    def _initiation(self, name: str) -> ObjectValues | NotSeen | None:
        try:
            values, why = self._queue(name, INITIATION_ATTRIBUTES)
        except RemoteError as error:
            if error.reason != _UNKNOWN:
                raise
            return None
        return NotSeen(why) if why else ObjectValues(name, values)


def status_of(commands: CommandQueue, name: str) -> dict[int, Any]:
    """Returns what INQUIRE_Q_STATUS says of a queue, by number. Raises RemoteError, NoAnswerError."""
    found = commands.ask(PcfCommand.INQUIRE_Q_STATUS, (Parameter.Q_NAME, name))
    return dict(found[0]) if found else {}


def handles_of(commands: CommandQueue, name: str) -> list[OpenHandle]:
    """Returns all handles of a queue, whatever it is open for. Raises RemoteError, NoAnswerError."""
    asked = ((Parameter.Q_NAME, name), (Parameter.Q_STATUS_TYPE, int(Parameter.Q_HANDLE)))
    try:
        rows = commands.ask(PcfCommand.INQUIRE_Q_STATUS, *asked)
    except NoAnswerError as error:
        if error.reason in _NO_STATUS:
            return []
        raise
    return [
        OpenHandle(
            pid=_count(row.get(Parameter.PROCESS_ID)),
            application=_text(row.get(Parameter.APPL_TAG)),
            user=_text(row.get(Parameter.USER_IDENTIFIER)),
            for_input=_count(row.get(Parameter.OPEN_INPUT_TYPE)) > 0,
            for_output=_count(row.get(Parameter.OPEN_OUTPUT)) > 0,
            channel=_text(row.get(Parameter.CHANNEL_NAME)),
        )
        for row in rows
    ]


def inquire_queue(connection: RemoteConnection, name: str, numbers: Sequence[int]) -> dict[int, Any]:
    """Returns attributes of a queue by MQINQ. Raises RemoteError."""
    return inquire(connection, name, ibmmq().CMQC.MQOT_Q, numbers)


def inquire(connection: RemoteConnection, name: str, object_type: int, numbers: Sequence[int]) -> dict[int, Any]:
    """Returns attributes of an object by MQINQ: integers, and texts without blanks behind them. Raises RemoteError."""
    mq = ibmmq()
    # With a blank name for dynamic queues the open of a model queue is refused (2011), instead of making one.
    described = mq.OD(ObjectType=object_type, ObjectName=name.encode(), DynamicQName=b"")
    options = mq.CMQC.MQOO_INQUIRE | mq.CMQC.MQOO_FAIL_IF_QUIESCING
    manager = connection.manager()
    opened = connection.call(f"MQOPEN of {name} to inquire", lambda: mq.Queue(manager, described, options))
    try:
        found = connection.call(f"MQINQ of {name}", lambda: opened.inquire(list(numbers)))
    finally:
        if connection.is_connected:
            connection.call(f"MQCLOSE of {name}", opened.close)
    return {number: _text(value) if isinstance(value, bytes) else value for number, value in found.items()}


def inquire_q_mgr(connection: RemoteConnection, numbers: Iterable[int]) -> dict[int, Any]:
    """Returns attributes of the queue manager by MQINQ. Raises RemoteError."""
    manager = connection.manager()
    found: dict[int, Any] = connection.call(_INQUIRES, lambda: manager.inquire(list(numbers)))
    return found


def dead_letter_q_name(connection: RemoteConnection, timeout_s: float = TIMEOUT_S) -> str:
    """Returns the name of the dead-letter queue, "" where none is named: by MQINQ, or by PCF where that is refused.

    ``timeout_s`` limits the wait for the command server. Raises RemoteError, with both refusals where neither is
    allowed.
    """
    number = ATTRIBUTES[ObjectType.QMGR]["dead_letter_q_name"].selector
    try:
        return _text(inquire_q_mgr(connection, [number])[number])
    except RemoteError as error:
        if error.reason != NOT_AUTHORIZED:
            raise
    commands = CommandQueue(connection, COMMAND_INPUT_Q, timeout_s)
    try:
        rows = commands.ask(PcfCommand.INQUIRE_Q_MGR, (Parameter.Q_MGR_ATTRS, (number,)))
    except (RemoteError, NoAnswerError) as error:
        raise_if_away(error)
        raise RemoteError(NOT_AUTHORIZED, f"{error}; {_INQUIRES}") from None
    finally:
        if connection.is_connected:
            commands.close()
    named = [row[number] for row in rows if number in row]
    if not named:  # to take it for blank would drop trigger messages
        raise RemoteError(NOT_AUTHORIZED, f"{PcfCommand.INQUIRE_Q_MGR.name} does not tell DEADQ; {_INQUIRES}")
    return _text(named[0])


def _named(values: Mapping[Any, Any], also: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns by attribute the names of the objects that the queue, and a change of it, name."""
    found: dict[str, list[str]] = {}
    for attribute in ("process_name", "initiation_q_name"):
        described = ATTRIBUTES[ObjectType.QLOCAL][attribute]
        own = _text(values.get(described.selector, ""))
        changed = next((str(also[key]) for key in also if key in (attribute, described.mqsc)), "")
        found[attribute] = [name for name in dict.fromkeys((own, changed)) if name]
    return found


def raise_if_away(error: RemoteError | NoAnswerError) -> None:
    """Raises the error where the queue manager is away: nothing more can be seen."""
    if isinstance(error, RemoteError) and error.may_pass:
        raise error


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value.rstrip(" \0") if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
