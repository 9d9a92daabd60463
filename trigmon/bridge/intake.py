"""The source of trigger messages of a monitor, as a port, and its adapter for a queue manager elsewhere.

A unit of work spans the trigger messages that were taken: it is accepted as a whole or given back as a whole. The
monitor has one adapter more, for its own queue manager (:mod:`trigmon.monitor.own_intake`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Protocol

from trigmon.bridge.connection import NO_MESSAGE, TRUNCATED, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.queue_look import QueueLook
from trigmon.bridge.remote_descriptor import descriptor_of
from trigmon.bridge.remote_facts import dead_letter_q_name
from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    FORMAT_DEAD_LETTER,
    DeadLetterHeader,
    MessageDescriptor,
    date_and_time,
    pack_dlh,
)
from trigmon.mq.enums import ApplType
from trigmon.mq.replies import WasGot
from trigmon.mq.run_parts import QueueThere

_FIRST_LENGTH: Final = 4096
# Of a put on the dead-letter queue: it would never take this message.
_NEVER_FITS: Final = frozenset((2030, 2031, 2218))


class Intake(Protocol):
    """Where trigger messages come from. Its thread alone uses it."""

    @property
    def q_mgr_name(self) -> str:
        """The queue manager whose trigger messages they are."""

    @property
    def initiation_q(self) -> str:
        """The initiation queue."""

    def open(self) -> None:
        """Opens the initiation queue."""

    def take(self) -> list[WasGot]:
        """Gets trigger messages in a unit of work, as many as there are up to a bound; [] when none came in time."""

    def dead_letter(self, got: WasGot, reason: int, now_ms: int) -> str:
        """Puts a message that was taken on the dead-letter queue of that queue manager, in the unit of work.

        Returns a sentence: where it lies, or why it lies nowhere.
        """

    def accept(self) -> None:
        """Commits the unit of work."""

    def give_back(self) -> None:
        """Backs the unit of work out, as far as there is one: the messages are there again."""

    def close(self) -> None:
        """Ends it; what was not accepted is given back."""


class RemoteIntake:
    """The adapter for a queue manager elsewhere, by IBM's ``ibmmq``.

    Every method but ``give_back`` and ``close`` raises RemoteError and BridgeError.
    """

    def __init__(self, connection: RemoteConnection, initiation_q: str) -> None:
        self.connection = connection
        self._looks = QueueLook(connection)
        self._initiation_q = initiation_q
        self.one_at_a_time = False
        """Whether a unit of work has one trigger message alone, since one that cannot be put aside now holds up all."""
        self._queue: Any = None
        self._of: Any = None

    @property
    def q_mgr_name(self) -> str:
        """See :class:`Intake`."""
        return self.connection.settings.queue_manager

    @property
    def initiation_q(self) -> str:
        """See :class:`Intake`."""
        return self._initiation_q

    def open(self) -> None:
        """Opens the initiation queue, unless this connection has it open."""
        manager = self.connection.manager()
        if self._queue is not None and self._of is manager:
            return
        mq = ibmmq()
        options = mq.CMQC.MQOO_INPUT_SHARED | mq.CMQC.MQOO_FAIL_IF_QUIESCING
        name = self._initiation_q
        self._queue = self.connection.call(f"MQOPEN of {name}", lambda: mq.Queue(manager, name, options))
        self._of = manager

    def take(self) -> list[WasGot]:
        """Gets up to ``batch`` trigger messages, or one; waits for the first for ``wait_s``."""
        taken: list[WasGot] = []
        given = self.connection.settings
        wait_ms = round(given.wait_s * 1000)
        while len(taken) < (1 if self.one_at_a_time else given.batch):
            got = self._get(0 if taken else wait_ms)
            if got is None:
                break
            taken.append(got)
        return taken

    def dead_letter(self, got: WasGot, reason: int, now_ms: int) -> str:
        """Puts it with an MQDLH, in the unit of work of its get.

        Raises RemoteError where the dead-letter queue cannot take it now: then it is given back, and comes again.
        """
        manager = self.connection.manager()
        mq = ibmmq()
        name = dead_letter_q_name(self.connection)
        if not name:
            return f"the trigger message was dropped: {self.q_mgr_name} names no dead-letter queue (DEADQ)"
        descriptor = _dead_descriptor(mq, got.descriptor)
        options = mq.PMO()
        options.Options = mq.CMQC.MQPMO_SYNCPOINT | mq.CMQC.MQPMO_FAIL_IF_QUIESCING
        data = pack_dlh(_header(self, got.descriptor, reason, now_ms)) + got.data
        try:
            self.connection.call(f"MQPUT1 to {name}", lambda: manager.put1(name, data, descriptor, options))
        except RemoteError as error:
            if error.reason not in _NEVER_FITS:
                raise
            return f"the trigger message was dropped: the dead-letter queue of {self.q_mgr_name} refused it ({error})"
        return f"the trigger message is on {name}@{self.q_mgr_name}"

    def accept(self) -> None:
        """Commits the unit of work (MQCMIT)."""
        self.connection.call("MQCMIT", self.connection.manager().commit)

    def give_back(self) -> None:
        """Backs the unit of work out (MQBACK); without a connection it is backed out already."""
        if self.connection.is_connected:
            with suppress(RemoteError):
                self.connection.call("MQBACK", self.connection.manager().backout)

    def close(self) -> None:
        """Ends the connection."""
        self._queue = self._of = None
        self.connection.drop()

    def look(self, q_name: str) -> QueueThere | None:
        """Returns how an application queue there stands; None where that cannot be seen."""
        return self._looks.look(q_name)

    def _get(self, wait_ms: int) -> WasGot | None:
        """Returns the next message, None where none came."""
        length = _FIRST_LENGTH
        while True:
            descriptor, options = self._of_get(wait_ms)
            try:
                got = self.connection.call(
                    f"MQGET of {self._initiation_q}",
                    lambda d=descriptor, o=options, n=length: self._data(n, d, o),  # type: ignore[misc]
                )
            except RemoteError as error:
                if error.reason == NO_MESSAGE:
                    return None
                raise
            if isinstance(got, int):
                length = 2 * got
                continue
            return WasGot(descriptor=descriptor_of(descriptor), data=got, data_length=len(got))

    def _of_get(self, wait_ms: int) -> tuple[Any, Any]:
        """Returns MQMD and MQGMO: the trigger message is converted to this machine's numbers and UTF-8."""
        mq = ibmmq()
        codes = mq.CMQC
        descriptor = mq.MD()
        descriptor.CodedCharSetId = CCSID_UTF8
        options = mq.GMO()
        options.Options = codes.MQGMO_SYNCPOINT | codes.MQGMO_FAIL_IF_QUIESCING | codes.MQGMO_CONVERT
        options.Options |= codes.MQGMO_WAIT if wait_ms else codes.MQGMO_NO_WAIT
        options.WaitInterval = wait_ms
        return descriptor, options

    def _data(self, length: int, descriptor: Any, options: Any) -> bytes | int:
        """Returns the message, or the length that it has where it does not fit.

        One that could not be converted was got nonetheless, as it is: its own form stands in the descriptor.
        """
        mq = ibmmq()
        try:
            return bytes(self._queue.get(length, descriptor, options))
        except mq.MQMIError as error:
            if error.reason == TRUNCATED:
                return max(int(error.get("original_length")), length)
            if error.comp == mq.CMQC.MQCC_WARNING:
                return bytes(error.get("message"))
            raise


