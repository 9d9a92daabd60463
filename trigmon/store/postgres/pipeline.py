"""A PostgreSQL session in pipeline mode: statements wait until a result is needed, and go in one round trip.

It uses libpq's pipeline mode directly: cursors cost more than the statements they run, and a turn is many small
statements.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from trigmon.store.port import Fenced, Lost
from trigmon.store.postgres.socket_wait import wait

FENCED = "TM001"
"""The SQLSTATE of the schema's function ``fence``."""
_TEXT, _BINARY = 0, 1
_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
Row = tuple[Any, ...]


class Failed(Lost):
    """A statement failed or the session is lost; ``state`` is the SQLSTATE, empty if the session is lost."""

    def __init__(self, why: str, state: str = "") -> None:
        super().__init__(why)
        self.state = state


class Array(NamedTuple):
    """A parameter of many values of one type: int8, bytea or text."""

    element: str
    values: Sequence[object]


class Link:
    """A session in pipeline mode. It owns ``connection``. Where it waits: :mod:`trigmon.store.postgres.socket_wait`.

    ``awaited``: the statements whose results it waits for; to be read meanwhile.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 1  # libpq never waits
        self._pg.notice_handler = self._noticed
        self._pg.enter_pipeline_mode()
        self._names: dict[str, bytes] = {}
        self._readers: dict[str, list[Callable[[bytes], Any]]] = {}
        self._sent: list[str] = []
        self._warning = ""
        self.awaited: Sequence[str] = ()
        self.trips = 0

    def send(self, statement: str, values: Sequence[object] = ()) -> None:
        """Queues a statement for the next :meth:`receive`; its parameters are marked by ``?``."""
        try:
            name = self._names.get(statement)
            if name is None:
                name = self._names[statement] = b"s%d" % len(self._names)
                self._pg.send_prepare(name, _numbered(statement).encode())
                self._sent.append("")
            encoded = [_ENCODERS[type(value)](value) for value in values]
            formats = [_BINARY if type(value) in _BINARIES else _TEXT for value in values]
            self._pg.send_query_prepared(name, encoded, formats, _BINARY)
        except psycopg.Error as error:
            raise Failed(str(error)) from error
        self._sent.append(statement)

    def receive(self) -> list[Row]:
        """Waits until all statements sent are done; returns the rows of the last. Raises Failed, Fenced."""
        self.trips += 1
        sent, self._sent, self._warning = self._sent, [], ""
        self.awaited = sent
        rows: list[Row] = []
        failure: Failed | Fenced | None = None
        try:
            self._pg.pipeline_sync()
            while self._pg.flush():
                wait(self._pg.socket, writes=True)
                self._pg.consume_input()
            for number, statement in enumerate(sent, 1):
                while (result := self._result()) is not None:
                    if result.status not in _DONE:
                        failure = failure or _failure(result)
                    elif statement and number == len(sent):
                        rows = self._read(statement, result)
            if (end := self._result()) is None or end.status != ExecStatus.PIPELINE_SYNC:
                failure = failure or Failed("the session is lost: " + self._pg.get_error_message())
        except psycopg.Error as error:
            raise failure or Failed(str(error)) from error
        finally:
            self.awaited = ()
        if failure is not None:
            raise failure
        return rows

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Sends a statement behind the earlier ones and returns its rows."""
        self.send(statement, values)
        return self.receive()

    def commit(self, then: str = "") -> None:
        """Commits the transaction, as durably as its settings demand. Raises Failed also if the outcome is unknown.

        ``then`` is a statement after the commit, in the same round trip.
        """
        self.send("COMMIT")
        if then:
            self.send(then)
        self.receive()
        if self._warning:
            # The wait for the standby was interrupted: the commit is on this server, and perhaps on no other.
            raise Failed(f"the commit was not confirmed: {self._warning}")

    def fileno(self) -> int:
        """Returns the session's socket."""
        return self._pg.socket

    def was_notified(self) -> bool:
        """Returns whether another session sent a NOTIFY since the last call. Raises Failed if the session is lost."""
        found = False
        try:
            self._pg.consume_input()
            while (notification := self._pg.notifies()) is not None:
                found = found or notification.be_pid != self._pg.backend_pid
        except psycopg.Error as error:
            raise Failed(str(error)) from error
        return found

    def close(self) -> None:
        """Ends the session at once; an open transaction is rolled back."""
        self._connection.close()

    def _result(self) -> PGresult | None:
        while self._pg.is_busy():
            wait(self._pg.socket)
            self._pg.consume_input()
        return self._pg.get_result()

    def _read(self, statement: str, result: PGresult) -> list[Row]:
        readers = self._readers.get(statement)
        if readers is None:
            readers = [_READERS[result.ftype(column)] for column in range(result.nfields)]
            self._readers[statement] = readers
        value = result.get_value
        columns = list(enumerate(readers))
        return [
            tuple(None if (found := value(row, column)) is None else read(found) for column, read in columns)
            for row in range(result.ntuples)
        ]

    def _noticed(self, notice: PGresult) -> None:
        if (notice.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) or b"") == b"WARNING":
            self._warning = (notice.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")


def _failure(result: PGresult) -> Failed | Fenced | None:
    if result.status == ExecStatus.PIPELINE_ABORTED:
        return None  # an earlier statement has the cause
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    why = result.get_error_message()
    return Fenced(why) if state == FENCED else Failed(f"{why} ({state})", state)


def _numbered(statement: str) -> str:
    """Returns a statement in PostgreSQL's dialect: with numbered parameters and without index hints."""
    numbers = iter(range(1, 1000))
    return re.sub(r"\?", lambda _: f"${next(numbers)}", re.sub(r"INDEXED BY \w+", "", statement))


def _text(value: str) -> bytes:
    """Returns encoded text. PostgreSQL's text has no NUL, so it is replaced; no real name has one."""
    return value.replace("\0", "\u2400").encode()


_ELEMENTS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "int8": (20, struct.Struct("!q").pack),
    "bytea": (17, bytes),
    "text": (25, _text),
}


def _array(array: Array) -> bytes:
    """Returns PostgreSQL's binary form of a one-dimensional array."""
    oid, encode = _ELEMENTS[array.element]
    parts = [struct.pack("!iiiii", 1, None in array.values, oid, len(array.values), 1)]
    for value in array.values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            encoded = encode(value)
            parts += (len(encoded).to_bytes(4, "big"), encoded)
    return b"".join(parts)


def _same(value: bytes | None) -> bytes | None:
    return value


class _Encoders(dict[type, Callable[[Any], bytes | None]]):
    """The functions that encode values, by type; a subclass, such as an enumeration, is encoded as its base."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes | None]:
        for base in kind.__mro__:
            if base in self:
                self[kind] = self[base]
                return self[base]
        raise TypeError(f"a {kind.__name__} is no value of a row")


_ENCODERS = _Encoders({bytes: _same, type(None): _same, int: b"%d".__mod__, str: _text, Array: _array})
_BINARIES = frozenset({bytes, Array})


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


_READERS: dict[int, Callable[[bytes], Any]] = {
    16: lambda value: value == b"\1",
    17: bytes,
    20: _integer,
    21: _integer,
    23: _integer,
    25: bytes.decode,
    2278: lambda _: None,
}
"""By type OID of PostgreSQL: bool, bytea, int8, int2, int4, text, void."""
