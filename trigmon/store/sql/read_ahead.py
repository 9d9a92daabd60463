"""Read-ahead cache of a queue's first messages: the next ones in get order, read a few hundred at a time.

It is valid as long as no other process writes the queue's rows: SQLite's file is locked, and PostgreSQL's fence
guarantees it. A window has every available message up to its end. So gets of any message read the database once for
many of them, and never walk over dead rows of messages got before. Only messages outside groups are cached, and few
large ones.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes as g
from trigmon.rules.model import handle_changes as h
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.handles import UnitFacts
from trigmon.rules.model.stored_messages import Cursor, MessageColumns, StoredMessage

MOST_ROWS = 512
MOST_BYTES = 1 << 20
"""Of one window. A read may bring more; the surplus at its end is dropped."""
MOST_WINDOWS = 64
MOST_OF_A_UNIT = 32
MOST_OF_UNITS = 8192
LARGE = 4096
"""Bytes: a unit of work with a larger message is not remembered."""

Key = tuple[int, int]
_Noted = c.AddMessage | c.TakeMessage
Read = Callable[[Cursor | None], tuple[list[StoredMessage], bool]]
"""Reads the next messages behind a place, or from the start; returns them and whether none follow."""


class Entry(NamedTuple):
    """A message by its place in get order."""

    key: Key
    message: StoredMessage


_key = attrgetter("key")


class Window:
    """The first messages of a queue: all up to the place ``end``; ``is_all``: no others follow."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.end: Key | None = None
        self.is_all = False
        self._bytes = 0

    def add(self, message: StoredMessage) -> None:
        """Adds a message that became available."""
        entry = Entry((-message.priority, message.number), message)
        if not self.is_all and (self.end is None or entry.key > self.end):
            return
        insort(self.entries, entry, key=_key)
        self._bytes += len(message.data)
        self.trim()

    def extend(self, messages: list[StoredMessage], *, is_all: bool) -> None:
        """Adds messages read behind the end."""
        self.entries += [Entry((-message.priority, message.number), message) for message in messages]
        self._bytes += sum(len(message.data) for message in messages)
        self.is_all = is_all
        if messages:
            self.end = self.entries[-1].key

    def remove(self, priority: int, number: int) -> None:
        """Removes a message that is no longer available."""
        key, entries = (-priority, number), self.entries
        place = 0
        if not entries or entries[0].key != key:
            place = bisect_left(entries, key, key=_key)
            if place == len(entries) or entries[place].key != key:
                return
        self._bytes -= len(entries.pop(place).message.data)

    def remove_all(self, columns: MessageColumns) -> None:
        """Removes messages that are no longer available; the first ones, in their order, at once."""
        count = len(columns)
        firsts = [entry.message for entry in self.entries[:count]]
        if [each.number for each in firsts] != columns.numbers:
            for priority, number in zip(columns.priorities, columns.numbers, strict=True):
                self.remove(priority, number)
            return
        self._bytes -= sum([len(each.data) for each in firsts])
        del self.entries[:count]

    def trim(self) -> None:
        """Drops the last messages when there are too many."""
        if len(self.entries) <= MOST_ROWS and self._bytes <= MOST_BYTES:
            return
        while len(self.entries) > MOST_ROWS // 2 or (self._bytes > MOST_BYTES // 2 and len(self.entries) > 1):
            self._bytes -= len(self.entries.pop().message.data)
        self.end, self.is_all = self.entries[-1].key, False


