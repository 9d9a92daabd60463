"""A play against the user's own queue manager: 20 messages there start 20 programs here, bad triggers are dead letters.

It needs the objects of the shipped ``play.mqsc`` there, process TRIGMON.PLAY here, and a monitor that serves the
bridge. What it puts it takes away again, dead letters among it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from trigmon.bridge.checks import Checked, Outcome
from trigmon.bridge.connection import NO_MESSAGE, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.remote_facts import dead_letter_q_name, inquire_queue, look_at_queue
from trigmon.bridge.remote_verdict import explain_seen
from trigmon.mq.attributes import STATUS
from trigmon.mq.descriptors import TriggerMessage, pack_tm, unpack_dlh
from trigmon.mq.enums import TriggerType
from trigmon.mq.errors import DlhError, MQError
from trigmon.mq.explanation import NOT_SEEN

QUEUE: Final = "TRIGMON.PLAY"
PROCESS: Final = "TRIGMON.PLAY"
INITIATION: Final = "TRIGMON.PLAY.INIT"
NOBODY: Final = "TRIGMON.PLAY.NOBODY"
"""A process that is defined nowhere."""
COUNT: Final = 20
_DEFINE: Final = "run the shipped play.mqsc there: trigmon bridge check --help names it"
_POLL_S: Final = 0.1
_T = TypeVar("_T")
Runs = Callable[[], list[dict[str, Any]]]
"""Returns the records of the runs here of process TRIGMON.PLAY that came over the bridge."""


def play(connection: RemoteConnection, runs: Runs, timeout_s: float) -> Iterator[Checked]:
    """Yields each step as it ends; after one that failed, the others are not tried.

    ``timeout_s`` limits each step, in seconds.
    """
    one = _Play(connection, runs, timeout_s)
    steps: list[tuple[str, Callable[[], str]]] = [
        (f"{QUEUE} there", one.see_the_queue),
        (f"{COUNT} messages are put", one.put),
        (f"each starts {PROCESS} here once", one.see_the_runs),
        ("the messages are still there, each once", one.take),
        ("a message that is no trigger message is a dead letter", one.see_no_trigger_message),
        ("a trigger message for an unknown process is a dead letter", one.see_unknown_process),
    ]
    failed = ""
    for what, step in steps:
        if failed:
            yield Checked(what, Outcome.NOT_TRIED, f"{failed}: failed")
            continue
        try:
            yield Checked(what, Outcome.OK, step())
        except (_PlayError, RemoteError, MQError) as error:
            failed = what
            yield Checked(what, Outcome.FAILED, str(error), getattr(error, "remedy", ""))


class _PlayError(Exception):
    """A step did not come out as it should; the remedy beside it."""

    def __init__(self, seen: str, remedy: str = "") -> None:
        super().__init__(seen)
        self.remedy = remedy


class _Play:
    """One play. Each step returns what it saw."""

    def __init__(self, connection: RemoteConnection, runs: Runs, timeout_s: float) -> None:
        self._connection = connection
        self._runs = runs
        self._timeout_s = timeout_s
        self._mark = f"trigmon play {time.time_ns()}".encode()
        self._before: set[str] = set()

    def see_the_queue(self) -> str:
        """Judges the queue there: a put must trigger, and nothing be there already."""
        try:
            seen = look_at_queue(self._connection, QUEUE)
        except MQError as error:
            raise _PlayError(str(error), _DEFINE) from None
        definition = seen.queue.definition
        if definition.trigger_type is not TriggerType.EVERY or definition.initiation_q_name != INITIATION:
            raise _PlayError(f"TRIGTYPE(EVERY) INITQ({INITIATION}) is wanted", _DEFINE)
        if seen.queue.depth:
            raise _PlayError(f"CURDEPTH({seen.queue.depth})", f"CLEAR QLOCAL({QUEUE}) there")
        verdict = explain_seen(seen, -1, time.time_ns() // 1_000_000)
        wrong = [each for each in verdict.conditions if each.number in verdict.fails]
        if wrong:
            first = wrong[0]
            remedy = "start the monitor with this bridge: trigmon run" if first.number == "8" else first.remedy
            raise _PlayError(f"condition {first.number}: {first.seen}", remedy)
        unseen = [each.number for each in verdict.conditions if each.holds == NOT_SEEN]
        self._before = {str(run["run_id"]) for run in self._runs()}
        return "a put would trigger" + (f"; not seen: {', '.join(unseen)}" if unseen else "")

    def put(self) -> str:
        """Puts the messages in one unit of work."""
        mq = ibmmq()
        manager = self._connection.manager()
        how = mq.CMQC.MQPMO_SYNCPOINT | mq.CMQC.MQPMO_FAIL_IF_QUIESCING
        for number in range(COUNT):
            data = b"%s %d" % (self._mark, number)
            self._call("MQPUT1", partial(manager.put1, QUEUE, data, mq.MD(), mq.PMO(Options=how)))
        self._call("MQCMIT", manager.commit)
        return "committed"

    def see_the_runs(self) -> str:
        """Waits until each message has its run, and until no trigger message is left."""
        deadline = time.monotonic() + self._timeout_s
        mine: list[dict[str, Any]] = []
        while len(mine) < COUNT or not all(run["end_ms"] for run in mine) or self._depth(INITIATION):
            if time.monotonic() > deadline:
                ended = sum(bool(run["end_ms"]) for run in mine)
                remedy = f"trigmon process show {PROCESS}, trigmon runs list --all, and the monitor's log tell why"
                raise _PlayError(f"{len(mine)} runs in {self._timeout_s:g} s, {ended} of them ended", remedy)
            time.sleep(_POLL_S)
            mine = [run for run in self._runs() if str(run["run_id"]) not in self._before]
        ids = {run.get("remote_msg_id") for run in mine}
        if len(mine) != COUNT or len(ids) != COUNT:
            raise _PlayError(f"{len(mine)} runs for {len(ids)} trigger messages")
        wrong = [run for run in mine if run["exit_status"] != 0]
        if wrong:
            raise _PlayError(f"run {wrong[0]['run_id']}: exit status {wrong[0]['exit_status']}: {wrong[0]['why']}")
        return f"{COUNT} runs, exit status 0 each"

    def take(self) -> str:
        """Gets the messages back."""
        wanted = sorted(b"%s %d" % (self._mark, number) for number in range(COUNT))
        taken = sorted(iter(lambda: self._get(QUEUE), b""))
        if taken != wanted:
            raise _PlayError(f"{len(taken)} messages were there, {COUNT} were put")
        return f"{COUNT} taken"

    def see_no_trigger_message(self) -> str:
        """Puts a message that is no MQTM on the initiation queue, and finds its dead letter."""
        return self._dead_letter(self._mark)

    def see_unknown_process(self) -> str:
        """Puts a trigger message of an unknown process on the initiation queue, and finds its dead letter."""
        return self._dead_letter(pack_tm(TriggerMessage(q_name=QUEUE, process_name=NOBODY)))

    def _dead_letter(self, data: bytes) -> str:
        mq = ibmmq()
        dead = dead_letter_q_name(self._connection)
        if not dead:
            raise _PlayError("DEADQ is blank", "ALTER QMGR DEADQ(QUEUE)")
        descriptor = mq.MD(Format=mq.CMQC.MQFMT_TRIGGER)
        how = mq.PMO(Options=mq.CMQC.MQPMO_NO_SYNCPOINT | mq.CMQC.MQPMO_NEW_MSG_ID)
        manager = self._connection.manager()
        self._call("MQPUT1", lambda: manager.put1(INITIATION, data, descriptor, how))
        found = self._get(dead, bytes(descriptor.MsgId), self._timeout_s)
        if not found:
            raise _PlayError(f"nothing came to {dead} in {self._timeout_s:g} s", "see the monitor's log")
        try:
            header, behind = unpack_dlh(found)
        except DlhError as error:
            raise _PlayError(f"{dead}: {error}") from None
        if not header.reason or behind != data or header.dest_q_name != INITIATION:
            raise _PlayError(f"{dead}: reason {header.reason}, for {header.dest_q_name}, {len(behind)} bytes behind it")
        return f"{dead}: MQDLH with reason {header.reason}"

    def _get(self, name: str, msg_id: bytes = b"", wait_s: float = 0.0) -> bytes:
        """Returns the next message of a queue, or the one of this id; nothing where none comes in time."""
        mq = ibmmq()
        codes = mq.CMQC
        options = codes.MQGMO_NO_SYNCPOINT | codes.MQGMO_FAIL_IF_QUIESCING | codes.MQGMO_WAIT
        match = codes.MQMO_MATCH_MSG_ID if msg_id else codes.MQMO_NONE
        how = mq.GMO(Version=2, Options=options, MatchOptions=match, WaitInterval=round(wait_s * 1000))
        manager = self._connection.manager()
        opened = self._call(f"MQOPEN of {name}", lambda: mq.Queue(manager, name, codes.MQOO_INPUT_SHARED))
        descriptor = mq.MD(MsgId=msg_id) if msg_id else mq.MD()
        try:
            return bytes(self._call(f"MQGET of {name}", lambda: opened.get(None, descriptor, how)))
        except RemoteError as error:
            if error.reason != NO_MESSAGE:
                raise
            return b""
        finally:
            if self._connection.is_connected:
                self._call(f"MQCLOSE of {name}", opened.close)

    def _depth(self, name: str) -> int:
        number = STATUS["current_q_depth"].selector
        return int(inquire_queue(self._connection, name, [number])[number])

    def _call(self, doing: str, function: Callable[[], _T]) -> _T:
        return self._connection.call(doing, function)
