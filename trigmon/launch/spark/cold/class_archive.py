"""Class archives (AppCDS, AOT cache): Spark's classes as a Java machine has loaded and verified them.

With an archive a Java machine starts faster. It fits one Java and one class path, jar by jar, so its key is a hash of
both. With another Java or other jars no archive is found, and the job starts without. On Java 17 and 21 it is an AppCDS
archive, on 25 an AOT cache.

===============  ===================================================================================================
``KEY.archive``  the archive, readable for every user: a job may run as another. It is made by a rename
``KEY.json``     how it was made, or why that failed; a failure is not repeated for a day
``lock``         held while an archive is made: one at a time
``making/``      where one is being made
===============  ===================================================================================================

The Java machine itself ignores an archive that does not fit, but a truncated one would end it. So its size is recorded
and compared.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from trigmon.launch.spark.cold import java_command
from trigmon.launch.spark.cold.java import Java

AGAIN_AFTER_S = 86_400
"""Seconds after a failure until the next attempt."""

_SUFFIX = ".archive"
_FORMAT = 1


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The record of an archive. ``failed`` is the reason why there is none ("": there is one); times in milliseconds.

    ``spark_home``, ``java_home``, ``image`` and ``version`` are the Spark and the Java that it fits.
    """

    key: str
    made_ms: int = 0
    took_s: float = 0.0
    size: int = 0
    failed: str = ""
    spark_home: str = ""
    java_home: str = ""
    image: str = ""
    version: int = 0


def key(home: Path, java: Java) -> str:
    """Returns the key of an archive for this Spark and this Java: it changes with any jar and any part of the Java."""
    image = java.executable.resolve().parent.parent
    hashed = hashlib.blake2b(digest_size=12)
    for fact in (_FORMAT, image, java_command.class_path(home, java), java_command.java_options(java)):
        hashed.update(f"{fact}\n".encode())
    parts = [image / "release", image / "lib" / "modules"]
    parts += [image / "lib" / "server" / name for name in ("libjvm.so", "classes.jsa")]  # AppCDS builds on that
    with os.scandir(home / "jars") as jars:  # in the directory's own order, which is the class path's
        parts += [Path(jar.path) for jar in jars]
    for path in parts:
        with suppress(FileNotFoundError):
            status = path.stat()
            hashed.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return hashed.hexdigest()


def using(file: Path, java: Java) -> tuple[str, ...]:
    """Returns the options by which a Java machine uses an archive, without a message where it cannot."""
    return ("-Xlog:cds*=off", f"-XX:SharedArchiveFile={file}") if java.version < 25 else _aot("AOTCache", file)


def making(file: Path, java: Java) -> tuple[str, ...]:
    """Returns the options by which a Java machine writes an archive of its loaded classes at its end."""
    if java.version < 25:
        return ("-Xlog:cds*=off", f"-XX:ArchiveClassesAtExit={file}")
    return _aot("AOTCacheOutput", file)


def _aot(option: str, file: Path) -> tuple[str, ...]:
    return "-Xlog:aot*=off,cds*=off", f"-XX:{option}={file}"


class Archives:
    """The archives in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def file(self, key: str) -> Path:
        """Returns the path of an archive, which need not exist."""
        return self.directory / f"{key}{_SUFFIX}"

    def usable(self, key: str) -> Path | None:
        """Returns the archive of this key; None where there is none, or it is truncated."""
        note = self.note(key)
        try:
            is_whole = note is not None and not note.failed and self.file(key).stat().st_size == note.size
        except OSError:
            return None
        return self.file(key) if is_whole else None

    def is_wanted(self, key: str, now_s: float | None = None) -> bool:
        """Returns whether an archive should be made: there is none, and no attempt has failed lately."""
        note = self.note(key)
        if note is None or not note.failed:
            return self.usable(key) is None
        return (time.time() if now_s is None else now_s) - note.made_ms / 1000 >= AGAIN_AFTER_S

    def note(self, key: str) -> Note | None:
        """Returns the record of an archive; None when there is none, or it cannot be read."""
        try:
            return msgspec.json.decode((self.directory / f"{key}.json").read_bytes(), type=Note)
        except (OSError, msgspec.MsgspecError):
            return None

    def notes(self) -> list[Note]:
        """Returns all records, the newest first."""
        found = (self.note(path.stem) for path in self.directory.glob("*.json"))
        return sorted((note for note in found if note), key=lambda note: -note.made_ms)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Takes the lock for making an archive; yields False, at once, when another process has it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        with (self.directory / "lock").open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True

    def install(self, made: Path, note: Note) -> None:
        """Moves a new archive to its place and then writes its record. Raises OSError."""
        made.chmod(0o644)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(self.file(note.key))
        self.write(note)

    def write(self, note: Note) -> None:
        """Writes a record."""
        beside = self.directory / f".{note.key}.json"
        beside.write_bytes(msgspec.json.encode(note))
        beside.chmod(0o644)
        beside.replace(self.directory / f"{note.key}.json")

    def remove(self, key: str) -> int:
        """Removes an archive, or the record of a failure; returns the bytes freed. A running job can go on using it."""
        freed = 0
        for path in (self.directory / f"{key}.json", self.file(key)):
            with suppress(FileNotFoundError):
                freed += path.stat().st_size
                path.unlink()
        return freed

    def remove_stale(self) -> list[str]:
        """Removes archives that fit no Java or Spark any more; returns their keys."""
        stale = [note.key for note in self.notes() if not _is_up_to_date(note)]
        for gone in stale:
            self.remove(gone)
        return stale


def _is_up_to_date(note: Note) -> bool:
    java = Java(Path(note.java_home), note.version, "", Path(note.image))
    try:
        return key(Path(note.spark_home), java) == note.key
    except OSError:
        return False
