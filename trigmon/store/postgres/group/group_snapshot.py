"""A member's snapshot of its group, as of its last look; exact during its own turn, since no other member has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from trigmon.mq.attributes import KINDS, AnyDefinition
from trigmon.mq.enums import ObjectType
from trigmon.rules.model.shared_queue import SharedQueue
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.store.port import StoreBroken
from trigmon.store.postgres import group_sql as sql
from trigmon.store.postgres.pipeline import Row
from trigmon.store.undo_notes import UndoNotes

Key = tuple[ObjectType, str]
_OF_GROUPS = "queue of groups"


class GroupSnapshot:
    """Shared queues, copied definitions, locks and deferred work, and the turn's own changes to them.

    ``version`` is the group's, ``next_number`` the number of its next message. ``numbers``: the queues' numbers, also
    of deleted queues; ``with_groups``: the numbers of queues that have, or had, messages of groups. ``deferred``: the
    record of deferred work, as JSON.
    """

    def __init__(self) -> None:
        self.version = 0
        self.next_number = 0
        self.queues: dict[str, SharedQueue] = {}
        self.definitions: dict[Key, AnyDefinition] = {}
        self.locks: dict[int, int] = {}
        self.numbers: dict[str, int] = {}
        self.deferred = "{}"
        self.with_groups: set[int] = set()
        self._locks_version = 0
        self._moved: dict[str, None] = {}
        self._copied: dict[Key, None] = {}
        self._written: dict[str, None] = {}
        self._defined: dict[Key, None] = {}
        self._has_locked = False
        self._has_deferred = False
        self._notes = UndoNotes()

    # -- what others changed ----------------------------------------------------------------------------

    def take(self, rows: Iterable[Row]) -> list[str]:
        """Applies the rows of ``group_sql.LOOK``; returns the queues that changed."""
        moved = []
        for kind, name, number, stands in sorted(rows, key=_turn_first):
            if kind == "turn":
                if (version := int(name)) > self._locks_version:
                    self._locks_version = version
                    self.locks.clear()
                self.next_number, self.version = number, int(stands)
            elif kind == "lock":
                self.locks[number] = int(stands)
            elif kind == "deferred":
                self.deferred = stands
            elif kind in ("queue", _OF_GROUPS):
                self.numbers[name] = number
                if kind == _OF_GROUPS:
                    self.with_groups.add(number)
                self._put(self.queues, name, None if stands is None else _decoded(stands, SharedQueue, name))
                self._moved[name] = None
                moved.append(name)
            else:
                key = ObjectType[kind], name
                definition = None if stands is None else _decoded(stands, KINDS[key[0]], name)
                self._put(self.definitions, key, definition)
                self._copied[key] = None
        return moved

    def _put(self, table: dict[Any, Any], key: object, value: object) -> None:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def changed(self) -> Moved:
        """Returns what changed since the last call of this method, by other members or by the member's own calls."""
        if not self._moved and not self._copied:
            return NOTHING_MOVED
        moved = Moved(tuple(self._moved), tuple(self._copied))
        self._moved.clear()
        self._copied.clear()
        return moved

    # -- what the member changes ------------------------------------------------------------------------

    def write(self, name: str, queue: SharedQueue | None) -> None:
        """Changes a queue; None deletes it."""
        self.set(self.queues, name, queue)
        self._moved[name] = self._written[name] = None

    def define(self, key: Key, definition: AnyDefinition | None) -> None:
        """Changes a copied definition; None deletes it."""
        self.set(self.definitions, key, definition)
        self._copied[key] = self._defined[key] = None

    def lock(self, message: int, handle: int | None) -> None:
        """Records the handle that has locked a message; None: it is unlocked."""
        self.set(self.locks, message, handle)
        self._has_locked = True

    def defer(self, work: str) -> None:
        """Changes the record of deferred work."""
        self.set(vars(self), "deferred", work)
        self._has_deferred = True

    def set(self, table: dict[Any, Any], key: object, value: object) -> None:
        """Sets a key of any table so that the call can be undone; None removes the key."""
        self._notes.set(table, key, value)

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""
        self._notes.clear()

    def undo(self) -> None:
        """Undoes the call. Its objects still count as changed, which costs the other members one more look."""
        self._notes.undo()

    def writes(self) -> list[tuple[str, tuple[object, ...]]]:
        """Returns the statements that write the turn's changes; none if nothing changed."""
        if not (self._written or self._defined or self._has_locked or self._has_deferred):
            return []
        self.version += 1
        if self._has_locked:
            self._locks_version = self.version
        made: list[tuple[str, tuple[object, ...]]] = []
        for name in self._written:
            if (number := self.numbers.get(name)) is not None:
                queue = self.queues.get(name)
                stands = None if queue is None else msgspec.json.encode(queue).decode()
                made.append((sql.SET_QUEUE, (self.version, int(number in self.with_groups), stands, number)))
        for kind, name in self._defined:
            definition = self.definitions.get((kind, name))
            text = None if definition is None else msgspec.json.encode(definition).decode()
            made.append((sql.SET_COPIED, (kind.name, name, self.version, text)))
        if self._has_deferred:
            made.append((sql.SET_DEFERRED, (self.version, self.deferred)))
        made.append((sql.SET_TURN, (self.version, self._locks_version, self.next_number)))
        self._written.clear()
        self._defined.clear()
        self._has_locked = self._has_deferred = False
        return made


def _turn_first(row: Row) -> bool:
    return bool(row[0] != "turn")


def _decoded(text: str, kind: Any, name: str) -> Any:
    try:
        return cast("Any", msgspec.json.decode(text, type=kind))
    except msgspec.MsgspecError as error:
        raise StoreBroken(f"the state of {name} in the group cannot be read: {error}") from error
