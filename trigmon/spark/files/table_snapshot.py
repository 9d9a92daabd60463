"""Snapshots of a table of files: paths whose files stay while the table is compacted.

    flights.snapshots/1        a link to the table, until it is compacted; then one to the copy
    flights.snapshots/1.files  the table as it was before it was compacted, by hard links
    flights.snapshots/2        a link to the table

Who reads by such a path, in any engine, sees each row once, whenever the table is compacted. Who reads by the table's
own path does so too, unless the table is compacted between the listing of its files and the opening of the last one:
then Spark says that a file does not exist, and the same query is right when it is run again. pyarrow passes over a
directory that goes while it lists, in silence.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.spark.files import kept_schema
from trigmon.spark.files.staging import changing
from trigmon.spark.sinks.place import force

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COPY = ".files"


def read_table(spark: SparkSession, table: str | Path) -> DataFrame:
    """Returns a table of Parquet files as a frame with all of its columns, which no compaction disturbs."""
    where = snapshot_of(table)
    known, reader = kept_schema.kept(where), spark.read
    if known is not None:
        reader = reader.schema(known.schema.add(kept_schema.BATCH, "string"))
    return reader.parquet(f"file:{where}")


def snapshot_of(table: str | Path) -> Path:
    """Returns a path of the table as it is now and goes on, up to its next compaction, and kept for a time after that.

    It is the table's own path for a user who may not write beside the table. Raises FileNotFoundError for no table.
    """
    table = Path(table).resolve()
    if not table.is_dir():
        raise FileNotFoundError(f"there is no table {table}: no batch was written to it")
    try:
        with changing(table):
            return _links(table)[-1] if _links(table) else _linked(table)
    except PermissionError:
        return table


def preserve(table: Path, own: Path) -> None:
    """Makes all snapshots of the table as it is independent of the table. The table's lock is held.

    Whatever kills this in the middle, every snapshot has the table's files.
    """
    there = [link for link in _links(table) if (link.parent / link.readlink()).samefile(table)]
    if not there:
        return
    copy = there[-1].with_name(there[-1].name + _COPY)
    if copy.exists():  # a compaction was killed behind this; what was written since then is not in the copy
        copy = copy.with_name(f"{there[-1].name}.{os.urandom(4).hex()}{_COPY}")
    link_tree(table, own / "copy")
    os.utime(own / "copy")
    (own / "copy").rename(copy)
    _linked(table)
    for link in there:
        new = own / "link"
        new.symlink_to(copy.name)
        new.replace(link)
    force(copy.parent)


def forget(table: Path, keep_s: float) -> None:
    """Removes the snapshots of compactions that are older than this. The table's lock is held."""
    home = _home(table)
    targets = {link: home / link.readlink() for link in _links(table)}
    for copy in home.glob(f"*{_COPY}"):
        if copy.stat().st_mtime < time.time() - keep_s:
            for link in [link for link, target in targets.items() if target == copy]:
                link.unlink()
            shutil.rmtree(copy, ignore_errors=True)


def link_tree(source: Path, target: Path, without: frozenset[str] = frozenset()) -> None:
    """Makes a directory with the same files as another by hard links, except for these names at its top."""
    target.mkdir()
    for entry in os.scandir(source):
        if entry.name in without:
            continue
        where = target / entry.name
        if entry.is_dir(follow_symlinks=False):
            link_tree(Path(entry.path), where)
        else:
            os.link(entry.path, where, follow_symlinks=False)
    shutil.copystat(source, target)
    with suppress(PermissionError):
        shutil.chown(target, source.stat().st_uid, source.stat().st_gid)


def _home(table: Path) -> Path:
    return table.with_name(f"{table.name}.snapshots")


def _links(table: Path) -> list[Path]:
    """Returns the snapshots by age, the newest last: that one is the table."""
    found = _home(table).iterdir() if _home(table).exists() else ()
    return sorted((path for path in found if path.name.isdecimal() and path.is_symlink()), key=lambda at: int(at.name))


def _linked(table: Path) -> Path:
    """Makes a further snapshot of the table as it is, and returns it."""
    links = _links(table)
    new = _home(table) / str(int(links[-1].name) + 1 if links else 1)
    new.parent.mkdir(exist_ok=True)
    new.symlink_to(Path("..", table.name))
    return new
