"""One session of PostgreSQL, spoken to in batches: what is sent waits until something is asked, and goes in one trip.

It speaks libpq's pipeline mode: cursors cost more than the statements they run, and a turn is many small statements.
"""

from __future__ import annotations

import re
import select
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from trigmon.store.port import Fenced, Lost

FENCED = "TM001"
"""The SQLSTATE of the schema's function ``fence``."""
_TEXT, _BINARY = 0, 1
_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
Row = tuple[Any, ...]


class Failed(Lost):
    """A statement was refused or the session is lost; ``state`` is the SQLSTATE, empty for the latter."""

    def __init__(self, why: str, state: str = "") -> None:
        super().__init__(why)
        self.state = state


class Array(NamedTuple):
    """A parameter of many values of one type: int8, bytea or text."""

    element: str
    values: Sequence[object]


class Link:
    """A session from its first statement to its last. ``connection`` is of nobody else any more.

    ``awaited`` are the statements whose answer it waits for; another thread may look at them.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 0  # libpq waits, and reads while it cannot write
        self._pg.notice_handler = self._noticed
        self._pg.enter_pipeline_mode()
        self._readable = select.poll()
        self._readable.register(self._pg.socket, select.POLLIN)
        self._names: dict[str, bytes] = {}
        self._readers: dict[str, list[Callable[[bytes], Any]]] = {}
        self._sent: list[str] = []
        self._warning = ""
        self.awaited: Sequence[str] = ()
        self.trips = 0

    def send(self, statement: str, values: Sequence[object] = ()) -> None:
        """Lets a statement go with the next :meth:`receive`; its parameters are marked by ``?``."""
        try:
            name = self._names.get(statement)
            if name is None:
                name = self._names[statement] = b"s%d" % len(self._names)
                self._pg.send_prepare(name, _numbered(statement).encode())
                self._sent.append("")
            encoded = [_encoded(value) for value in values]
            formats = [_BINARY if isinstance(value, bytes | Array) else _TEXT for value in values]
            self._pg.send_query_prepared(name, encoded, formats, _BINARY)
        except psycopg.Error as error:
            raise Failed(str(error)) from error
        self._sent.append(statement)

    def receive(self) -> list[Row]:
        """Waits until all that was sent is done; the rows of the last. Raises Failed, Fenced."""
        self.trips += 1
        sent, self._sent, self._warning = self._sent, [], ""
        self.awaited = sent
        rows: list[Row] = []
        failure: Failed | Fenced | None = None
        try:
            self._pg.pipeline_sync()
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
        """The rows of a statement, behind all that was sent."""
        self.send(statement, values)
        return self.receive()

    def commit(self, then: str = "") -> None:
        """Ends the transaction, durably as its settings say. Raises Failed also where that is not known.

        ``then`` is a statement behind its end, in the same trip.
        """
        self.send("COMMIT")
        if then:
            self.send(then)
        self.receive()
        if self._warning:
            # A wait for the standby that was broken off: it is committed here, and may be so nowhere else.
            raise Failed(f"the commit was not confirmed: {self._warning}")

    def fileno(self) -> int:
        """The session's socket."""
        return self._pg.socket

    def was_notified(self) -> bool:
        """Whether another session has notified this one since this was asked. Raises Failed where it is lost."""
        found = False
        try:
            self._pg.consume_input()
            while (told := self._pg.notifies()) is not None:
                found = found or told.be_pid != self._pg.backend_pid
        except psycopg.Error as error:
            raise Failed(str(error)) from error
        return found

    def close(self) -> None:
        """Ends the session at once; a transaction that is open is undone."""
        self._connection.close()

    def _result(self) -> PGresult | None:
        """The next result. libpq would wait without letting other threads run."""
        while self._pg.is_busy():
            self._readable.poll()
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
        return None  # what failed before it says why
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    why = result.get_error_message()
    return Fenced(why) if state == FENCED else Failed(f"{why} ({state})", state)


def _numbered(statement: str) -> str:
    """PostgreSQL's own words: its parameters have numbers, and which index it takes is its own choice."""
    numbers = iter(range(1, 1000))
    return re.sub(r"\?", lambda _: f"${next(numbers)}", re.sub(r"INDEXED BY \w+", "", statement))


def _encoded(value: object) -> bytes | None:
    if isinstance(value, bytes) or value is None:
        return value
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Array):
        return _array(value)
    raise TypeError(f"a {type(value).__name__} is no value of a row")


def _text(value: str) -> bytes:
    """Text in PostgreSQL holds no NUL; no name that anybody means holds one either."""
    return value.replace("\0", "\u2400").encode()


_ELEMENTS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "int8": (20, struct.Struct("!q").pack),
    "bytea": (17, bytes),
    "text": (25, _text),
}


def _array(array: Array) -> bytes:
    """PostgreSQL's binary form of an array of one dimension."""
    oid, encode = _ELEMENTS[array.element]
    parts = [struct.pack("!iiiii", 1, None in array.values, oid, len(array.values), 1)]
    for value in array.values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            encoded = encode(value)
            parts += (len(encoded).to_bytes(4, "big"), encoded)
    return b"".join(parts)


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
"""By PostgreSQL's numbers of types: bool, bytea, int8, int2, int4, text, void."""
