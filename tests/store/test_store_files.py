"""The files of a store: who may read them, and what is moved aside."""

import errno
import os
import stat
from pathlib import Path

import apsw
import pytest

from tests.proof import vfs
from tests.proof.disk import Disk
from tests.proof.vfs import VFS, DiskFile
from tests.worlds import World
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.salvage import set_aside
from trigmon.store.sqlite.store import SqliteStore

FILES = ("-turns", "-wal", "")


@pytest.fixture
def wide():
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(directory):
    return [path.name for path in directory.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o007]


def test_no_file_is_open_to_others_in_a_directory_that_was_made_before_and_is(tmp_path, wide):
    tmp_path.chmod(0o755)
    world = World("sqlite", tmp_path)
    world.define("Q", def_persistence="persistent")
    assert {"qm.db", "qm.db-wal", "last_turn", "lock"} <= {path.name for path in world.directory.iterdir()}
    assert open_to_others(world.directory) == []
    world.qm.stop()


def test_files_that_were_open_to_others_are_closed_at_the_next_start(tmp_path, wide):
    SqliteStore(tmp_path).close()
    for name in ("qm.db", "last_turn"):
        (tmp_path / name).chmod(0o664)
    SqliteStore(tmp_path).close()
    assert open_to_others(tmp_path) == []
    assert stat.S_IMODE((tmp_path / "qm.db").stat().st_mode) == 0o660


def test_a_log_that_was_set_aside_without_its_database_is_not_overwritten_by_the_next(tmp_path):
    path = tmp_path / "qm.db"
    Path(f"{path}-wal").write_bytes(b"first")
    set_aside(path)
    path.write_bytes(b"database")
    Path(f"{path}-wal").write_bytes(b"second")
    set_aside(path)
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {b"first", b"second", b"database"}


def test_what_a_kill_left_half_way_is_set_aside_under_one_name(tmp_path, monkeypatch):
    path = tmp_path / "qm.db"
    for suffix in FILES:
        Path(f"{path}{suffix}").write_bytes(b"first")
    rename = Path.rename

    def killed(self, to):
        if self == path:
            raise KeyboardInterrupt
        return rename(self, to)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", killed)
        set_aside(path, "replaced", FILES)
    set_aside(path, "replaced", FILES)
    assert {file.name for file in tmp_path.iterdir()} == {f"qm.db.replaced-1{suffix}" for suffix in FILES}


def test_a_start_whose_directory_cannot_be_synced_does_not_serve(tmp_path, monkeypatch):
    fsync = os.fsync

    def fails(opened):
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(opened)

    monkeypatch.setattr(os, "fsync", fails)
    number = errno.EINVAL  # what a file system answers that has no sync of directories
    World("sqlite", tmp_path / "other").end()
    number = errno.EIO
    with pytest.raises(StoreBroken, match="Input/output error"):
        World("sqlite", tmp_path / "QM1")


@pytest.mark.parametrize("name", ["last_turn", "qm.db-turns"])
def test_a_file_that_cannot_be_read_is_closed_again(tmp_path, name, monkeypatch):
    VFS.disk = Disk({name: bytes(100)})
    opened: list[str] = []
    closed: list[str] = []

    class Counted(DiskFile):
        def __init__(self, disk, name):
            super().__init__(disk, name)
            opened.append(name)

        def xClose(self):  # noqa: N802
            closed.append(self._name)

    def fault(kind):
        if kind == "read" and opened[-1:] == [name]:
            raise apsw.exception_for(apsw.SQLITE_IOERR)

    monkeypatch.setattr(vfs, "DiskFile", Counted)
    VFS.disk.fault = fault
    with pytest.raises(StoreBroken) as error:
        SqliteStore(tmp_path, VFS.name)
    assert name in str(error.value)
    assert sorted(closed) == sorted(opened)
