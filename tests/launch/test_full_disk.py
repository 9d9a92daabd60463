"""A real keeper on a disk that is full for a while: it lives, every end is known, and no start is lost."""

from __future__ import annotations

import time

import pytest

from tests.launch.disks import SmallDisk
from tests.launch.keeper_machine import KeeperMachine, is_gone
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.keeper.keeper_log import report


@pytest.fixture
def disk(tmp_path):
    with SmallDisk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def small(disk):
    """A keeper whose every file lies on a small disk, its log too."""
    made = KeeperMachine(disk.directory)
    yield made
    disk.make_room()
    made.end()


def test_an_end_on_a_full_disk_is_reported_at_once_and_written_when_there_is_room(small, disk):
    small.shell("r", f"while [ ! -e {disk.gate} ]; do sleep 0.02; done; exit 5")
    small.wait_for("started", "r")
    pid = small.pid
    disk.fill()
    disk.gate.touch()
    assert small.wait_for("ended", "r")["status"] == 5
    assert run_directory.read_exit(small.run("r")) is None
    small.monitor_is_killed()
    assert small.keeper.runs == {"r"}, "who asks is answered from memory"
    assert small.wait_for("ended", "r")["status"] == 5
    assert small.pid == pid
    disk.make_room()
    assert until(lambda: run_directory.read_exit(small.run("r")))["status"] == 5
    until(lambda: small.children() == set())


def test_a_keeper_that_is_killed_on_a_full_disk_loses_no_end(small, disk):
    small.shell("r", f"while [ ! -e {disk.gate} ]; do sleep 0.02; done; exit 6")
    program = small.wait_for("started", "r")["pid"]
    disk.fill()
    disk.gate.touch()
    small.wait_for("ended", "r")
    for _ in range(3):
        small.keeper_is_killed()
        assert small.wait_for("ended", "r")["status"] == 6
    disk.make_room()
    assert until(lambda: run_directory.read_exit(small.run("r")))["status"] == 6
    until(lambda: is_gone(program))


def test_the_pauses_between_its_tries_to_write_grow(small, disk):
    small.shell("r", f"while [ ! -e {disk.gate} ]; do sleep 0.02; done")
    small.wait_for("started", "r")
    log = small.monitors / f"{small.keeper.name}.log"
    before = log.stat().st_size
    disk.fill(leaves=1 << 12)
    (small.run("r") / ".exit").mkdir()  # what cannot be written, while the log can
    disk.gate.touch()
    small.wait_for("ended", "r")
    time.sleep(3.5)
    assert log.read_text()[before:].count("how run r ended could not be written") == 3, (
        "at once, after 1 s and 2 s more"
    )
    (small.run("r") / ".exit").rmdir()


def test_a_start_without_room_leaves_nothing_and_may_be_asked_for_again(small, disk):
    small.shell("first", "true")
    small.wait_for("ended", "first")
    disk.fill()
    for _ in range(3):
        small.shell("r", "echo once")
        assert "No space left" in small.wait_for("later", "r")["error"]
        assert not small.run("r").exists()
        small.heard.clear()
    disk.make_room()
    small.shell("r", "echo once")
    small.wait_for("ended", "r")
    assert small.output("r") == "once\n"


def test_a_claim_that_cannot_be_written_whole_is_none(tmp_path, disk):
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        run_directory.make(disk.directory / "r", "keeper")
    assert not (disk.directory / "r").exists()


def test_a_keeper_is_made_though_there_is_no_room_for_its_log(disk):
    made = KeeperMachine(disk.directory)
    disk.fill()
    made.shell("r", "true")
    assert made.wait_for("later", "r")
    disk.make_room()
    made.shell("r", "exit 3")
    assert made.wait_for("ended", "r")["status"] == 3
    made.end()


def test_what_its_standard_error_does_not_take_harms_nobody(monkeypatch):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        monkeypatch.setattr("sys.stderr", full)
        report("trouble")
        try:
            raise ValueError("trouble")
        except ValueError:
            report()
        monkeypatch.undo()
        with pytest.raises(OSError, match="No space left"):
            full.close()
