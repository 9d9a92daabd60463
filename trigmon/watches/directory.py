"""What a watch does with files: it looks, takes, moves and reads. Each function may wait as long as a file system does.

Names are looked up in opened directories, and no symbolic link is followed below the watched one: who may write there
chooses no place elsewhere. Every function raises OSError where a directory cannot be used.
"""

from __future__ import annotations

import ctypes
import errno
import fnmatch
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from itertools import groupby

import msgspec

from trigmon.watches.watched import BODY, FileRecord, SeenFile, WatchDefinition, reference

MOST_BYTES = 16 << 20
"""So many bytes of files go into one unit of work, but for a file that is larger alone."""
_LONGEST_NAME = 255
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_RENAME_NOREPLACE = 1
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class Taken(msgspec.Struct):
    """What became of the first ``count`` files: those to be recorded, those left there, those moved to ``failed``.

    The last two have the reason by name.
    """

    count: int = 0
    records: list[FileRecord] = []
    left: dict[str, str] = {}
    failed: dict[str, str] = {}


class Settled(msgspec.Struct):
    """What became of a recorded file.

    ``data`` is its message, None where it has none: the file has gone, or has stayed where it was and is taken anew.
    ``stays``: it cannot be read now, and its record stays; ``is_alone``: no other file is hindered by what hinders it.
    """

    record: FileRecord
    data: bytes | None = None
    problem: str = ""
    stays: bool = False
    is_alone: bool = False


