"""Checks of a bridge against the user's own queue manager, one after the other: what was seen, and what helps.

Nothing is changed there but for dynamic queues that the checks delete. An initiation queue that nobody reads is opened
for input, which is an occasion: MQ then writes the trigger messages that a monitor's start would bring (condition 13).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from trigmon.bridge.connection import BridgeError, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.pcf_inquiry import MODEL, REPLY_NAMES, CommandQueue, NoAnswerError
from trigmon.bridge.remote_facts import INITIATION_ATTRIBUTES, QueueManagerFacts, dead_letter_q_name, inquire_queue
from trigmon.mq.attributes import ATTRIBUTES, STATUS
from trigmon.mq.enums import Inhibit, ObjectType, QType, Usage
from trigmon.pcf.numbers import Parameter, PcfCommand
from trigmon.setting_sections import BridgeSettings

CLOCK_MS: Final = 2000
"""Clocks that differ by more are a failure: the times of a run and of its trigger message could not be compared."""


class Outcome(Enum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    NOT_TRIED = "not tried"


class Checked(NamedTuple):
    """One check: what was looked at, how it ended, what was seen, and what helps where it failed."""

    what: str
    outcome: Outcome
    seen: str = ""
    remedy: str = ""


class _CheckError(Exception):
    """A check failed; the remedy beside it."""

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(seen)
        self.remedy = remedy


def check_bridge(connection: RemoteConnection, timeout_s: float) -> Iterator[Checked]:
    """Yields each check as it ends. After the library or the connection has failed, the others are not tried.

    ``timeout_s`` limits the wait for each answer of the command server, in seconds.
    """
    checks = _Checks(connection, timeout_s)
    queues = connection.settings.initiation_queues
    needed: list[tuple[str, Callable[[], str]]] = [
        ("package ibmmq and the MQI's library", checks.library),
        ("connection", checks.connect),
    ]
    rest: list[tuple[str, Callable[[], str]]] = [("queue manager", checks.queue_manager)]
    rest += [(f"initiation queue {name}", partial(checks.initiation_queue, name)) for name in queues]
    rest += [
        ("dead-letter queue", checks.dead_letter_queue),
        ("command server", checks.command_server),
        *((f"status of {name}", partial(checks.status, name)) for name in queues[:1]),
        ("clock", checks.clock),
    ]
    why = ""
    for what, check in (*needed, *rest):
        if why:
            yield Checked(what, Outcome.NOT_TRIED, why)
            continue
        one = _checked(what, check, checks, connection.settings)
        yield one
        if one.outcome is Outcome.FAILED and ((what, check) in needed or not connection.is_connected):
            why = f"{what} failed"
    if not queues:
        yield Checked("initiation queues", Outcome.FAILED, "none", "name them: initiation_queues of the bridge")
    checks.close()


def _checked(what: str, check: Callable[[], str], checks: _Checks, given: BridgeSettings) -> Checked:
    checks.subject = what
    try:
        return Checked(what, Outcome.OK, check())
    except _CheckError as error:
        return Checked(what, Outcome.FAILED, str(error), error.remedy)
    except (RemoteError, NoAnswerError, BridgeError) as error:
        remedy = _remedy(getattr(error, "reason", -1), checks.subject, given)
        return Checked(what, Outcome.FAILED, str(error), remedy)


class _Checks:
    """The checks of one bridge. Each returns what it saw, or raises what failed.

    ``subject`` is what the remedy is about: the check that is under way, unless that says more.
    """

    def __init__(self, connection: RemoteConnection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._q_mgr: QueueManagerFacts | None = None
        self._commands: CommandQueue | None = None
        self.subject = ""

    def close(self) -> None:
        """Closes what the checks have open."""
        if self._commands is not None and self._connection.is_connected:
            self._commands.close()

    def library(self) -> str:
        """Loads the package, and with it the MQI's library."""
        versions = ibmmq().get_versions()
        return f"ibmmq {versions.get('module', '?')}, built at command level {versions.get('MQ', '?')}"

    def connect(self) -> str:
        """Connects with the user and the channel of the bridge."""
        given = self._connection.settings
        self._connection.manager()
        way = given.mqserver or given.ccdt or "the library's own way"
        return f"{given.queue_manager} by {way}, user {given.user or 'of this process'}"

    def queue_manager(self) -> str:
        """Inquires the queue manager."""
        facts = self._facts()
        if facts.unseen:
            raise _CheckError(facts.unseen, _remedy(_NOT_AUTHORIZED, "queue manager", self._connection.settings))
        wanted = self._connection.settings.queue_manager
        if not wanted.startswith("*") and facts.name != wanted:
            raise _CheckError(f"{facts.name} answers, {wanted} is wanted", "correct queue_manager of the bridge")
        return f"{facts.name}, command level {facts.command_level}, platform {facts.platform}"

    def initiation_queue(self, name: str) -> str:
        """Inquires an initiation queue, and opens it for input and browse."""
        described = ATTRIBUTES[ObjectType.QLOCAL]
        numbers = [described[each].selector for each in INITIATION_ATTRIBUTES]
        kind, readers = STATUS["q_type"].selector, STATUS["open_input_count"].selector
        if inquire_queue(self._connection, name, [kind])[kind] != QType.LOCAL:
            raise _CheckError(f"{name} is no local queue", "an initiation queue is a local queue")
        found = inquire_queue(self._connection, name, [*numbers, readers])
        if found[described["usage"].selector] != Usage.NORMAL:
            raise _CheckError("its usage is transmission", f"ALTER QLOCAL({name}) USAGE(NORMAL)")
        for way, word in (("inhibit_get", "GET"), ("inhibit_put", "PUT")):
            if found[described[way].selector] != Inhibit.ALLOWED:
                raise _CheckError(f"{word}(DISABLED)", f"ALTER QLOCAL({name}) {word}(ENABLED)")
        options = ibmmq().CMQC
        self._open(name, options.MQOO_INPUT_SHARED | options.MQOO_BROWSE)
        return f"opened for input and browse, IPPROCS({found[readers]}) before"

    def dead_letter_queue(self) -> str:
        """Opens the dead-letter queue for output."""
        self.subject = "queue manager"
        name = dead_letter_q_name(self._connection, self._timeout_s)
        if not name:
            raise _CheckError("DEADQ is blank: a bad trigger message has nowhere to go", "ALTER QMGR DEADQ(QUEUE)")
        self.subject = f"dead-letter queue {name}"
        self._open(name, ibmmq().CMQC.MQOO_OUTPUT)
        return f"{name}, opened for output"

    def command_server(self) -> str:
        """Pings the command server."""
        began = time.monotonic()
        self._asking().ask(PcfCommand.PING_Q_MGR)
        return f"{self._facts().command_q_name}, answered in {(time.monotonic() - began) * 1000:.0f} ms"

    def status(self, name: str) -> str:
        """Asks for the status of a queue, and for who has it open."""
        asked = (Parameter.Q_NAME, name)
        rows = self._asking().ask(PcfCommand.INQUIRE_Q_STATUS, asked)
        uncommitted = rows[0].get(Parameter.UNCOMMITTED_MSGS) if rows else None
        return f"uncommitted messages {uncommitted}" if isinstance(uncommitted, int) else "answered without a count"

    def clock(self) -> str:
        """Compares the clocks by a message on a dynamic queue of the bridge's own."""
        mq = ibmmq()
        options = mq.CMQC
        described = mq.OD(ObjectName=MODEL.encode(), DynamicQName=REPLY_NAMES.encode())
        queue = self._opened(described, options.MQOO_INPUT_EXCLUSIVE | options.MQOO_OUTPUT, MODEL)
        put, got = mq.MD(), mq.MD()
        before = time.time()
        call = self._connection.call
        call("MQPUT", lambda: queue.put(b"", put, mq.PMO(Options=options.MQPMO_NO_SYNCPOINT)))
        after = time.time()
        call("MQGET", lambda: queue.get(None, got, mq.GMO(Options=options.MQGMO_NO_SYNCPOINT)))
        call("MQCLOSE", queue.close)
        there = _moment(got.PutDate, got.PutTime)
        difference_ms, doubt_ms = (there - (before + after) / 2) * 1000, (after - before) * 500 + 10
        seen = f"{difference_ms:+.0f} ms there, to within {doubt_ms:.0f} ms"
        if abs(difference_ms) > CLOCK_MS + doubt_ms:
            raise _CheckError(seen, "have both machines take their time from NTP")
        return seen

    def _facts(self) -> QueueManagerFacts:
        if self._q_mgr is None:
            self._q_mgr = QueueManagerFacts(self._connection)
        return self._q_mgr

    def _asking(self) -> CommandQueue:
        if self._commands is None:
            self._commands = CommandQueue(self._connection, self._facts().command_q_name, self._timeout_s)
        return self._commands

    def _open(self, name: str, options: int) -> None:
        queue = self._opened(ibmmq().OD(ObjectName=name.encode(), DynamicQName=b""), options, name)
        self._connection.call(f"MQCLOSE of {name}", queue.close)

    def _opened(self, described: Any, options: int, name: str) -> Any:
        mq = ibmmq()
        manager = self._connection.manager()
        how = options | mq.CMQC.MQOO_FAIL_IF_QUIESCING
        return self._connection.call(f"MQOPEN of {name}", lambda: mq.Queue(manager, described, how))


