"""Capabilities of the monitor to become other users, which only its keeper inherits.

A unit gives them as ambient capabilities (capabilities(7)), which every executed program inherits: also a Java machine,
or a helper that a program of the monitor's own user can reach. So the monitor clears them when it begins, thread by
thread as the kernel keeps them, and raises them again only while it starts a keeper.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PR_CAP_AMBIENT, _RAISE, _CLEAR_ALL = 47, 2, 4
_put_away: list[int] = []


def put_away() -> None:
    """Takes the ambient capabilities from this thread and those it starts. Raises OSError."""
    held = _ambient()
    if held:
        _put_away[:] = held
        _prctl(_CLEAR_ALL, 0)


@contextmanager
def inherited() -> Iterator[None]:
    """Yields while processes that this thread starts inherit the cleared capabilities. Raises OSError."""
    try:
        for number in _put_away:
            _prctl(_RAISE, number)
        yield
    finally:
        if _put_away:
            _prctl(_CLEAR_ALL, 0)


def _ambient() -> list[int]:
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    held = int(next((line.split()[1] for line in lines if line.startswith("CapAmb:")), "0"), 16)
    return [number for number in range(held.bit_length()) if held >> number & 1]


def _prctl(what: int, number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_CAP_AMBIENT, what, number, 0, 0):
        error = ctypes.get_errno()
        raise OSError(error, f"prctl(PR_CAP_AMBIENT): {os.strerror(error)}")
