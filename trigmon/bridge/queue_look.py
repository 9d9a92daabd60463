"""What a monitor looks at of a queue elsewhere: its trigger type, its depth, its readers, its first message.

MQINQ and a browse come first. PCF is asked for what they leave open and a judgement needs, one command a look at most:
for the attributes where MQINQ is refused, for the handles where somebody has the queue open and it is asked whether a
program has, and where nobody has for the uncommitted messages, if the first message cannot be browsed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from trigmon.bridge.connection import NO_MESSAGE, NOT_AUTHORIZED, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.pcf_inquiry import CommandQueue, NoAnswerError
from trigmon.bridge.remote_facts import QueueManagerFacts, handles_of, raise_if_away, status_of
from trigmon.bridge.seen_queue import OpenHandle
from trigmon.mq.attributes import ATTRIBUTES, STATUS
from trigmon.mq.enums import MsgDeliverySequence, ObjectType
from trigmon.mq.run_parts import QueueThere
from trigmon.pcf.numbers import Parameter, PcfCommand

_T = TypeVar("_T")
_TYPES: Final = ("none", "first", "every", "depth")
ANSWER_S: Final = 1.0
"""So long a look waits for the command server."""
SILENCE_S: Final = 60.0
"""So long a command server is not asked again that did not answer, or that this user may not ask, and so long for no
handles where their process ids do not tell."""
_TRIGGER_TYPE, _TRIGGER_PRIORITY, _PRIORITY, _SEQUENCE = (
    ATTRIBUTES[ObjectType.QLOCAL][name].selector
    for name in ("trigger_type", "trigger_msg_priority", "def_priority", "msg_delivery_sequence")
)
_DEPTH, _READERS = (STATUS[name].selector for name in ("current_q_depth", "open_input_count"))


class QueueLook:
    """Looks at queues over one connection, whose thread alone uses it. ``answer_s`` limits the wait for PCF."""

    def __init__(self, connection: RemoteConnection, answer_s: float = ANSWER_S) -> None:
        self._connection = connection
        self._answer_s = answer_s
        self._asks_from = self._asks_handles_from = 0.0

    def look(self, q_name: str, is_own: Callable[[int], bool] | None = None) -> QueueThere | None:
        """Returns how a queue stands now; None where the user of the bridge may not see it, or it is gone.

        ``is_own`` tells of the id of a process of this machine whether it is one of the run's program; then the
        program's handles are counted. Raises RemoteError where the queue manager is away, BridgeError.
        """
        try:
            return self._looked(q_name, is_own)
        except RemoteError as error:
            raise_if_away(error)
            return None

    def _looked(self, q_name: str, is_own: Callable[[int], bool] | None) -> QueueThere | None:
        codes = ibmmq().CMQC
        queue, options = self._opened(q_name)
        try:
            inquires = bool(options & codes.MQOO_INQUIRE)
            seen = self._inquired(queue, q_name) if inquires else self._asked(q_name)
            if seen is not None and seen.readers and inquires and is_own is not None:
                own_readers = self._own_readers(q_name, is_own)
                # A program that has ended meanwhile had messages in flight, which came back after the first inquiry.
                seen = replace(self._inquired(queue, q_name), own_readers=own_readers)
            if seen is not None and seen.depth and options & codes.MQOO_BROWSE:
                seen = self._with_first(seen, queue, q_name)
            if seen is not None and not seen.readers and inquires:
                seen = self._with_uncommitted(seen, q_name)
        finally:
            if queue is not None and self._connection.is_connected:
                self._connection.call(f"MQCLOSE of {q_name}", queue.close)
        return seen

    # -- by MQINQ and MQGET ---------------------------------------------------------------------------------

    def _opened(self, q_name: str) -> tuple[Any, int]:
        """Returns the queue open to inquire and browse, or one of the two, with the options; None for neither."""
        mq = ibmmq()
        codes = mq.CMQC
        manager = self._connection.manager()
        for options in (codes.MQOO_INQUIRE | codes.MQOO_BROWSE, codes.MQOO_INQUIRE, codes.MQOO_BROWSE):
            whole = options | codes.MQOO_FAIL_IF_QUIESCING
            try:
                queue = self._connection.call(
                    f"MQOPEN of {q_name}",
                    lambda o=whole: mq.Queue(manager, q_name, o),  # type: ignore[misc]
                )
            except RemoteError as error:
                if error.reason != NOT_AUTHORIZED:
                    raise
            else:
                return queue, options
        return None, 0

    def _inquired(self, queue: Any, q_name: str) -> QueueThere:
        wanted = [_TRIGGER_TYPE, _TRIGGER_PRIORITY, _PRIORITY, _SEQUENCE, _DEPTH, _READERS]
        return _there(self._connection.call(f"MQINQ of {q_name}", lambda: queue.inquire(wanted)))

    def _with_first(self, seen: QueueThere, queue: Any, q_name: str) -> QueueThere:
        """Adds the first message. Where there is none to be read, what makes up the depth is not committed."""
        try:
            first = self._connection.call(f"MQGET of {q_name}", lambda: _browsed(queue))
        except RemoteError as error:
            raise_if_away(error)
            return replace(seen, uncommitted=seen.depth) if error.reason == NO_MESSAGE else seen
        priority = first.Priority if seen.priority < 0 else seen.priority
        return replace(seen, first=first.MsgId.hex(), backouts=first.BackoutCount, priority=priority)

    # -- by PCF ---------------------------------------------------------------------------------------------

    def _asked(self, q_name: str) -> QueueThere | None:
        found = self._answer(lambda commands: commands.ask(PcfCommand.INQUIRE_Q, (Parameter.Q_NAME, q_name)))
        return _there(found[0]) if found else None

    def _own_readers(self, q_name: str, is_own: Callable[[int], bool]) -> int:
        """Returns how many readers are the program's, -1 where nobody can tell.

        The queue is open here meanwhile: this process has a handle too.
        """
        if time.monotonic() < self._asks_handles_from:
            return -1
        handles = self._answer(lambda commands: handles_of(commands, q_name))
        if handles is None:
            return -1
        if not pids_tell(handles):
            self._asks_handles_from = time.monotonic() + SILENCE_S
            return -1
        return own_readers(handles, is_own)

    def _with_uncommitted(self, seen: QueueThere, q_name: str) -> QueueThere:
        """Adds the uncommitted messages where no browse showed them.

        MQ counts uncommitted gets among them. So they tell of puts where nobody has the queue open for input.
        """
        if not seen.depth or seen.first or seen.uncommitted:
            return seen
        status = self._answer(lambda commands: status_of(commands, q_name)) or {}
        uncommitted = status.get(Parameter.UNCOMMITTED_MSGS)
        return replace(seen, uncommitted=min(seen.depth, uncommitted)) if isinstance(uncommitted, int) else seen

    def _answer(self, asked: Callable[[CommandQueue], _T]) -> _T | None:
        """Returns what the command server answers; None where it does not, or is not asked."""
        if time.monotonic() < self._asks_from:
            return None
        commands = CommandQueue(self._connection, QueueManagerFacts(self._connection).command_q_name, self._answer_s)
        try:
            return asked(commands)
        except (RemoteError, NoAnswerError) as error:
            raise_if_away(error)
            if isinstance(error, RemoteError) or not error.reason:
                self._asks_from = time.monotonic() + SILENCE_S
            return None
        finally:
            if self._connection.is_connected:
                commands.close()


def pids_tell(handles: Iterable[OpenHandle]) -> bool:
    """Returns whether process ids of handles are those of this machine: this process finds its own among them.

    A queue manager of another machine has other ids, and a handle that came by a channel has the channel's process.
    The look's own handle neither gets nor puts; others of this process may have come by another way.
    """
    looks = (handle for handle in handles if not (handle.for_input or handle.for_output))
    return any(handle.pid == os.getpid() and not handle.channel for handle in looks)


def own_readers(handles: Iterable[OpenHandle], is_own: Callable[[int], bool]) -> int:
    """Returns how many handles for input are of the run's program; -1 where only one of a channel may be."""
    readers = [handle for handle in handles if handle.for_input]
    own = sum(not handle.channel and is_own(handle.pid) for handle in readers)
    return own if own or not any(handle.channel for handle in readers) else -1


