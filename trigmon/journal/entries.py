"""The entries of a record: the changes of a turn that a store writes to rows, by the name of the change.

An entry has what the rows need and no more: of a message that is got its number, of a unit of work what ends with it.
So applying the entries of a turn to the rows before it gives the rows behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import KINDS, AnyDefinition
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.mq.run import Run, decode_run, encode_run
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.handles import Decided, HeldTrigger, Marked, UnitFacts
from trigmon.rules.model.stored_messages import (
    MessageColumns,
    StoredMessage,
    Stretch,
    columns_of,
    numbers_in,
    stretches,
)

_OUTSIDE_GROUPS = MessageDescriptor()
_ENTRY_SIZE = 200
"""Bytes of an entry without its message's content, about."""
_encode_into = msgspec.msgpack.Encoder().encode_into
_decode = msgspec.msgpack.decode


class SetMeta(msgspec.Struct, frozen=True):
    """A value of the store's own, such as the state of the clock, is written; no decision makes this change."""

    key: str
    value: str


class RecoverStore(msgspec.Struct, frozen=True):
    """A start of this queue manager at this time recovers the rows: what was in flight, or need not last, ends.

    ``decided``: units of work that are committed all the same. No decision makes this change.
    """

    q_mgr_name: str
    now: int
    decided: tuple[Decided, ...]


JournalChange = c.AnyChange | SetMeta | RecoverStore


class UnknownEntryError(Exception):
    """A record holds something that this version does not know; the text names it."""


class _Form(NamedTuple):
    """How a kind of change is written: ``values`` is what is encoded, ``type`` what it is decoded as."""

    values: Callable[[Any], object]
    type: Any
    change: Callable[..., JournalChange]


Ref = tuple[int, str, int, MessageDescriptor | None]
"""A message that has a row: its number, its queue, its priority, and its descriptor if it is of a group."""


def _ref(message: StoredMessage) -> Ref:
    descriptor = message.descriptor
    return message.number, message.q_name, message.priority, None if descriptor.group_id == NO_ID else descriptor


def _message(ref: Ref) -> StoredMessage:
    number, q_name, priority, descriptor = ref
    return StoredMessage(number, q_name, priority, True, descriptor or _OUTSIDE_GROUPS, b"")


_Stretches = list[Stretch]
_Reserved = tuple[int, int, str, _Stretches, list[tuple[Ref, int]]]


def _reserved(change: r.ReserveMessages) -> _Reserved:
    """Returns what is reserved, simple messages as ranges of their numbers, all others one by one with their expiry."""
    columns = change.columns
    parts = [] if change.messages else list(stretches(columns.numbers))
    refs = [(_ref(each), each.expires_ms) for each in change.messages]
    return change.reservation, change.first, columns.q_name, parts, refs


def _reserve(
    reservation: int, first: int, q_name: str, parts: _Stretches, refs: list[tuple[Ref, int]]
) -> r.ReserveMessages:
    messages = tuple(replace(_message(ref), expires_ms=ms) for ref, ms in refs)
    columns = columns_of(q_name, messages) if messages else MessageColumns(q_name, list(numbers_in(parts)))
    return r.ReserveMessages(reservation, columns, first, messages)


def _stretches(messages: Sequence[StoredMessage]) -> _Stretches:
    return list(stretches([each.number for each in messages]))


def _numbered(q_name: str, parts: _Stretches) -> tuple[StoredMessage, ...]:
    """Returns messages of which nothing matters but their numbers."""
    return tuple(StoredMessage(number, q_name, 0, True, _OUTSIDE_GROUPS, b"") for number in numbers_in(parts))


def _plain(kind: type[JournalChange]) -> _Form:
    """Returns the form of a change that is written as it is."""
    return _Form(lambda change: (change,), tuple[kind], lambda change: change)  # type: ignore[valid-type]


_Added = tuple[str, int, int, bool, MessageDescriptor, bytes, int, int, bool, bool]


