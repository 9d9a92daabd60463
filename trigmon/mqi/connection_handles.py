"""Connection handles of the MQI: which connection one is, which objects are open on it, and which thread may use it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count

from trigmon.client.connection import Connection, hand_over
from trigmon.mq.reasons import Reason
from trigmon.mqi.layout import Values
from trigmon.mqi.mqi_numbers import ConnectOption, MqiError, MqiReason, ObjectKind
from trigmon.mqi.properties import MessageHandle

UNUSABLE = -1
"""``MQHC_UNUSABLE_HCONN``, ``MQHO_UNUSABLE_HOBJ`` and ``MQHM_UNUSABLE_HMSG``."""
MOST_TOKENS = 4096
UNASSOCIATED = -3
"""``MQHC_UNASSOCIATED_HCONN``: of a message handle that belongs to no connection."""


class OpenObject:
    """What MQOPEN opened: its handle at the queue manager, the name that the program gave and what that led to."""

    def __init__(self, handle: int, kind: ObjectKind, name: str, resolved: str) -> None:
        self.handle = handle
        self.kind = kind
        self.name = name
        self.resolved = resolved


class AsyncPuts:
    """What became of puts with MQPMO_ASYNC_RESPONSE since the last MQSTAT: MQSTS's counts, and the first that failed.

    ``unit_failed`` says that one of the unit of work failed: that unit is backed out where it would be committed.
    """

    def __init__(self) -> None:
        self.succeeded = self.warned = self.failed = 0
        self.comp_code = self.reason = 0
        self.q_name = ""
        self.unit_failed = False

    def count(self, comp_code: int, reason: int, q_name: str, *, in_unit: bool) -> None:
        """Counts a put by how it ended."""
        self.succeeded += comp_code == 0
        self.warned += comp_code == 1
        self.failed += comp_code > 1
        self.unit_failed |= in_unit and comp_code > 1
        if comp_code > self.comp_code:
            self.comp_code, self.reason, self.q_name = comp_code, reason, q_name

    def result(self, q_mgr_name: str) -> Values:
        """Returns the fields of an MQSTS, and begins to count anew; the fate of the unit of work stays."""
        fields: Values = {
            "CompCode": self.comp_code,
            "Reason": self.reason,
            "PutSuccessCount": self.succeeded,
            "PutWarningCount": self.warned,
            "PutFailureCount": self.failed,
        }
        if self.q_name:
            name, of = self.q_name.encode(), q_mgr_name.encode()
            fields |= {"ObjectName": name, "ObjectQMgrName": of, "ResolvedObjectName": name, "ResolvedQMgrName": of}
        self.succeeded = self.warned = self.failed = self.comp_code = self.reason = 0
        self.q_name = ""
        return fields


class Session:
    """A connection of the MQI. ``share`` is how its handle may be shared by threads (MQCNO_HANDLE_SHARE_*).

    ``consumer_thread`` is the thread that calls callbacks, 0 while none does: then no other may make calls, unless it
    ``is_idle``: suspended, with no callback under way.
    """

    def __init__(self, number: int, connection: Connection, share: int) -> None:
        self.number = number
        self.connection = connection
        self.objects: dict[int, OpenObject] = {}
        self.async_puts = AsyncPuts()
        self.consumer_thread = 0
        self.is_idle = False
        self._closing_thread = 0
        self._tokens: dict[bytes, tuple[bytes, bytes]] = {}
        self._token_numbers = count(1)
        self._share = share
        self._owner = threading.get_ident()
        self._lock = threading.RLock()
        self._numbers = count(1)

    @property
    def is_held(self) -> bool:
        """Whether the callbacks have the connection."""
        return bool(self.consumer_thread) and not self.is_idle

    def check_thread(self) -> None:
        """Raises MqiError (2018) where the handle is another thread's, or another thread ends the connection."""
        here = threading.get_ident()
        if here == self.consumer_thread:
            return
        shares = self._share & (ConnectOption.HANDLE_SHARE_BLOCK | ConnectOption.HANDLE_SHARE_NO_BLOCK)
        if here != self._owner and not shares:
            raise MqiError(MqiReason.HCONN_ERROR, "this handle is of one thread: connect with MQCNO_HANDLE_SHARE_BLOCK")
        if self._closing_thread not in (0, here):
            raise MqiError(MqiReason.HCONN_ERROR, "another thread has disconnected")

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Holds the connection for one call; another thread's is waited for. Raises MqiError: 2018, 2219, 2500."""
        here = threading.get_ident()
        self._check_free(here)
        # The library's own thread always waits, and so does the end: what they meet is a short call.
        waits = here in (self.consumer_thread, self._closing_thread)
        if not self._lock.acquire(blocking=waits or not self._share & ConnectOption.HANDLE_SHARE_NO_BLOCK):
            raise MqiError(MqiReason.CALL_IN_PROGRESS, "another thread's call is in progress")
        try:
            self._check_free(here)  # what it waited for may have started the callbacks, or begun to disconnect
            yield
        finally:
            self._lock.release()

    @contextmanager
    def used(self) -> Iterator[Connection]:
        """Lets this thread make calls; another one's call waits. Raises MqiError: 2018, 2219, 2500."""
        with self.turn():
            hand_over(self.connection)
            yield self.connection

    def close_to_others(self, *, closes: bool = True) -> None:
        """Lets no other thread in any more, behind a call that is in progress, or lets them in again.

        Raises MqiError: 2018, 2219.
        """
        self.check_thread()
        with nullcontext() if self.is_held or not closes else self.turn():
            self.check_thread()
            self._closing_thread = threading.get_ident() if closes else 0

    def _check_free(self, here: int) -> None:
        self.check_thread()
        if self.is_held and here != self.consumer_thread:
            raise MqiError(MqiReason.HCONN_ASYNC_ACTIVE, "a callback may use this connection, nobody else")

    def token_for(self, msg_id: bytes, correl_id: bytes) -> bytes:
        """Returns a token for a message that was got, by which this connection finds it again; the last 4096 count."""
        token = bytes.fromhex(self.connection.client_id[:16]) + next(self._token_numbers).to_bytes(8, "little")
        self._tokens[token] = (msg_id, correl_id)
        if len(self._tokens) > MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        return token

    def ids_of(self, token: bytes) -> tuple[bytes, bytes] | None:
        """Returns message and correlation id of a token's message; None for a token that is not known any more."""
        return self._tokens.get(token)

    def opened(self, hobj: int) -> OpenObject:
        """Returns an open object. Raises MqiError (2019)."""
        found = self.objects.get(hobj)
        if found is None:
            raise MqiError(MqiReason.HOBJ_ERROR, f"object handle {hobj}")
        return found

    def add(self, opened: OpenObject) -> int:
        """Returns the object handle of what was opened."""
        number = next(self._numbers)
        self.objects[number] = opened
        return number


