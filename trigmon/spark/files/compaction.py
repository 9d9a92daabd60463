"""Compaction: many small directories of batches become few, in one step.

    flights/batch=compacted-TIME-X/           the rows of several batches
    flights/batch=compacted-TIME-X/_batches   their names, so that none is written again

The rows are written in staging. Then, under the table's lock, a second directory of the table is made of hard links,
with the new files in place of the old ones, and the two change names by one call of the system. So the table
has either. Whatever kills the compaction, the table is as before or as after, and the next drain or
compaction removes the rest.

A directory counts as small below the target size. One that was compacted before is taken again only with at least as
much from other batches, so that a row is written some ten times at most on its way into a large file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trigmon.spark.files import kept_schema
from trigmon.spark.files.exchange import exchange, sync_file_system
from trigmon.spark.files.merged_files import Merger
from trigmon.spark.files.staging import attempt, changing
from trigmon.spark.files.table_snapshot import forget, link_tree, preserve
from trigmon.spark.sinks.place import force
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    from trigmon.spark.files.kept_schema import Kept

TARGET_BYTES = 128 << 20
KEEP_S = 24 * 3600.0
_NAME, _MEMBERS, _REFUSED = "compacted-", "_batches", "_refused"


class Directory(NamedTuple):
    """The directory of a batch: its Parquet files with their bytes, and the batches that it is."""

    path: Path
    files: tuple[Path, ...]
    size: int
    batches: tuple[str, ...]


class Compacted(NamedTuple):
    """What a compaction did, or would do: directories, files and bytes before and after."""

    directories: int
    files: int
    size: int
    made: int
    files_after: int = 0
    size_after: int = 0


def has_member(table: Path, name: str) -> bool:
    """Returns whether the batch is in a directory that was compacted."""
    wanted = f"\0{name}\0".encode()
    return any(wanted in file.read_bytes() for file in table.glob(f"{kept_schema.BATCH}={_NAME}*/{_MEMBERS}"))


def planned(table: str | Path, target: int = TARGET_BYTES) -> list[list[Directory]]:
    """Returns the directories that are to be compacted, those that become one together. Raises SinkError."""
    table = Path(table)
    if not table.is_dir():
        raise SinkError(f"{table} is no table: there is no such directory")
    if kept_schema.kept(table) is None:
        raise SinkError(f"{table} has no Parquet files of a drain: nothing else can be compacted")
    small = [found for found in _directories(table) if found.size < target]
    fresh = [found for found in small if not found.path.name.startswith(f"{kept_schema.BATCH}={_NAME}")]
    enough = sum(found.size for found in fresh)
    groups: list[list[Directory]] = [[]]
    for found in small:
        if found in fresh or found.size <= enough:
            groups[-1].append(found)
            if sum(one.size for one in groups[-1]) >= target:
                groups.append([])
    return [group for group in groups if len(group) > 1]


def compact(
    table: str | Path,
    groups: Sequence[Sequence[Directory]],
    *,
    keep_s: float = KEEP_S,
    progress: Callable[[int, Sequence[Directory]], object] = lambda _at, _group: None,
) -> Compacted:
    """Compacts these directories, and returns what became of them. Raises SinkError; then the table is as before.

    The files of before stay so long for readers that began by a snapshot. ``progress`` is called before each group.
    """
    table = Path(table).resolve()
    with _system_errors(table), attempt(table, "_compaction") as new:
        with changing(table):
            forget(table, keep_s)
        if not groups:
            return before(groups)
        known = kept_schema.kept(table)
        assert known is not None
        made = [_merged(group, new.parent / str(at), known, progress, at) for at, group in enumerate(groups)]
        written = [file for path in made for file in path.rglob("*.parquet")]
        sizes = [file.stat().st_size for file in written]
        with changing(table):
            _replace(table, [found for group in groups for found in group], made, new)
    return before(groups)._replace(files_after=len(written), size_after=sum(sizes))


def before(groups: Sequence[Sequence[Directory]]) -> Compacted:
    """Returns what would be compacted."""
    taken = [found for group in groups for found in group]
    files, size = sum(len(found.files) for found in taken), sum(found.size for found in taken)
    return Compacted(len(taken), files, size, len(groups))


# -- parts of the above -------------------------------------------------------------------------------------


def _directories(table: Path) -> Iterator[Directory]:
    """Yields the directories of batches that are in the table, by their names, which sort by time."""
    for path in sorted(table.glob(f"{kept_schema.BATCH}=*"), key=lambda path: path.name.replace(_NAME, "b")):
        if path.is_dir() and not (path / _REFUSED).exists():
            files = tuple(sorted(path.rglob("*.parquet")))
            size = sum(file.stat().st_size for file in files)
            yield Directory(path, files, size, _batches(path))


def _batches(path: Path) -> tuple[str, ...]:
    if (path / _MEMBERS).exists():
        return tuple((path / _MEMBERS).read_text().strip("\0").split("\0\0"))
    return (path.name.partition("=")[2],)


def _merged(
    group: Sequence[Directory],
    path: Path,
    known: Kept,
    progress: Callable[[int, Sequence[Directory]], object],
    at: int,
) -> Path:
    """Writes the rows of a group into a directory, with the names of its batches, and returns the directory."""
    progress(at, group)
    path.mkdir()
    merger = Merger(known)
    of_value: dict[Path, list[Path]] = {}
    for found in group:
        for file in found.files:
            of_value.setdefault(file.parent.relative_to(found.path), []).append(file)
    for value, files in of_value.items():
        (path / value).mkdir(parents=True, exist_ok=True)
        merger.write(files, path / value / f"part-{os.urandom(8).hex()}.zstd.parquet")
    (path / _MEMBERS).write_text("".join(f"\0{name}\0" for found in group for name in found.batches))
    return path


def _replace(table: Path, taken: Sequence[Directory], made: Sequence[Path], new: Path) -> None:
    """Puts the new directories in the place of the old ones, in one step. The table's lock is held."""
    if not all(found.path.exists() for found in taken):
        raise SinkError(f"{table} was compacted by another process meanwhile: start again")
    link_tree(table, new, frozenset(found.path.name for found in taken))
    now = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    for path in made:
        path.rename(new / f"{kept_schema.BATCH}={_NAME}{now}-{os.urandom(4).hex()}")
    preserve(table, new.parent)
    sync_file_system(new)
    exchange(new, table)
    force(table.parent)


@contextmanager
def _system_errors(table: Path) -> Iterator[None]:
    """Raises an error of the system in the block as SinkError."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise SinkError(
            f"{table} was not compacted: {why}. It needs room for the new files, hard links, and a file system that "
            "exchanges directories, as ext4, XFS, Btrfs and tmpfs"
        ) from error
