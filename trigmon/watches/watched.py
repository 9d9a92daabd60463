"""A watch as it is defined, a file as it was seen, and the record of a file that is on its way to its message."""

from __future__ import annotations

import os
import posixpath
from base64 import b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

BODY = "body"
CORREL_ID_LENGTH = 24


class WatchDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A watch as DISPLAY answers it. ``done`` and ``failed`` are absolute; ``paused`` is blank where it is not."""

    name: str
    directory: str
    pattern: str = "*"
    quiet_s: int = 5
    q_name: str
    content: str = "reference"
    done: str
    failed: str
    paused: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> WatchDefinition:
        """Returns the watch of a row of DISPLAY. A relative directory is meant from the watched one."""
        directory = row["directory"]
        return cls(
            name=row["name"],
            directory=directory,
            pattern=row["pattern"],
            quiet_s=row["quiet_s"],
            q_name=row["q_name"],
            content=row["content"],
            done=posixpath.join(directory, row["done"] or "done"),
            failed=posixpath.join(directory, row["failed"] or "failed"),
            paused=row.get("paused", ""),
        )


class SeenFile(msgspec.Struct, frozen=True):
    """A regular file as a look at the directory found it. ``name`` is as :func:`os.fsdecode` gives it."""

    name: str
    inode: int
    size: int
    mtime_ns: int

    @property
    def version(self) -> tuple[int, int, int]:
        """What differs when the file was written to, or another one has its name."""
        return self.inode, self.size, self.mtime_ns


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was taken and whose message is not yet put: the message on SYSTEM.TRIGMON.FILES.

    It says all that is needed to go on, whatever became of the watch's definition since. ``name`` and ``done_name``
    are the bytes of names within ``directory`` and ``done``.
    """

    watch: str
    q_name: str
    content: str
    directory: str
    name: bytes
    done: str
    done_name: bytes
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, watch: WatchDefinition, seen: SeenFile, done_name: str) -> FileRecord:
        """Returns the record of a file that is to be moved to ``done_name``."""
        return cls(
            watch=watch.name,
            q_name=watch.q_name,
            content=watch.content,
            directory=watch.directory,
            name=os.fsencode(seen.name),
            done=watch.done,
            done_name=os.fsencode(done_name),
            inode=seen.inode,
            size=seen.size,
            mtime_ns=seen.mtime_ns,
        )

    @property
    def correl_id(self) -> bytes:
        """The correlation id of the record and of the file's message: of this file in this state, and of no other."""
        identity = (self.watch, self.directory, self.name, self.inode, self.size, self.mtime_ns)
        return blake2b(msgspec.msgpack.encode(identity), digest_size=CORREL_ID_LENGTH).digest()

    @property
    def version(self) -> tuple[int, int, int]:
        """As :attr:`SeenFile.version`."""
        return self.inode, self.size, self.mtime_ns

    @property
    def order(self) -> tuple[int, bytes]:
        """The order in which the messages of a watch are put: the oldest file first."""
        return self.mtime_ns, self.name

    @property
    def path(self) -> str:
        """Where the file lies when its message is put."""
        return posixpath.join(self.done, os.fsdecode(self.done_name))


def encode(record: FileRecord) -> bytes:
    """Returns the record as the data of its message."""
    return msgspec.json.encode(record)


def decode(data: bytes) -> FileRecord:
    """Returns the record that a message holds. Raises ValueError for what is none."""
    record = msgspec.json.decode(data, type=FileRecord)
    for name in (record.name, record.done_name):
        if not name or name in (b".", b"..") or b"/" in name or b"\0" in name:
            raise ValueError(f"{name!r} is no name of a file")
    return record


def reference(record: FileRecord, size: int, mtime_ns: int, sha256: str) -> bytes:
    """Returns the message of a watch of CONTENT(REFERENCE), as JSON.

    A path that is not UTF-8 has U+FFFD for what is none, and stands as it is, in base64, in ``path_bytes``.
    """
    path = os.fsencode(record.path)
    text = path.decode("utf-8", "replace")
    fields: dict[str, Any] = {"path": text, "size": size, "mtime": mtime_ns / 1_000_000_000, "sha256": sha256}
    fields |= {"name": record.name.decode("utf-8", "replace"), "watch": record.watch}
    if text.encode() != path:
        fields["path_bytes"] = b64encode(path).decode()
    return msgspec.json.encode(fields)
