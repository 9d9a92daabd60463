"""A disk of a few pages, which a test fills and empties: a tmpfs of its own, mounted by root."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest


class SmallDisk:
    """``directory`` is on it; ``gate`` is a file beside it, for programs to wait for."""

    def __init__(self, directory, size="256k"):
        if os.geteuid() != 0:
            pytest.skip("only root can mount a file system")
        self.directory = directory
        self.gate = directory.with_name("gate")
        self._size = size
        self._filler = directory / "filler"

    def __enter__(self):
        self.directory.mkdir()
        options = f"size={self._size},mode=755"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.directory)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.decode()}")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", str(self.directory)], check=True)

    def fill(self, leaves=0):
        """Takes all of its room, but for so many bytes."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        if leaves:
            os.truncate(self._filler, self._filler.stat().st_size - leaves)

    def make_room(self):
        """Gives all of it back."""
        self._filler.unlink(missing_ok=True)
