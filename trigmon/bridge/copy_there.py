"""The remote side of a copy: a queue of a queue manager elsewhere, got under syncpoint and by this copy alone."""

from __future__ import annotations

from typing import Any, Final

from trigmon.bridge.connection import NO_MESSAGE, NOT_AUTHORIZED, TRUNCATED, RemoteConnection, RemoteError, ibmmq
from trigmon.bridge.copy_protocol import TakenMessage, identity_of
from trigmon.bridge.remote_descriptor import descriptor_of

IN_USE: Final = 2042
WAITS: Final = frozenset({IN_USE, 2016, 2003, 2024, 2101, 2102, 2345, 2373})
"""Reasons that pass by themselves or by an operator, beside those after which a connection is made anew."""
_BUFFER, _LONGEST_BUFFER = 65_536, 1_048_576
"""A buffer that grew for one message stays so long, up to the second."""


class RemoteQueue:
    """The queue. A call raises RemoteError where it fails; then :meth:`drop` and :meth:`open` are due.

    Open for exclusive input it is this copy's alone, and no earlier unit of work of the copy is left.
    """

    def __init__(self, connection: RemoteConnection, q_name: str) -> None:
        self.q_name = q_name
        self._connection = connection
        self._mq: Any = None
        self._queue: Any = None
        self._inquires = True
        self._buffer = _BUFFER

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt to connect is due."""
        return self._connection.pause_s

    @property
    def is_open(self) -> bool:
        """Whether messages can be got, as far as is known."""
        return self._queue is not None and self._connection.is_connected

    def open(self) -> None:
        """Connects and opens the queue. Raises BridgeError where the bridge is not configured for it."""
        self._mq = ibmmq()
        constants = self._mq.CMQC
        manager = self._connection.manager()
        options = constants.MQOO_INPUT_EXCLUSIVE | constants.MQOO_BROWSE | constants.MQOO_FAIL_IF_QUIESCING
        try:
            self._queue = self._opened(manager, options | constants.MQOO_INQUIRE)
            self._inquires = True
        except RemoteError as error:
            if error.reason != NOT_AUTHORIZED:
                raise
            self._queue = self._opened(manager, options)
            self._inquires = False

    def take(self, wait_ms: int) -> TakenMessage | None:
        """Gets the next message under syncpoint; None where none comes within the time."""
        constants = self._mq.CMQC
        waits = constants.MQGMO_WAIT if wait_ms else constants.MQGMO_NO_WAIT
        return self._taken(waits | constants.MQGMO_SYNCPOINT, wait_ms, constants.MQMO_NONE, b"")

    def take_again(self, msg_id: bytes) -> TakenMessage | None:
        """Gets the next message of this id under syncpoint; None where there is none."""
        constants = self._mq.CMQC
        return self._taken(constants.MQGMO_SYNCPOINT, 0, constants.MQMO_MATCH_MSG_ID, msg_id)

    def look(self, msg_id: bytes, most: int) -> list[TakenMessage]:
        """Browses the messages of this id, so many at most."""
        constants = self._mq.CMQC
        found: list[TakenMessage] = []
        options = constants.MQGMO_BROWSE_FIRST
        while len(found) < most:
            message = self._taken(options, 0, constants.MQMO_MATCH_MSG_ID, msg_id)
            if message is None:
                break
            found.append(message)
            options = constants.MQGMO_BROWSE_NEXT
        return found

    def commit(self) -> None:
        """Commits what was got."""
        self._connection.call("MQCMIT", self._connection.manager().commit)

    def backout(self) -> None:
        """Gives back what was got: with the connection, where MQBACK fails."""
        try:
            self._connection.call("MQBACK", self._connection.manager().backout)
        except RemoteError:
            self.drop()

    def depth(self) -> int:
        """Returns how many messages are on the queue, -1 where the user may not inquire."""
        if not self._inquires:
            return -1
        inquired = self._connection.call(
            f"MQINQ of {self.q_name}", lambda: self._queue.inquire(self._mq.CMQC.MQIA_CURRENT_Q_DEPTH)
        )
        return int(inquired)

    def drop(self) -> None:
        """Ends the connection; what was not committed is backed out."""
        self._connection.drop()
        self._queue = None

    def _opened(self, manager: Any, options: int) -> Any:
        return self._connection.call(
            f"MQOPEN of {self.q_name} for exclusive input", lambda: self._mq.Queue(manager, self.q_name, options)
        )

    def _taken(self, options: int, wait_ms: int, match: int, msg_id: bytes) -> TakenMessage | None:
        """Gets or browses a message: its properties as MQRFH2 before the data, of which no byte is converted."""
        mq = self._mq
        options |= mq.CMQC.MQGMO_FAIL_IF_QUIESCING | mq.CMQC.MQGMO_PROPERTIES_FORCE_MQRFH2

        def get() -> TakenMessage | None:
            while True:
                md = mq.MD(MsgId=msg_id)
                gmo = mq.GMO(Options=options, WaitInterval=wait_ms, MatchOptions=match)
                try:
                    data = self._queue.get(self._buffer, md, gmo)
                except mq.MQMIError as error:
                    if error.reason == NO_MESSAGE:
                        return None
                    if error.reason != TRUNCATED:
                        raise
                    self._buffer = error.original_length
                    continue
                self._buffer = min(self._buffer, _LONGEST_BUFFER)
                descriptor = descriptor_of(md)
                return TakenMessage(descriptor, data, identity_of(descriptor, data))

        return self._connection.call(f"MQGET of {self.q_name}", get)
