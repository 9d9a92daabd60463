"""The local side of a copy: the queue that gets the messages, and the queue of its own that holds the record.

The record queue is open for exclusive input, so two copies of one queue exclude one another. Where a connection was
lost, the queue is opened only when the queue manager has ended that connection's unit of work: the record is what was
committed. One thread uses an object of this module.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from trigmon.bridge.copy_protocol import Record, TakenMessage, decode, encode
from trigmon.client.connection import Connection
from trigmon.client.link import Link, LinkDown
from trigmon.client.queue import Queue
from trigmon.log import logger
from trigmon.mq.calls import Call, CopyState, Define, Display, Get, Put, ReportCopy
from trigmon.mq.descriptors import DeadLetterHeader, MessageDescriptor, date_and_time, pack_dlh
from trigmon.mq.enums import ApplType, GetOption, Inhibit, MsgType, ObjectType, Persistence, PutOption, word
from trigmon.mq.errors import MQError, MsgTooBigForQMgr, PutInhibited, QFull, UnknownObjectName
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Listing, Refused
from trigmon.rules.messages.dead_letter_queue import dead_descriptor

RECORDS = "SYSTEM.TRIGMON.BRIDGE."
"""The names of record queues begin so."""
OF_ONE_MESSAGE = frozenset(
    {
        *(Reason.MSG_TOO_BIG_FOR_Q, Reason.MSG_TOO_BIG_FOR_Q_MGR, Reason.BUFFER_LENGTH_ERROR),
        *(Reason.EXPIRY_ERROR, Reason.FEEDBACK_ERROR, Reason.FORMAT_ERROR, Reason.MD_ERROR, Reason.MSG_TYPE_ERROR),
        *(
            Reason.PERSISTENCE_ERROR,
            Reason.PRIORITY_ERROR,
            Reason.PRIORITY_EXCEEDS_MAXIMUM,
            Reason.REPORT_OPTIONS_ERROR,
        ),
        *(Reason.MSG_ID_ERROR, Reason.CORREL_ID_ERROR, Reason.GROUP_ID_ERROR, Reason.MSG_FLAGS_ERROR),
        *(Reason.MSG_SEQ_NUMBER_ERROR, Reason.OFFSET_ERROR, Reason.ORIGINAL_LENGTH_ERROR, Reason.MDE_ERROR),
    }
)
"""Refusals of a message that the next one need not meet: such a message goes to the dead-letter queue."""
_WINDOW = 64
_PUT = int(PutOption.SYNCPOINT | PutOption.SET_ALL_CONTEXT)
_PUT_RECORD = int(PutOption.SYNCPOINT)
_GET = int(GetOption.SYNCPOINT)
_RECORD = MessageDescriptor(persistence=int(Persistence.PERSISTENT))

log = logger()


class LocalQueue:
    """The queue that gets the messages. Calls raise LinkDown while its queue manager is away, MQError for a refusal.

    ``source`` is the queue that is copied, as QUEUE@QM: the record is its.
    """

    def __init__(self, connect: Callable[[], Connection], source: str, q_name: str) -> None:
        self.source = source
        self.q_name = q_name
        self.put_aside = 0
        self._link = Link(connect)
        self._records: Queue | None = None
        self._target: Queue | None = None
        self._inquired: Queue | None = None
        self._count = 0

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt to connect is due."""
        return self._link.pause_s

    def open(self) -> Record:
        """Connects, opens both queues and returns what is on record."""
        connection = self._link.connection()
        self._records = self._guarded(self._opened_records)(connection)
        self._target = self._guarded(connection.open)(self.q_name, "output", "set_all_context")
        # An alias leads there: the room is that of the queue behind it.
        self._inquired = self._guarded(connection.open)(self._target.q_name, "inquire")
        record: Record = {}
        self._count = 0
        for message in self._guarded(lambda queue: list(queue.browse()))(self._records):
            self._count += 1
            if message.msg_type != MsgType.DATAGRAM:
                continue  # a report that somebody had sent here
            try:
                source, found = decode(message.data)
            except ValueError:
                log.warning("no record of a copy", q_name=record_queue(self.source), msg_id=message.msg_id.hex())
                continue
            if source == self.source:
                record |= found
        return record

    def room(self) -> int:
        """Returns how many messages the queue has room for. Raises QFull, PutInhibited."""
        assert self._inquired is not None
        values = self._guarded(self._inquired.inquire)("current_q_depth", "max_q_depth", "inhibit_put")
        if values["inhibit_put"] == word(Inhibit.INHIBITED):
            name = self._inquired.q_name
            raise PutInhibited(f"{name}: puts are inhibited; trigmon queue alter {name} inhibit_put=allowed")
        room = int(values["max_q_depth"]) - int(values["current_q_depth"])
        if room < 1:
            raise QFull(f"{self.q_name} has its {values['max_q_depth']} messages (MAXDEPTH)")
        return room

    def put(self, messages: Sequence[TakenMessage], record: Record) -> None:
        """Puts messages and the record in one unit of work, and commits it.

        A message that the queue never takes goes to the dead-letter queue in its place, with the reason. Raises the
        refusal where there is none, or it refuses the message as well.
        """
        aside: dict[int, MQError] = {}
        while (refused := self._put(messages, record, aside)) is not None:
            at, error = refused
            if at < 0 or at in aside or error.reason not in OF_ONE_MESSAGE or not self._dead_letter_queue():
                raise _about(messages[at], error) if at >= 0 else error
            aside[at] = error
        for at, error in aside.items():
            self.put_aside += 1
            log.warning("a message was put aside", copy=self.source, msg_id=_hex(messages[at]), why=str(error))

    def report(self, state: CopyState) -> None:
        """Reports how the copy is. The queue manager shows it as long as this connection lasts."""
        if self._target is not None:
            self._guarded(self._target.connection.call)(ReportCopy(state=state))

    def close(self) -> None:
        """Disconnects in order."""
        self._target = self._records = None
        self._link.close()

    def drop(self) -> None:
        """Ends the connection; what was not committed is backed out."""
        self._target = self._records = None
        self._link.drop()

    # -- the unit of work -----------------------------------------------------------------------------------

    def _put(
        self, messages: Sequence[TakenMessage], record: Record, aside: dict[int, MQError]
    ) -> tuple[int, MQError] | None:
        """Performs the unit of work; returns which message (-1: the record) was refused and why, or None."""
        assert self._records is not None and self._target is not None
        connection = self._target.connection
        longest = next((at for at, each in enumerate(messages) if len(each.data) > connection.largest_call), None)
        if longest is not None:
            length = len(messages[longest].data)
            return longest, MsgTooBigForQMgr(f"{length} bytes, where a call has {connection.largest_call} at most")
        before = self._count
        count = 1 if record else 0
        calls: list[Call] = [
            Get(handle=self._records.handle, options=_GET, unit=connection.unit) for _ in range(before)
        ]
        calls += [self._one(connection, at, each, aside.get(at)) for at, each in enumerate(messages)]
        if count:
            data = encode(self.source, record)
            put = Put(handle=self._records.handle, descriptor=_RECORD, data=data, options=_PUT_RECORD)
            calls.append(_in(put, connection.unit))
        replies = self._guarded(connection.answers)(calls, _WINDOW)
        for at, reply in enumerate(replies):
            if isinstance(reply, Refused):
                self._guarded(connection.give_up_unit)()
                refused = at - before if 0 <= at - before < len(messages) else -1
                return refused, MQError.of(reply.reason, reply.about)
        self._guarded(connection.commit)()
        self._count = count
        return None

    def _one(self, connection: Connection, at: int, message: TakenMessage, error: MQError | None) -> Put:
        assert self._target is not None
        if error is None:
            put = Put(handle=self._target.handle, descriptor=message.descriptor, data=message.data, options=_PUT)
            return _in(put, connection.unit)
        put_date, put_time = date_and_time(time.time_ns() // 1_000_000)
        header = DeadLetterHeader(
            reason=int(error.reason),
            dest_q_name=self.q_name,
            dest_q_mgr_name=connection.q_mgr_name,
            encoding=message.descriptor.encoding,
            coded_char_set_id=message.descriptor.coded_char_set_id,
            format=message.descriptor.format,
            put_appl_type=int(ApplType.UNIX),
            put_appl_name="trigmon bridge copy",
            put_date=put_date,
            put_time=put_time,
        )
        put = Put(
            q_name=self._dead_letter_queue(),
            descriptor=dead_descriptor(message.descriptor),
            data=pack_dlh(header) + message.data,
            options=_PUT,
        )
        return _in(put, connection.unit)

    def _dead_letter_queue(self) -> str:
        """Returns the queue manager's DEADQ, "" for none, and where it is the queue that gets the messages."""
        assert self._target is not None
        reply = self._guarded(self._target.connection.ask)(Display(object_type=ObjectType.QMGR.name), Listing)
        name = str(reply.rows[0]["dead_letter_q_name"]) if reply.rows else ""
        return "" if name == self.q_name else name

    def _opened_records(self, connection: Connection) -> Queue:
        name = record_queue(self.source)
        options = ("input_exclusive", "browse", "output")
        with suppress(UnknownObjectName):
            return connection.open(name, *options)
        text = f"the record of the copy of {self.source}"[:64]
        attributes = {"description": text, "def_persistence": "persistent", "max_msg_length": 104_857_600}
        with suppress(MQError):  # another copy may have defined it in between
            connection.call(Define(object_type=ObjectType.QLOCAL.name, name=name, attributes=attributes))
        return connection.open(name, *options)

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a call that raises LinkDown where the connection is lost: what became of it is then not known.

        So it is for BackedOut: what became of the unit of work is known by the record.
        """

        def guarded(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            except MQError as error:
                if not LinkDown(error).may_pass and error.reason != Reason.BACKED_OUT:
                    raise
                self._target = self._records = None
                raise self._link.lost(error) from None

        return guarded


def record_queue(source: str) -> str:
    """Returns the name of the queue with the record of a copy, which a digest of QUEUE@QM makes short enough."""
    digest = base64.b32encode(blake2b(source.encode(), digest_size=16).digest()).decode().rstrip("=")
    return RECORDS + digest


def _in(put: Put, unit: int) -> Put:
    return Put(**{name: getattr(put, name) for name in Put.__struct_fields__} | {"unit": unit})


def _hex(message: TakenMessage) -> str:
    return message.descriptor.msg_id.hex()


def _about(message: TakenMessage, error: MQError) -> MQError:
    """Returns a refusal that says which message was refused and what can be done."""
    length = len(message.data)
    text = f"the message {_hex(message)} of {length} bytes: {error.about}"
    if error.reason in OF_ONE_MESSAGE:
        text += "; let the local queue take it (max_msg_length), or name a dead-letter queue (dead_letter_q_name)"
    return MQError.of(error.reason, text)