def _dead_descriptor(mq: Any, got: MessageDescriptor) -> Any:
    """Returns the MQMD of a dead letter: that of the message, whose data the MQDLH describes."""
    md = mq.MD()
    md.Report, md.MsgType, md.Expiry, md.Feedback = got.report, got.msg_type, got.expiry, got.feedback
    md.Encoding, md.CodedCharSetId, md.Format = ENCODING_NATIVE, CCSID_UTF8, FORMAT_DEAD_LETTER.encode()
    md.Priority, md.Persistence = got.priority, got.persistence
    md.MsgId, md.CorrelId = got.msg_id, got.correl_id
    md.ReplyToQ, md.ReplyToQMgr = got.reply_to_q.encode(), got.reply_to_q_mgr.encode()
    return md


def _header(intake: RemoteIntake, got: MessageDescriptor, reason: int, now_ms: int) -> DeadLetterHeader:
    put_date, put_time = date_and_time(now_ms)
    return DeadLetterHeader(
        reason=reason,
        dest_q_name=intake.initiation_q,
        dest_q_mgr_name=intake.q_mgr_name,
        encoding=got.encoding,
        coded_char_set_id=got.coded_char_set_id,
        format=got.format,
        put_appl_type=int(ApplType.UNIX),
        put_appl_name="trigmon monitor",
        put_date=put_date,
        put_time=put_time,
    )