class Ahead:
    """The windows of all queues, by name."""

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}
        # The puts and gets of small units of work: then nothing is read again when they end.
        self._units: dict[int, list[_Noted] | None] = {}
        self._noted = 0
        self._is_changed = False
        self._of_call: set[int] = set()

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""
        self._is_changed = False
        self._of_call.clear()

    def undo(self, units: Container[int]) -> None:
        """Undoes the changes followed since; ``units`` are the units of work still open."""
        if self._is_changed:
            self._windows.clear()
        for unit_id in self._of_call:
            self._forget_unit(unit_id)
            if unit_id not in units:
                del self._units[unit_id]

    def first(self, q_name: str) -> StoredMessage | None:
        """Returns a queue's first available message; None where it was not read, or there is none."""
        entries = self._window(q_name).entries if q_name in self._windows else ()
        return entries[0].message if entries else None

    def messages(self, q_name: str, read: Read) -> Iterator[StoredMessage]:
        """Yields a queue's available messages in get order."""
        window = self._window(q_name)
        place = 0
        while True:
            while place < len(window.entries):
                yield window.entries[place].message
                place += 1
            if window.is_all:
                return
            messages, is_all = read(Cursor(-window.end[0], window.end[1]) if window.end else None)
            window.extend(messages, is_all=is_all)

    def _window(self, q_name: str) -> Window:
        """Returns a queue's window, from now on the one that was used last."""
        window = self._windows.pop(q_name, None) or Window()
        window.trim()
        self._windows[q_name] = window
        if len(self._windows) > MOST_WINDOWS:
            del self._windows[next(iter(self._windows))]
        return window

    def forget(self, q_name: str) -> None:
        """Discards the window of a queue."""
        self._windows.pop(q_name, None)

    def forget_all(self) -> None:
        """Discards the windows of all queues."""
        self._windows.clear()

    # -- what changes -------------------------------------------------------------------------------------

    def follow(self, change: c.AnyChange) -> None:
        """Updates the windows after a change."""
        follow = FOLLOWED.get(type(change))
        if follow is not None:
            self._is_changed = True
            follow(self, change)

    def follow_alike_puts(self, puts: Sequence[c.AddMessage]) -> None:
        """Updates the windows as :meth:`follow` does, after puts that are alike."""
        self._is_changed = True
        first = puts[0]
        if first.unit_id and len(puts) > MOST_OF_A_UNIT:
            self._of_call.add(first.unit_id)
            self._forget_unit(first.unit_id)
        elif first.unit_id or first.q_name in self._windows:
            for put in puts:
                self._add(put)

    def _add(self, change: c.AddMessage) -> None:
        if change.unit_id:
            self._note(change.unit_id, change)
        elif change.q_name in self._windows and change.descriptor.group_id == NO_ID:
            self._came(change.message)

    def _take(self, change: c.TakeMessage) -> None:
        self._went(change.message)
        self._note(change.unit_id, change)

    def _carry_over(self, change: c.CarryOver) -> None:
        """Forgets both units: their notes no longer show what their ends make available."""
        number = change.message.number
        had_it = [unit for unit, noted in self._units.items() if any(n.message.number == number for n in noted or ())]
        for unit_id in (*had_it, change.unit_id):
            self._forget_unit(unit_id)

    def _note(self, unit_id: int, change: _Noted) -> None:
        self._of_call.add(unit_id)
        noted = self._units.setdefault(unit_id, [])
        if noted is None:
            return
        data = change.data if isinstance(change, c.AddMessage) else change.message.data
        if len(noted) >= MOST_OF_A_UNIT or self._noted >= MOST_OF_UNITS or len(data) > LARGE:
            self._forget_unit(unit_id)
        else:
            self._noted += 1
            noted.append(change)

    def _forget_unit(self, unit_id: int) -> None:
        """Forgets a unit's puts and gets: at its end the rows are read."""
        self._noted -= len(self._units.get(unit_id) or ())
        self._units[unit_id] = None

    def _remove(self, change: c.RemoveMessage | c.SetAside) -> None:
        self._went(change.message)

    def _reserve(self, change: r.ReserveMessages) -> None:
        window = self._windows.get(change.columns.q_name)
        if window is not None:
            window.remove_all(change.columns)

    def _return(self, change: r.ReturnReserved) -> None:
        for message in change.messages:
            self.forget(message.q_name)

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        self._of_call.add(unit.unit_id)  # if this is undone, later notes are incomplete
        noted = self._units.pop(unit.unit_id, None)
        self._noted -= len(noted or ())
        is_commit = change.outcome is UnitOutcome.COMMITTED
        if noted is None or not _says_all(unit, noted, is_commit=is_commit):
            for q_name, _ in (*unit.puts, *unit.gets):
                self.forget(q_name)
            for held in unit.held:
                self.forget(held.q_name)
            return
        for each in noted:
            if isinstance(each, c.AddMessage) and is_commit:
                self._came(each.message)
            elif isinstance(each, c.TakeMessage) and not is_commit:
                descriptor = each.message.descriptor
                back = replace(descriptor, backout_count=descriptor.backout_count + 1)
                self._came(replace(each.message, descriptor=back))

    def _drop(self, change: c.DropDefinition) -> None:
        self.forget(change.name)

    def _came(self, message: StoredMessage) -> None:
        window = self._windows.get(message.q_name)
        if window is not None:
            window.add(message)

    def _went(self, message: StoredMessage) -> None:
        window = self._windows.get(message.q_name)
        if window is not None:
            window.remove(message.priority, message.number)


def _says_all(unit: UnitFacts, noted: list[_Noted], *, is_commit: bool) -> bool:
    """Returns whether a unit's notes show all that its end makes available."""
    if unit.held or unit.marked is not None or any(each.message.descriptor.group_id != NO_ID for each in noted):
        return False
    puts = {each.number for each in noted if isinstance(each, c.AddMessage)}
    if not is_commit:
        return not puts
    return len(puts) == sum(unit.puts.values()) and not any(
        each.message.number in puts for each in noted if isinstance(each, c.TakeMessage)
    )


FOLLOWED: dict[type[c.AnyChange], Callable[[Ahead, Any], None]] = {
    c.AddMessage: Ahead._add,
    c.TakeMessage: Ahead._take,
    c.CarryOver: Ahead._carry_over,
    c.RemoveMessage: Ahead._remove,
    c.SetAside: Ahead._remove,
    r.ReserveMessages: Ahead._reserve,
    r.ReturnReserved: Ahead._return,
    c.EndUnit: Ahead._end_unit,
    c.DropDefinition: Ahead._drop,
}
UNAFFECTED: frozenset[type[c.AnyChange]] = frozenset(
    {
        c.BeginUnit,
        c.SkipUnit,
        c.NoteRefused,
        c.SetDefinition,
        c.DeleteLogically,
        c.StampTrigger,
        c.WriteRun,
        c.DropRun,
        c.Serve,
        c.Unserve,
        c.SetCause,
        c.SetPause,
        c.DropPause,
        r.SetReservation,
        r.SettleReserved,
        h.OpenHandle,
        h.CloseHandle,
        h.MoveCursor,
        h.LockMessage,
        h.UnlockMessage,
        h.SetPlace,
        h.SaveContext,
        h.KeepPutPlan,
        h.Connect,
        h.DropConnection,
        g.SetGroupDefinition,
        g.DropGroupDefinition,
        g.NoteTriggered,
        g.NoteJudged,
    }
)
"""The changes that make no message available, and none unavailable: locks are looked up with each message."""