def _there(values: Any) -> QueueThere:
    """Returns the values of MQINQ, or of a reply in PCF, which have the same numbers."""
    kind = values.get(_TRIGGER_TYPE, -1)
    return QueueThere(
        trigger_type=_TYPES[kind] if 0 <= kind < len(_TYPES) else "",
        depth=values.get(_DEPTH, 0),
        readers=values.get(_READERS, 0),
        trigger_priority=values.get(_TRIGGER_PRIORITY, 0),
        priority=values.get(_PRIORITY, -1) if values.get(_SEQUENCE) == MsgDeliverySequence.FIFO else -1,
    )


def _browsed(queue: Any) -> Any:
    """Returns the MQMD of the first message. Raises MQMIError."""
    mq = ibmmq()
    codes = mq.CMQC
    options = mq.GMO()
    options.Options = codes.MQGMO_BROWSE_FIRST | codes.MQGMO_NO_SYNCPOINT | codes.MQGMO_FAIL_IF_QUIESCING
    options.Options |= codes.MQGMO_ACCEPT_TRUNCATED_MSG
    descriptor = mq.MD()
    try:
        queue.get(0, descriptor, options)
    except mq.MQMIError as error:
        if error.reason != codes.MQRC_TRUNCATED_MSG_ACCEPTED:
            raise
    return descriptor
