"""Commands in PCF to the command server of a queue manager elsewhere, with a dynamic reply queue and a time limit."""

from __future__ import annotations

import time
from typing import Any, Final

from trigmon.bridge.connection import NO_MESSAGE, RemoteConnection, RemoteError, ibmmq, reason_text
from trigmon.mq.reasons import CompCode
from trigmon.pcf.numbers import PcfCommand, StructureType
from trigmon.pcf.structures import LAST, NOT_LAST, Parameter, PcfError, PcfMessage, Value, pack_message, unpack_message

MODEL: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
"""The model queue from which the reply queue is made; it is deleted at its close."""
REPLY_NAMES: Final = "TRIGMON.*"
TIMEOUT_S: Final = 5.0
_VERSION: Final = 3
_SUMMARIES: Final = (StructureType.XR_MSG, StructureType.XR_SUMMARY)
"""Replies of z/OS that say nothing of an object."""


class NoAnswerError(Exception):
    """The command server did not answer in time, or refused the command. ``reason`` is MQ's, 0 for no answer."""

    def __init__(self, why: str, reason: int = 0) -> None:
        super().__init__(why)
        self.reason = reason


class CommandQueue:
    """The command queue of one connection, and the reply queue, both opened by the first command."""

    def __init__(self, connection: RemoteConnection, name: str, timeout_s: float = TIMEOUT_S) -> None:
        self._connection = connection
        self._name = name
        self._timeout_s = timeout_s
        self._replies: Any = None
        self._reply_name = b""
        self.refusal: RemoteError | None = None
        self.last_reply: Any = None

    def ask(self, command: PcfCommand, *parameters: Parameter) -> list[dict[int, Value]]:
        """Returns the parameters of each reply. Raises RemoteError, NoAnswerError.

        A queue that could not be opened is not tried again.
        """
        if self.refusal is not None:
            raise self.refusal
        mq = ibmmq()
        try:
            sent = self._put(mq, command, parameters)
        except RemoteError as error:
            self.refusal = error
            raise
        return self._answers(mq, command, sent)

    def close(self) -> None:
        """Closes the reply queue, which deletes it; a lost connection has done so already."""
        replies, self._replies = self._replies, None
        if replies is not None:
            try:
                self._connection.call("MQCLOSE of the reply queue", replies.close)
            except RemoteError:
                return

    def _put(self, mq: Any, command: PcfCommand, parameters: tuple[Parameter, ...]) -> bytes:
        """Puts the command and returns its message id."""
        options = mq.CMQC
        if self._replies is None:
            self._open_replies(mq)
        # z/OS takes commands of this type alone, and every other platform takes it too.
        kind = StructureType.COMMAND_XR
        data = pack_message(PcfMessage(kind, command, CompCode.OK, 0, parameters, version=_VERSION))
        descriptor = mq.MD(
            Format=options.MQFMT_ADMIN,
            MsgType=options.MQMT_REQUEST,
            CodedCharSetId=1208,
            ReplyToQ=self._reply_name,
            Expiry=max(10, int(self._timeout_s * 20)),
            Report=options.MQRO_NONE,
            Persistence=options.MQPER_NOT_PERSISTENT,
        )
        how = mq.PMO(Options=options.MQPMO_NO_SYNCPOINT | options.MQPMO_FAIL_IF_QUIESCING | options.MQPMO_NEW_MSG_ID)
        manager = self._connection.manager()
        described = mq.OD(ObjectName=self._name.encode())
        self._connection.call(f"MQPUT1 to {self._name}", lambda: manager.put1(described, data, descriptor, how))
        return bytes(descriptor.MsgId)

    def _open_replies(self, mq: Any) -> None:
        described = mq.OD(ObjectName=MODEL.encode(), DynamicQName=REPLY_NAMES.encode())
        options = mq.CMQC.MQOO_INPUT_EXCLUSIVE | mq.CMQC.MQOO_FAIL_IF_QUIESCING
        manager = self._connection.manager()
        self._replies = self._connection.call(f"MQOPEN of {MODEL}", lambda: mq.Queue(manager, described, options))
        self._reply_name = bytes(described.ObjectName)

    def _answers(self, mq: Any, command: PcfCommand, sent: bytes) -> list[dict[int, Value]]:
        deadline = time.monotonic() + self._timeout_s
        found: list[dict[int, Value]] = []
        refused = 0
        control = NOT_LAST
        while control != LAST:
            reply = self._reply(mq, sent, deadline)
            control = reply.control
            if reply.comp_code is CompCode.FAILED:
                refused = refused or reply.reason
            elif reply.kind not in _SUMMARIES and reply.parameters:
                found.append(dict(reply.parameters))
        if refused:
            raise NoAnswerError(f"{command.name}: {reason_text(refused)}", refused)
        return found

    def _reply(self, mq: Any, sent: bytes, deadline: float) -> PcfMessage:
        """Returns the next reply. Raises NoAnswerError when the time is over, RemoteError."""
        options = mq.CMQC
        left_ms = max(0, int((deadline - time.monotonic()) * 1000))
        how = mq.GMO(
            Version=options.MQGMO_VERSION_2,
            Options=options.MQGMO_NO_SYNCPOINT | options.MQGMO_WAIT | options.MQGMO_FAIL_IF_QUIESCING,
            MatchOptions=options.MQMO_MATCH_CORREL_ID,
            WaitInterval=left_ms,
        )
        descriptor = mq.MD(CorrelId=sent)
        try:
            data = self._connection.call("MQGET of a reply", lambda: self._replies.get(None, descriptor, how))
        except RemoteError as error:
            if error.reason != NO_MESSAGE:
                raise
            raise NoAnswerError(f"the command server did not answer in {self._timeout_s:g} s") from None
        self.last_reply = descriptor
        try:
            return unpack_message(data, descriptor.Encoding, descriptor.CodedCharSetId)
        except PcfError as error:
            raise NoAnswerError(f"its answer is no PCF: {error}") from None
