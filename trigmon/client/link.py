"""A connection to the queue manager that reconnects with growing pauses (exponential backoff)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from trigmon.client.connection import Connection
from trigmon.mq.calls import Call
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply

_GONE: Final = frozenset(
    {
        Reason.CONNECTION_BROKEN,
        Reason.Q_MGR_NOT_AVAILABLE,
        Reason.Q_MGR_QUIESCING,
        Reason.Q_MGR_STOPPING,
        Reason.CONNECTION_QUIESCING,
        Reason.CONNECTION_STOPPING,
        Reason.CF_NOT_AVAILABLE,
    }
)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class LinkDown(Exception):  # noqa: N818 - a state of the link, raised to a caller that may wait
    """The queue manager cannot be reached now; :attr:`Link.pause_s` says when to try again, ``error`` why."""

    def __init__(self, error: MQError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def may_pass(self) -> bool:
        """Whether the queue manager is away or not yet there, rather than the call being wrong."""
        return self.error.reason in _GONE


class Link:
    """Calls to a queue manager that may be away at times. Only one thread may use it, as with a connection."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0
        self._error = MQError()

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt is due, 0 when it is or when the link stands."""
        return 0.0 if self._connection else max(0.0, self._retry_at - time.monotonic())

    def connection(self) -> Connection:
        """Returns the connection, made now if there is none and an attempt is due. Raises LinkDown."""
        if self._connection is None:
            if self.pause_s:
                raise LinkDown(self._error)
            try:
                self._connection = self._connect()
            except MQError as error:
                raise self.lost(error) from None
            self._pause_s = _FIRST_PAUSE_S
        return self._connection

    def call(self, call: Call) -> Reply:
        """Sends one call and returns its reply.

        Raises LinkDown when the link is down or goes down (whether it was done is then not known).
        """
        connection = self.connection()
        try:
            return connection.call(call)
        except MQError as error:
            if error.reason not in _GONE:
                raise
            raise self.lost(error) from None

    def answers(self, calls: Sequence[Call]) -> list[Reply]:
        """Sends several calls at once and returns their replies in order, refusals among them.

        None of them may wait or end a unit of work. Calls that arrive together are one turn of the queue manager and
        one sync. Raises LinkDown; MQError, TypeError or ValueError where one cannot be sent.
        """
        connection = self.connection()
        try:
            replies = connection.answers(calls, window=len(calls))
        except MQError as error:
            if error.reason not in _GONE:
                raise
            raise self.lost(error) from None
        for reply in replies:
            if isinstance(reply, Refused) and reply.reason in _GONE:
                raise self.lost(MQError.of(reply.reason, reply.about))
        return replies

    def drop(self) -> None:
        """Drops the connection without a disconnect: what was got and not committed is backed out."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.drop()

    def close(self) -> None:
        """Disconnects, if there is a connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.disconnect()
            except MQError:
                connection.drop()

    def lost(self, error: MQError) -> LinkDown:
        """Drops the connection, sets when the next attempt is due, and returns what is to be raised."""
        if self._connection is not None:
            self._connection.drop()
            self._connection = None
        self._error = error
        self._retry_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return LinkDown(error)
