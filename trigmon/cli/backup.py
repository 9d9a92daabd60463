"""``trigmon backup`` and ``trigmon restore``: the store as one file, made while the queue manager serves."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation, since
from trigmon.mq.quantities import size

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.store.sqlite.backup_file import BackupNote

STANDARD = "-"
"""Stands for standard input or output instead of a file."""


@command("backup", "trigmon backup QM1.backup\ntrigmon backup - | zstd > QM1.backup.zst")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write all of the queue manager's data to FILE while it serves; - is standard output.

    In it is all that was acknowledged before: definitions, messages, runs. The output files of programs are not. FILE
    appears when it is complete and durable. trigmon check --store verifies it, trigmon restore restores it.
    """
    from trigmon.cli import output

    if file.exists():
        raise click.UsageError(f"{file} exists: name another file for each backup")
    with invocation().connected() as qm:
        if str(file) == STANDARD:
            _write(qm, sys.stdout.buffer)
            return
        with _whole_file(file) as part:
            note = _write(qm, part)
    shown = {"file": str(file), "q_mgr_name": note.q_mgr_name, "made_ms": note.made_ms, "size": note.size}
    output.done(f"{note.q_mgr_name} is backed up in {file}, {size(note.size)}", shown)


@command(
    "restore",
    "trigmon restore QM1.backup\ntrigmon restore QM1.backup --as QM2\nzstd -dc QM1.backup.zst | trigmon restore -\n"
    "trigmon restore QM1.backup --journal /srv/archive/QM1 --until 2026-11-21T09:30",
)
@click.argument("file", type=click.File("rb"))
@click.option(
    "--as", "name", metavar="NAME", help="Restore it as the queue manager NAME, in the data directory of that."
)
@click.option("--data", type=click.Path(file_okay=False), help="The data directory (default: qmgr.data).")
@click.option("--replace", is_flag=True, help="Keep a store that is there as qm.db.replaced-N, and take its place.")
@click.option("--accept-damage", is_flag=True, help="Restore a damaged backup: the start salvages what can be read.")
@click.option(
    "--journal",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Apply what came behind the backup, from this archive (store.journal_archive).",
)
@click.option("--until", "until_ms", callback=since, metavar="TIME", help="With --journal: what came up to this time.")
def restore(
    file: IO[bytes],
    name: str | None,
    data: str | None,
    replace: bool,
    accept_damage: bool,
    journal: Path | None,
    until_ms: int,
) -> None:
    """Make the data of a stopped queue manager from a backup; - is standard input.

    It is restored whole or not at all, also when this is interrupted. Messages that were put after the backup are gone,
    and messages that were got after it are there again; --journal brings it forward to --until, or to the next
    restore, or the end of the archive. TIME is a day, a time such as 2026-11-21T09:30, both in UTC, or so long ago
    (5m, 2h).
    """
    from trigmon.cli import output
    from trigmon.files import act_as_owner
    from trigmon.store.sqlite import restoration
    from trigmon.store.sqlite.journal_archive import last_turn
    from trigmon.store.sqlite.store import FILE_NAME

    settings = invocation().settings(**{"qmgr__name": name} if name else {}, qmgr__data=data)
    target = settings.qmgr.name
    path = settings.qmgr.directory / FILE_NAME
    act_as_owner(path.parent)
    archive = settings.store.journal_archive
    with _remedies(target), _bar(file, "restoring") as progress:
        note = restoration.restore(
            file,
            path,
            target,
            output.note,
            may_rename=name is not None,
            replace=replace,
            accept_damage=accept_damage,
            progress=progress,
            bring_forward=_bring_forward(journal, until_ms, accept_damage=accept_damage),
            behind=last_turn(Path(archive)) if archive else 0,
        )
    if archive:
        output.note("make a backup when it runs: no older one leads to what comes from then on")
    shown = {"q_mgr_name": target, "backup_of": note.q_mgr_name, "made_ms": note.made_ms, "directory": str(path.parent)}
    was = f"as {note.q_mgr_name} was at {output.instant(note.made_ms)}"
    output.done(f"{target} is restored in {path.parent} {was}: trigmon run starts it", shown)


def _bring_forward(
    journal: Path | None, until_ms: int, *, accept_damage: bool
) -> Callable[[Path, BackupNote], None] | None:
    """Returns what applies the turns of an archive to the database of a backup; None without an archive."""
    from trigmon.cli import output
    from trigmon.store.sqlite.archived_turns import Until

    if journal is None:
        if until_ms:
            raise click.UsageError("--until goes with --journal")
        return None
    if until_ms > time.time() * 1000:
        at = f"--until is {output.instant(until_ms)}, which is later than now"
        raise click.UsageError(f"{at}: a time is UTC unless it ends with its offset, as in 2026-11-21T09:30+01:00")
    if accept_damage:
        raise click.UsageError("--journal needs a whole backup: without --accept-damage")
    return partial(Until(journal, until_ms).bring, tell=output.note)


@contextmanager
def _remedies(target: str) -> Iterator[None]:
    """Says what to do about each error of a restore as this queue manager. Raises ClickException."""
    from trigmon.store.port import AnothersStore, DirectoryInUse, StoreBroken, UnsupportedVersion
    from trigmon.store.sqlite.archived_turns import ArchiveError
    from trigmon.store.sqlite.backup_file import BackupError
    from trigmon.store.sqlite.restoration import StoreExistsError

    remedies = {
        StoreExistsError: "--replace keeps it beside the restored one",
        DirectoryInUse: "stop the queue manager, and its socket unit, first",
        AnothersStore: f"give --as {target}, or name the other with --qmgr",
        BackupError: "nothing was changed; take another backup, or give --accept-damage",
        StoreBroken: "nothing was changed; take another backup",
        UnsupportedVersion: "nothing was changed",
        ArchiveError: "nothing was changed",
    }
    try:
        yield
    except tuple(remedies) as error:
        raise click.ClickException(f"{error}: {remedies[type(error)]}") from None


def _write(qm: Connection, file: IO[bytes]) -> BackupNote:
    """Copies the held file of the store, then writes what stands behind it. Raises MQError, OSError."""
    from importlib.metadata import version

    from trigmon.mq.calls import BeginBackup, EndBackup, ReadBackup
    from trigmon.mq.replies import BackupBegun, BackupPart
    from trigmon.store.sqlite.backup_file import BackupNote, BackupWriter

    writer = BackupWriter(file)
    begun = qm.call(BeginBackup())
    assert isinstance(begun, BackupBegun)
    label = f"backing up {qm.q_mgr_name}"
    with click.progressbar(length=begun.size, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        done = 0
        while done < begun.size:
            part = qm.call(ReadBackup(offset=done))
            assert isinstance(part, BackupPart)
            writer.write(part.data)
            done += len(part.data)
            bar.update(len(part.data))
    qm.call(EndBackup())
    note = BackupNote(
        q_mgr_name=qm.q_mgr_name, made_ms=begun.made_ms, size=begun.size, trigmon_version=version("trigmon")
    )
    writer.finish(note)
    return note


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yields a new file, of mode 0600, that gets this name when the block has ended well. Raises OSError."""
    import os

    from trigmon.store.sqlite.turn_log import make_durable

    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        make_durable(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _bar(file: IO[bytes], label: str) -> Iterator[Callable[[int], None]]:
    """Yields what is called with bytes done; a terminal shows a bar where the size is known."""
    import os
    import stat

    found = os.fstat(file.fileno())
    size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    hidden = not size or not sys.stderr.isatty()
    with click.progressbar(length=size, label=label, file=sys.stderr, hidden=hidden) as bar:
        yield bar.update
