"""A process that ends with its parent, however that ends: also when it is killed, which runs no code of it.

Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


def end_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Makes the kernel send this signal to the calling process when its parent ends (prctl(2)).

    The parent is the thread that made the process: it has to last as long as its process.
    """
    _prctl(_PR_SET_PDEATHSIG, by)


def end_with(pid: int) -> None:
    """Calls :func:`end_with_parent` in a child of ``pid``. Raises SystemExit where that process has ended already."""
    end_with_parent()
    if os.getppid() != pid:
        raise SystemExit(1)
