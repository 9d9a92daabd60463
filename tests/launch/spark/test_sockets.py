"""The directory in which a driver and its Python workers speak to each other."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from trigmon.launch.spark import sockets

ENABLED, DIRECTORY = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
NAME = ".453c244e-f7f0-4b56-a545-cc50c39cfda7.sock"


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory, "spark", "s")


def test_the_directory_is_its_users_alone(place):
    assert sockets.options(place, {}) == ["--conf", f"{ENABLED}=true", "--conf", f"{DIRECTORY}={place}"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("expected", [{ENABLED: "false"}, {DIRECTORY: "/tmp"}])
def test_what_a_job_says_itself_stays(place, expected):
    assert sockets.options(place, expected) == []


@pytest.mark.parametrize(("more", "is_short"), [(0, True), (1, False)])
def test_a_directory_with_the_longest_name_still_takes_a_socket(place, more, is_short):
    longest = place / ("x" * (106 - len(str(place)) - len(f"/{NAME}") + more))
    assert bool(sockets.options(longest, {})) == is_short
    with socket.socket(socket.AF_UNIX) as listener:
        if is_short:
            listener.bind(str(longest / NAME))
        else:
            with pytest.raises(OSError, match="too long"):
                listener.bind(str(longest / NAME))


def test_a_socket_is_removed_when_its_process_has_gone_and_not_before(place):
    place.mkdir(parents=True)
    path = place / NAME
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        os.utime(path, (0, 0))
        sockets.remove_stale(place)
        assert path.exists()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    sockets.remove_stale(place)
    assert not path.exists()
    sockets.remove_stale(place / "none")


def test_a_young_socket_stays(place):
    place.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / NAME))
    sockets.remove_stale(place)
    assert (place / NAME).exists()
