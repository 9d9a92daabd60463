"""The records of files on their way, and the units of work in which their messages are put. One thread uses it.

A record is put before its file is moved, and got in the unit of work that puts the file's message. So after a crash
there is a record for each file whose message is not put, and for no other: no file is lost, and none comes twice. The
queue is open for exclusive input. A second process cannot serve the watches at the same time; and where a connection
was lost, the queue is opened only when the queue manager has ended that one, and its unit of work with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from trigmon.client import option_names
from trigmon.client.connection import Connection
from trigmon.client.link import Link, LinkDown
from trigmon.client.message import Message
from trigmon.client.option_names import PutWords
from trigmon.client.queue import Queue
from trigmon.log import logger
from trigmon.mq.calls import Call, Display, Get, Put, ReportWatches, WatchState
from trigmon.mq.enums import MsgType
from trigmon.mq.errors import MQError
from trigmon.mq.names import RECORD_QUEUE
from trigmon.mq.paging import all_rows
from trigmon.mq.reasons import Reason
from trigmon.watches.directory import Settled
from trigmon.watches.watched import BODY, FileRecord, WatchDefinition, decode, encode

LONGEST_MESSAGE = 100 << 20
_WINDOW = 64
_PUT: PutWords = {"persistence": "persistent", "syncpoint": True}
_GET = option_names.get_bits({"syncpoint": True})
OF_ONE_MESSAGE = frozenset({Reason.MSG_TOO_BIG_FOR_Q, Reason.MSG_TOO_BIG_FOR_Q_MGR})
"""Refusals of a message that the next one need not meet."""

log = logger()


class RecordQueue:
    """Calls of the watches to the queue manager. Each raises LinkDown while that is away, MQError for a refusal."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._link = Link(connect)
        self._queue: Queue | None = None
        self._records: dict[str, dict[bytes, FileRecord]] = defaultdict(dict)

    def pause_s(self) -> float:
        """Returns the seconds until the next attempt to connect, 0 where one is due or the link stands."""
        return self._link.pause_s

    def definitions(self) -> list[WatchDefinition]:
        """Returns the watches as they are defined."""
        connection = self._connected()[0]
        return [
            WatchDefinition.of(row) for row in all_rows(self._guarded(connection.call), Display(object_type="WATCH"))
        ]

    def report(self, states: list[WatchState]) -> None:
        """Reports how the watches are. The queue manager shows it as long as this connection lasts."""
        self._guarded(self._connected()[0].call)(ReportWatches(watches=states))

    def watches(self) -> list[str]:
        """Returns the watches with records, those that are no longer defined among them."""
        self._connected()
        return [name for name, records in self._records.items() if records]

    def records(self, watch: str) -> list[FileRecord]:
        """Returns the records of a watch."""
        self._connected()
        return list(self._records[watch].values())

    def longest(self, q_name: str) -> int:
        """Returns how many bytes a message of a queue may have; the most that is possible where it does not say."""
        connection, _ = self._connected()
        most = min(connection.largest_call, LONGEST_MESSAGE)
        with suppress(MQError), connection.open(q_name, "inquire") as queue:
            length = queue.inquire("max_msg_length")["max_msg_length"]
            return min(most, length) if isinstance(length, int) and length >= 0 else most
        return most

    def add(self, records: Sequence[FileRecord]) -> None:
        """Records files in one unit of work: they may be moved from now on."""
        connection, queue = self._connected()
        calls = [_put(connection, queue.handle, encode(each), each.correl_id, is_text=True) for each in records]
        self._in_a_unit(connection, calls)
        for each in records:
            self._records[each.watch][each.correl_id] = each

    def finish(self, settled: Sequence[Settled]) -> dict[bytes, MQError]:
        """Puts the messages of files and gets their records, in one unit of work.

        Returns the refusals, by correlation id: these files keep their records. Where one is refused each is tried in a
        unit of work of its own, so that a file whose message is too long holds up no other.
        """
        try:
            self._finish(settled)
        except MQError as error:
            if len(settled) == 1:
                return {settled[0].record.correl_id: error}
            refused: dict[bytes, MQError] = {}
            for each in settled:
                refused |= self.finish([each])
                last = refused.get(each.record.correl_id)
                if last is not None and last.reason not in OF_ONE_MESSAGE:
                    break
            return refused
        return {}

    def close(self) -> None:
        """Disconnects in order."""
        self._link.close()

    def _finish(self, settled: Sequence[Settled]) -> None:
        connection, records = self._connected()
        targets: dict[str, Queue] = {}
        try:
            for q_name in {each.record.q_name for each in settled if each.data is not None}:
                targets[q_name] = self._guarded(connection.open)(q_name, "output")
            self._in_a_unit(connection, list(_ending(connection, records, targets, settled)))
        finally:
            if self._queue is not None:  # the connection stands
                for target in targets.values():
                    self._guarded(target.close)()
        for each in settled:
            self._records[each.record.watch].pop(each.record.correl_id, None)

    def _in_a_unit(self, connection: Connection, calls: Sequence[Call]) -> None:
        """Performs calls and commits; a refusal backs all of them out."""
        try:
            self._guarded(connection.pipeline)(calls, window=_WINDOW)
            self._guarded(connection.commit)()
        except MQError:
            self._guarded(connection.give_up_unit)()
            raise

    def _connected(self) -> tuple[Connection, Queue]:
        """Returns the connection and the record queue; with a new connection all records are read anew."""
        connection = self._link.connection()
        if self._queue is None or self._queue.connection is not connection:
            self._queue = None
            self._records.clear()
            queue = self._guarded(connection.open)(RECORD_QUEUE, "input_exclusive", "browse", "output")
            for message in self._guarded(lambda: list(queue.browse()))():
                record = _record(message)
                if record is not None:
                    self._records[record.watch][message.correl_id] = record
            self._queue = queue
        return connection, self._queue

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a call that raises LinkDown where the connection is lost: what became of it is then not known."""

        def guarded(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            except MQError as error:
                if not LinkDown(error).may_pass:
                    raise
                self._queue = None
                raise self._link.lost(error) from None

        return guarded


def _ending(
    connection: Connection, records: Queue, targets: dict[str, Queue], settled: Sequence[Settled]
) -> Iterator[Call]:
    """Yields the calls that end the way of each file: its message is put, if it has one, and its record got."""
    for each in settled:
        record = each.record
        if each.data is not None:
            target = targets[record.q_name].handle
            yield _put(connection, target, each.data, record.correl_id, is_text=record.content != BODY)
        match = option_names.match_parts({"correl_id": record.correl_id})
        yield Get(handle=records.handle, options=_GET, unit=connection.unit, **match)


def _put(connection: Connection, handle: int, data: bytes, correl_id: bytes, *, is_text: bool) -> Put:
    descriptor, bits = option_names.put_parts({**_PUT, "correl_id": correl_id}, is_text)
    return Put(handle=handle, descriptor=descriptor, data=data, options=bits, unit=connection.unit)


def _record(message: Message) -> FileRecord | None:
    """Returns the record that a message of the record queue is; None for what this program did not put there.

    A report that somebody sent here by its ReplyToQ may have any content.
    """
    try:
        record = decode(message.data)
        if message.msg_type == MsgType.DATAGRAM and record.correl_id == message.correl_id:
            return record
    except ValueError:
        pass
    log.warning("no record of a file", q_name=RECORD_QUEUE, msg_id=message.msg_id.hex())
    return None
