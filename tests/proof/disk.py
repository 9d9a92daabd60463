"""A disk in memory: what a process wrote to it, and what a crash leaves of that.

The process sees every write at once. What it has not synced, a power cut may keep, drop or tear, each write by itself
and in any order. Names are the directory's: files made and deleted since it was last synced are there or not. SQLite
on Linux syncs it with the first sync of a new journal or log, and with a deletion where it asks for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

JOURNALS = ("-journal", "-wal")
SECTOR = 512
"""Bytes a disk writes whole or not at all."""


class Op(NamedTuple):
    """What the process did: create, write, truncate (``offset`` is the size), sync, delete (``offset`` 1: synced)."""

    kind: str
    name: str
    offset: int = 0
    data: bytes = b""


class File:
    """A file: as the process sees it, as of its last sync, and what was written since."""

    def __init__(self, data: bytes = b"", lasts: bool = False) -> None:
        self.seen = bytearray(data)
        self.synced = bytearray(data)
        self.pending: list[Op] = []
        self.lasts = lasts


def written(data: bytearray, op: Op) -> None:
    """One write or truncation, done to the bytes of a file."""
    if op.kind == "truncate":
        del data[op.offset :]
        return
    if len(data) < op.offset:
        data.extend(bytes(op.offset - len(data)))
    data[op.offset : op.offset + len(op.data)] = op.data


class Disk:
    """Files by name. ``log`` gets every change, where it is a list; ``fault`` is asked before everything.

    ``fault`` is called with the kind (read, write, truncate, sync, delete, create) and raises to make it fail.
    """

    def __init__(self, files: dict[str, bytes] | None = None, log: list[Op] | None = None) -> None:
        self.files = {name: File(data, lasts=True) for name, data in (files or {}).items()}
        self.deleted: dict[str, File] = {}
        self.log = log
        self.fault: Callable[[str], None] = lambda kind: None
        self.is_dead = False

    def ask(self, kind: str) -> None:
        """Something is about to be done, and may fail."""
        if not self.is_dead:
            self.fault(kind)

    def do(self, op: Op) -> None:
        """Does it; a dead disk (its process was killed) takes nothing."""
        if self.is_dead:
            return
        self.ask(op.kind)
        if self.log is not None:
            self.log.append(op)
        _DO[op.kind](self, op)

    def _create(self, op: Op) -> None:
        self.files[op.name] = File()

    def _write(self, op: Op) -> None:
        file = self.files[op.name]
        written(file.seen, op)
        file.pending.append(op)

    def _sync(self, op: Op) -> None:
        file = self.files[op.name]
        for pending in file.pending:
            written(file.synced, pending)
        file.pending.clear()
        if not file.lasts and op.name.endswith(JOURNALS):
            self._sync_directory()

    def _delete(self, op: Op) -> None:
        file = self.files.pop(op.name)
        if op.offset:
            self._sync_directory()
        elif file.lasts:
            self.deleted[op.name] = file

    def _sync_directory(self) -> None:
        self.deleted.clear()
        for file in self.files.values():
            file.lasts = True


_DO = {
    "create": Disk._create,
    "write": Disk._write,
    "truncate": Disk._write,
    "sync": Disk._sync,
    "delete": Disk._delete,
}
