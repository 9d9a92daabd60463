"""The directory beside a table where batches are written, and the table's lock.

    flights.staging/            locked (flock) for the moment in which the table is changed
    flights.staging/ID.X/       an attempt to write batch ID, locked by the process that makes it
    flights.staging/ID.X/files  what the attempt has written, until it is moved into the table
    flights.staging/ID.X/tasks  files that tasks write themselves, until the attempt takes those that it knows of

The kernel ends a lock with the process that has it, whatever kills that. So an attempt without a lock belongs to nobody
and is removed by the next one. One of a live drain, of whatever queue, is never touched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trigmon.spark.sinks.sink import SinkError


def staging_of(table: str | Path) -> Path:
    """Returns the directory of uncommitted batches of a table: beside it, on the same file system, also of a link."""
    table = Path(table).resolve()
    return table.with_name(f"{table.name}.staging")


@contextmanager
def file_errors(table: str | Path) -> Iterator[None]:
    """Makes an error of the file system one of the sink: no message is to blame for where a table is."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        where = f": {error.filename}" if error.filename else ""
        raise SinkError(f"table {table} cannot be written: {error.strerror}{where}") from error


def check_directories(table: str | Path) -> None:
    """Raises SinkError unless the table, and the directory beside it, are there to write to, or can be made."""
    with file_errors(table):
        try:
            needed = Path(table).absolute(), staging_of(table)
        except (RuntimeError, ValueError) as error:
            raise SinkError(f"table {table} cannot be written: {error}") from None
        for path in needed:
            there = next(above for above in (path, *path.parents) if above.exists() or above.is_symlink())
            if not there.is_dir():
                raise SinkError(f"table {table} cannot be written: {there} is no directory; name another path")
            if not os.access(there, os.W_OK | os.X_OK):
                is_read_only = os.statvfs(there).f_flag & os.ST_RDONLY
                why = (
                    f"the file system of {there} is read-only"
                    if is_read_only
                    else f"this user may not write in {there}"
                )
                raise SinkError(f"table {table} cannot be written: {why}")
        if (above := needed[0].parent).exists() and not os.access(above, os.R_OK):
            raise SinkError(f"table {table} cannot be forced to the disk: this user may not read {above}")


@contextmanager
def changing(table: str | Path) -> Iterator[None]:
    """Holds the table's lock in the block. Raises SinkError where the file system has no locks."""
    descriptor = _opened(staging_of(table))
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def attempt(table: str | Path, name: str) -> Iterator[Path]:
    """Yields a path for the files of an attempt, which is not there yet; what is left there at the end is removed.

    Before that it removes all attempts whose processes are gone.
    """
    staging = staging_of(table)
    with changing(table):
        _sweep(staging)
        own = staging / f"{name}.{os.urandom(4).hex()}"
        own.mkdir()
        descriptor = os.open(own, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield own / "files"
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(descriptor)


def sweep(table: str | Path) -> None:
    """Removes the attempts whose processes are gone. A table that nothing was written to gets no directory."""
    if staging_of(table).exists():
        with changing(table):
            _sweep(staging_of(table))


def _sweep(staging: Path) -> None:
    for left in staging.iterdir():
        with suppress(OSError):  # it is in nobody's way
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(descriptor)


def _opened(staging: Path) -> int:
    """Returns a descriptor of the directory with its lock; one that was deleted meanwhile is made anew."""
    while True:
        with suppress(FileExistsError):
            staging.mkdir(parents=True)
        with suppress(FileNotFoundError):
            descriptor = os.open(staging, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(descriptor), staging.stat()):
                    return descriptor
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(descriptor)
                raise SinkError(f"{staging} cannot be locked: {error.strerror}. Is it on a local disk?") from error
            os.close(descriptor)
