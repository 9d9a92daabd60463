"""The files of a store: who may read them, and what is moved aside."""

import os
import stat
from pathlib import Path

import pytest

from tests.worlds import World
from trigmon.store.sqlite.salvage import set_aside
from trigmon.store.sqlite.store import SqliteStore


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
