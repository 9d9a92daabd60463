"""A claim by a prepared directory is a claim like any other: once for a run, and nothing is left of what is unused."""

from __future__ import annotations

import ctypes
import errno
import time

import pytest

from tests.waiting import until
from trigmon.keeper import prepared_directories, run_directory
from trigmon.keeper.prepared_directories import PreparedDirectories


@pytest.fixture
def prepared(tmp_path):
    """Directories of a keeper that has just started one run in this directory."""
    made = PreparedDirectories("Q.1.keeper")
    assert not made.claim(tmp_path / "first")
    made.keep_time(made.due_at)
    yield made
    made.close()
    assert list(tmp_path.glob(".*")) == []


def test_a_claimed_directory_is_as_one_that_was_made(prepared, tmp_path):
    assert prepared.claim(tmp_path / "r")
    run_directory.make(tmp_path / "plain", "Q.1.keeper", marks=True)
    assert run_directory.read(tmp_path / "r") == run_directory.read(tmp_path / "plain")
    assert (tmp_path / "r").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(file.name for file in (tmp_path / "r").iterdir()) == ["claim", "stderr", "stdout"]
    assert run_directory.withdraw(tmp_path / "r")


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_run_is_claimed_once(prepared, tmp_path, is_empty):
    if is_empty:
        (tmp_path / "r").mkdir()
    else:
        assert prepared.claim(tmp_path / "r")
    for _ in range(5):
        with pytest.raises(FileExistsError):
            prepared.claim(tmp_path / "r")
    assert prepared.claim(tmp_path / "s")


def test_four_are_prepared_a_moment_after_the_last_start_and_not_before(prepared, tmp_path):
    assert [prepared.claim(tmp_path / f"r{number}") for number in range(5)] == [True] * 4 + [False]
    prepared.keep_time(time.monotonic() - 1)
    assert not prepared.claim(tmp_path / "s")
    prepared.keep_time(prepared.due_at)
    assert prepared.due_at is None
    assert prepared.claim(tmp_path / "s")


def test_what_a_killed_keeper_left_is_made_anew(prepared, tmp_path):
    (tmp_path / ".Q.1.keeper.0" / "stdout").write_text("old")
    other = PreparedDirectories("Q.1.keeper")
    other.claim(tmp_path / "second")
    other.keep_time(other.due_at)
    assert other.claim(tmp_path / "r")
    assert (tmp_path / "r" / "stdout").read_text() == ""
    other.close()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EINVAL, errno.ENOSYS])
def test_where_a_prepared_one_cannot_be_had_the_directory_is_to_be_made(prepared, tmp_path, monkeypatch, number):
    def refused(*_):
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(prepared_directories, "_rename", refused)
    assert not prepared.claim(tmp_path / "r")
    monkeypatch.setattr(prepared_directories, "_rename", None)
    assert not prepared.claim(tmp_path / "r")


def test_another_runs_directory_has_its_own(prepared, tmp_path):
    (tmp_path / "other").mkdir()
    assert not prepared.claim(tmp_path / "other" / "r")
    assert list(tmp_path.glob(".*")) == []


def test_a_keeper_starts_runs_in_them_and_leaves_none(machine):
    runs = machine.directory / "runs"
    machine.shell("first", "echo 1")
    machine.wait_for("ended", "first")
    until(lambda: len(list(runs.glob(".*/stderr"))) == 4)
    machine.shell("second", "echo 2")
    machine.wait_for("ended", "second")
    assert machine.output("second") == "2\n"
    machine.keepers.close()
    until(lambda: not list(runs.glob(".*")))