def look(watch: WatchDefinition) -> list[SeenFile]:
    """Returns the regular files that match. As in a shell, ``*`` and ``?`` match no dot at the beginning of a name."""
    matches = re.compile(fnmatch.translate(watch.pattern)).match
    takes_hidden = watch.pattern.startswith(".")
    found = []
    with _opened(watch.directory) as here, os.scandir(here) as entries:
        for entry in entries:
            name = entry.name
            if not matches(name) or (name.startswith(".") and not takes_hidden):
                continue
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append(SeenFile(name, status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def count(directory: str) -> int:
    """Returns how many files lie in a directory, 0 where there is none."""
    with suppress(OSError), _opened(directory) as here, os.scandir(here) as entries:
        return sum(1 for entry in entries if entry.is_file(follow_symlinks=False))
    return 0


def take(watch: WatchDefinition, files: Iterable[SeenFile], longest: int) -> Taken:
    """Returns the records of the first files that can be taken, as many as there is room for in a unit of work.

    ``longest`` is the most bytes of a message: a file whose content is longer is moved to ``failed``.
    """
    taken, size = Taken(), 0
    with _opened(watch.directory) as here, _destination(here, watch.directory, watch.done, make=True) as done:
        if os.fstat(here).st_dev != os.fstat(done).st_dev:
            raise OSError(errno.EXDEV, "it is on another file system than the watched directory", watch.done)
        names: set[str] = set()
        for file in files:
            length = file.size if watch.content == BODY else 0
            if taken.records and size + length > MOST_BYTES:
                break
            taken.count += 1
            try:
                if length > longest:
                    _put_aside(here, file.name, watch)
                    taken.failed[file.name] = _too_long(length, longest)
                    continue
                os.close(os.open(file.name, _FILE, dir_fd=here))
            except FileNotFoundError:
                continue
            except OSError as error:
                taken.left[file.name] = f"it cannot be taken: {error.strerror}"
                continue
            name = _free_name(done, file.name, names)
            names.add(name)
            taken.records.append(FileRecord.of(watch, file, name))
            size += length
    return taken


def settle(records: Sequence[FileRecord], longest: Mapping[str, int]) -> list[Settled]:
    """Moves recorded files, unless they were moved before, and returns their messages, the oldest file first.

    ``longest`` has the most bytes of a message of each queue that gets the content of files.
    The moves are on disk when it returns. No directory is made here: where one is missing a file system may not be
    mounted, and what was moved may be there again.
    """
    found: list[Settled] = []
    for (directory, done), group in groupby(sorted(records, key=_directories), key=_directories):
        of_both = list(group)
        try:
            with _opened(directory) as here, _destination(here, directory, done) as there:
                moved = [_moved(record, here, there) for record in of_both]
                os.fsync(there)
                os.fsync(here)
                found += [_read(each, there, longest) for each in moved]
        except OSError as error:
            found += [Settled(record, problem=sentence(error), stays=True) for record in of_both]
    return sorted(found, key=lambda each: each.record.order)


def sentence(error: OSError) -> str:
    """Returns an error of a file system for a person: what it is about and what it is."""
    return f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else str(error.strerror)


def _directories(record: FileRecord) -> tuple[str, str]:
    return record.directory, record.done


def _moved(record: FileRecord, here: int, there: int) -> Settled:
    """Returns what becomes of a file before it is read. It is in ``done`` when there is no problem."""
    name, done_name = os.fsdecode(record.name), os.fsdecode(record.done_name)
    moved, waits = _status(done_name, there), _status(name, here)
    if moved is not None and (moved.st_ino == record.inode or waits is None):
        return Settled(record, data=b"")
    if waits is None:
        return Settled(record, problem=f"{name} has gone before it was moved")
    if moved is not None or (waits.st_ino, waits.st_size, waits.st_mtime_ns) != record.version:
        return Settled(record, problem=f"{name} is taken anew: it or its place in {record.done} has changed")
    try:
        _rename(here, name, there, done_name)
    except OSError as error:
        return Settled(record, problem=f"{name} cannot be moved to {record.done}: {error.strerror}")
    return Settled(record, data=b"")


def _read(settled: Settled, there: int, longest: Mapping[str, int]) -> Settled:
    """Returns a moved file with its message."""
    record = settled.record
    if settled.data is None:
        return settled
    try:
        descriptor = os.open(record.done_name, _FILE, dir_fd=there)
        with os.fdopen(descriptor, "rb") as file:
            return _with_message(record, file, longest)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):  # somebody has taken it away already
            return Settled(record, problem=f"{record.path} has gone before its message was put")
        return _alone(record, str(error.strerror))


def _with_message(record: FileRecord, file: BufferedReader, longest: Mapping[str, int]) -> Settled:
    """Returns an opened file with its message. Raises OSError."""
    before = os.fstat(file.fileno())
    if not stat.S_ISREG(before.st_mode):
        return Settled(record, problem=f"{record.path} is no file any more")
    if record.content == BODY:
        if before.st_size > (most := longest[record.q_name]):
            return _alone(record, _too_long(before.st_size, most))
        data = file.read(before.st_size + 1)  # who has it open may write without an end
    else:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        data = reference(record, before.st_size, before.st_mtime_ns, sha256)
    after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        return _alone(record, "it is being written to")
    return Settled(record, data=data)


def _alone(record: FileRecord, problem: str) -> Settled:
    return Settled(record, problem=problem, stays=True, is_alone=True)


def _too_long(length: int, longest: int) -> str:
    return f"its {length} bytes are more than the {longest} of a message"


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    descriptor = os.open(directory, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _destination(here: int, directory: str, path: str, *, make: bool = False) -> Iterator[int]:
    """Opens ``done`` or ``failed``; below the watched directory ``here`` no symbolic link is followed."""
    try:
        there = _open_destination(here, directory, path, make=make)
    except NotADirectoryError as error:
        text = "it is no directory; a symbolic link below the watched directory is not followed"
        raise OSError(error.errno, text, path) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    try:
        yield there
    finally:
        os.close(there)


def _open_destination(here: int, directory: str, path: str, *, make: bool) -> int:
    """Opens it; where it is missing makes it, with the permissions of the watched one: who reads there reads here."""
    parts, flags = [path], _DIRECTORY
    if path.startswith(f"{directory}/"):
        parts = [part for part in path.removeprefix(f"{directory}/").split("/") if part] or ["."]
        flags |= os.O_NOFOLLOW
    with ExitStack() as opened:
        above = here
        for part in parts[:-1]:
            above = os.open(part, flags, dir_fd=above)
            opened.callback(os.close, above)
        is_new = False
        if make:
            with suppress(FileExistsError):
                os.mkdir(parts[-1], dir_fd=above)
                is_new = True
        there = os.open(parts[-1], flags, dir_fd=above)
    if is_new:
        os.fchmod(there, stat.S_IMODE(os.fstat(here).st_mode))
    return there


def _status(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _put_aside(here: int, name: str, watch: WatchDefinition) -> None:
    with _destination(here, watch.directory, watch.failed, make=True) as there:
        _rename(here, name, there, _free_name(there, name, set()))


def _free_name(directory: int, name: str, taken: set[str]) -> str:
    """Returns the name where it is free, else with the time behind it, and a number where that is not enough."""
    if name not in taken and _status(name, directory) is None:
        return name
    at = time.strftime(".%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while True:
        suffix = f"{at}.{number}" if number else at
        tried = os.fsdecode(os.fsencode(name)[: _LONGEST_NAME - len(suffix)]) + suffix
        if tried not in taken and _status(tried, directory) is None:
            return tried
        number += 1


def _rename(here: int, name: str, there: int, new_name: str) -> None:
    """Renames a file, over no other one. Raises FileExistsError.

    A file system that cannot do both in one step (NFS) is asked first.
    """
    if _renameat2 is not None:
        if not _renameat2(here, os.fsencode(name), there, os.fsencode(new_name), _RENAME_NOREPLACE):
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number), name)
    if _status(new_name, there) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=here, dst_dir_fd=there)