def _moment(day: bytes, clock: bytes) -> float:
    """Returns seconds since 1970 of a descriptor's date and time, which are UTC to hundredths of a second."""
    text = f"{day.decode()}{clock.decode()[:6]}"
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp() + int(clock[6:8] or b"0") / 100


_REMEDIES: Final = {
    2009: "see whether the queue manager and the network are up",
    2042: "another program has it open exclusively: end it, and ALTER QLOCAL({name}) SHARE",
    2058: "correct queue_manager of the bridge, or give its channel table (ccdt) a channel for that queue manager",
    2059: "see whether the queue manager and its listener run, and whether host and port are right",
    2085: "define it there: DEFINE QLOCAL({name})",
    2393: "see whether the certificate there is for the host that mqserver or ccdt names, and whether key_repository "
    "(to reach a trigmon: authority in client.ini) holds its authority; see cipher_spec, and the library's error log",
    2538: "see whether host and port are right, and the listener runs: START LISTENER",
    2540: "define the channel there: DEFINE CHANNEL(NAME) CHLTYPE(SVRCONN)",
}
"""By reason what helps."""
_RIGHTS: Final = {
    "connection": "see user and password_secret of the bridge, CHLAUTH and CONNAUTH there; "
    "SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('{user}') AUTHADD(CONNECT,INQ,DSP)",
    "queue manager": "SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('{user}') AUTHADD(INQ,DSP)",
    "initiation queue": "SET AUTHREC PROFILE('{name}') OBJTYPE(QUEUE) PRINCIPAL('{user}') AUTHADD(GET,BROWSE,INQ,DSP)",
    "dead-letter queue": "SET AUTHREC PROFILE('{name}') OBJTYPE(QUEUE) PRINCIPAL('{user}') AUTHADD(PUT)",
    "command server": "SET AUTHREC PROFILE(SYSTEM.ADMIN.COMMAND.QUEUE) OBJTYPE(QUEUE) PRINCIPAL('{user}') "
    "AUTHADD(PUT); "
    f"SET AUTHREC PROFILE({MODEL}) OBJTYPE(QUEUE) PRINCIPAL('{{user}}') AUTHADD(GET,DSP)",
    "status": "SET AUTHREC PROFILE('{name}') OBJTYPE(QUEUE) PRINCIPAL('{user}') AUTHADD(DSP)",
    "clock": f"SET AUTHREC PROFILE({MODEL}) OBJTYPE(QUEUE) PRINCIPAL('{{user}}') AUTHADD(GET,PUT,DSP)",
}
"""By check the right that lacks after 2035."""
_NOT_AUTHORIZED, _NO_ANSWER = 2035, 0


def _remedy(reason: int, what: str, given: BridgeSettings) -> str:
    """Returns what to do about a reason that a check met, with the names that are known."""
    if reason == _NOT_AUTHORIZED:
        text = next((text for begin, text in _RIGHTS.items() if what.startswith(begin)), "")
    elif reason == _NO_ANSWER:
        text = "start it there: START SERVICE, or strmqcsv NAME; the bridge does without, and sees less"
    else:
        text = _REMEDIES.get(reason, "")
    return text.format(name=what.rpartition(" ")[2], user=given.user or "USER")