class Sessions:
    """The connection handles and the message handles of a process."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._messages: dict[int, tuple[int, MessageHandle]] = {}
        self._numbers = count(1)

    def begin(self, connection: Connection, share: int) -> Session:
        """Gives a connection its handle."""
        session = Session(next(self._numbers), connection, share)
        self._sessions[session.number] = session
        return session

    def of(self, hconn: int) -> Session:
        """Returns the connection of a handle. Raises MqiError (2018)."""
        found = self._sessions.get(hconn)
        if found is None:
            raise MqiError(Reason.HCONN_ERROR, f"connection handle {hconn}")
        return found

    def end(self, session: Session) -> None:
        """Forgets a connection, and the message handles that belong to it."""
        self._sessions.pop(session.number, None)
        self._messages = {number: kept for number, kept in self._messages.items() if kept[0] != session.number}

    def create_message(self, hconn: int) -> int:
        """Makes a message handle of a connection, or of none. Raises MqiError (2018)."""
        if hconn not in (0, UNASSOCIATED):
            self.of(hconn)
        number = next(self._numbers)
        self._messages[number] = (hconn, MessageHandle())
        return number

    def message(self, hmsg: int) -> MessageHandle:
        """Returns what a message handle is of. Raises MqiError (2460)."""
        found = self._messages.get(hmsg)
        if found is None:
            raise MqiError(MqiReason.HMSG_ERROR, f"message handle {hmsg}")
        return found[1]

    def delete_message(self, hmsg: int) -> None:
        """Deletes a message handle. Raises MqiError (2460)."""
        self.message(hmsg)
        del self._messages[hmsg]


SESSIONS = Sessions()