def _added(change: c.AddMessage, unit_id: int) -> _Added:
    return (
        change.q_name,
        change.number,
        change.priority,
        change.is_persistent,
        change.descriptor,
        change.data,
        change.expires_ms,
        unit_id,
        change.is_held,
        change.on_backout,
    )


_Counts = list[tuple[str, int, int]]
_Ended = tuple[int, int, str, _Counts, _Counts, list[tuple[str, bool]], UnitOutcome, int, bool]


def _ended(change: c.EndUnit) -> _Ended:
    unit = change.unit
    puts, gets = ([(*key, count) for key, count in of.items()] for of in (unit.puts, unit.gets))
    held = [(held.q_name, held.on_backout) for held in unit.held]
    number, client_id = unit.number, unit.client_id
    return unit.unit_id, number, client_id, puts, gets, held, change.outcome, change.now, change.is_decided


def _end(
    unit_id: int,
    number: int,
    client_id: str,
    puts: _Counts,
    gets: _Counts,
    held: list[tuple[str, bool]],
    outcome: UnitOutcome,
    now: int,
    is_decided: bool,
) -> c.EndUnit:
    unit = UnitFacts(
        unit_id,
        number,
        0,
        client_id,
        puts={(q_name, priority): count for q_name, priority, count in puts},
        gets={(q_name, priority): count for q_name, priority, count in gets},
        held=tuple(HeldTrigger(q_name, 0, None, on_backout) for q_name, on_backout in held),
    )
    return c.EndUnit(unit, outcome, now, is_decided=is_decided)


def _definition(object_type: ObjectType, text: bytes) -> c.SetDefinition:
    definition = cast("AnyDefinition", msgspec.json.decode(text, type=KINDS[object_type]))
    return c.SetDefinition(object_type, definition)


def _run(change: c.WriteRun) -> tuple[str, str, int, str | None]:
    before = change.before
    held = encode_run(before) if before is not None and before.is_held else None
    return change.run_id, encode_run(change.run), change.ended_ms, held


def _write_run(run_id: str, run: str, ended_ms: int, before: str | None) -> c.WriteRun:
    held: Run | None = None if before is None else decode_run(before)
    return c.WriteRun(run_id, decode_run(run), ended_ms, before=held)


FORMS: dict[type[JournalChange], _Form] = {
    c.AddMessage: _Form(lambda change: _added(change, change.unit_id), _Added, lambda *values: c.AddMessage(*values)),
    c.TakeMessage: _Form(
        lambda change: (_ref(change.message), change.unit_id),
        tuple[Ref, int],
        lambda ref, unit_id: c.TakeMessage(_message(ref), unit_id),
    ),
    c.RemoveMessage: _Form(
        lambda change: (_ref(change.message),), tuple[Ref], lambda ref: c.RemoveMessage(_message(ref))
    ),
    c.SetAside: _Form(lambda change: (_ref(change.message),), tuple[Ref], lambda ref: c.SetAside(_message(ref))),
    c.BeginUnit: _Form(
        lambda change: (change.unit_id, change.number, change.client_id, change.now),
        tuple[int, int, str, int],
        lambda *values: c.BeginUnit(0, *values),
    ),
    c.CarryOver: _Form(
        lambda change: (change.message.number, change.message.q_name, change.unit_id),
        tuple[int, str, int],
        lambda number, q_name, unit_id: c.CarryOver(Marked(number, q_name, 0, True, False), unit_id),
    ),
    c.SkipUnit: _Form(
        lambda change: (change.number, change.client_id, change.outcome, change.now),
        tuple[int, str, UnitOutcome, int],
        lambda *values: c.SkipUnit(0, *values),
    ),
    c.EndUnit: _Form(_ended, _Ended, _end),
    c.SetDefinition: _Form(
        lambda change: (change.object_type, msgspec.json.encode(change.definition)),
        tuple[ObjectType, bytes],
        _definition,
    ),
    c.DropDefinition: _plain(c.DropDefinition),
    c.DeleteLogically: _plain(c.DeleteLogically),
    c.WriteRun: _Form(_run, tuple[str, str, int, str | None], _write_run),
    c.DropRun: _plain(c.DropRun),
    c.Serve: _plain(c.Serve),
    c.Unserve: _plain(c.Unserve),
    c.SetCause: _plain(c.SetCause),
    c.SetPause: _plain(c.SetPause),
    c.DropPause: _plain(c.DropPause),
    r.ReserveMessages: _Form(
        _reserved,
        _Reserved,
        _reserve,
    ),
    r.SetReservation: _plain(r.SetReservation),
    r.SettleReserved: _Form(
        lambda change: (change.q_name, change.stretches),
        tuple[str, tuple[Stretch, ...]],
        r.SettleReserved,
    ),
    r.ReturnReserved: _Form(
        lambda change: (change.messages[0].q_name, _stretches(change.messages), change.adds),
        tuple[str, _Stretches, int],
        lambda q_name, parts, adds: r.ReturnReserved(_numbered(q_name, parts), adds),
    ),
    SetMeta: _plain(SetMeta),
    RecoverStore: _plain(RecoverStore),
}
"""The closed list: each change that a store writes to rows."""
_NAMES = {kind: kind.__name__ for kind in FORMS}
_ADDED = _NAMES[c.AddMessage]
_BY_NAME = {kind.__name__: form for kind, form in FORMS.items()}


class Entries:
    """The entries of the turn so far. They are encoded when the record is written: a turn may do without one."""

    def __init__(self) -> None:
        self._changes: list[tuple[JournalChange, int]] = []
        self._content = 0

    def __bool__(self) -> bool:
        return bool(self._changes)

    @property
    def size(self) -> int:
        """Returns about how many bytes they will have."""
        return _ENTRY_SIZE * len(self._changes) + self._content

    @property
    def place(self) -> tuple[int, int]:
        """Returns where the next entry begins, for :meth:`cut`."""
        return len(self._changes), self._content

    def add(self, change: JournalChange) -> None:
        """Adds a change."""
        if type(change) is c.AddMessage:
            self._changes.append((change, change.unit_id))
            self._content += len(change.data)
        else:
            self._changes.append((change, 0))

    def add_committed(self, puts: Sequence[c.AddMessage]) -> None:
        """Adds puts as committed messages, whether they are of a unit of work or not."""
        self._changes += [(put, 0) for put in puts]
        self._content += sum([len(put.data) for put in puts])

    def cut(self, place: tuple[int, int]) -> None:
        """Removes the entries from this place on: their changes were undone."""
        count, self._content = place
        del self._changes[count:]

    def encoded(self) -> bytes:
        """Returns all of them, as a record holds them."""
        buffer = bytearray()
        self.encode_into(buffer, 0)
        return bytes(buffer)

    def encode_into(self, buffer: bytearray, place: int) -> None:
        """Writes all of them as :meth:`encoded` has them into a buffer, which ends behind them."""
        entries = [
            (_ADDED, _added(change, unit_id))
            if type(change) is c.AddMessage
            else (_NAMES[type(change)], FORMS[type(change)].values(change))
            for change, unit_id in self._changes
        ]
        _encode_into(entries, buffer, place)

    def clear(self) -> None:
        """Begins anew."""
        self.cut((0, 0))


def changes_in(entries: bytes) -> Iterator[JournalChange]:
    """Yields the changes of a record. Raises UnknownEntryError."""
    try:
        for name, values in _decode(entries, type=list[tuple[str, msgspec.Raw]]):
            form = _BY_NAME[name]
            yield form.change(*cast("tuple[Any, ...]", _decode(values, type=form.type)))
    except (KeyError, msgspec.MsgspecError) as error:
        raise UnknownEntryError(f"the journal holds what this trigmon does not know ({error})") from error
